//! The subscribers of the feed that changes faster than they can be notified: so many at one host that a pass
//! over them takes long, and that most of them wait, claimed or not.

use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::{Instant, sleep};

use super::callbacks::Behaviour;
use super::cast::{CROWDED_FEED, Cast};
use super::lives::{Life, Verb};
use super::origins::name;
use super::owners::{Owner, Place};
use crate::support::feeds::entry_id;
use crate::support::random::Random;
use crate::support::until;

/// How many owners share the subscriptions, and change their parts at the same time.
const OWNERS: usize = 8;
/// The part of one. In all, there are more than a node keeps waiting at one host behind callbacks that do not
/// answer: the others are given back for a while.
const PART: Place = Place { account: 0, host: 3, feeds: &[CROWDED_FEED], count: 14 };
/// Between two looks at what was received.
const EVERY: Duration = Duration::from_millis(5);

pub(super) struct Crowd<'a> {
    cast: &'a Cast,
    owners: Vec<Owner<'a>>,
}

impl<'a> Crowd<'a> {
    /// Its owners have the numbers from `first` on.
    pub(super) fn new(cast: &'a Cast, first: usize, random: &mut Random) -> Crowd<'a> {
        let owner = |number| Owner::new(cast, number, PART, random.split());
        Crowd { cast, owners: (first..first + OWNERS).map(owner).collect() }
    }

    pub(super) fn owners(&self) -> &[Owner<'a>] {
        &self.owners
    }

    pub(super) fn owners_mut(&mut self) -> &mut [Owner<'a>] {
        &mut self.owners
    }

    pub(super) fn lives(&self) -> impl Iterator<Item = &Life> {
        self.owners.iter().flat_map(Owner::lives)
    }

    /// Returns the subscriptions that are to be notified.
    pub(super) fn members(&self) -> Vec<&Life> {
        self.lives().filter(|life| life.is_to_be_notified()).collect()
    }

    pub(super) fn set_behaviour(&self, behaviour: Behaviour) {
        self.lives().for_each(|life| self.cast.callbacks.set(&life.path, behaviour));
    }

    /// Changes all subscriptions, those of each owner one after the other.
    pub(super) async fn change_all(&mut self, verb: Verb) {
        join_all(self.owners.iter_mut().map(|owner| owner.change_all_by(verb))).await;
    }

    /// Publishes an entry, and returns its id when a node has fetched it.
    pub(super) async fn publish(&self) -> String {
        self.cast.origins.publish(CROWDED_FEED);
        let id = entry_id(&name(CROWDED_FEED), self.cast.origins.count(CROWDED_FEED));
        until("a node accepts a ping", async || self.cast.ping(0, CROWDED_FEED).await).await;
        id
    }

    /// The paths of those who have received an entry.
    pub(super) fn have_received(&self, id: &str) -> Vec<&str> {
        let paths = self.lives().map(|life| life.path.as_str());
        paths.filter(|path| self.cast.callbacks.has_received(path, id)).collect()
    }

    /// Waits until at least `count` of these have received an entry, but no longer than that. Returns whether
    /// they have.
    pub(super) async fn receive(
        &self,
        id: &str,
        (paths, count): (&[&str], usize),
        longest: Duration,
    ) -> bool {
        let deadline = Instant::now() + longest;
        let has = |path: &&&str| self.cast.callbacks.has_received(path, id);
        while paths.iter().filter(has).count() < count {
            if Instant::now() > deadline {
                return false;
            }
            sleep(EVERY).await;
        }
        true
    }
}
