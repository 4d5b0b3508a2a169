//! One poll from end to end: what a publisher serves, and what is kept of it.

mod becoming_feeds;
mod explained;
mod fragments;
mod inner_networks;
mod kept;
mod lookup_places;
mod marked_up_pages;
mod new_entries;
mod redirects;
mod renewal;
mod tarpit;
mod watched_pages;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use feedgate::event_log::EventLog;
use feedgate::jobs::poll::{PollSettings, Poller};
use feedgate::jobs::runner;
use feedgate::metrics::Metrics;
use feedgate::net::{self, HttpClient};
use feedgate_core::claim::QueuePosition;
use feedgate_core::record::Seq;
use feedgate_core::resource::{Resource, ResourceKind};
use feedgate_core::store::ClaimLimits;
use feedgate_core::subscription::{Format, Lease, Statuses, SubscriptionRequest};
use feedgate_core::topic::{Callback, Topic};
use feedgate_protocol::Protocol;
use feedgate_store::Store;
use http::StatusCode;
use http::header::{ETAG, HeaderValue};
use tokio::sync::Semaphore;

use crate::store::{on_both_stores, on_one_store};
use crate::support::feeds::{entry_id, rss};
use crate::support::origin::{Origin, answer};
use crate::support::postgres::Database;
use crate::support::publisher::Publisher;
use crate::support::server::{Server, say};
use crate::support::until;

on_both_stores!(
    n05_what_was_there_before_is_told_to_nobody,
    numbers_ascend_with_age_whichever_way_the_document_runs,
    a_server_that_says_slow_down_is_left_alone_altogether,
    n12_content_that_comes_back_is_news_again,
    polls_at_the_same_time_are_one_poll,
    a_caller_that_stops_waiting_leaves_no_claim_behind,
);

on_one_store!(
    a_document_that_cannot_be_read_costs_no_entry,
    a_page_with_entries_marked_up_is_a_feed_and_stays_one,
    the_same_bytes_are_not_parsed_again_but_their_validators_are_kept,
    trouble_is_shown_and_over_as_soon_as_it_is_over,
    p40_what_robots_txt_forbids_us_by_name_is_not_fetched,
    a_ping_that_contradicts_a_304_is_believed_once_a_day,
);

/// A poller, and the publisher it polls.
struct Bench {
    store: Arc<Store>,
    ingest: Poller,
    publisher: Publisher,
}

impl Bench {
    async fn start(database: &Database) -> Bench {
        let store = database.open().await;
        let ingest = poller(&store, client("127.0.0.0/8"));
        Bench { store, ingest, publisher: Publisher::start().await }
    }

    /// Polls what is at `path`, now.
    async fn poll(&self, path: &str) -> Resource {
        self.poll_url(&self.publisher.url(path)).await
    }

    async fn poll_url(&self, url: &str) -> Resource {
        let topic = Topic::parse(url).unwrap();
        let resource = self.store.ensure(&topic, runner::now()).await.unwrap();
        self.ingest.poll_now(&resource).await.unwrap().resource
    }

    async fn subscribe(&self, path: &str, format: Format) {
        let request = SubscriptionRequest {
            format,
            statuses: Statuses::default(),
            lease: Lease::from(Duration::from_secs(3_600)),
            ..SubscriptionRequest::new(
                Topic::parse(self.publisher.url(path)).unwrap(),
                Callback::parse(format!("https://b.test/{}", format.as_str())).unwrap(),
                Protocol::WebSub,
            )
        };
        self.store.subscribe(&request, runner::now()).await.unwrap();
    }

    /// What subscriptions are owed: cursor and end.
    async fn owed(&self) -> Vec<(i64, i64)> {
        let now = runner::now();
        let (until, start) = (now + Duration::from_secs(1), QueuePosition::START);
        let due = self.store.claim_subscriptions(now, until, &room(), start).await;
        due.unwrap().due.iter().map(|due| (due.subscription.cursor.0, due.owed.0)).collect()
    }

    /// The ids of the records of a resource, oldest first.
    async fn ids(&self, resource: &Resource) -> Vec<String> {
        let records = self.store.read_after(resource.id, Seq::NONE, 1_000).await.unwrap();
        records.into_iter().map(|record| record.entry_id).collect()
    }
}

fn poller(store: &Arc<Store>, client: HttpClient) -> Poller {
    let claim = Duration::from_secs(60);
    let settings = PollSettings { claim, min_period_s: 60, porn_rank: false, upstream_url: None };
    Poller::new(Arc::clone(store), client, Metrics::new(), EventLog::off(), settings)
}

/// A client that may fetch topics from this network.
fn client(network: &str) -> HttpClient {
    HttpClient::new(net::NetworkSettings {
        user_agent: "feedgate/0.0 (+https://gateway.test/".to_owned(),
        allow_topics: vec![network.parse().unwrap()],
        allow_callbacks: Vec::new(),
        fetch_timeout: Duration::from_secs(30),
        callback_timeout: Duration::from_secs(10),
        body_limit_bytes: 10_000_000,
        host_spacing: Duration::ZERO,
        fetch_concurrency: 64,
        document_memory_bytes: 1 << 30,
    })
}

fn room() -> ClaimLimits {
    ClaimLimits { limit: 1_000, per_host: 1_000, busy: Vec::new() }
}

async fn n05_what_was_there_before_is_told_to_nobody(database: Database) {
    let bench = Bench::start(&database).await;
    bench.subscribe("/feed", Format::Atom).await;
    bench.subscribe("/feed", Format::Raw).await;
    bench.publisher.put_rss("/feed", rss("tides", 1..=5));
    let resource = bench.poll("/feed").await;
    assert_eq!((resource.head, resource.kind), (Seq(5), ResourceKind::Feed), "everything is kept");
    assert_eq!(bench.owed().await, [], "rule N5");

    bench.publisher.put_rss("/feed", rss("tides", 2..=7));
    assert_eq!(bench.poll("/feed").await.head, Seq(7), "what is known is not numbered again");
    let mut owed = bench.owed().await;
    owed.sort_unstable();
    assert_eq!(owed, [(1, 2), (5, 7)], "the body's second version, and two entries");
}

async fn numbers_ascend_with_age_whichever_way_the_document_runs(database: Database) {
    let bench = Bench::start(&database).await;
    bench.publisher.put_rss("/usual", rss("tides", 1..=3));
    let resource = bench.poll("/usual").await;
    let oldest_first: Vec<String> = (1..=3).map(|n| entry_id("tides", n)).collect();
    assert_eq!(bench.ids(&resource).await, oldest_first, "rule N10");

    let items = (1..=3).map(|n| {
        format!(
            "<item><guid isPermaLink='false'>tag:log.test,2026:{n}</guid><title>{n}</title>\
             <pubDate>0{n} Sep 2026 10:00:00 GMT</pubDate></item>"
        )
    });
    let items: String = items.collect();
    let log = format!("<rss version='2.0'><channel><title>Log</title>{items}</channel></rss>");
    bench.publisher.put_rss("/log", log);
    let resource = bench.poll("/log").await;
    let oldest_first: Vec<String> = (1..=3).map(|n| entry_id("log", n)).collect();
    assert_eq!(bench.ids(&resource).await, oldest_first, "the document lists the oldest first");
}

async fn a_document_that_cannot_be_read_costs_no_entry(database: Database) {
    let bench = Bench::start(&database).await;
    bench.publisher.put_rss("/feed", rss("tides", 1..=1));
    let before = bench.poll("/feed").await;
    let login = "<!doctype html><title>Log in</title><form></form>".to_owned();
    for page in [login, marked_up(1..=3)] {
        bench.publisher.put("/feed", "text/html", page);
        let resource = bench.poll("/feed").await;
        assert_eq!(resource.status.error, "not_a_feed");
        assert_eq!((resource.kind, resource.head), (ResourceKind::Feed, Seq(1)), "it stays a feed");
        assert_eq!(resource.polling.validators, before.polling.validators, "rule P7");
        let soon = runner::now() + Duration::from_secs(7 * 3_600);
        assert!(resource.next_fetch < soon, "rule P31: within six hours");
    }

    bench.publisher.put_rss("/feed", rss("tides", 1..=2));
    let resource = bench.poll("/feed").await;
    assert_eq!((resource.head, resource.status.error.as_str()), (Seq(2), ""));
}

/// A page with these entries marked up in it.
fn marked_up(numbers: std::ops::RangeInclusive<usize>) -> String {
    let entry = |n| format!("<p class=h-entry><a href='/{n}'>Item {n}</a>");
    let entries: String = numbers.rev().map(entry).collect();
    format!("<!doctype html><title>tides</title><div class=h-feed>{entries}</div>")
}

async fn a_page_with_entries_marked_up_is_a_feed_and_stays_one(database: Database) {
    let bench = Bench::start(&database).await;
    bench.publisher.put("/", "text/html", marked_up(1..=2));
    let resource = bench.poll("/").await;
    assert_eq!((resource.kind, resource.head), (ResourceKind::Feed, Seq(2)));
    bench.publisher.put("/", "text/html", marked_up(1..=3));
    let resource = bench.poll("/").await;
    assert_eq!((resource.head, resource.status.error.as_str()), (Seq(3), ""));
}

async fn the_same_bytes_are_not_parsed_again_but_their_validators_are_kept(database: Database) {
    let bench = Bench::start(&database).await;
    bench.publisher.put_rss("/feed", rss("tides", 1..=1));
    let first = bench.poll("/feed").await;
    bench.publisher.put_rss("/feed", rss("tides", 1..=1)); // with another ETag
    let second = bench.poll("/feed").await;
    assert_eq!(second.status.last_parse, first.status.last_parse, "rule P11");
    assert_ne!(second.status.last_fetch, first.status.last_fetch);
    assert_eq!(second.body_version, 1);
    assert_ne!(second.polling.validators, first.polling.validators, "rule P6");
    let third = bench.poll("/feed").await;
    assert_eq!(third.status.http_code, 304, "and so the next answers are short");
}

async fn trouble_is_shown_and_over_as_soon_as_it_is_over(database: Database) {
    let bench = Bench::start(&database).await;
    bench.publisher.put_rss("/feed", rss("tides", 1..=1));
    let well = bench.poll("/feed").await;
    bench.publisher.fail("/feed", StatusCode::INTERNAL_SERVER_ERROR);
    bench.poll("/feed").await;
    let ill = bench.poll("/feed").await;
    assert_eq!((ill.status.http_code, ill.status.error.as_str()), (500, "http_status"));
    assert_eq!(ill.polling.failures, 1, "the second was not planned yet (P29)");
    assert_eq!(ill.status.version, well.status.version + 1, "one transition, not one a poll");
    assert!(ill.next_fetch > runner::now(), "asked again, later");
    assert_eq!(ill.status.title, "tides", "what was known stays known");

    bench.publisher.put_rss("/feed", rss("tides", 1..=1));
    let well = bench.poll("/feed").await;
    assert_eq!((well.status.http_code, well.polling.failures), (200, 0));
    assert_eq!(well.status.version, ill.status.version + 1);
}

async fn a_server_that_says_slow_down_is_left_alone_altogether(database: Database) {
    let bench = Bench::start(&database).await;
    bench.publisher.fail("/busy", StatusCode::TOO_MANY_REQUESTS);
    bench.subscribe("/other", Format::Atom).await;
    let claim = async || {
        let (now, room) = (runner::now(), room());
        bench.store.claim_resources(now, now, &room).await.unwrap().len()
    };
    assert_eq!(claim().await, 1, "the other resource is due");
    let resource = bench.poll("/busy").await;
    assert_eq!(resource.polling.failures, 0, "rule P26: no sign of a dead feed");
    assert!(resource.next_fetch >= runner::now() + Duration::from_secs(500), "ten minutes");
    assert_eq!(claim().await, 0, "rule P27: nor is anything else of that host asked for");
}

async fn p40_what_robots_txt_forbids_us_by_name_is_not_fetched(database: Database) {
    let bench = Bench::start(&database).await;
    let origin = Origin::start().await;
    let rules = "User-agent: *\nDisallow: /\n\nUser-agent: feedgate\nDisallow: /private\n";
    origin.script("/robots.txt", [answer("200 OK", &[], rules)]);
    for path in ["/feed", "/private/feed"] {
        origin.script(path, [answer("200 OK", &[], rss("tides", 1..=1))]);
    }
    let fine = bench.poll_url(&origin.url("/feed")).await;
    assert_eq!((fine.head, fine.status.error.as_str()), (Seq(1), ""));
    let forbidden = bench.poll_url(&origin.url("/private/feed")).await;
    assert_eq!(forbidden.status.error, "robots_disallowed");
    assert!(forbidden.status.http_message.contains("robots.txt of 127.0.0.1"));
    let request: Vec<_> =
        origin.requests().iter().map(|request| request.target().to_owned()).collect();
    assert_eq!(request, ["/robots.txt", "/feed"], "the rules are read once a day");
}

async fn n12_content_that_comes_back_is_news_again(database: Database) {
    let bench = Bench::start(&database).await;
    for (content, head) in [("one", 1), ("two", 2), ("two", 2), ("one", 3)] {
        bench.publisher.put("/page", "text/plain", content);
        let resource = bench.poll("/page").await;
        assert_eq!((resource.kind, resource.head), (ResourceKind::Other, Seq(head)), "rule N12");
        let (version, body) = bench.store.body(resource.id).await.unwrap().unwrap();
        assert_eq!((version, body.bytes.as_slice()), (head, content.as_bytes()));
    }
}

async fn a_ping_that_contradicts_a_304_is_believed_once_a_day(database: Database) {
    let bench = Bench::start(&database).await;
    let version = Arc::new(AtomicUsize::new(1));
    let newest = Arc::clone(&version);
    // A server that has stopped looking: whoever asks with an ETag is told "not modified".
    let stuck = Server::start(move |request| {
        let body = rss("tides", 1..=newest.load(Ordering::SeqCst));
        let status = match request.header("if-none-match") {
            Some(_) => StatusCode::NOT_MODIFIED,
            None => StatusCode::OK,
        };
        async move {
            let mut answer = say(status, body);
            answer.headers_mut().insert(ETAG, HeaderValue::from_static("\"always\""));
            answer
        }
    })
    .await;
    let url = stuck.url("/feed");
    assert_eq!(bench.poll_url(&url).await.head, Seq(1));
    version.store(2, Ordering::SeqCst);
    assert_eq!(bench.poll_url(&url).await.head, Seq(1), "the next request checks it");
    assert_eq!(bench.poll_url(&url).await.head, Seq(2), "rule P9");
    version.store(3, Ordering::SeqCst);
    let resource = bench.poll_url(&url).await;
    assert_eq!((resource.head, resource.status.http_code), (Seq(2), 304), "not twice a day");
}

async fn polls_at_the_same_time_are_one_poll(database: Database) {
    let bench = Bench::start(&database).await;
    let (leave, begun) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    let (waits, tells) = (Arc::clone(&leave), Arc::clone(&begun));
    let slow = Server::start(move |request| {
        let (waits, tells) = (Arc::clone(&waits), Arc::clone(&tells));
        async move {
            if request.path == "/robots.txt" {
                return say(StatusCode::NOT_FOUND, "");
            }
            tells.add_permits(1);
            waits.acquire().await.unwrap().forget();
            say(StatusCode::OK, rss("tides", 1..=1))
        }
    })
    .await;
    let topic = Topic::parse(slow.url("/feed")).unwrap();
    let resource = bench.store.ensure(&topic, runner::now()).await.unwrap();
    let polls =
        async { tokio::join!(bench.ingest.poll_now(&resource), bench.ingest.poll_now(&resource)) };
    let release = async {
        begun.acquire().await.unwrap().forget();
        leave.add_permits(2);
    };
    let ((first, second), ()) = tokio::join!(polls, release);
    assert_eq!((first.unwrap().resource.head, second.unwrap().resource.head), (Seq(1), Seq(1)));
    assert_eq!(begun.available_permits(), 0, "one fetch");
}

async fn a_caller_that_stops_waiting_leaves_no_claim_behind(database: Database) {
    let bench = Bench::start(&database).await;
    for steps in 0..24 {
        let path = format!("/{steps}");
        bench.publisher.put_rss(&path, rss("tides", 1..=1));
        let topic = Topic::parse(bench.publisher.url(&path)).unwrap();
        let now = runner::now();
        let resource = bench.store.ensure(&topic, now).await.unwrap();
        {
            let mut poll = std::pin::pin!(bench.ingest.poll_now(&resource));
            for _ in 0..steps {
                if futures_util::poll!(&mut poll).is_ready() {
                    break;
                }
                tokio::time::sleep(Duration::from_micros(300)).await;
            }
        }
        // A claim that was left behind would still hold at the time at which it was made.
        let until_free = async || {
            let until = now + Duration::from_secs(1);
            bench.store.claim_resource(resource.id, now, until).await.unwrap().is_some()
        };
        until("the resource can be claimed", until_free).await;
    }
}
