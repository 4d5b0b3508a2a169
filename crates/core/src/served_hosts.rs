//! The hosts of callbacks that a node serves now: what it knows in memory of the slots that it has taken
//! ([`crate::callback_slots`]).
//!
//! Invariants:
//!
//! * A node that shares hosts with others claims deliveries to a host, and begins to send them, only while it
//!   serves the slot of the host, and its lease has not ended.
//! * It does not begin with a host while another node may still be sending to it: as long as that one holds
//!   claims there, and no longer than a request lasts.
//! * Before slots are given up in the database, they are given up here.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chrono::{DateTime, TimeDelta, Utc};

use crate::callback_slots::{SLOTS, SlotSet, slot_of};

/// By how much the time of a caller may be before the last renewal: it may have been read earlier.
const EARLIER: TimeDelta = TimeDelta::seconds(1);

/// The hosts that a node serves: all, unless it shares them with other nodes.
#[derive(Debug, Default)]
pub struct ServedHosts {
    /// `None`: all.
    shared: Mutex<Option<Shared>>,
}

/// What a node serves of what it shares with others.
#[derive(Debug)]
struct Shared {
    held: SlotSet,
    /// When slots were last renewed, and when the first of their leases ends.
    renewed_at: DateTime<Utc>,
    until: DateTime<Utc>,
    /// Slots of which it is not known yet at which hosts others have claims.
    unknown: SlotSet,
    /// When slots were taken in which others may still be sending.
    taken_at: [Option<DateTime<Utc>>; SLOTS],
    /// Hosts at which others have claims.
    claimed: Arc<HashSet<String>>,
    /// How often slots were given up or lost.
    handovers: u64,
    /// How often hosts began to be served.
    beginnings: u64,
}

/// The hosts that a node serves at one time.
#[derive(Clone, Debug)]
pub struct ServedNow {
    slots: SlotSet,
    /// Hosts in these slots that it does not serve yet.
    claimed: Arc<HashSet<String>>,
}

impl ServedNow {
    /// Returns whether the node serves a host.
    pub fn serves(&self, host: &str) -> bool {
        let is_all = self.slots == SlotSet::ALL && self.claimed.is_empty();
        is_all || (self.slots.contains(slot_of(host)) && !self.claimed.contains(host))
    }

    /// Returns how many nodes serve hosts, as far as can be seen from the share of this one.
    pub fn nodes(&self) -> usize {
        SLOTS.div_ceil(self.slots.count().max(1))
    }
}

impl ServedHosts {
    /// Returns what is served at `now`.
    pub fn at(&self, now: DateTime<Utc>) -> ServedNow {
        match &*self.shared() {
            None => ServedNow { slots: SlotSet::ALL, claimed: Arc::default() },
            Some(shared) => {
                let is_valid = now < shared.until && now > shared.renewed_at - EARLIER;
                let held = if is_valid { shared.held } else { SlotSet::NONE };
                let slots = held.without(shared.unknown);
                ServedNow { slots, claimed: Arc::clone(&shared.claimed) }
            }
        }
    }

    /// Returns how often slots were given up or lost. What waits for their hosts is given back.
    pub fn handovers(&self) -> u64 {
        self.shared().as_ref().map_or(0, |shared| shared.handovers)
    }

    /// Returns how often hosts began to be served, or were served again after the lease had ended. What was
    /// skipped at these hosts is looked for again.
    pub fn beginnings(&self) -> u64 {
        self.shared().as_ref().map_or(0, |shared| shared.beginnings)
    }

    /// Returns whether the slot of a host is this node's, even if its lease has ended and no other node is
    /// known to have taken it.
    pub fn holds(&self, host: &str) -> bool {
        self.shared().as_ref().is_none_or(|shared| shared.held.contains(slot_of(host)))
    }

    /// Begins to share hosts with others: nothing is served until slots are taken.
    pub fn begin_sharing(&self) {
        self.shared().get_or_insert_with(|| Shared {
            held: SlotSet::NONE,
            renewed_at: DateTime::UNIX_EPOCH,
            until: DateTime::UNIX_EPOCH,
            unknown: SlotSet::NONE,
            taken_at: [None; SLOTS],
            claimed: Arc::default(),
            handovers: 0,
            beginnings: 0,
        });
    }

    /// Gives slots up, before that is stored.
    pub fn give_up(&self, slots: SlotSet) {
        if let Some(shared) = &mut *self.shared() {
            shared.keep_slots(shared.held.without(slots));
        }
    }

    /// Notes which slots this node has, from `now` to the end of the first of their leases, and which of them it
    /// has taken. Hosts in those that are new are served once it is known at which of them others have claims.
    pub fn hold_slots(
        &self,
        (held, taken): (SlotSet, SlotSet),
        (now, until): (DateTime<Utc>, DateTime<Utc>),
    ) {
        let mut shared = self.shared();
        let Some(shared) = &mut *shared else { return };
        let new = held.without(shared.held.without(taken));
        shared.keep_slots(held);
        shared.held = held;
        shared.unknown = shared.unknown.with(new);
        new.iter().for_each(|slot| shared.taken_at[slot] = Some(now));
        shared.beginnings += u64::from(shared.until <= now);
        (shared.renewed_at, shared.until) = (now, until);
    }

    /// Returns the slots that were taken less than `request` before `now`, in which others may still be
    /// sending what they began before.
    pub fn new_slots(&self, now: DateTime<Utc>, request: TimeDelta) -> SlotSet {
        let mut shared = self.shared();
        let Some(shared) = &mut *shared else { return SlotSet::NONE };
        for taken_at in &mut shared.taken_at {
            *taken_at = taken_at.filter(|at| (now - *at).abs() < request);
        }
        let is_new = |slot: &usize| shared.taken_at[*slot].is_some();
        shared.held.iter().filter(is_new).collect()
    }

    /// Notes the hosts in new slots at which others have claims; all others are served. Returns whether some are
    /// served from now on.
    pub fn note_claimed(&self, claimed: HashSet<String>) -> bool {
        let mut shared = self.shared();
        let Some(shared) = &mut *shared else { return false };
        let is_new = shared.unknown != SlotSet::NONE;
        let begins = is_new || shared.claimed.iter().any(|host| !claimed.contains(host));
        shared.unknown = SlotSet::NONE;
        shared.claimed = Arc::new(claimed);
        shared.beginnings += u64::from(begins);
        begins
    }

    /// Returns whether there are hosts that are served once the claims of others have ended.
    pub fn awaits_others(&self) -> bool {
        self.shared().as_ref().is_some_and(|shared| !shared.claimed.is_empty())
    }

    fn shared(&self) -> MutexGuard<'_, Option<Shared>> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shared {
    /// Drops the slots that are not among `held`.
    fn keep_slots(&mut self, held: SlotSet) {
        let lost = self.held.without(held);
        self.held = self.held.without(lost);
        self.unknown = self.unknown.without(lost);
        lost.iter().for_each(|slot| self.taken_at[slot] = None);
        self.handovers += u64::from(lost != SlotSet::NONE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOST: &str = "callback.test:443";
    const OTHER: &str = "other.test:443";

    fn at(seconds: i64) -> DateTime<Utc> {
        DateTime::UNIX_EPOCH + TimeDelta::seconds(100 + seconds)
    }

    /// A node that has taken all slots at 0, until 5.
    fn served() -> ServedHosts {
        let served = ServedHosts::default();
        served.begin_sharing();
        served.hold_slots((SlotSet::ALL, SlotSet::ALL), (at(0), at(5)));
        served
    }

    #[test]
    fn e08_a_node_that_shares_with_no_other_serves_all_hosts() {
        let served = ServedHosts::default();
        assert!(served.at(at(0)).serves(HOST) && served.holds(HOST));
        served.begin_sharing();
        assert!(!served.at(at(0)).serves(HOST) && !served.holds(HOST));
    }

    #[test]
    fn e08_nothing_is_served_until_the_claims_of_others_are_known_or_after_the_lease() {
        let served = served();
        assert!(!served.at(at(1)).serves(HOST));
        assert!(served.note_claimed(HashSet::from([HOST.to_owned()])));
        let now = served.at(at(1));
        assert!(!now.serves(HOST) && now.serves(OTHER) && served.awaits_others());
        assert!(served.note_claimed(HashSet::new()));
        assert!(served.at(at(1)).serves(HOST) && !served.note_claimed(HashSet::new()));
        assert!(!served.at(at(5)).serves(HOST), "its lease has ended");
        assert!(served.holds(HOST), "no other node has taken it");
        assert!(!served.at(at(-3_600)).serves(HOST), "the clock was set back");
    }

    #[test]
    fn e08_hosts_that_begin_to_be_served_are_counted() {
        let served = served();
        let begun = served.beginnings();
        served.note_claimed(HashSet::from([HOST.to_owned()]));
        assert_eq!(served.beginnings(), begun + 1, "those without claims of others");
        served.hold_slots((SlotSet::ALL, SlotSet::NONE), (at(2), at(7)));
        served.note_claimed(HashSet::from([HOST.to_owned()]));
        assert_eq!(served.beginnings(), begun + 1, "a renewal in time");
        served.note_claimed(HashSet::new());
        assert_eq!(served.beginnings(), begun + 2, "the others have ended");
        served.hold_slots((SlotSet::ALL, SlotSet::NONE), (at(8), at(13)));
        assert_eq!(served.beginnings(), begun + 3, "a renewal after the lease has ended");
    }

    #[test]
    fn e08_a_slot_that_is_given_up_or_lost_is_not_served() {
        let served = served();
        served.note_claimed(HashSet::new());
        let slot: SlotSet = [slot_of(HOST)].into_iter().collect();
        served.give_up(slot);
        assert!(!served.at(at(1)).serves(HOST) && served.at(at(1)).serves(OTHER));
        assert_eq!(served.handovers(), 1);
        served.hold_slots((SlotSet::ALL, slot), (at(2), at(7)));
        assert!(!served.at(at(2)).serves(HOST), "it is new again");
        assert_eq!(served.new_slots(at(2), TimeDelta::seconds(9)), SlotSet::ALL);
        assert_eq!(served.new_slots(at(10), TimeDelta::seconds(9)), slot);
        served.hold_slots((SlotSet::NONE, SlotSet::NONE), (at(3), at(8)));
        assert_eq!((served.handovers(), served.holds(OTHER)), (2, false));
    }
}
