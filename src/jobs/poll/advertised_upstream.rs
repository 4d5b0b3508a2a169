//! What was found → the hub or cloud that the resource advertises.

use url::Url;

use crate::jobs::runner::nonce;
use feedgate_core::resource::Resource;
use feedgate_core::subscription::Secret;
use feedgate_core::upstream::{AdvertisedUpstream, Proposal, UpstreamFinding};

use super::observe::Found;

/// The hub or cloud that a document advertises. Nobody need tell us what we tell
/// ourselves: our own hub is none.
pub(super) fn offered(found: &Found, resource: &Resource, own: &Url) -> UpstreamFinding {
    let (feed, fresh) = match found {
        Found::Feed { feed, fresh } => (Some(&**feed), fresh),
        Found::Other(fresh) => (None, fresh),
        Found::NotModified { .. } | Found::Same(_) | Found::Partless(_) | Found::Trouble(_) => {
            return UpstreamFinding::Unknown;
        }
    };
    let offer = AdvertisedUpstream::of(&fresh.links, feed, &resource.fetch_url);
    match offer.filter(|offer| !offer.is_within(own)) {
        Some(offer) => {
            UpstreamFinding::Upstream(Proposal { offer, token: nonce(), secret: secret() })
        }
        None => UpstreamFinding::Nothing,
    }
}

fn secret() -> Secret {
    Secret::new(nonce()).expect("a nonce is shorter than a secret may be")
}
