//! Limits on verification requests to the hosts of callbacks (rule S26).
//!
//! Anybody can name any host in a subscription request, and each request causes a verification
//! there. So each host has a limited number of permits. A successful verification returns its
//! permit at once, a failed one after a minute. A host whose callbacks agree is thus verified as
//! often as needed; one whose callbacks never agree receives one request per minute in the long
//! run, however often it is named. Ports are ignored; otherwise one host would count as 65,535.
//!
//! Addresses that are not public belong to the operator and are not limited, and neither are names
//! that resolve to nothing else; the caller resolves them. Nor are renewals of existing
//! subscriptions limited, so that an attacker cannot use up the permits of a subscriber.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

use crate::net::is_public;
use feedgate_core::topic::Callback;

/// The number of permits of a host: the maximum of concurrent and of consecutive failed
/// verifications.
const PLACES: u32 = 10;
/// The maximum number of intents claimed for one host at once.
const PORTION: u32 = PLACES / 2;
/// The time after which the permit of a failed verification is returned.
const BACK_IN: Duration = Duration::from_secs(60);
/// The maximum time that a waiting client waits for a permit.
const PATIENCE: Duration = Duration::from_secs(10);
/// The maximum number of hosts that are remembered. Adding one costs an attacker a failed
/// verification.
const MOST: usize = 10_000;

/// The hosts with verifications in progress or recent failures. Clones share their state.
#[derive(Clone, Debug)]
pub(super) struct VerificationLimits {
    known: Arc<Mutex<HashMap<String, Host>>>,
    freed: Arc<Notify>,
    wake_signals: Arc<Notify>,
}

/// The state of one host.
#[derive(Clone, Copy, Debug, Default)]
struct Host {
    in_hand: u32,
    /// The time at which the permits of all failed verifications are returned.
    back_at: Option<Instant>,
}

impl Host {
    /// Returns the number of permits in use.
    fn taken(self, now: Instant) -> u32 {
        let in_vain = self.failures_left(now).as_micros().div_ceil(BACK_IN.as_micros());
        self.in_hand.saturating_add(u32::try_from(in_vain).unwrap_or(u32::MAX))
    }

    /// Returns after how long the permits of all failed verifications are returned.
    fn failures_left(self, now: Instant) -> Duration {
        self.back_at.map_or(Duration::ZERO, |at| at.saturating_duration_since(now))
    }

    /// Returns after how long a permit is returned, if failed verifications alone have used up all.
    fn retry_after(self, now: Instant) -> Option<Duration> {
        let left = self.failures_left(now).checked_sub(BACK_IN * (PLACES - 1))?;
        (!left.is_zero()).then_some(left)
    }

    /// Returns whether the host has too few permits for another batch of intents.
    fn is_busy(self, now: Instant) -> bool {
        self.taken(now).saturating_add(PORTION) > PLACES
    }
}

/// A permit for one verification. Dropping it counts as a failure.
#[derive(Debug)]
#[must_use]
pub struct VerificationPermit {
    /// The host; `None` if the verification is not limited.
    at: Option<(VerificationLimits, String)>,
    has_agreed: bool,
}

impl VerificationPermit {
    /// Creates a permit for a verification that is not limited.
    pub(super) fn free() -> VerificationPermit {
        VerificationPermit { at: None, has_agreed: false }
    }

    /// Ends the verification; `has_agreed` tells whether the callback agreed.
    pub(super) fn ends(mut self, has_agreed: bool) {
        self.has_agreed = has_agreed;
    }
}

impl Drop for VerificationPermit {
    fn drop(&mut self) {
        if let Some((hosts, name)) = self.at.take() {
            hosts.leave(&name, self.has_agreed, Instant::now());
        }
    }
}

impl VerificationLimits {
    /// Creates the limits. `wake_signals` is notified when a permit is returned.
    pub(super) fn new(wake_signals: Arc<Notify>) -> VerificationLimits {
        VerificationLimits { known: Arc::default(), freed: Arc::default(), wake_signals }
    }

    /// Returns the maximum number of intents to claim for one host at once.
    pub(super) fn portion() -> usize {
        PORTION as usize
    }

    /// Returns the hosts for which no batch can be claimed now, by their names in the store.
    pub(super) fn busy(&self) -> Vec<String> {
        let now = Instant::now();
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let busy = known.iter().filter(|(_, host)| host.is_busy(now));
        busy.map(|(name, _)| name.clone()).collect()
    }

    /// Returns a permit for the host of `callback`, if one is free.
    pub(super) fn try_visit(&self, callback: &Callback) -> Option<VerificationPermit> {
        self.enter(callback, PLACES)
    }

    /// Returns a permit for an intent that was claimed.
    pub(super) fn visit(&self, callback: &Callback) -> VerificationPermit {
        self.enter(callback, u32::MAX).unwrap_or_else(VerificationPermit::free)
    }

    /// Returns after how long a verification at the host of `callback` may be tried again, if too
    /// many have failed there.
    pub(super) fn retry_after(&self, callback: &Callback) -> Option<Duration> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(&callback.host_name())?.retry_after(Instant::now())
    }

    /// Waits for a permit for the host of `callback` while other verifications are in progress. The
    /// error is the time after which another attempt may succeed: at once if too many have failed, or
    /// after a timeout.
    pub(super) async fn wait(&self, callback: &Callback) -> Result<VerificationPermit, Duration> {
        let until = Instant::now() + PATIENCE;
        loop {
            // Listening starts before the check, so that a permit returned in between is not
            // missed.
            let mut freed = std::pin::pin!(self.freed.notified());
            freed.as_mut().enable();
            if let Some(visit) = self.try_visit(callback) {
                return Ok(visit);
            }
            if let Some(retry_after) = self.retry_after(callback) {
                return Err(retry_after);
            }
            timeout_at(until, freed).await.map_err(|_| PATIENCE)?;
        }
    }

    fn enter(&self, callback: &Callback, places: u32) -> Option<VerificationPermit> {
        let name = callback.host_name();
        if let Ok(ip) = name.trim_matches(['[', ']']).parse::<IpAddr>()
            && !is_public(ip)
        {
            return Some(VerificationPermit::free());
        }
        let now = Instant::now();
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MOST && !known.contains_key(&name) {
            forget(&mut known, now);
        }
        let host = known.entry(name.clone()).or_default();
        if host.taken(now) >= places {
            return None;
        }
        host.in_hand += 1;
        Some(VerificationPermit { at: Some((self.clone(), name)), has_agreed: false })
    }

    fn leave(&self, name: &str, has_agreed: bool, now: Instant) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(host) = known.get_mut(name) else { return };
        let was_busy = host.is_busy(now);
        host.in_hand = host.in_hand.saturating_sub(1);
        if !has_agreed {
            host.back_at = Some(host.back_at.map_or(now, |at| at.max(now)) + BACK_IN);
        }
        if host.taken(now) == 0 {
            known.remove(name);
        }
        drop(known);
        self.freed.notify_waiters();
        if was_busy {
            self.wake_signals.notify_one();
        }
    }
}

/// Forgets the idle host whose permits are returned first.
fn forget(known: &mut HashMap<String, Host>, now: Instant) {
    known.retain(|_, host| host.taken(now) > 0);
    let idle = known.iter().filter(|(_, host)| host.in_hand == 0);
    let first = idle.min_by_key(|(_, host)| host.back_at).map(|(name, _)| name.clone());
    if known.len() >= MOST
        && let Some(first) = first
    {
        known.remove(&first);
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    fn callback(url: &str) -> Callback {
        Callback::parse(url).unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn s26_who_never_agrees_is_asked_once_a_minute() {
        let hosts = VerificationLimits::new(Arc::default());
        let mut visits = 0;
        for minute in 0..60 {
            for port in 1_000..1_020 {
                let victim = callback(&format!("https://victim.test:{port}/{minute}"));
                if let Some(visit) = hosts.try_visit(&victim) {
                    visit.ends(false);
                    visits += 1;
                }
            }
            advance(BACK_IN).await;
        }
        assert_eq!(visits, PLACES + 59);
        assert!(hosts.try_visit(&callback("https://other.test/")).is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn who_agrees_is_asked_as_often_as_there_is_something_to_ask() {
        let hosts = VerificationLimits::new(Arc::default());
        for _ in 0..1_000 {
            hosts.try_visit(&callback("https://river.test/")).unwrap().ends(true);
        }
        assert!(hosts.known.lock().unwrap().is_empty(), "nothing is kept of it");
        assert!(hosts.busy().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_few_are_asked_at_once_and_the_others_wait() {
        let (hosts, river) =
            (VerificationLimits::new(Arc::default()), callback("https://river.test/"));
        let mut visits: Vec<VerificationPermit> =
            (0..PLACES).map(|_| hosts.try_visit(&river).unwrap()).collect();
        assert_eq!(hosts.busy(), ["river.test"]);
        assert_eq!(hosts.wait(&river).await.err(), Some(PATIENCE), "nobody waits for ever");
        let waiting = tokio::spawn({
            let (hosts, river) = (hosts.clone(), river.clone());
            async move { hosts.wait(&river).await.is_ok() }
        });
        tokio::task::yield_now().await;
        visits.pop().unwrap().ends(true);
        assert!(waiting.await.unwrap());
    }

    #[tokio::test(start_paused = true)]
    async fn f20_who_comes_after_too_many_failures_is_turned_away_at_once() {
        let hosts = VerificationLimits::new(Arc::default());
        let river = callback("https://river.test/");
        for _ in 0..PLACES {
            assert_eq!(hosts.retry_after(&river), None);
            hosts.try_visit(&river).unwrap().ends(false);
        }
        let begun = Instant::now();
        assert_eq!(hosts.wait(&river).await.err(), Some(BACK_IN));
        assert_eq!(begun.elapsed(), Duration::ZERO);
        advance(BACK_IN).await;
        hosts.wait(&river).await.unwrap().ends(true);
    }

    #[tokio::test(start_paused = true)]
    async fn only_so_many_hosts_are_remembered() {
        let hosts = VerificationLimits::new(Arc::default());
        for n in 0..MOST + 10 {
            hosts.try_visit(&callback(&format!("https://h{n}.test/"))).unwrap().ends(false);
        }
        assert_eq!(hosts.known.lock().unwrap().len(), MOST);
    }

    #[test]
    fn addresses_of_the_operators_own_are_not_counted() {
        let hosts = VerificationLimits::new(Arc::default());
        for url in ["http://127.0.0.1:1/", "http://[fd00::1]/", "http://10.0.0.1/"] {
            drop(hosts.try_visit(&callback(url)).unwrap());
        }
        assert!(hosts.known.lock().unwrap().is_empty());
    }
}
