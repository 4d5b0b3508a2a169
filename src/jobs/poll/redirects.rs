//! Where a resource was found, and when its fetch URL is replaced by that address (rules P20 to
//! P23).

use chrono::{DateTime, Utc};
use url::Url;

use crate::net::ResourceLocation;
use feedgate_core::moves::{self, RedirectSighting};
use feedgate_core::poll::Poll;
use feedgate_core::resource::Resource;
use feedgate_core::topic::displayed;
use feedgate_feed::model::{Feed, Text};

use super::observation::{Found, Observation};

/// Returns the location of a resource after a document at `location` named `target` as the new
/// address, where `next` is the location that fetching the target gave. Such a document counts as
/// much as a 301 (rule P22).
pub(super) fn location_after_move(
    location: ResourceLocation,
    target: &str,
    next: ResourceLocation,
) -> ResourceLocation {
    let is_known = matches!(
        &location,
        ResourceLocation::Here | ResourceLocation::Moved { for_good: true, .. }
    );
    let Ok(to) = Url::parse(target) else { return location };
    match next {
        _ if !is_known => location,
        ResourceLocation::Moved { to, for_good } => ResourceLocation::Moved { to, for_good },
        ResourceLocation::Here => ResourceLocation::Moved { to, for_good: true },
        ResourceLocation::Elsewhere | ResourceLocation::Unknown => {
            ResourceLocation::Moved { to, for_good: false }
        }
    }
}

/// The findings of one poll about the address of its resource.
#[derive(Debug)]
pub(super) struct ObservedLocation {
    at: DateTime<Utc>,
    seen: moves::RedirectEvidence,
    /// The other address that the feed gives for itself.
    announced: Option<String>,
}

/// Returns the findings of a poll about the address of its resource. `new` of its entries were not
/// known.
pub(super) fn observe_redirect(
    resource: &Resource,
    observation: &Observation,
    new: usize,
) -> ObservedLocation {
    let announced = match &observation.found {
        Found::Feed { feed, .. } => announced(resource, feed),
        _ => None,
    };
    let seen = match &observation.location {
        ResourceLocation::Unknown => moves::RedirectEvidence::Nothing,
        ResourceLocation::Here | ResourceLocation::Elsewhere => moves::RedirectEvidence::Here,
        ResourceLocation::Moved { to, .. } => moves::RedirectEvidence::Moved {
            to: to.clone(),
            is_usable: !matches!(observation.found, Found::Failure(_)),
            is_alike: is_alike(resource, &observation.found, new),
        },
    };
    ObservedLocation { at: observation.at, seen, announced }
}

/// Returns whether the resource found at the new address is the one that was found at the old
/// address.
fn is_alike(resource: &Resource, found: &Found, new: usize) -> bool {
    match found {
        // Validators are sent only to the address they came from, so the server knows the resource.
        Found::NotModified { .. } | Found::Same(_) => true,
        Found::Feed { feed, .. } => {
            let title = feed.title.as_ref().map(Text::to_plain).unwrap_or_default();
            let is_known = resource.head.0 > 0;
            (is_known && new < feed.entries.len())
                || (is_known && !title.is_empty() && title == resource.status.title)
                || self_link(feed).is_some_and(|link| is_own_address(link, resource))
        }
        Found::Other(_) | Found::FragmentMissing(_) | Found::Failure(_) => false,
    }
}

/// Stores where the resource was found, and changes its fetch URL if it moved permanently.
pub(super) fn apply_redirect(poll: &mut Poll, before: &Resource, location: &ObservedLocation) {
    if let Some(announced) = &location.announced {
        let note = format!("; announces another address: {announced}");
        poll.status.http_message.push_str(&note);
    }
    let known = before.polling.moved.as_ref();
    let (sighting, follows) =
        RedirectSighting::after(known, &before.fetch_url, &location.seen, location.at);
    poll.polling.moved = sighting;
    let moves::RedirectEvidence::Moved { to, .. } = &location.seen else { return };
    if follows && to.as_str() != before.fetch_url {
        poll.fetch_url = Some(to.as_str().to_owned());
        poll.polling.moved = poll.polling.moved.as_ref().and_then(RedirectSighting::ended);
        let note = format!("; moved permanently to {}", without_password(to));
        poll.status.http_message.push_str(&note);
    }
}

/// Returns the other address that a feed gives for itself, if it does. It is reported and never
/// followed (rule P23).
fn announced(resource: &Resource, feed: &Feed) -> Option<String> {
    let new_feed_url = feed.extensions.iter().find(|element| element.name == "new-feed-url");
    let new_feed_url = new_feed_url.map(|element| element.text().trim().to_owned());
    let address = new_feed_url.or_else(|| self_link(feed).map(str::to_owned))?;
    let url = Url::parse(&address).ok()?;
    (!is_own_address(&address, resource)).then(|| without_password(&url))
}

fn self_link(feed: &Feed) -> Option<&str> {
    feed.links.iter().find(|link| link.rel == "self").map(|link| link.href.as_str())
}

/// Returns whether an address is that of the resource, ignoring scheme, `www.`, a trailing slash
/// and the fragment.
fn is_own_address(link: &str, resource: &Resource) -> bool {
    let bare = |text: &str| {
        let text = text.split('#').next().unwrap_or_default().trim_end_matches('/');
        let text = text.strip_prefix("https://").or(text.strip_prefix("http://")).unwrap_or(text);
        text.strip_prefix("www.").unwrap_or(text).to_owned()
    };
    [resource.topic.as_str(), &resource.fetch_url]
        .iter()
        .any(|own| bare(&displayed(own)) == bare(link))
}

fn without_password(url: &Url) -> String {
    let mut url = url.clone();
    // Only a URL without a host is an error, and it has no password.
    url.set_password(None).ok();
    url.to_string()
}
