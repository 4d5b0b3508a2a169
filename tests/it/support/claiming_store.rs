//! A store that remembers the claims of deliveries, for tests that take what is due and say how
//! it ended.

use std::collections::HashMap;
use std::ops::Deref;
use std::sync::{Arc, Mutex};

use chrono::{DateTime, Utc};

use feedgate_core::claim::{ClaimToken, QueuePosition};
use feedgate_core::ports::{ClaimLimits, DeliveryOutcome, DeliveryResult, Store, StoreError};
use feedgate_core::subscription::{DueSubscription, SubscriptionId};

/// The store, and the last claim of each subscription.
#[derive(Clone)]
pub(crate) struct ClaimingStore {
    store: Arc<dyn Store>,
    claims: Arc<Mutex<HashMap<SubscriptionId, ClaimToken>>>,
}

impl ClaimingStore {
    pub(crate) fn new(store: Arc<dyn Store>) -> ClaimingStore {
        ClaimingStore { store, claims: Arc::default() }
    }

    /// Claims what is due, from the front of the queue to its end.
    pub(crate) async fn claim_subscriptions(
        &self,
        now: DateTime<Utc>,
        until: DateTime<Utc>,
        limits: &ClaimLimits,
    ) -> Result<Vec<DueSubscription>, StoreError> {
        let start = QueuePosition::START;
        let claimed = self.store.claim_subscriptions(now, until, limits, start).await?;
        let mut claims = self.claims.lock().unwrap();
        claims.extend(claimed.due.iter().map(|due| (due.subscription.id, due.claim)));
        Ok(claimed.due)
    }

    /// Records how deliveries ended, each under the last claim of its subscription.
    pub(crate) async fn settle(
        &self,
        ended: &[(SubscriptionId, DeliveryOutcome)],
        now: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        let results = ended.iter().map(|(id, outcome)| {
            let claim = self.claims.lock().unwrap().get(id).copied().unwrap_or_default();
            DeliveryResult { id: *id, claim, outcome: *outcome }
        });
        let results: Vec<_> = results.collect();
        self.store.settle(&results, now).await
    }
}

impl Deref for ClaimingStore {
    type Target = Arc<dyn Store>;

    fn deref(&self) -> &Arc<dyn Store> {
        &self.store
    }
}
