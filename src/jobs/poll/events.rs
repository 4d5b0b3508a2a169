//! The event-log entries of polls.

use std::borrow::Cow;

use feedgate_core::event::{Event, EventKind, EventOutcome};
use feedgate_core::poll::Trigger;
use feedgate_core::store::DueResource;

use super::report::PollReport;

/// Returns the event of a poll that is worth a line: it found something new, a ping triggered it,
/// or the resource began to fail or recovered. `None` for all other polls, which are most of them,
/// so that they cost the event log nothing.
pub(super) fn fetched(due: &DueResource, report: &PollReport, new: usize) -> Option<Event> {
    let (before, status) = (&due.resource.status, &report.poll.status);
    let has_changed = before.error != status.error && before.last_fetch.is_some();
    if new == 0 && due.trigger != Trigger::Ping && !has_changed {
        return None;
    }
    let event = Event::new(EventKind::Fetch, report.poll.at)
        .about_resource(&due.resource)
        .lasting(report.took);
    let event = match (status.error.as_str(), new) {
        ("", 0) => event.saying("no new entries"),
        ("", 1) => event.saying("1 new entry"),
        ("", new) => event.saying(&format!("{new} new entries")),
        _ => event.ended(EventOutcome::Failed, "", &status.http_message),
    };
    Some(Event { code: Cow::Borrowed(report.outcome), ..event })
}
