//! What was found → what is kept of it: status, schedule, and what to remember.
//!
//! One pure function.

use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::domain::asked::Asked;
use crate::domain::feed::{Feed, Hints, Text};
use crate::domain::poll::{Poll, Polling};
use crate::domain::record::NewRecord;
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
/// … and for this long (the table in rule group C: "confirm ≥ 3 times over ≥ 48 h").
const GONE_FOR: Duration = Duration::from_secs(48 * 3_600);
/// A publisher mends a broken document in hours (rule P31).
const LONGEST_UNUSABLE_S: i64 = 6 * 3_600;

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
            remember(&mut polling, fresh);
        }
        Found::Feed { feed, fresh } => {
            polling.asked = Asked::of(fresh.hint_s, &feed.hints);
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
            schedule::first_rate(dates.map(|date| date.to_utc()), now)
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
            let entries = feed.entries.len();
            let repairs = feed.repairs.len();
            let mended =
                if repairs > 0 { format!(", {repairs} faults mended") } else { String::new() };
            let format = feed.format;
            let text = format!("{}, {format}, {entries} entries{mended}", bytes(fresh));
            say(&mut status, 200, &text);
            status.title = feed.title.as_ref().map(Text::to_plain).unwrap_or_default();
            status.last_parse = Some(seen.at);
            status.generated_ids = feed.has_generated_ids();
        }
        Found::Other(fresh) => {
            say(&mut status, 200, &format!("{}, changed, no feed", bytes(fresh)));
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

fn say(status: &mut Status, code: u16, message: &str) {
    status.http_code = code;
    status.http_message = message.to_owned();
    status.error.clear();
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
