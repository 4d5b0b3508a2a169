//! The claims of deliveries: searching the queue for them, renewing them while they are in
//! progress, and releasing those that have not begun.

use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures_util::{StreamExt, stream};
use tokio_util::task::AbortOnDropHandle;
use tracing::warn;

use super::host_queues::{HostQueues, Refill};
use crate::jobs::claim_renewal::renew_repeatedly;
use crate::jobs::runner;
use feedgate_core::claim::{ClaimToken, QueuePosition};
use feedgate_core::store::{ClaimedSubscriptions, HeldDelivery, StoreError, WakeSignals};
use feedgate_core::subscription::{DueSubscription, SubscriptionId};
use feedgate_store::Store;

/// A search that skipped fewer due deliveries than this is not worth remembering.
const FEW_SKIPPED: usize = 512;
/// The time after which a search that has reached the end of the queue starts from the beginning, at
/// least and at most.
const SEARCH_AGAIN: RangeInclusive<Duration> = Duration::from_millis(50)..=Duration::from_secs(5);
/// A search starts from the beginning after this time although it has not reached the end, which moves
/// away as long as more becomes due than is delivered.
const SEARCH_LONGEST: Duration = Duration::from_secs(30);
/// While deliveries are in progress, a search that found nothing is not repeated sooner than this, however
/// often it is signalled that deliveries became due.
const SEARCH_PAUSE: Duration = Duration::from_millis(3);
/// How long a search that found nothing is not repeated if nothing was signalled as due since. The end of each
/// delivery wakes the worker, and a search that finds nothing costs six statements. Only retries that come
/// due and expired claims wait this long.
const UNSIGNALLED_PAUSE: Duration = Duration::from_millis(50);
/// How long deliveries wait in the store that would wait for slow callbacks here.
const HELD_UP_PAUSE: Duration = Duration::from_secs(5);
/// How long a delivery waits, at least, that was not sent because this gateway was busy.
const UNSENT_PAUSE: Duration = Duration::from_secs(2);
/// How long a delivery waits, at least, that the store kept from being made or recorded.
const STORE_FAILURE_PAUSE: Duration = Duration::from_secs(5);
/// The most claims for single hosts before deliveries are started: others wait for them.
const REFILLS: usize = 16;
/// The most claims for single hosts at the same time.
const CONCURRENT_REFILLS: usize = 2;
/// Searches from the beginning take at most one part in this many of the time.
const SEARCH_SHARE: u32 = 10;

/// Claims deliveries and renews their claims.
pub(super) struct DeliveryClaims {
    store: Arc<Store>,
    signals: WakeSignals,
    /// How often hosts were handed over to other nodes, and how often some began to be served, when that was
    /// last looked at.
    handovers: AtomicU64,
    beginnings: AtomicU64,
    queues: HostQueues,
    lease: Duration,
    search: Mutex<Search>,
    /// Whether a search will be called for after a pause.
    is_pausing: Arc<AtomicBool>,
    /// The task that renews claims until this is dropped.
    _renewing: AbortOnDropHandle<()>,
}

/// The position of the search for due deliveries. While a host with thousands of due deliveries is
/// busy, they fill the front of the queue; the search for those of other hosts goes through the queue
/// to its end, and then continues there, where new deliveries come. After a while it starts over, to
/// find those that it has skipped, or that have become due before its position.
#[derive(Debug)]
struct Search {
    position: QueuePosition,
    began_at: Option<Instant>,
    /// How many it has skipped on its way to the end.
    skipped: usize,
    /// How long the way took, without the time in between.
    spent: Duration,
    /// When it reached the end.
    ended_at: Option<Instant>,
    /// When the last search ended, if it found nothing.
    found_nothing_at: Option<Instant>,
    /// The number of signals when the last search began.
    signals: u64,
}

impl DeliveryClaims {
    /// Starts claiming for `queues`, each claim for as long as `lease`. Must be called within a
    /// runtime.
    pub(super) fn start(store: Arc<Store>, queues: HostQueues, lease: Duration) -> DeliveryClaims {
        let (renewing, in_hand) = (Arc::clone(&store), queues.clone());
        let _renewing = renew_repeatedly("deliver", lease, move |now, until| {
            let (store, queues) = (Arc::clone(&renewing), in_hand.clone());
            async move {
                let (claims, begun) = (queues.claims(), Instant::now());
                let renewed = store.renew_subscription_claims(&claims, now, until).await?;
                queues.renew(&claims, &renewed.into_iter().collect(), begun + lease);
                Ok(())
            }
        });
        let search = Mutex::new(Search::new());
        let (signals, is_pausing) = (store.wake_signals(), Arc::default());
        let (handovers, beginnings) = (AtomicU64::new(0), AtomicU64::new(0));
        DeliveryClaims {
            store,
            signals,
            handovers,
            beginnings,
            queues,
            lease,
            search,
            is_pausing,
            _renewing,
        }
    }

    /// Claims as many deliveries as the queues can take, and gives back those that would wait there for
    /// slow callbacks, and those to hosts that other nodes serve now.
    pub(super) async fn fill(&self) -> Result<(), StoreError> {
        self.hand_over().await?;
        let claimed = self.claim().await;
        let held_up = self.queues.take_held_up();
        if !held_up.is_empty() {
            let again_at = runner::now() + HELD_UP_PAUSE;
            self.store.release_subscription_claims(&held_up, again_at).await?;
        }
        claimed
    }

    /// Gives back what waits for hosts that were given up since the last call. If some began to be served, the
    /// search starts over: it has skipped what is due there.
    async fn hand_over(&self) -> Result<(), StoreError> {
        let served = self.store.served_hosts();
        let beginnings = served.beginnings();
        if self.beginnings.swap(beginnings, Ordering::AcqRel) != beginnings {
            *self.search() = Search::new();
        }
        let handovers = served.handovers();
        if self.handovers.swap(handovers, Ordering::AcqRel) == handovers {
            return Ok(());
        }
        let mut claims = self.queues.take_for_others(|host| served.holds(host));
        claims.extend(self.queues.take_held_up());
        self.store.hand_over_subscription_claims(&claims, runner::now()).await
    }

    /// Claims for hosts that run low, and for all others.
    async fn claim(&self) -> Result<(), StoreError> {
        let refills =
            self.queues.take_refills(REFILLS).into_iter().map(|refill| self.refill(refill));
        // All claims are awaited even if one fails: what they returned would otherwise stay claimed and
        // unsent until the lease ends.
        let refilled: Vec<_> =
            stream::iter(refills).buffer_unordered(CONCURRENT_REFILLS).collect().await;
        refilled.into_iter().collect::<Result<(), StoreError>>()?;
        let Some(limits) = self.queues.claim_limits() else { return Ok(()) };
        let signals = self.signals.subscription_signals.load(Ordering::Acquire);
        if self.queues.has_deliveries() && self.search().is_pause(signals, Instant::now()) {
            self.search_after_pause();
            return Ok(());
        }
        let position = self.search().begin(signals, Instant::now());
        let (now, begun) = (runner::now(), Instant::now());
        let claimed =
            self.store.claim_subscriptions(now, now + self.lease, &limits, position).await?;
        self.search().end(&claimed, begun.elapsed(), Instant::now());
        let goes_on = claimed.due.is_empty() && !claimed.is_end;
        self.queues.add(claimed.due, begun + self.lease);
        if goes_on {
            self.signals.subscriptions.notify_one();
        }
        Ok(())
    }

    async fn refill(&self, refill: Refill) -> Result<(), StoreError> {
        let (now, until) = (runner::now(), Instant::now() + self.lease);
        let claim = self.store.claim_subscriptions_of_host(
            &refill.host,
            now,
            now + self.lease,
            refill.portion,
        );
        let claimed = claim.await;
        // A claim that failed is over as well; otherwise the host would never be claimed for again.
        let (claimed, outcome) =
            claimed.map_or_else(|err| (Vec::new(), Err(err)), |due| (due, Ok(())));
        self.queues.add_refill(&refill, claimed, until);
        outcome
    }

    /// Wakes the worker after [`SEARCH_PAUSE`] to check again whether it may search: a signal shortens the
    /// pause.
    fn search_after_pause(&self) {
        if self.is_pausing.swap(true, Ordering::AcqRel) {
            return;
        }
        let (is_pausing, ready) =
            (Arc::clone(&self.is_pausing), Arc::clone(&self.signals.subscriptions));
        tokio::spawn(async move {
            tokio::time::sleep(SEARCH_PAUSE).await;
            is_pausing.store(false, Ordering::Release);
            ready.notify_one();
        });
    }

    fn search(&self) -> MutexGuard<'_, Search> {
        self.search.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Releases the claim of a delivery that was not sent because this gateway was busy, so that it is tried
    /// again soon.
    pub(super) async fn release_unsent(&self, due: &DueSubscription) -> Result<(), StoreError> {
        let again_at = runner::now() + UNSENT_PAUSE.mul_f64(1.0 + runner::jitter());
        let held = HeldDelivery::from(due);
        self.store.release_subscription_claims(&[(held.id, held.claim)], again_at).await
    }

    /// Releases the claim of a delivery that the store kept from being made.
    pub(super) async fn release_failed(&self, due: &DueSubscription) {
        let held = HeldDelivery::from(due);
        release_failed(&self.store, &[(held.id, held.claim)]).await;
    }

    /// Releases the claims of all deliveries that have not begun, so that another node, or this one
    /// after its restart, need not wait until they expire.
    pub(super) async fn release_waiting(&self) {
        let claims = self.queues.close();
        if let Err(err) = self.store.release_subscription_claims(&claims, runner::now()).await {
            let error = &err as &dyn std::error::Error;
            warn!(error, "claims of deliveries were not released; they will expire");
        }
    }
}

/// Releases the claims of deliveries that the store kept from being made or recorded. They are made soon, or when
/// their retry is due if the result was stored although the store reported a failure; otherwise only once two
/// renewals have found that nobody has them in hand.
pub(super) async fn release_failed(store: &Store, claims: &[(SubscriptionId, ClaimToken)]) {
    let again_at = runner::now() + STORE_FAILURE_PAUSE.mul_f64(1.0 + runner::jitter());
    if let Err(err) = store.release_subscription_claims(claims, again_at).await {
        let error = &err as &dyn std::error::Error;
        warn!(error, "claims of deliveries were not released; they will expire");
    }
}

impl Search {
    fn new() -> Search {
        Search {
            position: QueuePosition::START,
            began_at: None,
            skipped: 0,
            spent: Duration::ZERO,
            ended_at: None,
            found_nothing_at: None,
            signals: 0,
        }
    }

    /// Returns whether a search at `now`, after so many `signals`, would follow too soon on one that found
    /// nothing.
    fn is_pause(&self, signals: u64, now: Instant) -> bool {
        let pause = if signals == self.signals { UNSIGNALLED_PAUSE } else { SEARCH_PAUSE };
        self.found_nothing_at.is_some_and(|at| now < at + pause)
    }

    /// Returns the position at which to search at `now`, after so many `signals`.
    fn begin(&mut self, signals: u64, now: Instant) -> QueuePosition {
        let pause = (self.spent * SEARCH_SHARE).clamp(*SEARCH_AGAIN.start(), *SEARCH_AGAIN.end());
        let again_at = match (self.began_at, self.ended_at) {
            (_, Some(ended_at)) => Some(ended_at + pause),
            (began_at, None) => began_at.map(|began_at| began_at + SEARCH_LONGEST),
        };
        if again_at.is_some_and(|again_at| now >= again_at) {
            *self = Search::new();
        }
        self.began_at.get_or_insert(now);
        self.signals = signals;
        self.position
    }

    /// Notes what a search that `took` so long has found. What it does behind the end is not counted: it
    /// says nothing about the cost of another way through the queue.
    fn end(&mut self, claimed: &ClaimedSubscriptions, took: Duration, now: Instant) {
        let is_empty = claimed.due.is_empty() && claimed.is_end;
        self.position = claimed.position;
        if self.ended_at.is_none() {
            self.skipped += claimed.skipped;
            self.spent += took;
            self.ended_at = claimed.is_end.then_some(now);
        }
        if claimed.is_end && self.skipped < FEW_SKIPPED {
            *self = Search { signals: self.signals, ..Search::new() };
        }
        self.found_nothing_at = is_empty.then_some(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT_END: QueuePosition = QueuePosition { number: 7, ..QueuePosition::START };

    fn found(skipped: usize, is_end: bool) -> ClaimedSubscriptions {
        ClaimedSubscriptions { due: Vec::new(), position: AT_END, skipped, is_end }
    }

    #[test]
    fn what_a_search_has_skipped_is_looked_for_again_however_busy_it_is() {
        let (mut search, mut now) = (Search::new(), Instant::now());
        let took = Duration::from_millis(4);
        assert_eq!(search.begin(0, now), QueuePosition::START);
        search.end(&found(FEW_SKIPPED, false), took, now);
        assert_eq!(search.begin(0, now + Duration::from_secs(9)), AT_END, "it goes on to the end");
        search.end(&found(0, true), took, now);
        let started = now;
        while search.begin(0, now) == AT_END {
            // Searches for new deliveries fill all the time.
            search.end(&found(0, true), took, now);
            now += took;
        }
        let pause = now - started;
        assert!(pause >= took * 2 * SEARCH_SHARE && pause < took * 3 * SEARCH_SHARE, "{pause:?}");
    }

    #[test]
    fn a_search_that_found_nothing_is_repeated_sooner_after_a_signal() {
        let (mut search, now) = (Search::new(), Instant::now());
        search.begin(7, now);
        search.end(&found(0, true), Duration::ZERO, now);
        assert!(search.is_pause(8, now));
        let later = now + SEARCH_PAUSE;
        assert!(search.is_pause(7, later) && !search.is_pause(8, later));
        assert!(!search.is_pause(7, now + UNSIGNALLED_PAUSE));
    }

    #[test]
    fn a_search_that_took_long_is_repeated_all_the_same() {
        let (mut search, now) = (Search::new(), Instant::now());
        search.end(&found(FEW_SKIPPED, true), Duration::from_secs(60), now);
        assert_eq!(search.begin(0, now + Duration::from_secs(4)), AT_END);
        assert_eq!(search.begin(0, now + Duration::from_secs(5)), QueuePosition::START);
    }

    #[test]
    fn a_search_that_never_ends_is_repeated() {
        let (mut search, now) = (Search::new(), Instant::now());
        search.begin(0, now);
        search.end(&found(FEW_SKIPPED, false), Duration::from_millis(1), now);
        assert_eq!(search.begin(0, now + SEARCH_LONGEST), QueuePosition::START);
    }

    #[test]
    fn a_search_that_skipped_few_starts_over_at_once() {
        let (mut search, now) = (Search::new(), Instant::now());
        search.end(&found(FEW_SKIPPED - 1, true), Duration::from_secs(1), now);
        assert_eq!(search.begin(0, now), QueuePosition::START);
    }
}
