//! One claimed backlog: how far its pass is, and what is due again when.

use chrono::{DateTime, TimeDelta, Utc};
use foldhash::{HashMap, HashMapExt as _};

use crate::delivery::backlogs::{BacklogId, EndedClaim, ONLY_RETRIES};
use feedgate_core::claim::ClaimToken;

/// A backlog that this node has claimed.
#[derive(Debug)]
pub(super) struct HeldBacklog {
    pub(super) token: ClaimToken,
    /// When the claim ends.
    pub(super) until: DateTime<Utc>,
    pub(super) host: String,
    /// The last subscription that was claimed or found to be up to date.
    pub(super) after: i64,
    /// Since when the pass has come to the last subscription; `None` if it has not.
    pub(super) at_end_since: Option<DateTime<Utc>>,
    /// Whether some that were sent something are owed more.
    pub(super) is_repeated: bool,
    /// Whether a transaction reads what comes after `after`.
    pub(super) is_being_read: bool,
    /// When those that were given back are due again.
    pub(super) given_back: HashMap<i64, DateTime<Utc>>,
    /// Until when some are left alone because they cannot be read.
    pub(super) unreadable_until: Option<DateTime<Utc>>,
    /// When the next of those is tried again that wait for a retry.
    pub(super) next_retry: Option<DateTime<Utc>>,
    /// The numbers of the subscriptions in hand; true: the worker did not know of it at the last renewal.
    pub(super) in_hand: HashMap<i64, bool>,
}

impl HeldBacklog {
    pub(super) fn new(token: ClaimToken, until: DateTime<Utc>, host: String) -> HeldBacklog {
        HeldBacklog {
            token,
            until,
            host,
            after: 0,
            at_end_since: None,
            is_repeated: false,
            is_being_read: false,
            given_back: HashMap::new(),
            unreadable_until: None,
            next_retry: None,
            in_hand: HashMap::new(),
        }
    }

    pub(super) fn move_times(&mut self, by: TimeDelta) {
        self.until += by;
        self.given_back.values_mut().for_each(|at| *at += by);
        for at in [&mut self.at_end_since, &mut self.unreadable_until, &mut self.next_retry] {
            *at = at.map(|at| at + by);
        }
    }

    /// Returns how the claim ends when nothing is in hand any more.
    pub(super) fn end_claim(&self, id: BacklogId) -> EndedClaim {
        let HeldBacklog { token, is_repeated, after, .. } = *self;
        let is_at_end = self.at_end_since.is_some();
        if is_at_end && is_repeated {
            // Those that are owed more do not wait for what was given back.
            let (is_due, again_at) = (true, None);
            return EndedClaim { id, token, after: 0, is_at_end, is_due, again_at, is_repeated };
        }
        // A pass that has not come to its end goes on with the next claim.
        let is_due = !is_at_end;
        let after = if is_at_end { ONLY_RETRIES } else { after };
        let first_given_back = self.given_back.keys().min();
        let after = first_given_back.map_or(after, |first| after.min(first - 1));
        let again_at = self.given_back.values().min().copied().or(self.unreadable_until);
        EndedClaim { id, token, after, is_at_end, is_due, again_at, is_repeated }
    }

    fn begin_pass(&mut self) {
        (self.after, self.at_end_since, self.is_repeated) = (0, None, false);
    }

    /// Notes when a subscription is tried again.
    pub(super) fn note_retry(&mut self, at: Option<DateTime<Utc>>) {
        self.next_retry = self.next_retry.into_iter().chain(at).min();
    }

    /// Returns whether there may be more to claim at `now`, and goes back for what was given back before.
    pub(super) fn goes_on(&mut self, now: DateTime<Utc>) -> bool {
        if self.at_end_since.is_some() && self.is_repeated {
            self.begin_pass();
        }
        let due = self.given_back.iter().filter(|(_, at)| **at <= now).map(|(number, _)| *number);
        if let Some(first) = due.min() {
            self.given_back.retain(|_, at| *at > now);
            (self.after, self.at_end_since) = (self.after.min(first - 1), None);
        }
        if self.at_end_since.is_some() && self.next_retry.is_some_and(|at| at <= now) {
            (self.after, self.at_end_since) = (ONLY_RETRIES, None);
        }
        if self.at_end_since.is_none() {
            self.next_retry = self.next_retry.filter(|at| *at > now);
        }
        self.at_end_since.is_none()
    }
}
