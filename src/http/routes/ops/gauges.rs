//! The gauges of `/metrics`, counted at most once in a while: counting reads tables that grow, so
//! that its cost must not depend on the number of requests.

use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::jobs::runner;
use feedgate_core::ports::{Gauges, Store, StoreError};

/// The gauges that were counted last.
pub struct CachedGauges {
    max_age: Duration,
    counted: Mutex<Option<(Instant, Gauges)>>,
}

impl CachedGauges {
    /// Creates an empty cache, which counts again what is older than `max_age`.
    pub(crate) fn new(max_age: Duration) -> CachedGauges {
        CachedGauges { max_age, counted: Mutex::default() }
    }

    /// Returns the gauges. Requests at the same time wait for one count.
    pub(crate) async fn get(&self, store: &dyn Store) -> Result<Gauges, StoreError> {
        let mut counted = self.counted.lock().await;
        if let Some((at, gauges)) = *counted
            && at.elapsed() < self.max_age
        {
            return Ok(gauges);
        }
        let gauges = store.gauges(runner::now()).await?;
        *counted = Some((Instant::now(), gauges));
        Ok(gauges)
    }
}
