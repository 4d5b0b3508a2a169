//! Sends the entries of a first document that were published after a subscription was made (rule N5).
//!
//! A first document is sent to nobody, because it existed before. A resource that could not be read when
//! it was subscribed to may publish until it can: what it dates after a subscription is new to that
//! subscription. Such entries are appended last, in the order of their dates, so that one cursor
//! separates them from the others for each subscription.

use chrono::{DateTime, Utc};

use crate::engine::sql::{Value, params};
use crate::engine::tx::Tx;
use crate::log::records::After;
use feedgate_core::change_detection::FeedDocument;
use feedgate_core::resource::ResourceId;
use feedgate_core::store::StoreError;

/// An appended entry of a first document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PublishedSince {
    /// The number of its record.
    pub(crate) seq: i64,
    /// The entry is new to subscriptions that were made before this time.
    until: DateTime<Utc>,
}

/// Returns the appended entries that are new to a subscription made at `since`. `seqs` are the numbers
/// of the records of all entries of the document.
pub(crate) fn appended(
    document: &FeedDocument,
    seqs: &[Option<i64>],
    since: Option<DateTime<Utc>>,
) -> Vec<PublishedSince> {
    let Some(since) = since else { return Vec::new() };
    let entries = document.candidates.iter().zip(seqs);
    let entries = entries.filter_map(|(candidate, seq)| {
        let until = document.new_to_earlier_than(candidate)?;
        (until > since).then_some(PublishedSince { seq: (*seq)?, until })
    });
    entries.collect()
}

/// Sets the cursors of subscriptions that are up to date before the first of these entries that is new
/// to them; that of a subscription to bodies before the body. Streams begin there, too.
pub(crate) async fn set_back(
    tx: &Tx<'_>,
    id: ResourceId,
    entries: &[PublishedSince],
    after: &After,
) -> Result<(), StoreError> {
    const MADE_EARLIER: &str = "
        select id, created_at, case when format = 'raw' then 1 else 0 end
          from subscriptions
         where resource_id = $1 and created_at < $2
           and (format <> 'raw' or cast($3 as bigint) > 0)
           and cursor = case when format = 'raw' then cast($3 as bigint)
                             else cast($4 as bigint) end";
    const SET_BACK: &str = "
        update subscriptions
           set cursor = {given cursor},
               begun_after = case when begun_after > {given begun} then {given begun}
                                  else begun_after end
        {from rows}
         where resource_id = $1 and subscriptions.id = {given id}";
    let Some(last) = entries.last() else { return Ok(()) };
    let params = params![id.0, last.until, after.body_version, after.head];
    let (mut ids, mut cursors, mut begun) = (Vec::new(), Vec::new(), Vec::new());
    for mut row in tx.query(MADE_EARLIER, params).await? {
        let (number, made_at, is_raw) = (row.int()?, row.time()?, row.int()? == 1);
        // The entries are in the order of these times.
        let first = entries.partition_point(|entry| entry.until <= made_at);
        let Some(first) = entries.get(first) else { continue };
        ids.push(number);
        cursors.push(if is_raw { after.body_version } else { first.seq } - 1);
        begun.push(first.seq - 1);
    }
    let columns =
        [("id", Value::Ints(ids)), ("cursor", Value::Ints(cursors)), ("begun", Value::Ints(begun))];
    tx.execute_rows(SET_BACK, params![id.0], &columns).await.map(drop)
}
