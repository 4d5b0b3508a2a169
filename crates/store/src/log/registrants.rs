//! The networks of the strangers for whom a resource is stored.

use futures_util::try_join;

use crate::engine::sql::params;
use crate::engine::tx::Tx;
use feedgate_core::registrant::RegistrantNetwork;
use feedgate_core::resource::ResourceId;
use feedgate_core::store::StoreError;

/// The oldest subscriptions of a resource whose networks are looked at, and the most networks. A stranger
/// who subscribed first from that many networks, each with its budget used up, delays others by a day.
const OLDEST_SUBSCRIPTIONS: i64 = 64;
const MOST_NETWORKS: usize = 16;

/// The strangers for whom a resource is stored that no account watches.
pub(super) struct Registrants {
    /// The networks from which its oldest subscriptions were requested, in their order; if there are no
    /// subscriptions, that of the client that asked for the resource first. Only known ones.
    pub(super) networks: Vec<RegistrantNetwork>,
    /// Whether there are subscriptions.
    pub(super) has_subscriptions: bool,
}

/// Returns the registrants of a resource.
pub(super) async fn find_registrants(
    tx: &Tx<'_>,
    id: ResourceId,
) -> Result<Registrants, StoreError> {
    const OLDEST: &str = "
        select registrant_network from subscriptions where resource_id = $1 order by id limit $2";
    let of_oldest = params![id.0, OLDEST_SUBSCRIPTIONS];
    let (oldest, first) = try_join!(tx.query(OLDEST, of_oldest), first_registrant(tx, id))?;
    let has_subscriptions = !oldest.is_empty();
    let mut found = oldest
        .into_iter()
        .map(|mut row| row.int().map(RegistrantNetwork::from_number))
        .collect::<Result<Vec<_>, _>>()?;
    if !has_subscriptions {
        found.push(first);
    }
    let mut networks = Vec::new();
    for network in found {
        if network.is_known() && !networks.contains(&network) && networks.len() < MOST_NETWORKS {
            networks.push(network);
        }
    }
    Ok(Registrants { networks, has_subscriptions })
}

/// Returns the network of the stranger who was the first to name a resource, as far as it is known.
pub(crate) async fn first_registrant(
    tx: &Tx<'_>,
    id: ResourceId,
) -> Result<RegistrantNetwork, StoreError> {
    const FIRST: &str = "select registrant_network from resources where id = $1";
    let first = tx.first(FIRST, params![id.0]).await?;
    first.map_or(Ok(RegistrantNetwork::UNKNOWN), |mut row| {
        row.int().map(RegistrantNetwork::from_number)
    })
}
