//! Replays: records that were delivered before are delivered again.

use chrono::{DateTime, Utc};

use crate::delivery::backlogs;
use crate::delivery::generations::next_generation;
use crate::delivery::pausing;
use crate::engine::sql::params;
use crate::engine::tx::Tx;
use crate::resources::row;
use feedgate_core::record::Seq;
use feedgate_core::store::StoreError;
use feedgate_core::subscription::SubscriptionId;

/// Sets a cursor back. The result of a delivery that was claimed before does not move it. If the cursor is
/// further back already, so that more is owed, that is made due without waiting for its retry. Returns whether
/// anything is due now.
pub(crate) async fn replay(
    tx: &Tx<'_>,
    id: SubscriptionId,
    cursor: Seq,
    now: DateTime<Utc>,
) -> Result<bool, StoreError> {
    const REPLAY: &str = concat!(
        "update subscriptions
           set cursor = $3, retry_at = null,
               replayed_upto = case when replayed_upto < cursor then cursor else replayed_upto end,
               replays = replays + 1, ",
        next_generation!(),
        " where resource_id = $1 and id = $2 and cursor >= $3"
    );
    row::lock(tx, vec![id.resource.0]).await?;
    let params = params![id.resource.0, id.number, cursor.0.max(0)];
    if tx.execute(REPLAY, params).await? == 0 {
        return pausing::retry(tx, id, now).await;
    }
    backlogs::mark_one(tx, id, now).await?;
    Ok(true)
}
