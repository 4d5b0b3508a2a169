//! The gauges of `/metrics`, counted at most once in a while: counting reads tables that grow, so
//! that its cost must not depend on the number of requests.

use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::jobs::runner;
use feedgate_core::store::{Gauges, StoreError};
use feedgate_store::Store;

/// What the database knows.
#[derive(Clone, Debug)]
pub(crate) struct Counted {
    pub(crate) gauges: Gauges,
    /// The size of the database.
    pub(crate) database_bytes: u64,
}

/// The gauges that were counted last.
pub struct CachedGauges {
    max_age: Duration,
    counted: Mutex<Option<(Instant, Counted)>>,
}

impl CachedGauges {
    /// Creates an empty cache, which counts again what is older than `max_age`.
    pub(crate) fn new(max_age: Duration) -> CachedGauges {
        CachedGauges { max_age, counted: Mutex::default() }
    }

    /// Returns the gauges. Requests at the same time wait for one count.
    pub(crate) async fn get(&self, store: &Store) -> Result<Counted, StoreError> {
        let mut counted = self.counted.lock().await;
        if let Some((at, recent)) = &*counted
            && at.elapsed() < self.max_age
        {
            return Ok(recent.clone());
        }
        let gauges = store.gauges(runner::now()).await?;
        let new = Counted { gauges, database_bytes: store.size_bytes().await? };
        *counted = Some((Instant::now(), new.clone()));
        Ok(new)
    }
}
