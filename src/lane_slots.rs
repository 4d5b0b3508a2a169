//! Slots for work that mostly waits for other servers, in a quick and a slow lane.
//!
//! Work begins in the quick lane. What takes longer than most does moves to the slow lane if that has room,
//! so that any number of servers that hang, up to the size of the slow lane, delay work with others by no
//! more than that time. Work of this gateway is given longer: while its database is behind, whatever begins
//! would only wait there too, with a response that gets old.

use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{sleep, timeout};

/// How many times as long as others work of this gateway may take. A database that is a second behind is too
/// slow for more, whatever the others do.
const OWN_WORK_FACTOR: u32 = 10;

/// The slots of both lanes.
#[derive(Debug)]
pub(crate) struct LaneSlots {
    quick: Arc<Semaphore>,
    slow: Arc<Semaphore>,
    slow_after: Duration,
    /// How many free quick slots are filled at once when all were taken: a quarter, so that most of them are
    /// in use meanwhile.
    refill_count: u32,
}

/// One slot, until dropped.
#[derive(Debug)]
pub struct LaneSlot {
    held: Mutex<OwnedSemaphorePermit>,
    slow: Arc<Semaphore>,
    slow_after: Duration,
}

impl LaneSlots {
    /// Creates `quick` slots, and `slow` ones for what takes longer than `slow_after`.
    pub(crate) fn new(quick: usize, slow: usize, slow_after: Duration) -> LaneSlots {
        let refill_count = u32::try_from(quick.div_ceil(4)).unwrap_or(u32::MAX);
        let (quick, slow) = (Arc::new(Semaphore::new(quick)), Arc::new(Semaphore::new(slow)));
        LaneSlots { quick, slow, slow_after, refill_count }
    }

    /// Returns how many quick slots are free.
    pub(crate) fn free_count(&self) -> usize {
        self.quick.available_permits()
    }

    /// Waits until a quick slot is free. If none was, waits for others too, no longer than `gather`.
    pub(crate) async fn wait_for_free(&self, gather: Duration) {
        if self.free_count() > 0 {
            return;
        }
        // Waiting fails only if a semaphore is closed, which nothing does.
        drop(self.quick.acquire().await);
        if !gather.is_zero() {
            drop(timeout(gather, self.quick.acquire_many(self.refill_count)).await);
        }
    }

    /// Waits for a quick slot, and takes it. `None` if there are none any more.
    pub(crate) async fn acquire(&self) -> Option<LaneSlot> {
        let held = Mutex::new(Arc::clone(&self.quick).acquire_owned().await.ok()?);
        let (slow, slow_after) = (Arc::clone(&self.slow), self.slow_after);
        Some(LaneSlot { held, slow, slow_after })
    }
}

impl LaneSlot {
    /// Awaits work that waits for other servers, and moves to the slow lane meanwhile if it takes long.
    pub(crate) async fn during<T>(&self, work: impl Future<Output = T>) -> T {
        self.during_for(self.slow_after, work).await
    }

    /// Awaits work of this gateway, and moves to the slow lane meanwhile if it takes very long.
    pub(crate) async fn during_own_work<T>(&self, work: impl Future<Output = T>) -> T {
        self.during_for(self.slow_after * OWN_WORK_FACTOR, work).await
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
        if self.is_slow() {
            return;
        }
        let Ok(slow) = Arc::clone(&self.slow).acquire_owned().await else { return };
        *self.held() = slow;
    }

    fn is_slow(&self) -> bool {
        Arc::ptr_eq(self.held().semaphore(), &self.slow)
    }

    fn held(&self) -> MutexGuard<'_, OwnedSemaphorePermit> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use futures_util::future::{join, join_all};
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
        slots.wait_for_free(Duration::ZERO).await;
        assert_eq!(slots.free_count(), 1, "another has moved to the slow lane");
    }

    #[tokio::test(start_paused = true)]
    async fn work_that_waits_for_the_store_keeps_its_slot_for_longer() {
        let after = Duration::from_millis(100);
        let slots = LaneSlots::new(1, 1, after);
        let slot = slots.acquire().await.unwrap();
        tokio::spawn(async move {
            slot.during(sleep(after / 2)).await;
            slot.during_own_work(pending::<()>()).await;
        });
        let next = timeout(after * 5, slots.acquire()).await;
        assert!(next.is_err(), "while a store is behind, nothing more is begun");
        let next = timeout(after * 10, slots.acquire()).await;
        assert!(next.is_ok_and(|slot| slot.is_some()), "unless it is far behind");
    }

    #[tokio::test(start_paused = true)]
    async fn one_claim_fills_the_slots_that_become_free_within_a_moment() {
        let (gather, step) = (Duration::from_millis(20), Duration::from_millis(5));
        let slots = LaneSlots::new(8, 0, step);
        let hold = async || join_all((0..8).map(|_| slots.acquire())).await;
        let free_after = async |held: Vec<Option<LaneSlot>>, ends: usize| {
            let begun = Instant::now();
            let end = async {
                let mut held = held;
                for _ in 0..ends {
                    sleep(step).await;
                    held.pop();
                }
                held
            };
            let free = async {
                slots.wait_for_free(gather).await;
                (slots.free_count(), begun.elapsed())
            };
            join(end, free).await.1
        };
        assert_eq!(free_after(hold().await, 2).await, (2, step * 2), "a quarter is free");
        assert_eq!(free_after(hold().await, 1).await, (1, step + gather), "no other became free");
    }
}
