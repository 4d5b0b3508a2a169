//! How due work is picked: longest due first, so much per host, and no host in the
//! way of another.
//!
//! The front of a queue is read in the order of `due_at`. Only when it is full of hosts
//! that can take no more is every host asked for itself; so the usual claim costs the
//! same whether a hundred jobs are due or a hundred thousand, and a host with a hundred
//! thousand due jobs delays nobody else.
//!
//! What is picked stays locked until its transaction ends, which must put its `due_at`
//! off. Jobs that another node has locked are passed over.

use std::collections::HashMap;
use std::error::Error;

use chrono::{DateTime, Utc};
use tracing::error;

use crate::engine::sql::{Row, Value, params};
use crate::engine::tx::Tx;
use feedgate_core::ports::{ClaimLimits, StoreError};

/// The statements of one queue. Each is given `$1` now.
pub(crate) struct ClaimQueue {
    /// The first `$2` due jobs, longest due first: resource, number and host of each.
    pub(crate) front: &'static str,
    /// Names up to `$3` hosts with due jobs, without those in `$2`, longest due first.
    pub(crate) hosts: &'static str,
    /// Picks up to `$3` due jobs of the host `$2`: as `front`.
    pub(crate) of_host: &'static str,
}

/// The queue of a table whose rows each have a `host` and are all due at their `due_at`; `$id`
/// is the number that tells them apart.
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
            // Steps from host to host through the index instead of reading all that is due.
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
    /// Its own number.
    pub(crate) number: i64,
    /// Whom it concerns: a callback's host, or the group of a resource.
    pub(crate) host: String,
}

/// The front of a queue is this many times as long as what is wanted of it: no longer while
/// the hosts in it are different ones, as they mostly are, and then so long.
const FRONTS: [usize; 2] = [1, 4];
/// The shortest front.
const FRONT_LEAST: usize = 64;

/// Picks due jobs for which there is room.
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

/// Picks the first jobs for which there is room; `full` counts those of each host.
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

/// The picked jobs as columns for `{rows}`.
pub(crate) fn columns(picked: &[Picked]) -> [(&'static str, Value); 2] {
    [
        ("resource_id", Value::Ints(picked.iter().map(|job| job.resource).collect())),
        ("id", Value::Ints(picked.iter().map(|job| job.number).collect())),
    ]
}

/// Reads claimed jobs, in the order in which they were picked. One that cannot be read
/// must not keep the others from being done: it is reported and left claimed.
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

/// The job, if it could be read.
pub(crate) fn readable<T>(job: Result<T, StoreError>) -> Option<T> {
    job.inspect_err(|err| error!(error = err as &dyn Error, "a due job was passed over")).ok()
}
