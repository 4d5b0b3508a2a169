//! The quick and the slow lane of deliveries in progress, of one host or of this node.
//!
//! A delivery that has been in progress for longer than `SLOW_AFTER` moves to the slow lane, and the
//! quick lane has room for the next one. A callback whose last answer was slow is sent to in the slow
//! lane from the beginning, and waits while that is full.
//!
//! Invariants, for each host and for this node:
//!
//! * No more deliveries are in progress than `most`. Those that have turned slow while the slow lane was
//!   full stay in the quick lane; but neither those to callbacks whose speed is unknown, nor those of one
//!   [`LaneShare`], can fill more than half of it that way, even if all of them turn out slow. So the other
//!   half is free again for all others after that time.
//! * A feed with half of the slow lane starts no more deliveries that may be slow, and neither does an
//!   owner with three quarters.
//! * Subscribers without an account together have at most half of everything while accounts want it.

use foldhash::HashMap;

use super::endpoint_speeds::Speed;
use crate::jobs::deliver::concurrency_limit::ConcurrencyLimit;
use feedgate_core::resource::ResourceId;
use feedgate_core::subscription::Subscription;

/// Who is charged for a delivery: an account, or the network of a subscriber without one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Owner(i64);

impl Owner {
    pub(super) fn from_subscription(subscription: &Subscription) -> Owner {
        let network = subscription.registrant.as_number(); // not positive
        Owner(subscription.account.map_or(network, |account| account.0))
    }

    pub(super) fn has_account(self) -> bool {
        self.0 > 0
    }
}

/// What may not fill a lane alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum LaneShare {
    /// All subscribers without an account.
    Anonymous,
    Owner(Owner),
    /// The subscriptions of an owner to one resource.
    Feed(Owner, ResourceId),
}

impl LaneShare {
    /// Returns the shares of an owner, and of one of its feeds.
    pub(super) fn all(owner: Owner, feed: Option<ResourceId>) -> LaneShares {
        let anonymous = (!owner.has_account()).then_some(LaneShare::Anonymous);
        let feed = feed.map(|feed| LaneShare::Feed(owner, feed));
        [anonymous, Some(LaneShare::Owner(owner)), feed].into_iter().flatten()
    }

    /// Returns the share of all subscribers without an account, if these are among them.
    pub(super) fn of_class(has_account: bool) -> LaneShares {
        [(!has_account).then_some(LaneShare::Anonymous), None, None].into_iter().flatten()
    }
}

/// The shares that a delivery belongs to.
pub(super) type LaneShares = std::iter::Flatten<std::array::IntoIter<Option<LaneShare>, 3>>;

/// The sizes of both lanes.
#[derive(Clone, Copy, Debug)]
pub(super) struct LaneSizes {
    quick: usize,
    slow: usize,
    /// The most deliveries in both.
    most: usize,
    /// Whether deliveries of accounts are in progress or waiting.
    do_accounts_want: bool,
}

impl LaneSizes {
    /// Returns the sizes for all hosts: as many slow deliveries as quick ones.
    pub(super) fn of_node(concurrency: usize, do_accounts_want: bool) -> LaneSizes {
        let concurrency = concurrency.max(1);
        LaneSizes { quick: concurrency, slow: concurrency, most: concurrency * 2, do_accounts_want }
    }

    /// Returns the sizes for a host. The slow lane has a part of its ceiling, less while it is overloaded.
    pub(super) fn of_host(limit: &ConcurrencyLimit, do_accounts_want: bool) -> LaneSizes {
        let (quick, most) = (limit.current(), limit.ceiling());
        let slow = if limit.is_reduced() { quick } else { quick * 2 }.min(most / 2);
        LaneSizes { quick, slow, most, do_accounts_want }
    }

    /// Returns what is left of the quick lane while the slow lane is full.
    fn least_quick(&self) -> usize {
        self.quick.min(self.most - self.slow)
    }

    /// Returns the most deliveries to callbacks that may turn out slow.
    fn most_unknown(&self) -> usize {
        (self.slow + self.least_quick() / 4).max(1)
    }

    /// Returns the most deliveries of a share.
    fn most_of(&self, share: LaneShare) -> usize {
        if share == LaneShare::Anonymous && self.do_accounts_want {
            ((self.slow + self.least_quick()) / 2).max(1)
        } else {
            self.slow + self.least_quick().div_ceil(2)
        }
    }

    /// Returns the most deliveries of a share that may be slow: fewer than of all, so that its own quick ones find
    /// room, and of a feed fewer than of its owner, for the other feeds.
    fn most_unknown_of(&self, share: LaneShare) -> usize {
        let quarters = if matches!(share, LaneShare::Feed(..)) { 2 } else { 3 };
        (self.most_of(share) * quarters / 4).max(1)
    }

    /// Returns how many slow deliveries of a share keep it from beginning others that may be slow.
    fn most_slow(&self, share: LaneShare) -> usize {
        let most = match share {
            LaneShare::Anonymous if self.do_accounts_want => self.slow / 2,
            LaneShare::Anonymous | LaneShare::Owner(_) => self.slow * 3 / 4,
            LaneShare::Feed(..) => self.slow / 2,
        };
        most.max(1)
    }
}

/// Deliveries in progress.
#[derive(Clone, Copy, Debug, Default)]
struct Load {
    running: usize,
    /// How many of them are slow.
    slow: usize,
    /// How many of them are not slow yet, to callbacks whose speed is unknown.
    unknown: usize,
}

/// The deliveries in progress in both lanes.
#[derive(Debug, Default)]
pub(super) struct Lanes {
    all: Load,
    of: HashMap<LaneShare, Load>,
}

impl Lanes {
    /// Returns how many deliveries are in progress.
    pub(super) fn running(&self) -> usize {
        self.all.running
    }

    /// Returns whether there are deliveries in the quick lane.
    pub(super) fn has_quick(&self) -> bool {
        self.all.running > self.all.slow
    }

    /// Returns whether there are slow deliveries.
    pub(super) fn has_slow(&self) -> bool {
        self.all.slow > 0
    }

    /// Returns whether the quick lane is full.
    pub(super) fn is_full(&self, sizes: &LaneSizes) -> bool {
        self.occupied(sizes) >= sizes.quick || self.all.running >= sizes.most
    }

    /// Returns whether a delivery to a callback of this speed may begin, of all these shares.
    pub(super) fn admit(&self, sizes: &LaneSizes, speed: Speed, mut shares: LaneShares) -> bool {
        let may_be_slow = speed != Speed::Quick;
        let has_room = self.all.running < sizes.most
            && match self.place(sizes, speed) {
                Speed::Slow => self.all.slow < sizes.slow,
                Speed::Quick => !self.is_full(sizes),
                Speed::Unknown => {
                    !self.is_full(sizes) && self.all.may_be_slow() < sizes.most_unknown()
                }
            };
        has_room
            && shares.all(|share| {
                let load = self.of.get(&share).copied().unwrap_or_default();
                // Quick ones are not counted here: while a feed has some all the time, it would never send
                // anything to a callback that is new or slow.
                let is_too_slow = load.slow >= sizes.most_slow(share)
                    || load.may_be_slow() >= sizes.most_unknown_of(share);
                load.running < sizes.most_of(share) && !(may_be_slow && is_too_slow)
            })
    }

    /// Begins a delivery to a callback of this speed. Returns the lane.
    pub(super) fn begin(&mut self, sizes: &LaneSizes, speed: Speed, shares: LaneShares) -> Speed {
        let place = self.place(sizes, speed);
        self.all.begin(place);
        for share in shares {
            self.of.entry(share).or_default().begin(place);
        }
        place
    }

    /// Moves a delivery that began in `place` to the slow lane.
    pub(super) fn turn_slow(&mut self, place: Speed, shares: LaneShares) {
        self.all.turn_slow(place);
        for share in shares {
            self.of.entry(share).or_default().turn_slow(place);
        }
    }

    /// Ends a delivery that is in `place`.
    pub(super) fn end(&mut self, place: Speed, shares: LaneShares) {
        self.all.end(place);
        for share in shares {
            if let Some(load) = self.of.get_mut(&share) {
                load.end(place);
                if load.running == 0 {
                    self.of.remove(&share);
                }
            }
        }
    }

    /// Returns how much of the quick lane is used.
    fn occupied(&self, sizes: &LaneSizes) -> usize {
        self.all.running - self.all.slow + self.all.slow.saturating_sub(sizes.slow)
    }

    /// Returns where a delivery begins. A host that takes only one at a time has no slow lane.
    fn place(&self, sizes: &LaneSizes, speed: Speed) -> Speed {
        if speed == Speed::Slow && sizes.slow == 0 { Speed::Unknown } else { speed }
    }
}

impl Load {
    /// Returns how many deliveries are slow, or may turn out so.
    fn may_be_slow(self) -> usize {
        self.slow + self.unknown
    }

    fn begin(&mut self, place: Speed) {
        self.running += 1;
        self.slow += usize::from(place == Speed::Slow);
        self.unknown += usize::from(place == Speed::Unknown);
    }

    fn turn_slow(&mut self, place: Speed) {
        self.slow += 1;
        self.unknown -= usize::from(place == Speed::Unknown);
    }

    fn end(&mut self, place: Speed) {
        self.running -= 1;
        self.slow -= usize::from(place == Speed::Slow);
        self.unknown -= usize::from(place == Speed::Unknown);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANNA: Owner = Owner(1);
    const ANONYMOUS: Owner = Owner(0);
    const SIZES: LaneSizes = LaneSizes { quick: 8, slow: 8, most: 16, do_accounts_want: true };

    fn shares(owner: Owner) -> LaneShares {
        LaneShare::all(owner, Some(ResourceId(1)))
    }

    /// Begins as many deliveries as may begin; returns their lanes.
    fn fill(lanes: &mut Lanes, speed: Speed, owner: Owner) -> Vec<Speed> {
        let mut begun = Vec::new();
        while lanes.admit(&SIZES, speed, shares(owner)) {
            begun.push(lanes.begin(&SIZES, speed, shares(owner)));
        }
        begun
    }

    #[test]
    fn a_delivery_that_turns_slow_leaves_its_place_to_the_next() {
        let mut lanes = Lanes::default();
        assert_eq!(fill(&mut lanes, Speed::Unknown, ANNA).len(), 6, "a feed leaves room to others");
        (0..6).for_each(|_| lanes.turn_slow(Speed::Unknown, shares(ANNA)));
        let is_admitted = lanes.admit(&SIZES, Speed::Unknown, shares(ANNA));
        assert!(!is_admitted, "it has too much of the slow lane");
        assert_eq!(fill(&mut lanes, Speed::Slow, Owner(2)).len(), 2, "the slow lane is full now");
        assert_eq!(
            fill(&mut lanes, Speed::Unknown, Owner(3)).len(),
            2,
            "most is left for quick ones"
        );
        assert_eq!(fill(&mut lanes, Speed::Quick, ANNA).len(), 6, "the rest of the quick lane");
        (0..6).for_each(|_| lanes.end(Speed::Slow, shares(ANNA)));
        assert_eq!(lanes.running(), 10);
    }

    #[test]
    fn a_slow_feed_has_at_most_half_of_the_slow_lane_and_a_slow_owner_three_quarters() {
        let mut lanes = Lanes::default();
        assert_eq!(fill(&mut lanes, Speed::Slow, ANNA), [Speed::Slow; 4]);
        let other_feed = || LaneShare::all(ANNA, Some(ResourceId(2)));
        while lanes.admit(&SIZES, Speed::Slow, other_feed()) {
            lanes.begin(&SIZES, Speed::Slow, other_feed());
        }
        assert_eq!(lanes.running(), 6);
        assert_eq!(fill(&mut lanes, Speed::Slow, ANONYMOUS).len(), 2);
        assert_eq!(fill(&mut lanes, Speed::Quick, ANONYMOUS).len(), 6, "half of all");
        assert_eq!(fill(&mut lanes, Speed::Quick, ANNA).len(), 2, "the quick lane is free");
    }

    #[test]
    fn quick_deliveries_of_a_feed_keep_no_new_or_slow_subscriber_of_it_waiting() {
        let mut lanes = Lanes::default();
        fill(&mut lanes, Speed::Quick, ANNA);
        for speed in [Speed::Unknown, Speed::Slow] {
            lanes.end(Speed::Quick, shares(ANNA));
            assert!(lanes.admit(&SIZES, speed, shares(ANNA)), "{speed:?}");
            lanes.begin(&SIZES, Speed::Quick, shares(ANNA));
        }
    }

    #[test]
    fn quick_callbacks_that_begin_to_hang_leave_half_of_the_quick_lane() {
        let mut lanes = Lanes::default();
        let mut begun = 0;
        loop {
            let more = fill(&mut lanes, Speed::Quick, ANNA).len();
            (0..more).for_each(|_| lanes.turn_slow(Speed::Quick, shares(ANNA)));
            begun += more;
            if more == 0 {
                break;
            }
        }
        assert_eq!(begun, 12);
        assert_eq!(fill(&mut lanes, Speed::Quick, Owner(2)).len(), 4);
    }

    #[test]
    fn subscribers_without_an_account_have_half_while_accounts_want_it() {
        let mut lanes = Lanes::default();
        let alone = LaneSizes { do_accounts_want: false, ..SIZES };
        for sizes in [SIZES, alone] {
            let mut begun = 0;
            while lanes.admit(&sizes, Speed::Quick, shares(ANONYMOUS)) {
                lanes.begin(&sizes, Speed::Quick, shares(ANONYMOUS));
                lanes.turn_slow(Speed::Quick, shares(ANONYMOUS));
                begun += 1;
            }
            assert_eq!(begun, if sizes.do_accounts_want { 8 } else { 4 }, "and then four more");
        }
    }

    #[test]
    fn a_host_that_takes_one_at_a_time_gets_one_at_a_time() {
        let (mut lanes, limit) = (Lanes::default(), ConcurrencyLimit::new(1));
        let sizes = LaneSizes::of_host(&limit, true);
        for speed in [Speed::Slow, Speed::Unknown, Speed::Quick] {
            assert!(lanes.admit(&sizes, speed, shares(ANONYMOUS)));
            let place = lanes.begin(&sizes, speed, shares(ANONYMOUS));
            assert!(!lanes.admit(&sizes, Speed::Quick, shares(ANNA)));
            lanes.turn_slow(place, shares(ANONYMOUS));
            assert!(!lanes.admit(&sizes, Speed::Quick, shares(ANNA)));
            lanes.end(Speed::Slow, shares(ANONYMOUS));
        }
    }
}
