//! The deliveries that wait for one host, and those in progress.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::super::concurrency_limit::ConcurrencyLimit;
use super::endpoint_speeds::Speed;
use super::lanes::{LaneShare, LaneSizes, Lanes, Owner};
use super::turns::{ByKind, Kind};
use feedgate_core::claim::ClaimToken;
use feedgate_core::resource::ResourceId;
use feedgate_core::store::ClaimLimits;
use feedgate_core::subscription::{DueSubscription, SubscriptionId};

/// The time in which a host accepts about one portion.
const PORTION_LASTS: Duration = Duration::from_millis(250);

/// A host to claim for, and the number of deliveries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) struct Refill {
    pub(in super::super) host: String,
    pub(in super::super) portion: usize,
}

#[derive(Debug)]
pub(super) struct HostQueue {
    waiting: ByKind<KindQueue>,
    pub(super) lanes: Lanes,
    /// How many deliveries of accounts wait or are in progress.
    pub(super) of_accounts: usize,
    pub(super) limit: ConcurrencyLimit,
    /// Whether the last claim left deliveries of this host in the store.
    pub(super) has_more: bool,
    /// Whether a claim for this host is requested or in progress.
    pub(super) awaits_refill: bool,
    /// Whether the host has a turn to start a delivery of each kind.
    pub(super) has_turn: ByKind<bool>,
}

/// The waiting deliveries of one kind.
#[derive(Debug, Default)]
struct KindQueue {
    /// Those of each owner, in the order of their turns.
    owners: VecDeque<(Owner, OwnerQueue)>,
    count: usize,
}

/// The waiting deliveries of an owner, a queue for each resource, in the order of their turns.
type OwnerQueue = VecDeque<(ResourceId, VecDeque<WaitingDelivery>)>;

#[derive(Debug)]
pub(super) struct WaitingDelivery {
    pub(super) due: DueSubscription,
    pub(super) claimed_until: Instant,
}

impl WaitingDelivery {
    pub(super) fn claim(&self) -> (SubscriptionId, ClaimToken) {
        (self.due.subscription.id, self.due.claim)
    }
}

impl HostQueue {
    pub(super) fn new(ceiling: usize) -> HostQueue {
        HostQueue {
            waiting: ByKind::default(),
            lanes: Lanes::default(),
            of_accounts: 0,
            limit: ConcurrencyLimit::new(ceiling),
            has_more: false,
            awaits_refill: false,
            has_turn: ByKind::default(),
        }
    }

    pub(super) fn is_idle(&self) -> bool {
        self.lanes.running() == 0 && self.waiting.values().all(|queue| queue.count == 0)
    }

    /// Returns the sizes of the lanes now.
    pub(super) fn sizes(&self) -> LaneSizes {
        LaneSizes::of_host(&self.limit, self.of_accounts > 0)
    }

    /// Returns how many deliveries of a kind wait.
    pub(super) fn count(&self, kind: Kind) -> usize {
        self.waiting.get(kind).count
    }

    /// Returns how many deliveries wait for quick ones. Those that wait for slow ones may wait for long,
    /// and do not keep others from being claimed.
    pub(super) fn ready_count(&self) -> usize {
        let ready = Kind::all().filter(|kind| self.count(*kind) > 0 && !self.is_held_up(*kind));
        ready.map(|kind| self.count(kind)).sum()
    }

    /// Returns whether deliveries of a kind cannot begin until slow ones have ended.
    pub(super) fn is_held_up(&self, kind: Kind) -> bool {
        if !self.lanes.has_slow() {
            return false;
        }
        let sizes = self.sizes();
        let is_in_slow_lane = kind.speed == Speed::Slow;
        let awaits_quick = !is_in_slow_lane && self.lanes.is_full(&sizes);
        !awaits_quick && self.next_owner(kind, |_| true).is_none()
    }

    /// Returns whether the latency is unknown and a delivery in progress may reveal it while others wait.
    fn awaits_latency(&self, ready: usize) -> bool {
        self.limit.latency().is_none() && self.lanes.has_quick() && ready > 0
    }

    /// Returns whether so few deliveries are ready that more should be claimed. While the latency is
    /// unknown, so is a good portion: a response is awaited as long as deliveries wait here.
    pub(super) fn is_low(&self) -> bool {
        let ready = self.ready_count();
        ready <= self.portion() / 2 && !self.awaits_latency(ready)
    }

    /// Returns how many deliveries are worth claiming together: as many as the host accepts in a
    /// short time, so that a slow host keeps few from being sent by another node.
    pub(super) fn portion(&self) -> usize {
        let limit = self.limit.current();
        let Some(latency) = self.limit.latency() else {
            return if self.limit.is_reduced() {
                limit
            } else {
                ClaimLimits::FIRST_PORTION.max(limit)
            };
        };
        let rounds = PORTION_LASTS.as_secs_f64() / latency.as_secs_f64().max(0.001);
        ((limit as f64 * rounds) as usize).clamp(limit, ClaimLimits::LARGEST_PORTION.max(limit))
    }

    /// Adds a delivery behind those of its owner and resource.
    pub(super) fn add_waiting(&mut self, kind: Kind, owner: Owner, delivery: WaitingDelivery) {
        let resource = delivery.due.subscription.id.resource;
        self.of_accounts += usize::from(owner.has_account());
        let KindQueue { owners, count } = self.waiting.get_mut(kind);
        *count += 1;
        let resources = match owners.iter().position(|(held, _)| *held == owner) {
            Some(place) => &mut owners[place].1,
            None => {
                owners.push_back((owner, OwnerQueue::new()));
                let last = owners.len() - 1;
                &mut owners[last].1
            }
        };
        match resources.iter_mut().find(|(held, _)| *held == resource) {
            Some((_, waiting)) => waiting.push_back(delivery),
            None => resources.push_back((resource, VecDeque::from([delivery]))),
        }
    }

    /// Returns the owner whose turn it is among those whose deliveries the lanes of the host admit: the
    /// first that `may_begin`, or the first of all.
    pub(super) fn next_owner(
        &self,
        kind: Kind,
        may_begin: impl Fn(Owner) -> bool,
    ) -> Option<Owner> {
        let (sizes, queue) = (self.sizes(), self.waiting.get(kind));
        let class = LaneShare::of_class(kind.has_account);
        if queue.count == 0 || !self.lanes.admit(&sizes, kind.speed, class) {
            return None;
        }
        let mut able = queue.owners.iter().filter(|(owner, resources)| {
            resources.iter().any(|(resource, _)| self.admit(&sizes, kind, *owner, *resource))
        });
        let (first, _) = able.next()?;
        if may_begin(*first) {
            return Some(*first);
        }
        let other = able.find(|(owner, _)| may_begin(*owner));
        Some(other.map_or(*first, |(owner, _)| *owner))
    }

    /// Takes the next delivery of an owner, of the resource whose turn it is among those that the lanes admit.
    pub(super) fn take_waiting(&mut self, kind: Kind, owner: Owner) -> Option<WaitingDelivery> {
        let (sizes, queue) = (self.sizes(), self.waiting.get(kind));
        let place = queue.owners.iter().position(|(held, _)| *held == owner)?;
        let resources = &queue.owners[place].1;
        let admitted =
            resources.iter().position(|(held, _)| self.admit(&sizes, kind, owner, *held))?;

        let KindQueue { owners, count } = self.waiting.get_mut(kind);
        let (_, mut resources) = owners.remove(place)?;
        let (resource, mut waiting) = resources.remove(admitted)?;
        let delivery = waiting.pop_front();
        if !waiting.is_empty() {
            resources.push_back((resource, waiting));
        }
        if !resources.is_empty() {
            owners.push_back((owner, resources));
        }
        *count -= usize::from(delivery.is_some());
        self.of_accounts -= usize::from(delivery.is_some() && owner.has_account());
        delivery
    }

    fn admit(&self, sizes: &LaneSizes, kind: Kind, owner: Owner, resource: ResourceId) -> bool {
        self.lanes.admit(sizes, kind.speed, LaneShare::all(owner, Some(resource)))
    }

    /// Takes out up to `most` waiting deliveries of the owners that `is_held_up`, the last of each resource
    /// first, and returns their claims.
    pub(super) fn give_back(
        &mut self,
        kind: Kind,
        most: usize,
        is_held_up: impl Fn(Owner) -> bool,
    ) -> Vec<(SubscriptionId, ClaimToken)> {
        let mut claims = Vec::new();
        let KindQueue { owners, count } = self.waiting.get_mut(kind);
        for (_, resources) in owners.iter_mut().filter(|(owner, _)| is_held_up(*owner)) {
            for (_, waiting) in &mut *resources {
                let left = waiting.len() - waiting.len().min(most - claims.len());
                claims.extend(waiting.drain(left..).map(|delivery| delivery.claim()));
            }
            resources.retain(|(_, waiting)| !waiting.is_empty());
        }
        owners.retain(|(_, resources)| !resources.is_empty());
        *count -= claims.len();
        self.of_accounts -= if kind.has_account { claims.len() } else { 0 };
        claims
    }

    /// Returns the claims of the waiting deliveries.
    pub(super) fn into_claims(self) -> Vec<(SubscriptionId, ClaimToken)> {
        let owners = self.waiting.into_values().flat_map(|queue| queue.owners);
        let resources = owners.flat_map(|(_, resources)| resources);
        let waiting = resources.flat_map(|(_, waiting)| waiting);
        waiting.map(|delivery| delivery.claim()).collect()
    }

    /// Keeps the waiting deliveries for which `keep` returns true. Returns how many of each kind were dropped.
    pub(super) fn retain_waiting(
        &mut self,
        mut keep: impl FnMut(&mut WaitingDelivery) -> bool,
    ) -> ByKind<usize> {
        let mut dropped = ByKind::default();
        for kind in Kind::all() {
            let KindQueue { owners, count } = self.waiting.get_mut(kind);
            let before = *count;
            for (_, resources) in &mut *owners {
                for (_, waiting) in &mut *resources {
                    waiting.retain_mut(&mut keep);
                }
                resources.retain(|(_, waiting)| !waiting.is_empty());
            }
            owners.retain(|(_, resources)| !resources.is_empty());
            let left = owners.iter().flat_map(|(_, resources)| resources);
            *count = left.map(|(_, waiting)| waiting.len()).sum();
            *dropped.get_mut(kind) = before - *count;
            self.of_accounts -= if kind.has_account { before - *count } else { 0 };
        }
        dropped
    }
}
