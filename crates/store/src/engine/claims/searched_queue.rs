//! Searching a queue for due jobs with a limit for each host, so that no host delays another.
//!
//! A host with more due jobs than it may be sent fills the front of a queue. Each search reads the
//! front first and a bounded number of rows in all; the next search reads the front again and then
//! continues where this one ended. So a claim costs the same whether a hundred jobs are due or a
//! hundred thousand, and every job behind those of such a host is found after a few searches.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, PoisonError};

use chrono::{DateTime, Utc};

use crate::Db;
use crate::engine::claims::{ClaimedTable, readable};
use crate::engine::lease::ClaimLease;
use crate::engine::row::Row;
use crate::engine::sql::params;
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

/// The queue of a table, and the place at which its next search continues behind the front.
pub(crate) struct SearchedQueue<T> {
    table: ClaimedTable<1>,
    host: &'static str,
    job: ReadJob<T>,
    position: Mutex<QueuePosition>,
}

/// Makes a job of the number of a claimed row, the token of the claim, and the columns of the table.
type ReadJob<T> = fn(i64, ClaimToken, Row) -> Result<T, StoreError>;

impl<T> SearchedQueue<T> {
    /// Creates the queue of a table. `host` is the column or expression with the text whose limit applies to a
    /// row: a host, or what stands for one.
    pub(crate) fn new(
        table: ClaimedTable<1>,
        host: &'static str,
        job: ReadJob<T>,
    ) -> SearchedQueue<T> {
        SearchedQueue { table, host, job, position: Mutex::new(QueuePosition::START) }
    }

    fn position(&self) -> QueuePosition {
        *self.position.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn continue_at(&self, position: QueuePosition) {
        *self.position.lock().unwrap_or_else(PoisonError::into_inner) = position;
    }

    /// Claims as many due jobs as the limits allow.
    pub(crate) async fn claim(
        &self,
        db: &Db,
        lease: ClaimLease,
        limits: &ClaimLimits,
    ) -> Result<Vec<T>, StoreError> {
        if limits.limit == 0 || limits.per_host == 0 {
            return Ok(Vec::new());
        }
        let (table, host) = (self.table, self.host);
        for _ in 0..MOST_SEARCHES {
            let search = QueueSearch { table, host, limits: limits.clone(), from: self.position() };
            let found = db.read(move |tx| Box::pin(search.run(tx, lease.now)));
            let Found { picked, next } = found.await?;
            self.continue_at(next);
            if picked.is_empty() && next == QueuePosition::START {
                break;
            }
            let keys: Vec<_> = picked.iter().map(|job| [job.number]).collect();
            let claimed =
                db.write(move |tx| Box::pin(async move { table.claim(tx, lease, &keys).await }));
            let jobs = claimed.await?.into_iter();
            let jobs = jobs.map(|([number], row)| (self.job)(number, lease.token, row));
            let jobs: Vec<T> = jobs.filter_map(readable).collect();
            if !jobs.is_empty() {
                return Ok(jobs);
            }
        }
        Ok(Vec::new())
    }
}

/// One search of a queue.
#[derive(Clone)]
struct QueueSearch {
    table: ClaimedTable<1>,
    host: &'static str,
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

impl QueueSearch {
    /// Reads the front of the queue and what comes after `from`, until enough is picked.
    async fn run(self, tx: &Tx<'_>, now: DateTime<Utc>) -> Result<Found, StoreError> {
        let ClaimedTable { name, key: [key], .. } = self.table;
        let host = self.host;
        let due = format!(
            "select {key}, {key}, {host}, due_at from {name}
              where due_at <= $1 and (due_at, {key}) > ($2, $3)
              order by due_at, {key}
              limit $4"
        );
        let mut chunk = self.limits.limit.clamp(LEAST_FRONT, CHUNK);
        let mut search = HostLimitedSearch::new(self.limits);
        let (mut position, mut rows_read) = (QueuePosition::START, 0);
        let next = loop {
            let params = params![now, position.due_at, position.number, chunk as i64];
            let rows = tx.query(&due, params).await?;
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

    /// Picks a candidate (resource, number, host, due time, and of a backlog its size) if its host can take more
    /// and it is not picked already. Returns its place in the queue.
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
