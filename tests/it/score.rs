//! Feedgate under the eyes of a publisher who scores feed readers: a thousand days of
//! polling (`tests/run --full`) or a quarter of them, in simulated time, of publishers with all
//! their habits.
//!
//! Modelled on Rachel Kroll's feed reader score test: its server changes validators in
//! every way there is and notes who asks for everything without reason, sends what it
//! was never given, comes too soon, or begins anew after a restart. Polls are real, over
//! a socket, into a real store; only the clock is made up.

mod grader;
mod site;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use feedgate::event_log::EventLog;
use feedgate::jobs::poll::{PollSettings, Poller};
use feedgate::metrics::Metrics;
use feedgate::net::{self, HttpClient, Patience};
use feedgate_core::record::Seq;
use feedgate_core::resource::ResourceId;
use feedgate_core::store::ClaimLimits;
use feedgate_core::subscription::{Format, Lease, Statuses, SubscriptionRequest};
use feedgate_core::topic::{Callback, Topic};
use feedgate_protocol::Protocol;
use feedgate_store::Store;

use self::grader::{Grader, MIN_PERIOD_S, Score};
use self::site::{DAY_S, Habits};
use crate::support::origin::{Origin, Request, Step};
use crate::support::postgres::{Database, Kind};

/// The gateway is restarted after so many polls.
const RESTART_EVERY: usize = 53;
const CLAIM: Duration = Duration::from_secs(60);

/// Publishers that are good for hours, each with a habit of its own.
const PUBLISHERS: [Habits; 6] = [
    Habits::plain("plain", 31, 7 * 3_600),
    Habits { ttl_min: 720, ..Habits::plain("ttl", 97, 0) },
    Habits { skip_hours: &[0, 1, 2, 3, 4, 5], ..Habits::plain("nights", 53, 8 * 3_600) },
    Habits { moves: true, ..Habits::plain("moved", 71, 10 * 3_600) },
    Habits { goes: true, ..Habits::plain("gone", 43, 9 * 3_600) },
    Habits { sticks: true, ..Habits::plain("stuck", 211, 12 * 3_600) },
];

fn start() -> DateTime<Utc> {
    DateTime::from_timestamp(1_790_000_000, 0).unwrap()
}

/// A gateway that can be stopped and started again.
struct Node {
    store: Arc<Store>,
    ingest: Poller,
}

impl Node {
    async fn start(database: &Database) -> Node {
        let store = database.open().await;
        let fetch = HttpClient::new(net::NetworkSettings {
            user_agent: "feedgate/0.0 (+https://gateway.test/bot".to_owned(),
            allow_topics: vec!["127.0.0.0/8".parse().unwrap()],
            allow_callbacks: Vec::new(),
            fetch_timeout: Duration::from_secs(30),
            callback_timeout: Duration::from_secs(10),
            body_limit_bytes: 1_000_000,
            host_spacing: Duration::ZERO,
            fetch_concurrency: 64,
            document_memory_bytes: 1 << 30,
        });
        let min_period_s = u32::try_from(MIN_PERIOD_S).unwrap();
        let settings =
            PollSettings { claim: CLAIM, min_period_s, porn_rank: false, upstream_url: None };
        let ingest =
            Poller::new(Arc::clone(&store), fetch, Metrics::new(), EventLog::off(), settings);
        Node { store, ingest }
    }

    /// Polls what is due at `now`; how many that were.
    async fn poll_due(&self, now: DateTime<Utc>) -> usize {
        let room = ClaimLimits { limit: 10, per_host: 1, busy: Vec::new() };
        let claimed = TimeDelta::from_std(CLAIM).unwrap();
        let due = self.store.claim_resources(now, now + claimed, &room).await.unwrap();
        for due in &due {
            self.ingest.poll(due, now, Patience::Background).await.unwrap();
        }
        due.len()
    }

    async fn next_fetch(&self, id: ResourceId) -> DateTime<Utc> {
        self.store.get(id).await.unwrap().unwrap().next_fetch
    }
}

/// Follows a publisher for `days`.
async fn follow(habits: Habits, days: i64) -> Score {
    let database = Database::new(Kind::Sqlite).await;
    let site = Arc::new(Mutex::new(Grader::open(habits, start())));
    let serving = Arc::clone(&site);
    let origin = Origin::playing(move |request| serving.lock().unwrap().answer(request)).await;
    let mut node = Node::start(&database).await;
    let request = SubscriptionRequest {
        format: Format::Atom,
        statuses: Statuses::default(),
        lease: Lease::from(Duration::from_secs(3_600)),
        ..SubscriptionRequest::new(
            Topic::parse(origin.url("/feed")).unwrap(),
            Callback::parse("https://b.test/").unwrap(),
            Protocol::WebSub,
        )
    };
    let id = node.store.subscribe(&request, start()).await.unwrap().id.resource;

    let (mut now, mut polls) = (start(), 0);
    while now < start() + TimeDelta::seconds(days * DAY_S) {
        site.lock().unwrap().set(now);
        if node.poll_due(now).await == 0 {
            now += TimeDelta::seconds(1);
            continue;
        }
        polls += 1;
        if polls % RESTART_EVERY == 0 {
            node.store.close().await;
            node = Node::start(&database).await;
            assert_eq!(node.poll_due(now).await, 0, "a restart makes nothing due (rule P45)");
        }
        now = node.next_fetch(id).await.max(now + TimeDelta::seconds(1));
    }
    let score = site.lock().unwrap().score.clone();
    let head = node.store.get(id).await.unwrap().unwrap().head;
    assert_eq!(head, Seq(score.entries), "{}: each entry is there, once", habits.name);
    score
}

/// Follows a publisher for all the days, and finds nothing that it minds.
#[expect(clippy::print_stdout, reason = "how it went, for whoever runs it with --nocapture")]
async fn is_a_good_guest(habits: Habits) {
    let begun = std::time::Instant::now();
    let score = follow(habits, site::days()).await;
    println!("{}: {score:?} in {:?}", habits.name, begun.elapsed());
    let faults = &score.faults;
    assert!(faults.is_empty(), "{} faults: {:#?}", faults.len(), &faults[..faults.len().min(20)]);
    assert!(score.polls >= usize::try_from(site::days()).unwrap(), "it is polled at all");
    assert!(score.unmodified * 2 > score.polls, "most answers are short");
    // What is gone is asked once a month; nobody else is forgotten for two days.
    let longest_s = if habits.goes { 37 * DAY_S } else { 2 * DAY_S };
    assert!(score.longest_s < longest_s, "nothing is given up");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plain_publisher_has_nothing_to_complain_of() {
    is_a_good_guest(PUBLISHERS[0]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_publisher_with_a_ttl_has_nothing_to_complain_of() {
    is_a_good_guest(PUBLISHERS[1]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_publisher_who_sleeps_at_night_has_nothing_to_complain_of() {
    is_a_good_guest(PUBLISHERS[2]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_publisher_who_moves_has_nothing_to_complain_of() {
    is_a_good_guest(PUBLISHERS[3]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_publisher_who_goes_and_comes_back_has_nothing_to_complain_of() {
    is_a_good_guest(PUBLISHERS[4]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_publisher_whose_server_is_stuck_has_nothing_to_complain_of() {
    is_a_good_guest(PUBLISHERS[5]).await;
}

/// A request of a reader that has this to say.
fn request(path: &str, headers: &str) -> Request {
    let agent = "User-Agent: feedgate/0.0 (+https://gateway.test/bot; 1 subscribers; feed-id=1)";
    let head = format!("GET {path} HTTP/1.1\r\n{agent}\r\nAccept-Encoding: gzip\r\n{headers}");
    Request { head, body: Vec::new() }
}

#[test]
fn the_grader_minds_what_a_publisher_minds() {
    let day = |hours: i64| start() + TimeDelta::hours(hours);
    let well = "If-None-Match: \"v0\"\r\nIf-Modified-Since: Mon, 21 Sep 2026 14:13:20 GMT";
    let half = "If-None-Match: \"v0\"";
    #[rustfmt::skip]
    let cases = [
        ("as it should be",        10, "/feed",       well.to_owned(),                     None),
        ("unconditional",          10, "/feed",       String::new(),                       Some("unconditional")),
        ("half of what was given", 10, "/feed",       half.to_owned(),                     Some("validators")),
        ("invented",               10, "/feed",       well.replace("13:20", "13:21"),      Some("validators")),
        ("reformatted",            10, "/feed",       well.replace("\"v0\"", "v0"),        Some("validators")),
        ("too soon",                4, "/feed",       well.to_owned(),                     Some("after")),
        ("with a cookie",          10, "/feed",       format!("{well}\r\nCookie: visitor=7"), Some("cookie")),
        ("past the cache",         10, "/feed",       format!("{well}\r\nCache-Control: no-cache"), Some("cache-control")),
        ("of its own invention",   10, "/feed?_=1",   well.to_owned(),                     Some("nobody told")),
    ];
    for (why, hours, path, headers, want) in cases {
        let mut grader = Grader::open(PUBLISHERS[0], start());
        let first = grader.answer(&request("/feed", ""));
        assert!(matches!(first, Step::Send(_)));
        grader.set(day(hours));
        grader.answer(&request(path, &headers));
        let faults = &grader.score.faults;
        match want {
            None => assert!(faults.is_empty(), "{why}: {faults:?}"),
            Some(want) => assert!(faults.iter().any(|fault| fault.contains(want)), "{why}"),
        }
    }
}
