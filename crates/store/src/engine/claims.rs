//! Picking due work: longest due first, with a limit for each host, so that no host delays another.
//!
//! The front of a queue is read in the order of `due_at`. Only when it is full of hosts at their
//! limit is the queue of every host read separately, so the usual claim costs the same whether a
//! hundred jobs are due or a hundred thousand, and a host with a hundred thousand due jobs delays
//! no other.
//!
//! Picked jobs stay locked until their transaction ends, which must move their `due_at` to a later
//! time. Jobs that another node has locked are skipped.

use std::collections::HashMap;
use std::error::Error;

use chrono::{DateTime, Utc};
use tracing::error;

use crate::engine::sql::{Row, Value, params};
use crate::engine::tx::Tx;
use feedgate_core::ports::{ClaimLimits, StoreError};

/// The statements of one queue. The parameter `$1` of each is now.
pub(crate) struct ClaimQueue {
    /// Picks the first `$2` due jobs, longest due first: resource, number and host of each.
    pub(crate) front: &'static str,
    /// Names up to `$3` hosts with due jobs, without those in `$2`, longest due first.
    pub(crate) hosts: &'static str,
    /// Picks up to `$3` due jobs of the host `$2`, with the columns of `front`.
    pub(crate) of_host: &'static str,
}

/// The queue of a table whose rows have a `host` and a `due_at`; `$id` is the column that
/// identifies a row.
#[rustfmt::skip] // a statement is read best as it is written
macro_rules! queue_of {
    ($table:literal, $id:literal) => {
        ClaimQueue {
            front: concat!(
                "select ", $id, ", ", $id, ", host
                   from ", $table, "
                  where due_at <= $1
                  order by due_at
                  limit $2
                    {skip locked}"
            ),
            // The statement steps from host to host through the index instead of reading all due
            // rows.
            hosts: concat!(
                "with recursive step (host) as (
                     select min(host) from ", $table, "
                     union all
                     select (select min(q.host) from ", $table, " q where q.host > step.host)
                       from step
                      where step.host is not null),
                 first as (
                     select host, (select min(q.due_at) from ", $table, " q
                                    where q.host = step.host) as due_at
                       from step
                      where host is not null)
                 select host
                   from first
                  where due_at <= $1 and host not in ({texts $2})
                  order by due_at
                  limit $3"
            ),
            of_host: concat!(
                "select ", $id, ", ", $id, ", host
                   from ", $table, "
                  where host = $2 and due_at <= $1
                  order by due_at
                  limit $3
                    {skip locked}"
            ),
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
}

/// The lengths of the front of a queue, as multiples of the wanted number of jobs. The first is
/// enough while the hosts in it differ, as they mostly do.
const FRONTS: [usize; 2] = [1, 4];
/// The shortest front.
const FRONT_LEAST: usize = 64;

/// Picks as many due jobs as the limits allow.
pub(crate) async fn pick(
    tx: &Tx<'_>,
    queue: &ClaimQueue,
    now: DateTime<Utc>,
    room: &ClaimLimits,
) -> Result<Vec<Picked>, StoreError> {
    if room.limit == 0 || room.per_host == 0 {
        return Ok(Vec::new());
    }
    let mut full: HashMap<String, usize> = HashMap::new();
    let mut picked = Vec::new();
    let mut fronts = FRONTS.map(|times| (room.limit * times).max(FRONT_LEAST)).to_vec();
    fronts.dedup();
    for front in fronts {
        let jobs = tx.query(queue.front, params![now, front as i64]).await?;
        let is_all = jobs.len() < front;
        full = room.busy.iter().map(|host| (host.clone(), room.per_host)).collect();
        picked = pick_from(jobs, room, &mut full)?;
        if is_all || picked.len() == room.limit {
            return Ok(picked);
        }
    }
    let full: Vec<String> = full.into_keys().collect();
    let wanted = (room.limit - picked.len()) as i64;
    for mut row in tx.query(queue.hosts, params![now, Value::Texts(full), wanted]).await? {
        let left = (room.limit - picked.len()).min(room.per_host) as i64;
        for mut row in tx.query(queue.of_host, params![now, row.text()?, left]).await? {
            picked.push(read_picked(&mut row)?);
        }
    }
    Ok(picked)
}

fn read_picked(row: &mut Row) -> Result<Picked, StoreError> {
    Ok(Picked { resource: row.int()?, number: row.int()?, host: row.text()? })
}

/// Picks the first jobs whose hosts are below their limit; `full` counts the jobs of each host.
fn pick_from(
    jobs: Vec<Row>,
    room: &ClaimLimits,
    full: &mut HashMap<String, usize>,
) -> Result<Vec<Picked>, StoreError> {
    let mut picked = Vec::with_capacity(room.limit.min(jobs.len()));
    for mut row in jobs {
        if picked.len() == room.limit {
            break;
        }
        let job = read_picked(&mut row)?;
        let of_host = full.entry(job.host.clone()).or_default();
        if *of_host < room.per_host {
            *of_host += 1;
            picked.push(job);
        }
    }
    Ok(picked)
}

/// Returns the picked jobs as columns for `{rows}`.
pub(crate) fn columns(picked: &[Picked]) -> [(&'static str, Value); 2] {
    [
        ("resource_id", Value::Ints(picked.iter().map(|job| job.resource).collect())),
        ("id", Value::Ints(picked.iter().map(|job| job.number).collect())),
    ]
}

/// Reads claimed jobs, in the order in which they were picked. A job that cannot be read must not
/// keep the others from running: the error is logged, and the job stays claimed.
pub(crate) fn read<T>(
    rows: Vec<Row>,
    picked: &[Picked],
    job: fn(Row) -> Result<T, StoreError>,
    number: fn(&T) -> i64,
) -> Vec<T> {
    let mut jobs: Vec<T> = rows.into_iter().filter_map(|row| readable(job(row))).collect();
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
