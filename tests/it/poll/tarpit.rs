//! Polls that wait for a busy host, or for a slow one, do not keep others from being polled.

use std::collections::HashSet;
use std::future::pending;
use std::io;
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use feedgate::event_log::EventLog;
use feedgate::jobs::poll::{PollSettings, Poller};
use feedgate::jobs::runner::{self, WorkerConfig};
use feedgate::metrics::Metrics;
use feedgate::net::{self, HttpClient, Lookup};
use feedgate_core::resource::Resource;
use feedgate_core::subscription::{Format, Lease, Statuses, SubscriptionRequest};
use feedgate_core::topic::{Callback, Topic};
use feedgate_protocol::Protocol;
use feedgate_store::Store;
use futures_util::future::join_all;
use http::StatusCode;
use http::header::{HOST, HeaderValue, LOCATION};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::store::on_both_stores;
use crate::support::feeds::rss;
use crate::support::postgres::Database;
use crate::support::server::{Answer, say};
use crate::support::until;

on_both_stores!(
    p41_topics_that_redirect_to_one_tarpit_delay_no_other,
    e06_hosts_that_hang_do_not_delay_the_poll_of_another,
);

/// As many as polls run at the same time.
const TO_TARPIT: usize = 64;
const HEALTHY: usize = 200;

/// What the servers have seen.
#[derive(Default)]
struct Seen {
    healthy: Mutex<HashSet<String>>,
    /// Requests that are never answered.
    hanging: AtomicUsize,
}

/// Gives each name an address of its own.
#[derive(Debug)]
struct Names;

#[async_trait]
impl Lookup for Names {
    async fn lookup(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        let number: String = name.chars().filter(char::is_ascii_digit).collect();
        let kind = if name.starts_with("healthy") { 2 } else { 1 };
        Ok(vec![IpAddr::from([127, 0, kind, number.parse().unwrap_or(255)])])
    }
}

async fn p41_topics_that_redirect_to_one_tarpit_delay_no_other(database: Database) {
    let seen = Arc::new(Seen::default());
    let port = serve(Arc::clone(&seen)).await;
    let store = database.open().await;
    let healthy = (0..HEALTHY).map(|n| format!("http://healthy{n}.test:{port}/feed"));
    join_all(healthy.map(|url| watch(&store, url))).await;
    let moved = (0..TO_TARPIT).map(|n| format!("http://moved{n}.test:{port}/feed"));
    let to_tarpit = join_all(moved.map(|url| watch(&store, url))).await;
    // Those that redirect to the tarpit are claimed first, and fill all places.
    database.run("update resources set due_at = 1 where topic like 'http://moved%'").await;

    let stop = CancellationToken::new();
    let worker = tokio::spawn(run(Arc::clone(&store), TO_TARPIT, stop.clone()));

    let what = "all healthy topics are polled";
    until(what, async || seen.healthy.lock().unwrap().len() == HEALTHY).await;
    let hanging = seen.hanging.load(Ordering::SeqCst);
    assert!(hanging > 0, "the tarpit was reached, and no request to it has ended");
    for before in to_tarpit {
        let resource = store.get(before.id).await.unwrap().unwrap();
        assert_eq!(resource.status.last_fetch, None, "none has ended");
        assert_eq!(resource.status.error, "", "and being put off is no failure");
    }
    stop.cancel();
    worker.await.unwrap();
}

async fn e06_hosts_that_hang_do_not_delay_the_poll_of_another(database: Database) {
    const CONCURRENCY: usize = 8;
    let seen = Arc::new(Seen::default());
    let port = serve(Arc::clone(&seen)).await;
    let store = database.open().await;
    let slow = (0..4 * CONCURRENCY).map(|n| format!("http://hang{n}.test:{port}/feed"));
    let slow = join_all(slow.map(|url| watch(&store, url))).await;
    let stop = CancellationToken::new();
    let worker = tokio::spawn(run(Arc::clone(&store), CONCURRENCY, stop.clone()));
    until("all slow hosts hang", async || seen.hanging.load(Ordering::SeqCst) == slow.len()).await;

    watch(&store, format!("http://healthy1.test:{port}/feed")).await;
    until("the healthy topic is polled", async || !seen.healthy.lock().unwrap().is_empty()).await;
    for before in slow {
        let resource = store.get(before.id).await.unwrap().unwrap();
        assert_eq!(resource.status.last_fetch, None, "none has ended");
    }
    stop.cancel();
    worker.await.unwrap();
}

/// Runs a worker that polls, with this concurrency.
async fn run(store: Arc<Store>, concurrency: usize, stop: CancellationToken) {
    let (wake, poller) = (store.wake_signals().resources, poller(&store, concurrency));
    let (idle, shutdown_grace) = (Duration::from_millis(100), Duration::ZERO);
    let config = WorkerConfig { concurrency, idle, shutdown_grace };
    runner::run(Arc::new(poller), config, wake, stop).await;
}

/// Serves all names: those that redirect, the tarpit, and the healthy ones. Returns the port.
async fn serve(seen: Arc<Seen>) -> u16 {
    let listener = TcpListener::bind("0.0.0.0:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let seen = Arc::clone(&seen);
            let service = service_fn(move |request: http::Request<Incoming>| {
                let seen = Arc::clone(&seen);
                async move { Ok::<_, hyper::Error>(answer(&request, &seen, port).await) }
            });
            let http = hyper::server::conn::http1::Builder::new();
            tokio::spawn(http.serve_connection(TokioIo::new(stream), service));
        }
    });
    port
}

async fn answer(request: &http::Request<Incoming>, seen: &Seen, port: u16) -> Answer {
    let host = request.headers().get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    if host.starts_with("tarpit") || host.starts_with("hang") {
        seen.hanging.fetch_add(1, Ordering::SeqCst);
        return pending().await;
    }
    if request.uri().path() == "/robots.txt" {
        return say(StatusCode::NOT_FOUND, "");
    }
    if host.starts_with("moved") {
        let mut answer = say(StatusCode::FOUND, "");
        let target = format!("http://tarpit.test:{port}/feed");
        answer.headers_mut().insert(LOCATION, HeaderValue::from_str(&target).unwrap());
        return answer;
    }
    seen.healthy.lock().unwrap().insert(host.to_owned());
    http::Response::new(Full::new(Bytes::from(rss("tides", 1..=1))))
}

/// A poller whose requests never time out.
fn poller(store: &Arc<Store>, fetch_concurrency: usize) -> Poller {
    let settings = net::NetworkSettings {
        user_agent: "feedgate/0.0 (+https://gateway.test/".to_owned(),
        allow_topics: vec!["127.0.0.0/8".parse().unwrap()],
        allow_callbacks: Vec::new(),
        fetch_timeout: Duration::from_secs(3_600),
        callback_timeout: Duration::from_secs(10),
        body_limit_bytes: 1_000_000,
        host_spacing: Duration::from_secs(1),
        fetch_concurrency,
        document_memory_bytes: 1 << 30,
    };
    let client = HttpClient::with_lookup(settings, Arc::new(Names));
    // Nobody has an account here.
    let client = client.with_inner_addresses_for_all();
    let claim = Duration::from_secs(3_600);
    let settings = PollSettings { claim, min_period_s: 60, porn_rank: false, upstream_url: None };
    Poller::new(Arc::clone(store), client, Metrics::new(), EventLog::off(), settings)
}

async fn watch(store: &Arc<Store>, url: String) -> Resource {
    let request = SubscriptionRequest {
        format: Format::Atom,
        statuses: Statuses::default(),
        lease: Lease::from(Duration::from_secs(3_600)),
        ..SubscriptionRequest::new(
            Topic::parse(url).unwrap(),
            Callback::parse("https://callback.test/").unwrap(),
            Protocol::WebSub,
        )
    };
    let id = store.subscribe(&request, runner::now()).await.unwrap().id.resource;
    store.get(id).await.unwrap().unwrap()
}
