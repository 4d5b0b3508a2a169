//! Creating a resource for a topic that has none.

use chrono::{DateTime, Utc};

use crate::changes::pings;
use crate::engine::sql::params;
use crate::engine::tx::{Tx, Wake};
use crate::resources::row::{resource, resource_columns};
use crate::resources::{details, names};
use feedgate_core::host_groups::HostGroups;
use feedgate_core::registrant::RegistrantNetwork;
use feedgate_core::resource::{Resource, ResourceKind};
use feedgate_core::status::Status;
use feedgate_core::store::StoreError;
use feedgate_core::topic::Topic;

/// Returns the resource with this topic, created if there is none, locked until the transaction
/// ends. `registrant` is the network of the stranger who asks for it.
pub(crate) async fn ensure(
    tx: &Tx<'_>,
    groups: &HostGroups,
    (topic, registrant): (&Topic, RegistrantNetwork),
    now: DateTime<Utc>,
) -> Result<Resource, StoreError> {
    const MAKE: &str = "
        insert into resources (topic, fetch_url, host, kind, next_fetch, due_at, measured_at,
                               unwatched_since, registrant_network)
        values ($1, $2, $3, $4, $5, $5, $5, $5, $6)
            on conflict (topic) do nothing
        returning id";
    const LOCK: &str = concat!(
        "select ",
        resource_columns!(),
        " from resources r join resource_details d on d.resource_id = r.id
         where r.topic = $1
           {for update}"
    );
    if let Some(mut known) = tx.first(LOCK, params![topic.as_str()]).await? {
        return resource(&mut known);
    }
    let fetch_url = topic.fetch_url();
    #[rustfmt::skip]
    let params = params![
        topic.as_str(), fetch_url.as_str(), groups.name(&fetch_url), ResourceKind::Unknown.as_str(), now,
        registrant.as_number(),
    ];
    let made = tx.first(MAKE, params).await?.map(|mut row| row.int()).transpose()?;
    if let Some(id) = made {
        details::make(tx, id, &Status::new(now)).await?;
    }
    let locked = tx.first(LOCK, params![topic.as_str()]).await?;
    let mut locked = locked.ok_or_else(|| StoreError::Corrupt("a resource vanished".to_owned()))?;
    let resource = resource(&mut locked)?;
    if made.is_some() {
        names::insert(tx, resource.id.0, topic).await?;
        pings::name(tx, resource.id, "topic", topic.as_str()).await?;
        pings::name(tx, resource.id, "fetch", fetch_url.as_str()).await?;
        tx.wake(Wake::Resources);
    }
    Ok(resource)
}
