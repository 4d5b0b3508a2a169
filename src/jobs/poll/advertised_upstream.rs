//! The hub or cloud that a fetched document advertises.

use url::Url;

use crate::jobs::runner::nonce;
use feedgate_core::resource::Resource;
use feedgate_core::signing::Secret;
use feedgate_core::upstream::{AdvertisedUpstream, Proposal, UpstreamFinding};

use super::observation::Found;

/// Returns the hub or cloud that a document advertises. This gateway's own hub, below `own`, does
/// not count, because it has no information that this gateway lacks.
pub(super) fn advertised_upstream(
    found: &Found,
    resource: &Resource,
    own: &Url,
) -> UpstreamFinding {
    let (feed, received) = match found {
        Found::Feed { feed, received } => (Some(&**feed), received),
        Found::Other(received) => (None, received),
        Found::NotModified { .. }
        | Found::Same(_)
        | Found::FragmentMissing(_)
        | Found::Failure(_) => return UpstreamFinding::Unknown,
    };
    let offer = AdvertisedUpstream::find_in(&received.links, feed, &resource.fetch_url);
    match offer.filter(|offer| !offer.is_within(own)) {
        Some(offer) => {
            UpstreamFinding::Upstream(Proposal { offer, token: nonce(), secret: secret() })
        }
        None => UpstreamFinding::Nothing,
    }
}

fn secret() -> Secret {
    Secret::new(nonce()).expect("a nonce is shorter than the longest secret")
}
