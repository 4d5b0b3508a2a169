//! The event log: records what happened, and the one writer that stores it.
//!
//! What holds here, whatever happens:
//!
//! * Recording an event never waits, so that the event log cannot slow down the gateway. An
//!   event that finds the queue full is lost, and the log says how many were.
//! * Events are stored in batches, a moment after they happened.
//! * One fan-out does not push everything else out of the log: of events that differ in
//!   nothing but the callback, the first are lines of their own and the rest one line with
//!   their number (`bursts`).

mod bursts;

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use chrono::{DateTime, Utc};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;
use tracing::{error, warn};

use feedgate_core::event::{Event, EventKind, EventOutcome};
use feedgate_store::Store;

use bursts::Bursts;

/// The most events in the queue: what a fan-out records while a busy machine runs other tasks.
const QUEUE: usize = 16 * 1_024;
/// The most events that wait to be stored while the store is slow or fails.
const MOST_WAITING: usize = 8 * 1_024;
/// How long the first event of a batch waits for others: short for a person who watches the log,
/// long for a database.
const GATHER: Duration = Duration::from_millis(100);
/// The most events stored in one transaction.
const BATCH: usize = 500;
/// The pause after the store failed.
const RECOVERY: Duration = Duration::from_secs(1);

/// Records events. Clones write the same log.
#[derive(Clone)]
pub struct EventLog {
    queue: Option<mpsc::Sender<Event>>,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    /// Events that were lost and have not been reported in the log yet.
    lost: AtomicU64,
    /// The number of the newest event that this node stored.
    newest: watch::Sender<i64>,
}

/// The writer behind an [`EventLog`].
#[derive(Debug)]
pub struct Writer {
    stop: CancellationToken,
    tasks: [JoinHandle<()>; 2],
}

impl EventLog {
    /// An event log in `store`. Must be called within a runtime: the writer is a task.
    pub fn start(store: Arc<Store>) -> (EventLog, Writer) {
        let (queue, recorded) = mpsc::channel(QUEUE);
        let (rows, waiting) = mpsc::channel(MOST_WAITING);
        let (shared, stop) = (Arc::new(Shared::default()), CancellationToken::new());
        let gather = gather(recorded, rows, Arc::clone(&shared), stop.clone());
        let write = write_batches(waiting, store, Arc::clone(&shared), stop.clone());
        let tasks = [tokio::spawn(gather), tokio::spawn(write)];
        (EventLog { queue: Some(queue), shared }, Writer { stop, tasks })
    }

    /// An event log that records nothing.
    pub fn off() -> EventLog {
        EventLog { queue: None, shared: Arc::default() }
    }

    /// Records an event, without waiting.
    pub fn record(&self, event: Event) {
        let Some(queue) = &self.queue else { return };
        if queue.try_send(event).is_err() {
            self.shared.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Notifies the receiver when this node has stored events.
    pub fn watch(&self) -> watch::Receiver<i64> {
        self.shared.newest.subscribe()
    }
}

impl Writer {
    /// Stores what was recorded so far, and ends.
    pub async fn close(self) {
        self.stop.cancel();
        for task in self.tasks {
            if let Err(err) = task.await {
                error!(error = &err as &dyn Error, "the event-log writer panicked");
            }
        }
    }
}

/// Collects recorded events, and passes on those that become lines.
async fn gather(
    mut recorded: mpsc::Receiver<Event>,
    rows: mpsc::Sender<Event>,
    shared: Arc<Shared>,
    stop: CancellationToken,
) {
    let hand_on = |row: Event| {
        if rows.try_send(row).is_err() {
            shared.lost.fetch_add(1, Ordering::Relaxed);
        }
    };
    let (mut bursts, mut received) = (Bursts::default(), Vec::new());
    loop {
        let next = bursts.next_look();
        tokio::select! {
            biased;
            () = stop.cancelled() => break,
            () = sleep_until(next.unwrap_or_else(Instant::now)), if next.is_some() => {
                bursts.end_quiet(Instant::now()).into_iter().for_each(hand_on);
            }
            many = recorded.recv_many(&mut received, BATCH) => {
                if many == 0 {
                    break; // every sender was dropped
                }
                let now = Instant::now();
                received.drain(..).filter_map(|event| bursts.add(event, now)).for_each(hand_on);
            }
        }
    }
    let now = Instant::now();
    while let Ok(event) = recorded.try_recv() {
        bursts.add(event, now).into_iter().for_each(hand_on);
    }
    bursts.end().into_iter().for_each(hand_on);
}

/// Stores lines in batches until there are no more.
async fn write_batches(
    mut waiting: mpsc::Receiver<Event>,
    store: Arc<Store>,
    shared: Arc<Shared>,
    stop: CancellationToken,
) {
    let mut batch = Vec::new();
    while waiting.recv_many(&mut batch, BATCH).await > 0 {
        stop.run_until_cancelled(sleep(GATHER)).await;
        while batch.len() < BATCH
            && let Ok(event) = waiting.try_recv()
        {
            batch.push(event);
        }
        let lost = shared.lost.swap(0, Ordering::Relaxed);
        if lost > 0 {
            let at = batch.iter().map(|event| event.at).max();
            batch.extend(at.map(|at| gap(at, lost)));
        }
        write_batch(std::mem::take(&mut batch), &store, &shared, &stop).await;
    }
}

/// Stores a batch, and retries until it succeeds or the event log is closed.
async fn write_batch(batch: Vec<Event>, store: &Store, shared: &Shared, stop: &CancellationToken) {
    let mut is_first = true;
    loop {
        match store.append_events(batch.clone()).await {
            Ok(newest) => {
                shared.newest.send_replace(newest);
                return;
            }
            Err(err) if is_first => {
                is_first = false;
                let cause: &dyn Error = &err;
                warn!(
                    error = cause,
                    code = err.code(),
                    "writing the event log failed; it will be retried"
                );
            }
            Err(_) => {}
        }
        if stop.run_until_cancelled(sleep(RECOVERY)).await.is_none() {
            return;
        }
    }
}

/// The event in place of those that were lost.
fn gap(at: DateTime<Utc>, lost: u64) -> Event {
    let why =
        format!("{lost} events were lost because they arrived faster than they could be stored");
    let gap = Event::new(EventKind::Log, at).ended(EventOutcome::Failed, "events_lost", &why);
    Event { many: lost, ..gap }
}

impl fmt::Debug for EventLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EventLog(..)")
    }
}
