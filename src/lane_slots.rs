//! Slots for work that mostly waits for other servers, in a quick and a slow lane.
//!
//! Work begins in the quick lane. What takes longer than most does moves to the slow lane if that has room,
//! so that any number of servers that hang, up to the size of the slow lane, delay work with others by no
//! more than that time. Work of this gateway is given longer: while its database is behind, whatever begins
//! would only wait there too, with a response that gets old.

use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{sleep, timeout};

/// The slots of both lanes.
#[derive(Debug)]
pub(crate) struct LaneSlots {
    quick: Arc<Semaphore>,
    slow: Arc<Semaphore>,
    slow_after: Duration,
    /// How many free quick slots are worth a claim when all were taken.
    several: u32,
}

/// How long free slots wait for others to become free, so that one claim fills them together.
const TOGETHER: Duration = Duration::from_millis(20);

/// One slot, until dropped.
#[derive(Debug)]
pub struct LaneSlot {
    held: Mutex<OwnedSemaphorePermit>,
    /// Whether it has moved to the slow lane.
    is_slow: AtomicBool,
    slow: Arc<Semaphore>,
    slow_after: Duration,
}

impl LaneSlots {
    /// Creates `quick` slots, and `slow` ones for what takes longer than `slow_after`.
    pub(crate) fn new(quick: usize, slow: usize, slow_after: Duration) -> LaneSlots {
        let several = u32::try_from(quick.div_ceil(4)).unwrap_or(u32::MAX);
        let (quick, slow) = (Arc::new(Semaphore::new(quick)), Arc::new(Semaphore::new(slow)));
        LaneSlots { quick, slow, slow_after, several }
    }

    /// Returns how many quick slots are free.
    pub(crate) fn free_count(&self) -> usize {
        self.quick.available_permits()
    }

    /// Waits until a quick slot is free. If none was, a quarter of them is waited for a moment longer.
    pub(crate) async fn wait_for_free(&self) {
        if self.free_count() > 0 {
            return;
        }
        // Waiting fails only if a semaphore is closed, which nothing does.
        drop(self.quick.acquire().await);
        drop(timeout(TOGETHER, self.quick.acquire_many(self.several)).await);
    }

    /// Waits for a quick slot, and takes it. `None` if there are none any more.
    pub(crate) async fn acquire(&self) -> Option<LaneSlot> {
        let held = Mutex::new(Arc::clone(&self.quick).acquire_owned().await.ok()?);
        let (slow, slow_after) = (Arc::clone(&self.slow), self.slow_after);
        Some(LaneSlot { held, is_slow: AtomicBool::new(false), slow, slow_after })
    }
}

/// How many times as long work of this gateway may take.
const OWN_WORK: u32 = 10;

impl LaneSlot {
    /// Awaits work that waits for other servers, and moves to the slow lane meanwhile if it takes long.
    pub(crate) async fn during<T>(&self, work: impl Future<Output = T>) -> T {
        self.during_for(self.slow_after, work).await
    }

    /// Awaits work of this gateway, and moves to the slow lane meanwhile if it takes very long.
    pub(crate) async fn during_own<T>(&self, work: impl Future<Output = T>) -> T {
        self.during_for(self.slow_after * OWN_WORK, work).await
    }

    async fn during_for<T>(&self, slow_after: Duration, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        tokio::select! {
            biased;
            result = &mut work => return result,
            () = self.turn_slow_after(slow_after) => {}
        }
        work.await
    }

    /// Moves to the slow lane when the time has come and there is room.
    pub(crate) async fn turn_slow(&self) {
        self.turn_slow_after(self.slow_after).await;
    }

    async fn turn_slow_after(&self, slow_after: Duration) {
        sleep(slow_after).await;
        if self.is_slow.load(Ordering::Relaxed) {
            return;
        }
        let Ok(slow) = Arc::clone(&self.slow).acquire_owned().await else { return };
        *self.held.lock().unwrap_or_else(PoisonError::into_inner) = slow;
        self.is_slow.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn e06_what_takes_long_leaves_its_slot_while_the_slow_lane_has_room() {
        let after = Duration::from_millis(100);
        let slots = LaneSlots::new(2, 3, after);
        let mut begun = Vec::new();
        while let Ok(Some(slot)) = timeout(after * 10, slots.acquire()).await {
            begun.push(tokio::spawn(async move { slot.during(pending::<()>()).await }));
        }
        assert_eq!(begun.len(), 5);
        begun[0].abort();
        slots.wait_for_free().await;
        assert_eq!(slots.free_count(), 1, "another has moved to the slow lane");
    }

    #[tokio::test(start_paused = true)]
    async fn work_that_waits_for_the_store_keeps_its_slot_for_longer() {
        let after = Duration::from_millis(100);
        let slots = LaneSlots::new(1, 1, after);
        let slot = slots.acquire().await.unwrap();
        tokio::spawn(async move {
            slot.during(sleep(after / 2)).await;
            slot.during_own(pending::<()>()).await;
        });
        let next = timeout(after * 5, slots.acquire()).await;
        assert!(next.is_err(), "while a store is behind, nothing more is begun");
        let next = timeout(after * 10, slots.acquire()).await;
        assert!(next.is_ok_and(|slot| slot.is_some()), "unless it is far behind");
    }

    #[tokio::test(start_paused = true)]
    async fn one_claim_fills_the_slots_that_become_free_within_a_moment() {
        let slots = LaneSlots::new(4, 0, TOGETHER);
        let held: Vec<_> = [slots.acquire().await, slots.acquire().await].into();
        slots.wait_for_free().await;
        let begun = Instant::now();
        let others = [slots.acquire().await, slots.acquire().await];
        tokio::spawn(async move {
            sleep(TOGETHER / 4).await;
            drop(held);
            drop(others);
        });
        slots.wait_for_free().await;
        assert_eq!((slots.free_count(), begun.elapsed() < TOGETHER), (4, true));
    }
}
