//! What was found → what is kept of it: status, schedule, and what to remember.
//!
//! One pure function.

use std::collections::BTreeSet;
use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::domain::asked::Asked;
use crate::domain::feed::{Feed, Hints, Text};
use crate::domain::poll::{Poll, Polling};
use crate::domain::record::NewRecord;
use crate::domain::repair;
use crate::domain::resource::{Kind, Resource};
use crate::domain::schedule::{self, Period, Signals};
use crate::domain::status::Status;
use crate::render;
use crate::store::DueResource;

use super::Settings;
use super::look::{Found, Fresh, Seen, Trouble};

/// What a server that asks for less without saying how much less is given (rule P26).
const SLOW_DOWN_S: u32 = 600;
/// A resource is believed to be gone once it has said so this often …
const GONE_TIMES: u32 = 3;
/// … and for this long (`docs/polling.md`, "What answers come to").
const GONE_FOR: Duration = Duration::from_secs(48 * 3_600);
/// A publisher mends a broken document in hours (rule P31).
const LONGEST_UNUSABLE_S: i64 = 6 * 3_600;
/// What seems to have been published less than this ago has been found now and bears no
/// date of its own.
const A_MOMENT: Duration = Duration::from_secs(60);

/// What a poll leaves behind.
#[derive(Debug)]
pub(super) struct Report {
    /// For the store.
    pub(super) poll: Poll,
    /// Its outcome, for the metrics.
    pub(super) outcome: &'static str,
    /// How long the fetch took.
    pub(super) took: Duration,
    /// Until when the publisher's server is to be left alone altogether.
    pub(super) leave_host_until: Option<DateTime<Utc>>,
}

/// Puts together what a poll leaves behind. `records` are those that may be new; `dice`
/// is random in 0 to 1.
pub(super) fn report(
    due: &DueResource,
    seen: Seen,
    records: Vec<NewRecord>,
    (settings, dice): (&Settings, f64),
) -> Report {
    let resource = &due.resource;
    let now = seen.at + seen.took;
    let (outcome, retry_after_s) = outcome(&seen.found, &records);
    let kind = kind(&seen.found);
    let polling = polling(resource, &seen, records.len(), now);

    let signals = Signals {
        per_hour: if polling.rate_at.is_some() {
            polling.entries_per_hour
        } else {
            schedule::UNREACHED_PER_HOUR
        },
        asked: polling.asked.floor(polling.entries_per_hour),
        failures: polling.failures,
        failing_s: failing_s(&polling, now),
        retry_after_s,
        floor_s: settings.min_period_s,
    };
    let period = Period::after(kind.unwrap_or(resource.kind), &signals);
    let mut next_fetch = polling.asked.next(period, now, dice);
    if matches!(&seen.found, Found::Trouble(trouble) if trouble.http_code == 200) {
        let soon = now + chrono::TimeDelta::seconds(LONGEST_UNUSABLE_S);
        next_fetch = next_fetch.min(polling.asked.allowed_from(soon));
    }
    let status = status(resource, &seen, &polling, (period, next_fetch));

    let slow_down = matches!(&seen.found, Found::Trouble(trouble) if trouble.is_slow_down());
    let (feed, fresh) = match seen.found {
        Found::Feed { feed, fresh } => (Some(feed), Some(fresh)),
        Found::Other(fresh) => (None, Some(fresh)),
        _ => (None, None),
    };
    let poll = Poll {
        at: now,
        trigger: due.trigger,
        outcome: outcome.to_owned(),
        took_ms: seen.took.as_millis().try_into().unwrap_or(u32::MAX),
        wire_bytes: seen.wire_bytes,
        kind,
        fetch_url: None,
        site_url: feed.as_deref().and_then(site_url),
        feed_head: feed.as_deref().map(render::atom::stored_head),
        body: fresh.map(|fresh| fresh.body),
        records,
        silent: kind.is_some_and(|kind| kind != resource.kind),
        next_fetch,
        status,
        polling,
    };
    let leave_host_until = slow_down.then_some(next_fetch);
    Report { poll, outcome, took: seen.took, leave_host_until }
}

/// The stable word for what was found, and for how many seconds to stay away.
fn outcome(found: &Found, records: &[NewRecord]) -> (&'static str, u32) {
    match found {
        Found::NotModified { .. } => ("not_modified", 0),
        Found::Same(_) => ("ok_same", 0),
        Found::Feed { .. } | Found::Other(_) if records.is_empty() => ("ok_same", 0),
        Found::Feed { .. } | Found::Other(_) => ("ok_new", 0),
        Found::Trouble(trouble) => {
            let least = if trouble.is_slow_down() { SLOW_DOWN_S } else { 0 };
            (trouble.code, trouble.retry_after_s.unwrap_or(0).max(least))
        }
    }
}

fn kind(found: &Found) -> Option<Kind> {
    match found {
        Found::Feed { .. } => Some(Kind::Feed),
        Found::Other(_) => Some(Kind::Other),
        Found::NotModified { .. } | Found::Same(_) | Found::Trouble(_) => None,
    }
}

/// What the poller remembers. Validators and hash change only with a usable body
/// (rules P6, P7), so that what could not be read is asked for again.
fn polling(resource: &Resource, seen: &Seen, new: usize, now: DateTime<Utc>) -> Polling {
    let mut polling = resource.polling.clone();
    if seen.doubted {
        polling.doubted_at = Some(seen.at);
    }
    match &seen.found {
        Found::NotModified { hint_s } => polling.asked.not_modified(*hint_s),
        Found::Same(fresh) => {
            polling.asked.same_again(fresh.hint_s);
            remember(&mut polling, fresh);
        }
        Found::Other(fresh) => {
            polling.asked = Asked::of(fresh.hint_s, &Hints::default());
            polling.format.clear();
            remember(&mut polling, fresh);
        }
        Found::Feed { feed, fresh } => {
            polling.asked = Asked::of(fresh.hint_s, &feed.hints);
            feed.format.clone_into(&mut polling.format);
            remember(&mut polling, fresh);
        }
        Found::Trouble(trouble) => {
            fail(&mut polling, trouble, now);
            return polling;
        }
    }
    polling.entries_per_hour = match (&seen.found, polling.rate_at) {
        (Found::Feed { feed, .. }, None) => {
            let dates = feed.entries.iter().filter_map(|entry| entry.published.or(entry.updated));
            // Entries without a date were given that of their discovery (rule N9).
            let dates = dates.map(|date| date.to_utc()).filter(|date| *date < seen.at - A_MOMENT);
            schedule::first_rate(dates, now)
        }
        (_, None) => schedule::first_rate(std::iter::empty(), now),
        (_, Some(_)) => schedule::rate_after(&polling, new, now),
    };
    polling.rate_at = Some(now);
    (polling.failures, polling.failing_since, polling.gone) = (0, None, 0);
    polling
}

fn remember(polling: &mut Polling, fresh: &Fresh) {
    polling.validators = fresh.validators.clone();
    polling.body_hash.clone_from(&fresh.hash);
}

fn fail(polling: &mut Polling, trouble: &Trouble, now: DateTime<Utc>) {
    // "Slow down" is no sign of a dead feed (rule P26).
    if !trouble.is_slow_down() {
        polling.failures = polling.failures.saturating_add(1);
    }
    polling.failing_since.get_or_insert(now);
    polling.gone = if trouble.http_code == 410 { polling.gone.saturating_add(1) } else { 0 };
}

/// The web site of a feed, by which weblogs ping.
fn site_url(feed: &Feed) -> Option<String> {
    let pages = feed.links.iter().filter(|link| link.rel == "alternate");
    let html = |mime: &Option<String>| mime.as_deref().is_none_or(|mime| mime.contains("html"));
    let mut pages = pages.filter(|link| html(&link.mime));
    pages.next().map(|link| link.href.clone())
}

fn status(
    resource: &Resource,
    seen: &Seen,
    polling: &Polling,
    (period, next_fetch): (Period, DateTime<Utc>),
) -> Status {
    let before = &resource.status;
    let mut status = before.clone();
    status.last_fetch = Some(seen.at);
    status.next_fetch = Some(next_fetch);
    status.period_s = period.as_secs();
    status.period_reason = period.reason().to_owned();
    status.popularity = f64::from(resource.subscribers).ln_1p();
    match &seen.found {
        Found::NotModified { .. } => {
            say(&mut status, 304, "not modified since the last fetch");
        }
        Found::Same(fresh) => {
            say(&mut status, 200, &format!("{}, the same as before", bytes(fresh)));
        }
        Found::Feed { feed, fresh } => {
            let (entries, format) = (feed.entries.len(), feed.format);
            let text = format!("{}, {format}, {entries} entries{}", bytes(fresh), mended(feed));
            say(&mut status, 200, &text);
            status.title = feed.title.as_ref().map(Text::to_plain).unwrap_or_default();
            status.last_parse = Some(seen.at);
            status.generated_ids = feed.has_generated_ids();
            status.bozo_rank = repair::bozo_rank(&feed.repairs, feed.entries.len());
        }
        Found::Other(fresh) => {
            say(&mut status, 200, &format!("{}, changed, no feed", bytes(fresh)));
            (status.generated_ids, status.bozo_rank) = (false, 0.0);
            status.last_parse = Some(seen.at);
        }
        Found::Trouble(trouble) => {
            say(&mut status, trouble.http_code, &trouble.message);
            let gone = is_gone(polling, seen.at);
            status.error = if gone { "gone" } else { trouble.code }.to_owned();
        }
    }
    let is_gone = |status: &Status| status.error == "gone";
    if before.is_failing() != status.is_failing() || is_gone(before) != is_gone(&status) {
        status.version = before.version + 1;
    }
    status
}

fn is_gone(polling: &Polling, now: DateTime<Utc>) -> bool {
    let since = polling.failing_since.unwrap_or(now);
    polling.gone >= GONE_TIMES && now >= since + GONE_FOR
}

/// What is gone is asked as seldom as what has failed for long.
fn failing_s(polling: &Polling, now: DateTime<Utc>) -> u32 {
    if is_gone(polling, now) {
        return u32::MAX;
    }
    let failing = polling.failing_since.map_or(0, |since| (now - since).num_seconds().max(0));
    failing.try_into().unwrap_or(u32::MAX)
}

fn say(status: &mut Status, code: u16, message: &str) {
    status.http_code = code;
    status.http_message = message.to_owned();
    status.error.clear();
}

/// What had to be mended, each kind once.
fn mended(feed: &Feed) -> String {
    let codes: BTreeSet<&str> = feed.repairs.iter().map(|repair| repair.code.as_str()).collect();
    let codes: Vec<&str> = codes.into_iter().collect();
    if codes.is_empty() { String::new() } else { format!("; mended: {}", codes.join(", ")) }
}

fn bytes(fresh: &Fresh) -> String {
    format!("{} bytes", fresh.body.bytes.len())
}

impl Trouble {
    /// Whether the server said that it is asked too often.
    fn is_slow_down(&self) -> bool {
        self.http_code == 429
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::feed::Entry;
    use crate::domain::poll::{Body, Trigger, Validators};
    use crate::domain::record::Seq;
    use crate::domain::repair::{Code, Repair};
    use crate::domain::resource::ResourceId;
    use crate::domain::topic::Topic;

    const SETTINGS: Settings = Settings { claim: Duration::from_secs(60), min_period_s: 60 };

    fn at(hours: i64) -> DateTime<Utc> {
        DateTime::UNIX_EPOCH + chrono::TimeDelta::hours(hours)
    }

    fn due(kind: Kind, polling: Polling, status: Status) -> DueResource {
        let resource = Resource {
            id: ResourceId(1),
            topic: Topic::parse("https://a.test/feed").unwrap(),
            fetch_url: "https://a.test/feed".to_owned(),
            kind,
            head: Seq(0),
            body_version: 0,
            feed_head: String::new(),
            next_fetch: at(0),
            status,
            polling,
            subscribers: 1,
        };
        DueResource { resource, trigger: Trigger::Schedule }
    }

    fn seen(hours: i64, found: Found) -> Seen {
        Seen { at: at(hours), took: Duration::ZERO, wire_bytes: 0, doubted: false, found }
    }

    fn trouble(http_code: u16, retry_after_s: Option<u32>) -> Found {
        let message = "trouble".to_owned();
        Found::Trouble(Trouble { code: "http_status", message, http_code, retry_after_s })
    }

    fn fresh() -> Fresh {
        let validators = Validators { etag: Some(b"\"1\"".to_vec()), ..Validators::default() };
        let body = Body { content_type: None, bytes: Vec::new() };
        Fresh { validators, hash: "00".to_owned(), hint_s: 0, body }
    }

    fn told(due: &DueResource, hours: i64, found: Found) -> Poll {
        report(due, seen(hours, found), Vec::new(), (&SETTINGS, 0.5)).poll
    }

    #[test]
    fn trouble_puts_the_next_poll_off_and_never_for_good() {
        let known = |failures| Polling {
            rate_at: Some(at(0)),
            entries_per_hour: 1.0, // every 684 s
            failures,
            ..Polling::default()
        };
        let never = || Polling::default();
        let month = Polling { failing_since: Some(at(-30 * 24)), ..known(60) };
        let gone = Polling { failing_since: Some(at(-48)), gone: GONE_TIMES, ..known(60) };
        #[rustfmt::skip]
        let cases = [
            ("the first time, twice the period",    known(0),  trouble(500, None),         1_368),
            ("each time doubles",                   known(3),  trouble(500, None),        10_944),
            ("up to a day",                         known(60), trouble(404, None),        86_400),
            ("after a month up to a week",          month,     trouble(404, None),       604_800),
            ("what is gone, at once",               gone,      trouble(410, None),       604_800),
            ("what was never reached is not given up either", never(), trouble(0, None),   1_368),
            ("Retry-After counts",                  known(0),  trouble(503, Some(7_200)),  7_200),
            ("slow down: no doubling",              known(3),  trouble(429, Some(60)),     5_472),
            ("slow down: ten minutes at least",     Polling { entries_per_hour: 99.0, ..known(0) },
                                                               trouble(429, None),           600),
            ("a broken document: six hours at most", known(9), trouble(200, None),        21_600),
        ];
        for (why, polling, found, want) in cases {
            let due = due(Kind::Feed, polling, Status::default());
            let next = told(&due, 0, found).next_fetch;
            assert_eq!((next - at(0)).num_seconds(), want, "{why}");
        }
    }

    #[test]
    fn only_a_slow_down_concerns_the_whole_host() {
        let due = due(Kind::Feed, Polling::default(), Status::default());
        for (code, want) in [(429, true), (503, false), (500, false), (200, false)] {
            let report = report(&due, seen(0, trouble(code, None)), Vec::new(), (&SETTINGS, 0.5));
            assert_eq!(report.leave_host_until.is_some(), want, "{code} (rule P27)");
        }
    }

    #[test]
    fn gone_is_believed_after_three_times_and_two_days() {
        let mut resource = due(Kind::Feed, Polling::default(), Status::default());
        let mut seen_errors = Vec::new();
        for hours in [0, 1, 2, 49] {
            let poll = told(&resource, hours, trouble(410, None));
            seen_errors.push((poll.status.error.clone(), poll.status.version));
            resource = due(Kind::Feed, poll.polling, poll.status);
        }
        let http_status = |version| ("http_status".to_owned(), version);
        let gone = ("gone".to_owned(), 2);
        assert_eq!(seen_errors, [http_status(1), http_status(1), http_status(1), gone]);
        let back = told(&resource, 50, Found::Same(fresh()));
        assert_eq!((back.status.error.as_str(), back.status.version), ("", 3));
        assert_eq!((back.polling.gone, back.polling.failing_since), (0, None));
    }

    #[test]
    fn validators_change_only_with_a_usable_answer() {
        let before = Validators { etag: Some(b"\"0\"".to_vec()), ..Validators::default() };
        let polling = Polling { validators: before.clone(), ..Polling::default() };
        let due = due(Kind::Feed, polling, Status::default());
        let feed = || Box::new(Feed::default());
        let cases = [
            ("a feed", Found::Feed { feed: feed(), fresh: fresh() }, true),
            ("the same bytes (P6)", Found::Same(fresh()), true),
            ("not modified (P8)", Found::NotModified { hint_s: None }, false),
            ("trouble (P7)", trouble(200, None), false),
        ];
        for (why, found, want) in cases {
            let validators = told(&due, 0, found).polling.validators;
            assert_eq!(validators != before, want, "{why}");
        }
    }

    #[test]
    fn the_first_good_poll_is_silent_whatever_it_finds() {
        let feed = || Found::Feed { feed: Box::default(), fresh: fresh() };
        #[rustfmt::skip]
        let cases = [
            ("the first of all",                   Kind::Unknown, feed(),               true),
            ("no feed",                            Kind::Unknown, Found::Other(fresh()), true),
            ("a page that has become a feed",      Kind::Other,   feed(),               true),
            ("a known feed",                       Kind::Feed,    feed(),               false),
            ("a known page",                       Kind::Other,   Found::Other(fresh()), false),
            ("trouble",                            Kind::Unknown, trouble(500, None),   false),
        ];
        for (why, kind, found, want) in cases {
            let due = due(kind, Polling::default(), Status::default());
            assert_eq!(told(&due, 0, found).silent, want, "{why} (rule N5)");
        }
    }

    #[test]
    fn the_status_says_how_little_of_the_newest_document_is_to_be_relied_on() {
        let entries = vec![Entry::default(); 2];
        let repairs = vec![Repair::new(Code::IdGenerated, "x")];
        let feed = Box::new(Feed { entries, repairs, ..Feed::default() });
        let known = Status { bozo_rank: 0.7, ..Status::default() };
        #[rustfmt::skip]
        let cases = [
            ("half of its ids are ours",     Found::Feed { feed, fresh: fresh() },               0.3),
            ("nothing was wrong",            Found::Feed { feed: Box::default(), fresh: fresh() }, 0.0),
            ("no feed",                      Found::Other(fresh()),                              0.0),
            ("the same as before",           Found::Same(fresh()),                               0.7),
            ("not modified",                 Found::NotModified { hint_s: None },                0.7),
            ("trouble",                      trouble(500, None),                                 0.7),
        ];
        for (why, found, want) in cases {
            let due = due(Kind::Feed, Polling::default(), known.clone());
            assert_eq!(told(&due, 0, found).status.bozo_rank, want, "{why}");
        }
    }
}
