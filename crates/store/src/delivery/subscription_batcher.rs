//! Stores subscriptions together that are created at the same time.
//!
//! Creating a subscription locks the row of its resource, so on PostgreSQL a thousand registrations
//! for one popular resource would wait for a thousand commits, one after another. Here requests
//! that wait for the same resource share one transaction. No request is answered before its commit,
//! and a request that cannot be stored does not fail the others.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use chrono::{DateTime, Utc};
use futures_util::future::join_all;
use futures_util::{StreamExt, stream};
use tokio::sync::{Semaphore, mpsc, oneshot};

use crate::Db;
use crate::delivery::subscriptions::subscribe_together;
use feedgate_core::ports::StoreError;
use feedgate_core::subscription::{Subscription, SubscriptionRequest};

/// The most subscriptions in one transaction.
const BATCH: usize = 256;
/// The number of batches that are stored at the same time while the next one grows.
const BATCHES: usize = 2;
/// The most topics of a batch whose requests are stored at the same time.
const CONCURRENT_TOPICS: usize = 4;
/// The most requests that may wait.
const QUEUE: usize = 1_024;

/// The sender to the task that stores subscriptions.
#[derive(Debug)]
pub(crate) struct SubscriptionBatcher {
    queue: mpsc::Sender<WaitingRequest>,
}

#[derive(Debug)]
struct WaitingRequest {
    request: SubscriptionRequest,
    now: DateTime<Utc>,
    reply: oneshot::Sender<Result<Subscription, StoreError>>,
}

impl SubscriptionBatcher {
    /// Starts the task, which ends with the database.
    pub(crate) fn start(db: Weak<Db>) -> SubscriptionBatcher {
        let (queue, waiting) = mpsc::channel(QUEUE);
        tokio::spawn(store_batches(db, waiting));
        SubscriptionBatcher { queue }
    }

    /// Stores a subscription, and returns after its commit.
    pub(crate) async fn subscribe(
        &self,
        request: SubscriptionRequest,
        now: DateTime<Utc>,
    ) -> Result<Subscription, StoreError> {
        let (reply, stored) = oneshot::channel();
        let waiting = WaitingRequest { request, now, reply };
        self.queue.send(waiting).await.map_err(|_| StoreError::Closed)?;
        stored.await.map_err(|_| StoreError::Closed)?
    }
}

async fn store_batches(db: Weak<Db>, mut queue: mpsc::Receiver<WaitingRequest>) {
    let slots = Arc::new(Semaphore::new(BATCHES));
    let mut waiting = Vec::new();
    while let Ok(slot) = Arc::clone(&slots).acquire_owned().await {
        if queue.recv_many(&mut waiting, BATCH).await == 0 {
            return;
        }
        let Some(db) = db.upgrade() else { return };
        let batch = std::mem::take(&mut waiting);
        tokio::spawn(async move {
            store_batch(&db, batch).await;
            drop(slot);
        });
    }
}

/// Stores the requests of each topic in one transaction.
async fn store_batch(db: &Db, batch: Vec<WaitingRequest>) {
    let mut topics: BTreeMap<String, Vec<WaitingRequest>> = BTreeMap::new();
    for waiting in batch {
        let topic = waiting.request.topic.as_str().to_owned();
        topics.entry(topic).or_default().push(waiting);
    }
    stream::iter(topics.into_values())
        .for_each_concurrent(CONCURRENT_TOPICS, |waiting| store_for_topic(db, waiting))
        .await;
}

async fn store_for_topic(db: &Db, waiting: Vec<WaitingRequest>) {
    let requests: Vec<_> =
        waiting.iter().map(|waiting| (waiting.request.clone(), waiting.now)).collect();
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
    for (waiting, stored) in waiting.into_iter().zip(stored) {
        // The caller may have stopped waiting; what was stored stays.
        let _ = waiting.reply.send(stored);
    }
}

async fn store(
    db: &Db,
    requests: Vec<(SubscriptionRequest, DateTime<Utc>)>,
) -> Result<Vec<Subscription>, StoreError> {
    let groups = db.groups.clone();
    db.write(move |tx| Box::pin(async move { subscribe_together(tx, &groups, requests).await }))
        .await
}
