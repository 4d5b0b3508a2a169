//! The first document of a resource that has subscriptions (rule N5): which of its entries were published
//! after a subscription was made, and are therefore news.

use std::sync::Arc;

use chrono::{DateTime, Utc};

use crate::engine::sql::params;
use crate::engine::tx::Tx;
use crate::log::before::Before;
use feedgate_core::change_detection::FeedDocument;
use feedgate_core::poll::Poll;
use feedgate_core::resource::ResourceKind;
use feedgate_core::store::StoreError;

/// If this is the first document since the resource has subscriptions, moves its entries that are new to
/// any of them behind the others, makes the poll silent, and returns when the earliest subscription
/// was made. The row of the resource is locked.
pub(super) async fn put_published_since_last(
    tx: &Tx<'_>,
    before: &Before,
    poll: &mut Arc<Poll>,
    document: &mut Arc<FeedDocument>,
) -> Result<Option<DateTime<Utc>>, StoreError> {
    const EARLIEST: &str = "
        select min(created_at), (select is_baseline_known from resources where id = $1)
          from subscriptions
         where resource_id = $1";
    let is_first = poll.silent && !poll.is_baseline && before.kind == ResourceKind::Unknown;
    // Nobody was subscribed for a while, and it has been failing since somebody is, as is known below.
    let may_return = !poll.silent && before.polling.failing_since.is_some();
    if before.subscribers() == 0 || !(is_first || may_return) {
        return Ok(None);
    }
    let Some(mut row) = tx.first(EARLIEST, params![before.id().0]).await? else { return Ok(None) };
    let (earliest, is_baseline_known) = (row.opt_time()?, row.int()? == 1);
    let Some(earliest) = earliest else { return Ok(None) };
    if may_return && is_baseline_known {
        return Ok(None);
    }
    Arc::make_mut(poll).silent = true;
    Arc::make_mut(document).put_published_since_last(earliest);
    Ok(Some(earliest))
}
