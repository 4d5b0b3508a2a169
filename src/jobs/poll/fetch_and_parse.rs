//! Fetches a resource and reads what it holds now.
//!
//! Nothing is stored or scheduled here.

use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::net::{FetchRequest, FetchResponse, Fetched, HttpClient, ResourceLocation};
use feedgate_core::poll::{Trigger, Validators};
use feedgate_core::ports::DueResource;

use super::observation::{Failure, Found, Observation};
use super::read_document::read;
use super::redirects;
use super::shared_documents::{DocumentSource, SharedDocuments};

/// How many documents that point to another document are followed; as many as HTTP redirects
/// (P18).
const MAX_MOVES: usize = 5;

/// Fetches and parses a due resource, or takes its document from the shared-document cache.
pub(super) async fn fetch_and_parse(
    client: &HttpClient,
    shared_documents: &SharedDocuments,
    due: &DueResource,
    now: DateTime<Utc>,
) -> Observation {
    let guard = match shared_documents.find_or_fetch(due, now).await {
        DocumentSource::Fetch(guard) => guard,
        DocumentSource::Shared(at, document) => {
            let found = read(Ok(FetchResponse::Document(document)), due, at).await;
            let (took, location) = (Duration::ZERO, ResourceLocation::Unknown);
            return Observation { at, took, wire_bytes: 0, doubted: false, location, found };
        }
    };
    let polling = &due.resource.polling;
    let (url, unconditional) = (&due.resource.fetch_url, Validators::default());
    let mut doubted = polling.is_stuck(now);
    let validators = if doubted { &unconditional } else { &polling.validators };
    let mut fetched = get(client, due, url, validators).await;
    if is_doubtful(&fetched, due, now) {
        doubted = true;
        fetched = get(client, due, url, &unconditional).await;
    }
    match &fetched.result {
        Ok(FetchResponse::Document(document)) => guard.share(document, now),
        Ok(FetchResponse::NotModified { .. }) => guard.confirm(&polling.validators, now),
        Err(_) => guard.give_up(),
    }
    let observation = Observation {
        at: now,
        took: fetched.took,
        wire_bytes: fetched.wire_bytes,
        doubted,
        location: fetched.location,
        found: read(fetched.result, due, now).await,
    };
    follow_moves(client, due, observation).await
}

/// Follows documents that only say that the feed is at another address.
async fn follow_moves(
    client: &HttpClient,
    due: &DueResource,
    mut observation: Observation,
) -> Observation {
    for _ in 0..MAX_MOVES {
        let Found::Feed { feed, .. } = &observation.found else { break };
        let Some(target) = feed.moved_to.clone().filter(|target| !target.is_empty()) else {
            break;
        };
        let fetched = get(client, due, &target, &due.resource.polling.validators).await;
        observation.took += fetched.took;
        observation.wire_bytes += fetched.wire_bytes;
        observation.location =
            redirects::location_after_move(observation.location, &target, fetched.location);
        observation.found = read(fetched.result, due, observation.at).await;
    }
    if matches!(&observation.found, Found::Feed { feed, .. } if feed.moved_to.is_some()) {
        observation.found = Found::Failure(Failure::gone());
    }
    observation
}

async fn get(
    client: &HttpClient,
    due: &DueResource,
    url: &str,
    validators: &Validators,
) -> Fetched {
    let (subscribers, feed_id) = (due.resource.subscribers, Some(due.resource.id.0));
    client.get(FetchRequest { url, validators, subscribers, feed_id }).await
}

/// Whether the publisher says that the resource changed while its server says that it did not.
fn is_doubtful(fetched: &Fetched, due: &DueResource, now: DateTime<Utc>) -> bool {
    due.trigger == Trigger::Ping
        && matches!(fetched.result, Ok(FetchResponse::NotModified { .. }))
        && due.resource.polling.may_doubt(now)
}
