//! Backoff of a whole host group: what its refusals amount to, and the pause of its resources.

use std::time::Duration;

use chrono::{DateTime, Utc};

use super::{known, put_off};
use crate::Db;
use crate::engine::sql::params;
use crate::engine::tx::Tx;
use feedgate_core::host::{self, HostBackoff, HostRefusal, RefusalEvidence};
use feedgate_core::store::StoreError;

/// The most resources that a pause delays: few enough that no other transaction waits long.
const MOST_PAUSED: i64 = 1_000;
/// The most refusals of a group that are counted, the newest ones: far more than the few that decide
/// whether it is paused.
const MOST_REFUSALS: i64 = 1_000;

/// Records that a URL was refused, and decides whether its whole group is paused. `is_anonymous` states
/// whether a stranger was the first to name it.
pub(super) async fn record_refusal(
    tx: &Tx<'_>,
    (mut refused, is_anonymous): (HostRefusal, bool),
    least: Duration,
) -> Result<Option<HostBackoff>, StoreError> {
    const KEEP: &str = "
        insert into refusals (resource_id, host, at, http_code) values ($1, $2, $3, $4)
            on conflict (resource_id) do update
           set host = excluded.host, at = excluded.at, http_code = excluded.http_code";
    const MAKE: &str = "
        insert into hosts (host, next_fetch_at, last_fetch_at, fetch_interval)
        values ($1, 0, 0, 0)
            on conflict (host) do nothing";
    const COOL: &str = "
        update hosts
           set backoff_until = $2, learned_interval = $3, last_backoff_at = $4, backoffs = $5,
               next_fetch_at = case when next_fetch_at < $2 then $2 else next_fetch_at end
         where host = $1";
    tx.execute(MAKE, params![refused.group.as_str()]).await?;
    let (host, well_at) = known(tx, &refused.group, "{for update}").await?;
    refused.at = tx.at(refused.at);
    let name = refused.group.as_str();
    let code = i64::from(refused.http_code);
    if is_no_evidence((&refused, is_anonymous), well_at) {
        return Ok(None);
    }
    tx.execute(KEEP, params![refused.resource.0, name, refused.at, code]).await?;
    let seen = evidence(tx, &refused, well_at).await?;
    let Some(verdict) = host.refused(&refused, seen, least) else { return Ok(None) };

    let until = verdict.leave_alone.0;
    let spacing = i64::try_from(verdict.host.spacing.as_micros()).unwrap_or(i64::MAX / 4);
    let slow_downs = i64::from(verdict.host.slow_downs);
    tx.execute(COOL, params![name, until, spacing, refused.at, slow_downs]).await?;
    pause(tx, Pause::new(&refused, &verdict, (0, 1))).await?;
    Ok(Some(verdict))
}

/// Returns whether a refusal concerns its URL only, because the group answers others well and never
/// answered this one well: a URL that requires a password or does not work, which anybody may name. A 429 is
/// believed unless a stranger named the URL: the first of many feeds of one server that an account adds.
fn is_no_evidence(
    (refused, is_anonymous): (&HostRefusal, bool),
    well_at: Option<DateTime<Utc>>,
) -> bool {
    let within = match refused.http_code {
        429 if is_anonymous => host::BLOCK_WITHIN,
        401 | 403 => host::BLOCK_WITHIN,
        503 => host::TOGETHER,
        _ => return false,
    };
    !refused.was_read && well_at.is_some_and(|at| at > refused.at - within)
}

/// A pause of a group, which delays its resources.
#[derive(Clone, Debug)]
pub(crate) struct Pause {
    group: String,
    begins: DateTime<Utc>,
    until: DateTime<Utc>,
    why: String,
    spacing: Duration,
    /// The place of the first resource among those that are polled after the pause, and the number
    /// of places from each to the next.
    places: (usize, usize),
}

impl Pause {
    /// Returns the pause that a refusal led to, for the resources that take these places after it.
    pub(crate) fn new(
        refused: &HostRefusal,
        backoff: &HostBackoff,
        places: (usize, usize),
    ) -> Pause {
        let (until, why) = backoff.leave_alone.clone();
        let (group, begins, spacing) = (refused.group.clone(), refused.at, backoff.host.spacing);
        Pause { group, begins, until, why, spacing, places }
    }
}

impl Db {
    /// Delays the resources of a group until after a pause.
    pub(crate) async fn pause_group(&self, paused: Pause) -> Result<(), StoreError> {
        let moved = move |tx: &Tx<'_>| Pause {
            begins: tx.at(paused.begins),
            until: tx.at(paused.until),
            ..paused
        };
        self.write(move |tx| Box::pin(pause(tx, moved(tx)))).await
    }
}

/// Delays the resources of a group that are due before the end of the pause, except those that
/// are being polled; at most [`MOST_PAUSED`]. They are polled one after the other behind it. The
/// claim that reads one of the others delays it, as it does with every resource of a group that is
/// not free.
async fn pause(tx: &Tx<'_>, paused: Pause) -> Result<(), StoreError> {
    const WAITING: &str = "
        select id from resources
         where subscribers > 0 and host = $1 and due_at < $2
           and (claimed_until is null or claimed_until <= $3)
         order by due_at
         limit $4
           {skip locked}";
    let Pause { group, begins, until, why, spacing, places: (first, step) } = paused;
    let found = tx.query(WAITING, params![group, until, begins, MOST_PAUSED]).await?;
    let ids = found.into_iter().map(|mut row| row.int()).collect::<Result<Vec<_>, _>>()?;
    let resumed = ids
        .into_iter()
        .enumerate()
        .map(|(n, id)| (id, host::resume_at(until, first + n * step + 1, spacing)));
    put_off(tx, resumed.collect(), &why).await
}

async fn evidence(
    tx: &Tx<'_>,
    refused: &HostRefusal,
    well_at: Option<DateTime<Utc>>,
) -> Result<RefusalEvidence, StoreError> {
    const COUNT: &str = "
        select count(case when http_code in (429, 503) and at > $3 then 1 end),
               count(case when http_code = 403 and at > $3 and at > $4 then 1 end),
               count(case when http_code = $5 and at > $4 then 1 end)
          from (select http_code, at from refusals
                 where host = $1 and at > $2 order by at desc limit $6) newest";
    let at = refused.at;
    let (day, together) = (at - host::BLOCK_WITHIN, at - host::TOGETHER);
    let code = i64::from(refused.http_code);
    let since_well = well_at.unwrap_or_default();
    let group = refused.group.as_str();
    let params = params![group, day, together, since_well, code, MOST_REFUSALS];
    let Some(mut row) = tx.first(COUNT, params).await? else {
        return Ok(RefusalEvidence::default());
    };
    Ok(RefusalEvidence { busy: row.small()?, forbidden: row.small()?, alike: row.small()? })
}
