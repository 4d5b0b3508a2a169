//! Stores subscriptions together that are created at the same time.
//!
//! Creating a subscription locks the row of its resource, so on PostgreSQL a thousand registrations
//! for one popular resource would wait for a thousand commits, one after another. Here requests
//! that wait for the same resource share one transaction. No request is answered before its commit,
//! and a request that cannot be stored does not fail the others.

use std::collections::BTreeMap;
use std::sync::Weak;
use std::time::Duration;

use chrono::{DateTime, Utc};
use futures_util::future::join_all;
use futures_util::{StreamExt, stream};

use crate::Db;
use crate::delivery::subscriptions::subscribe_together;
use crate::engine::batcher::{BatchLimits, Batcher};
use feedgate_core::store::StoreError;
use feedgate_core::subscription::{Subscription, SubscriptionRequest};

const LIMITS: BatchLimits = BatchLimits { gather: Duration::ZERO, most: 256, concurrent: 2 };
/// The most topics of a batch whose requests are stored at the same time.
const CONCURRENT_TOPICS: usize = 4;

type Request = (SubscriptionRequest, DateTime<Utc>);
type Stored = Result<Subscription, StoreError>;

/// Collects subscriptions and stores them.
#[derive(Debug)]
pub(crate) struct SubscriptionBatcher {
    batcher: Batcher<Request, Stored>,
}

impl SubscriptionBatcher {
    /// Starts storing, until the database is closed.
    pub(crate) fn start(db: Weak<Db>) -> SubscriptionBatcher {
        let store = move |batch| store_batch(Weak::clone(&db), batch);
        SubscriptionBatcher { batcher: Batcher::start(LIMITS, store) }
    }

    /// Stores a subscription, and returns after its commit.
    pub(crate) async fn subscribe(
        &self,
        request: SubscriptionRequest,
        now: DateTime<Utc>,
    ) -> Result<Subscription, StoreError> {
        let stored = self.batcher.submit((request, now)).await;
        stored.result().await.unwrap_or(Err(StoreError::Closed))
    }
}

/// Stores the requests of each topic in one transaction. Returns the results in the order of the batch.
async fn store_batch(db: Weak<Db>, batch: Vec<Request>) -> Vec<Stored> {
    let Some(db) = db.upgrade() else { return Vec::new() };
    let mut topics: BTreeMap<String, Vec<(usize, Request)>> = BTreeMap::new();
    for (place, request) in batch.into_iter().enumerate() {
        let topic = request.0.topic.as_str().to_owned();
        topics.entry(topic).or_default().push((place, request));
    }
    let stored = stream::iter(topics.into_values())
        .map(|requests| store_for_topic(&db, requests))
        .buffer_unordered(CONCURRENT_TOPICS);
    let mut stored: Vec<_> = stored.collect::<Vec<_>>().await.into_iter().flatten().collect();
    stored.sort_unstable_by_key(|(place, _)| *place);
    stored.into_iter().map(|(_, stored)| stored).collect()
}

async fn store_for_topic(db: &Db, requests: Vec<(usize, Request)>) -> Vec<(usize, Stored)> {
    let (places, requests): (Vec<_>, Vec<_>) = requests.into_iter().unzip();
    let stored = match store(db, requests.clone()).await {
        Ok(stored) => stored.into_iter().map(Ok).collect(),
        Err(err) if requests.len() == 1 => vec![Err(err)],
        Err(_) => {
            let alone = requests.into_iter().map(|request| async move {
                let stored = store(db, vec![request]).await?;
                stored.into_iter().next().ok_or(StoreError::Closed)
            });
            join_all(alone).await
        }
    };
    places.into_iter().zip(stored).collect()
}

async fn store(db: &Db, requests: Vec<Request>) -> Result<Vec<Subscription>, StoreError> {
    let groups = db.groups.clone();
    db.write(move |tx| Box::pin(async move { subscribe_together(tx, &groups, requests).await }))
        .await
}
