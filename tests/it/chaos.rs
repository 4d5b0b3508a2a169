//! Publishers, subscribers, nodes and their clocks, the database and the networks between them fail at
//! random: every living subscriber has every entry in order in the end, and the archives have each entry once.
//! Meanwhile owners pause, resume, renew, end and replay their subscriptions, and what docs/delivery.md
//! promises them is checked by name (`promises.rs`).
//!
//! Runs for ten seconds on each store. `tests/chaos/run` runs it for as long as it is told, with a seed
//! of choice; it restarts PostgreSQL meanwhile, and once promotes a replica in its place.

mod callbacks;
mod cast;
mod counts;
mod deeds;
mod failures;
mod outcome;
mod owners;
mod promises;
mod signatures;
mod stalls;
mod system;

use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::Instant;

use crate::store::on_both_stores;
use crate::support::clock::Clock;
use crate::support::gateway::Gateway;
use crate::support::postgres::{Database, Kind};
use crate::support::random::Random;
use crate::support::tcp_proxy::{Condition, TcpProxy};
use crate::support::until;

use cast::{Cast, FEEDS};
use counts::Counts;
use failures::{Below, Failures};
use owners::{OWNERS, Owner};
use promises::Promises;
use stalls::Stalls;

on_both_stores!(every_subscriber_has_every_entry_in_order_in_the_end);

/// How long a run lasts, unless it is told.
const SECONDS: u64 = 10;
/// How many seconds a clock is off at most in a run of a minute or more. In the end others may have to
/// wait so long for what was planned by that clock.
const MOST_SECONDS_OFF: u64 = 120;
/// The same in a shorter run.
const FEW_SECONDS_OFF: u64 = 3;
/// The nodes on PostgreSQL.
const NODES: usize = 3;

/// What the runner sets.
struct Run {
    lasts: Duration,
    seed: Option<u64>,
    /// A program that is called with one word: `restart` restarts PostgreSQL, `failover` stops it for good
    /// and promotes its replica, `read-only` makes it refuse to write, and `writable` ends that.
    control: Option<String>,
    /// The port of the replica.
    replica: Option<u16>,
}

impl Run {
    #[expect(clippy::disallowed_methods, reason = "it is the test runner that sets them")]
    fn from_env() -> Run {
        let number = |name| std::env::var(name).ok().map(|text| text.parse::<u64>().unwrap());
        Run {
            lasts: Duration::from_secs(number("FEEDGATE_CHAOS_SECONDS").unwrap_or(SECONDS)),
            seed: number("FEEDGATE_CHAOS_SEED"),
            control: std::env::var("FEEDGATE_CHAOS_CONTROL").ok(),
            replica: number("FEEDGATE_CHAOS_REPLICA").map(|port| u16::try_from(port).unwrap()),
        }
    }
}

/// A node, and the networks between it and its database and the replica of it, if there are any.
struct Node {
    gateway: Gateway,
    networks: Vec<TcpProxy>,
    /// `None` where clocks cannot be set.
    clock: Option<Clock>,
}

impl Node {
    async fn start(database: &Database, replica: Option<u16>) -> Node {
        let (mut url, mut networks) = (database.url.clone(), Vec::new());
        if database.kind() == Kind::Postgres {
            let mut through = url::Url::parse(&url).unwrap();
            let server = format!("{}:{}", through.host_str().unwrap(), through.port().unwrap());
            let network = TcpProxy::start(server.clone()).await;
            through.set_port(Some(network.address().port())).unwrap();
            (url, networks) = (through.to_string(), vec![network]);
            if let Some(replica) = replica {
                let network = TcpProxy::start(format!("127.0.0.1:{replica}")).await;
                let first = format!("@{}/", networks[0].address());
                let both = format!("@{},{}/", networks[0].address(), network.address());
                let sign = if url.contains('?') { '&' } else { '?' };
                url =
                    format!("{}{sign}target_session_attrs=read-write", url.replace(&first, &both));
                networks.push(network);
            }
        }
        // A claim must outlast a request, and whoever is killed holds its claims so long.
        let clock = Clock::new();
        let variables = clock.as_ref().map(Clock::variables).unwrap_or_default();
        let mut settings = vec![
            ("FEEDGATE_DATABASE", url.as_str()),
            ("FEEDGATE_JOB_LEASE_S", "2"),
            ("FEEDGATE_FETCH_TIMEOUT_S", "1"),
            ("FEEDGATE_DELIVERY_TIMEOUT_S", "1"),
            ("FEEDGATE_LOG", "off"), // it would tell of every failure
        ];
        settings.extend(variables.iter().map(|(name, value)| (*name, value.as_str())));
        Node { gateway: Gateway::start(database, &settings).await, networks, clock }
    }

    fn set_clock(&self, seconds: i64) {
        self.clock.iter().for_each(|clock| clock.set(seconds));
    }

    fn set_networks(&self, condition: Condition) {
        self.networks.iter().for_each(|network| network.set(condition));
    }
}

async fn every_subscriber_has_every_entry_in_order_in_the_end(database: Database) {
    let run = Run::from_env();
    let mut random = run.seed.map_or_else(Random::thrown, Random::seeded);
    let count = if database.kind() == Kind::Postgres { NODES } else { 1 };
    let mut nodes = Vec::new();
    for _ in 0..count {
        nodes.push(Node::start(&database, run.replica).await);
    }
    let urls = nodes.iter().map(|node| node.gateway.url("")).collect();
    let is_long = run.lasts >= Duration::from_secs(60);
    let most_seconds_off = if is_long { MOST_SECONDS_OFF } else { FEW_SECONDS_OFF };
    let cast = Cast::gather(urls, most_seconds_off).await;
    cast.subscribe_first().await;

    let end = Instant::now() + run.lasts;
    let is_postgres = database.kind() == Kind::Postgres;
    let control = run.control.as_deref().filter(|_| is_postgres);
    let (publishing, of_nodes, of_others) =
        (random.split(), Failures::new(end, random.split()), Failures::new(end, random.split()));
    let owners = (0..OWNERS).map(|number| Owner::new(&cast, number, random.split()));
    let owners: Vec<_> = owners.map(|owner| owner.act_until(end)).collect();
    let stalls = Stalls::watch();
    let (of_nodes, of_others, owners, ()) = tokio::join!(
        of_nodes.of_nodes(&mut nodes, Below { database: &database, control, most_seconds_off }),
        of_others.of_others(&cast),
        join_all(owners),
        cast.publish_until(end, publishing),
    );
    for node in &nodes {
        node.set_networks(Condition::Open);
        node.set_clock(0);
    }
    cast.recover();
    for feed in 0..FEEDS {
        cast.publish(feed);
        until("a node accepts a ping", async || cast.ping(0, feed).await).await;
    }
    let (mut lives, mut of_owners) = (Vec::new(), Counts::default());
    for owner in owners {
        let (of_owner, counts) = owner.end().await;
        lives.extend(of_owner);
        of_owners.add(&counts);
    }
    let outcome = cast.outcome(&nodes[0].gateway).await;
    of_owners.count_by(
        "notifications of owners",
        Promises { cast: &cast, stalls: &stalls, lives: &lives }.are_kept().await,
    );
    let counts = format!("{of_nodes}{of_others}{of_owners}");
    eprintln!("{:?}, {:?}:\n{counts}{outcome}", database.kind(), run.lasts);
    cast.retry_all().await;
    nodes[0].gateway.comes_to_rest().await;
}
