//! What was found → the hub or cloud that the resource advertises.

use url::Url;

use crate::domain::resource::Resource;
use crate::domain::subscription::Secret;
use crate::domain::upstream::{Offer, Offered, Proposal};

use super::look::Found;

/// The hub or cloud that a document advertises. Nobody need tell us what we tell
/// ourselves: our own hub is none, nor one that we cannot name.
pub(super) fn offered(found: &Found, resource: &Resource, own: &Url) -> Offered {
    let (feed, fresh) = match found {
        Found::Feed { feed, fresh } => (Some(&**feed), fresh),
        Found::Other(fresh) => (None, fresh),
        Found::NotModified { .. } | Found::Same(_) | Found::Partless(_) | Found::Trouble(_) => {
            return Offered::Unknown;
        }
    };
    let offer = Offer::of(&fresh.links, feed, &resource.fetch_url);
    match offer.filter(|offer| !offer.is_within(own)) {
        Some(offer) => proposal(offer).map_or(Offered::Unknown, Offered::Upstream),
        None => Offered::Nothing,
    }
}

/// An offer with what a subscription would need; `None` if the system gives no random
/// numbers just now.
fn proposal(offer: Offer) -> Option<Proposal> {
    let random = || {
        let mut bits = [0; 16];
        getrandom::fill(&mut bits).ok().map(|()| hex::encode(bits))
    };
    Some(Proposal { offer, token: random()?, secret: Secret::new(random()?)? })
}
