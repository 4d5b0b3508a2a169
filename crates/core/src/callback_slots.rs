//! How the hosts of callbacks are divided among nodes.
//!
//! A host belongs to one of [`SLOTS`] slots, by a hash. One node at a time serves a slot: it takes it for a
//! while, and renews that. Each node takes its fair share, so that many hosts are served by all nodes.

use chrono::{DateTime, TimeDelta, Utc};

use crate::node::NodeId;

/// The number of slots. The slot of a host is the same in all versions of the program.
pub const SLOTS: usize = 128;

/// How much later than its end a slot is taken from another node: its node has the same time, but may have
/// read it a moment ago.
const MARGIN: TimeDelta = TimeDelta::milliseconds(250);

/// A set of slots: bit n stands for slot n.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SlotSet(u128);

impl SlotSet {
    /// All slots.
    pub const ALL: SlotSet = SlotSet(u128::MAX);
    /// No slot.
    pub const NONE: SlotSet = SlotSet(0);

    /// Returns whether a slot is in the set.
    pub fn contains(self, slot: usize) -> bool {
        slot < SLOTS && self.0 >> slot & 1 == 1
    }

    /// Adds a slot.
    pub fn insert(&mut self, slot: usize) {
        if slot < SLOTS {
            self.0 |= 1 << slot;
        }
    }

    /// Returns the slots that are not in `other`.
    #[must_use]
    pub fn without(self, other: SlotSet) -> SlotSet {
        SlotSet(self.0 & !other.0)
    }

    /// Returns the slots of both sets.
    #[must_use]
    pub fn with(self, other: SlotSet) -> SlotSet {
        SlotSet(self.0 | other.0)
    }

    /// Returns how many slots there are.
    pub fn count(self) -> usize {
        self.0.count_ones() as usize
    }

    /// Returns the slots in order.
    pub fn iter(self) -> impl Iterator<Item = usize> {
        (0..SLOTS).filter(move |slot| self.contains(*slot))
    }
}

impl FromIterator<usize> for SlotSet {
    fn from_iter<T: IntoIterator<Item = usize>>(slots: T) -> SlotSet {
        let mut set = SlotSet::NONE;
        slots.into_iter().for_each(|slot| set.insert(slot));
        set
    }
}

/// Returns the slot of a host, with its port as in [`Callback::host`](crate::topic::Callback::host).
pub fn slot_of(host: &str) -> usize {
    // FNV-1a, which no version of a library changes.
    let hash = host.bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    ((hash ^ (hash >> 32)) % SLOTS as u64) as usize
}

/// For how long a node serves what it takes, and sends what it has begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotTerms {
    /// How long a slot is taken or renewed for.
    pub lease: TimeDelta,
    /// How long a claim of deliveries lasts.
    pub claim: TimeDelta,
    /// After this time, no request is in progress that was begun before.
    pub request: TimeDelta,
}

/// A slot that a node has, or had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlotLease {
    /// The slot.
    pub slot: usize,
    /// The node.
    pub node: NodeId,
    /// When its lease ends.
    pub until: DateTime<Utc>,
}

/// What a node does with slots.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SlotPlan {
    /// The slots that it has and keeps.
    pub kept: SlotSet,
    /// The kept slots whose leases it renews.
    pub renewed: SlotSet,
    /// The slots that it gives up.
    pub given_up: SlotSet,
    /// The slots without a node that it takes.
    pub taken: SlotSet,
}

impl SlotPlan {
    /// Returns what `node` does at `now`, given the slots and the nodes that work, in the order of their ids.
    pub fn new(
        node: &NodeId,
        (slots, nodes): (&[SlotLease], &[NodeId]),
        now: DateTime<Utc>,
        lease: TimeDelta,
    ) -> SlotPlan {
        let is_own = |held: &&SlotLease| held.node == *node && held.until > now;
        let own: Vec<_> = slots.iter().filter(is_own).collect();
        let share = share_of(node, nodes);
        let kept: SlotSet = own.iter().map(|held| held.slot).take(share).collect();
        let given_up = own.iter().map(|held| held.slot).skip(share).collect();

        // All are renewed together.
        let is_due = |held: &&SlotLease| {
            held.until < now + lease * 2 / 3 || held.until > latest_end(now, lease)
        };
        let renewed = if own.iter().any(|held| kept.contains(held.slot) && is_due(held)) {
            kept
        } else {
            SlotSet::NONE
        };

        let is_taken =
            |held: &&SlotLease| held.until > now - MARGIN && held.until <= latest_end(now, lease);
        let occupied: SlotSet = slots.iter().filter(is_taken).map(|held| held.slot).collect();
        let free = SlotSet::ALL.without(occupied).iter();
        let taken = free.take(share.saturating_sub(kept.count())).collect();
        SlotPlan { kept, renewed, given_up, taken }
    }
}

/// Returns when the last lease ends of those that are taken by `now`. One that would end later was taken before
/// the clock was set back, and its node, if it works, has stopped to serve.
pub fn latest_end(now: DateTime<Utc>, lease: TimeDelta) -> DateTime<Utc> {
    now + lease * 2
}

/// Returns how many slots are the share of a node among those that work: all shares together are all slots.
fn share_of(node: &NodeId, nodes: &[NodeId]) -> usize {
    let before = nodes.iter().filter(|other| other.0 < node.0).count();
    let all = nodes.iter().filter(|other| *other != node).count() + 1;
    SLOTS / all + usize::from(before < SLOTS % all)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASE: TimeDelta = TimeDelta::seconds(5);

    fn at(milliseconds: i64) -> DateTime<Utc> {
        DateTime::UNIX_EPOCH + TimeDelta::milliseconds(milliseconds)
    }

    fn id(name: &str) -> NodeId {
        NodeId(name.to_owned())
    }

    fn ids(names: &[&str]) -> Vec<NodeId> {
        names.iter().map(|name| id(name)).collect()
    }

    fn held(node: &str, slots: std::ops::Range<usize>, until: DateTime<Utc>) -> Vec<SlotLease> {
        slots.map(|slot| SlotLease { slot, node: id(node), until }).collect()
    }

    #[test]
    fn e08_hosts_are_spread_evenly_and_stay_in_their_slots() {
        assert_eq!(slot_of("callback.test:443"), 12);
        let mut counts = [0; SLOTS];
        for number in 0..128_000 {
            counts[slot_of(&format!("host{number}.test:443"))] += 1;
            counts[slot_of(&format!("10.0.{}.{}:80", number / 250, number % 250))] += 1;
        }
        assert!(counts.iter().all(|count| (1_600..2_400).contains(count)), "{counts:?}");
    }

    #[test]
    fn e08_shares_are_fair_and_all_slots_together() {
        for count in [1, 2, 3, 5, 100, 128, 200] {
            let nodes: Vec<_> = (0..count).map(|n| id(&format!("{n:03}"))).collect();
            let shares: Vec<_> = nodes.iter().map(|node| share_of(node, &nodes)).collect();
            assert_eq!(shares.iter().sum::<usize>(), SLOTS, "{shares:?}");
            let least = shares.iter().min().unwrap();
            assert!(shares.iter().all(|share| share - least <= 1), "{shares:?}");
        }
        assert_eq!(share_of(&id("new"), &ids(&["a"])), 64, "a node that is not listed yet");
    }

    #[test]
    fn e08_a_node_alone_takes_all_slots_and_renews_them_in_time() {
        let alone = ids(&["a"]);
        let plan = SlotPlan::new(&id("a"), (&[], &alone), at(0), LEASE);
        assert_eq!(plan, SlotPlan { taken: SlotSet::ALL, ..SlotPlan::default() });
        let all = held("a", 0..SLOTS, at(5_000));
        for (now, renewed) in [(1_000, SlotSet::NONE), (2_000, SlotSet::ALL), (4_999, SlotSet::ALL)]
        {
            let plan = SlotPlan::new(&id("a"), (&all, &alone), at(now), LEASE);
            assert_eq!(
                plan,
                SlotPlan { kept: SlotSet::ALL, renewed, ..SlotPlan::default() },
                "{now}"
            );
        }
        let plan = SlotPlan::new(&id("a"), (&all, &alone), at(5_100), LEASE);
        assert_eq!(plan, SlotPlan::default(), "another node may have taken them");
        let plan = SlotPlan::new(&id("a"), (&all, &alone), at(5_300), LEASE);
        assert_eq!(plan.taken, SlotSet::ALL);
    }

    #[test]
    fn e08_a_node_that_joins_is_given_its_share() {
        let (both, all) = (ids(&["a", "b"]), held("a", 0..SLOTS, at(5_000)));
        let joins = SlotPlan::new(&id("b"), (&all, &both), at(0), LEASE);
        assert_eq!(joins, SlotPlan::default());
        let plan = SlotPlan::new(&id("a"), (&all, &both), at(0), LEASE);
        assert_eq!((plan.kept.count(), plan.given_up.count()), (64, 64));
        let left: Vec<_> = all.into_iter().filter(|one| plan.kept.contains(one.slot)).collect();
        let takes = SlotPlan::new(&id("b"), (&left, &both), at(1_000), LEASE);
        assert_eq!(takes.taken, plan.given_up);
    }

    #[test]
    fn e08_slots_of_a_node_that_was_killed_are_taken_after_its_lease() {
        let mut slots = held("a", 0..64, at(5_000));
        slots.extend(held("b", 64..SLOTS, at(3_000)));
        let both = ids(&["a", "b"]);
        assert_eq!(SlotPlan::new(&id("a"), (&slots, &both), at(3_100), LEASE).taken.count(), 0);
        let plan = SlotPlan::new(&id("a"), (&slots, &ids(&["a"])), at(3_300), LEASE);
        assert_eq!(plan.taken, (64..SLOTS).collect());
    }

    #[test]
    fn e08_leases_that_have_not_moved_with_a_clock_that_was_set_back_last_no_longer_than_others() {
        let slots = held("a", 0..SLOTS, at(3_600_000));
        let plan = SlotPlan::new(&id("a"), (&slots, &ids(&["a"])), at(0), LEASE);
        assert_eq!((plan.kept, plan.renewed), (SlotSet::ALL, SlotSet::ALL), "by its own node");
        let plan = SlotPlan::new(&id("b"), (&slots, &ids(&["b"])), at(0), LEASE);
        assert_eq!(plan.taken, SlotSet::ALL, "by another, if that one is gone");
    }
}
