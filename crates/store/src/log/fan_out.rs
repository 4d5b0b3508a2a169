//! Fan-out of an append: marks subscriptions due, and advances the cursors of subscriptions that
//! are not sent the new records.

use chrono::{DateTime, Utc};
use futures_util::try_join;

use crate::collections::enqueue;
use crate::delivery::backlogs::{mark_selected, marked_columns};
use crate::delivery::owed::next_change;
use crate::engine::sql::params;
use crate::engine::tx::Tx;
use crate::log::pending_fan_outs;
use crate::log::published_since::{self, PublishedSince};
use crate::log::records::After;
use crate::search::filling;
use feedgate_core::record::Audience;
use feedgate_core::resource::ResourceId;
use feedgate_core::status::Status;
use feedgate_core::store::StoreError;

/// The least audience of the records that are sent to a subscription (`Updates::least`).
macro_rules! least_audience {
    () => {
        "case updates when 'always' then 1 when 'fresh' then 2 else 3 end"
    };
}

/// The newest record and body of a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LogState {
    /// The number of the newest record.
    pub(crate) head: i64,
    /// The version of the newest body.
    pub(crate) body_version: i64,
}

/// A change of a log that subscribers may have to receive.
pub(crate) struct LogChange<'a> {
    /// When the change was stored.
    pub(crate) at: DateTime<Utc>,
    /// Whether the new records are sent to nobody, except for `new_entries`.
    pub(crate) is_silent: bool,
    /// The last of the new records of a silent change, which were published after subscriptions were made.
    pub(crate) new_entries: &'a [PublishedSince],
    /// Whether the new body is sent to nobody either, if the change is silent.
    pub(crate) is_baseline: bool,
    /// How many subscribers the resource has.
    pub(crate) subscribers: u32,
    /// The state before the change.
    pub(crate) before: LogState,
    /// The state after the change.
    pub(crate) after: &'a After,
}

/// Marks the subscriptions and collections due that receive some of `change`, and advances the
/// cursors of the others.
pub(crate) async fn mark_due(
    tx: &Tx<'_>,
    id: ResourceId,
    change: LogChange<'_>,
) -> Result<(), StoreError> {
    let LogChange { at, is_silent, new_entries, is_baseline, subscribers, before, after } = change;
    let is_changed = after.head > before.head || after.body_version > before.body_version;
    let is_large = pending_fan_outs::is_large(subscribers);
    if after.head > before.head {
        queue_for_search_and_collections(tx, id, &change).await?;
    }
    if is_silent {
        // Unless nobody was subscribed, a silent poll hides only the first body: any later body is a
        // change of the resource.
        let is_hidden = is_baseline || before.body_version == 0;
        let body_version = if is_hidden { after.body_version } else { 0 };
        skip(tx, id, before, LogState { head: after.head, body_version }).await?;
        published_since::set_back(tx, id, new_entries, after).await?;
    } else if after.head > before.head {
        // Of a large resource, whoever is not sent this update is found to be up to date later.
        let is_advanced = match after.audience {
            Audience::Everybody => false,
            Audience::Nobody => true,
            _ => !is_large,
        };
        if is_advanced {
            advance_cursors(tx, id, before.head, after).await?;
        }
    }
    match (is_changed, is_large) {
        (false, _) => Ok(()),
        (true, false) => mark_subscriptions_due(tx, id, at, after).await,
        (true, true) => pending_fan_outs::begin_fan_out(tx, id, at).await,
    }
}

/// Queues the new records for the search index and, unless they are sent to nobody, for collections.
async fn queue_for_search_and_collections(
    tx: &Tx<'_>,
    id: ResourceId,
    change: &LogChange<'_>,
) -> Result<(), StoreError> {
    let LogChange { at, is_silent, new_entries, before, after, .. } = *change;
    let collect = async {
        let collected_from = match (is_silent, new_entries.first()) {
            (true, Some(first)) => first.seq - 1,
            (true, None) => return Ok(()),
            (false, _) if after.audience == Audience::Nobody => return Ok(()),
            (false, _) => before.head,
        };
        enqueue::enqueue(tx, id, collected_from, after.head, at).await
    };
    try_join!(filling::queue(tx, id, (before.head, after.head), at), collect).map(drop)
}

/// The versions of a status, which count its changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Versions {
    /// The number of all transitions: into or out of an error, gone, moved.
    pub(crate) all: i64,
    /// The number of lasting transitions, which are announced.
    pub(crate) announced: i64,
}

impl Versions {
    /// Returns the versions of `status`.
    pub(crate) fn from_status(status: &Status) -> Versions {
        Versions { all: status.version, announced: status.announced.version }
    }
}

/// Marks the subscriptions of a collection due after an append. `head` is the head before the
/// append.
pub(crate) async fn mark_collection_subscriptions_due(
    tx: &Tx<'_>,
    id: ResourceId,
    at: DateTime<Utc>,
    head: i64,
    after: &After,
) -> Result<(), StoreError> {
    if after.audience < Audience::Everybody {
        advance_cursors(tx, id, head, after).await?;
    }
    mark_subscriptions_due(tx, id, at, after).await
}

/// Marks the subscriptions due that are notified of a change of the status (rule P33).
pub(crate) async fn mark_due_for_status(
    tx: &Tx<'_>,
    id: ResourceId,
    (before, after): (Versions, Versions),
    at: DateTime<Utc>,
) -> Result<(), StoreError> {
    const LAGGING: &str = concat!(
        "select ",
        marked_columns!(),
        " from subscriptions s
          where s.resource_id = $1 and statuses <> 'never' and lease_until > $2
            and paused_at is null
            and acknowledged_status < case statuses when 'always' then cast($3 as bigint)
                                            when 'transitions' then cast($4 as bigint)
                                            else 0 end"
    );
    const TRY_AGAIN: &str = concat!(
        "update subscriptions set retry_at = null
          where resource_id = $1 and statuses <> 'never' and retry_at > ",
        next_change!()
    );
    if before == after {
        return Ok(());
    }
    tx.execute(TRY_AGAIN, params![id.0]).await?;
    let params = params![id.0, at, after.all, after.announced];
    mark_selected(tx, LAGGING, params, at).await
}

/// Marks the backlogs of all active subscriptions that receive some of the new records. A subscription that
/// waits for a retry is sent them with that delivery (rule D2).
async fn mark_subscriptions_due(
    tx: &Tx<'_>,
    id: ResourceId,
    at: DateTime<Utc>,
    after: &After,
) -> Result<(), StoreError> {
    const BEHIND: &str = concat!(
        "select ",
        marked_columns!(),
        " from subscriptions s
          where s.resource_id = $1 and lease_until > $2 and paused_at is null
            and (retry_at is null or retry_at <= $2 or retry_at > ",
        next_change!(),
        "   ) and case when format = 'raw' then cursor < $4
                     else cursor < $3 and ",
        least_audience!(),
        " <= cast($5 as bigint) end"
    );
    let params = params![id.0, at, after.head, after.body_version, after.audience.number()];
    mark_selected(tx, BEHIND, params, at).await
}

/// Advances the cursors of subscriptions that were up to date, and receive none of the appended
/// records, to the new head.
async fn advance_cursors(
    tx: &Tx<'_>,
    id: ResourceId,
    head: i64,
    after: &After,
) -> Result<(), StoreError> {
    const PASS: &str = concat!(
        "update subscriptions
            set cursor = $2
          where resource_id = $1 and format <> 'raw' and cursor >= $3 and ",
        least_audience!(),
        " > cast($4 as bigint)"
    );
    let params = params![id.0, after.head, head, after.audience.number()];
    tx.execute(PASS, params).await.map(drop)
}

/// Advances the cursors of subscriptions that were up to date past records that are sent to nobody:
/// to the head or the body version of `to`. The cursor of a subscription with a pending status
/// notification moves too, because recording its result never moves a cursor back. Subscriptions that
/// began at the head begin behind these records.
async fn skip(
    tx: &Tx<'_>,
    id: ResourceId,
    before: LogState,
    to: LogState,
) -> Result<(), StoreError> {
    const SKIP: &str = "
        update subscriptions
           set cursor = case when format <> 'raw' then cast($3 as bigint)
                             when cursor < cast($2 as bigint) then cast($2 as bigint)
                             else cursor end,
               begun_after = case when begun_after >= cast($5 as bigint) then cast($3 as bigint)
                                  else begun_after end
         where resource_id = $1
           and cursor >= case when format = 'raw' then cast($4 as bigint)
                              else cast($5 as bigint) end";
    let params = params![id.0, to.body_version, to.head, before.body_version, before.head];
    tx.execute(SKIP, params).await.map(drop)
}
