//! The schedule of a resource that nobody has subscribed to yet, as it would be after its first fetch.

use chrono::{DateTime, Utc};

use super::read_document::ParsedDocument;
use crate::net::FetchedDocument;
use feedgate_core::poll::Polling;
use feedgate_core::resource::ResourceKind;
use feedgate_core::schedule::{
    self, NewRecords, PollFinding, PollPlan, ScheduleBounds, ScheduleInput,
};

/// Plans the next fetch after a first one that ended `now`, for one subscription. `jitter` is random from
/// 0 to 1.
pub fn first_plan(
    document: &FetchedDocument,
    read: &ParsedDocument,
    bounds: &ScheduleBounds,
    (now, jitter): (DateTime<Utc>, f64),
) -> PollPlan {
    let hint_s = document.hint_s;
    let found = match read {
        ParsedDocument::Feed(feed) => NewRecords::from_feed(feed, hint_s, feed.entries.len(), now),
        _ => NewRecords::of_other(hint_s, 1),
    };
    let polling = Polling {
        validators: document.validators.clone(),
        body_bytes: document.body.len().try_into().unwrap_or(u32::MAX),
        ..Polling::default()
    };
    let held =
        ScheduleInput { kind: ResourceKind::Unknown, subscribers: 1, pushed: false, polling };
    schedule::plan(held, &PollFinding::NewRecords(found), bounds, now, jitter)
}
