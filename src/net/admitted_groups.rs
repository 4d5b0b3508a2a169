//! The host groups to which one fetch may send requests.
//!
//! A poll has claimed the group of its resource. Each other group to which redirects lead is asked about
//! once, before the first request to it.

use std::fmt::{self, Debug};
use std::time::Duration;

use url::Url;

use super::host_gate::{GateRefusal, HostGate};
use super::politeness::{HostBusy, Patience, host_of};
use super::{FetchError, Hop};

/// A host group that a poll has claimed.
#[derive(Clone, Copy)]
pub struct ClaimedGroup<'a> {
    /// A URL of the group.
    pub url: &'a str,
    /// Is called when a redirect leads to another group, so that the claim can end.
    pub give_back: &'a (dyn Fn() + Sync),
}

impl Debug for ClaimedGroup<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClaimedGroup").field("url", &self.url).finish_non_exhaustive()
    }
}

/// The groups that one fetch has claimed or was admitted to.
pub(super) struct AdmittedGroups<'a> {
    /// Decides about other groups; none outside of a gateway.
    gate: Option<&'a dyn HostGate>,
    admitted: Vec<String>,
    /// Gives back the claim of the first of them.
    give_back: Option<&'a (dyn Fn() + Sync)>,
    /// Whether a redirect has led to another group.
    is_elsewhere: bool,
}

impl<'a> AdmittedGroups<'a> {
    /// Creates the groups of a fetch that has claimed none.
    pub(super) fn new(gate: Option<&'a dyn HostGate>) -> AdmittedGroups<'a> {
        AdmittedGroups { gate, admitted: Vec::new(), give_back: None, is_elsewhere: false }
    }

    /// Adds a group that the caller has claimed.
    pub(super) fn claim(&mut self, claimed: ClaimedGroup<'a>) {
        if let (Some(gate), Ok(url)) = (self.gate, Url::parse(claimed.url)) {
            self.admitted.push(gate.group(&url));
            self.give_back = Some(claimed.give_back);
        }
    }

    /// Returns whether a redirect has led to a group that was not claimed.
    pub(super) fn is_elsewhere(&self) -> bool {
        self.is_elsewhere
    }

    /// Waits until a request to `next`, which follows one to `last`, may be sent to its group. A redirect to
    /// another group waits for a time of that group; one from `http` to `https` of the same server
    /// belongs to the same visit.
    pub(super) async fn enter(
        &mut self,
        (last, next): (Option<&Hop>, &Url),
        (patience, spacing): (Patience, Duration),
    ) -> Result<(), FetchError> {
        let Some(gate) = self.gate else { return Ok(()) };
        let group = gate.group(next);
        if self.admitted.contains(&group) {
            return Ok(());
        }
        let is_same_visit = last.is_some_and(|last| is_same_server(&last.url, next));
        let refusal = if self.admitted.is_empty() || is_same_visit {
            gate.paused_until(&group).await.map(GateRefusal::Paused)
        } else {
            self.is_elsewhere = true;
            if let Some(give_back) = self.give_back.take() {
                give_back();
            }
            let patience = match patience {
                Patience::Background if last.is_some() => Patience::Continued,
                patience => patience,
            };
            gate.admit(&group, patience.max_wait(spacing)).await.err()
        };
        let host = host_of(next);
        match refusal {
            None => {
                self.admitted.push(group);
                Ok(())
            }
            Some(GateRefusal::Paused(until)) => Err(FetchError::HostPaused { host, until }),
            Some(GateRefusal::Busy(retry_in)) => {
                Err(FetchError::HostBusy(HostBusy { host, retry_in }))
            }
        }
    }
}

/// Returns whether two URLs name one server, by `http` and by `https`.
fn is_same_server(one: &Url, other: &Url) -> bool {
    let is_usual = |url: &Url| url.port().is_none();
    one.host_str() == other.host_str() && is_usual(one) && is_usual(other)
}
