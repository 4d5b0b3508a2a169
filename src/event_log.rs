//! Where everybody tells what happened, and the one writer that keeps it for the log page.
//!
//! What holds here, whatever happens:
//!
//! * Telling costs a place in a queue and never waits: the log serves the work, not the
//!   other way round. What finds the queue full is lost, and the log says how many were.
//! * Events are kept in batches, a moment after they happened.
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
use feedgate_core::ports::Store;

use bursts::Bursts;

/// Events that may wait to be looked at: what a fan-out tells in the time that a busy
/// machine may take to come back to them.
const QUEUE: usize = 16 * 1_024;
/// The most that wait to be kept, where the store is slow or fails.
const MOST_WAITING: usize = 8 * 1_024;
/// How long the first of a batch waits for others: short to whoever watches, long to a
/// database.
const GATHER: Duration = Duration::from_millis(100);
/// The most kept in one transaction.
const BATCH: usize = 500;
/// How long a store is left alone that failed.
const RECOVERY: Duration = Duration::from_secs(1);

/// Takes events. Clones write the same log.
#[derive(Clone)]
pub struct EventLog {
    queue: Option<mpsc::Sender<Event>>,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    /// Events that found no place, and of which the log does not tell yet.
    lost: AtomicU64,
    /// The number of the newest event that this node kept.
    newest: watch::Sender<i64>,
}

/// The writer behind a [`EventLog`].
#[derive(Debug)]
pub struct Writer {
    stop: CancellationToken,
    tasks: [JoinHandle<()>; 2],
}

impl EventLog {
    /// One that keeps what it is told in `store`. Must be called within a runtime: the
    /// writer runs beside it.
    pub fn start(store: Arc<dyn Store>) -> (EventLog, Writer) {
        let (queue, told) = mpsc::channel(QUEUE);
        let (rows, waiting) = mpsc::channel(MOST_WAITING);
        let (shared, stop) = (Arc::new(Shared::default()), CancellationToken::new());
        let gather = gather(told, rows, Arc::clone(&shared), stop.clone());
        let keep = keep(waiting, store, Arc::clone(&shared), stop.clone());
        let tasks = [tokio::spawn(gather), tokio::spawn(keep)];
        (EventLog { queue: Some(queue), shared }, Writer { stop, tasks })
    }

    /// One that keeps nothing.
    pub fn off() -> EventLog {
        EventLog { queue: None, shared: Arc::default() }
    }

    /// Takes an event. Does not wait.
    pub fn record(&self, event: Event) {
        let Some(queue) = &self.queue else { return };
        if queue.try_send(event).is_err() {
            self.shared.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Wakes whoever watches the log when this node has kept something.
    pub fn watch(&self) -> watch::Receiver<i64> {
        self.shared.newest.subscribe()
    }
}

impl Writer {
    /// Keeps what has been told so far, and ends.
    pub async fn close(self) {
        self.stop.cancel();
        for task in self.tasks {
            if let Err(err) = task.await {
                error!(error = &err as &dyn Error, "the writer of the log had died");
            }
        }
    }
}

/// Takes what is told and hands on what shall be lines.
async fn gather(
    mut told: mpsc::Receiver<Event>,
    rows: mpsc::Sender<Event>,
    shared: Arc<Shared>,
    stop: CancellationToken,
) {
    let hand_on = |row: Event| {
        if rows.try_send(row).is_err() {
            shared.lost.fetch_add(1, Ordering::Relaxed);
        }
    };
    let (mut bursts, mut taken) = (Bursts::default(), Vec::new());
    loop {
        let next = bursts.next_look();
        tokio::select! {
            biased;
            () = stop.cancelled() => break,
            () = sleep_until(next.unwrap_or_else(Instant::now)), if next.is_some() => {
                bursts.settle(Instant::now()).into_iter().for_each(hand_on);
            }
            many = told.recv_many(&mut taken, BATCH) => {
                if many == 0 {
                    break; // nobody is left who could tell anything
                }
                let now = Instant::now();
                taken.drain(..).filter_map(|event| bursts.take(event, now)).for_each(hand_on);
            }
        }
    }
    let now = Instant::now();
    while let Ok(event) = told.try_recv() {
        bursts.take(event, now).into_iter().for_each(hand_on);
    }
    bursts.end().into_iter().for_each(hand_on);
}

/// Keeps lines, many at a time, until there are no more.
async fn keep(
    mut waiting: mpsc::Receiver<Event>,
    store: Arc<dyn Store>,
    shared: Arc<Shared>,
    stop: CancellationToken,
) {
    let mut batch = Vec::new();
    while waiting.recv_many(&mut batch, BATCH).await > 0 {
        tokio::select! {
            () = stop.cancelled() => {}
            () = sleep(GATHER) => {}
        }
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
        write(std::mem::take(&mut batch), &*store, &shared, &stop).await;
    }
}

/// Keeps a batch, however long the store fails; not longer than until the end.
async fn write(batch: Vec<Event>, store: &dyn Store, shared: &Shared, stop: &CancellationToken) {
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
                warn!(error = cause, code = err.code(), "the log cannot be written; it waits");
            }
            Err(_) => {}
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = sleep(RECOVERY) => {}
        }
    }
}

/// What stands in the log in place of what is missing.
fn gap(at: DateTime<Utc>, lost: u64) -> Event {
    let why = format!("{lost} events came faster than they could be kept, and are not shown");
    let gap = Event::new(EventKind::Log, at).ended(EventOutcome::Failed, "events_lost", &why);
    Event { many: lost, ..gap }
}

impl fmt::Debug for EventLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EventLog(..)")
    }
}
