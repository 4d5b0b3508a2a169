//! Replays: records that were delivered before are delivered again.

use chrono::{DateTime, Utc};

use crate::delivery::generations::next_generation;
use crate::delivery::queue;
use crate::engine::sql::params;
use crate::engine::tx::Tx;
use crate::resources::row;
use feedgate_core::ports::StoreError;
use feedgate_core::record::Seq;
use feedgate_core::subscription::SubscriptionId;

/// Sets a cursor back. A delivery in progress ends first, because its result would advance the
/// cursor again.
pub(crate) async fn replay(
    tx: &Tx<'_>,
    id: SubscriptionId,
    cursor: Seq,
    now: DateTime<Utc>,
) -> Result<bool, StoreError> {
    const REPLAY: &str = concat!(
        "update subscriptions
           set cursor = case when cast($4 as bigint) = 1 then cursor else $3 end,
               replayed_upto = case when replayed_upto < cursor then cursor else replayed_upto end,
               replays = replays + 1, ",
        next_generation!(),
        " where resource_id = $1 and id = $2 and cursor >= $3
         returning case when paused_at is null then 0 else 1 end"
    );
    row::lock(tx, vec![id.resource.0]).await?;
    let is_in_progress = queue::lock_in_progress(tx, id, now).await?;
    let cursor = cursor.0.max(0);
    let params = params![id.resource.0, id.number, cursor, is_in_progress];
    let Some(mut replayed) = tx.first(REPLAY, params).await? else { return Ok(false) };
    let is_paused = replayed.int()? != 0;
    if is_in_progress {
        queue::replay_after(tx, id, cursor).await?;
        return Ok(true);
    }
    // An earlier replay may wait for the end of a delivery whose node died.
    queue::remove_one(tx, id).await?;
    if !is_paused {
        queue::enqueue_subscription(tx, id, now).await?;
    }
    Ok(true)
}
