//! Publishers, callbacks, nodes and their clocks, the database and the networks between them fail at random,
//! while owners subscribe, renew, pause, resume, replay, retry and end. What docs/delivery.md, docs/streams.md
//! and docs/archives.md promise is checked by name.
//!
//! A run has rounds. In each second one only clocks are set, and so nobody delays a neighbour
//! (`neighbours.rs`). After each round nothing fails for a while: everybody has what is owed within seconds,
//! although nothing new is published (`calm.rs`), and each notification is compared with what its
//! subscription was like when it came (`promises.rs`). Then the worst moments are chosen on purpose: nodes end
//! and are suspended in the middle of passes (`interruptions.rs`), and changes come while others are being
//! delivered (`pairs.rs`).
//!
//! Runs for ten seconds on each store. `tests/chaos/run` runs it for as long as it is told, with a seed
//! of choice; it restarts PostgreSQL meanwhile, and once promotes a replica in its place.

mod archives;
mod callbacks;
mod calm;
mod cast;
mod clocks;
mod counts;
mod crowd;
mod failures;
mod interruptions;
mod listing;
mod lives;
mod neighbours;
mod origins;
mod owners;
mod pairs;
mod promises;
mod requests;
mod signatures;
mod stage;
mod stalls;
mod streams;
mod system;
mod verifications;

use std::time::Duration;

use tokio::time::Instant;

use crate::store::on_both_stores;
use crate::support::clock::Clock;
use crate::support::gateway::Gateway;
use crate::support::postgres::{Database, Kind};
use crate::support::random::Random;
use crate::support::tcp_proxy::{Condition, TcpProxy};
use crate::support::until;

use cast::{ALL_FEEDS, Cast};
use clocks::DatabaseClock;
use failures::{Below, Failures};
use stage::Stage;
use stalls::Stalls;

on_both_stores!(every_subscriber_has_every_entry_in_order_in_the_end);

/// How long a run lasts, unless it is told.
const SECONDS: u64 = 10;
/// The longest round. A run has two at least.
const ROUND: Duration = Duration::from_secs(10);
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
            ("FEEDGATE_JOB_LEASE_S", "4"),
            ("FEEDGATE_FETCH_TIMEOUT_S", "1"),
            ("FEEDGATE_DELIVERY_TIMEOUT_S", "3"),
            // Few, so that notifications wait for others at the same host.
            ("FEEDGATE_DELIVERY_CONCURRENCY_PER_HOST", "6"),
            ("FEEDGATE_ANONYMOUS_REQUESTS_PER_MIN", "100000"),
            ("FEEDGATE_PAGE_RECORDS", "20"),
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

async fn every_subscriber_has_every_entry_in_order_in_the_end(mut database: Database) {
    let run = Run::from_env();
    let mut random = run.seed.map_or_else(Random::thrown, Random::seeded);
    let is_postgres = database.kind() == Kind::Postgres;
    let clock = DatabaseClock::new(&mut database, run.replica).await;
    cast::create_accounts(&database).await;
    let mut nodes = Vec::new();
    for _ in 0..if is_postgres { NODES } else { 1 } {
        nodes.push(Node::start(&database, run.replica).await);
    }
    let urls = nodes.iter().map(|node| node.gateway.url("")).collect();
    let cast = Cast::gather(urls).await;
    let stalls = Stalls::watch();
    let mut stage = Stage::set(&cast, &stalls, &mut random).await;
    for feed in 0..ALL_FEEDS {
        nodes[0].gateway.open_to_anonymous(&cast.origins.topic(feed)).await;
    }

    let is_long = run.lasts >= Duration::from_secs(60);
    let end = Instant::now() + run.lasts;
    let below = Below {
        cast: &cast,
        database: &database,
        control: run.control.as_deref().filter(|_| is_postgres),
        failover_at: Instant::now() + run.lasts / 2,
        clock,
    };
    let mut failures = Failures::new(random.split());
    let mut rounds = 0;
    // However long everybody takes to come to rest after the first round, there is one of the other kind.
    while rounds < 2 || Instant::now() < end {
        let do_nodes_fail = rounds % 2 == 0;
        let round_ends = Instant::now() + ROUND.min(run.lasts / 2);
        let of_nodes = async {
            match do_nodes_fail {
                true => failures.of_nodes(&mut nodes, &below, round_ends).await,
                false => failures.of_clocks(&nodes, &below, round_ends).await,
            }
        };
        tokio::join!(of_nodes, stage.play_until(round_ends, do_nodes_fail));
        for node in &nodes {
            node.set_networks(Condition::Open);
            node.set_clock(0);
        }
        if let Some(clock) = &below.clock {
            clock.set(0).await;
        }
        stage.ends_round(&mut nodes, (do_nodes_fail, is_long)).await;
        rounds += 1;
    }
    for feed in 0..ALL_FEEDS {
        cast.origins.publish(feed);
        until("a node accepts a ping", async || cast.ping(0, feed).await).await;
    }
    let counts = stage.closes(&nodes[0].gateway).await;
    eprintln!("{:?}, {:?}:\n{failures}{counts}", database.kind(), run.lasts);
    if let Some(clock) = below.clock {
        database.url = clock.url;
    }
    verifications::come_to_rest(&database, &nodes[0].gateway).await;
}
