//! Claiming due jobs of a queue: longest due first, with a limit for each host, so that no host
//! delays another.
//!
//! Candidates are read in the order of `due_at`, without locks, and claimed by an update that
//! applies only while no other claim on them is valid. So nodes that read the same candidates never
//! both get one. A claim has a token, which its result names, and `due_at` is its end.
//!
//! A host with more due jobs than it may be sent fills the front of a queue. Each search reads the
//! front first and a bounded number of rows in all; the next search reads the front again and then
//! continues where this one ended. So a claim costs the same whether a hundred jobs are due or a
//! hundred thousand, and every job behind those of such a host is found after a few searches.

use std::collections::{HashMap, HashSet};
use std::error::Error;
use std::sync::{Mutex, PoisonError};

use chrono::{DateTime, Utc};
use tracing::error;

use crate::Db;
use crate::engine::row::Row;
use crate::engine::sql::{Value, params};
use crate::engine::tx::Tx;
use feedgate_core::claim::{ClaimToken, QueuePosition};
use feedgate_core::served_hosts::ServedNow;
use feedgate_core::store::{ClaimLimits, StoreError};

/// The number of rows that are read together while a queue is searched.
const CHUNK: usize = 512;
/// The least number of rows of the front of a queue.
const LEAST_FRONT: usize = 64;
/// The most rows that one search reads: some 10 ms of work.
const MOST_ROWS: usize = 16 * CHUNK;
/// The most searches of one claim that finds only jobs of hosts at their limit, or jobs that
/// another node claims first.
const MOST_SEARCHES: usize = 16;

/// The statements of one queue, and how its jobs are read.
pub(crate) struct ClaimQueue<T: 'static> {
    /// Reads up to `$5` jobs behind the place `($3, $4)` that are due at `$1` and have no claim
    /// that is valid at `$2`: resource, number, host and due time of each.
    pub(crate) due: &'static str,
    /// Claims those of `{rows}` that are still due at `$1` and have no claim that is valid at `$2`,
    /// until `$3`, with the token `$4`.
    pub(crate) claim: &'static str,
    /// Reads those of `{rows}` that have the token `$1`.
    pub(crate) claimed: &'static str,
    /// Reads a job from a row of `claimed`.
    pub(crate) job: fn(Row) -> Result<T, StoreError>,
    /// Returns the number that identifies a job in its queue.
    pub(crate) number: fn(&T) -> i64,
}

/// The queue of a table whose rows have a `host`, a `due_at` and a `claim_token`. `$id` is the
/// column that identifies a row, and `$set` what else a claim changes.
macro_rules! queue_of {
    ($table:literal, $id:literal, $set:literal, $claimed:expr, $job:expr, $number:expr) => {
        ClaimQueue {
            due: concat!(
                "select ",
                $id,
                ", ",
                $id,
                ", host, due_at from ",
                $table,
                " where due_at <= $1 and (claim_token = 0 or due_at <= $2) and (due_at, ",
                $id,
                ") > ($3, $4) order by due_at, ",
                $id,
                " limit $5"
            ),
            claim: concat!(
                "update ",
                $table,
                " set due_at = $3, claim_token = $4",
                $set,
                " {from rows} where ",
                $table,
                ".",
                $id,
                " = {given id} and due_at <= $1 and (claim_token = 0 or due_at <= $2)"
            ),
            claimed: $claimed,
            job: $job,
            number: $number,
        }
    };
}
pub(crate) use queue_of;

/// A job that was picked.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Picked {
    /// The number of its resource.
    pub(crate) resource: i64,
    /// The number that identifies the job in its queue.
    pub(crate) number: i64,
    /// The host whose limit applies: that of a callback, or the group of a resource.
    pub(crate) host: String,
    /// How many of them are to be claimed.
    pub(crate) count: usize,
}

/// A job that was claimed.
#[derive(Clone, Debug)]
pub(crate) struct Claimed<T> {
    pub(crate) job: T,
    /// The token of the claim.
    pub(crate) token: ClaimToken,
    /// The host whose limit applied.
    pub(crate) host: String,
}

/// The times between which jobs are claimed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClaimPeriod {
    pub(crate) now: DateTime<Utc>,
    pub(crate) until: DateTime<Utc>,
}

/// A queue, and the place at which its next search continues behind the front.
pub(crate) struct SearchedQueue<T: 'static> {
    queue: &'static ClaimQueue<T>,
    position: Mutex<QueuePosition>,
}

impl<T> SearchedQueue<T> {
    pub(crate) fn new(queue: &'static ClaimQueue<T>) -> SearchedQueue<T> {
        SearchedQueue { queue, position: Mutex::new(QueuePosition::START) }
    }

    fn position(&self) -> QueuePosition {
        *self.position.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn continue_at(&self, position: QueuePosition) {
        *self.position.lock().unwrap_or_else(PoisonError::into_inner) = position;
    }
}

/// Claims as many due jobs as the limits allow.
pub(crate) async fn claim_due<T: Send + 'static>(
    db: &Db,
    queue: &SearchedQueue<T>,
    period: ClaimPeriod,
    limits: &ClaimLimits,
) -> Result<Vec<Claimed<T>>, StoreError> {
    if limits.limit == 0 || limits.per_host == 0 {
        return Ok(Vec::new());
    }
    for _ in 0..MOST_SEARCHES {
        let search =
            Search { due: queue.queue.due, limits: limits.clone(), from: queue.position() };
        let now = period.now;
        let found = db.read(move |tx| Box::pin(search.run(tx, now)));
        let Found { picked, next } = found.await?;
        queue.continue_at(next);
        if picked.is_empty() && next == QueuePosition::START {
            break;
        }
        let claimed = claim_picked(db, queue.queue, period, picked).await?;
        if !claimed.is_empty() {
            return Ok(claimed);
        }
    }
    Ok(Vec::new())
}

/// One search of a queue.
#[derive(Clone)]
struct Search {
    /// The statement that reads due jobs.
    due: &'static str,
    limits: ClaimLimits,
    /// Where the search continues behind the front.
    from: QueuePosition,
}

/// The candidates that a search picked.
struct Found {
    picked: Vec<Picked>,
    /// Where the next search continues behind the front; the start if nothing was left unread.
    next: QueuePosition,
}

impl Search {
    /// Reads the front of the queue and what comes after `from`, until enough is picked.
    async fn run(self, tx: &Tx<'_>, now: DateTime<Utc>) -> Result<Found, StoreError> {
        let mut chunk = self.limits.limit.clamp(LEAST_FRONT, CHUNK);
        let mut search = HostLimitedSearch::new(self.limits);
        let (mut position, mut rows_read) = (QueuePosition::START, 0);
        let next = loop {
            let params = params![now, now, position.due_at, position.number, chunk as i64];
            let rows = tx.query(self.due, params).await?;
            let (is_front, is_end) = (rows_read == 0, rows.len() < chunk);
            rows_read += rows.len();
            for row in rows {
                if !search.is_full() {
                    position = search.consider(row)?;
                }
            }
            if is_end || search.is_full() {
                break QueuePosition::START;
            }
            if rows_read >= MOST_ROWS {
                break position;
            }
            if is_front {
                (position, chunk) = (position.max(self.from), CHUNK);
            }
        };
        Ok(Found { picked: search.picked, next })
    }
}

/// Claims those of `picked` that no other node has claimed since they were read.
async fn claim_picked<T: Send + 'static>(
    db: &Db,
    queue: &'static ClaimQueue<T>,
    period: ClaimPeriod,
    picked: Vec<Picked>,
) -> Result<Vec<Claimed<T>>, StoreError> {
    let leases = db.claims.clone();
    let claimed = db.write(move |tx| {
        Box::pin(async move {
            let lease = leases.lease(period.now, period.until);
            // Rows are locked in the order of their numbers, so that two nodes rarely wait for each
            // other.
            let mut numbers: Vec<i64> = picked.iter().map(|job| job.number).collect();
            numbers.sort_unstable();
            let numbers = [("id", Value::Ints(numbers))];
            let params = params![lease.now, lease.now, lease.ends, lease.token.0];
            tx.execute_rows(queue.claim, params, &numbers).await?;
            let rows = tx.query_rows(queue.claimed, params![lease.token.0], &numbers).await?;
            let jobs = read(rows, &picked, queue.job, queue.number);
            let mut hosts: HashMap<i64, String> =
                picked.into_iter().map(|job| (job.number, job.host)).collect();
            let claimed = jobs.into_iter().map(|job| {
                let host = hosts.remove(&(queue.number)(&job)).unwrap_or_default();
                Claimed { job, token: lease.token, host }
            });
            Ok(claimed.collect())
        })
    });
    claimed.await
}

/// A search that picks a limited number of candidates of each host.
pub(crate) struct HostLimitedSearch {
    limits: ClaimLimits,
    /// The number of picked jobs of each host.
    of_host: HashMap<String, usize>,
    pub(crate) picked: Vec<Picked>,
    /// The number of picked jobs.
    pub(crate) count: usize,
    /// The numbers of the picked candidates.
    numbers: HashSet<i64>,
    /// The number of jobs that were not picked because their hosts could take no more.
    pub(crate) skipped: usize,
    /// The hosts that this node serves; `None`: all.
    served: Option<ServedNow>,
}

impl HostLimitedSearch {
    pub(crate) fn new(mut limits: ClaimLimits) -> HostLimitedSearch {
        let busy = std::mem::take(&mut limits.busy);
        let of_host = busy.into_iter().map(|host| (host, limits.per_host)).collect();
        let (picked, numbers) = (Vec::new(), HashSet::new());
        HostLimitedSearch { limits, of_host, picked, count: 0, numbers, skipped: 0, served: None }
    }

    /// Picks only jobs for hosts that this node serves. Those of others are skipped as if they could take no
    /// more.
    pub(crate) fn of_served(self, served: ServedNow) -> HostLimitedSearch {
        HostLimitedSearch { served: Some(served), ..self }
    }

    /// Returns whether enough is picked.
    pub(crate) fn is_full(&self) -> bool {
        self.count >= self.limits.limit
    }

    /// Returns how many jobs may be picked in all.
    pub(crate) fn limit(&self) -> usize {
        self.limits.limit
    }

    /// Counts jobs of a host that are claimed in another way.
    pub(crate) fn count_in(&mut self, host: &str, count: usize) {
        *self.of_host.entry(host.to_owned()).or_default() += count;
    }

    /// Picks a candidate (resource, number, host, due time, and of a backlog its size) if its host can take more and it is not picked already. Returns its place in the queue.
    pub(crate) fn consider(&mut self, row: Row) -> Result<QueuePosition, StoreError> {
        self.consider_part(row, usize::MAX)
    }

    /// Picks up to `most` jobs of a candidate.
    pub(crate) fn consider_part(
        &mut self,
        mut row: Row,
        most: usize,
    ) -> Result<QueuePosition, StoreError> {
        let (resource, number, host) = (row.int()?, row.int()?, row.text()?);
        let position = QueuePosition { due_at: row.int()?, number, ..QueuePosition::START };
        if self.numbers.contains(&number) {
            return Ok(position);
        }
        let served = &self.served;
        let of_host = self.of_host.entry(host.clone()).or_insert_with(|| {
            let is_served = served.as_ref().is_none_or(|served| served.serves(&host));
            if is_served { 0 } else { self.limits.per_host }
        });
        let size = row.opt_int()?.map_or(1, |size| size.max(1) as usize);
        let room = self.limits.per_host.saturating_sub(*of_host);
        let left = self.limits.limit.saturating_sub(self.count);
        let count = size.min(room).min(left).min(most);
        self.skipped += size.saturating_sub(room);
        if count > 0 {
            *of_host += count;
            self.count += count;
            self.numbers.insert(number);
            self.picked.push(Picked { resource, number, host, count });
        }
        Ok(position)
    }
}

/// Reads claimed jobs, in the order in which they were picked. A job that cannot be read must not
/// keep the others from running: the error is logged, and the job stays claimed.
pub(crate) fn read<T>(
    rows: Vec<Row>,
    picked: &[Picked],
    job: fn(Row) -> Result<T, StoreError>,
    number: fn(&T) -> i64,
) -> Vec<T> {
    let mut jobs = Vec::with_capacity(rows.len());
    jobs.extend(rows.into_iter().filter_map(|row| readable(job(row))));
    let places: HashMap<_, _> = picked.iter().map(|job| job.number).zip(0..).collect();
    jobs.sort_by_key(|job| places.get(&number(job)).copied().unwrap_or(usize::MAX));
    jobs
}

/// Returns the job, or logs why it could not be read.
pub(crate) fn readable<T>(job: Result<T, StoreError>) -> Option<T> {
    job.inspect_err(|err| {
        error!(error = err as &dyn Error, "a due job cannot be read and was skipped")
    })
    .ok()
}
