//! Stores pings that arrive at the same time in one transaction.
//!
//! A publisher of many feeds sends hundreds of pings a second. On PostgreSQL each would take some ten
//! round trips and a commit, and all of them together would take all connections from the
//! deliveries. Here the pings that arrive while others are being stored share the next transaction.
//! No request is answered before its commit, and a ping that cannot be stored does not fail the
//! others. A ping of a resource that another transaction has locked waits in a transaction of its own.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::future::join_all;
use tokio::sync::{Semaphore, mpsc, oneshot};

use crate::Db;
use crate::changes::pings::{self, LockedRows, PingBatch};
use feedgate_core::ping::Ping;
use feedgate_core::ports::StoreError;

/// The most pings in one transaction.
const BATCH_SIZE: usize = 256;
/// The number of batches that are stored at the same time while the next one grows.
const CONCURRENT_BATCHES: usize = 2;
/// The most pings that may wait; later callers wait for a place.
const QUEUE: usize = 1_024;
/// The most pings of locked resources that are stored at the same time, each with a connection of
/// its own.
const CONCURRENT_SINGLES: usize = 2;

/// The sender to the task that stores pings.
#[derive(Debug)]
pub(crate) struct PingBatcher {
    queue: mpsc::Sender<WaitingPing>,
}

#[derive(Debug)]
struct WaitingPing {
    ping: Ping,
    spacing: Duration,
    /// Gets the number of resources that the ping names.
    reply: oneshot::Sender<Result<usize, StoreError>>,
}

impl PingBatcher {
    /// Starts the task, which ends with the database.
    pub(crate) fn start(db: Weak<Db>) -> PingBatcher {
        let (queue, waiting) = mpsc::channel(QUEUE);
        tokio::spawn(store_batches(db, waiting));
        PingBatcher { queue }
    }

    /// Stores a ping, and returns after its commit how many resources it names.
    pub(crate) async fn receive(&self, ping: Ping, spacing: Duration) -> Result<usize, StoreError> {
        let (reply, stored) = oneshot::channel();
        let waiting = WaitingPing { ping, spacing, reply };
        self.queue.send(waiting).await.map_err(|_| StoreError::Closed)?;
        stored.await.map_err(|_| StoreError::Closed)?
    }
}

async fn store_batches(db: Weak<Db>, mut queue: mpsc::Receiver<WaitingPing>) {
    let (slots, alone) = (
        Arc::new(Semaphore::new(CONCURRENT_BATCHES)),
        Arc::new(Semaphore::new(CONCURRENT_SINGLES)),
    );
    let mut waiting = Vec::new();
    while let Ok(slot) = Arc::clone(&slots).acquire_owned().await {
        if queue.recv_many(&mut waiting, BATCH_SIZE).await == 0 {
            return;
        }
        let Some(db) = db.upgrade() else { return };
        let (batch, alone) = (std::mem::take(&mut waiting), Arc::clone(&alone));
        tokio::spawn(async move {
            let left = store_batch(&db, batch).await;
            drop(slot);
            let permits = left.are_locked.then_some(&*alone);
            join_all(left.pings.into_iter().map(|waiting| store_alone(&db, permits, waiting)))
                .await;
        });
    }
}

/// Pings that have to be stored alone.
struct NotStored {
    pings: Vec<WaitingPing>,
    /// Whether the rows of their resources are locked; otherwise the transaction failed.
    are_locked: bool,
}

/// Stores pings in one transaction, and replies.
async fn store_batch(db: &Db, batch: Vec<WaitingPing>) -> NotStored {
    // The spacing is a setting, so all pings have the same.
    let spacing = batch.iter().map(|waiting| waiting.spacing).max().unwrap_or_default();
    let pings = batch.iter().map(|waiting| waiting.ping.clone()).collect();
    let stored = store(db, pings, spacing, LockedRows::Skip).await;
    let Ok(stored) = stored else { return NotStored { pings: batch, are_locked: false } };
    let mut pings = Vec::new();
    for (waiting, named) in batch.into_iter().zip(stored) {
        match named {
            // The caller may have stopped waiting; what was stored stays.
            Some(named) => drop(waiting.reply.send(Ok(named))),
            None => pings.push(waiting),
        }
    }
    NotStored { pings, are_locked: true }
}

/// Stores a ping in a transaction of its own, which waits for locked resources.
async fn store_alone(db: &Db, permits: Option<&Semaphore>, waiting: WaitingPing) {
    let _permit = match permits {
        // Waiting fails only if the semaphore is closed, which nothing does.
        Some(permits) => permits.acquire().await.ok(),
        None => None,
    };
    let WaitingPing { ping, spacing, reply } = waiting;
    let stored = store(db, vec![ping], spacing, LockedRows::Wait).await;
    let _ = reply.send(stored.map(|named| named.into_iter().flatten().sum()));
}

async fn store(
    db: &Db,
    pings: Vec<Ping>,
    spacing: Duration,
    locked_rows: LockedRows,
) -> Result<Vec<Option<usize>>, StoreError> {
    let number = db.ping_batches.fetch_add(1, Ordering::Relaxed);
    let batch = PingBatch { pings, spacing, locked_rows, number };
    db.write(move |tx| Box::pin(async move { pings::receive(tx, &batch).await })).await
}
