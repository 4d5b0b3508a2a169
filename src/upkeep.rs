//! Upkeep: what has to be done now and then, by one node at a time.
//!
//! Nothing waits for it: a subscription whose lease has ended gets no deliveries
//! whether or not its row is gone. Each chore may run twice, on two nodes or after a
//! crash, without harm.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Timelike, Utc};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tracing::{error, info};

use crate::store::{Store, StoreError};
use crate::worker;

/// How often to see what has to be done.
const TICK: Duration = Duration::from_secs(20);
/// "The server drops a subscription after three consecutive errors, but it waits till
/// the top of the hour" (seed 000).
const MOST_ERRORS: u32 = 3;
/// "We normally run maintenance at most every 24hour for each resource" (seed 003).
const MEASURE_EVERY: Duration = Duration::from_secs(24 * 3_600);
/// How long pings and fetch outcomes are kept: changes.xml looks back an hour, an
/// operator a week.
const KEEP: Duration = Duration::from_secs(7 * 24 * 3_600);

/// One kind of upkeep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Chore {
    /// Forgets subscriptions whose lease has ended.
    Expire,
    /// Drops rssCloud subscriptions that keep failing, at the top of the hour.
    DropFailing,
    /// Brings velocity and counts up to date.
    Measure,
    /// Forgets old pings and fetch outcomes.
    Prune,
}

/// All of them, and how often at most each is done in all nodes together.
const CHORES: [(Chore, Duration); 4] = [
    (Chore::Expire, Duration::from_secs(60)),
    (Chore::DropFailing, Duration::from_secs(30 * 60)),
    (Chore::Measure, Duration::from_secs(10 * 60)),
    (Chore::Prune, Duration::from_secs(3_600)),
];

/// Keeps house until `stop` is cancelled.
pub async fn run(store: Arc<dyn Store>, stop: CancellationToken) {
    let mut before = worker::now();
    loop {
        let now = worker::now();
        for (chore, every) in CHORES {
            if chore.is_time(before, now)
                && let Err(err) = chore.take_turn(&*store, now, every).await
            {
                let chore = chore.name();
                error!(chore, error = &err as &dyn Error, "a chore of upkeep failed");
            }
        }
        before = now;
        tokio::select! {
            () = stop.cancelled() => break,
            () = sleep(TICK) => {}
        }
    }
}

impl Chore {
    fn name(self) -> &'static str {
        match self {
            Chore::Expire => "expire",
            Chore::DropFailing => "drop_failing",
            Chore::Measure => "measure",
            Chore::Prune => "prune",
        }
    }

    /// Whether it may be done `now`, if it was last thought of `before`.
    fn is_time(self, before: DateTime<Utc>, now: DateTime<Utc>) -> bool {
        let hour = |at: DateTime<Utc>| (at.date_naive(), at.hour());
        self != Chore::DropFailing || hour(before) != hour(now)
    }

    /// Does it, if it is this node's turn.
    async fn take_turn(
        self,
        store: &dyn Store,
        now: DateTime<Utc>,
        every: Duration,
    ) -> Result<(), StoreError> {
        if !store.claim_chore(self.name(), now, every).await? {
            return Ok(());
        }
        let done = match self {
            Chore::Expire => store.drop_expired(now).await?,
            Chore::DropFailing => store.drop_failing(MOST_ERRORS).await?,
            Chore::Measure => store.measure(now - MEASURE_EVERY, now).await?,
            Chore::Prune => store.prune(now - KEEP).await?,
        };
        if done > 0 {
            info!(chore = self.name(), done, "a chore of upkeep is done");
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
            assert_eq!(Chore::DropFailing.is_time(before, now), want, "{why}");
            assert!(Chore::Expire.is_time(before, now), "{why}");
        }
    }
}
