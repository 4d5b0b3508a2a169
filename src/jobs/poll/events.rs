//! What is told of polls, in the words of the log page.

use std::borrow::Cow;

use feedgate_core::event::{Event, EventKind, EventOutcome};
use feedgate_core::poll::Trigger;
use feedgate_core::ports::DueResource;

use super::outcome::Report;

/// A poll that somebody may want to know of: it brought something, somebody asked for it,
/// or the resource began to fail or is back. `None` for all others, which are most: a poll
/// that finds nothing new costs the log nothing, nor does one that fails as the last did.
pub(super) fn fetched(due: &DueResource, report: &Report, new: usize) -> Option<Event> {
    let (before, status) = (&due.resource.status, &report.poll.status);
    let is_turn = before.error != status.error && before.last_fetch.is_some();
    if new == 0 && due.trigger != Trigger::Ping && !is_turn {
        return None;
    }
    let event = Event::new(EventKind::Fetch, report.poll.at)
        .of(due.resource.topic.as_str())
        .lasting(report.took);
    let event = match (status.error.as_str(), new) {
        ("", 0) => event.saying("nothing new"),
        ("", 1) => event.saying("1 new"),
        ("", new) => event.saying(&format!("{new} new")),
        _ => event.ended(EventOutcome::Failed, "", &status.http_message),
    };
    Some(Event { code: Cow::Borrowed(report.outcome), ..event })
}
