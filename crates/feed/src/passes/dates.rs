//! Dates: every entry gets one, and implausible dates are replaced (rule N9).
//!
//! Dates are for display. The order of entries is that of the log, so nothing here may move an
//! entry.

use chrono::{DateTime, Datelike, FixedOffset, TimeDelta, Utc};

use crate::context::Context;
use crate::model::{Element, Entry, Feed};
use crate::own_elements;
use crate::parse::dates;
use crate::repair::{Repair, RepairCode};

/// The tolerance for clocks that differ: "Published in the future by > 10 min ⇒ display date =
/// discovery time" (rule N9).
const AHEAD: TimeDelta = TimeDelta::minutes(10);

/// The distance at which a future date is discarded, because it is the date of an event, or
/// invalid: "> 24 h future ⇒ treat as absent" (rule N9).
const FAR: TimeDelta = TimeDelta::hours(24);

/// The first plausible year. Earlier dates are defaults of programs, because no feed is that old:
/// "before 1990 ⇒ treat as absent" (rule N9).
const FIRST_YEAR: i32 = 1990;

/// The elements that say when an entry was created, in the order in which they stand in for the date
/// of publication. RFC 4287 has no element for it, so they are kept as well.
const CREATED: [(&str, &str); 4] = [
    ("http://purl.org/dc/terms/", "created"),
    ("http://purl.org/dc/terms/", "date"),
    ("http://prismstandard.org/namespaces/", "publicationDate"),
    ("https://www.jsonfeed.org/version/1.1/", "date_created"),
];

/// Completes the dates of the feed and its entries.
///
/// Future and ancient dates are recognized relative to the time of receipt. If that is unknown,
/// dates stay as the source has them.
pub(super) fn complete_dates(mut feed: Feed, context: &Context) -> Feed {
    let mut repairs = Vec::new();
    if let Some(now) = context.received_at {
        let of_feed = feed.trace_id;
        repairs
            .extend(drop_absurd(&mut feed.updated, now).map(|(repair, _)| repair.within(of_feed)));
        for entry in &mut feed.entries {
            for (name, date) in
                [("published", &mut entry.published), ("updated", &mut entry.updated)]
            {
                let Some((repair, absurd)) = drop_absurd(date, now) else { continue };
                // A clock that is off by hours still means an entry that exists now.
                if absurd > now && absurd <= now + FAR {
                    *date = Some(now.fixed_offset());
                }
                repairs.push(repair.within(entry.trace_id));
                entry.extensions.push(own_elements::stated(name, absurd.to_rfc3339()));
            }
        }
    }
    for entry in feed.entries.iter_mut().filter(|entry| entry.published.is_none()) {
        entry.published = created(&entry.extensions, context.received_at);
    }
    let received = context.received_at.map(|at| at.fixed_offset());
    let newest = feed.entries.iter().filter_map(|entry| entry.updated.or(entry.published)).max();
    let of_feed = feed.updated.or(newest).or(received).unwrap_or_default();
    for entry in &mut feed.entries {
        if entry.updated.is_none() && entry.published.is_none() {
            entry.date_assumed = true;
            entry.extensions.push(own_elements::derived("updated"));
            repairs
                .push(Repair::new(RepairCode::DateMissing, name_of(entry)).within(entry.trace_id));
        }
        let fallback = entry.published.or(received).unwrap_or(of_feed);
        entry.updated.get_or_insert(fallback);
    }
    feed.updated = Some(of_feed);
    feed.repairs.append(&mut repairs);
    feed
}

/// Spaces assumed dates "in document order, 1 ms apart" (rule N9), because readers sort by date,
/// and feeds list the newest entry first (rule N10).
pub(super) fn order_undated(mut feed: Feed, context: &Context) -> Feed {
    let Some(received) = context.received_at else { return feed };
    let assumed = feed.entries.iter_mut().filter(|entry| entry.date_assumed);
    for (entry, age) in assumed.zip(0..) {
        entry.updated = Some((received - TimeDelta::milliseconds(age)).fixed_offset());
    }
    feed
}

/// Removes an implausible date. Returns the date and the repair to report.
fn drop_absurd(
    date: &mut Option<DateTime<FixedOffset>>,
    now: DateTime<Utc>,
) -> Option<(Repair, DateTime<FixedOffset>)> {
    let absurd = date.take_if(|date| is_absurd(date, now))?;
    let code = if absurd > now { RepairCode::DateInFuture } else { RepairCode::DateBeforeFeeds };
    Some((Repair::new(code, absurd.to_rfc3339()), absurd))
}

fn is_absurd(date: &DateTime<FixedOffset>, now: DateTime<Utc>) -> bool {
    *date > now + AHEAD || date.year() < FIRST_YEAR
}

/// Returns the date of creation that is among the elements without a counterpart in Atom, if it is
/// plausible.
fn created(extensions: &[Element], now: Option<DateTime<Utc>>) -> Option<DateTime<FixedOffset>> {
    let named = |(namespace, name): (&str, &str)| {
        let mut found = extensions.iter().filter(move |element| {
            element.namespace.starts_with(namespace) && element.name.eq_ignore_ascii_case(name)
        });
        let plausible = |date: &DateTime<FixedOffset>| now.is_none_or(|now| !is_absurd(date, now));
        found.find_map(|element| dates::parse(&element.text()).filter(plausible))
    };
    CREATED.into_iter().find_map(named)
}

fn name_of(entry: &Entry) -> String {
    let title = entry.title.as_ref().map(|title| title.value.clone());
    title.filter(|_| entry.id.is_empty()).unwrap_or_else(|| entry.id.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use url::Url;

    fn at(text: &str) -> Option<DateTime<FixedOffset>> {
        (!text.is_empty()).then(|| DateTime::parse_from_rfc3339(text).unwrap())
    }

    #[test]
    fn an_entry_without_a_date_gets_the_best_there_is() {
        let now = "2026-11-20T12:00:00Z";
        let cases = [
            ("its own", "2026-01-01T00:00:00Z", "", now, "", "2026-01-01T00:00:00Z"),
            (
                "when published",
                "",
                "2026-02-01T00:00:00+02:00",
                now,
                "",
                "2026-02-01T00:00:00+02:00",
            ),
            ("when received", "", "", now, "2026-03-01T00:00:00Z", now),
            ("the feed's", "", "", "", "2026-03-01T00:00:00Z", "2026-03-01T00:00:00Z"),
            ("the epoch", "", "", "", "", "1970-01-01T00:00:00Z"),
            ("a little ahead", "2026-11-20T12:09:00Z", "", now, "", "2026-11-20T12:09:00Z"),
            ("too far ahead", "2026-11-20T12:11:00Z", "", now, "", now),
            ("far ahead, time unknown", "2126-11-20T12:11:00Z", "", "", "", "2126-11-20T12:11:00Z"),
            ("a default", "1970-01-01T00:00:00Z", "", now, "", now),
        ];
        for (why, updated, published, received, feed, want) in cases {
            let entry =
                Entry { updated: at(updated), published: at(published), ..Entry::default() };
            let feed = Feed { updated: at(feed), entries: vec![entry], ..Feed::default() };
            let mut context = Context::new(Url::parse("https://a.test/").unwrap());
            context.received_at = at(received).map(|at| at.to_utc());
            let settled = complete_dates(feed, &context);
            assert_eq!(settled.entries[0].updated, at(want), "{why}");
        }
    }
}
