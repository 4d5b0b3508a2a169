//! Claimed deliveries that wait for a permit of their callback's host.
//!
//! A claim costs the same for one delivery as for a hundred, so deliveries are claimed in portions
//! and wait here until their host may receive more.
//!
//! Invariants:
//!
//! * A host never has more deliveries in progress than its `ConcurrencyLimit`.
//! * A delivery that waits occupies no slot of the worker.
//! * The hosts take turns, and so do the accounts whose deliveries wait for one host, and the
//!   resources of each account there: neither an account nor a resource with thousands of
//!   subscriptions on a platform delays another (rule D16).
//! * A delivery whose claim has expired is dropped without being sent: another node may send it.

mod host_queue;

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tokio::sync::Notify;

use super::concurrency_limit::Attempt;
use feedgate_core::claim::ClaimToken;
use feedgate_core::ports::ClaimLimits;
use feedgate_core::subscription::{DueSubscription, SubscriptionId};
pub(super) use host_queue::Refill;
use host_queue::{FIRST_PORTION, HostQueue, WaitingDelivery};

/// The most hosts without work that are remembered, because their limit is low or a claim for them is
/// in progress.
const REMEMBERED: usize = 10_000;

/// The deliveries that this node has claimed. Clones share them.
#[derive(Clone, Debug)]
pub(super) struct HostQueues {
    queues: Arc<Mutex<Queues>>,
    /// Notified when a delivery can start, or a host should be claimed for again.
    ready: Arc<Notify>,
}

#[derive(Debug)]
struct Queues {
    hosts: HashMap<String, HostQueue>,
    /// Hosts with a waiting delivery and a free permit, each once, in the order of their turns.
    turns: VecDeque<String>,
    /// Hosts that have few waiting deliveries here and more in the store.
    refills: Vec<Refill>,
    /// All deliveries that are claimed and not finished.
    in_hand: HashMap<SubscriptionId, ClaimToken>,
    capacity: usize,
    per_host_ceiling: usize,
    is_closed: bool,
}

/// The permit to deliver to one host. Its delivery counts as in progress until it is dropped.
#[derive(Debug)]
pub struct DeliveryPermit {
    host: String,
    id: SubscriptionId,
    claim: ClaimToken,
    queues: HostQueues,
    has_ended: bool,
}

impl HostQueues {
    /// Creates queues for `capacity` claimed deliveries, at most `per_host_ceiling` of one host in
    /// progress. `ready` wakes the worker.
    pub(super) fn new(capacity: usize, per_host_ceiling: usize, ready: Arc<Notify>) -> HostQueues {
        let queues = Queues {
            hosts: HashMap::new(),
            turns: VecDeque::new(),
            refills: Vec::new(),
            in_hand: HashMap::new(),
            capacity,
            per_host_ceiling,
            is_closed: false,
        };
        HostQueues { queues: Arc::new(Mutex::new(queues)), ready }
    }

    /// Returns the limits of a claim for all hosts, or `None` while enough deliveries wait already.
    /// Hosts that are excluded as busy are claimed for by a [`Refill`] once they run low.
    pub(super) fn claim_limits(&self) -> Option<ClaimLimits> {
        let mut queues = self.queues();
        let limit = queues.capacity.saturating_sub(queues.in_hand.len());
        let is_worth_it = limit * 4 >= queues.capacity || queues.turns.is_empty();
        if limit == 0 || !is_worth_it || queues.is_closed {
            return None;
        }
        let mut busy = Vec::new();
        for (name, host) in &mut queues.hosts {
            // An idle host has no delivery whose end would call for a refill.
            let is_stocked = host.has_more || host.waiting_count > host.portion() / 2;
            if is_stocked && !host.is_idle() {
                host.has_more = true; // what the claim skips is looked for later
                busy.push(name.clone());
            }
        }
        Some(ClaimLimits { limit, per_host: FIRST_PORTION, busy })
    }

    /// Returns whether deliveries are claimed and not finished.
    pub(super) fn has_deliveries(&self) -> bool {
        !self.queues().in_hand.is_empty()
    }

    /// Returns the hosts to claim for next.
    pub(super) fn take_refills(&self) -> Vec<Refill> {
        std::mem::take(&mut self.queues().refills)
    }

    /// Queues the deliveries that a claim for all hosts returned.
    pub(super) fn add(&self, claimed: Vec<DueSubscription>, claimed_until: Instant) {
        let mut counts: HashMap<String, usize> = HashMap::new();
        let mut queues = self.queues();
        for due in claimed {
            let host = due.subscription.callback.host();
            *counts.entry(host.clone()).or_default() += 1;
            queues.add(host, WaitingDelivery { due, claimed_until });
        }
        for (host, claimed) in counts {
            queues.note_claimed(&host, claimed >= FIRST_PORTION);
        }
    }

    /// Queues the deliveries that the claim for a [`Refill`] returned.
    pub(super) fn add_refill(
        &self,
        refill: &Refill,
        claimed: Vec<DueSubscription>,
        claimed_until: Instant,
    ) {
        let mut queues = self.queues();
        let is_empty = claimed.is_empty();
        for due in claimed {
            queues.add(refill.host.clone(), WaitingDelivery { due, claimed_until });
        }
        if let Some(host) = queues.hosts.get_mut(&refill.host) {
            host.awaits_refill = false;
        }
        // Another node may have claimed some of a portion, so only an empty one is the last.
        queues.note_claimed(&refill.host, !is_empty);
    }

    /// Takes up to `limit` deliveries that can start now.
    pub(super) fn start(&self, limit: usize) -> Vec<(DueSubscription, DeliveryPermit)> {
        let mut queues = self.queues();
        let mut started = Vec::new();
        while started.len() < limit && !queues.is_closed {
            let Some((host, due)) = queues.start_next(Instant::now()) else { break };
            started.push((host, due));
        }
        drop(queues);
        started.into_iter().map(|(host, due)| self.with_permit(host, due)).collect()
    }

    /// Returns the current claims, to be renewed.
    pub(super) fn claims(&self) -> Vec<(SubscriptionId, ClaimToken)> {
        self.queues().in_hand.iter().map(|(id, token)| (*id, *token)).collect()
    }

    /// Records that the claims among `claims` whose subscriptions are `renewed` last until
    /// `claimed_until`. Deliveries that wait under the others are dropped: another node has claimed
    /// them.
    pub(super) fn renew(
        &self,
        claims: &[(SubscriptionId, ClaimToken)],
        renewed: &HashSet<SubscriptionId>,
        claimed_until: Instant,
    ) {
        let (held, lost): (HashSet<_>, HashSet<_>) =
            claims.iter().copied().partition(|(id, _)| renewed.contains(id));
        let mut queues = self.queues();
        for host in queues.hosts.values_mut() {
            let queues = host.waiting.iter_mut().flat_map(|(_, resources)| resources);
            for (_, waiting) in queues {
                let before = waiting.len();
                waiting.retain(|delivery| !lost.contains(&delivery.claim()));
                host.waiting_count -= before - waiting.len();
                for delivery in waiting.iter_mut().filter(|one| held.contains(&one.claim())) {
                    delivery.claimed_until = claimed_until;
                }
            }
            for (_, resources) in &mut host.waiting {
                resources.retain(|(_, waiting)| !waiting.is_empty());
            }
            host.waiting.retain(|(_, resources)| !resources.is_empty());
        }
        queues.in_hand.retain(|id, token| !lost.contains(&(*id, *token)));
    }

    /// Starts no more deliveries, and returns the claims of all that have not begun.
    pub(super) fn close(&self) -> Vec<(SubscriptionId, ClaimToken)> {
        let mut queues = self.queues();
        queues.is_closed = true;
        let hosts = std::mem::take(&mut queues.hosts);
        let waiting = hosts.into_values().flat_map(|host| host.waiting);
        let waiting = waiting.flat_map(|(_, resources)| resources);
        let waiting = waiting.flat_map(|(_, deliveries)| deliveries);
        waiting.map(|waiting| waiting.claim()).collect()
    }

    fn with_permit(&self, host: String, due: DueSubscription) -> (DueSubscription, DeliveryPermit) {
        let (id, claim) = (due.subscription.id, due.claim);
        (due, DeliveryPermit { host, id, claim, queues: self.clone(), has_ended: false })
    }

    fn queues(&self) -> MutexGuard<'_, Queues> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queues {
    fn add(&mut self, name: String, delivery: WaitingDelivery) {
        let id = delivery.due.subscription.id;
        self.in_hand.insert(id, delivery.due.claim);
        let ceiling = self.per_host_ceiling;
        let host = self.hosts.entry(name.clone()).or_insert_with(|| HostQueue::new(ceiling));
        host.add_waiting(id.resource, delivery);
        self.give_turn(&name);
    }

    fn note_claimed(&mut self, name: &str, has_more: bool) {
        if let Some(host) = self.hosts.get_mut(name) {
            host.has_more = has_more;
        }
        self.refill_if_low(name);
        self.forget_if_idle(name);
    }

    /// Adds a host that can start a delivery to the turns.
    fn give_turn(&mut self, name: &str) -> bool {
        let Some(host) = self.hosts.get_mut(name) else { return false };
        let can_start = host.waiting_count > 0 && host.running < host.limit.current();
        if can_start && !host.has_turn {
            host.has_turn = true;
            self.turns.push_back(name.to_owned());
        }
        can_start
    }

    /// Starts a delivery of the host whose turn it is.
    fn start_next(&mut self, now: Instant) -> Option<(String, DueSubscription)> {
        while let Some(name) = self.turns.pop_front() {
            if let Some(host) = self.hosts.get_mut(&name) {
                host.has_turn = false;
            }
            let started = self.start_one(&name, now);
            self.give_turn(&name);
            if let Some(due) = started {
                return Some((name, due));
            }
        }
        None
    }

    /// Starts a delivery of this host, if it has one and a free permit.
    fn start_one(&mut self, name: &str, now: Instant) -> Option<DueSubscription> {
        let host = self.hosts.get_mut(name)?;
        if host.running >= host.limit.current() {
            return None;
        }
        let mut started = None;
        while started.is_none() {
            let Some(delivery) = host.next_waiting() else { break };
            if delivery.claimed_until > now {
                started = Some(delivery.due);
            } else {
                self.in_hand.remove(&delivery.due.subscription.id);
            }
        }
        host.running += usize::from(started.is_some());
        self.refill_if_low(name);
        started
    }

    /// Requests a claim for a host that has few waiting deliveries and more in the store.
    fn refill_if_low(&mut self, name: &str) {
        let Some(host) = self.hosts.get_mut(name) else { return };
        let portion = host.portion();
        if host.has_more && !host.awaits_refill && host.waiting_count <= portion / 2 {
            host.has_more = false;
            host.awaits_refill = true;
            self.refills.push(Refill { host: name.to_owned(), portion });
        }
    }

    /// Ends a delivery, and learns from its attempt if there was one.
    fn end(&mut self, permit: &DeliveryPermit, attempt: Option<&Attempt>) {
        // The same node may have claimed the subscription anew after it lost this claim.
        if self.in_hand.get(&permit.id) == Some(&permit.claim) {
            self.in_hand.remove(&permit.id);
        }
        let Some(host) = self.hosts.get_mut(&permit.host) else { return };
        if let Some(attempt) = attempt {
            let was_full = host.running >= host.limit.current();
            host.limit.observe(attempt, was_full);
        }
        host.running -= 1;
    }

    /// Forgets an idle host, unless its limit is reduced or a claim for it is in progress: the size of
    /// its next portion follows from its latency.
    fn forget_if_idle(&mut self, name: &str) {
        let is_crowded = self.hosts.len() > REMEMBERED;
        let Some(host) = self.hosts.get(name) else { return };
        let is_remembered = host.limit.is_reduced() || host.awaits_refill;
        if host.is_idle() && (is_crowded || !is_remembered) {
            self.hosts.remove(name);
        }
    }
}

impl DeliveryPermit {
    /// Ends the delivery and learns from its attempt. Returns the next one for the same host,
    /// unless another host waits for its turn.
    pub(super) fn finish(mut self, attempt: &Attempt) -> Option<(DueSubscription, DeliveryPermit)> {
        self.has_ended = true;
        let mut queues = self.queues.queues();
        queues.end(&self, Some(attempt));
        let may_continue = queues.turns.is_empty() && !queues.is_closed;
        let next = if may_continue { queues.start_one(&self.host, Instant::now()) } else { None };
        self.queues.after_end(queues, &self.host);
        next.map(|due| self.queues.with_permit(self.host.clone(), due))
    }
}

impl HostQueues {
    /// Wakes the worker if the end of a delivery lets another start, or requires a claim.
    fn after_end(&self, mut queues: MutexGuard<'_, Queues>, host: &str) {
        let can_start = queues.give_turn(host);
        let needs_claim = !queues.refills.is_empty();
        queues.forget_if_idle(host);
        drop(queues);
        if can_start || needs_claim {
            self.ready.notify_one();
        }
    }
}

impl Drop for DeliveryPermit {
    fn drop(&mut self) {
        if !self.has_ended {
            let mut queues = self.queues.queues();
            queues.end(self, None);
            self.queues.after_end(queues, &self.host);
        }
    }
}

#[cfg(test)]
mod tests;
