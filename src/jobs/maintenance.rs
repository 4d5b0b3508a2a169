//! Maintenance tasks: periodic work that one node does for all of them.
//!
//! Nothing depends on when a task runs: a subscription whose lease has ended gets no deliveries
//! whether or not its row was deleted. Each task may run twice, on two nodes or after a crash,
//! without harm.

use std::borrow::Cow;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Timelike, Utc};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

use crate::clock;
use crate::event_log::EventLog;
use crate::jobs::runner;
use feedgate_core::account::SESSION_IDLE;
use feedgate_core::event::{Event, EventKind};
use feedgate_core::idempotency::ANSWER_KEPT;
use feedgate_core::page::ArchiveRetention;
use feedgate_core::ping::TimeUnit;
use feedgate_core::schedule;
use feedgate_core::store::{AttemptRetention, PruneBefore, StoreError};
use feedgate_core::traffic::MOST_SUBJECT_HOURS;
use feedgate_store::Store;

/// Between two looks at a clock that has not been compared.
const UNTIL_CURRENT: Duration = Duration::from_millis(100);
/// How often to check which tasks are due.
const TICK: Duration = Duration::from_secs(20);
/// "The server drops a subscription after three consecutive errors, but it waits till
/// the top of the hour" (seed 000).
const MOST_ERRORS: u32 = 3;
/// "We normally run maintenance at most every 24hour for each resource" (seed 003).
const MEASURE_EVERY: Duration = Duration::from_secs(24 * 3_600);
/// How long what was learned of a publisher's host is kept: its `robots.txt`, its refusals and its
/// backoff.
const HOST_RECORD_RETENTION: Duration = Duration::from_secs(7 * 24 * 3_600);
/// How long a node is listed after it last reported: one that was killed leaves its row behind.
const NODE_RETENTION: Duration = Duration::from_secs(24 * 3_600);
/// How long what was stored for a network of strangers is counted: to the end of its day.
const NETWORK_BUDGET_RETENTION: Duration = Duration::from_secs(24 * 3_600);
/// How long a resource without subscribers is kept (rule S44): somebody who subscribes again within
/// that time is not notified of old entries.
const UNWATCHED_RETENTION: Duration = Duration::from_secs(30 * 24 * 3_600);

/// How long a resource is kept for which no subscription was ever verified. Strangers can create such
/// resources; with the interval of the task, they are gone within an hour.
const NEVER_WATCHED_RETENTION: Duration = Duration::from_secs(45 * 60);

/// How long a track without subscribers stays open, since somebody subscribed or it was last checked.
const UNUSED_TRACK: Duration = Duration::from_secs(3_600);

/// The batches of feeds whose names are stored in one run of the task: some seconds.
const NAME_BATCHES: usize = 200;

/// One maintenance task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Task {
    /// Deletes subscriptions whose lease has ended.
    Expire,
    /// Deletes subscriptions whose account was removed while they were verified.
    DropOwnerless,
    /// Pauses subscriptions whose account was deactivated while they were verified.
    PauseDeactivated,
    /// Starts the digests that are due.
    StartDigests,
    /// Drops rssCloud subscriptions that keep failing, at the top of the hour.
    DropFailing,
    /// Updates velocity and counts.
    Measure,
    /// Stores the changes.xml documents of past hours.
    KeepHours,
    /// Deletes rows at the end of their retention: of hosts, moves, revoked tokens, sessions, nodes,
    /// backfills, changes.xml, and what is counted by minutes and hours.
    Prune,
    /// Deletes resources that have had no subscriber for a month, or never had one.
    Forget,
    /// Closes tracks without subscribers, and deletes those that were closed a month ago.
    CloseTracks,
    /// Drops pages of archives that are no longer kept.
    Trim,
    /// Adjusts the factor `k` of the schedule to the poll budget.
    Steer,
    /// Deletes old events of the event log.
    ShortenLog,
    /// Deletes old attempts to deliver.
    TrimAttempts,
    /// Stores the names of feeds from before names were stored.
    IndexNames,
}

/// How long after an account was removed or deactivated its subscriptions are looked for: no verification that
/// began before takes as long.
const OWNERLESS_AGE: TimeDelta = TimeDelta::days(7);

/// All tasks.
const TASKS: [Task; 15] = [
    Task::Expire,
    Task::DropOwnerless,
    Task::PauseDeactivated,
    Task::StartDigests,
    Task::DropFailing,
    Task::Measure,
    Task::KeepHours,
    Task::Prune,
    Task::Forget,
    Task::CloseTracks,
    Task::Trim,
    Task::Steer,
    Task::ShortenLog,
    Task::TrimAttempts,
    Task::IndexNames,
];

/// The operator's settings for maintenance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MaintenanceSettings {
    /// Polls per second, across all nodes.
    pub polls_per_s: u32,
    /// The time unit in the documents of past hours.
    pub changes_unit: TimeUnit,
    /// How long pings are kept.
    pub keep_pings: Duration,
    /// How long the documents of hours are kept; `None` keeps them forever.
    pub save_hours: Option<Duration>,
    /// How long rows are kept that nothing else ends.
    pub rows: RowRetention,
    /// How much of each archive is kept.
    pub retention: ArchiveRetention,
    /// How many events the event log keeps, and for how long.
    pub events: EventRetention,
    /// The most recorded attempts to deliver, of all subscriptions. They are kept as long as events.
    pub attempts_max: usize,
}

/// How long rows are kept that nothing else ends; `None` keeps them forever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowRetention {
    /// Permanent redirects that were followed.
    pub moves: Option<Duration>,
    /// API tokens, after their revocation.
    pub ended_tokens: Option<Duration>,
    /// Backfills, after their end.
    pub backfills: Option<Duration>,
}

/// The limits of the event log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventRetention {
    /// The maximum age of an event.
    pub age: Duration,
    /// The most events of one kind.
    pub of_a_kind: usize,
}

/// Runs the tasks until `stop` is cancelled.
pub async fn run(
    store: Arc<Store>,
    event_log: EventLog,
    settings: MaintenanceSettings,
    stop: CancellationToken,
) {
    let mut before = runner::now();
    loop {
        // Whatever has ended by a clock that was set back meanwhile must not be deleted.
        while !clock::is_current() {
            if stop.run_until_cancelled(sleep(UNTIL_CURRENT)).await.is_none() {
                return;
            }
        }
        let now = runner::now();
        for task in TASKS {
            if task.is_time(before, now)
                && let Err(err) = task.run_if_due(&store, &event_log, &settings, now).await
            {
                let task = task.name();
                error!(task, error = &err as &dyn Error, "a maintenance task failed");
            }
        }
        before = now;
        if stop.run_until_cancelled(sleep(TICK)).await.is_none() {
            return;
        }
    }
}

/// Adjusts the factor `k` of the schedule to the demand of all resources.
async fn steer(store: &Store, settings: &MaintenanceSettings) -> Result<u64, StoreError> {
    let k = store.poll_factor().await?;
    let planned = store.planned_polls_per_s(k).await?;
    let next = schedule::steer(k, planned, settings.polls_per_s.into());
    if next == k {
        return Ok(0);
    }
    if k == schedule::K_LEAST {
        let budget = settings.polls_per_s;
        warn!(planned, budget, "the poll budget is exceeded; poll periods become longer");
    }
    store.save_poll_factor(next).await.map(|()| 0)
}

/// Deletes subscriptions that ended or keep failing, and records each in the event log.
async fn drop_all(
    task: Task,
    store: &Store,
    event_log: &EventLog,
    now: DateTime<Utc>,
) -> Result<u64, StoreError> {
    let mut done = 0;
    loop {
        let dropped = match task {
            Task::Expire => store.drop_expired(now).await?,
            Task::DropOwnerless => store.drop_ownerless(now - OWNERLESS_AGE).await?,
            _ => store.drop_failing(MOST_ERRORS).await?,
        };
        if dropped.is_empty() {
            return Ok(done);
        }
        done += dropped.len() as u64;
        for dropped in dropped {
            let (kind, code, why) = match task {
                Task::Expire => {
                    (EventKind::Expire, "lease_ended", "the lease has ended".to_owned())
                }
                Task::DropOwnerless => {
                    (EventKind::Expire, "account_removed", "its account was removed".to_owned())
                }
                _ => {
                    let why = format!("{} consecutive notifications failed", dropped.errors);
                    (EventKind::Drop, "too_many_failures", why)
                }
            };
            let event = Event::new(kind, now).about_feed(&dropped.topic).to(&dropped.callback);
            let event = event.owned_by(dropped.account).saying(&why);
            let (via, code) = (Cow::Owned(dropped.protocol), Cow::Borrowed(code));
            event_log.record(Event { via, code, ..event });
        }
    }
}

async fn shorten_log(
    store: &Store,
    settings: &MaintenanceSettings,
    now: DateTime<Utc>,
) -> Result<u64, StoreError> {
    // The task is not logged, because it runs every minute.
    store.trim_events(now - settings.events.age, settings.events.of_a_kind).await.map(|_| 0)
}

async fn trim_attempts(
    store: &Store,
    settings: &MaintenanceSettings,
    now: DateTime<Utc>,
) -> Result<u64, StoreError> {
    let retention =
        AttemptRetention { since: now - settings.events.age, most: settings.attempts_max };
    // The task is not logged, because it runs every minute.
    store.trim_attempts(&retention).await.map(|_| 0)
}

async fn prune(
    store: &Store,
    settings: &MaintenanceSettings,
    now: DateTime<Utc>,
) -> Result<u64, StoreError> {
    let hours_before = settings.save_hours.map(|keep| now - keep);
    let lines = store.prune_changes(now - settings.keep_pings, hours_before).await?;
    let RowRetention { moves, ended_tokens, backfills } = settings.rows;
    let before = PruneBefore {
        host_records: Some(now - HOST_RECORD_RETENTION),
        moves: moves.map(|keep| now - keep),
        ended_tokens: ended_tokens.map(|keep| now - keep),
        sessions: Some(now - SESSION_IDLE),
        nodes: Some(now - NODE_RETENTION),
        backfills: backfills.map(|keep| now - keep),
        network_budgets: Some(now - NETWORK_BUDGET_RETENTION),
        idempotency_keys: Some(now - ANSWER_KEPT),
    };
    let traffic = store.trim_traffic(now, MOST_SUBJECT_HOURS).await?;
    Ok(lines + traffic + store.prune(&before).await?)
}

/// Starts all digests that are due.
async fn start_digests(store: &Store, now: DateTime<Utc>) -> Result<u64, StoreError> {
    let mut started = 0;
    loop {
        let some = store.start_digests(now).await?;
        started += some;
        if some == 0 {
            return Ok(started);
        }
    }
}

/// Stores the names of feeds that have none, for as long as the other tasks may wait.
async fn index_names(store: &Store) -> Result<u64, StoreError> {
    let mut done = 0;
    for _ in 0..NAME_BATCHES {
        match store.index_names().await? {
            0 => break,
            some => done += some,
        }
    }
    Ok(done)
}

async fn forget(store: &Store, now: DateTime<Utc>) -> Result<u64, StoreError> {
    let never_watched = store.forget_never_watched(now - NEVER_WATCHED_RETENTION, now).await?;
    Ok(never_watched + store.forget_unwatched(now - UNWATCHED_RETENTION, now).await?)
}

async fn close_tracks(store: &Store, now: DateTime<Utc>) -> Result<u64, StoreError> {
    let closed = store.close_unused_tracks(now - UNUSED_TRACK, now).await?;
    Ok(closed + store.forget_tracks(now - UNWATCHED_RETENTION).await?)
}

impl Task {
    fn name(self) -> &'static str {
        match self {
            Task::Expire => "expire",
            Task::DropOwnerless => "drop_ownerless",
            Task::PauseDeactivated => "pause_deactivated",
            Task::StartDigests => "start_digests",
            Task::DropFailing => "drop_failing",
            Task::Measure => "measure",
            Task::KeepHours => "save_hours",
            Task::Prune => "prune",
            Task::Forget => "forget",
            Task::CloseTracks => "close_tracks",
            Task::Trim => "trim",
            Task::Steer => "steer",
            Task::ShortenLog => "shorten_log",
            Task::TrimAttempts => "trim_attempts",
            Task::IndexNames => "index_names",
        }
    }

    /// Returns the shortest time between two runs, across all nodes.
    fn interval(self) -> Duration {
        match self {
            Task::Expire | Task::DropOwnerless | Task::PauseDeactivated | Task::StartDigests => {
                Duration::from_secs(60)
            }
            Task::DropFailing => Duration::from_secs(30 * 60),
            Task::Measure => Duration::from_secs(10 * 60),
            Task::KeepHours => Duration::from_secs(5 * 60),
            Task::Prune => Duration::from_secs(3_600),
            Task::Forget => Duration::from_secs(10 * 60),
            Task::CloseTracks => Duration::from_secs(3_600),
            Task::Trim => Duration::from_secs(3_600),
            Task::Steer => Duration::from_secs(60),
            Task::ShortenLog | Task::TrimAttempts => Duration::from_secs(60),
            Task::IndexNames => TICK,
        }
    }

    /// Returns whether the task may run `now`, if it was last considered at `before`.
    fn is_time(self, before: DateTime<Utc>, now: DateTime<Utc>) -> bool {
        let hour = |at: DateTime<Utc>| (at.date_naive(), at.hour());
        self != Task::DropFailing || hour(before) != hour(now)
    }

    /// Runs the task, if it is due and no other node has claimed it.
    async fn run_if_due(
        self,
        store: &Store,
        event_log: &EventLog,
        settings: &MaintenanceSettings,
        now: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        // Nodes may have different settings: a node that keeps everything leaves the task to another.
        if self == Task::Trim && settings.retention.keeps_all() {
            return Ok(());
        }
        if !store.claim_maintenance_task(self.name(), now, self.interval()).await? {
            return Ok(());
        }
        let done = match self {
            Task::Expire | Task::DropOwnerless => drop_all(self, store, event_log, now).await?,
            Task::DropFailing => drop_all(Task::DropFailing, store, event_log, now).await?,
            Task::ShortenLog => shorten_log(store, settings, now).await?,
            Task::TrimAttempts => trim_attempts(store, settings, now).await?,
            Task::IndexNames => index_names(store).await?,
            Task::PauseDeactivated => store.pause_deactivated(now - OWNERLESS_AGE).await?,
            Task::StartDigests => start_digests(store, now).await?,
            Task::Measure => store.measure(now - MEASURE_EVERY, now).await?,
            Task::KeepHours => store.save_hours(now, settings.changes_unit).await?,
            Task::Prune => prune(store, settings, now).await?,
            Task::Forget => forget(store, now).await?,
            Task::CloseTracks => close_tracks(store, now).await?,
            Task::Trim => store.drop_pages(&settings.retention, now).await?,
            Task::Steer => steer(store, settings).await?,
        };
        if done > 0 {
            info!(task = self.name(), done, "maintenance task finished");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_failing_are_dropped_at_the_top_of_the_hour_only() {
        let at = |secs: u64| DateTime::UNIX_EPOCH + Duration::from_secs(secs);
        let cases = [
            ("just started", at(3_590), at(3_590), false),
            ("within the hour", at(10), at(3_599), false),
            ("the hour has turned", at(3_590), at(3_610), true),
            ("a day was slept through", at(10), at(86_400 + 20), true),
        ];
        for (why, before, now, want) in cases {
            assert_eq!(Task::DropFailing.is_time(before, now), want, "{why}");
            assert!(Task::Expire.is_time(before, now), "{why}");
        }
    }
}
