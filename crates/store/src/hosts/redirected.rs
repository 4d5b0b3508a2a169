//! Requests that redirects lead to a host group whose turn their poll has not claimed.
//!
//! They keep the interval and the pauses of the group like its own polls. At most every second time of a
//! group is theirs, so that whoever redirects many addresses to a server delays the polls of its own
//! resources by no more than one interval each.

use chrono::{DateTime, Utc};

use super::{micros, pauses};
use crate::engine::sql::params;
use crate::engine::tx::{Tx, Wake};
use feedgate_core::host::RequestAdmission;
use feedgate_core::host_groups::HostGroups;
use feedgate_core::store::StoreError;

/// How often the time of the last success is written, in microseconds.
const CREDIT_EVERY_US: i64 = 60 * 1_000_000;

/// Takes a time of the group, if it has one now.
pub(super) async fn admit(
    tx: &Tx<'_>,
    groups: &HostGroups,
    group: String,
    now: DateTime<Utc>,
) -> Result<RequestAdmission, StoreError> {
    const KNOWN: &str = "
        select coalesce(backoff_until, 0), last_fetch_at + fetch_interval, redirect_free_at
          from hosts where host = $1 {for update}";
    // The interval counts from here on for all other requests. A poll that has claimed the group keeps it.
    const TAKE: &str = "
        insert into hosts (host, last_fetch_at, fetch_interval, next_fetch_at, redirect_free_at)
        values ($1, $2, $3, $4, $5)
            on conflict (host) do update
           set last_fetch_at = excluded.last_fetch_at, fetch_interval = excluded.fetch_interval,
               next_fetch_at = case when hosts.next_fetch_at < excluded.next_fetch_at
                                    then excluded.next_fetch_at else hosts.next_fetch_at end,
               redirect_free_at = excluded.redirect_free_at";
    let known = tx.first(KNOWN, params![group.as_str()]).await?;
    let now = tx.at(now);
    if let Some(mut row) = known {
        let (paused_until, free_at, redirect_free_at) = (row.time()?, row.time()?, row.time()?);
        let free_at = free_at.max(redirect_free_at);
        if paused_until > now {
            return Ok(RequestAdmission::Paused(paused_until));
        }
        if free_at > now {
            return Ok(RequestAdmission::NotBefore(free_at));
        }
    }
    let interval = pauses(tx, groups, std::slice::from_ref(&group), now).await?;
    let (interval, begins) = (interval.first().copied().unwrap_or_default(), micros(now));
    let params = params![group, begins, interval, begins + interval, begins + 2 * interval];
    tx.execute(TAKE, params).await?;
    Ok(RequestAdmission::Admitted)
}

/// Ends the claim of the group; its next poll may begin after its interval, or after its pause.
pub(super) async fn leave(tx: &Tx<'_>, group: String) -> Result<(), StoreError> {
    const LEAVE: &str = "
        update hosts
           set next_fetch_at = case when backoff_until > last_fetch_at + fetch_interval
                                    then backoff_until
                                    else last_fetch_at + fetch_interval end
         where host = $1";
    tx.execute(LEAVE, params![group]).await?;
    tx.wake(Wake::Resources);
    Ok(())
}

/// Records that the group answered well.
pub(super) async fn record_good_answer(
    tx: &Tx<'_>,
    group: String,
    at: DateTime<Utc>,
) -> Result<(), StoreError> {
    const CREDIT: &str = "
        update hosts
           set backoffs = 0, last_success_at = $2
         where host = $1
           and (backoffs > 0 or last_success_at is null or last_success_at < $3)";
    let params = params![group, at, micros(at) - CREDIT_EVERY_US];
    tx.execute(CREDIT, params).await.map(drop)
}
