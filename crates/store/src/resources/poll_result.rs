//! The state that every poll stores, whatever it found: the time of the next poll, the status, the
//! polling state, and the outcome.
//!
//! Most polls find nothing and store nothing else. Such polls are stored many in one transaction
//! (`poll_result_batcher.rs`); new entries are stored first (`append.rs`). The rows of the
//! resources are locked by then.

mod end_of_poll;

use std::collections::{HashMap, HashSet};

use chrono::{DateTime, TimeDelta, Utc};
use futures_util::try_join;

use crate::engine::row::Row;
use crate::engine::sql::{self, Value};
use crate::engine::tx::Tx;
use crate::log::fan_out::Versions;
use crate::resources::details;
use crate::resources::measured::Measured;
use feedgate_core::claim::ClaimToken;
use feedgate_core::poll::{NewContent, Poll};
use feedgate_core::poll_times::PollTimes;
use feedgate_core::record::Seq;
use feedgate_core::resource::ResourceId;
use feedgate_core::schedule::Demand;
use feedgate_core::status::Status;
use feedgate_core::store::{Appended, StoreError};
use feedgate_core::upstream::UpstreamFinding;

pub(crate) use end_of_poll::end;

/// The end of one poll.
#[derive(Clone, Debug)]
pub(crate) struct PollResult {
    id: ResourceId,
    claim: ClaimToken,
    at: DateTime<Utc>,
    is_well: bool,
    next_fetch: DateTime<Utc>,
    demand: Demand,
    is_failing: bool,
    is_gone: bool,
    versions: Versions,
    period_s: u32,
    left_alone_until: Option<DateTime<Utc>>,
    /// JSON of [`PollTimes`].
    pace: String,
    /// The details of the resource; `None` if they are unchanged.
    details: Option<Details>,
}

/// The details, which are written only if they changed.
#[derive(Clone, Debug)]
struct Details {
    measured: Measured,
    /// JSON of the status, and of the polling state.
    status: String,
    polling: String,
    /// What lists have of them: the title, and when the newest entry came.
    title: String,
    last_new: Option<DateTime<Utc>>,
}

/// The columns of a resource when its row was locked.
#[derive(Clone, Debug)]
pub(crate) struct ResourceBefore {
    /// The claim of the resource.
    pub(crate) claim: ClaimToken,
    /// The host group of the resource.
    pub(crate) host: String,
    /// 1: a ping came since the poll began; 2: the poll is the response to a ping.
    pub(crate) pinged: i64,
    /// The least time from a ping to its fetch, in microseconds.
    pub(crate) spacing_us: i64,
    /// The versions of the status.
    pub(crate) versions: Versions,
    /// When the appends for subscribers without an account are paid for.
    pub(crate) appends_paid_at: DateTime<Utc>,
    /// How often the resource should be polled, as its subscriptions demand.
    pub(crate) demand: Demand,
}

impl PollResult {
    /// Returns the result of this poll, which found nothing but its status, or whose findings have
    /// been stored. `with_details` includes the details even if they are unchanged.
    pub(crate) fn from_poll(id: ResourceId, poll: &Poll, with_details: bool) -> PollResult {
        let status = &poll.status;
        let kept = || Details {
            measured: Measured::from_status(status),
            status: details::json(status),
            polling: details::json(&poll.polling),
            title: status.title.clone(),
            last_new: poll.polling.last_new,
        };
        PollResult {
            id,
            claim: poll.claim,
            at: poll.at,
            is_well: poll.answered_well,
            next_fetch: poll.next_fetch,
            demand: poll.demand,
            is_failing: status.is_failing(),
            is_gone: status.is_gone(),
            versions: Versions::from_status(status),
            period_s: status.period_s,
            left_alone_until: poll.polling.left_alone_until,
            pace: sql::json(&PollTimes::from_stored(status, &poll.polling)),
            details: (with_details || !poll.leaves_details).then(kept),
        }
    }

    /// Moves its times, because the clock was set since they were read.
    pub(crate) fn moved(mut self, by: TimeDelta) -> PollResult {
        self.at += by;
        self.next_fetch += by;
        self.left_alone_until = self.left_alone_until.map(|until| until + by);
        self
    }
}

impl Details {
    /// Replaces the measured fields with those that were stored since the resource was claimed.
    fn take_in(&mut self, measured: &Measured) -> Result<(), StoreError> {
        if self.measured != *measured {
            let status: Status = sql::parse_json(&self.status)?;
            self.status = details::json(&measured.clone().set(status));
        }
        Ok(())
    }
}

/// Returns whether a poll stores nothing but its [`PollResult`].
pub(crate) fn is_all(poll: &Poll) -> bool {
    let Poll {
        kind,
        fetch_url,
        source_network,
        site_url,
        feed_head,
        body,
        upstream,
        found,
        silent,
        ..
    } = poll;
    let is_same =
        kind.is_none() && fetch_url.is_none() && site_url.is_none() && source_network.is_none();
    let is_empty = feed_head.is_none() && body.is_none() && *found == NewContent::Nothing;
    let follows_baseline = poll.polling.baseline_at.is_some();
    is_same && is_empty && *upstream == UpstreamFinding::Unknown && !silent && !follows_baseline
}

/// A statement that reads resources before their polls are stored, without its lock.
macro_rules! columns_before {
    () => {
        "select id, head, claim_token, host, pinged, ping_interval, status_version,
                announced_status_version, min_period_s, base_period_ms, appends_paid_at
           from resources
          where id in ({ids $1})
          order by id "
    };
}

/// What became of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StoredResult {
    /// It was stored.
    Stored(Appended),
    /// It was not stored, because the details that it leaves unchanged have been changed by another
    /// poll.
    DetailsChanged,
    /// It was not stored, because the claim of its poll was lost.
    ClaimLost,
}

/// The outcome of storing a result.
pub(crate) type RecordOutcome = Result<StoredResult, StoreError>;

/// Stores polls that have nothing but their result. The outcomes are in the order of the polls;
/// `None` if the row of the resource is locked by another transaction, or missing. A result whose
/// claim was lost changes nothing.
pub(crate) async fn record_together(
    tx: &Tx<'_>,
    endings: Vec<PollResult>,
) -> Result<Vec<Option<RecordOutcome>>, StoreError> {
    const LOCK_FREE: &str = concat!(columns_before!(), "{for update} {skip locked}");
    let ((), held) = try_join!(tx.join_by_keys(), lock(tx, LOCK_FREE, &endings))?;
    record_locked(tx, endings, &held).await
}

/// Stores one poll that has nothing but its result. Waits for the row of its resource.
pub(crate) async fn record_alone(tx: &Tx<'_>, ending: PollResult) -> RecordOutcome {
    const LOCK: &str = concat!(columns_before!(), "{for update}");
    let (id, ending) = (ending.id, vec![ending]);
    let ((), held) = try_join!(tx.join_by_keys(), lock(tx, LOCK, &ending))?;
    let outcome = record_locked(tx, ending, &held).await?.pop().flatten();
    outcome.unwrap_or_else(|| Err(details::missing(id)))
}

/// Stores the polls of resources whose rows are locked.
async fn record_locked(
    tx: &Tx<'_>,
    endings: Vec<PollResult>,
    held: &HashMap<i64, (Seq, ResourceBefore)>,
) -> Result<Vec<Option<RecordOutcome>>, StoreError> {
    let measured = measured(tx, &endings).await?;
    let (mut results, mut ended) = (Vec::with_capacity(endings.len()), Vec::new());
    for mut ending in endings {
        let Some((head, held)) = held.get(&ending.id.0) else {
            results.push(None);
            continue;
        };
        if held.claim != ending.claim {
            results.push(Some(Ok(StoredResult::ClaimLost)));
            continue;
        }
        match (&mut ending.details, measured.get(&ending.id.0)) {
            (Some(details), Some(measured)) => details.take_in(measured)?,
            // Another poll of the resource was recorded since this one began.
            (None, _) if held.versions != ending.versions => {
                results.push(Some(Ok(StoredResult::DetailsChanged)));
                continue;
            }
            _ => {}
        }
        results.push(Some(Ok(StoredResult::Stored(Appended { head: *head, new: 0 }))));
        ended.push((ending, held.clone()));
    }
    // If a resource was polled twice, the later poll counts.
    let mut seen = HashSet::new();
    let (mut now, mut before) = (Vec::new(), Vec::new());
    for ended in ended.into_iter().rev() {
        let later = if seen.insert(ended.0.id.0) { &mut now } else { &mut before };
        later.push(ended);
    }
    before.reverse();
    for ended in before {
        end(tx, &[ended]).await?;
    }
    end(tx, &now).await?;
    Ok(results)
}

async fn lock(
    tx: &Tx<'_>,
    statement: &'static str,
    endings: &[PollResult],
) -> Result<HashMap<i64, (Seq, ResourceBefore)>, StoreError> {
    let ids = Value::Ints(endings.iter().map(|ending| ending.id.0).collect());
    let rows = tx.query(statement, &[ids]).await?;
    let read = |mut row: Row| {
        let (id, head, claim) = (row.int()?, Seq(row.int()?), ClaimToken(row.int()?));
        let (host, pinged, spacing_us) = (row.text()?, row.int()?, row.int()?);
        let versions = Versions { all: row.int()?, announced: row.int()? };
        let (demand, appends_paid_at) = (demand(&mut row)?, row.time()?);
        #[rustfmt::skip]
        let before = ResourceBefore {
            claim, host, pinged, spacing_us, versions, demand, appends_paid_at,
        };
        Ok((id, (head, before)))
    };
    rows.into_iter().map(read).collect()
}

/// Reads `min_period_s` and `base_period_ms`.
pub(crate) fn demand(row: &mut Row) -> Result<Demand, StoreError> {
    Ok(Demand { least_s: row.small()?, unit_ms: row.count()? })
}

/// Returns the measured fields of the resources whose details are written.
async fn measured(
    tx: &Tx<'_>,
    endings: &[PollResult],
) -> Result<HashMap<i64, Measured>, StoreError> {
    const MEASURED: &str =
        "select resource_id, status from resource_details where resource_id in ({ids $1})";
    let written = endings.iter().filter(|ending| ending.details.is_some());
    let written: Vec<i64> = written.map(|ending| ending.id.0).collect();
    if written.is_empty() {
        return Ok(HashMap::new());
    }
    let rows = tx.query(MEASURED, &[Value::Ints(written)]).await?;
    rows.into_iter().map(|mut row| Ok((row.int()?, row.json()?))).collect()
}
