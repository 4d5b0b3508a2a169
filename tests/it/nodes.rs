//! Two nodes on one PostgreSQL share the work, and one takes over from the other when it
//! is killed: no entry is appended twice, none is missed.

use std::collections::BTreeSet;
use std::ops::Range;
use std::time::Instant;

use tokio::task::JoinSet;
use tokio::time::Duration;

use crate::support::feeds::{entry_id, entry_ids, rss};
use crate::support::gateway::Gateway;
use crate::support::postgres::{Database, Kind};
use crate::support::publisher::Publisher;
use crate::support::reader::Reader;
use crate::support::subscriber::Subscriber;

const RESOURCES: usize = 500;
/// How long the claims of a node outlive it.
const CLAIM: Duration = Duration::from_secs(4);
/// What it may take to notice, besides.
const SLACK: Duration = Duration::from_secs(5);

#[tokio::test(flavor = "multi_thread")]
async fn the_other_node_takes_over() {
    let database = Database::new(Kind::Postgres).await;
    let claim = CLAIM.as_secs().to_string();
    let settings = [
        ("FEEDGATE_CLAIM_S", claim.as_str()),
        ("FEEDGATE_FETCH_TIMEOUT_S", "2"),
        ("FEEDGATE_DELIVERY_TIMEOUT_S", "2"),
        ("FEEDGATE_FETCH_AT_ONCE", "16"),
        ("FEEDGATE_DELIVERY_PER_HOST", "16"),
    ];
    let one = Gateway::start(&database, &settings).await;
    let mut other = Gateway::start(&database, &settings).await;
    let publisher = Publisher::start().await;
    let subscriber = Subscriber::start().await;
    for n in 0..RESOURCES {
        publish(&publisher, n, 1);
        let node = if n % 2 == 0 { &one } else { &other };
        node.subscribe_superfeedr(&publisher.url(&path(n)), &subscriber.url(&path(n)), "atom")
            .await;
    }
    for n in 0..RESOURCES {
        one.archive_holds(&publisher.url(&path(n)), &entry_id(&name(n), 0)).await;
    }

    // Both work: each names itself in the user agent of its fetches.
    publish_all(&publisher, 2);
    let begun = Instant::now();
    ping(&one, &publisher, 0..RESOURCES).await;
    everybody_was_brought(&subscriber, 1).await;
    let with_both = begun.elapsed();
    let agents: BTreeSet<String> = (0..RESOURCES)
        .flat_map(|n| publisher.fetches(&path(n)))
        .filter_map(|fetch| fetch.asked.header("user-agent").map(str::to_owned))
        .collect();
    for node in [&one, &other] {
        let worked = agents.iter().any(|agent| agent.contains(&node.url("")));
        assert!(worked, "{} fetched nothing: {agents:?}", node.url(""));
    }

    // One dies in the middle of its work.
    publish_all(&publisher, 3);
    ping(&one, &publisher, 0..RESOURCES / 2).await;
    other.kill();
    let killed = Instant::now();
    ping(&one, &publisher, RESOURCES / 2..RESOURCES).await;
    everybody_was_brought(&subscriber, 2).await;
    let took = killed.elapsed();
    // Alone it takes twice as long, and what the other had in hand waits for its claim.
    let limit = CLAIM + 2 * with_both + SLACK;
    assert!(took < limit, "it took {took:?}, both together took {with_both:?}");

    every_log_is_whole(&one, &publisher).await;
}

fn name(n: usize) -> String {
    format!("feed{n}")
}

fn path(n: usize) -> String {
    format!("/{}.xml", name(n))
}

fn publish(publisher: &Publisher, n: usize, entries: usize) {
    publisher.put_rss(&path(n), rss(&name(n), 0..entries));
}

fn publish_all(publisher: &Publisher, entries: usize) {
    for n in 0..RESOURCES {
        publish(publisher, n, entries);
    }
}

/// Says that these resources changed.
async fn ping(gateway: &Gateway, publisher: &Publisher, which: Range<usize>) {
    for n in which {
        gateway.post("/rsscloud/ping", &[("url", &publisher.url(&path(n)))]).await;
    }
}

async fn everybody_was_brought(subscriber: &Subscriber, entry: usize) {
    for n in 0..RESOURCES {
        let id = entry_id(&name(n), entry);
        let has_it = |notification: &&crate::support::server::Asked| {
            entry_ids(&notification.text()).contains(&id)
        };
        subscriber.until(&path(n), |notifications| notifications.iter().any(has_it)).await;
    }
}

async fn every_log_is_whole(gateway: &Gateway, publisher: &Publisher) {
    let mut reading = JoinSet::new();
    for n in 0..RESOURCES {
        let recent = gateway.archive_of(&publisher.url(&path(n)));
        reading.spawn(async move {
            let mut reader = Reader::default();
            reader.catch_up(&recent).await.unwrap();
            let want: Vec<_> = (0..3).map(|entry| entry_id(&name(n), entry)).collect();
            assert_eq!(reader.processed, want);
        });
    }
    reading.join_all().await;
}
