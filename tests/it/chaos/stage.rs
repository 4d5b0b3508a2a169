//! All who take part in a run, and the rounds that they play.

use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::Instant;

use super::archives::Archives;
use super::calm::Calm;
use super::cast::{
    ALL_FEEDS, BEHIND_NETWORK, CROWDED_FEED, Cast, FEEDS, NEIGHBOUR, NEIGHBOUR_FEED,
};
use super::counts::Counts;
use super::failures::Failures;
use super::lives::Life;
use super::neighbours::Neighbours;
use super::owners::{Owner, Place};
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
/// The subscribers of the feed that changes faster than they can be notified.
const CROWD: Place = Place { account: 0, host: 3, feeds: &[CROWDED_FEED], count: 30 };
const WELL_BEHAVED: Place =
    Place { account: NEIGHBOUR, host: 4, feeds: &[NEIGHBOUR_FEED], count: 1 };
/// How many feeds are read as streams.
const STREAMS: usize = 3;
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
    crowd: Owner<'a>,
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
        let places = OWNERS.into_iter().chain([STEADY, CROWD, WELL_BEHAVED]);
        let owners =
            places.zip(0..).map(|(place, number)| Owner::new(cast, number, place, random.split()));
        let mut owners: Vec<_> = owners.collect();
        join_all(owners.iter_mut().map(Owner::subscribe_all)).await;
        let mut others = owners.drain(OWNERS.len()..);
        let (steady, crowd, neighbour) =
            (others.next().unwrap(), others.next().unwrap(), others.next().unwrap());
        drop(others);
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
        let (crowd, neighbour) = (self.crowd.lives(), &self.neighbour.lives()[0]);
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

    /// Ends all failures, and checks that everybody has everything soon. The nodes are well.
    pub(super) async fn comes_to_rest(&mut self, gateway: &Gateway) {
        self.cast.recover();
        let all = self.owners.iter_mut().chain([&mut self.steady, &mut self.crowd]);
        join_all(all.map(Owner::calm_down)).await;
        let lives = self.lives().filter(|life| life.unknown_since.is_none());
        let lives = lives.map(|life| (self.cast.callback(life), life)).collect();
        let took = Calm { cast: self.cast, stalls: self.stalls, lives }.comes().await;
        self.longest_rest = self.longest_rest.max(took);
        let feed = self.random.below(ALL_FEEDS as u64) as usize;
        self.archives.are_unchanged(self.cast, gateway, feed).await;
    }

    /// Resumes what is paused, waits until everybody has everything, and checks all promises. Returns how
    /// often each thing happened.
    pub(super) async fn closes(mut self, gateway: &Gateway) -> String {
        join_all(self.owners.iter_mut().map(Owner::resume_all)).await;
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

    fn lives(&self) -> impl Iterator<Item = &Life> {
        let others = [&self.steady, &self.crowd, &self.neighbour];
        self.owners.iter().chain(others).flat_map(|owner| owner.lives())
    }
}
