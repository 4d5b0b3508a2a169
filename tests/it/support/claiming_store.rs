//! A store that remembers the claims of deliveries and polls, for tests that take what is due and
//! say how it ended.

use std::collections::HashMap;
use std::ops::Deref;
use std::sync::{Arc, Mutex};

use chrono::{DateTime, Utc};

use feedgate_core::claim::{ClaimToken, QueuePosition};
use feedgate_core::poll::Poll;
use feedgate_core::resource::ResourceId;
use feedgate_core::store::{
    Appended, ClaimLimits, DeliveryOutcome, DeliveryResult, DueResource, StoreError,
};
use feedgate_core::subscription::{DueSubscription, SubscriptionId};
use feedgate_store::Store;

/// The store, and the last claim of each subscription and each resource.
#[derive(Clone)]
pub(crate) struct ClaimingStore {
    store: Arc<Store>,
    claims: Arc<Mutex<HashMap<SubscriptionId, DueSubscription>>>,
    polls: Arc<Mutex<HashMap<ResourceId, ClaimToken>>>,
}

impl ClaimingStore {
    pub(crate) fn new(store: Arc<Store>) -> ClaimingStore {
        ClaimingStore { store, claims: Arc::default(), polls: Arc::default() }
    }

    /// Another node: what one of them claims, the other may record.
    pub(crate) fn beside(&self, store: Arc<Store>) -> ClaimingStore {
        ClaimingStore { store, claims: Arc::clone(&self.claims), polls: Arc::clone(&self.polls) }
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
        claims.extend(claimed.due.iter().map(|due| (due.subscription.id, due.clone())));
        Ok(claimed.due)
    }

    /// Records how deliveries ended, each under the last claim of its subscription.
    pub(crate) async fn record_deliveries(
        &self,
        ended: &[(SubscriptionId, DeliveryOutcome)],
        now: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        let results = ended.iter().filter_map(|(id, outcome)| {
            let claims = self.claims.lock().unwrap();
            claims.get(id).map(|due| DeliveryResult::new(due, *outcome, None))
        });
        let results: Vec<_> = results.collect();
        self.store.record_deliveries(&results, now).await
    }

    /// Claims resources that are due.
    pub(crate) async fn claim_resources(
        &self,
        now: DateTime<Utc>,
        until: DateTime<Utc>,
        limits: &ClaimLimits,
    ) -> Result<Vec<DueResource>, StoreError> {
        let due = self.store.claim_resources(now, until, limits).await?;
        self.polls.lock().unwrap().extend(due.iter().map(|due| (due.resource.id, due.claim)));
        Ok(due)
    }

    /// Claims one resource.
    pub(crate) async fn claim_resource(
        &self,
        id: ResourceId,
        now: DateTime<Utc>,
        until: DateTime<Utc>,
    ) -> Result<Option<DueResource>, StoreError> {
        let due = self.store.claim_resource(id, now, until).await?;
        self.polls.lock().unwrap().extend(due.iter().map(|due| (id, due.claim)));
        Ok(due)
    }

    /// Returns the last claim of a resource whose poll was not recorded yet.
    pub(crate) fn claim_of(&self, id: ResourceId) -> ClaimToken {
        self.polls.lock().unwrap().get(&id).copied().unwrap_or_default()
    }

    /// Records a poll under the last claim of its resource, which must not be lost.
    pub(crate) async fn record(&self, id: ResourceId, poll: &Poll) -> Result<Appended, StoreError> {
        let claim = self.polls.lock().unwrap().remove(&id).unwrap_or_default();
        let recorded = self.store.record(id, &Poll { claim, ..poll.clone() }).await?;
        Ok(recorded.expect("the claim of the poll was not lost"))
    }
}

impl Deref for ClaimingStore {
    type Target = Arc<Store>;

    fn deref(&self) -> &Arc<Store> {
        &self.store
    }
}
