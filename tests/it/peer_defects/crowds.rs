//! Many subscribers of one feed: all are told, and one more costs no more than the first.

use std::fs;
use std::sync::Arc;

use feedgate::jobs::runner::now;
use feedgate_core::subscription::{Lease, SubscriptionRequest};
use feedgate_core::topic::{Callback, Topic};
use feedgate_protocol::Protocol;
use feedgate_store::Store;
use futures_util::StreamExt;
use futures_util::stream;
use tokio::time::{Duration, sleep, timeout};

use crate::support::gateway::Gateway;
use crate::support::postgres::{Database, Kind};
use callbacks::CallbackServer;

/// The one of the benchmark, in which there are a hundred thousand of them.
#[path = "../../bench/fanout/callbacks.rs"]
#[expect(dead_code, reason = "the benchmark spreads subscribers in two ways")]
mod callbacks;
/// The server of the benchmarks.
#[path = "../../bench/responder.rs"]
mod responder;

/// What goes wrong stops the test.
type AnyError = Box<dyn std::error::Error + Send + Sync>;

/// Subscriptions made side by side, so that they are committed together.
const CONCURRENCY: usize = 200;
/// Between two looks at the sink or at the database, which others work on.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

fn request(topic: &str, callback: String) -> SubscriptionRequest {
    SubscriptionRequest {
        lease: Lease::RSSCLOUD,
        ..SubscriptionRequest::new(
            Topic::parse(topic).unwrap(),
            Callback::parse(callback).unwrap(),
            Protocol::HttpPost,
        )
    }
}

async fn subscribe(store: &Arc<Store>, requests: impl Iterator<Item = SubscriptionRequest>) {
    let subscribing =
        requests.map(|request| async move { store.subscribe(&request, now()).await.unwrap() });
    stream::iter(subscribing).buffer_unordered(CONCURRENCY).count().await;
}

/// The deployed hub called all of them in one moment, with one timer for all, and gave up
/// those who came last. `cargo bench --bench fanout` does this with a hundred times as many.
#[tokio::test(flavor = "multi_thread")]
async fn b06_of_a_thousand_subscribers_each_is_told_once() {
    const MANY: usize = 1_000;
    let callbacks = CallbackServer::start(MANY, callbacks::Spread::OwnAddresses).unwrap();
    let database = Database::new(Kind::Sqlite).await;
    let gateway = Gateway::start(&database, &[("FEEDGATE_DELIVERY_CONCURRENCY", "64")]).await;
    let (port, topic) = (callbacks.port().to_string(), callbacks.topic());
    let form = [
        ("domain", callbacks.domain(0)),
        ("port", port),
        ("path", "/0".to_owned()),
        ("protocol", "http-post".to_owned()),
        ("url1", topic.clone()),
    ];
    let form = form.each_ref().map(|(name, value)| (*name, value.as_str()));
    let (_, text) = gateway.post("/pleaseNotify", &form).await;
    assert!(text.contains("success=\"true\""), "{text}");
    let store = database.open().await;
    subscribe(&store, (1..MANY).map(|n| request(&topic, callbacks.callback(n)))).await;
    store.close().await;

    callbacks.begin();
    let begun = std::time::Instant::now();
    let (_, text) = gateway.post("/ping", &[("url", &topic)]).await;
    assert!(text.contains("success=\"true\""), "{text}");
    let all = async {
        while callbacks.told() < MANY {
            sleep(LOOK_AGAIN).await;
        }
    };
    let in_time = timeout(Duration::from_secs(120), all).await.is_ok();
    let (first, last) = callbacks.course(begun);
    assert!(in_time, "{} of {MANY} were told, {first:?} to {last:?}", callbacks.told());
    gateway.comes_to_rest().await;
    assert_eq!(callbacks.twice(), 0, "nobody is told twice");
}

/// The deployed hub wrote its whole store anew: two seconds for 300,000 subscriptions.
#[tokio::test(flavor = "multi_thread")]
async fn b12_a_registration_among_many_writes_no_more_than_one_among_few() {
    const MANY: usize = 100_000;
    let database = Database::new(Kind::Sqlite).await;
    let store = database.open().await;
    let topic = "https://feeds.test/a";
    let first =
        store.subscribe(&request(topic, "https://0.test/".to_owned()), now()).await.unwrap();
    let few = written(&database, &store, topic, "https://few.test/").await;
    let more = format!(
        "with recursive n (n) as (select 1 union all select n + 1 from n where n < {MANY})
         insert into subscriptions (resource_id, account_id, callback, host, protocol, procedure,
                                    format, updates, statuses, acknowledged_status, cursor, lease_until,
                                    created_at)
         select {}, 0, 'https://' || n || '.test/', n || '.test:443', 'http-post', '', 'raw',
                'fresh', 'never', 0, 0, 9000000000000000, 0
           from n",
        first.id.resource
    );
    database.run(&more).await;
    let many = written(&database, &store, topic, "https://many.test/").await;
    // The pages of the row, of its resource and of each index; the indexes are some deeper.
    assert!(many < 2 * few + 64 * 1_024, "{few} bytes were written among few, {many} among many");
    store.close().await;
}

/// The bytes that one more subscription writes.
async fn written(database: &Database, store: &Arc<Store>, topic: &str, callback: &str) -> u64 {
    let path = database.url.strip_prefix("sqlite:").unwrap();
    empty_wal(path).await;
    store.subscribe(&request(topic, callback.to_owned()), now()).await.unwrap();
    let written = fs::metadata(format!("{path}-wal")).unwrap().len();
    assert!(written > 0, "what is written stands in {path}-wal");
    written
}

/// Copies the write-ahead log of the database at `path` into it, and empties it. The store does so
/// too, once it has been idle, and of two that do so at once SQLite lets one do nothing.
async fn empty_wal(path: &str) {
    const CHECKPOINT: &str = "pragma wal_checkpoint(truncate)";
    let conn = rusqlite::Connection::open(path).unwrap();
    while conn.query_row(CHECKPOINT, [], |row| row.get::<_, bool>(0)).unwrap() {
        sleep(LOOK_AGAIN).await;
    }
}
