//! Stores pings that arrive at the same time in one transaction.
//!
//! A publisher of many feeds sends hundreds of pings a second. On PostgreSQL each would take some ten
//! round trips and a commit, and all of them together would take all connections from the
//! deliveries. Here the pings that arrive while others are being stored share the next transaction.
//! No request is answered before its commit. Pings of resources that another transaction has locked
//! do not hold up the others: they are tried again a few times, and then wait for the lock.

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::future::join_all;
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::time::{sleep, timeout};

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
/// How long a batch waits before each further attempt to store the pings of locked resources: most
/// transactions that lock a resource end within milliseconds.
const PAUSES: [Duration; 3] =
    [Duration::from_millis(20), Duration::from_millis(100), Duration::from_millis(500)];
/// The most transactions that wait for a locked resource at the same time, each with a connection of
/// its own.
const CONCURRENT_WAITS: usize = 2;
/// How long the pings of a resource wait for such a transaction to begin.
const WAIT: Duration = Duration::from_secs(30);
/// The most pings that are left for such transactions; others fail at once.
const MAX_LEFT: usize = 1_024;

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
    let limits = Arc::new(Limits {
        batches: Arc::new(Semaphore::new(CONCURRENT_BATCHES)),
        waits: Semaphore::new(CONCURRENT_WAITS),
        left: Semaphore::new(MAX_LEFT),
    });
    let mut waiting = Vec::new();
    // The next batch grows while there is no place for it.
    while let Ok(place) = Arc::clone(&limits.batches).acquire_owned().await {
        if queue.recv_many(&mut waiting, BATCH_SIZE).await == 0 {
            return;
        }
        let Some(db) = db.upgrade() else { return };
        let (batch, limits) = (std::mem::take(&mut waiting), Arc::clone(&limits));
        tokio::spawn(async move {
            let left = store(&db, batch, LockedRows::Skip).await;
            drop(place);
            store_left(&db, &limits, left).await;
        });
    }
}

/// The limits of what is stored at the same time.
#[derive(Debug)]
struct Limits {
    batches: Arc<Semaphore>,
    waits: Semaphore,
    left: Semaphore,
}

/// Stores the pings that a batch has left: together after a moment, or else address by address.
async fn store_left(db: &Db, limits: &Limits, mut left: Vec<WaitingPing>) {
    let count = u32::try_from(left.len()).unwrap_or(u32::MAX);
    let Ok(_places) = limits.left.try_acquire_many(count) else {
        return left
            .into_iter()
            .for_each(|waiting| waiting.fail("too many pings wait for locked rows"));
    };
    for pause in PAUSES {
        if left.is_empty() {
            return;
        }
        sleep(pause).await;
        let Ok(_place) = limits.batches.acquire().await else { return };
        left = store(db, left, LockedRows::Skip).await;
    }
    let mut by_address: BTreeMap<_, Vec<WaitingPing>> = BTreeMap::new();
    for waiting in left {
        let address = (waiting.ping.url.clone(), waiting.ping.feed_url.clone());
        by_address.entry(address).or_default().push(waiting);
    }
    join_all(by_address.into_values().map(|group| store_waiting(db, limits, group))).await;
}

/// Stores the pings of an address in a transaction that waits for locked resources.
async fn store_waiting(db: &Db, limits: &Limits, group: Vec<WaitingPing>) {
    let Ok(Ok(_place)) = timeout(WAIT, limits.waits.acquire()).await else {
        return group
            .into_iter()
            .for_each(|waiting| waiting.fail("the row of the resource is locked"));
    };
    store(db, group, LockedRows::Wait).await;
}

/// Stores pings in one transaction, and replies. Returns those that were skipped.
async fn store(db: &Db, batch: Vec<WaitingPing>, locked_rows: LockedRows) -> Vec<WaitingPing> {
    // The spacing is a setting, so all pings have the same.
    let spacing = batch.iter().map(|waiting| waiting.spacing).max().unwrap_or_default();
    let pings = batch.iter().map(|waiting| waiting.ping.clone()).collect();
    let number = db.ping_batches.fetch_add(1, Ordering::Relaxed);
    let received = PingBatch { pings, spacing, locked_rows, number, listed: db.listed };
    match db.write(move |tx| Box::pin(async move { pings::receive(tx, &received).await })).await {
        Ok(stored) => batch.into_iter().zip(stored).filter_map(WaitingPing::reply).collect(),
        Err(err) => {
            // All texts are checked or replaced, so a failure is never that of one ping.
            let reason = err.to_string();
            tracing::error!(
                error = &err as &dyn Error,
                pings = batch.len(),
                "pings were not stored"
            );
            batch.into_iter().for_each(|waiting| waiting.fail(&reason));
            Vec::new()
        }
    }
}

impl WaitingPing {
    /// Replies, unless the ping was skipped: then it is returned.
    fn reply((waiting, named): (WaitingPing, Option<usize>)) -> Option<WaitingPing> {
        let Some(named) = named else { return Some(waiting) };
        // The caller may have stopped waiting; what was stored stays.
        let _ = waiting.reply.send(Ok(named));
        None
    }

    fn fail(self, reason: &str) {
        let _ = self.reply.send(Err(StoreError::Database(reason.into())));
    }
}
