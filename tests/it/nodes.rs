//! Two nodes on one PostgreSQL share the work, and one takes over from the other when it
//! is killed: no entry is appended twice, none is missed. A query that one node has stored is compared
//! by the other.

mod callback_hosts;

use std::ops::Range;

use futures_util::stream::{self, StreamExt};

use crate::support::feeds::{entry_id, entry_ids, rss};
use crate::support::gateway::Gateway;
use crate::support::postgres::{Database, Kind};
use crate::support::publisher::Publisher;
use crate::support::reader::Reader;
use crate::support::subscriber::Subscriber;
use crate::support::tracked::{track_topic, tracked_once};

const RESOURCES: usize = 200;
/// How long the claims of a node outlive it, in seconds.
const CLAIM: &str = "4";

#[tokio::test(flavor = "multi_thread")]
async fn the_other_node_takes_over() {
    let database = Database::new(Kind::Postgres).await;
    let settings = [
        ("FEEDGATE_JOB_LEASE_S", CLAIM),
        ("FEEDGATE_FETCH_TIMEOUT_S", "2"),
        ("FEEDGATE_DELIVERY_TIMEOUT_S", "2"),
        ("FEEDGATE_DELIVERY_CONCURRENCY_PER_HOST", "16"),
    ];
    let one = Gateway::start(&database, &settings).await;
    let mut other = Gateway::start(&database, &settings).await;
    let others =
        Others { publisher: Publisher::start().await, subscriber: Subscriber::start().await };
    others.publish(1);
    others.subscribe(&[&one, &other]).await;

    // Whichever node compares the entries, it knows the query.
    let track = track_topic(&one, "text");
    one.subscribe_superfeedr(&track, &others.subscriber.url("/track"), "json").await;

    // Both work on what one of them was told, sooner or later: a node that gets no time from a busy machine
    // may miss a round.
    let mut published = 1;
    while [&one, &other].into_iter().any(|node| others.fetched_by(node) == 0) {
        published += 1;
        others.publish(published);
        others.ping(&one, 0..RESOURCES).await;
        others.were_brought(published - 1).await;
    }

    // One dies in the middle of its work; what it had in hand waits for its claims' end.
    published += 1;
    others.publish(published);
    others.ping(&one, 0..RESOURCES / 2).await;
    other.kill();
    others.ping(&one, RESOURCES / 2..RESOURCES).await;
    others.were_brought(published - 1).await;

    others.find_every_log_whole(&one, published).await;
    let entries = |n: usize| (1..published).map(move |entry| entry_id(&name(n), entry));
    let all: Vec<String> = (0..RESOURCES).flat_map(entries).collect();
    tracked_once(&one, &track, &all).await;
    one.comes_to_rest().await;
}

fn name(n: usize) -> String {
    format!("feed{n}")
}

fn path(n: usize) -> String {
    format!("/{}.xml", name(n))
}

/// The publisher of all resources and the subscriber to each.
struct Others {
    publisher: Publisher,
    subscriber: Subscriber,
}

impl Others {
    fn topic(&self, n: usize) -> String {
        self.publisher.url(&path(n))
    }

    /// Publishes the first `entries` entries of every resource.
    fn publish(&self, entries: usize) {
        for n in 0..RESOURCES {
            self.publisher.put_rss(&path(n), rss(&name(n), 0..entries));
        }
    }

    /// Subscribes to every resource, in turns at each of the nodes.
    async fn subscribe(&self, nodes: &[&Gateway]) {
        let subscribe = |n: usize| async move {
            let (node, callback) = (nodes[n % nodes.len()], self.subscriber.url(&path(n)));
            node.subscribe_superfeedr(&self.topic(n), &callback, "atom").await;
            node.archive_holds(&self.topic(n), &entry_id(&name(n), 0)).await;
        };
        stream::iter(0..RESOURCES).for_each_concurrent(8, subscribe).await;
    }

    /// Says that these resources changed.
    async fn ping(&self, gateway: &Gateway, which: Range<usize>) {
        let ping = |n: usize| async move {
            gateway.post("/ping", &[("url", &self.topic(n))]).await;
        };
        stream::iter(which).for_each_concurrent(8, ping).await;
    }

    /// Waits until every subscription was brought this entry.
    async fn were_brought(&self, entry: usize) {
        for n in 0..RESOURCES {
            let id = entry_id(&name(n), entry);
            self.subscriber
                .until(&path(n), |told| {
                    told.iter().any(|told| entry_ids(&told.text()).contains(&id))
                })
                .await;
        }
    }

    /// How many polls this node made. It names itself in the user agent; the first fetch
    /// of a resource belongs to whoever took the subscription.
    fn fetched_by(&self, node: &Gateway) -> usize {
        let polls =
            (0..RESOURCES).flat_map(|n| self.publisher.fetches(&path(n)).into_iter().skip(1));
        let agent = node.url("/");
        polls
            .filter(|fetch| {
                fetch.request.header("user-agent").is_some_and(|it| it.contains(&agent))
            })
            .count()
    }

    /// Every log has each of the first `entries` entries once, in order.
    async fn find_every_log_whole(&self, gateway: &Gateway, entries: usize) {
        let read = |n: usize| async move {
            let mut reader = Reader::default();
            reader.catch_up(&gateway.archive_of(&self.topic(n))).await.unwrap();
            let want: Vec<_> = (0..entries).map(|entry| entry_id(&name(n), entry)).collect();
            assert_eq!(reader.processed, want);
        };
        stream::iter(0..RESOURCES).for_each_concurrent(8, read).await;
    }
}
