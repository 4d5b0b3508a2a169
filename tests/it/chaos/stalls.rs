//! How long this process was held up: on a busy machine, what came in time is noticed late.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::{Instant, sleep};
use tokio_util::task::AbortOnDropHandle;

/// Between two looks at the clock.
const EVERY: Duration = Duration::from_millis(20);

/// Looks at the clock until it is dropped.
pub(super) struct Stalls {
    stalls: Arc<Mutex<Vec<(Instant, Duration)>>>,
    _task: AbortOnDropHandle<()>,
}

impl Stalls {
    pub(super) fn watch() -> Stalls {
        let stalls: Arc<Mutex<Vec<(Instant, Duration)>>> = Arc::default();
        let found = Arc::clone(&stalls);
        let task = tokio::spawn(async move {
            loop {
                let begun = Instant::now();
                sleep(EVERY).await;
                let stall = begun.elapsed().saturating_sub(EVERY);
                if stall > EVERY {
                    found.lock().unwrap().push((Instant::now(), stall));
                }
            }
        });
        Stalls { stalls, _task: AbortOnDropHandle::new(task) }
    }

    /// For how long this process was held up between two moments.
    pub(super) fn between(&self, from: Instant, to: Instant) -> Duration {
        let stalls = self.stalls.lock().unwrap();
        let within = stalls.iter().filter(|(ended, stall)| *ended >= from && *ended - *stall <= to);
        within.map(|(_, stall)| *stall).sum()
    }
}
