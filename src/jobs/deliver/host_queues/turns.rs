//! Whose turn it is: the hosts that can start a delivery, in the order of their turns.
//!
//! Subscribers with and without an account take turns, then the speeds of their callbacks, then the
//! owners, then the hosts of each. So nobody gets more turns by having more hosts.

use std::collections::VecDeque;

use foldhash::HashMap;

use super::endpoint_speeds::Speed;
use super::lanes::Owner;

/// What waits in one queue: deliveries that take turns with each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Kind {
    pub(super) has_account: bool,
    pub(super) speed: Speed,
}

/// A value for each kind.
#[derive(Clone, Debug, Default)]
pub(super) struct ByKind<T>([T; Kind::COUNT]);

impl Kind {
    const COUNT: usize = 6;
    const SPEEDS: [Speed; 3] = [Speed::Quick, Speed::Unknown, Speed::Slow];

    pub(super) fn all() -> impl Iterator<Item = Kind> {
        [true, false].into_iter().flat_map(|has_account| {
            Kind::SPEEDS.into_iter().map(move |speed| Kind { has_account, speed })
        })
    }

    fn place(self) -> usize {
        self.speed as usize + if self.has_account { 0 } else { Kind::SPEEDS.len() }
    }
}

impl<T> ByKind<T> {
    pub(super) fn get(&self, kind: Kind) -> &T {
        &self.0[kind.place()]
    }

    pub(super) fn get_mut(&mut self, kind: Kind) -> &mut T {
        &mut self.0[kind.place()]
    }

    pub(super) fn values(&self) -> impl Iterator<Item = &T> {
        self.0.iter()
    }

    pub(super) fn into_values(self) -> impl Iterator<Item = T> {
        self.0.into_iter()
    }
}

/// The hosts of one kind of deliveries that can start one.
#[derive(Debug, Default)]
struct OwnerTurns {
    /// The owners in the order of their turns, each once.
    order: VecDeque<Owner>,
    hosts: HashMap<Owner, VecDeque<String>>,
}

/// The hosts that can start a delivery.
#[derive(Debug, Default)]
pub(super) struct Turns {
    owners: ByKind<OwnerTurns>,
    /// Whether subscribers without an account are next.
    are_anonymous_next: bool,
    /// How many turns there have been, for the turns of the speeds.
    count: usize,
}

/// A turn of a host to start a delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Turn {
    pub(super) kind: Kind,
    pub(super) owner: Owner,
    pub(super) host: String,
}

impl Turns {
    /// Adds a turn behind the others of its owner.
    pub(super) fn add(&mut self, Turn { kind, owner, host }: Turn) {
        let turns = self.owners.get_mut(kind);
        let hosts = turns.hosts.entry(owner).or_insert_with(|| {
            turns.order.push_back(owner);
            VecDeque::new()
        });
        hosts.push_back(host);
    }

    /// Takes the next turn of an owner who may begin a delivery of this kind now.
    pub(super) fn take_next_turn(
        &mut self,
        may_begin: impl Fn(Kind, Owner) -> bool,
    ) -> Option<Turn> {
        let (kind, place) = self.next(may_begin)?;
        let turns = self.owners.get_mut(kind);
        let owner = turns.order.remove(place)?;
        let hosts = turns.hosts.get_mut(&owner)?;
        let host = hosts.pop_front()?;
        if hosts.is_empty() {
            turns.hosts.remove(&owner);
        } else {
            turns.order.push_back(owner);
        }
        self.are_anonymous_next = kind.has_account;
        self.count = self.count.wrapping_add(1);
        Some(Turn { kind, owner, host })
    }

    /// Returns the host of the next turn of an owner who may begin a delivery now.
    pub(super) fn next_host(&self, may_begin: impl Fn(Kind, Owner) -> bool) -> Option<&str> {
        let (kind, place) = self.next(may_begin)?;
        let turns = self.owners.get(kind);
        turns.hosts.get(&turns.order[place])?.front().map(String::as_str)
    }

    /// Returns the kind of the next turn, and the place of its owner in the order of that kind.
    fn next(&self, may_begin: impl Fn(Kind, Owner) -> bool) -> Option<(Kind, usize)> {
        let classes = [!self.are_anonymous_next, self.are_anonymous_next];
        classes.into_iter().find_map(|has_account| {
            let speeds = Kind::SPEEDS.len();
            (0..speeds).find_map(|offset| {
                let speed = Kind::SPEEDS[(self.count / 2 + offset) % speeds];
                let kind = Kind { has_account, speed };
                let order = &self.owners.get(kind).order;
                let place = order.iter().position(|owner| may_begin(kind, *owner))?;
                Some((kind, place))
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jobs::deliver::test_subscriptions::subscription;
    use feedgate_core::account::AccountId;
    use feedgate_core::subscription::Subscription;

    fn owner(account: i64) -> Owner {
        let account = (account > 0).then_some(AccountId(account));
        Owner::from_subscription(&Subscription { account, ..subscription() })
    }

    fn turn(account: i64, speed: Speed, host: &str) -> Turn {
        let owner = owner(account);
        let kind = Kind { has_account: owner.has_account(), speed };
        Turn { kind, owner, host: host.to_owned() }
    }

    fn hosts(turns: &mut Turns) -> Vec<String> {
        std::iter::from_fn(|| turns.take_next_turn(|_, _| true)).map(|turn| turn.host).collect()
    }

    #[test]
    fn owners_take_turns_however_many_hosts_they_have() {
        let mut turns = Turns::default();
        for host in ["a1", "a2", "a3"] {
            turns.add(turn(1, Speed::Quick, host));
        }
        turns.add(turn(2, Speed::Quick, "b1"));
        turns.add(turn(0, Speed::Quick, "c1"));
        assert_eq!(hosts(&mut turns), ["a1", "c1", "b1", "a2", "a3"]);
    }

    #[test]
    fn no_speed_waits_for_the_end_of_another() {
        let mut turns = Turns::default();
        for n in 0..6 {
            turns.add(turn(1, Speed::Quick, &format!("quick{n}")));
        }
        turns.add(turn(1, Speed::Unknown, "new"));
        turns.add(turn(1, Speed::Slow, "slow"));
        let hosts = hosts(&mut turns);
        let place = |name: &str| hosts.iter().position(|host| host == name).unwrap();
        assert!(place("new") < 5 && place("slow") < 7, "{hosts:?}");
    }

    #[test]
    fn an_owner_that_may_not_begin_is_passed_over() {
        let mut turns = Turns::default();
        turns.add(turn(1, Speed::Unknown, "a1"));
        turns.add(turn(2, Speed::Unknown, "b1"));
        let taken = turns.take_next_turn(|_, who| who != owner(1)).unwrap();
        assert_eq!(taken.host, "b1");
        assert_eq!(turns.next_host(|_, who| who != owner(1)), None);
        assert_eq!(hosts(&mut turns), ["a1"]);
    }
}
