//! Records polls together that found nothing: polls that end within a few milliseconds of each
//! other share one transaction. No caller gets its result before the commit.
//!
//! A transaction that fails is repeated poll by poll, so that a poll that cannot be stored does not
//! fail the others. A poll whose resource is locked by another transaction, such as that of an
//! operator, is left out and waits in a transaction of its own.

use std::sync::Weak;

use tokio::sync::Semaphore;
use tokio::time::{Duration, timeout};

use crate::Db;
use crate::clock::clock_moves::ClockStamp;
use crate::engine::batcher::{BatchLimits, Batcher};
use crate::resources::poll_result::{self, PollResult, RecordOutcome};
use feedgate_core::store::StoreError;

const LIMITS: BatchLimits = BatchLimits {
    // The delay affects no subscriber, because these polls found nothing, and a commit costs the same for
    // one as for a hundred.
    gather: Duration::from_millis(5),
    most: 256,
    concurrent: 1,
};
/// The most transactions of one poll each that wait for locked rows at the same time: few enough to leave
/// connections for everything else.
const ALONE: u32 = 4;
/// How long stopping waits for what is being recorded. A poll that is not recorded is repeated when
/// its claim ends.
const STOP_WITHIN: Duration = Duration::from_secs(5);

/// Collects results of polls and records them.
#[derive(Debug)]
pub(crate) struct PollResultBatcher {
    batcher: Batcher<(PollResult, ClockStamp), RecordedTogether>,
    alone: Semaphore,
}

/// What became of a poll that was recorded together with others.
#[derive(Debug)]
enum RecordedTogether {
    Recorded(RecordOutcome),
    /// Its row is locked.
    Locked,
    /// The transaction failed.
    Failed,
}

impl PollResultBatcher {
    /// Starts recording, until the database is closed.
    pub(crate) fn start(db: Weak<Db>) -> PollResultBatcher {
        let record = move |batch| record_together(Weak::clone(&db), batch);
        let alone = Semaphore::new(ALONE as usize);
        PollResultBatcher { batcher: Batcher::start(LIMITS, record), alone }
    }

    /// Returns once this poll is recorded, whose times were read by `clock`.
    pub(crate) async fn record(
        &self,
        db: &Db,
        ending: PollResult,
        clock: ClockStamp,
    ) -> RecordOutcome {
        let recorded = self.batcher.submit((ending.clone(), clock)).await;
        let _permit = match recorded.result().await.ok_or(StoreError::Closed)? {
            RecordedTogether::Recorded(outcome) => return outcome,
            RecordedTogether::Locked => {
                Some(self.alone.acquire().await.map_err(|_| StoreError::Closed)?)
            }
            RecordedTogether::Failed => None,
        };
        let ending = ending.moved(db.clock_moves.since(clock));
        db.write(move |tx| Box::pin(poll_result::record_alone(tx, ending))).await
    }

    /// Accepts no more polls, and returns when all accepted ones are recorded, or after
    /// [`STOP_WITHIN`]. Then those that wait for locked rows end when these are free.
    pub(crate) async fn stop(&self) {
        let stopped = async {
            let stopped = self.batcher.stop().await;
            let _ = self.alone.acquire_many(ALONE).await;
            stopped
        };
        let stopped = timeout(STOP_WITHIN, stopped).await;
        self.alone.close();
        match stopped {
            Ok(Ok(())) => {}
            Ok(Err(err)) => {
                tracing::error!(error = %err, "the task that stores poll results had panicked");
            }
            Err(_) => tracing::warn!(
                "the last poll results could not be stored, because the database did not respond in time; \
                 the polls will be repeated"
            ),
        }
    }
}

/// Records polls in one transaction.
async fn record_together(
    db: Weak<Db>,
    batch: Vec<(PollResult, ClockStamp)>,
) -> Vec<RecordedTogether> {
    // A caller that waits for its result keeps the database open.
    let Some(db) = db.upgrade() else { return Vec::new() };
    let count = batch.len();
    let moved =
        |(result, clock): (PollResult, ClockStamp)| result.moved(db.clock_moves.since(clock));
    let batch = batch.into_iter().map(moved).collect();
    let recorded = db.write(move |tx| Box::pin(poll_result::record_together(tx, batch))).await;
    let Ok(outcomes) = recorded else {
        return (0..count).map(|_| RecordedTogether::Failed).collect();
    };
    let outcomes = outcomes.into_iter();
    outcomes.map(|one| one.map_or(RecordedTogether::Locked, RecordedTogether::Recorded)).collect()
}
