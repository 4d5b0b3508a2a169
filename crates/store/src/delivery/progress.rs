//! How far the deliveries of a resource are.

use chrono::{DateTime, Utc};

use crate::delivery::owed::is_ready;
use crate::engine::tx::Tx;
use feedgate_core::resource::ResourceId;
use feedgate_core::store::{DeliveryProgress, LogNumbers, StoreError};

/// Returns how many subscriptions have received what was stored after `before`, and how many still
/// wait for it.
pub(crate) async fn delivery_progress(
    tx: &Tx<'_>,
    resource: ResourceId,
    before: LogNumbers,
    now: DateTime<Utc>,
) -> Result<DeliveryProgress, StoreError> {
    const TELLING: &str = concat!(
        "select coalesce(sum(case when s.format = 'raw'
                                  then case when s.cursor >= r.body_version
                                             and r.body_version > $3 then 1 else 0 end
                                  else case when s.cursor >= r.head
                                             and r.head > $2 then 1 else 0 end end), 0),
                coalesce(sum(case when ",
        is_ready!("$4"),
        "                         then 1 else 0 end), 0)
           from subscriptions s
           join resources r on r.id = s.resource_id
          where s.resource_id = $1 and s.lease_until > $4"
    );
    let params = [resource.0.into(), before.head.0.into(), before.body_version.into(), now.into()];
    let Some(mut row) = tx.first(TELLING, &params).await? else {
        return Ok(DeliveryProgress::default());
    };
    Ok(DeliveryProgress { told: row.count()?, waiting: row.count()? })
}
