//! Publishers, subscribers, nodes, the database and the networks between them fail at random: every
//! living subscriber has every entry in order in the end, and the archives have each entry once.
//!
//! Runs for ten seconds on each store. `tests/chaos/run` runs it for as long as it is told, with a seed
//! of choice, and restarts PostgreSQL meanwhile.

mod cast;
mod failures;
mod outcome;

use std::time::Duration;

use tokio::time::Instant;

use crate::store::on_both_stores;
use crate::support::dice::Dice;
use crate::support::gateway::Gateway;
use crate::support::postgres::{Database, Kind};
use crate::support::tcp_proxy::{Condition, TcpProxy};
use crate::support::until;

use cast::{Cast, FEEDS};
use failures::Failures;

on_both_stores!(every_subscriber_has_every_entry_in_order_in_the_end);

/// How long a run lasts, unless it is told.
const SECONDS: u64 = 10;
/// The nodes on PostgreSQL.
const NODES: usize = 3;

/// What the runner sets.
struct Run {
    lasts: Duration,
    seed: Option<u64>,
    /// A program that restarts PostgreSQL when it is called with `restart`.
    control: Option<String>,
}

impl Run {
    #[expect(clippy::disallowed_methods, reason = "it is the test runner that sets them")]
    fn from_env() -> Run {
        let number = |name| std::env::var(name).ok().map(|text| text.parse::<u64>().unwrap());
        Run {
            lasts: Duration::from_secs(number("FEEDGATE_CHAOS_SECONDS").unwrap_or(SECONDS)),
            seed: number("FEEDGATE_CHAOS_SEED"),
            control: std::env::var("FEEDGATE_CHAOS_CONTROL").ok(),
        }
    }
}

/// A node, and the network between it and its database, if there is one.
struct Node {
    gateway: Gateway,
    network: Option<TcpProxy>,
}

impl Node {
    async fn start(database: &Database) -> Node {
        let (mut url, mut network) = (database.url.clone(), None);
        if database.kind() == Kind::Postgres {
            let mut through = url::Url::parse(&url).unwrap();
            let server = format!("{}:{}", through.host_str().unwrap(), through.port().unwrap());
            let proxy = TcpProxy::start(server).await;
            through.set_port(Some(proxy.address().port())).unwrap();
            (url, network) = (through.to_string(), Some(proxy));
        }
        // A claim must outlast a request, and whoever is killed holds its claims so long.
        let settings = [
            ("FEEDGATE_DATABASE", url.as_str()),
            ("FEEDGATE_JOB_LEASE_S", "2"),
            ("FEEDGATE_FETCH_TIMEOUT_S", "1"),
            ("FEEDGATE_DELIVERY_TIMEOUT_S", "1"),
            ("FEEDGATE_LOG", "off"), // it would tell of every failure
        ];
        Node { gateway: Gateway::start(database, &settings).await, network }
    }
}

async fn every_subscriber_has_every_entry_in_order_in_the_end(database: Database) {
    let run = Run::from_env();
    let mut dice = run.seed.map_or_else(Dice::thrown, Dice::seeded);
    let count = if database.kind() == Kind::Postgres { NODES } else { 1 };
    let mut nodes = Vec::new();
    for _ in 0..count {
        nodes.push(Node::start(&database).await);
    }
    let urls = nodes.iter().map(|node| node.gateway.url("")).collect();
    let cast = Cast::gather(urls).await;
    cast.subscribe_first().await;

    let end = Instant::now() + run.lasts;
    let is_postgres = database.kind() == Kind::Postgres;
    let control = run.control.as_deref().filter(|_| is_postgres);
    let (publishing, of_nodes, of_others) =
        (dice.split(), Failures::new(end, dice.split()), Failures::new(end, dice.split()));
    let (of_nodes, of_others, ()) = tokio::join!(
        of_nodes.of_nodes(&mut nodes, control),
        of_others.of_others(&cast),
        cast.publish_until(end, publishing),
    );
    for node in &nodes {
        if let Some(network) = &node.network {
            network.set(Condition::Open);
        }
    }
    cast.recover();
    for feed in 0..FEEDS {
        cast.publish(feed);
        until("a node accepts a ping", async || cast.ping(0, feed).await).await;
    }
    let outcome = cast.outcome(&nodes[0].gateway).await;
    eprintln!("{:?}, {:?}:\n{of_nodes}{of_others}{outcome}", database.kind(), run.lasts);
    cast.retry_all().await;
    nodes[0].gateway.comes_to_rest().await;
}
