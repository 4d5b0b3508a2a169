//! What was found → what is kept of it: status, schedule, and what to remember.
//!
//! One pure function.

use std::collections::BTreeSet;
use std::time::Duration;

use chrono::{DateTime, Utc};

use feedgate_core::poll::{Poll, Polling};
use feedgate_core::ports::DueResource;
use feedgate_core::rank;
use feedgate_core::resource::{Resource, ResourceKind};
use feedgate_core::schedule::{
    self, NewRecords, PollPlan, PollSetback, ScheduleBounds, ScheduleInput,
};
use feedgate_core::status::Status;
use feedgate_core::upstream::UpstreamFinding;
use feedgate_feed::documents;
use feedgate_feed::model::{Feed, Text};
use feedgate_feed::render;
use feedgate_feed::repair;

use super::observe::{Found, Fresh, NO_PART, Partless, Seen};
use super::records::Records;

/// What is said of a document in which everything is new.
const WINDOW_OVERRUN: &str = "; window overrun: all are new, and some may have been missed";

/// What a poll leaves behind.
#[derive(Debug)]
pub(super) struct Report {
    /// For the store.
    pub(super) poll: Poll,
    /// Its outcome, for the metrics.
    pub(super) outcome: &'static str,
    /// How long the fetch took.
    pub(super) took: Duration,
}

/// What a report depends on besides what was found.
#[derive(Clone, Copy, Debug)]
pub(super) struct Terms {
    /// What bounds periods.
    pub(super) bounds: ScheduleBounds,
    /// Random in 0 to 1.
    pub(super) dice: f64,
    /// Whether to estimate the porn rank.
    pub(super) porn_rank: bool,
}

/// Puts together what a poll leaves behind. `records` are what it has for the log.
pub(super) fn report(due: &DueResource, seen: Seen, records: Records, terms: &Terms) -> Report {
    let resource = &due.resource;
    let now = seen.at + seen.took;
    let outcome = outcome(&seen.found, &records);
    let kind = kind(&seen.found);
    let held = ScheduleInput {
        kind: resource.kind,
        subscribers: resource.subscribers,
        pushed: resource.pushed_until.is_some_and(|until| until > now),
        polling: remembered(resource, &seen),
    };
    let answered_well = !matches!(seen.found, Found::Trouble(_));
    let found = for_schedule(&seen, records.new);
    let plan = schedule::plan(held, &found, &terms.bounds, now, terms.dice);
    let mut status = status(resource, &seen, &plan);
    if let Found::Feed { feed, .. } = &seen.found {
        status.porn_rank = terms.porn_rank.then(|| rank::porn(feed));
    }
    let PollPlan { mut polling, next_fetch, demand, .. } = plan;
    if let Found::Partless(_) = &seen.found {
        lack(&mut polling, &resource.polling, now);
    }
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
        answered_well,
        kind,
        fetch_url: None,
        site_url: feed.as_deref().and_then(Feed::site_url),
        feed_head: feed.as_deref().map(render::atom::stored_head),
        body: fresh.map(|fresh| fresh.body),
        upstream: UpstreamFinding::Unknown,
        meaning: records.meaning,
        found: records.found,
        silent: kind.is_some_and(|kind| kind != resource.kind),
        next_fetch,
        demand,
        status,
        polling,
        leaves_details: false,
    };
    Report { poll, outcome, took: seen.took }
}

/// The stable word for what was found.
fn outcome(found: &Found, records: &Records) -> &'static str {
    match found {
        Found::NotModified { .. } => "not_modified",
        Found::Same(_) => "ok_same",
        Found::Feed { .. } | Found::Other(_) if records.new + records.updated == 0 => "ok_same",
        Found::Feed { .. } | Found::Other(_) => "ok_new",
        Found::Partless(_) => NO_PART,
        Found::Trouble(trouble) => trouble.code,
    }
}

fn kind(found: &Found) -> Option<ResourceKind> {
    match found {
        Found::Feed { .. } => Some(ResourceKind::Feed),
        Found::Other(_) | Found::Partless(_) => Some(ResourceKind::Other),
        Found::NotModified { .. } | Found::Same(_) | Found::Trouble(_) => None,
    }
}

/// What is remembered of the answer itself. Validators and hash change only with a
/// usable body (rules P6, P7), so that what could not be read is asked for again.
fn remembered(resource: &Resource, seen: &Seen) -> Polling {
    let mut polling = resource.polling.clone();
    if seen.doubted {
        polling.doubted_at = Some(seen.at);
    }
    match &seen.found {
        Found::Feed { feed, .. } => {
            feed.format.as_str().clone_into(&mut polling.format);
            if polling.known_by != feed.known_by {
                (polling.known_by, polling.known_by_since) = (feed.known_by, Some(seen.at));
            }
        }
        Found::Other(_) | Found::Partless(_) => polling.format.clear(),
        Found::NotModified { .. } | Found::Same(_) | Found::Trouble(_) => {}
    }
    polling.since_whole = polling.since_whole.saturating_add(1);
    polling.whole_at.get_or_insert(seen.at);
    if let Found::Feed { fresh, .. } | Found::Other(fresh) | Found::Same(fresh) = &seen.found {
        polling.gate.clone_from(&fresh.gate);
        polling.offers.clone_from(&fresh.offers);
    }
    if let Some(fresh) = usable(&seen.found) {
        (polling.whole_at, polling.since_whole) = (Some(seen.at), 0);
        polling.validators = fresh.validators.clone();
        polling.body_hash.clone_from(&fresh.hash);
        polling.body_bytes = fresh.body.bytes.len().try_into().unwrap_or(u32::MAX);
    }
    polling
}

/// What is remembered of an answer that could be used.
fn usable(found: &Found) -> Option<&Fresh> {
    match found {
        Found::Feed { fresh, .. } | Found::Other(fresh) | Found::Same(fresh) => Some(fresh),
        Found::Partless(Partless { fresh, .. }) => fresh.as_ref(),
        Found::NotModified { .. } | Found::Trouble(_) => None,
    }
}

/// Counts polls without the part that is watched: who is told of trouble that lasts is
/// told of this as well.
fn lack(polling: &mut Polling, before: &Polling, now: DateTime<Utc>) {
    polling.failures = before.failures.saturating_add(1);
    polling.failing_since = Some(before.failing_since.unwrap_or(now));
}

/// What was found, as the schedule wants to know it.
fn for_schedule(seen: &Seen, new: usize) -> schedule::PollFinding {
    match &seen.found {
        Found::NotModified { hint_s } => schedule::PollFinding::NotModified { hint_s: *hint_s },
        Found::Same(fresh) => schedule::PollFinding::Same { hint_s: fresh.hint_s },
        Found::Feed { feed, fresh } => {
            schedule::PollFinding::NewRecords(NewRecords::of(feed, fresh.hint_s, new, seen.at))
        }
        Found::Other(fresh) => {
            schedule::PollFinding::NewRecords(NewRecords::of_other(fresh.hint_s, new))
        }
        // The server does what it should, and the part may come back at any time.
        Found::Partless(Partless { fresh: None, hint_s, .. }) => {
            schedule::PollFinding::NotModified { hint_s: *hint_s }
        }
        Found::Partless(Partless { hint_s, .. }) => {
            schedule::PollFinding::Same { hint_s: hint_s.unwrap_or_default() }
        }
        Found::Trouble(trouble) => schedule::PollFinding::Trouble(PollSetback {
            class: trouble.class,
            retry_after_s: trouble.retry_after_s,
        }),
    }
}

/// The web site of a feed, by which weblogs ping.
fn status(resource: &Resource, seen: &Seen, plan: &PollPlan) -> Status {
    let before = &resource.status;
    let mut status = before.clone();
    status.last_fetch = Some(seen.at);
    status.next_fetch = Some(plan.next_fetch);
    status.period_s = plan.period.as_secs();
    status.period_reason = plan.period.reason().to_string();
    status.popularity = rank::popularity(resource.subscribers);
    match &seen.found {
        Found::NotModified { .. } => {
            say(&mut status, 304, "not modified since the last fetch");
        }
        Found::Same(fresh) => {
            say(&mut status, 200, &format!("{}, the same as before", bytes(fresh)));
        }
        Found::Feed { feed, fresh } => {
            let (entries, format) = (feed.entries.len(), feed.format);
            let overrun = if plan.polling.overrun { WINDOW_OVERRUN } else { "" };
            let mended = mended(feed);
            let text = format!("{}, {format}, {entries} entries{overrun}{mended}", bytes(fresh));
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
        Found::Partless(lacking) => {
            say(&mut status, 200, &lacking.why);
            NO_PART.clone_into(&mut status.error);
            status.last_parse = Some(seen.at);
        }
        Found::Trouble(trouble) => {
            say(&mut status, trouble.http_code, &trouble.message);
            let gone = schedule::is_gone(&plan.polling, seen.at);
            status.error = if gone { "gone" } else { trouble.code }.to_owned();
        }
    }
    if let (false, Some(offers)) =
        (status.is_failing(), documents::describe_feeds(&plan.polling.offers))
    {
        status.http_message = format!("{}; {offers}", status.http_message);
    }
    let is_gone = |status: &Status| status.error == "gone";
    if before.is_failing() != status.is_failing() || is_gone(before) != is_gone(&status) {
        status.version = before.version + 1;
    }
    let state = status.state(&plan.polling, seen.at);
    status.announced.consider(state, seen.at);
    status
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

#[cfg(test)]
mod tests {
    use super::super::observe::Trouble;
    use super::*;
    use crate::net::Place;
    use feedgate_core::poll::{Trigger, Validators};
    use feedgate_core::record::Seq;
    use feedgate_core::resource::ResourceId;
    use feedgate_core::schedule::FailureClass;
    use feedgate_core::topic::Topic;
    use feedgate_feed::Body;
    use feedgate_feed::model::Entry;
    use feedgate_feed::repair::{Repair, RepairCode};

    const TERMS: Terms = Terms {
        bounds: ScheduleBounds { min_period_s: 60, k: schedule::K_LEAST },
        dice: 0.5,
        porn_rank: false,
    };

    fn at(hours: i64) -> DateTime<Utc> {
        DateTime::UNIX_EPOCH + chrono::TimeDelta::hours(hours)
    }

    fn due(kind: ResourceKind, polling: Polling, status: Status) -> DueResource {
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
            pushed_until: None,
        };
        DueResource { resource, trigger: Trigger::Schedule }
    }

    fn seen(hours: i64, found: Found) -> Seen {
        let (took, place) = (Duration::ZERO, Place::Here);
        Seen { at: at(hours), took, wire_bytes: 0, doubted: false, place, found }
    }

    fn trouble(http_code: u16, retry_after_s: Option<u32>) -> Found {
        let message = "trouble".to_owned();
        let class = FailureClass::of_status(http_code);
        Found::Trouble(Trouble { code: "http_status", message, class, http_code, retry_after_s })
    }

    fn fresh() -> Fresh {
        let validators = Validators { etag: Some(b"\"1\"".to_vec()), ..Validators::default() };
        let body = Body { content_type: None, bytes: Vec::new() };
        Fresh {
            validators,
            hash: "00".to_owned(),
            hint_s: 0,
            body,
            gate: String::new(),
            offers: Vec::new(),
            links: Vec::new(),
        }
    }

    fn told(due: &DueResource, hours: i64, found: Found) -> Poll {
        report(due, seen(hours, found), Records::default(), &TERMS).poll
    }

    #[test]
    fn gone_is_believed_after_three_times_and_two_days() {
        let mut resource = due(ResourceKind::Feed, Polling::default(), Status::default());
        let mut seen_errors = Vec::new();
        for hours in [0, 1, 2, 49] {
            let poll = told(&resource, hours, trouble(410, None));
            seen_errors.push((poll.status.error.clone(), poll.status.version));
            resource = due(ResourceKind::Feed, poll.polling, poll.status);
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
        let due = due(ResourceKind::Feed, polling, Status::default());
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
            ("the first of all",                   ResourceKind::Unknown, feed(),               true),
            ("no feed",                            ResourceKind::Unknown, Found::Other(fresh()), true),
            ("a page that has become a feed",      ResourceKind::Other,   feed(),               true),
            ("a known feed",                       ResourceKind::Feed,    feed(),               false),
            ("a known page",                       ResourceKind::Other,   Found::Other(fresh()), false),
            ("trouble",                            ResourceKind::Unknown, trouble(500, None),   false),
        ];
        for (why, kind, found, want) in cases {
            let due = due(kind, Polling::default(), Status::default());
            assert_eq!(told(&due, 0, found).silent, want, "{why} (rule N5)");
        }
    }

    #[test]
    fn the_status_says_how_little_of_the_newest_document_is_to_be_relied_on() {
        let entries = vec![Entry::default(); 2];
        let repairs = vec![Repair::new(RepairCode::IdGenerated, "x")];
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
            let due = due(ResourceKind::Feed, Polling::default(), known.clone());
            assert_eq!(told(&due, 0, found).status.bozo_rank, want, "{why}");
        }
    }
}
