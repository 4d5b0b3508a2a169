//! What fails, and for how long.

use std::collections::BTreeSet;
use std::fmt;
use std::process::Command;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::Node;
use super::cast::{Cast, FEEDS};
use super::clocks::{DatabaseClock, draw_offset};
use super::counts::Counts;
use super::origins::Answers;
use super::system::ReadOnlyFiles;
use crate::support::postgres::{Database, Kind};
use crate::support::random::Random;
use crate::support::tcp_proxy::Condition;

/// The longest time for which a node is down, or a network is cut or held up.
const LONGEST_MS: u64 = 2_000;
/// The longest time for which a node is suspended: longer than its claims last.
const LONGEST_SUSPENSION_MS: u64 = 6_000;
/// The longest time between two failures.
const LONGEST_PAUSE_MS: u64 = 500;
/// The longest time between two steps of clocks, while nothing else fails.
const LONGEST_CLOCK_PAUSE_MS: u64 = 4_000;
/// The longest delay of a slow network, in each direction and for each chunk.
const SLOWEST_MS: u64 = 40;

/// Calls the program that controls PostgreSQL, and waits until it has done what it is told.
async fn call(program: &str, argument: &'static str) {
    let program = program.to_owned();
    let call = move || Command::new(program).arg(argument).status().unwrap();
    assert!(tokio::task::spawn_blocking(call).await.unwrap().success(), "{argument}");
}

/// What is beside and below the nodes, and can fail.
pub(super) struct Below<'a> {
    pub(super) cast: &'a Cast,
    pub(super) database: &'a Database,
    /// The program that controls PostgreSQL, if it can be controlled.
    pub(super) control: Option<&'a str>,
    /// When the replica takes over, if there is one.
    pub(super) failover_at: Instant,
    /// The clock of the database, if it can be set.
    pub(super) clock: Option<DatabaseClock>,
}

/// A series of failures, with a count of each kind.
pub(super) struct Failures {
    random: Random,
    counts: Counts,
    /// Whether the replica has taken over.
    is_failed_over: bool,
    /// What this machine cannot do.
    impossible: BTreeSet<&'static str>,
}

impl Failures {
    pub(super) fn new(random: Random) -> Failures {
        let (counts, impossible) = (Counts::default(), BTreeSet::new());
        Failures { random, counts, is_failed_over: false, impossible }
    }

    async fn lasts(&mut self, longest_ms: u64) {
        sleep(Duration::from_millis(self.random.below(longest_ms))).await;
    }

    fn count(&mut self, kind: &'static str) {
        self.counts.count(kind);
    }

    fn network(&mut self) -> Condition {
        let delay = Duration::from_millis(1 + self.random.below(SLOWEST_MS));
        let condition =
            *self.random.one_of(&[Condition::Cut, Condition::Stalled, Condition::Slow(delay)]);
        self.count(match condition {
            Condition::Cut => "networks cut",
            Condition::Stalled => "networks stalled",
            Condition::Slow(_) | Condition::Open => "networks slow",
        });
        condition
    }

    /// Kills, suspends and stops nodes until then, sets their clocks, and disturbs their database and the
    /// connections to it, one after the other.
    pub(super) async fn of_nodes(&mut self, nodes: &mut [Node], below: &Below<'_>, until: Instant) {
        while Instant::now() < until {
            self.lasts(LONGEST_PAUSE_MS).await;
            if let (Some(program), false) = (below.control, self.is_failed_over)
                && Instant::now() > below.failover_at
            {
                self.count("replicas promoted");
                self.is_failed_over = true;
                call(program, "failover").await;
            }
            let number = self.random.below(nodes.len() as u64) as usize;
            let (kind, node) = (self.random.below(11), &mut nodes[number]);
            match (kind, node.networks.is_empty(), below.control) {
                (0..=1, ..) => {
                    self.count("kill -9");
                    let since = Instant::now();
                    node.gateway.kill();
                    self.lasts(LONGEST_MS).await;
                    node.gateway.restart_until_ready().await;
                    below.cast.note_absence(since);
                }
                (2, ..) => {
                    self.count("restarts of a node");
                    node.gateway.terminate();
                    node.gateway.ended().await;
                    node.gateway.restart_until_ready().await;
                }
                (3, _, Some(program)) => {
                    self.count("restarts of PostgreSQL");
                    call(program, "restart").await;
                }
                (4..=5, ..) => self.set_clock(nodes, below).await,
                (6, ..) => self.refuse_writes(below).await,
                (7..=8, ..) => {
                    self.count("nodes suspended");
                    let since = Instant::now();
                    node.gateway.suspend();
                    self.lasts(LONGEST_SUSPENSION_MS).await;
                    below.cast.note_absence(since);
                    node.gateway.resume();
                }
                (_, false, _) => {
                    let condition = self.network();
                    node.set_networks(condition);
                    self.lasts(LONGEST_MS).await;
                    node.set_networks(Condition::Open);
                }
                (_, true, _) => {}
            }
        }
    }

    /// Sets clocks until then, and nothing else.
    pub(super) async fn of_clocks(&mut self, nodes: &[Node], below: &Below<'_>, until: Instant) {
        loop {
            self.lasts(LONGEST_CLOCK_PAUSE_MS).await;
            if Instant::now() > until {
                return;
            }
            self.set_clock(nodes, below).await;
        }
    }

    /// Sets the clock of a node or of the database, which stays so until it is set again.
    async fn set_clock(&mut self, nodes: &[Node], below: &Below<'_>) {
        let node = &nodes[self.random.below(nodes.len() as u64) as usize];
        if node.clock.is_none() {
            self.impossible.insert("clocks set: libfaketime is not installed (Debian: faketime)");
        }
        let (kind, seconds) = draw_offset(&mut self.random);
        self.count(kind);
        match &below.clock {
            Some(clock) if self.random.below(2) == 0 => clock.set(seconds).await,
            _ => node.set_clock(seconds),
        }
    }

    /// Lets the database refuse to write for a while.
    async fn refuse_writes(&mut self, below: &Below<'_>) {
        const KIND: &str = "times that the database was read-only";
        match (below.database.kind(), below.control) {
            (Kind::Sqlite, _) => match ReadOnlyFiles::of(below.database) {
                Some(read_only) => {
                    self.count(KIND);
                    self.lasts(LONGEST_MS).await;
                    drop(read_only);
                }
                None => {
                    self.impossible.insert("a read-only database: chattr +i is not permitted");
                }
            },
            (Kind::Postgres, Some(program)) => {
                self.count(KIND);
                call(program, "read-only").await;
                self.lasts(LONGEST_MS).await;
                call(program, "writable").await;
            }
            (Kind::Postgres, None) => {
                self.impossible.insert("a read-only database: tests/chaos/run does it");
            }
        }
    }

    /// Makes the network to some callbacks fail, and origins.
    pub(super) async fn of_others(&mut self, cast: &Cast, until: Instant) {
        while Instant::now() < until {
            self.lasts(LONGEST_PAUSE_MS).await;
            match self.random.below(3) {
                0 => {
                    let condition = self.network();
                    cast.network.set(condition);
                    self.lasts(LONGEST_MS).await;
                    cast.network.set(Condition::Open);
                }
                _ => self.change_origin(cast),
            }
        }
    }

    /// Lets an origin answer in another way from now on. Where three URLs respond with 503, the whole host
    /// is left alone for a quarter of an hour, even if it is pinged (rule P27).
    fn change_origin(&mut self, cast: &Cast) {
        const ANSWERS: [Answers; 13] = [
            Answers::Failing(404),
            Answers::Failing(500),
            Answers::Hanging,
            Answers::Dripping,
            Answers::Broken,
            Answers::Redirecting,
            Answers::OldestFirst,
            Answers::Shrunk,
            Answers::Empty,
            Answers::Well,
            Answers::Well,
            Answers::Well,
            Answers::Well,
        ];
        let feed = self.random.below(FEEDS as u64) as usize;
        let answers = match self.random.below(12) {
            0 if feed == 0 => Answers::Failing(503),
            _ => *self.random.one_of(&ANSWERS),
        };
        self.counts.count(format!("origins that answer: {answers:?}"));
        cast.origins.set(feed, answers);
    }
}

impl fmt::Display for Failures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.counts)?;
        self.impossible.iter().try_for_each(|what| writeln!(f, "    not {what}"))
    }
}
