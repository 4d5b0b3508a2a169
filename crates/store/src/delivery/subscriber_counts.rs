//! The number of subscriptions of each resource.

use crate::engine::sql::Value;
use crate::engine::tx::Tx;
use feedgate_core::ports::StoreError;

/// Subtracts ended subscriptions from the counts of their resources, which are locked; a resource
/// appears in `resources` once for each of them.
pub(crate) async fn count_off(tx: &Tx<'_>, resources: &[i64]) -> Result<(), StoreError> {
    const COUNT: &str = "
        update resources
           set subscribers = subscribers - given.gone
          from {rows}
         where resources.id = given.resource_id and resources.kind <> 'collection'";
    let mut ended = std::collections::BTreeMap::new();
    for id in resources {
        *ended.entry(*id).or_insert(0) += 1;
    }
    let columns = [
        ("resource_id", Value::Ints(ended.keys().copied().collect())),
        ("gone", Value::Ints(ended.values().copied().collect())),
    ];
    tx.execute_rows(COUNT, &[], &columns).await.map(drop)
}
