//! The hosts of callbacks that nodes share (E8): each is served by one of them, whose claims others await.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use feedgate_core::callback_slots::SlotTerms;
use feedgate_core::claim::QueuePosition;
use feedgate_core::node::{NodeId, NodeInfo};
use feedgate_core::store::{DeliveryOutcome, DeliveryResult};
use feedgate_core::subscription::DueSubscription;
use feedgate_store::Store;

use super::{at, on_both_stores, poll, room, subscribe};
use crate::support::postgres::{Database, Kind};

on_both_stores!(e08_a_process_without_others_serves_all_hosts);

const HOSTS: usize = 40;
const TERMS: SlotTerms = SlotTerms {
    lease: TimeDelta::seconds(5),
    claim: TimeDelta::seconds(60),
    request: TimeDelta::seconds(12),
};

/// A node, and its store.
struct Node {
    store: Arc<Store>,
    info: NodeInfo,
}

impl Node {
    async fn open(database: &Database, id: &str) -> Node {
        let id = NodeId(id.to_owned());
        let info = NodeInfo { id, name: String::new(), version: String::new(), started_at: at(0) };
        Node { store: database.open().await, info }
    }

    async fn share(&self, now: DateTime<Utc>) -> Duration {
        self.store.share_callback_hosts(&self.info, now, TERMS).await.unwrap()
    }

    /// The hosts among all that it serves.
    fn serves(&self, now: DateTime<Utc>) -> BTreeSet<usize> {
        let served = self.store.served_hosts().at(now);
        (0..HOSTS).filter(|n| served.serves(&host(*n))).collect()
    }

    async fn claim(&self, now: DateTime<Utc>) -> Vec<DueSubscription> {
        let (until, start) = (now + TERMS.claim, QueuePosition::START);
        self.store.claim_subscriptions(now, until, &room(), start).await.unwrap().due
    }

    /// Claims what is due at one host.
    async fn claim_of(&self, n: usize, now: DateTime<Utc>) -> Vec<DueSubscription> {
        let until = now + TERMS.claim;
        self.store.claim_subscriptions_of_host(&host(n), now, until, 10).await.unwrap()
    }

    async fn deliver(&self, due: &[DueSubscription], now: DateTime<Utc>) {
        let results = due.iter().map(|due| {
            let outcome = DeliveryOutcome::Delivered { cursor: due.owed, status: 0 };
            DeliveryResult::new(due, outcome, None)
        });
        self.store.record_deliveries(&results.collect::<Vec<_>>(), now).await.unwrap();
    }
}

fn host(n: usize) -> String {
    format!("h{n}.test:443")
}

/// The hosts of deliveries.
fn hosts_of(due: &[DueSubscription]) -> BTreeSet<usize> {
    let number = |due: &DueSubscription| {
        let host = due.subscription.callback.host();
        (0..HOSTS).find(|n| self::host(*n) == host).unwrap()
    };
    due.iter().map(number).collect()
}

/// Subscribes a callback at each host to feeds, and appends an entry to each of these.
async fn subscribe_and_append(store: &Arc<Store>, feeds: &[&str]) {
    for feed in feeds {
        let mut resource = None;
        for n in 0..HOSTS {
            let callback = format!("https://h{n}.test/{feed}");
            resource = Some(subscribe(store, feed, &callback).await.id.resource);
        }
        store.record(resource.unwrap(), &poll(at(0), &["1"])).await.unwrap();
    }
}

/// Two nodes that have shared the hosts at 10.
async fn two_nodes(database: &Database) -> (Node, Node) {
    let (one, other) = (Node::open(database, "one").await, Node::open(database, "other").await);
    one.share(at(8)).await;
    other.share(at(8)).await;
    one.share(at(9)).await;
    other.share(at(10)).await;
    one.share(at(10)).await;
    (one, other)
}

async fn e08_a_process_without_others_serves_all_hosts(database: Database) {
    let node = Node::open(&database, "one").await;
    subscribe_and_append(&node.store, &["a"]).await;
    assert_eq!(node.serves(at(1)).len(), HOSTS, "a store that does not share");
    node.share(at(1)).await;
    assert_eq!(node.serves(at(1)).len(), HOSTS);
    assert_eq!(hosts_of(&node.claim(at(1)).await).len(), HOSTS);
    let nodes = node.store.nodes(2).await.unwrap();
    assert_eq!((nodes.len(), nodes[0].seen_at), (1, at(1)));
    node.store.remove_node(&node.info.id).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn e08_each_host_is_served_by_one_node() {
    let database = Database::new(Kind::Postgres).await;
    let (one, other) = two_nodes(&database).await;
    let (of_one, of_other) = (one.serves(at(10)), other.serves(at(10)));
    assert_eq!(of_one.len() + of_other.len(), HOSTS);
    assert!(of_one.is_disjoint(&of_other) && of_one.len() > 8 && of_other.len() > 8);
    subscribe_and_append(&one.store, &["a", "b"]).await;
    for n in 0..HOSTS {
        let is_ones = of_one.contains(&n);
        let [claimed, others] = match is_ones {
            true => [one.claim_of(n, at(10)).await, other.claim_of(n, at(10)).await],
            false => [other.claim_of(n, at(10)).await, one.claim_of(n, at(10)).await],
        };
        assert!(claimed.len() == 2 && others.is_empty(), "host {n}");
        let node = if is_ones { &one } else { &other };
        node.deliver(&claimed, at(10)).await;
    }
    subscribe_and_append(&one.store, &["c"]).await;
    assert_eq!(hosts_of(&one.claim(at(11)).await), of_one);
    assert_eq!(hosts_of(&other.claim(at(11)).await), of_other);
}

#[tokio::test(flavor = "multi_thread")]
async fn e08_a_node_without_a_lease_claims_nothing() {
    let database = Database::new(Kind::Postgres).await;
    let (one, other) = two_nodes(&database).await;
    subscribe_and_append(&one.store, &["a"]).await;
    assert!(other.serves(at(16)).is_empty() && other.claim(at(16)).await.is_empty());
    one.share(at(13)).await;
    one.share(at(16)).await;
    assert_eq!(one.serves(at(16)).len(), HOSTS, "it has taken those of the other");
    assert_eq!(hosts_of(&one.claim(at(16)).await).len(), HOSTS);
    other.share(at(16)).await;
    assert!(other.serves(at(16)).is_empty(), "it has none until they are shared again");
}

#[tokio::test(flavor = "multi_thread")]
async fn e08_a_node_begins_with_a_host_when_another_has_ended() {
    let database = Database::new(Kind::Postgres).await;
    let one = Node::open(&database, "one").await;
    subscribe_and_append(&one.store, &["a", "b"]).await;
    one.share(at(10)).await;
    let in_hand = one.claim_of(0, at(10)).await;
    assert_eq!(in_hand.len(), 2);
    one.store.remove_node(&one.info.id).await.unwrap();
    assert!(one.serves(at(10)).is_empty());

    let other = Node::open(&database, "other").await;
    let pause = other.share(at(11)).await;
    assert_eq!(other.serves(at(11)), (1..HOSTS).collect(), "one still sends to the first host");
    assert!(pause < Duration::from_secs(1), "it looks again soon");
    one.deliver(&in_hand, at(11)).await;
    other.share(at(11)).await;
    assert_eq!(other.serves(at(11)).len(), HOSTS);
    assert_eq!(hosts_of(&other.claim(at(11)).await), (1..HOSTS).collect(), "all that is left");
}

#[tokio::test(flavor = "multi_thread")]
async fn e08_a_host_of_a_dead_node_waits_no_longer_than_a_request_lasts() {
    let database = Database::new(Kind::Postgres).await;
    let one = Node::open(&database, "one").await;
    subscribe_and_append(&one.store, &["a"]).await;
    one.share(at(10)).await;
    assert_eq!(one.claim_of(0, at(10)).await.len(), 1);
    let other = Node::open(&database, "other").await;
    other.share(at(11)).await;
    assert!(other.serves(at(11)).is_empty());
    other.share(at(16)).await;
    assert_eq!(other.serves(at(16)), (1..HOSTS).collect());
    for seconds in [19, 22, 25] {
        other.share(at(seconds)).await;
        assert_eq!(other.serves(at(seconds)), (1..HOSTS).collect());
    }
    other.share(at(28)).await;
    assert_eq!(other.serves(at(28)).len(), HOSTS, "the claim of the dead node lasts until 70");
}

#[tokio::test(flavor = "multi_thread")]
async fn e08_leases_move_with_the_clock_of_the_database() {
    let database = Database::new(Kind::Postgres).await;
    let (one, other) = two_nodes(&database).await;
    let before = (one.serves(at(10)), other.serves(at(10)));
    let generation = one.store.read_clock(at(0)).await.unwrap().generation;
    let hour = TimeDelta::hours(1);
    one.share(at(11) - hour).await; // it learns it first
    one.store.move_due_times(generation + 1, -hour).await.unwrap();
    one.share(at(12) - hour).await;
    other.share(at(12) - hour).await;
    let now = at(12) - hour;
    assert_eq!((one.serves(now), other.serves(now)), before);
}
