//! Whom an append concerns: subscriptions that become due, and those that are moved past
//! what they are not sent.

use chrono::{DateTime, Utc};

use crate::collections::enqueue;
use crate::engine::sql::params;
use crate::engine::tx::{Tx, Wake};
use crate::log::records::After;
use feedgate_core::ports::StoreError;
use feedgate_core::record::Audience;
use feedgate_core::resource::ResourceId;
use feedgate_core::status::Status;

/// The least audience of the records that a subscription is sent (`Updates::least`).
macro_rules! least_audience {
    () => {
        "case updates when 'always' then 1 when 'fresh' then 2 else 3 end"
    };
}

/// Makes due whom what was kept concerns, collections included, and moves the others past
/// it. `head` and
/// `body_version` are those before. Nobody is told if `silent`.
pub(crate) async fn mark_due(
    tx: &Tx<'_>,
    id: ResourceId,
    (at, silent): (DateTime<Utc>, bool),
    ((head, body_version), after): ((i64, i64), &After),
) -> Result<(), StoreError> {
    if silent {
        // A body after the first is a change of it, whatever it has turned out to be.
        let there_before = if body_version == 0 { after.body_version } else { 0 };
        skip(tx, id, (head, body_version), (after.head, there_before)).await?;
    } else if after.head > head {
        if after.audience < Audience::Everybody {
            advance_cursors(tx, id, head, after).await?;
        }
        if after.audience > Audience::Nobody {
            enqueue::enqueue(tx, id, (head, after.head), at).await?;
        }
    }
    if after.head > head || after.body_version > body_version {
        mark_subscriptions_due(tx, id, at, after).await?;
    }
    Ok(())
}

/// How often a status changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Versions {
    /// Into or out of error, to gone, or to another address.
    pub(crate) all: i64,
    /// So that it is news to those who want no false alarms.
    pub(crate) announced: i64,
}

impl Versions {
    /// Those of this status.
    pub(crate) fn from_status(status: &Status) -> Versions {
        Versions { all: status.version, announced: status.announced.version }
    }
}

/// Makes due whoever follows a collection, whose log ended at `head`.
pub(crate) async fn followers(
    tx: &Tx<'_>,
    id: ResourceId,
    at: DateTime<Utc>,
    (head, after): (i64, &After),
) -> Result<(), StoreError> {
    if after.audience < Audience::Everybody {
        advance_cursors(tx, id, head, after).await?;
    }
    mark_subscriptions_due(tx, id, at, after).await
}

/// Makes due whom a change of the status concerns (rule P33).
pub(crate) async fn mark_due_for_status(
    tx: &Tx<'_>,
    id: ResourceId,
    (before, after): (Versions, Versions),
    at: DateTime<Utc>,
) -> Result<(), StoreError> {
    const LAGGING: &str = "
        update subscriptions
           set due_at = $2
         where resource_id = $1 and due_at is null and lease_until > $2
           and acknowledged_status < case statuses when 'always' then cast($3 as bigint)
                                           when 'transitions' then cast($4 as bigint)
                                           else 0 end";
    if before == after {
        return Ok(());
    }
    if tx.execute(LAGGING, params![id.0, at, after.all, after.announced]).await? > 0 {
        tx.wake(Wake::Subscriptions).await?;
    }
    Ok(())
}

/// Makes every live subscription due that is now behind, and wants some of it. One that
/// is being told, or waits for a retry, already has a later time: what is new comes with
/// that (rule D2).
async fn mark_subscriptions_due(
    tx: &Tx<'_>,
    id: ResourceId,
    at: DateTime<Utc>,
    after: &After,
) -> Result<(), StoreError> {
    const BEHIND: &str = concat!(
        "update subscriptions
            set due_at = $2
          where resource_id = $1 and due_at is null and lease_until > $2
            and case when format = 'raw' then cursor < $4
                     else cursor < $3 and ",
        least_audience!(),
        " <= cast($5 as bigint) end"
    );
    let params = params![id.0, at, after.head, after.body_version, after.audience.number()];
    if tx.execute(BEHIND, params).await? > 0 {
        tx.wake(Wake::Subscriptions).await?;
    }
    Ok(())
}

/// Moves those who had been told everything, and want nothing of what was appended, to the
/// new head.
async fn advance_cursors(
    tx: &Tx<'_>,
    id: ResourceId,
    head: i64,
    after: &After,
) -> Result<(), StoreError> {
    const PASS: &str = concat!(
        "update subscriptions
            set cursor = $2
          where resource_id = $1 and due_at is null and format <> 'raw' and cursor >= $3
            and ",
        least_audience!(),
        " > cast($4 as bigint)"
    );
    let params = params![id.0, after.head, head, after.audience.number()];
    tx.execute(PASS, params).await.map(drop)
}

/// Moves those who had been told everything past what nobody is to be told: up to `head`,
/// or `body_version` where that is further. Of who is being told of the status, or waits to
/// be, the cursor moves as well: settling never moves one back.
async fn skip(
    tx: &Tx<'_>,
    id: ResourceId,
    before: (i64, i64),
    (head, body_version): (i64, i64),
) -> Result<(), StoreError> {
    const SKIP: &str = "
        update subscriptions
           set cursor = case when format <> 'raw' then cast($3 as bigint)
                             when cursor < cast($2 as bigint) then cast($2 as bigint)
                             else cursor end
         where resource_id = $1
           and cursor >= case when format = 'raw' then cast($4 as bigint)
                              else cast($5 as bigint) end";
    let params = params![id.0, body_version, head, before.1, before.0];
    tx.execute(SKIP, params).await.map(drop)
}
