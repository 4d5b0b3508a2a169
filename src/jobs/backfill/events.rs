//! What is told of histories, in the words of the log page.

use std::borrow::Cow;

use chrono::{DateTime, Utc};

use feedgate_core::backfill::{Backfill, BackfillEnd};
use feedgate_core::event::{Event, EventKind, EventOutcome};
use feedgate_core::resource::Resource;

/// The first document is read next.
pub(super) fn begun(resource: &Resource, at: DateTime<Utc>) -> Event {
    about(resource, at).ended(EventOutcome::Pending, "", "its history is brought in from here on")
}

/// A document could not be read, and is asked for again.
pub(super) fn put_off(
    resource: &Resource,
    (code, again_at): (&'static str, DateTime<Utc>),
    at: DateTime<Utc>,
) -> Event {
    let when = again_at.format("%H:%M:%S UTC");
    let why = format!("a document of its history could not be read; tried again at {when}");
    about(resource, at).ended(EventOutcome::Pending, code, &why)
}

/// Its history is in the log, as far as it was found.
pub(super) fn ended(resource: &Resource, done: &Backfill, at: DateTime<Utc>) -> Event {
    let ending = done.ending.as_ref().map_or("", BackfillEnd::as_str);
    let (pages, entries) = (counted(done.pages, "document"), counted(done.appended, "old entry"));
    let event = about(resource, at).saying(&format!("{pages} read, {entries} in the log"));
    let outcome = match done.ending {
        Some(BackfillEnd::Broken(_)) => EventOutcome::Failed,
        _ => EventOutcome::Ok,
    };
    Event { outcome, code: Cow::Owned(ending.to_owned()), ..event }
}

/// Nobody subscribes any more to what it is the history of.
pub(super) fn dropped(resource: &Resource, at: DateTime<Utc>) -> Event {
    let why = "nobody subscribes to it any more: its history is not brought in";
    about(resource, at).ended(EventOutcome::Refused, "no_subscription", why)
}

fn about(resource: &Resource, at: DateTime<Utc>) -> Event {
    Event::new(EventKind::Backfill, at).about_feed(resource.topic.as_str())
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
    fn numbers_are_told_in_words() {
        let told = [0_u32, 1, 2].map(|number| counted(number, "old entry"));
        assert_eq!(told, ["0 old entries", "1 old entry", "2 old entries"]);
        assert_eq!(counted(2_u32, "document"), "2 documents");
    }
}
