//! A line of fetches that wait for one host or one address: limited in number and time.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, timeout_at};

/// The longest time after which a fetch that was turned away is tried again.
const LONGEST_PUT_OFF: Duration = Duration::from_secs(600);

/// The fetches that wait, and those that were turned away.
#[derive(Debug)]
pub(super) struct Line {
    /// The number of fetches that run at the same time.
    places: u32,
    waiting: AtomicUsize,
    pace: Mutex<Pace>,
}

#[derive(Debug)]
struct Pace {
    /// How long the last fetch took.
    last_took: Duration,
    /// When the fetch that was turned away last may be tried again.
    last_retry: Instant,
}

impl Line {
    /// A line for `places` concurrent fetches.
    pub(super) fn new(places: usize) -> Line {
        let pace = Pace { last_took: Duration::ZERO, last_retry: Instant::now() };
        Line { places: places as u32, waiting: AtomicUsize::new(0), pace: Mutex::new(pace) }
    }

    /// Waits for `admitted` until `until`. Returns `None` if that takes longer, or at once if
    /// `max_waiting` others wait already for each place.
    pub(super) async fn wait<F: Future>(
        &self,
        admitted: F,
        max_waiting: usize,
        until: Instant,
    ) -> Option<F::Output> {
        let mut admitted = std::pin::pin!(admitted);
        if let std::task::Poll::Ready(admitted) = futures_util::poll!(&mut admitted) {
            return Some(admitted);
        }
        let place = WaitingPlace::new(&self.waiting);
        if place.ahead >= max_waiting * self.places as usize {
            return None;
        }
        timeout_at(until, admitted).await.ok()
    }

    /// Records how long a fetch took that had its turn.
    pub(super) fn served(&self, took: Duration) {
        self.pace().last_took = took;
    }

    /// Returns after how long a fetch that was turned away may be tried again. Fetches that are
    /// turned away one after the other return one after the other, as far apart as they can be
    /// served.
    pub(super) fn put_off(&self, spacing: Duration) -> Duration {
        let now = Instant::now();
        let mut pace = self.pace();
        let step = spacing.max(pace.last_took / self.places);
        pace.last_retry = (pace.last_retry.max(now) + step).min(now + LONGEST_PUT_OFF);
        pace.last_retry.duration_since(now)
    }

    fn pace(&self) -> MutexGuard<'_, Pace> {
        self.pace.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A place in the line, given up when dropped.
struct WaitingPlace<'a> {
    waiting: &'a AtomicUsize,
    ahead: usize,
}

impl WaitingPlace<'_> {
    fn new(waiting: &AtomicUsize) -> WaitingPlace<'_> {
        WaitingPlace { waiting, ahead: waiting.fetch_add(1, Ordering::Relaxed) }
    }
}

impl Drop for WaitingPlace<'_> {
    fn drop(&mut self) {
        self.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}
