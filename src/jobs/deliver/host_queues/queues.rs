//! The queues of all hosts: what starts, what moves to the slow lane, and which hosts are claimed for again.

use std::time::Instant;

use foldhash::HashMap;

use super::endpoint_speeds::{EndpointSpeeds, Speed};
use super::host_queue::{HostQueue, Refill, WaitingDelivery};
use super::lanes::{LaneShare, LaneShares, LaneSizes, Lanes, Owner};
use super::turns::{ByKind, Kind, Turn, Turns};
use crate::jobs::deliver::concurrency_limit::{Attempt, AttemptContext};
use feedgate_core::claim::ClaimToken;
use feedgate_core::resource::ResourceId;
use feedgate_core::subscription::{DueSubscription, SubscriptionId};

/// The most hosts without work that are remembered, because their limit is low or a claim for them is
/// in progress.
const REMEMBERED: usize = 10_000;
/// The most deliveries of one kind that wait here for slow ones of one host.
const MOST_HELD_UP: usize = 64;
/// The part of the capacity in which deliveries of one kind wait for slow ones, of whichever hosts.
const HELD_UP_SHARE: usize = 8;

/// The queues of all hosts, under one lock.
#[derive(Debug)]
pub(super) struct Queues {
    pub(super) hosts: HashMap<String, HostQueue>,
    turns: Turns,
    /// The deliveries in progress, of all hosts.
    lanes: Lanes,
    speeds: EndpointSpeeds,
    /// How many deliveries of each kind wait.
    waiting: ByKind<usize>,
    /// Hosts that have few waiting deliveries here and more in the store.
    pub(super) refills: Vec<Refill>,
    /// All deliveries that are claimed and not finished.
    pub(super) in_hand: HashMap<SubscriptionId, ClaimToken>,
    /// Claims to be given back until slow deliveries have ended.
    pub(super) held_up: Vec<(SubscriptionId, ClaimToken)>,
    pub(super) capacity: usize,
    concurrency: usize,
    per_host_ceiling: usize,
    /// How many deliveries of accounts are in progress.
    running_of_accounts: usize,
    pub(super) is_closed: bool,
}

/// A delivery in progress.
#[derive(Debug)]
pub(super) struct Started {
    pub(super) host: String,
    pub(super) claim: (SubscriptionId, ClaimToken),
    callback: String,
    owner: Owner,
    /// What was known of the callback.
    speed: Speed,
    /// Its place in the lanes of the host and in those of the node.
    places: (Speed, Speed),
}

impl Started {
    fn resource(&self) -> ResourceId {
        self.claim.0.resource
    }

    /// Returns the shares in the lanes of the host and in those of the node.
    fn shares(&self) -> (LaneShares, LaneShares) {
        (LaneShare::all(self.owner, Some(self.resource())), LaneShare::all(self.owner, None))
    }
}

impl Queues {
    pub(super) fn new(concurrency: usize, per_host_ceiling: usize) -> Queues {
        Queues {
            hosts: HashMap::default(),
            turns: Turns::default(),
            lanes: Lanes::default(),
            speeds: EndpointSpeeds::new(),
            waiting: ByKind::default(),
            refills: Vec::new(),
            in_hand: HashMap::default(),
            held_up: Vec::new(),
            capacity: concurrency * 4,
            concurrency,
            per_host_ceiling,
            running_of_accounts: 0,
            is_closed: false,
        }
    }

    fn sizes(&self) -> LaneSizes {
        let waiting = Kind::all().filter(|kind| kind.has_account);
        let waiting: usize = waiting.map(|kind| *self.waiting.get(kind)).sum();
        LaneSizes::of_node(self.concurrency, waiting + self.running_of_accounts > 0)
    }

    /// Adds a claimed delivery. One that would wait for slow ones behind many others is given back.
    pub(super) fn add(&mut self, name: &str, delivery: WaitingDelivery) {
        let (subscription, claim) = (&delivery.due.subscription, delivery.claim());
        let owner = Owner::from_subscription(subscription);
        let speed = self.speeds.get(subscription.callback.as_str());
        let kind = Kind { has_account: owner.has_account(), speed };
        if self.is_crowded(name, kind, owner) {
            self.held_up.push(claim);
            return;
        }
        self.in_hand.insert(claim.0, claim.1);
        *self.waiting.get_mut(kind) += 1;
        let ceiling = self.per_host_ceiling;
        let host = match self.hosts.get_mut(name) {
            Some(host) => host,
            None => self.hosts.entry(name.to_owned()).or_insert_with(|| HostQueue::new(ceiling)),
        };
        host.add_waiting(kind, owner, delivery);
        self.give_turn(name, kind);
    }

    /// Returns whether many deliveries of a kind wait for slow ones, of the host or of all hosts.
    fn is_crowded(&self, name: &str, kind: Kind, owner: Owner) -> bool {
        let is_host_crowded = || {
            let host = self.hosts.get(name);
            host.is_some_and(|host| host.count(kind) >= MOST_HELD_UP && host.is_held_up(kind))
        };
        let is_node_crowded = *self.waiting.get(kind) >= self.capacity / HELD_UP_SHARE
            && self.may_await_slow(kind)
            && !self.may_begin(kind, owner);
        kind.speed != Speed::Quick && (is_node_crowded || is_host_crowded())
    }

    /// Returns whether deliveries of a kind that cannot begin wait for slow ones, and not for quick ones.
    fn may_await_slow(&self, kind: Kind) -> bool {
        let awaits_quick = kind.speed != Speed::Slow && self.lanes.is_full(&self.sizes());
        self.lanes.has_slow() && !awaits_quick
    }

    /// Gives back the deliveries that wait for slow ones, of whichever hosts, but for a part of the
    /// capacity: the others would keep everything else from being claimed.
    pub(super) fn give_back_held_up(&mut self) {
        let (sizes, most) = (self.sizes(), self.capacity / HELD_UP_SHARE);
        for kind in Kind::all().filter(|kind| kind.speed != Speed::Quick) {
            let mut excess = self.waiting.get(kind).saturating_sub(most);
            if excess == 0 || !self.may_await_slow(kind) {
                continue;
            }
            let lanes = &self.lanes;
            let is_held_up = |owner| !lanes.admit(&sizes, kind.speed, LaneShare::all(owner, None));
            let (mut given_back, mut idle) = (Vec::new(), Vec::new());
            for (name, host) in &mut self.hosts {
                let claims = host.give_back(kind, excess, is_held_up);
                excess -= claims.len();
                idle.extend((!claims.is_empty()).then(|| name.clone()));
                given_back.extend(claims);
            }
            *self.waiting.get_mut(kind) -= given_back.len();
            for (id, _) in &given_back {
                self.in_hand.remove(id);
            }
            self.held_up.extend(given_back);
            idle.iter().for_each(|name| self.forget_if_idle(name));
        }
    }

    /// Returns whether the lanes of the node admit a delivery.
    fn may_begin(&self, kind: Kind, owner: Owner) -> bool {
        self.lanes.admit(&self.sizes(), kind.speed, LaneShare::all(owner, None))
    }

    pub(super) fn note_claimed(&mut self, name: &str, has_more: bool) {
        if let Some(host) = self.hosts.get_mut(name) {
            host.has_more = has_more;
        }
        self.refill_if_low(name);
        self.forget_if_idle(name);
    }

    /// Returns the host that can start a delivery now and is next.
    pub(super) fn next_host(&self) -> Option<&str> {
        self.turns.next_host(|kind, owner| self.may_begin(kind, owner))
    }

    /// Adds a host that can start deliveries to the turns.
    pub(super) fn give_turns(&mut self, name: &str) {
        for kind in Kind::all() {
            self.give_turn(name, kind);
        }
    }

    fn give_turn(&mut self, name: &str, kind: Kind) {
        let Some(host) = self.hosts.get(name).filter(|host| !host.has_turn.get(kind)) else {
            return;
        };
        let Some(owner) = host.next_owner(kind, |owner| self.may_begin(kind, owner)) else {
            return;
        };
        self.turns.add(Turn { kind, owner, host: name.to_owned() });
        if let Some(host) = self.hosts.get_mut(name) {
            *host.has_turn.get_mut(kind) = true;
        }
    }

    /// Starts a delivery of the host whose turn it is.
    pub(super) fn start_next(&mut self, now: Instant) -> Option<(DueSubscription, Started)> {
        loop {
            let (lanes, sizes) = (&self.lanes, self.sizes());
            let may_begin =
                |kind: Kind, owner| lanes.admit(&sizes, kind.speed, LaneShare::all(owner, None));
            let turn = self.turns.take_next_turn(may_begin)?;
            if let Some(host) = self.hosts.get_mut(&turn.host) {
                *host.has_turn.get_mut(turn.kind) = false;
            }
            let started = self.start_one(&turn, now);
            self.give_turn(&turn.host, turn.kind);
            self.refill_if_low(&turn.host);
            if started.is_some() {
                return started;
            }
        }
    }

    /// Starts a delivery of this turn, unless its host has none that it can take any more.
    fn start_one(&mut self, turn: &Turn, now: Instant) -> Option<(DueSubscription, Started)> {
        let Turn { kind, owner, host: name } = turn;
        let node_sizes = self.sizes();
        let host = self.hosts.get_mut(name)?;
        loop {
            let delivery = host.take_waiting(*kind, *owner)?;
            *self.waiting.get_mut(*kind) -= 1;
            let WaitingDelivery { due, claimed_until } = delivery;
            let claim = (due.subscription.id, due.claim);
            if claimed_until <= now {
                self.in_hand.remove(&claim.0);
                continue;
            }
            let callback = due.subscription.callback.as_str().to_owned();
            let (owner, speed, host_name) = (*owner, kind.speed, name.clone());
            let mut started =
                Started { host: host_name, claim, callback, owner, speed, places: (speed, speed) };
            let (of_host, of_node) = started.shares();
            let places = (
                host.lanes.begin(&host.sizes(), speed, of_host),
                self.lanes.begin(&node_sizes, speed, of_node),
            );
            host.of_accounts += usize::from(owner.has_account());
            self.running_of_accounts += usize::from(owner.has_account());
            started.places = places;
            return Some((due, started));
        }
    }

    /// Moves a delivery to the slow lane, and lets others start in its place.
    pub(super) fn turn_slow(&mut self, started: &mut Started) {
        let (of_host, of_node) = started.shares();
        let (in_host, in_node) = started.places;
        if let Some(host) = self.hosts.get_mut(&started.host)
            && in_host != Speed::Slow
        {
            host.lanes.turn_slow(in_host, of_host);
        }
        if in_node != Speed::Slow {
            self.lanes.turn_slow(in_node, of_node);
        }
        started.places = (Speed::Slow, Speed::Slow);
        self.give_turns(&started.host);
        self.refill_if_low(&started.host);
    }

    /// Requests a claim for a host that has few waiting deliveries and more in the store.
    pub(super) fn refill_if_low(&mut self, name: &str) {
        let Some(host) = self.hosts.get_mut(name) else { return };
        if host.has_more && !host.awaits_refill && host.is_low() {
            host.has_more = false;
            host.awaits_refill = true;
            self.refills.push(Refill { host: name.to_owned(), portion: host.portion() });
        }
    }

    /// Ends a delivery, and learns from its attempt if there was one.
    pub(super) fn end(&mut self, started: &Started, attempt: Option<&Attempt>) {
        let (id, claim) = started.claim;
        // The same node may have claimed the subscription anew after it lost this claim.
        if self.in_hand.get(&id) == Some(&claim) {
            self.in_hand.remove(&id);
        }
        self.running_of_accounts -= usize::from(started.owner.has_account());
        if let Some(attempt) = attempt {
            self.speeds.note(&started.callback, attempt.took);
        }
        let (of_host, of_node) = started.shares();
        self.lanes.end(started.places.1, of_node);
        let Some(host) = self.hosts.get_mut(&started.host) else { return };
        if let Some(attempt) = attempt {
            let was_full = host.lanes.is_full(&host.sizes());
            let is_known_slow = started.speed == Speed::Slow;
            host.limit.observe(attempt, AttemptContext { was_full, is_known_slow });
        }
        host.lanes.end(started.places.0, of_host);
        host.of_accounts -= usize::from(started.owner.has_account());
    }

    /// Notes that deliveries of a host that waited were dropped.
    pub(super) fn note_dropped(&mut self, dropped: &ByKind<usize>) {
        for kind in Kind::all() {
            *self.waiting.get_mut(kind) -= dropped.get(kind);
        }
    }

    /// Forgets an idle host, unless its limit is reduced or a claim for it is in progress: the size of
    /// its next portion follows from its latency.
    pub(super) fn forget_if_idle(&mut self, name: &str) {
        let is_crowded = self.hosts.len() > REMEMBERED;
        let Some(host) = self.hosts.get(name) else { return };
        let is_remembered = host.limit.is_reduced() || host.awaits_refill;
        if host.is_idle() && (is_crowded || !is_remembered) {
            self.hosts.remove(name);
        }
    }
}
