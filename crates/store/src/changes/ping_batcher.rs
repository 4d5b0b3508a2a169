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
use tokio::sync::{Semaphore, oneshot};
use tokio::time::{sleep, timeout};

use crate::Db;
use crate::changes::pings::{self, LockedRows, PingBatch};
use crate::clock::clock_moves::ClockStamp;
use crate::engine::batcher::{BatchLimits, Batcher};
use feedgate_core::ping::Ping;
use feedgate_core::store::StoreError;

const LIMITS: BatchLimits = BatchLimits { gather: Duration::ZERO, most: 256, concurrent: 2 };
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

/// The number of resources that a ping names, once it is stored.
type Stored = Result<usize, StoreError>;

/// Collects pings and stores them.
#[derive(Debug)]
pub(crate) struct PingBatcher {
    batcher: Batcher<(Ping, Duration), oneshot::Receiver<Stored>>,
}

#[derive(Debug)]
struct WaitingPing {
    ping: Ping,
    spacing: Duration,
    /// The clock by which the ping came.
    clock: ClockStamp,
    /// Gets the number of resources that the ping names.
    reply: oneshot::Sender<Stored>,
}

impl PingBatcher {
    /// Starts storing, until the database is closed.
    pub(crate) fn start(db: Weak<Db>) -> PingBatcher {
        let limits = Arc::new(Limits {
            retries: Semaphore::new(LIMITS.concurrent),
            waits: Semaphore::new(CONCURRENT_WAITS),
            left: Semaphore::new(MAX_LEFT),
        });
        let store = move |batch| store_batch(Weak::clone(&db), Arc::clone(&limits), batch);
        PingBatcher { batcher: Batcher::start(LIMITS, store) }
    }

    /// Stores a ping, and returns after its commit how many resources it names.
    pub(crate) async fn receive(&self, ping: Ping, spacing: Duration) -> Stored {
        let handed_in = self.batcher.submit((ping, spacing)).await;
        let stored = handed_in.result().await.ok_or(StoreError::Closed)?;
        stored.await.map_err(|_| StoreError::Closed)?
    }
}

/// Stores a batch. Pings of locked resources are stored later.
async fn store_batch(
    db: Weak<Db>,
    limits: Arc<Limits>,
    batch: Vec<(Ping, Duration)>,
) -> Vec<oneshot::Receiver<Stored>> {
    let Some(db) = db.upgrade() else { return Vec::new() };
    let clock = db.clock_moves.stamp();
    let (waiting, stored) = batch
        .into_iter()
        .map(|(ping, spacing)| {
            let (reply, stored) = oneshot::channel();
            (WaitingPing { ping, spacing, clock, reply }, stored)
        })
        .unzip();
    let left = store(&db, waiting, LockedRows::Skip).await;
    if !left.is_empty() {
        tokio::spawn(async move { store_left(&db, &limits, left).await });
    }
    stored
}

/// The limits of what is stored later.
#[derive(Debug)]
struct Limits {
    retries: Semaphore,
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
        let Ok(_place) = limits.retries.acquire().await else { return };
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
    let pings = batch.iter().map(|waiting| waiting.ping_by_clock_of_now(db)).collect();
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
    fn ping_by_clock_of_now(&self, db: &Db) -> Ping {
        let at = self.ping.at + db.clock_moves.since(self.clock);
        Ping { at, ..self.ping.clone() }
    }

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
