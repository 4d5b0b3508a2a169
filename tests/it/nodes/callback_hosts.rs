//! Two nodes share the hosts of callbacks (E8): each host is served by one of them at a time, so that its limit
//! is true for both together. Hosts change hands when a node joins, stops or is killed: nothing is lost.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::join_all;
use http::{Method, StatusCode};
use tokio::time::sleep;

use crate::support::feeds::{entry_id, entry_ids, rss};
use crate::support::gateway::Gateway;
use crate::support::postgres::{Database, Kind};
use crate::support::publisher::Publisher;
use crate::support::server::{ReceivedRequest, Server, say};
use crate::support::until;

/// The most requests to one host at once.
const LIMIT: usize = 4;
const FEEDS: usize = 5;
/// A host has callbacks for each feed, more than its limit.
const CALLBACKS: usize = 3;
const SETTINGS: [(&str, &str); 4] = [
    // A claim must outlast a request, and whoever is killed holds its claims so long.
    ("FEEDGATE_JOB_LEASE_S", "3"),
    ("FEEDGATE_FETCH_TIMEOUT_S", "2"),
    ("FEEDGATE_DELIVERY_TIMEOUT_S", "2"),
    ("FEEDGATE_DELIVERY_CONCURRENCY_PER_HOST", "4"),
];

#[tokio::test(flavor = "multi_thread")]
async fn e08_the_limit_of_a_host_is_true_for_all_nodes_together() {
    let scene = Scene::start(Duration::from_millis(100)).await;
    let one = scene.node().await;
    scene.subscribe(&one, &scene.hosts(1)).await;
    let other = scene.node().await;
    scene.is_shared().await;
    for entry in 1..=4 {
        scene.publish(&[&one, &other], entry).await;
    }
    scene.was_sent(4).await;
    assert!(scene.callbacks.most_concurrent() <= LIMIT);
    assert_eq!(scene.callbacks.senders().len(), 1, "one node serves the host");
    scene.was_sent_nothing_twice();
}

#[tokio::test(flavor = "multi_thread")]
async fn e08_many_hosts_are_served_by_all_nodes() {
    let scene = Scene::start(Duration::ZERO).await;
    let (one, other) = (scene.node().await, scene.node().await);
    scene.is_shared().await;
    scene.subscribe(&one, &scene.hosts(40)).await;
    for entry in 1..=2 {
        scene.publish(&[&one, &other], entry).await;
        scene.was_sent(entry).await;
    }
    let senders = scene.callbacks.senders();
    assert_eq!(senders.len(), 2, "{senders:?}");
    for hosts in senders.values() {
        assert!(hosts.len() >= 8, "{senders:?}");
    }
    let hosts: usize = senders.values().map(HashSet::len).sum();
    assert_eq!(hosts, 40, "each is served by one node");
}

#[tokio::test(flavor = "multi_thread")]
async fn e08_the_hosts_of_a_node_that_is_killed_or_stopped_are_served_by_the_other() {
    let scene = Scene::start(Duration::from_millis(20)).await;
    let (one, mut killed) = (scene.node().await, scene.node().await);
    scene.is_shared().await;
    scene.subscribe(&one, &scene.hosts(10)).await;
    scene.publish(&[&one], 1).await;
    killed.kill();
    scene.publish(&[&one], 2).await;
    scene.was_sent(2).await;

    let mut stopped = scene.node().await;
    scene.is_shared().await;
    scene.publish(&[&one], 3).await;
    stopped.terminate();
    stopped.ended().await;
    let nodes = "select distinct node from callback_slots where until > 0";
    assert_eq!(scene.database.texts(nodes).await.len(), 1, "it has given up all slots");
    scene.publish(&[&one], 4).await;
    scene.was_sent(4).await;
    assert!(scene.callbacks.most_concurrent() <= LIMIT);
}

#[tokio::test(flavor = "multi_thread")]
async fn e08_a_node_joins_while_deliveries_are_in_progress() {
    let scene = Scene::start(Duration::from_millis(50)).await;
    let one = scene.node().await;
    scene.subscribe(&one, &scene.hosts(10)).await;
    for entry in 1..=5 {
        scene.publish(&[&one], entry).await;
    }
    let other = scene.node().await;
    for entry in 6..=10 {
        scene.publish(&[&one, &other], entry).await;
    }
    scene.is_shared().await;
    scene.publish(&[&other], 11).await;
    scene.was_sent(11).await;
    assert!(scene.callbacks.most_concurrent() <= LIMIT);
    assert_eq!(scene.callbacks.senders().len(), 2);
    scene.was_sent_nothing_twice();
}

/// Feeds, and callbacks at many hosts that are told of all of them.
struct Scene {
    database: Database,
    publisher: Publisher,
    callbacks: Callbacks,
}

impl Scene {
    /// One whose callbacks take so long to answer.
    async fn start(takes: Duration) -> Scene {
        let publisher = Publisher::start().await;
        for feed in 0..FEEDS {
            publisher.put_rss(&path(feed), rss(&name(feed), 0..1));
        }
        let database = Database::new(Kind::Postgres).await;
        Scene { database, publisher, callbacks: Callbacks::start(takes).await }
    }

    async fn node(&self) -> Gateway {
        Gateway::start(&self.database, &SETTINGS).await
    }

    /// So many hosts.
    fn hosts(&self, count: usize) -> Vec<String> {
        (1..=count).map(|n| format!("127.0.0.{n}:{}", self.callbacks.server.port())).collect()
    }

    fn topic(&self, feed: usize) -> String {
        self.publisher.url(&path(feed))
    }

    async fn subscribe(&self, node: &Gateway, hosts: &[String]) {
        for feed in 0..FEEDS {
            let subscribe = hosts.iter().flat_map(|host| {
                (0..CALLBACKS).map(move |n| async move {
                    let callback = format!("http://{host}/{feed}/{n}");
                    node.subscribe_superfeedr(&self.topic(feed), &callback, "atom").await;
                    self.callbacks.expect(&format!("{host}/{feed}/{n}"));
                })
            });
            join_all(subscribe).await;
            node.archive_holds(&self.topic(feed), &entry_id(&name(feed), 0)).await;
        }
    }

    /// Publishes the entries of all feeds up to this one, and pings the nodes in turn.
    async fn publish(&self, nodes: &[&Gateway], entry: usize) {
        for feed in 0..FEEDS {
            self.publisher.put_rss(&path(feed), rss(&name(feed), 0..=entry));
            nodes[feed % nodes.len()].post("/ping", &[("url", &self.topic(feed))]).await;
        }
    }

    /// Waits until two nodes serve as many slots as each other.
    async fn is_shared(&self) {
        let shares = "select count(*)::text from callback_slots
                       where until > (select max(until) from callback_slots) - 3000000 group by node";
        until("the nodes share the hosts", async || {
            self.database.texts(shares).await == ["64", "64"]
        })
        .await;
    }

    /// Waits until every callback was sent the entries up to this one.
    async fn was_sent(&self, entry: usize) {
        until("all callbacks were sent everything", async || {
            self.callbacks.received(|received| {
                received.iter().all(|(callback, ids)| {
                    (1..=entry).all(|entry| ids.contains_key(&entry_id(&name_in(callback), entry)))
                })
            })
        })
        .await;
    }

    fn was_sent_nothing_twice(&self) {
        self.callbacks.received(|received| {
            for (callback, ids) in received {
                let twice: Vec<_> = ids.iter().filter(|(_, count)| **count > 1).collect();
                assert!(twice.is_empty(), "{callback} was sent {twice:?}");
            }
        });
    }
}

fn name(feed: usize) -> String {
    format!("feed{feed}")
}

fn path(feed: usize) -> String {
    format!("/{}.xml", name(feed))
}

/// The name of the feed of a callback, `HOST/FEED/NUMBER`.
fn name_in(callback: &str) -> String {
    format!("feed{}", callback.split('/').nth(1).unwrap())
}

/// How often each entry was received.
type Received = HashMap<String, usize>;

/// Callbacks at all addresses of this machine, which count the requests that are in progress.
struct Callbacks {
    server: Server,
    seen: Arc<Mutex<Seen>>,
}

#[derive(Default)]
struct Seen {
    /// The requests in progress, by host.
    in_progress: HashMap<String, usize>,
    most: usize,
    /// The hosts that each node has sent to.
    senders: HashMap<String, HashSet<String>>,
    received: HashMap<String, Received>,
}

impl Callbacks {
    async fn start(takes: Duration) -> Callbacks {
        let seen: Arc<Mutex<Seen>> = Arc::default();
        let held = Arc::clone(&seen);
        let server = Server::start_everywhere(move |request: ReceivedRequest| {
            let host = request.header("host").unwrap().to_owned();
            let is_delivery = request.method == Method::POST;
            if is_delivery {
                held.lock().unwrap().begin(&host, &request);
            }
            let (held, challenge) = (Arc::clone(&held), request.query("hub.challenge"));
            let challenge = challenge.unwrap_or_default().to_owned();
            async move {
                if is_delivery {
                    sleep(takes).await;
                    held.lock().unwrap().end(&host);
                }
                say(StatusCode::OK, challenge)
            }
        })
        .await;
        Callbacks { server, seen }
    }

    /// A callback that is sent notifications from now on.
    fn expect(&self, callback: &str) {
        self.seen.lock().unwrap().received.entry(callback.to_owned()).or_default();
    }

    fn received<T>(&self, of: impl FnOnce(&HashMap<String, Received>) -> T) -> T {
        of(&self.seen.lock().unwrap().received)
    }

    /// The most requests to one host that were in progress at once.
    fn most_concurrent(&self) -> usize {
        self.seen.lock().unwrap().most
    }

    /// The hosts that each node has sent to.
    fn senders(&self) -> HashMap<String, HashSet<String>> {
        self.seen.lock().unwrap().senders.clone()
    }
}

impl Seen {
    fn begin(&mut self, host: &str, request: &ReceivedRequest) {
        let in_progress = self.in_progress.entry(host.to_owned()).or_default();
        *in_progress += 1;
        self.most = self.most.max(*in_progress);
        let sender = request.header("user-agent").unwrap_or_default().to_owned();
        self.senders.entry(sender).or_default().insert(host.to_owned());
        let received = self.received.entry(format!("{host}{}", request.path)).or_default();
        for id in entry_ids(&request.text()) {
            *received.entry(id).or_default() += 1;
        }
    }

    fn end(&mut self, host: &str) {
        *self.in_progress.get_mut(host).unwrap() -= 1;
    }
}
