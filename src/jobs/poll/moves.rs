//! What a poll tells of where its resource is, and what is made of it (rules P20 to P23).

use chrono::{DateTime, Utc};
use url::Url;

use crate::net::Place;
use feedgate_core::moves::{self, RedirectSighting};
use feedgate_core::poll::Poll;
use feedgate_core::resource::Resource;
use feedgate_feed::model::{Feed, Text};

use super::observe::{Found, Seen};

/// Where a resource is after a document at `place` has sent us on to `target`, where what
/// is told by `next` was found: a document that says so is as good as a 301 (rule P22).
pub(super) fn sent_on(place: Place, target: &str, next: Place) -> Place {
    let is_known = matches!(&place, Place::Here | Place::Moved { for_good: true, .. });
    let Ok(to) = Url::parse(target) else { return place };
    match next {
        _ if !is_known => place,
        Place::Moved { to, for_good } => Place::Moved { to, for_good },
        Place::Here => Place::Moved { to, for_good: true },
        Place::Elsewhere | Place::Unknown => Place::Moved { to, for_good: false },
    }
}

/// What a look tells of where the resource is.
#[derive(Debug)]
pub(super) struct Sighted {
    at: DateTime<Utc>,
    place: moves::RedirectEvidence,
    /// The other address that a feed gives for itself.
    announced: Option<String>,
}

/// What a look tells of where the resource is. `new` of its entries were not known.
pub(super) fn sighted(resource: &Resource, seen: &Seen, new: usize) -> Sighted {
    let announced = match &seen.found {
        Found::Feed { feed, .. } => announced(resource, feed),
        _ => None,
    };
    let place = match &seen.place {
        Place::Unknown => moves::RedirectEvidence::Nothing,
        Place::Here | Place::Elsewhere => moves::RedirectEvidence::Here,
        Place::Moved { to, .. } => moves::RedirectEvidence::Moved {
            to: to.clone(),
            is_usable: !matches!(seen.found, Found::Trouble(_)),
            is_alike: is_alike(resource, &seen.found, new),
        },
    };
    Sighted { at: seen.at, place, announced }
}

/// Whether what was found is what the resource held before.
fn is_alike(resource: &Resource, found: &Found, new: usize) -> bool {
    match found {
        // Validators go only where they came from, with what is known.
        Found::NotModified { .. } | Found::Same(_) => true,
        Found::Feed { feed, .. } => {
            let title = feed.title.as_ref().map(Text::to_plain).unwrap_or_default();
            let is_known = resource.head.0 > 0;
            (is_known && new < feed.entries.len())
                || (is_known && !title.is_empty() && title == resource.status.title)
                || self_link(feed).is_some_and(|link| is_of(link, resource))
        }
        Found::Other(_) | Found::Partless(_) | Found::Trouble(_) => false,
    }
}

/// Remembers where the resource was seen, and follows it if it has moved for good.
pub(super) fn follow(poll: &mut Poll, before: &Resource, sighted: &Sighted) {
    if let Some(announced) = &sighted.announced {
        let told = format!("; announces another address: {announced}");
        poll.status.http_message.push_str(&told);
    }
    let known = before.polling.moved.as_ref();
    let (sighting, follows) =
        RedirectSighting::after(known, &before.fetch_url, &sighted.place, sighted.at);
    poll.polling.moved = sighting;
    let moves::RedirectEvidence::Moved { to, .. } = &sighted.place else { return };
    if follows && to.as_str() != before.fetch_url {
        poll.fetch_url = Some(to.as_str().to_owned());
        poll.polling.moved = poll.polling.moved.as_ref().and_then(RedirectSighting::ended);
        poll.status.http_message.push_str(&format!("; moved for good to {}", shown(to)));
    }
}

/// The other address that a feed gives for itself, if it does: told, never followed (rule P23).
fn announced(resource: &Resource, feed: &Feed) -> Option<String> {
    let new_feed_url = feed.extensions.iter().find(|element| element.name == "new-feed-url");
    let new_feed_url = new_feed_url.map(|element| element.text().trim().to_owned());
    let told = new_feed_url.or_else(|| self_link(feed).map(str::to_owned))?;
    let url = Url::parse(&told).ok()?;
    (!is_of(&told, resource)).then(|| shown(&url))
}

fn self_link(feed: &Feed) -> Option<&str> {
    feed.links.iter().find(|link| link.rel == "self").map(|link| link.href.as_str())
}

/// Whether an address is the resource's own, but for what makes no difference.
fn is_of(link: &str, resource: &Resource) -> bool {
    let bare = |text: &str| {
        let text = text.split('#').next().unwrap_or_default().trim_end_matches('/');
        let text = text.strip_prefix("https://").or(text.strip_prefix("http://")).unwrap_or(text);
        text.strip_prefix("www.").unwrap_or(text).to_owned()
    };
    [resource.topic.as_str(), &resource.fetch_url].iter().any(|own| bare(own) == bare(link))
}

/// An address without the password in it.
fn shown(url: &Url) -> String {
    let mut url = url.clone();
    // It fails only for URLs without a host, which have no password.
    url.set_password(None).ok();
    url.to_string()
}
