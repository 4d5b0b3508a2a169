//! Pausing, resuming and retrying deliveries at the request of a subscriber.
//!
//! The resource is locked first, as in `deliveries`: an append is either committed, and its head is
//! read here, or finds here whether the subscription is paused.

use chrono::{DateTime, Utc};

use crate::delivery::deliveries::{owed, status_owed};
use crate::engine::sql::params;
use crate::engine::tx::{Tx, Wake};
use crate::resources::row;
use feedgate_core::ports::StoreError;
use feedgate_core::subscription::SubscriptionId;

/// Whether a subscription to a resource `r` is owed something.
macro_rules! is_owed {
    () => {
        concat!(
            "(cursor < ",
            owed!(),
            " or replay_from is not null or acknowledged_status < ",
            status_owed!("statuses"),
            ")"
        )
    };
}

/// Pauses deliveries. A claim stays, so that the result of a delivery in progress is recorded.
pub(crate) async fn pause(
    tx: &Tx<'_>,
    id: SubscriptionId,
    now: DateTime<Utc>,
) -> Result<(), StoreError> {
    const PAUSE: &str = "
        update subscriptions
           set paused_at = coalesce(paused_at, $3), due_at = null
         where resource_id = $1 and id = $2";
    row::lock(tx, vec![id.resource.0]).await?;
    tx.execute(PAUSE, params![id.resource.0, id.number, now]).await.map(drop)
}

/// Ends a pause.
pub(crate) async fn resume(
    tx: &Tx<'_>,
    id: SubscriptionId,
    now: DateTime<Utc>,
) -> Result<(), StoreError> {
    const RESUME: &str = concat!(
        "update subscriptions
            set paused_at = null,
                due_at = case when subscriptions.claimed_until > $3 then subscriptions.claimed_until
                              when ",
        is_owed!(),
        " then cast($3 as bigint) end
           from resources r
          where r.id = subscriptions.resource_id
            and subscriptions.resource_id = $1 and subscriptions.id = $2
            and paused_at is not null"
    );
    row::lock(tx, vec![id.resource.0]).await?;
    if tx.execute(RESUME, params![id.resource.0, id.number, now]).await? > 0 {
        tx.wake(Wake::Subscriptions).await?;
    }
    Ok(())
}

/// Makes a delivery that is owed due at once, unless it is in progress.
pub(crate) async fn retry(
    tx: &Tx<'_>,
    id: SubscriptionId,
    now: DateTime<Utc>,
) -> Result<bool, StoreError> {
    const RETRY: &str = concat!(
        "update subscriptions
            set due_at = case when subscriptions.claimed_until > $3 then subscriptions.due_at
                              else $3 end
           from resources r
          where r.id = subscriptions.resource_id
            and subscriptions.resource_id = $1 and subscriptions.id = $2
            and paused_at is null and ",
        is_owed!()
    );
    row::lock(tx, vec![id.resource.0]).await?;
    let is_retried = tx.execute(RETRY, params![id.resource.0, id.number, now]).await? > 0;
    if is_retried {
        tx.wake(Wake::Subscriptions).await?;
    }
    Ok(is_retried)
}
