//! Limits on verification requests to the hosts of callbacks (rule S26).
//!
//! Anybody can name any host in a subscription request, and each request causes a verification
//! there. So each host has a limited number of permits, and so have the addresses that it resolves
//! to and their networks: a server may have any number of names. A successful verification returns
//! its permit at once, a failed one after a while. A host whose callbacks agree is thus verified as
//! often as needed; one whose callbacks never agree receives one request per minute in the long
//! run for each network that names it, however often it does. Ports are ignored; otherwise one host
//! would count as 65,535.
//!
//! Failures are charged to those who caused them. An account has permits of its own at each host. All
//! strangers share theirs, but one whose network holds none there gets one even if the others have used
//! them up: failures of some keep nobody else from subscribing.
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

use crate::net::{HttpClient, Purpose, address_and_network};
use feedgate_core::registrant::Requester;
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
/// The time after which an intent is claimed again that waits for other verifications at its host to end.
const SOON: Duration = Duration::from_secs(1);
/// The maximum number of counts, and of hosts that have agreed, that are remembered. Adding one costs an
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

/// Where verifications are limited.
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

/// Whose permits are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Payer {
    /// All strangers together.
    Anonymous,
    /// An account, or the network of some strangers.
    Own(Requester),
}

/// The host of a callback, the public addresses that it resolves to, and who requests verifications.
#[derive(Clone, Debug)]
pub(crate) struct VerificationTarget {
    host: String,
    networks: Vec<IpNet>,
    requester: Requester,
}

impl VerificationTarget {
    /// Returns the target of a request to `callback`; `None` if it is not limited, because its addresses
    /// are the operator's.
    pub(crate) async fn resolve(
        client: &HttpClient,
        callback: &Callback,
        requester: Requester,
    ) -> Option<VerificationTarget> {
        let found = client.public_addresses(callback.url(), Purpose::Callback).await?;
        Some(VerificationTarget::new(callback, &found, requester))
    }

    /// Creates the target for the host of `callback`. Without addresses, it counts by its name only.
    pub(crate) fn new(
        callback: &Callback,
        addresses: &[IpAddr],
        requester: Requester,
    ) -> VerificationTarget {
        let networks = addresses.iter().flat_map(|ip| address_and_network(*ip));
        let mut networks: Vec<IpNet> = networks.collect();
        networks.sort_unstable();
        networks.dedup();
        VerificationTarget { host: callback.host_name(), networks, requester }
    }
}

/// The hosts with verifications in progress or recent failures. Clones share their state.
#[derive(Clone, Debug)]
pub(crate) struct VerificationLimits {
    state: Arc<Mutex<State>>,
    freed: Arc<Notify>,
    wake_signals: Arc<Notify>,
}

#[derive(Debug, Default)]
struct State {
    known: HashMap<(Scope, Payer), Usage>,
    /// Where each host has agreed, and when it did last.
    agreed: HashMap<String, (Instant, Vec<IpNet>)>,
}

/// The permits in use of one host, address or network, of one payer.
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

/// How a verification ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Agreed,
    /// The host has led to another, which agreed.
    Redirected,
    /// Nothing was sent, because this gateway was busy.
    Unsent,
    Failed,
}

/// A permit for one verification. Dropping it counts as a failure.
#[derive(Debug)]
#[must_use]
pub(crate) struct VerificationPermit {
    /// `None` if the verification is not limited.
    held: Option<HeldPermit>,
    outcome: Outcome,
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
    pub(crate) fn free() -> VerificationPermit {
        VerificationPermit { held: None, outcome: Outcome::Failed }
    }

    /// Returns whether a failed verification may be repeated: its host has agreed before, or is not
    /// limited.
    pub(crate) fn may_repeat(&self) -> bool {
        self.held.as_ref().is_none_or(|held| held.is_known)
    }

    /// Ends the verification; `has_agreed` tells whether the callback agreed.
    pub(crate) fn ends(mut self, has_agreed: bool) {
        self.outcome = if has_agreed { Outcome::Agreed } else { Outcome::Failed };
    }

    /// Ends the verification: another host agreed, to which this one redirects. That says nothing about
    /// the next verification here.
    pub(crate) fn ends_elsewhere(mut self) {
        self.outcome = Outcome::Redirected;
    }

    /// Ends a verification that was not sent, because this gateway was busy.
    pub(crate) fn ends_unsent(mut self) {
        self.outcome = Outcome::Unsent;
    }
}

impl Drop for VerificationPermit {
    fn drop(&mut self) {
        if let Some(held) = self.held.take() {
            let HeldPermit { limits, target, scopes, .. } = held;
            limits.leave(&scopes, target, self.outcome, Instant::now());
        }
    }
}

impl VerificationLimits {
    /// Creates the limits. `wake_signals` is notified when a permit is returned.
    pub(crate) fn new(wake_signals: Arc<Notify>) -> VerificationLimits {
        VerificationLimits { state: Arc::default(), freed: Arc::default(), wake_signals }
    }

    /// Returns the maximum number of intents to claim for one host at once.
    pub(crate) fn portion() -> usize {
        PORTION as usize
    }

    /// Returns the hosts at which no batch can be claimed now for some requester, by their names in the
    /// store ([`Requester::name_at`]).
    pub(crate) fn busy(&self) -> Vec<String> {
        let now = Instant::now();
        let state = self.state();
        let names = state.known.iter().filter_map(|((scope, payer), usage)| match (scope, payer) {
            (Scope::Host(host), Payer::Own(requester)) => {
                let is_busy = state.is_busy(scope, (*requester, *usage), now);
                is_busy.then(|| requester.name_at(host))
            }
            _ => None,
        });
        names.collect()
    }

    fn is_busy(&self, target: &VerificationTarget) -> bool {
        let (state, now) = (self.state(), Instant::now());
        let (scope, requester) = (Scope::Host(target.host.clone()), target.requester);
        state.is_busy(&scope, (requester, state.used(&scope, Payer::Own(requester))), now)
    }

    /// Returns a permit for `target`, if one is free.
    pub(crate) fn try_visit(&self, target: &VerificationTarget) -> Option<VerificationPermit> {
        self.enter(target, false).ok()
    }

    /// Returns a permit for an intent that was claimed. The error is the time after which it is claimed again:
    /// soon if its host is [`busy`](Self::busy) until another verification ends.
    pub(crate) fn visit_claimed(
        &self,
        target: &VerificationTarget,
    ) -> Result<VerificationPermit, Duration> {
        self.enter(target, true).map_err(|retry_after| match retry_after {
            Some(retry_after) => retry_after,
            None if self.is_busy(target) => SOON,
            None => PATIENCE,
        })
    }

    /// Returns after how long a verification of `target` may be tried again, if too many have failed
    /// there.
    pub(crate) fn retry_after(&self, target: &VerificationTarget) -> Option<Duration> {
        let (state, now) = (self.state(), Instant::now());
        let scopes = state.scopes(target);
        scopes.iter().filter_map(|scope| state.retry_after(scope, target.requester, now)).max()
    }

    /// Waits for a permit for `target` while other verifications are in progress. The error is the
    /// time after which another attempt may succeed: at once if too many have failed, or after a
    /// timeout.
    pub(crate) async fn wait(
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
    /// verifications have used up all. An intent of an account that was claimed is one of a batch that the
    /// permits of its host suffice for.
    fn enter(
        &self,
        target: &VerificationTarget,
        is_claimed: bool,
    ) -> Result<VerificationPermit, Option<Duration>> {
        let now = Instant::now();
        let mut state = self.state();
        let (scopes, requester) = (state.scopes(target), target.requester);
        let is_of_batch = is_claimed && requester.is_account();
        let limited =
            scopes.iter().filter(|scope| !(is_of_batch && matches!(scope, Scope::Host(_))));
        let full: Vec<_> = limited.filter(|scope| state.is_full(scope, requester, now)).collect();
        if !full.is_empty() {
            let times = full.iter().filter_map(|scope| state.retry_after(scope, requester, now));
            return Err(times.max());
        }
        for (scope, payer) in paid(&scopes, requester) {
            state.usage(scope, payer, now).in_hand += 1;
        }
        let held = HeldPermit {
            limits: self.clone(),
            is_known: state.has_agreed(target),
            target: target.clone(),
            scopes,
        };
        Ok(VerificationPermit { held: Some(held), outcome: Outcome::Failed })
    }

    /// Returns the permits of `scopes`.
    fn leave(&self, scopes: &[Scope], target: VerificationTarget, outcome: Outcome, now: Instant) {
        let mut state = self.state();
        let mut was_busy = false;
        for (scope, payer) in paid(scopes, target.requester) {
            let (quota, counted) = (scope.quota(), (scope.clone(), payer));
            let Some(usage) = state.known.get_mut(&counted) else { continue };
            was_busy |= matches!(scope, Scope::Host(_)) && usage.is_busy(now);
            usage.in_hand = usage.in_hand.saturating_sub(1);
            if outcome == Outcome::Failed {
                let back_at = usage.back_at.map_or(now, |at| at.max(now)) + quota.back_in;
                usage.back_at = Some(back_at.min(now + quota.back_in * quota.permits));
            }
            if usage.taken(quota, now) == 0 {
                state.known.remove(&counted);
            }
        }
        if outcome == Outcome::Agreed {
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

    /// Returns the permits that a payer uses.
    fn used(&self, scope: &Scope, payer: Payer) -> Usage {
        self.known.get(&(scope.clone(), payer)).copied().unwrap_or_default()
    }

    /// Returns whether there is no permit for a requester.
    fn is_full(&self, scope: &Scope, requester: Requester, now: Instant) -> bool {
        let quota = scope.quota();
        let taken = |payer| self.used(scope, payer).taken(quota, now);
        let own = taken(Payer::Own(requester));
        match requester.is_account() {
            true => own >= quota.permits,
            false => own > 0 && taken(Payer::Anonymous) >= quota.permits,
        }
    }

    /// Returns whether a requester has too few permits at a host for another batch of intents.
    fn is_busy(&self, host: &Scope, (requester, own): (Requester, Usage), now: Instant) -> bool {
        let is_shared_busy = || self.used(host, Payer::Anonymous).is_busy(now);
        let holds_some = own.taken(OF_HOST, now) > 0;
        own.is_busy(now) || !requester.is_account() && holds_some && is_shared_busy()
    }

    /// Returns after how long there is a permit for a requester, if failures alone have used up all.
    fn retry_after(&self, scope: &Scope, requester: Requester, now: Instant) -> Option<Duration> {
        let (quota, own) = (scope.quota(), self.used(scope, Payer::Own(requester)));
        if requester.is_account() {
            return own.retry_after(quota, now);
        }
        let shared = self.used(scope, Payer::Anonymous).retry_after(quota, now)?;
        let left = own.failures_left(now);
        (!left.is_zero()).then(|| left.min(shared))
    }

    fn usage(&mut self, scope: &Scope, payer: Payer, now: Instant) -> &mut Usage {
        let counted = (scope.clone(), payer);
        if self.known.len() >= MOST && !self.known.contains_key(&counted) {
            self.forget(now);
        }
        self.known.entry(counted).or_default()
    }

    /// Forgets the idle count whose permits are returned first.
    fn forget(&mut self, now: Instant) {
        self.known.retain(|(scope, _), usage| usage.taken(scope.quota(), now) > 0);
        let idle = self.known.iter().filter(|(_, usage)| usage.in_hand == 0);
        let first = idle.min_by_key(|(_, usage)| usage.back_at).map(|(counted, _)| counted.clone());
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

/// Returns what is counted for a verification that somebody requests.
fn paid(scopes: &[Scope], requester: Requester) -> impl Iterator<Item = (&Scope, Payer)> {
    let shared = (!requester.is_account()).then_some(Payer::Anonymous);
    let payers = [Some(Payer::Own(requester)), shared];
    scopes
        .iter()
        .flat_map(move |scope| payers.into_iter().flatten().map(move |payer| (scope, payer)))
}
