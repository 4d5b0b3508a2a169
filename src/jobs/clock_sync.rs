//! Keeps the clock of this node on that of the database, by which everything is due on all nodes, and moves
//! all due times when the clock of the database was set.
//!
//! Due times move while nodes work. After a clock was set back, all nodes go by the new time first: what is not
//! moved yet waits a moment longer. After it was set forward, they go by the old time until all is moved: what
//! is moved already waits a moment longer. So nothing is due too early, and no lease or claim ends too early.
//!
//! The clocks of all nodes move by exactly as much as due times do, whatever the database shows by then: if its
//! clock has been set again, that is another move. A node that has missed moves makes up for all of them, and
//! stores nothing by the time before.

use std::convert::Infallible;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use chrono::TimeDelta;
use tokio::select;
use tokio::task::JoinError;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tracing::{error, info, warn};

use crate::clock::{self, Stopwatch, TOLERANCE};
use crate::jobs::failure_log::FailureLog;
use feedgate_core::store::{ClockMark, ClockReading, StoreError};
use feedgate_store::{KnownClock, MOVE_NOTICE, Store};

/// The time between two comparisons with the clock of the database.
const INTERVAL: Duration = Duration::from_millis(500);
/// The time between two looks at due times that are about to be moved.
const NOTICE_INTERVAL: Duration = Duration::from_millis(100);
/// The time between two records of when a node worked.
const MARK_INTERVAL: Duration = Duration::from_secs(30);
/// Identifies the run of the machine.
const BOOT_FILE: &str = "/proc/sys/kernel/random/boot_id";

/// Compares the clock of this node with that of the database.
pub struct ClockSync {
    store: Arc<Store>,
    /// What the store knows of this.
    known: Arc<KnownClock>,
    /// How often the clock of the database had been set when this node last went by it, and by how much in all.
    generation: i64,
    moved_in_all: TimeDelta,
    boot: String,
    /// Since when the last record is.
    marked: Stopwatch,
    /// The last time that others moved due times although this node went by the clock of the database. A node
    /// that started just after that clock was set, which no other had noticed yet, goes by another time than due
    /// times; it finds out when that happens again as soon as it has moved them back.
    misled: Option<i64>,
}

/// A task that compares the clocks for as long as anything is stored.
#[derive(Debug)]
pub struct RunningClockSync {
    task: AbortOnDropHandle<()>,
    stop: CancellationToken,
}

impl RunningClockSync {
    /// Waits for the end of the task, which only a panic ends before it is stopped.
    pub async fn ended(&mut self) -> Result<(), JoinError> {
        (&mut self.task).await
    }

    /// Stops the task.
    pub async fn stop(self) {
        self.stop.cancel();
        if self.task.is_finished() {
            return; // its end may have been awaited
        }
        if let Err(err) = self.task.await {
            error!(error = &err as &dyn Error, "the comparison of clocks panicked");
        }
    }
}

impl ClockSync {
    /// Sets the clock of this node, before anything is done by it, and moves all due times if the clock of the
    /// database was set while no node worked.
    pub async fn start(store: Arc<Store>) -> Result<ClockSync, StoreError> {
        let boot = std::fs::read_to_string(BOOT_FILE).unwrap_or_default().trim().to_owned();
        let marked = Stopwatch::start();
        let known = Arc::new(KnownClock::new(clock::was_compared_within));
        let (generation, moved_in_all, misled) = (0, TimeDelta::zero(), None);
        let mut sync = ClockSync { store, known, generation, moved_in_all, boot, marked, misled };
        let reading = sync.read().await?;
        clock::set(reading.time_of_due_times((&sync.boot, clock::since_boot()), TOLERANCE));
        sync.note_generation(&reading);
        while !sync.check().await? {}
        sync.mark().await?;
        sync.store.go_by_clock(&sync.known);
        Ok(sync)
    }

    /// Compares the clocks from now on.
    pub fn spawn(self) -> RunningClockSync {
        let stop = CancellationToken::new();
        let task = AbortOnDropHandle::new(tokio::spawn(self.run(stop.clone())));
        RunningClockSync { task, stop }
    }

    /// Compares the clocks until `stop` is cancelled.
    async fn run(mut self, stop: CancellationToken) {
        let mut failures = FailureLog::new("reading the clock of the database");
        while stop.run_until_cancelled(sleep(INTERVAL)).await.is_some() {
            failures.note(self.check().await);
        }
        if let Err(err) = self.mark().await {
            warn!(error = &err as &dyn Error, "recording when this node worked failed");
        }
    }

    /// Compares the clocks, and goes by the new time if that of the database was set. Returns whether it was not.
    async fn check(&mut self) -> Result<bool, StoreError> {
        let mut compared_at = clock::since_boot();
        let (mut reading, by) = self.compare().await?;
        if reading.moving_by.is_none() && reading.generation == self.generation {
            if by.abs() <= TOLERANCE {
                clock::correct(by);
                clock::note_comparison(compared_at);
                self.mark_if_due().await?;
                return Ok(true);
            }
            log_clock_set(by);
            self.store.record_clock_set(self.generation, by).await?;
            compared_at = clock::since_boot();
            reading = self.read().await?;
        } else if reading.generation != self.generation
            && by.abs() <= TOLERANCE
            && self.was_misled_before(reading.generation)
        {
            // Nodes that go by the time before it was set have moved due times to where they are here.
            self.note_generation(&reading);
        }
        match reading.moving_by {
            Some(by) => self.go_by_new_time(reading, by).await?,
            // Another node has moved all.
            None => {
                self.move_clock(&reading);
                clock::note_comparison(compared_at);
            }
        }
        self.mark().await?;
        Ok(false)
    }

    /// Reads the clock of the database, and returns by how much that of this node differs.
    async fn compare(&self) -> Result<(ClockReading, TimeDelta), StoreError> {
        let before = clock::now();
        let reading = self.read().await?;
        let after = clock::now();
        let ahead = (reading.now - after).max(TimeDelta::zero());
        let by = ahead + (reading.now - before).min(TimeDelta::zero());
        Ok((reading, by))
    }

    /// Notes that others have moved due times although this node goes by the clock of the database. Returns
    /// whether that was so when they did it before.
    fn was_misled_before(&mut self, generation: i64) -> bool {
        let last = self.misled.replace(generation);
        last.is_some_and(|last| (last + 1..=last + 2).contains(&generation))
    }

    /// Moves all due times, together with other nodes, and goes by the new time.
    async fn go_by_new_time(
        &mut self,
        reading: ClockReading,
        by: TimeDelta,
    ) -> Result<(), StoreError> {
        let is_back = by < TimeDelta::zero();
        if is_back {
            self.move_clock(&reading);
        }
        select! {
            moved = self.move_due_times(&reading, by) => moved?,
            never = self.keep_comparing(reading.generation) => match never {},
        }
        if !is_back {
            self.move_clock(&reading);
        }
        Ok(())
    }

    /// Notes that this node knows how often the clock was set, as long as that is true.
    async fn keep_comparing(&self, generation: i64) -> Infallible {
        loop {
            let compared_at = clock::since_boot();
            let reading = self.read().await;
            if reading.is_ok_and(|reading| reading.generation == generation) {
                clock::note_comparison(compared_at);
            }
            sleep(INTERVAL).await;
        }
    }

    /// Moves all due times once the other nodes have learned that the clock was set, or look before they commit.
    async fn move_due_times(
        &self,
        reading: &ClockReading,
        by: TimeDelta,
    ) -> Result<(), StoreError> {
        let noticed = Stopwatch::start();
        let mut latest = reading.clone();
        while latest.is_shared && noticed.elapsed() < MOVE_NOTICE {
            sleep(NOTICE_INTERVAL).await;
            latest = self.read().await?;
            if latest.generation != reading.generation || latest.moving_by.is_none() {
                return Ok(()); // others have moved them
            }
        }
        let took = Stopwatch::start();
        self.store.move_due_times(reading.generation, by).await?;
        info!(took_ms = took.elapsed().as_millis(), "all due times were moved with the clock");
        Ok(())
    }

    /// Moves the clock of this node, and what it has in memory, as due times have moved since it last did so.
    fn move_clock(&mut self, reading: &ClockReading) {
        let by = reading.moved_in_all - self.moved_in_all;
        if !by.is_zero() {
            clock::set(clock::now() + by);
            self.store.move_times_in_memory(by);
        }
        self.note_generation(reading);
    }

    fn note_generation(&mut self, reading: &ClockReading) {
        (self.generation, self.moved_in_all) = (reading.generation, reading.moved_in_all);
        self.known.note_generation(reading.generation);
    }

    async fn read(&self) -> Result<ClockReading, StoreError> {
        self.store.read_clock(clock::machine_time()).await
    }

    async fn mark_if_due(&mut self) -> Result<(), StoreError> {
        if self.marked.elapsed() < MARK_INTERVAL { Ok(()) } else { self.mark().await }
    }

    /// Records that this node works.
    async fn mark(&mut self) -> Result<(), StoreError> {
        let (seen_at, since_boot) = (clock::now(), clock::since_boot());
        let mark = ClockMark { seen_at, boot: self.boot.clone(), since_boot };
        self.marked = Stopwatch::start();
        self.store.record_clock(self.generation, &mark).await
    }
}

fn log_clock_set(by: TimeDelta) {
    let by_s = by.as_seconds_f64();
    warn!(by_s, "the clock of the database was set; all due times are moved by as much");
}

impl std::fmt::Debug for ClockSync {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClockSync").field("generation", &self.generation).finish_non_exhaustive()
    }
}
