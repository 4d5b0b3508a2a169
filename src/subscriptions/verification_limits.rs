//! Limits on verification requests to the hosts of callbacks (rule S26).
//!
//! Anybody can name any host in a subscription request, and each request causes a verification
//! there. So each host has a limited number of permits, and so have the addresses that it resolves
//! to and their networks: a server may have any number of names. A successful verification returns
//! its permit at once, a failed one after a while. A host whose callbacks agree is thus verified as
//! often as needed; one whose callbacks never agree receives one request per minute in the long
//! run, however often it is named. Ports are ignored; otherwise one host would count as 65,535.
//!
//! A host that has agreed at its addresses counts by its name only, so that those who share an
//! address with it cannot use up its permits.
//!
//! Addresses that are not public belong to the operator and are not limited, and neither are names
//! that resolve to nothing else; the caller resolves them. Nor are renewals of existing
//! subscriptions limited, so that an attacker cannot use up the permits of a subscriber.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ipnet::IpNet;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

use crate::net::address_and_network;
use feedgate_core::topic::Callback;

/// The permits of one host.
const OF_HOST: Quota = Quota { permits: 10, back_in: Duration::from_secs(60) };
/// The permits of one address, at which a hosting provider may have many hosts.
const OF_ADDRESS: Quota = Quota { permits: 20, back_in: Duration::from_secs(20) };
/// The permits of a network, IPv4 /24 or IPv6 /48: the smallest that is routed by itself.
const OF_NETWORK: Quota = Quota { permits: 40, back_in: Duration::from_secs(10) };
/// The maximum number of intents claimed for one host at once.
const PORTION: u32 = OF_HOST.permits / 2;
/// The maximum time that a waiting client waits for a permit.
const PATIENCE: Duration = Duration::from_secs(10);
/// The maximum number of hosts, addresses and networks that are remembered. Adding one costs an
/// attacker a failed verification.
const MOST: usize = 10_000;

/// How many verifications may be in progress or have failed.
#[derive(Clone, Copy, Debug)]
struct Quota {
    /// The maximum of concurrent and of consecutive failed verifications.
    permits: u32,
    /// The time after which the permit of a failed verification is returned.
    back_in: Duration,
}

/// What is limited.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Scope {
    Host(String),
    Network(IpNet),
}

impl Scope {
    fn quota(&self) -> Quota {
        match self {
            Scope::Host(_) => OF_HOST,
            Scope::Network(net) if net.prefix_len() == net.max_prefix_len() => OF_ADDRESS,
            Scope::Network(_) => OF_NETWORK,
        }
    }
}

/// The host of a callback, and the public addresses that it resolves to.
#[derive(Clone, Debug)]
pub(super) struct VerificationTarget {
    host: String,
    networks: Vec<IpNet>,
}

impl VerificationTarget {
    /// Creates the target for the host of `callback`. Without addresses, it counts by its name only.
    pub(super) fn new(callback: &Callback, addresses: &[IpAddr]) -> VerificationTarget {
        let networks = addresses.iter().flat_map(|ip| address_and_network(*ip));
        let mut networks: Vec<IpNet> = networks.collect();
        networks.sort_unstable();
        networks.dedup();
        VerificationTarget { host: callback.host_name(), networks }
    }
}

/// The hosts with verifications in progress or recent failures. Clones share their state.
#[derive(Clone, Debug)]
pub(super) struct VerificationLimits {
    state: Arc<Mutex<State>>,
    freed: Arc<Notify>,
    wake_signals: Arc<Notify>,
}

#[derive(Debug, Default)]
struct State {
    known: HashMap<Scope, Usage>,
    /// Where each host has agreed, and when it did last.
    agreed: HashMap<String, (Instant, Vec<IpNet>)>,
}

/// The permits in use of one host, address or network.
#[derive(Clone, Copy, Debug, Default)]
struct Usage {
    in_hand: u32,
    /// The time at which the permits of all failed verifications are returned.
    back_at: Option<Instant>,
}

impl Usage {
    /// Returns the number of permits in use.
    fn taken(self, quota: Quota, now: Instant) -> u32 {
        let in_vain = self.failures_left(now).as_micros().div_ceil(quota.back_in.as_micros());
        self.in_hand.saturating_add(u32::try_from(in_vain).unwrap_or(u32::MAX))
    }

    /// Returns after how long the permits of all failed verifications are returned.
    fn failures_left(self, now: Instant) -> Duration {
        self.back_at.map_or(Duration::ZERO, |at| at.saturating_duration_since(now))
    }

    /// Returns after how long a permit is returned, if failed verifications alone have used up all.
    fn retry_after(self, quota: Quota, now: Instant) -> Option<Duration> {
        let left = self.failures_left(now).checked_sub(quota.back_in * (quota.permits - 1))?;
        (!left.is_zero()).then_some(left)
    }

    /// Returns whether a host has too few permits for another batch of intents.
    fn is_busy(self, now: Instant) -> bool {
        self.taken(OF_HOST, now).saturating_add(PORTION) > OF_HOST.permits
    }
}

/// A permit for one verification. Dropping it counts as a failure.
#[derive(Debug)]
#[must_use]
pub struct VerificationPermit {
    /// `None` if the verification is not limited.
    held: Option<HeldPermit>,
    has_agreed: bool,
}

#[derive(Debug)]
struct HeldPermit {
    limits: VerificationLimits,
    target: VerificationTarget,
    scopes: Vec<Scope>,
    /// Whether the host had agreed before.
    is_known: bool,
}

impl VerificationPermit {
    /// Creates a permit for a verification that is not limited.
    pub(super) fn free() -> VerificationPermit {
        VerificationPermit { held: None, has_agreed: false }
    }

    /// Returns whether a failed verification may be repeated: its host has agreed before, or is not
    /// limited.
    pub(super) fn may_repeat(&self) -> bool {
        self.held.as_ref().is_none_or(|held| held.is_known)
    }

    /// Ends the verification; `has_agreed` tells whether the callback agreed.
    pub(super) fn ends(mut self, has_agreed: bool) {
        self.has_agreed = has_agreed;
    }
}

impl Drop for VerificationPermit {
    fn drop(&mut self) {
        if let Some(held) = self.held.take() {
            let HeldPermit { limits, target, scopes, .. } = held;
            limits.leave(&scopes, self.has_agreed.then_some(target), Instant::now());
        }
    }
}

impl VerificationLimits {
    /// Creates the limits. `wake_signals` is notified when a permit is returned.
    pub(super) fn new(wake_signals: Arc<Notify>) -> VerificationLimits {
        VerificationLimits { state: Arc::default(), freed: Arc::default(), wake_signals }
    }

    /// Returns the maximum number of intents to claim for one host at once.
    pub(super) fn portion() -> usize {
        PORTION as usize
    }

    /// Returns the hosts for which no batch can be claimed now, by their names in the store.
    pub(super) fn busy(&self) -> Vec<String> {
        let now = Instant::now();
        let state = self.state();
        let busy = state.known.iter().filter(|(_, usage)| usage.is_busy(now));
        let names = busy.filter_map(|(scope, _)| match scope {
            Scope::Host(name) => Some(name.clone()),
            Scope::Network(_) => None,
        });
        names.collect()
    }

    /// Returns a permit for `target`, if one is free.
    pub(super) fn try_visit(&self, target: &VerificationTarget) -> Option<VerificationPermit> {
        self.enter(target, false).ok()
    }

    /// Returns a permit for an intent that was claimed, which the permits of the host suffice for.
    /// The error is the time after which its address or network may have a permit.
    pub(super) fn visit_claimed(
        &self,
        target: &VerificationTarget,
    ) -> Result<VerificationPermit, Duration> {
        self.enter(target, true).map_err(|retry_after| retry_after.unwrap_or(PATIENCE))
    }

    /// Returns after how long a verification of `target` may be tried again, if too many have failed
    /// there.
    pub(super) fn retry_after(&self, target: &VerificationTarget) -> Option<Duration> {
        let (state, now) = (self.state(), Instant::now());
        let scopes = state.scopes(target);
        scopes.iter().filter_map(|scope| state.retry_after(scope, now)).max()
    }

    /// Waits for a permit for `target` while other verifications are in progress. The error is the
    /// time after which another attempt may succeed: at once if too many have failed, or after a
    /// timeout.
    pub(super) async fn wait(
        &self,
        target: &VerificationTarget,
    ) -> Result<VerificationPermit, Duration> {
        let until = Instant::now() + PATIENCE;
        loop {
            // Listening starts before the check, so that a permit returned in between is not
            // missed.
            let mut freed = std::pin::pin!(self.freed.notified());
            freed.as_mut().enable();
            match self.enter(target, false) {
                Ok(visit) => return Ok(visit),
                Err(Some(retry_after)) => return Err(retry_after),
                Err(None) => timeout_at(until, freed).await.map_err(|_| PATIENCE)?,
            }
        }
    }

    /// Takes a permit of each scope. The error is the time after which one is returned, if failed
    /// verifications have used up all. An intent that was claimed is one of a batch that the
    /// permits of its host suffice for.
    fn enter(
        &self,
        target: &VerificationTarget,
        is_claimed: bool,
    ) -> Result<VerificationPermit, Option<Duration>> {
        let now = Instant::now();
        let mut state = self.state();
        let scopes = state.scopes(target);
        let limited =
            scopes.iter().filter(|scope| !(is_claimed && matches!(scope, Scope::Host(_))));
        let full: Vec<&Scope> = limited.filter(|scope| state.is_full(scope, now)).collect();
        if !full.is_empty() {
            return Err(full.iter().filter_map(|scope| state.retry_after(scope, now)).max());
        }
        for scope in &scopes {
            state.usage(scope, now).in_hand += 1;
        }
        let held = HeldPermit {
            limits: self.clone(),
            is_known: state.has_agreed(target),
            target: target.clone(),
            scopes,
        };
        Ok(VerificationPermit { held: Some(held), has_agreed: false })
    }

    /// Returns the permits of `scopes`. `agreed` is the target, if it agreed.
    fn leave(&self, scopes: &[Scope], agreed: Option<VerificationTarget>, now: Instant) {
        let mut state = self.state();
        let mut was_busy = false;
        for scope in scopes {
            let quota = scope.quota();
            let Some(usage) = state.known.get_mut(scope) else { continue };
            was_busy |= matches!(scope, Scope::Host(_)) && usage.is_busy(now);
            usage.in_hand = usage.in_hand.saturating_sub(1);
            if agreed.is_none() {
                usage.back_at = Some(usage.back_at.map_or(now, |at| at.max(now)) + quota.back_in);
            }
            if usage.taken(quota, now) == 0 {
                state.known.remove(scope);
            }
        }
        if let Some(target) = agreed {
            state.remember(target, now);
        }
        drop(state);
        self.freed.notify_waiters();
        if was_busy {
            self.wake_signals.notify_one();
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Returns what a verification of `target` counts for.
    fn scopes(&self, target: &VerificationTarget) -> Vec<Scope> {
        let mut scopes = vec![Scope::Host(target.host.clone())];
        if !self.has_agreed(target) {
            scopes.extend(target.networks.iter().copied().map(Scope::Network));
        }
        scopes
    }

    /// Returns whether the host has agreed at all addresses that it resolves to now.
    fn has_agreed(&self, target: &VerificationTarget) -> bool {
        let agreed = self.agreed.get(&target.host);
        agreed.is_some_and(|(_, nets)| target.networks.iter().all(|net| nets.contains(net)))
    }

    fn is_full(&self, scope: &Scope, now: Instant) -> bool {
        let (usage, quota) = (self.known.get(scope), scope.quota());
        usage.is_some_and(|usage| usage.taken(quota, now) >= quota.permits)
    }

    fn retry_after(&self, scope: &Scope, now: Instant) -> Option<Duration> {
        self.known.get(scope)?.retry_after(scope.quota(), now)
    }

    fn usage(&mut self, scope: &Scope, now: Instant) -> &mut Usage {
        if self.known.len() >= MOST && !self.known.contains_key(scope) {
            self.forget(now);
        }
        self.known.entry(scope.clone()).or_default()
    }

    /// Forgets the idle scope whose permits are returned first.
    fn forget(&mut self, now: Instant) {
        self.known.retain(|scope, usage| usage.taken(scope.quota(), now) > 0);
        let idle = self.known.iter().filter(|(_, usage)| usage.in_hand == 0);
        let first = idle.min_by_key(|(_, usage)| usage.back_at).map(|(scope, _)| scope.clone());
        if self.known.len() >= MOST
            && let Some(first) = first
        {
            self.known.remove(&first);
        }
    }

    /// Remembers that a host has agreed, in place of the one that did so longest ago.
    fn remember(&mut self, target: VerificationTarget, now: Instant) {
        if self.agreed.len() >= MOST && !self.agreed.contains_key(&target.host) {
            let oldest = self.agreed.iter().min_by_key(|(_, (at, _))| *at);
            if let Some(oldest) = oldest.map(|(host, _)| host.clone()) {
                self.agreed.remove(&oldest);
            }
        }
        self.agreed.insert(target.host, (now, target.networks));
    }
}
