//! All who take part in a run, and the rounds that they play.

use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::{Instant, sleep};

use super::Node;
use super::archives::Archives;
use super::calm::Calm;
use super::cast::{ALL_FEEDS, BEHIND_NETWORK, Cast, FEEDS, NEIGHBOUR, NEIGHBOUR_FEED};
use super::counts::Counts;
use super::crowd::Crowd;
use super::failures::Failures;
use super::interruptions::Interruptions;
use super::lives::Life;
use super::neighbours::Neighbours;
use super::owners::{Owner, Place};
use super::pairs;
use super::promises::Promises;
use super::stalls::Stalls;
use super::streams::StreamClient;
use crate::support::gateway::Gateway;
use crate::support::random::Random;

/// The owners who change their subscriptions: those of three accounts, at two hosts. Several subscriptions
/// of each are to the same feed, so that they are claimed together.
const OWNERS: [Place; 6] = [
    Place { account: 0, host: 0, feeds: &[0, 1], count: 6 },
    Place { account: 1, host: 1, feeds: &[1, 2], count: 6 },
    Place { account: 2, host: 0, feeds: &[3, 4], count: 6 },
    Place { account: 0, host: 1, feeds: &[4, 5], count: 6 },
    Place { account: 1, host: 0, feeds: &[6, 7], count: 6 },
    Place { account: 2, host: 1, feeds: &[7, 0], count: 6 },
];
/// Subscriptions to all feeds but one, whose owner changes nothing, and whose callbacks answer badly at times.
const STEADY: Place = Place {
    account: 0,
    host: BEHIND_NETWORK,
    feeds: &[0, 1, 2, 3, 4, 5, 6, 7, NEIGHBOUR_FEED],
    count: 18,
};
const WELL_BEHAVED: Place =
    Place { account: NEIGHBOUR, host: 4, feeds: &[NEIGHBOUR_FEED], count: 1 };
/// How many feeds are read as streams.
const STREAMS: usize = 3;
/// Between two changes of all feeds while subscriptions change.
const CHANGES_EVERY: Duration = Duration::from_millis(300);
/// How long a stream may take to have everything.
const STREAM_WITHIN: Duration = Duration::from_secs(20);

/// Everybody who calls nodes or is called by them.
pub(super) struct Stage<'a> {
    cast: &'a Cast,
    stalls: &'a Stalls,
    random: Random,
    owners: Vec<Owner<'a>>,
    /// Those who never change their subscriptions.
    steady: Owner<'a>,
    crowd: Crowd<'a>,
    neighbour: Owner<'a>,
    streams: Vec<StreamClient<'a>>,
    archives: Archives,
    failures: Failures,
    counts: Counts,
    /// The longest time until everybody had everything after a round.
    longest_rest: Duration,
}

impl<'a> Stage<'a> {
    /// Subscribes everybody, before anything fails.
    pub(super) async fn set(cast: &'a Cast, stalls: &'a Stalls, random: &mut Random) -> Stage<'a> {
        let places = OWNERS.into_iter().chain([STEADY, WELL_BEHAVED]);
        let owners =
            places.zip(0..).map(|(place, number)| Owner::new(cast, number, place, random.split()));
        let mut owners: Vec<_> = owners.collect();
        let mut crowd = Crowd::new(cast, owners.len(), random);
        let all = owners.iter_mut().chain(crowd.owners_mut());
        join_all(all.map(Owner::subscribe_all)).await;
        let (neighbour, steady) = (owners.pop().unwrap(), owners.pop().unwrap());
        let streams =
            (0..STREAMS).map(|feed| StreamClient::new(cast, feed * 3 % FEEDS, random.split()));
        Stage {
            cast,
            stalls,
            streams: streams.collect(),
            failures: Failures::new(random.split()),
            random: random.split(),
            owners,
            steady,
            crowd,
            neighbour,
            archives: Archives::default(),
            counts: Counts::default(),
            longest_rest: Duration::ZERO,
        }
    }

    /// Lets everybody do what they do until then. While nodes do not fail, neighbours are watched.
    pub(super) async fn play_until(&mut self, end: Instant, do_nodes_fail: bool) {
        let (cast, stalls) = (self.cast, self.stalls);
        let random = [(); 4].map(|()| self.random.split());
        let [of_first, of_second, of_pings, of_neighbours] = random;
        let (crowd, neighbour) = (&self.crowd, &self.neighbour.lives()[0]);
        let watched = async {
            if !do_nodes_fail {
                let neighbours = Neighbours { cast, stalls };
                neighbours.are_served_until(end, (crowd, neighbour), of_neighbours).await;
            }
        };
        tokio::join!(
            self.failures.of_others(cast, end),
            join_all(self.owners.iter_mut().map(|owner| owner.act_until(end))),
            self.steady.misbehave_until(end),
            cast.publish_until(end, of_first),
            cast.publish_until(end, of_second),
            cast.ping_anonymously_until(end, of_pings),
            join_all(self.streams.iter_mut().map(|stream| stream.read_until(end))),
            watched,
        );
    }

    /// Ends a round: everybody comes to rest, and then the nodes are interrupted at the worst moments. A short
    /// run has one of these at a time.
    pub(super) async fn ends_round(
        &mut self,
        nodes: &mut [Node],
        (have_nodes_failed, is_long): (bool, bool),
    ) {
        let interruptions = Interruptions { cast: self.cast, stalls: self.stalls };
        let only = (!is_long).then(|| self.random.below(2));
        let is_chosen = |number| only.is_none_or(|only| only == number);
        self.comes_to_rest(&nodes[0].gateway).await;
        if have_nodes_failed {
            if is_chosen(0) {
                interruptions.of_passes(&self.crowd, nodes).await;
                self.comes_to_rest(&nodes[0].gateway).await;
            }
            if is_chosen(1) {
                self.changes_in_flight().await;
                self.comes_to_rest(&nodes[0].gateway).await;
                let mut random = self.random.split();
                pairs::are_delivered(&self.calm(), &mut random).await;
                self.comes_to_rest(&nodes[0].gateway).await;
            }
            return;
        }
        if is_chosen(0) {
            interruptions.of_subscriptions(&mut self.crowd).await;
            interruptions.of_knowledge(&self.crowd, nodes).await;
            self.comes_to_rest(&nodes[0].gateway).await;
        }
        if is_chosen(1) {
            let node = self.random.below(nodes.len() as u64) as usize;
            let lives: Vec<_> = self.lives().filter(|life| life.is_to_be_notified()).collect();
            interruptions.by_suspension(&nodes[node], &lives).await;
        }
    }

    /// Lets owners change their subscriptions while notifications are in flight.
    async fn changes_in_flight(&mut self) {
        let cast = self.cast;
        let published = async {
            loop {
                (0..FEEDS).for_each(|feed| cast.origins.publish(feed));
                join_all((0..FEEDS).map(|feed| cast.ping(feed, feed))).await;
                sleep(CHANGES_EVERY).await;
            }
        };
        tokio::select! {
            _ = join_all(self.owners.iter_mut().map(Owner::change_in_flight)) => {}
            () = published => {}
        }
    }

    /// Ends all failures, and checks that everybody has everything soon. The nodes are well.
    async fn comes_to_rest(&mut self, gateway: &Gateway) {
        self.cast.recover();
        let all = self.owners.iter_mut().chain([&mut self.steady]).chain(self.crowd.owners_mut());
        join_all(all.map(Owner::calm_down)).await;
        let took = self.calm().comes().await;
        let lives = self.lives().collect();
        Promises { cast: self.cast, stalls: self.stalls, lives }.are_not_broken();
        self.longest_rest = self.longest_rest.max(took);
        let feed = self.random.below(ALL_FEEDS as u64) as usize;
        self.archives.are_unchanged(self.cast, gateway, feed).await;
    }

    /// Resumes what is paused, waits until everybody has everything, and checks all promises. Returns how
    /// often each thing happened.
    pub(super) async fn closes(mut self, gateway: &Gateway) -> String {
        let all = self.owners.iter_mut().chain(self.crowd.owners_mut());
        join_all(all.map(Owner::resume_all)).await;
        self.comes_to_rest(gateway).await;
        let lives = self.lives().collect();
        Promises { cast: self.cast, stalls: self.stalls, lives }.are_kept().await;
        for stream in &mut self.streams {
            stream.has_all(STREAM_WITHIN).await;
            self.counts.count_by("connections of streams", stream.connections);
        }
        let documents = self.archives.are_complete(self.cast, gateway).await;
        let mut counts = self.counts;
        for owner in self.owners.iter().chain([&self.steady]) {
            counts.add(&owner.counts);
        }
        let origins = &self.cast.origins;
        counts.count_by("entries", (0..ALL_FEEDS).map(|feed| origins.count(feed)).sum());
        counts.count_by("notifications", self.cast.callbacks.count());
        counts.count_by("full documents of archives", documents);
        let longest = self.longest_rest;
        format!("{}{counts}  everybody had everything after {longest:?} at most\n", self.failures)
    }

    fn calm(&self) -> Calm<'_> {
        let lives = self.lives().filter(|life| life.unknown_since.is_none());
        let lives = lives.map(|life| (self.cast.callback(life), life)).collect();
        Calm { cast: self.cast, stalls: self.stalls, lives }
    }

    fn lives(&self) -> impl Iterator<Item = &Life> {
        let others = [&self.steady, &self.neighbour];
        let owners = self.owners.iter().chain(others).chain(self.crowd.owners());
        owners.flat_map(|owner| owner.lives())
    }
}
