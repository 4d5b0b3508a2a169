//! What is remembered of the response itself: validators, the hash of the body, and what is known by them.

use feedgate_core::poll::Polling;
use feedgate_core::resource::Resource;

use crate::jobs::poll::observation::{Found, FragmentMissing, Observation, ReceivedBody};

/// Returns the stored data of the response itself. Validators and hash change only with a usable
/// body, so that a document that could not be read is requested in full again (rules P6, P7).
pub(super) fn remembered(resource: &Resource, observation: &Observation) -> Polling {
    let mut polling = resource.polling.clone();
    if observation.doubted {
        (polling.doubted_at, polling.is_recheck_due) = (Some(observation.at), false);
    }
    if observation.doubted && denied_change(&resource.polling, observation) {
        polling.denied_change_at = Some(observation.at);
    }
    match &observation.found {
        Found::Feed { feed, .. } => {
            feed.format.as_str().clone_into(&mut polling.format);
            if polling.known_by != feed.known_by {
                (polling.known_by, polling.known_by_since) = (feed.known_by, Some(observation.at));
            }
        }
        Found::Other(_) | Found::FragmentMissing(_) => polling.format.clear(),
        // A second fetch has found the same ids.
        Found::NotModified { .. } | Found::Same(_) => polling.id_changes = 0,
        Found::Failure(_) => {}
    }
    polling.since_whole = polling.since_whole.saturating_add(1);
    polling.whole_at.get_or_insert(observation.at);
    if let Found::Feed { received, .. } | Found::Other(received) | Found::Same(received) =
        &observation.found
    {
        polling.gate.clone_from(&received.gate);
        polling.offers.clone_from(&received.offers);
    }
    if let Some(received) = usable(&observation.found) {
        (polling.whole_at, polling.since_whole) = (Some(observation.at), 0);
        polling.is_recheck_due = false;
        polling.validators = received.validators.clone();
        polling.body_hash.clone_from(&received.hash);
        let validator = received.links.iter().find(|(rel, _)| rel == "validate");
        polling.validator = validator.map(|(_, target)| target.clone()).unwrap_or_default();
        polling.body_bytes = received.body.bytes.len().try_into().unwrap_or(u32::MAX);
    }
    polling
}

/// Returns whether a request that checked "not modified" has found a change for which the server sends
/// the validators of the document before.
fn denied_change(before: &Polling, observation: &Observation) -> bool {
    usable(&observation.found).is_some_and(|received| {
        let is_change = received.hash != before.body_hash;
        is_change && !before.validators.is_empty() && received.validators == before.validators
    })
}

/// Returns the stored data of a usable response.
fn usable(found: &Found) -> Option<&ReceivedBody> {
    match found {
        Found::Feed { received, .. } | Found::Other(received) | Found::Same(received) => {
            Some(received)
        }
        Found::FragmentMissing(FragmentMissing { received, .. }) => received.as_ref(),
        Found::NotModified { .. } | Found::Failure(_) => None,
    }
}
