//! The status of a resource after a poll.

use feedgate_core::rank;
use feedgate_core::resource::Resource;
use feedgate_core::schedule::{self, PollPlan};
use feedgate_core::status::Status;
use feedgate_feed::documents;
use feedgate_feed::model::{Feed, Text};
use feedgate_feed::repair::{self, Repair, RepairCode};

use crate::jobs::poll::observation::{FRAGMENT_NOT_FOUND, Found, Observation, ReceivedBody};

/// The note in the status when every entry of a document is new.
const WINDOW_OVERRUN: &str = "; window overrun: all are new, and some may have been missed";

/// Returns the status of the resource after the poll.
pub(super) fn status(resource: &Resource, observation: &Observation, plan: &PollPlan) -> Status {
    let before = &resource.status;
    let mut status = before.clone();
    status.last_fetch = Some(observation.at);
    status.next_fetch = Some(plan.next_fetch);
    status.period_s = plan.period.as_secs();
    status.period_reason = plan.period.reason().to_string();
    status.popularity = rank::popularity(resource.subscribers);
    match &observation.found {
        Found::NotModified { .. } => {
            set_http(&mut status, 304, "not modified since the last fetch");
        }
        Found::Same(received) => {
            set_http(&mut status, 200, &format!("{}, the same as before", bytes(received)));
        }
        Found::Feed { feed, received } => {
            let (entries, format) = (feed.entries.len(), feed.format);
            let overrun = if plan.polling.overrun { WINDOW_OVERRUN } else { "" };
            let repaired = repaired(feed);
            let text =
                format!("{}, {format}, {entries} entries{overrun}{repaired}", bytes(received));
            set_http(&mut status, 200, &text);
            status.title = feed.title.as_ref().map(Text::to_plain).unwrap_or_default();
            status.last_parse = Some(observation.at);
            status.generated_ids = feed.has_generated_ids();
            status.bozo_rank = repair::bozo_rank(&feed.repairs, feed.entries.len());
        }
        Found::Other(received) => {
            set_http(&mut status, 200, &format!("{}, changed, not a feed", bytes(received)));
            (status.generated_ids, status.bozo_rank) = (false, 0.0);
            status.last_parse = Some(observation.at);
        }
        Found::FragmentMissing(missing) => {
            set_http(&mut status, 200, &missing.reason);
            FRAGMENT_NOT_FOUND.clone_into(&mut status.error);
            status.last_parse = Some(observation.at);
        }
        Found::Failure(failure) => {
            set_http(&mut status, failure.http_code, &failure.message);
            let gone = schedule::is_gone(&plan.polling, observation.at);
            status.error = if gone { "gone" } else { failure.code }.to_owned();
        }
    }
    if let (false, Some(offers)) =
        (status.is_failing(), documents::describe_feeds(&plan.polling.offers))
    {
        status.http_message = format!("{}; {offers}", status.http_message);
    }
    if before.is_failing() != status.is_failing() || before.is_gone() != status.is_gone() {
        let state = if status.is_failing() { status.error.clone() } else { "ok".to_owned() };
        status.change(&state, observation.at);
    }
    let state = status.state(&plan.polling, observation.at);
    status.announced.consider(state, observation.at);
    status
}

fn set_http(status: &mut Status, code: u16, message: &str) {
    status.http_code = code;
    status.http_message = message.to_owned();
    status.error.clear();
}

/// Returns the repairs and adaptations that the feed needed, each code once.
fn repaired(feed: &Feed) -> String {
    let codes = repair::listed_codes(&feed.repairs);
    let is_limit = |repair: &&Repair| repair.code == RepairCode::TooManyEntries;
    let limit = feed.repairs.iter().find(is_limit);
    let limit = limit.map(|repair| format!("; {}", repair.detail)).unwrap_or_default();
    match codes.is_empty() {
        true => limit,
        false => format!("{limit}; {codes}"),
    }
}

fn bytes(received: &ReceivedBody) -> String {
    format!("{} bytes", received.body.bytes.len())
}
