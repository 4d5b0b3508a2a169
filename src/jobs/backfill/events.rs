//! The event-log entries of backfills.

use std::borrow::Cow;

use chrono::{DateTime, Utc};

use feedgate_core::backfill::{Backfill, BackfillEnd};
use feedgate_core::event::{Event, EventKind, EventOutcome};
use feedgate_core::resource::Resource;

/// Returns the event of a backfill that started.
pub(super) fn begun(resource: &Resource, at: DateTime<Utc>) -> Event {
    about(resource, at).ended(EventOutcome::Pending, "", "backfill started")
}

/// Returns the event of a document that could not be read, and will be retried.
pub(super) fn postponed(
    resource: &Resource,
    code: &'static str,
    retry_at: DateTime<Utc>,
    at: DateTime<Utc>,
) -> Event {
    let when = retry_at.format("%H:%M:%S UTC");
    let why = format!("reading an archive document failed, next attempt at {when}");
    about(resource, at).ended(EventOutcome::Pending, code, &why)
}

/// Returns the event of a backfill that ended, whose entries are in the log.
pub(super) fn ended(resource: &Resource, done: &Backfill, at: DateTime<Utc>) -> Event {
    let ending = done.ending.as_ref().map_or("", BackfillEnd::as_str);
    let (pages, entries) = (counted(done.pages, "document"), counted(done.appended, "old entry"));
    let event = about(resource, at).saying(&format!("{pages} read, {entries} added to the log"));
    let outcome = match done.ending {
        Some(BackfillEnd::Broken(_)) => EventOutcome::Failed,
        _ => EventOutcome::Ok,
    };
    Event { outcome, code: Cow::Owned(ending.to_owned()), ..event }
}

/// Returns the event of a backfill whose resource has no subscribers left.
pub(super) fn dropped(resource: &Resource, at: DateTime<Utc>) -> Event {
    let why = "backfill cancelled: the resource has no subscribers left";
    about(resource, at).ended(EventOutcome::Refused, "no_subscription", why)
}

fn about(resource: &Resource, at: DateTime<Utc>) -> Event {
    Event::new(EventKind::Backfill, at).about_resource(resource)
}

fn counted(number: impl Into<u64>, what: &str) -> String {
    let number = number.into();
    match (number, what.strip_suffix('y')) {
        (1, _) => format!("1 {what}"),
        (_, Some(stem)) => format!("{number} {stem}ies"),
        (_, None) => format!("{number} {what}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_agree_with_their_nouns() {
        let texts = [0_u32, 1, 2].map(|number| counted(number, "old entry"));
        assert_eq!(texts, ["0 old entries", "1 old entry", "2 old entries"]);
        assert_eq!(counted(2_u32, "document"), "2 documents");
    }
}
