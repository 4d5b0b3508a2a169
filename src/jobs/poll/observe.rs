//! What a resource holds now: fetch it, read it, and say what was found.
//!
//! Nothing is stored or scheduled here.

use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::net::{Answer, Ask, Fetch, Fetched, Place};
use feedgate_core::poll::{Trigger, Validators};
use feedgate_core::ports::DueResource;

pub(super) use super::found::{Found, Fresh, NO_PART, Partless, Trouble};
use super::moves;
pub(super) use super::read_document::parse_aside;
use super::read_document::read;
use super::shared_documents::{DocumentSource, SharedDocuments};

/// How often documents that point to another one are followed (as HTTP redirects are,
/// rule P18).
const MOST_MOVES: usize = 5;

/// One look at a resource.
#[derive(Debug)]
pub(super) struct Seen {
    /// When it was begun.
    pub(super) at: DateTime<Utc>,
    /// From the first byte sent to the last received.
    pub(super) took: Duration,
    /// Bytes received, before content decoding.
    pub(super) wire_bytes: u64,
    /// Whether a "not modified" was doubted.
    pub(super) doubted: bool,
    /// Where the resource was found to be.
    pub(super) place: Place,
    /// What was found.
    pub(super) found: Found,
}

/// Looks at a resource.
pub(super) async fn look(
    fetch: &Fetch,
    shared: &SharedDocuments,
    due: &DueResource,
    now: DateTime<Utc>,
) -> Seen {
    let guard = match shared.find_or_fetch(due, now).await {
        DocumentSource::Fetch(guard) => guard,
        DocumentSource::Shared(at, document) => {
            let found = read(Ok(Answer::Document(Box::new(document))), due, at).await;
            let (took, place) = (Duration::ZERO, Place::Unknown);
            return Seen { at, took, wire_bytes: 0, doubted: false, place, found };
        }
    };
    let polling = &due.resource.polling;
    let (url, whole) = (&due.resource.fetch_url, Validators::default());
    let mut doubted = polling.is_stuck(now);
    let validators = if doubted { &whole } else { &polling.validators };
    let mut fetched = get(fetch, due, url, validators).await;
    if is_doubtful(&fetched, due, now) {
        doubted = true;
        fetched = get(fetch, due, url, &whole).await;
    }
    match &fetched.result {
        Ok(Answer::Document(document)) => guard.share(document, now),
        Ok(Answer::NotModified { .. }) => guard.confirm(&polling.validators, now),
        Err(_) => guard.give_up(),
    }
    let mut seen = Seen {
        at: now,
        took: fetched.took,
        wire_bytes: fetched.wire_bytes,
        doubted,
        place: fetched.place,
        found: read(fetched.result, due, now).await,
    };
    for _ in 0..MOST_MOVES {
        let Found::Feed { feed, .. } = &seen.found else { break };
        let Some(place) = feed.moved_to.clone().filter(|place| !place.is_empty()) else { break };
        let fetched = get(fetch, due, &place, &polling.validators).await;
        seen.took += fetched.took;
        seen.wire_bytes += fetched.wire_bytes;
        seen.place = moves::sent_on(seen.place, &place, fetched.place);
        seen.found = read(fetched.result, due, now).await;
    }
    if matches!(&seen.found, Found::Feed { feed, .. } if feed.moved_to.is_some()) {
        seen.found = Found::Trouble(Trouble::gone());
    }
    seen
}

async fn get(fetch: &Fetch, due: &DueResource, url: &str, validators: &Validators) -> Fetched {
    let (subscribers, feed_id) = (due.resource.subscribers, Some(due.resource.id.0));
    fetch.get(Ask { url, validators, subscribers, feed_id }).await
}

/// Whether the publisher says that it changed while its server says that it did not.
fn is_doubtful(fetched: &Fetched, due: &DueResource, now: DateTime<Utc>) -> bool {
    due.trigger == Trigger::Ping
        && matches!(fetched.result, Ok(Answer::NotModified { .. }))
        && due.resource.polling.may_doubt(now)
}
