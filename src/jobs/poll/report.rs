//! Converts the observation of a poll to the stored data: status, schedule, and polling state.
//!
//! [`report`] is a pure function.

mod response;
mod status;

use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::fetch_traces::TracedRequest;
use feedgate_core::poll::{Poll, Polling, Trigger};
use feedgate_core::rank;
use feedgate_core::resource::{Resource, ResourceKind};
use feedgate_core::schedule::{
    self, NewRecords, PeriodStep, PollPlan, PollSetback, ScheduleBounds, ScheduleInput,
};
use feedgate_core::store::DueResource;
use feedgate_core::upstream::UpstreamFinding;
use feedgate_feed::model::Feed;
use feedgate_feed::render;

use super::observation::{
    FRAGMENT_NOT_FOUND, Found, FragmentMissing, Observation, ROBOTS_DISALLOWED,
};
use super::records::PollRecords;
use response::remembered;
use status::status;

/// The result of a poll.
#[derive(Debug)]
pub(super) struct PollReport {
    /// The data that the store records.
    pub(super) poll: Poll,
    /// How the poll ended, as a stable word: `ok_new`, `ok_same`, `not_modified` or an error code
    /// of `docs/errors.md`.
    pub(super) outcome: &'static str,
    /// How long the fetch took.
    pub(super) took: Duration,
    /// The number of bytes received, before content decoding.
    pub(super) wire_bytes: u64,
    /// The requests of the fetch.
    pub(super) requests: Vec<TracedRequest>,
    /// What each rule of the schedule made of the period.
    pub(super) steps: Vec<PeriodStep>,
    /// The feed that was found, which nothing needs any more.
    pub(super) feed: Option<Box<Feed>>,
}

/// The inputs of a report besides the observation.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReportInputs {
    /// The bounds of poll periods.
    pub(super) bounds: ScheduleBounds,
    /// A random number from 0 to 1.
    pub(super) jitter: f64,
    /// Whether to estimate the porn rank.
    pub(super) porn_rank: bool,
}

/// Returns the report of a poll. `records` are those that it adds to the log.
pub(super) fn report(
    due: &DueResource,
    observation: Observation,
    records: PollRecords,
    terms: &ReportInputs,
) -> PollReport {
    let resource = &due.resource;
    let now = observation.at + observation.took;
    let outcome = outcome(&observation.found, &records);
    let (took, wire_bytes) = (observation.took, observation.wire_bytes);
    let kind = kind(&observation.found);
    let learnt_kind = match &observation.found {
        Found::Failure(failure) => failure.kind,
        _ => None,
    };
    let is_baseline = kind.is_some() && resource.subscribers == 0;
    let is_first = is_first_document(resource, &observation.found);
    // A page may be known as one, and never have been read, because its server disallowed it.
    let is_unread = resource.body_version == 0 && resource.status.error == ROBOTS_DISALLOWED;
    let held = ScheduleInput {
        kind: resource.kind,
        subscribers: resource.subscribers,
        pushed: resource.pushed_until.is_some_and(|until| until > now),
        polling: remembered(resource, &observation),
    };
    let answered_well = !matches!(observation.found, Found::Failure(_));
    let found = schedule_input(&observation, records.new);
    let mut plan = schedule::plan(held, &found, &terms.bounds, now, terms.jitter);
    plan_recheck(&mut plan, due, &observation);
    let mut status = status(resource, &observation, &plan);
    if let Found::Feed { feed, .. } = &observation.found {
        status.porn_rank = terms.porn_rank.then(|| rank::porn(feed));
    }
    let PollPlan { mut polling, next_fetch, demand, steps, .. } = plan;
    let requests = observation.requests;
    if let Found::FragmentMissing(_) = &observation.found {
        count_missing_fragment(&mut polling, &resource.polling, now);
    }
    let (feed, received) = match observation.found {
        Found::Feed { feed, received } => (Some(feed), Some(received)),
        Found::Other(received) => (None, Some(received)),
        _ => (None, None),
    };
    let poll = Poll {
        claim: due.claim,
        at: now,
        trigger: due.trigger,
        answered_well,
        kind: kind.or(learnt_kind),
        fetch_url: None,
        source_network: Some(observation.source_network)
            .filter(|source_network| *source_network > resource.exposure.source_network),
        site_url: feed.as_deref().and_then(Feed::site_url),
        feed_head: feed.as_deref().map(render::atom::stored_head),
        body: received.map(|received| received.body),
        upstream: UpstreamFinding::Unknown,
        semantic_digest: records.semantic_digest,
        found: records.found,
        silent: kind.is_some() && (is_first || is_baseline || is_unread),
        is_baseline,
        next_fetch,
        demand,
        status,
        polling,
        leaves_details: false,
    };
    PollReport { poll, outcome, took, wire_bytes, requests, steps, feed }
}

/// Returns the stable code of the outcome.
fn outcome(found: &Found, records: &PollRecords) -> &'static str {
    match found {
        Found::NotModified { .. } => "not_modified",
        Found::Same(_) => "ok_same",
        Found::Feed { .. } | Found::Other(_) if records.new + records.updated == 0 => "ok_same",
        Found::Feed { .. } | Found::Other(_) => "ok_new",
        Found::FragmentMissing(_) => FRAGMENT_NOT_FOUND,
        Found::Failure(failure) => failure.code,
    }
}

/// Returns whether this is the first document of the resource as one of this kind, so that nobody is notified
/// of what is in it. A known document that becomes a feed is compared with the document before, and so is a
/// page that is no feed any more.
fn is_first_document(resource: &Resource, found: &Found) -> bool {
    let Some(kind) = kind(found) else { return false };
    let becomes_feed = resource.is_known_document() && kind == ResourceKind::Feed;
    let revises_page = matches!(found, Found::Other(received) if received.revises_page);
    kind != resource.kind && !becomes_feed && !revises_page
}

fn kind(found: &Found) -> Option<ResourceKind> {
    match found {
        Found::Feed { .. } => Some(ResourceKind::Feed),
        Found::Other(_) | Found::FragmentMissing(_) => Some(ResourceKind::Other),
        Found::NotModified { .. } | Found::Same(_) | Found::Failure(_) => None,
    }
}

/// Makes the resource due for the request that checks a "not modified", if the publisher or a request
/// said that there may be a change (rule P9).
fn plan_recheck(plan: &mut PollPlan, due: &DueResource, observation: &Observation) {
    let is_denied = matches!(observation.found, Found::NotModified { .. });
    if due.trigger == Trigger::Ping && is_denied && !observation.doubted {
        let recheck = plan.polling.plan_recheck(observation.at);
        plan.next_fetch = recheck.map_or(plan.next_fetch, |at| at.min(plan.next_fetch));
    }
}

/// Counts a poll without the watched fragment as a failure, so that subscribers who are notified
/// of lasting failures are notified of this one too.
fn count_missing_fragment(polling: &mut Polling, before: &Polling, now: DateTime<Utc>) {
    let is_ahead = before.is_ahead_of_plan(now);
    polling.failures = before.failures.saturating_add(u32::from(!is_ahead)).max(1);
    polling.failing_since = Some(before.failing_since.unwrap_or(now));
}

/// Returns the observation as input of the schedule.
fn schedule_input(observation: &Observation, new: usize) -> schedule::PollFinding {
    match &observation.found {
        Found::NotModified { hint_s } => schedule::PollFinding::NotModified { hint_s: *hint_s },
        Found::Same(received) => schedule::PollFinding::Same { hint_s: received.hint_s },
        Found::Feed { feed, received } => schedule::PollFinding::NewRecords(NewRecords::from_feed(
            feed,
            received.hint_s,
            new,
            observation.at,
        )),
        Found::Other(received) => {
            schedule::PollFinding::NewRecords(NewRecords::of_other(received.hint_s, new))
        }
        // The server works as it should, and the fragment may come back at any time.
        Found::FragmentMissing(FragmentMissing { received: None, hint_s, .. }) => {
            schedule::PollFinding::NotModified { hint_s: *hint_s }
        }
        Found::FragmentMissing(FragmentMissing { hint_s, .. }) => {
            schedule::PollFinding::Same { hint_s: hint_s.unwrap_or_default() }
        }
        Found::Failure(failure) => schedule::PollFinding::Failure(PollSetback {
            class: failure.class,
            retry_after_s: failure.retry_after_s,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::super::observation::{Failure, ReceivedBody};
    use super::*;
    use crate::document_budget::DocumentMemory;
    use crate::net::ResourceLocation;
    use feedgate_core::claim::ClaimToken;
    use feedgate_core::poll::Validators;
    use feedgate_core::record::Seq;
    use feedgate_core::resource::ResourceId;
    use feedgate_core::schedule::FailureClass;
    use feedgate_core::status::Status;
    use feedgate_core::topic::Topic;
    use feedgate_core::visibility::SourceNetwork;
    use feedgate_feed::Body;
    use feedgate_feed::model::Entry;
    use feedgate_feed::repair::{Repair, RepairCode};

    const INPUTS: ReportInputs = ReportInputs {
        bounds: ScheduleBounds { min_period_s: 60, k: schedule::K_LEAST },
        jitter: 0.5,
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
            exposure: Default::default(),
        };
        DueResource { resource, claim: ClaimToken::NONE, trigger: Trigger::Schedule }
    }

    fn observation(hours: i64, found: Found) -> Observation {
        let (took, location) = (Duration::ZERO, ResourceLocation::Here);
        let (wire_bytes, requests, visits) = (0, Vec::new(), Vec::new());
        let (at, doubted, source_network) = (at(hours), false, SourceNetwork::Public);
        Observation {
            at,
            took,
            wire_bytes,
            requests,
            visits,
            doubted,
            location,
            source_network,
            found,
        }
    }

    fn failure(http_code: u16, retry_after_s: Option<u32>) -> Found {
        let message = "trouble".to_owned();
        let class = FailureClass::of_status(http_code);
        let code = "http_status";
        Found::Failure(Failure { code, message, class, http_code, retry_after_s, kind: None })
    }

    fn received() -> ReceivedBody {
        let validators = Validators { etag: Some(b"\"1\"".to_vec()), ..Validators::default() };
        let body = Body { content_type: None, bytes: Vec::new() };
        ReceivedBody {
            validators,
            hash: "00".to_owned(),
            hint_s: 0,
            clock_ahead_s: 0,
            body,
            gate: String::new(),
            offers: Vec::new(),
            sitemaps: Vec::new(),
            revises_page: false,
            links: Vec::new(),
            memory: DocumentMemory::for_tests(),
        }
    }

    fn told(due: &DueResource, hours: i64, found: Found) -> Poll {
        report(due, observation(hours, found), PollRecords::default(), &INPUTS).poll
    }

    #[test]
    fn gone_is_believed_after_three_times_and_two_days() {
        let mut resource = due(ResourceKind::Feed, Polling::default(), Status::default());
        let mut seen_errors = Vec::new();
        for hours in [0, 1, 2, 49] {
            let poll = told(&resource, hours, failure(410, None));
            seen_errors.push((poll.status.error.clone(), poll.status.version));
            resource = due(ResourceKind::Feed, poll.polling, poll.status);
        }
        let http_status = |version| ("http_status".to_owned(), version);
        let gone = ("gone".to_owned(), 2);
        assert_eq!(seen_errors, [http_status(1), http_status(1), http_status(1), gone]);
        let back = told(&resource, 50, Found::Same(received()));
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
            ("a feed", Found::Feed { feed: feed(), received: received() }, true),
            ("the same bytes (P6)", Found::Same(received()), true),
            ("not modified (P8)", Found::NotModified { hint_s: None }, false),
            ("failure (P7)", failure(200, None), false),
        ];
        for (why, found, want) in cases {
            let validators = told(&due, 0, found).polling.validators;
            assert_eq!(validators != before, want, "{why}");
        }
    }

    #[test]
    fn the_first_good_poll_is_silent_whatever_it_finds() {
        let feed = || Found::Feed { feed: Box::default(), received: received() };
        #[rustfmt::skip]
        let cases = [
            ("the first of all",                   ResourceKind::Unknown, feed(),               true),
            ("no feed",                            ResourceKind::Unknown, Found::Other(received()), true),
            ("a page that was never read",         ResourceKind::Other,   feed(),               true),
            ("a known feed",                       ResourceKind::Feed,    feed(),               false),
            ("a known page",                       ResourceKind::Other,   Found::Other(received()), false),
            ("trouble",                            ResourceKind::Unknown, failure(500, None),   false),
        ];
        for (why, kind, found, want) in cases {
            let due = due(kind, Polling::default(), Status::default());
            assert_eq!(told(&due, 0, found).silent, want, "{why} (N5)");
        }
        let mut due = due(ResourceKind::Other, Polling::default(), Status::default());
        due.resource.body_version = 1;
        assert!(!told(&due, 0, feed()).silent, "a document that has become a feed is compared");
    }

    #[test]
    fn the_status_says_how_little_of_the_newest_document_is_to_be_relied_on() {
        let entries = vec![Entry::default(); 2];
        let repairs = vec![Repair::new(RepairCode::IdGenerated, "x")];
        let feed = Box::new(Feed { entries, repairs, ..Feed::default() });
        let known = Status { bozo_rank: 0.7, ..Status::default() };
        #[rustfmt::skip]
        let cases = [
            ("half of its ids are ours",     Found::Feed { feed, received: received() },               0.3),
            ("nothing was wrong",            Found::Feed { feed: Box::default(), received: received() }, 0.0),
            ("no feed",                      Found::Other(received()),                              0.0),
            ("the same as before",           Found::Same(received()),                               0.7),
            ("not modified",                 Found::NotModified { hint_s: None },                0.7),
            ("trouble",                      failure(500, None),                                 0.7),
        ];
        for (why, found, want) in cases {
            let due = due(ResourceKind::Feed, Polling::default(), known.clone());
            assert_eq!(told(&due, 0, found).status.bozo_rank, want, "{why}");
        }
    }
}
