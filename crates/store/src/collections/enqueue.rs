//! Queues new records of a resource for its collections.

use chrono::{DateTime, Utc};

use crate::engine::sql::params;
use crate::engine::tx::{Tx, Wake};
use feedgate_core::resource::ResourceId;
use feedgate_core::store::StoreError;

/// Creates or extends the cursor of each collection that receives the records after `head_before`,
/// up to `head`.
pub(crate) async fn enqueue(
    tx: &Tx<'_>,
    id: ResourceId,
    head_before: i64,
    head: i64,
    at: DateTime<Utc>,
) -> Result<(), StoreError> {
    const OWE: &str = "
        insert into collection_cursors (resource_id, collection_id, cursor, upto, due_at)
        select cast($1 as bigint), those.id, cast($2 as bigint), cast($4 as bigint),
               cast($3 as bigint)
          from (select resource_id as id from collections where name in ('all', 'track') and is_open = 1
                union
                select c.resource_id
                  from collections c
                  join subscriptions s on s.account_id = c.account_id
                 where s.account_id <> 0 and s.resource_id = $1 and s.lease_until > $3
                union
                select collection_id from collection_members where resource_id = $1) those
         where true
            on conflict (resource_id, collection_id) do update set upto = excluded.upto";
    let at = tx.at(at);
    if tx.execute(OWE, params![id.0, head_before, at, head]).await? > 0 {
        tx.wake(Wake::Collections);
    }
    Ok(())
}
