//! What a source published before it was watched is brought in: documents that are linked
//! by `prev-archive` or `next` go into the log, oldest first, and are news to nobody.

mod anonymous;
mod endpoints;
mod sources;

use std::sync::Arc;
use std::time::Duration;

use feedgate::event_log::EventLog;
use feedgate::jobs::backfill::{BackfillSettings, Backfiller};
use feedgate::jobs::poll::{self, Poller};
use feedgate::jobs::runner::{self, Job};
use feedgate::metrics::Metrics;
use feedgate::net::{self, HttpClient, Patience};
use feedgate_core::backfill::{Backfill, BackfillEnd, BackfillLimits};
use feedgate_core::claim::{ClaimToken, QueuePosition};
use feedgate_core::record::{Record, RecordKind, Seq};
use feedgate_core::resource::Resource;
use feedgate_core::store::ClaimLimits;
use feedgate_core::subscription::{Format, Lease, SubscriptionRequest};
use feedgate_core::topic::{Callback, Topic};
use feedgate_protocol::Protocol;
use feedgate_store::Store;
use http::StatusCode;

use crate::store::on_both_stores;
use crate::support::feeds::entry_id;
use crate::support::postgres::Database;
use crate::support::publisher::Publisher;
use crate::support::until;

on_both_stores!(
    history_comes_before_what_is_there_and_is_told_to_nobody,
    what_comes_while_history_is_read_is_news,
    history_of_a_known_resource_is_appended_as_old,
    a_step_that_was_killed_is_done_by_the_next_node,
    history_that_nobody_waits_for_is_forgotten,
    an_entry_that_stands_twice_counts_in_its_newest_form,
    p26_a_server_that_says_slow_down_to_a_history_is_left_alone_by_polls_too,
);

const LIMITS: BackfillLimits = BackfillLimits { pages: 50, entries: 1_000, bytes: 1 << 20 };

/// A gateway without doors, and a publisher.
struct Bench {
    store: Arc<Store>,
    ingest: Poller,
    backfills: Backfiller,
    publisher: Publisher,
}

impl Bench {
    async fn start(database: &Database) -> Bench {
        Bench::with(database, LIMITS, Duration::from_secs(60)).await
    }

    async fn with(database: &Database, limits: BackfillLimits, claim: Duration) -> Bench {
        let (store, ingest, backfills) = node(database, limits, claim).await;
        Bench { store, ingest, backfills, publisher: Publisher::start().await }
    }

    fn topic(&self) -> String {
        self.publisher.url("/feed")
    }

    async fn subscribe(&self, callback: &str) {
        let request = request(&self.topic(), callback);
        self.store.subscribe_with_history(&request, runner::now()).await.unwrap();
    }

    /// Polls the resource if it is due, as the poller would.
    async fn poll(&self) {
        let now = runner::now();
        let due = self.store.claim_resources(now, now + Duration::from_secs(60), &room()).await;
        for due in due.unwrap() {
            self.ingest.poll(&due, now, Patience::Background).await.unwrap();
        }
    }

    async fn resource(&self) -> Resource {
        self.store.find(&self.topic()).await.unwrap().unwrap()
    }

    async fn backfill(&self) -> Backfill {
        let id = self.resource().await.id;
        self.store.backfills(&[id]).await.unwrap().pop().unwrap()
    }

    /// Does all there is to do, and returns how it ended.
    async fn finish(&self) -> Backfill {
        steps(&self.backfills, usize::MAX).await;
        self.backfill().await
    }

    async fn records(&self) -> Vec<Record> {
        let id = self.resource().await.id;
        self.store.read_after(id, Seq::NONE, 10_000).await.unwrap()
    }

    async fn ids(&self) -> Vec<String> {
        self.records().await.into_iter().map(|record| record.entry_id).collect()
    }

    /// What subscriptions are owed: cursor and end.
    async fn owed(&self) -> Vec<(i64, i64)> {
        let now = runner::now();
        let (until, start) = (now + Duration::from_secs(60), QueuePosition::START);
        let due = self.store.claim_subscriptions(now, until, &room(), start).await;
        due.unwrap().due.iter().map(|due| (due.subscription.cursor.0, due.owed.0)).collect()
    }

    /// Publishes the entries 1 to `newest` as an archive, so many on a page.
    fn archive(&self, newest: usize, size: usize) {
        let pages = newest.div_ceil(size);
        for page in 1..=pages {
            let numbers = (page - 1) * size + 1..=(page * size).min(newest);
            let path =
                if page == pages { "/feed".to_owned() } else { format!("/documents/{page}") };
            let prev = (page > 1).then(|| format!("/documents/{}", page - 1));
            let links = prev.map(|prev| ("prev-archive", prev));
            self.publisher.put(&path, "application/atom+xml", atom(links.as_slice(), numbers));
        }
    }
}

fn request(topic: &str, callback: &str) -> SubscriptionRequest {
    SubscriptionRequest {
        format: Format::Atom,
        lease: Lease::from(Duration::from_secs(3_600)),
        ..SubscriptionRequest::new(
            Topic::parse(topic).unwrap(),
            Callback::parse(callback).unwrap(),
            Protocol::WebSub,
        )
    }
}

/// A node on `database`: its store, its poller and what brings in histories.
async fn node(
    database: &Database,
    limits: BackfillLimits,
    claim: Duration,
) -> (Arc<Store>, Poller, Backfiller) {
    node_with(database.open().await, limits, claim)
}

/// A node with this store.
fn node_with(
    store: Arc<Store>,
    limits: BackfillLimits,
    claim: Duration,
) -> (Arc<Store>, Poller, Backfiller) {
    let fetch = HttpClient::new(net::NetworkSettings {
        user_agent: "feedgate/0.0 (+https://gateway.test/".to_owned(),
        allow_topics: vec!["127.0.0.1/32".parse().unwrap()],
        allow_callbacks: Vec::new(),
        fetch_timeout: Duration::from_secs(30),
        callback_timeout: Duration::from_secs(10),
        body_limit_bytes: 10_000_000,
        host_spacing: Duration::ZERO,
        fetch_concurrency: 64,
        document_memory_bytes: 1 << 30,
    });
    let polling = Duration::from_secs(60);
    let settings = poll::PollSettings {
        claim: polling,
        min_period_s: 60,
        porn_rank: false,
        upstream_url: None,
    };
    let ingest =
        Poller::new(Arc::clone(&store), fetch.clone(), Metrics::new(), EventLog::off(), settings);
    let settings = BackfillSettings { claim, limits };
    let backfills = Backfiller::new(Arc::clone(&store), ingest.clone(), EventLog::off(), settings);
    (store, ingest, backfills)
}

/// Does up to so many steps, until nothing is due.
async fn steps(backfills: &Backfiller, most: usize) {
    for _ in 0..most {
        let Some(due) = backfills.claim(1).await.unwrap().pop() else { return };
        backfills.perform(due).await.unwrap();
    }
}

fn room() -> ClaimLimits {
    ClaimLimits { limit: 1_000, per_host: 1_000, busy: Vec::new() }
}

/// An Atom feed called `tides` with these links and entries, newest first.
fn atom(links: &[(&str, String)], numbers: impl DoubleEndedIterator<Item = usize>) -> String {
    let entries = numbers.rev().map(|n| {
        let (id, day) = (entry_id("tides", n), n % 28 + 1);
        let month = n / 28 + 1;
        format!(
            "<entry><id>{id}</id><title>Entry {n}</title>\
             <updated>2003-{month:02}-{day:02}T00:00:00Z</updated>\
             <content>The text of {n}</content></entry>\n"
        )
    });
    let entries: String = entries.collect();
    document(links, &entries)
}

fn document(links: &[(&str, String)], entries: &str) -> String {
    let links = links.iter().map(|(rel, href)| format!("<link rel=\"{rel}\" href=\"{href}\"/>\n"));
    let links: String = links.collect();
    format!(
        "<feed xmlns=\"http://www.w3.org/2005/Atom\"><id>tag:tides.test,2003:feed</id>\
         <title>Tides</title><updated>2003-12-01T00:00:00Z</updated>\n{links}{entries}</feed>\n"
    )
}

fn numbered(numbers: impl Iterator<Item = usize>) -> Vec<String> {
    numbers.map(|n| entry_id("tides", n)).collect()
}

async fn history_comes_before_what_is_there_and_is_told_to_nobody(database: Database) {
    let bench = Bench::start(&database).await;
    bench.archive(11, 3);
    bench.subscribe("https://b.test/cb").await;
    bench.poll().await;
    assert_eq!(bench.records().await, [], "what is there now waits for its history");

    let done = bench.finish().await;
    assert_eq!((done.state(), done.pages, done.appended), ("done", 4, 11));
    assert_eq!(done.ending, Some(BackfillEnd::Complete));
    let records = bench.records().await;
    assert!(records.iter().all(|record| record.kind == RecordKind::Old));
    bench.poll().await;
    assert_eq!(bench.ids().await, numbered(1..=11), "the poll found nothing else");
    assert_eq!(bench.owed().await, []);

    bench.archive(12, 3);
    let resource = bench.resource().await;
    bench.ingest.poll_now(&resource).await.unwrap();
    assert_eq!(bench.owed().await, [(11, 12)]);
}

async fn what_comes_while_history_is_read_is_news(database: Database) {
    let bench = Bench::start(&database).await;
    bench.archive(5, 2);
    bench.subscribe("https://b.test/cb").await;
    steps(&bench.backfills, 1).await;
    bench.archive(6, 2);
    assert_eq!(bench.finish().await.appended, 5);
    bench.poll().await;
    assert_eq!(bench.ids().await, numbered(1..=6));
    assert_eq!(bench.owed().await, [(5, 6)]);
}

async fn history_of_a_known_resource_is_appended_as_old(database: Database) {
    let bench = Bench::start(&database).await;
    bench.archive(7, 3);
    let other = request(&bench.topic(), "https://other.test/cb");
    bench.store.subscribe(&other, runner::now()).await.unwrap();
    bench.poll().await;
    assert_eq!(bench.ids().await, numbered(7..=7));

    bench.subscribe("https://b.test/cb").await;
    let done = bench.finish().await;
    assert_eq!((done.holds, done.appended), (false, 6));
    assert_eq!(bench.ids().await, numbered([7, 1, 2, 3, 4, 5, 6].into_iter()));
    assert_eq!(bench.owed().await, [], "history is no news");

    let request = bench.publisher.fetches("/documents/1").len();
    bench.subscribe("https://third.test/cb").await;
    assert_eq!(bench.finish().await, done, "not again within the hour");
    assert_eq!(bench.publisher.fetches("/documents/1").len(), request);
}

async fn a_step_that_was_killed_is_done_by_the_next_node(database: Database) {
    let bench = Bench::with(&database, LIMITS, Duration::from_millis(20)).await;
    bench.archive(9, 2);
    bench.subscribe("https://b.test/cb").await;
    steps(&bench.backfills, 2).await;
    // One that reads its page and dies before it says so.
    let due = bench.backfills.claim(1).await.unwrap().pop().unwrap();
    assert_eq!(due.0.backfill.pages, 2);
    bench.store.close().await;

    let (store, ingest, backfills) = node(&database, LIMITS, Duration::from_millis(20)).await;
    let next = Bench { store, ingest, backfills, publisher: bench.publisher };
    until("the history is brought in", async || {
        steps(&next.backfills, 1).await;
        next.backfill().await.ended_at.is_some()
    })
    .await;
    assert_eq!(next.publisher.fetches("/feed").len(), 1, "what was laid aside is not read again");
    next.poll().await;
    assert_eq!(next.ids().await, numbered(1..=9));
    assert_eq!(next.owed().await, []);
}

async fn history_that_nobody_waits_for_is_forgotten(database: Database) {
    let bench = Bench::start(&database).await;
    bench.archive(9, 2);
    bench.subscribe("https://b.test/cb").await;
    steps(&bench.backfills, 2).await;
    let request = request(&bench.topic(), "https://b.test/cb");
    bench.store.unsubscribe(None, &request.topic, &request.callback, None).await.unwrap();
    steps(&bench.backfills, usize::MAX).await;
    let id = bench.resource().await.id;
    assert_eq!(bench.store.backfills(&[id]).await.unwrap(), []);
    assert_eq!(bench.publisher.fetches("/documents/1").len(), 0);
    bench.store.subscribe(&request, runner::now()).await.unwrap();
    bench.poll().await;
    assert_eq!(bench.ids().await, numbered(9..=9), "the resource is polled again");
}

async fn an_entry_that_stands_twice_counts_in_its_newest_form(database: Database) {
    let bench = Bench::start(&database).await;
    let entry = |n: usize, text: &str, day: usize| {
        let id = entry_id("tides", n);
        format!(
            "<entry><id>{id}</id><title>{text}</title>\
             <updated>2003-01-{day:02}T00:00:00Z</updated></entry>"
        )
    };
    let put = |path: &str, prev: Option<&str>, entries: String| {
        let links = prev.map(|prev| ("prev-archive", prev.to_owned()));
        let body = document(links.as_slice(), &entries);
        bench.publisher.put(path, "application/atom+xml", body);
    };
    // RFC 5005 `#section-4.2`: the most recently updated, else the nearest to the feed.
    put("/feed", Some("/1"), entry(3, "third", 9) + &entry(1, "first, corrected", 8));
    put("/1", Some("/0"), entry(2, "second", 5) + &entry(1, "first, as it was", 4));
    put("/0", None, entry(3, "third, but another day", 9) + &entry(2, "second, at last", 7));
    bench.subscribe("https://b.test/cb").await;
    bench.finish().await;
    let texts: Vec<String> = bench
        .records()
        .await
        .iter()
        .map(|record| {
            let (_, rest) = record.atom.split_once("<title type=\"text\">").unwrap();
            rest.split_once('<').unwrap().0.to_owned()
        })
        .collect();
    assert_eq!(texts, ["second, at last", "first, corrected", "third"]);
}

async fn p26_a_server_that_says_slow_down_to_a_history_is_left_alone_by_polls_too(
    database: Database,
) {
    let bench = Bench::start(&database).await;
    bench.archive(3, 2);
    let group = bench.store.group(&bench.topic());
    for (status, is_left_alone) in
        [(StatusCode::INTERNAL_SERVER_ERROR, false), (StatusCode::TOO_MANY_REQUESTS, true)]
    {
        bench.publisher.fail("/documents/1", status);
        bench.subscribe("https://b.test/cb").await;
        assert_eq!(bench.finish().await.attempts, 1);
        let host = bench.store.host(&group).await.unwrap();
        assert_eq!(host.cool_until.is_some(), is_left_alone, "{status}");
        let id = bench.resource().await.id;
        bench.store.drop_backfill(id, ClaimToken::NONE, runner::now()).await.unwrap();
    }
}
