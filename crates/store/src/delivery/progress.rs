//! How far the deliveries of a resource are.

use chrono::{DateTime, Utc};

use crate::engine::tx::Tx;
use feedgate_core::ports::{DeliveryProgress, LogNumbers, StoreError};
use feedgate_core::resource::ResourceId;

/// Returns how many subscriptions have received what was stored after `before`, and how many still
/// wait for it.
pub(crate) async fn delivery_progress(
    tx: &Tx<'_>,
    resource: ResourceId,
    before: LogNumbers,
    now: DateTime<Utc>,
) -> Result<DeliveryProgress, StoreError> {
    const TELLING: &str = "
        select coalesce(sum(case when s.format = 'raw'
                                 then case when s.cursor >= r.body_version
                                            and r.body_version > $3 then 1 else 0 end
                                 else case when s.cursor >= r.head
                                            and r.head > $2 then 1 else 0 end end), 0),
               (select cast(coalesce(sum(size), 0) as bigint) from deliveries d
                 where d.resource_id = $1 and (d.claimed_until > $4 or d.due_at <= $4))
                 + (select count(*) from fan_outs f where f.resource_id = $1)
          from subscriptions s
          join resources r on r.id = s.resource_id
         where s.resource_id = $1 and s.lease_until > $4";
    let params = [resource.0.into(), before.head.0.into(), before.body_version.into(), now.into()];
    let Some(mut row) = tx.first(TELLING, &params).await? else {
        return Ok(DeliveryProgress::default());
    };
    Ok(DeliveryProgress { told: row.count()?, waiting: row.count()? })
}
