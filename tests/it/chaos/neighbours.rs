//! What docs/delivery.md promises to those who behave: nobody delays them. And to the subscribers of a feed
//! that changes faster than all of them can be notified: everybody before anybody again.
//!
//! Both hold while the nodes and their database are well, whatever everybody else does.

use std::collections::HashMap;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::callbacks::{Behaviour, Received};
use super::cast::{CROWDED_FEED, Cast, NEIGHBOUR_FEED};
use super::crowd::Crowd;
use super::lives::Life;
use super::stalls::Stalls;
use crate::support::random::Random;

/// How long each subscriber of the crowded feed takes to answer.
const CROWD_TAKES: Duration = Duration::from_millis(150);
/// Between two entries of the crowded feed.
const CROWD_EVERY: Duration = Duration::from_millis(150);
/// Between two entries of the neighbour.
const NEIGHBOUR_EVERY: Duration = Duration::from_millis(400);
/// How long the neighbour waits for an entry at most. A slow callback delays a quick one by half a second,
/// but some five processes share the cores of a machine that may build at the same time.
const NEIGHBOUR_WITHIN: Duration = Duration::from_secs(10);
/// How long the crowd is watched at least: some passes.
const WATCHED: Duration = Duration::from_secs(8);
/// How long the crowd may take to have an entry that it accepts at once, after what has failed before.
const CROWD_WITHIN: Duration = Duration::from_secs(25);
/// So many notifications in a row of one subscriber, while another one has none, are more than two passes.
const IN_A_ROW: usize = 4;

/// What is published while the nodes are well.
pub(super) struct Neighbours<'a> {
    pub(super) cast: &'a Cast,
    pub(super) stalls: &'a Stalls,
}

impl Neighbours<'_> {
    /// Publishes entries of both feeds until then at least, and checks what their subscribers receive.
    pub(super) async fn are_served_until(
        &self,
        end: Instant,
        (crowd, neighbour): (&Crowd<'_>, &Life),
        mut random: Random,
    ) {
        // From the first notification on: a host that answers more slowly than before is sent less at a time.
        crowd.set_behaviour(Behaviour::Late(CROWD_TAKES));
        self.the_crowd_is_known_to_be_quick(crowd).await;
        let begun = Instant::now();
        let end = end.max(begun + WATCHED);
        let (node, mut pinged) = (random.below(3) as usize, Vec::new());
        let (crowded, quiet) = (
            async {
                while Instant::now() < end {
                    self.cast.origins.publish(CROWDED_FEED);
                    tokio::join!(self.cast.ping(node, CROWDED_FEED), sleep(CROWD_EVERY));
                }
            },
            async {
                while Instant::now() < end {
                    self.cast.origins.publish(NEIGHBOUR_FEED);
                    let (published, at) = (self.cast.origins.count(NEIGHBOUR_FEED), Instant::now());
                    let (is_accepted, ()) =
                        tokio::join!(self.cast.ping(node, NEIGHBOUR_FEED), sleep(NEIGHBOUR_EVERY));
                    if is_accepted {
                        pinged.push((published, at));
                    }
                }
            },
        );
        tokio::join!(crowded, quiet);
        let ended = Instant::now();
        self.the_neighbour_is_notified_in_time(neighbour, &pinged).await;
        self.everybody_is_notified_before_anybody_again(&crowd.members(), (begun, ended));
        crowd.set_behaviour(Behaviour::Accepting);
    }

    /// Notifies the crowd once. Who was slow before, as while a node was suspended, waits for others that are
    /// slow, and would be notified less often.
    async fn the_crowd_is_known_to_be_quick(&self, crowd: &Crowd<'_>) {
        let id = crowd.publish().await;
        let members = crowd.members();
        let paths: Vec<_> = members.iter().map(|life| life.path.as_str()).collect();
        let begun = Instant::now();
        while !crowd.receive(&id, (&paths, paths.len()), CROWD_WITHIN).await {
            let stalled = self.stalls.between(begun, Instant::now());
            assert!(begun.elapsed() < CROWD_WITHIN + stalled, "nothing_is_lost: {id}");
        }
    }

    async fn the_neighbour_is_notified_in_time(
        &self,
        neighbour: &Life,
        pinged: &[(usize, Instant)],
    ) {
        for (published, at) in pinged {
            let id = self.cast.origins.entries(NEIGHBOUR_FEED, published - 1).swap_remove(0);
            loop {
                let now = self.cast.callbacks.first_received(&neighbour.path, &id);
                let took = now.unwrap_or_else(Instant::now) - *at;
                let stalled = self.stalls.between(*at, *at + took);
                assert!(
                    took < NEIGHBOUR_WITHIN + stalled,
                    "nobody_delays_a_neighbour: {id} took {took:?}, stalled for {stalled:?}"
                );
                if now.is_some() {
                    break;
                }
                sleep(Duration::from_millis(20)).await;
            }
        }
    }

    /// While the feed changes all the time, everybody is owed something.
    fn everybody_is_notified_before_anybody_again(
        &self,
        crowd: &[&Life],
        (begun, ended): (Instant, Instant),
    ) {
        let during = |one: &Received| one.at > begun && one.at < ended;
        let times: HashMap<&str, Vec<Instant>> = crowd
            .iter()
            .map(|life| {
                let received = self.cast.callbacks.received(&life.path);
                let times = received.iter().filter(|one| during(one)).map(|one| one.at).collect();
                (life.path.as_str(), times)
            })
            .collect();
        for (path, often) in &times {
            for row in often.windows(IN_A_ROW) {
                let (first, last) = (row[0], row[IN_A_ROW - 1]);
                let starved = times
                    .iter()
                    .filter(|(_, others)| !others.iter().any(|at| (first..=last).contains(at)));
                let starved: Vec<_> = starved.map(|(path, _)| *path).collect();
                assert!(
                    starved.is_empty(),
                    "everybody_is_notified_before_anybody_again: {path} was notified {IN_A_ROW} \
                     times within {:?}, and {starved:?} were not: {}",
                    last - first,
                    milliseconds(&times, begun)
                );
            }
        }
    }
}

/// When each callback was notified.
fn milliseconds(times: &HashMap<&str, Vec<Instant>>, begun: Instant) -> String {
    let line = |(path, times): (&&str, &Vec<Instant>)| {
        let times: Vec<_> = times.iter().map(|at| (*at - begun).as_millis()).collect();
        format!("\n{path}: {times:?}")
    };
    times.iter().map(line).collect()
}
