//! Slots for work that mostly waits for other servers, in a quick and a slow lane.
//!
//! Work begins in the quick lane. What takes longer than most does moves to the slow lane if that has room,
//! so that any number of servers that hang, up to the size of the slow lane, delay work with others by no
//! more than that time.

use std::pin::pin;
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
pub(crate) struct LaneSlot {
    held: Mutex<OwnedSemaphorePermit>,
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
        Some(LaneSlot { held, slow: Arc::clone(&self.slow), slow_after: self.slow_after })
    }
}

impl LaneSlot {
    /// Awaits the work for which the slot was taken, and moves to the slow lane meanwhile if it takes long.
    pub(crate) async fn during<T>(self, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        tokio::select! {
            biased;
            result = &mut work => return result,
            () = self.turn_slow() => {}
        }
        work.await
    }

    /// Moves to the slow lane when the time has come and there is room.
    pub(crate) async fn turn_slow(&self) {
        sleep(self.slow_after).await;
        let Ok(slow) = Arc::clone(&self.slow).acquire_owned().await else { return };
        *self.held.lock().unwrap_or_else(PoisonError::into_inner) = slow;
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn e06_what_takes_long_leaves_its_slot_while_the_slow_lane_has_room() {
        let after = Duration::from_millis(100);
        let slots = LaneSlots::new(2, 3, after);
        let mut begun = Vec::new();
        while let Ok(Some(slot)) = timeout(after * 10, slots.acquire()).await {
            begun.push(tokio::spawn(slot.during(pending::<()>())));
        }
        assert_eq!(begun.len(), 5);
        begun[0].abort();
        slots.wait_for_free().await;
        assert_eq!(slots.free_count(), 1, "another has moved to the slow lane");
    }
}
