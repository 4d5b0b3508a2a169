//! How records get to callbacks: the real worker, real stores and real sockets.

mod attempts;
mod bounds;
mod cursors;
mod generations;
mod inner_sources;
mod lanes;
mod messages;
mod signatures;
mod snippets;
mod statuses;
mod unsent;

use std::sync::Arc;
use std::time::Duration;

use feedgate::event_log::EventLog;
use feedgate::jobs::deliver::{Deliverer, DeliverySettings};
use feedgate::jobs::runner::{self, WorkerConfig};
use feedgate::metrics::Metrics;
use feedgate::net::{self, HttpClient};
use feedgate_core::change_detection::{Candidate, FeedDocument};
use feedgate_core::claim::ClaimToken;
use feedgate_core::poll::{NewContent, Poll, Polling, Trigger};
use feedgate_core::record::Seq;
use feedgate_core::resource::{ResourceId, ResourceKind};
use feedgate_core::schedule::Demand;
use feedgate_core::signing::Secret;
use feedgate_core::status::Status;
use feedgate_core::store::SubscriptionFilter;
use feedgate_core::subscription::{Format, Lease, Statuses, Subscription, SubscriptionRequest};
use feedgate_core::topic::{Callback, Topic};
use feedgate_core::upstream::UpstreamFinding;
use feedgate_core::visibility::SourceNetwork;
use feedgate_feed::Body;
use feedgate_protocol::Protocol;
use feedgate_protocol::signature::SignatureMethod;
use feedgate_store::Store;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::support::PATIENCE;
use crate::support::postgres::Database;

const TOPIC: &str = "https://tides.test/feed?a=1&b=2";

/// A delivering node: a store, and the worker on it.
struct Node {
    store: Arc<Store>,
    metrics: Metrics,
    stop: CancellationToken,
    worker: JoinHandle<()>,
}

impl Node {
    /// One with room for everything.
    async fn start(database: &Database) -> Node {
        Node::bounded(database, 64, 8).await
    }

    /// One that delivers `concurrency` in all, and `per_host` to any one host.
    async fn bounded(database: &Database, concurrency: usize, per_host: usize) -> Node {
        Node::with_settings(database, |settings| {
            (settings.concurrency, settings.per_host) = (concurrency, per_host);
        })
        .await
    }

    /// One with room for everything, and these changes of its settings.
    async fn with_settings(
        database: &Database,
        change: impl FnOnce(&mut DeliverySettings),
    ) -> Node {
        Node::with_timeout(database, Duration::from_secs(10), change).await
    }

    /// One that waits so long for each callback.
    async fn with_timeout(
        database: &Database,
        callback_timeout: Duration,
        change: impl FnOnce(&mut DeliverySettings),
    ) -> Node {
        Node::with_client(database, callback_timeout, HttpClient::new, change).await
    }

    /// One whose client `client` creates.
    async fn with_client(
        database: &Database,
        callback_timeout: Duration,
        client: impl FnOnce(net::NetworkSettings) -> HttpClient,
        change: impl FnOnce(&mut DeliverySettings),
    ) -> Node {
        let store = database.open().await;
        let fetch = client(net::NetworkSettings {
            user_agent: "feedgate/0.0 (+https://gateway.test/".to_owned(),
            allow_topics: vec!["127.0.0.0/8".parse().unwrap()],
            allow_callbacks: vec!["127.0.0.0/8".parse().unwrap()],
            fetch_timeout: Duration::from_secs(30),
            callback_timeout,
            body_limit_bytes: 1_000_000,
            host_spacing: Duration::ZERO,
            fetch_concurrency: 64,
            document_memory_bytes: 1 << 30,
        });
        let mut settings = DeliverySettings {
            concurrency: 64,
            public_url: "https://gateway.test/".parse().unwrap(),
            claim: Duration::from_secs(60),
            per_host: 8,
            signature: SignatureMethod::Sha1,
            attempts_per_subscription: 20,
        };
        change(&mut settings);
        let concurrency = settings.concurrency;
        let signals = store.wake_signals().subscriptions;
        let metrics = Metrics::new();
        let deliver =
            Deliverer::new(Arc::clone(&store), fetch, metrics.clone(), EventLog::off(), settings);
        let idle = Duration::from_millis(100);
        let pace = WorkerConfig { concurrency, idle, shutdown_grace: Duration::from_secs(15) };
        let stop = CancellationToken::new();
        let worker = tokio::spawn(runner::run(Arc::new(deliver), pace, signals, stop.clone()));
        Node { store, metrics, stop, worker }
    }

    /// Ends it in good order.
    async fn stop(self) {
        self.stop.cancel();
        self.worker.await.unwrap();
        self.store.close().await;
    }

    async fn subscribe(
        &self,
        callback: &str,
        change: impl FnOnce(&mut SubscriptionRequest),
    ) -> Subscription {
        let mut request = SubscriptionRequest {
            format: Format::Atom,
            statuses: Statuses::default(),
            lease: Lease::from(Duration::from_secs(3_600)),
            ..SubscriptionRequest::new(
                Topic::parse(TOPIC).unwrap(),
                Callback::parse(callback).unwrap(),
                Protocol::WebSub,
            )
        };
        change(&mut request);
        self.store.subscribe(&request, runner::now()).await.unwrap()
    }

    /// Appends entries with these numbers, in this order.
    async fn append(&self, id: ResourceId, numbers: impl Iterator<Item = usize>) {
        let mut poll = poll(ResourceKind::Feed);
        let candidates = numbers.map(record).collect();
        poll.found =
            NewContent::Feed(FeedDocument { at: poll.at, candidates, ..FeedDocument::default() });
        self.store.record(id, &poll).await.unwrap();
    }

    /// Publishes another body, of a resource that is no feed.
    async fn change_body(&self, id: ResourceId, content_type: Option<&str>, bytes: &[u8]) {
        let mut poll = poll(ResourceKind::Other);
        let Candidate { entry_id, atom, .. } = record(0);
        poll.found = NewContent::Revision { entry_id, atom: atom.unwrap() };
        let content_type = content_type.map(str::to_owned);
        poll.body = Some(Body { content_type, bytes: bytes.to_vec() });
        self.store.record(id, &poll).await.unwrap();
    }

    /// The subscription with this callback, if there is one.
    async fn now(&self, callback: &str) -> Option<Subscription> {
        let callback = Some(callback.to_owned());
        let filter = SubscriptionFilter { callback, limit: 1, ..SubscriptionFilter::default() };
        let (listed, _) = self.store.list(&filter).await.unwrap();
        listed.into_iter().next().map(|listed| listed.subscription)
    }

    /// Waits until `enough` says so of the subscription with this callback.
    async fn until(&self, callback: &str, enough: impl Fn(Option<&Subscription>) -> bool) {
        let wait = async {
            while !enough(self.now(callback).await.as_ref()) {
                sleep(Duration::from_millis(5)).await;
            }
        };
        let in_time = timeout(PATIENCE, wait).await.is_ok();
        assert!(in_time, "waited in vain: {:?}", self.now(callback).await);
    }
}

fn record(number: usize) -> Candidate {
    let entry_id = format!("tag:tides.test,2026:{number}");
    let atom = format!(
        "<entry xmlns=\"http://www.w3.org/2005/Atom\"><id>{entry_id}</id><title>{number}</title>\
         <updated>2026-11-20T16:00:00Z</updated></entry>\n"
    );
    Candidate::of_id(&entry_id, atom)
}

fn poll(kind: ResourceKind) -> Poll {
    let now = runner::now();
    Poll {
        claim: ClaimToken::NONE,
        at: now,
        trigger: Trigger::Schedule,
        answered_well: true,
        kind: Some(kind),
        fetch_url: None,
        source_network: Some(SourceNetwork::Public),
        site_url: None,
        feed_head: None,
        body: None,
        upstream: UpstreamFinding::Unknown,
        semantic_digest: None,
        found: NewContent::Nothing,
        silent: false,
        is_baseline: false,
        next_fetch: now + Duration::from_secs(3_600),
        demand: Demand::default(),
        status: Status { http_code: 200, title: "Tides".to_owned(), ..Status::default() },
        polling: Polling::default(),
        leaves_details: false,
    }
}

fn told(cursor: i64) -> impl Fn(Option<&Subscription>) -> bool {
    move |subscription| subscription.is_some_and(|held| held.cursor == Seq(cursor))
}

fn secret() -> Option<Secret> {
    Secret::new("opensesame".to_owned()).ok()
}
