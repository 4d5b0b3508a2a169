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
mod queues;

use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use foldhash::{HashMap, HashMapExt as _};
use tokio::sync::Notify;

use super::concurrency_limit::Attempt;
use feedgate_core::claim::ClaimToken;
use feedgate_core::ports::ClaimLimits;
use feedgate_core::subscription::{DueSubscription, SubscriptionId};
pub(super) use host_queue::Refill;
use host_queue::WaitingDelivery;
use queues::Queues;

/// The deliveries that this node has claimed. Clones share them.
#[derive(Clone, Debug)]
pub(super) struct HostQueues {
    queues: Arc<Mutex<Queues>>,
    /// Notified when a delivery can start, or a host should be claimed for again.
    ready: Arc<Notify>,
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
            let is_refilled_separately =
                host.has_more || host.awaits_refill || host.waiting_count > host.portion() / 2;
            if is_refilled_separately && !host.is_idle() {
                host.has_more = true; // what the claim skips is looked for later
                busy.push(name.clone());
            }
        }
        Some(ClaimLimits { limit, per_host: ClaimLimits::FIRST_PORTION, busy })
    }

    /// Returns whether deliveries are claimed and not finished.
    pub(super) fn has_deliveries(&self) -> bool {
        !self.queues().in_hand.is_empty()
    }

    /// Returns up to `limit` hosts to claim for next. If others are left, the worker is woken again.
    pub(super) fn take_refills(&self, limit: usize) -> Vec<Refill> {
        let mut queues = self.queues();
        let count = limit.min(queues.refills.len());
        let taken = queues.refills.drain(..count).collect();
        if !queues.refills.is_empty() {
            self.ready.notify_one();
        }
        taken
    }

    /// Queues the deliveries that a claim for all hosts returned.
    pub(super) fn add(&self, claimed: Vec<DueSubscription>, claimed_until: Instant) {
        let mut counts: HashMap<String, usize> = HashMap::new();
        let mut queues = self.queues();
        for due in claimed {
            let host = due.subscription.callback.host();
            queues.add(&host, WaitingDelivery { due, claimed_until });
            *counts.entry(host).or_default() += 1;
        }
        for (host, claimed) in counts {
            queues.note_claimed(&host, claimed >= ClaimLimits::FIRST_PORTION);
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
        queues.in_hand.reserve(claimed.len());
        for due in claimed {
            queues.add(&refill.host, WaitingDelivery { due, claimed_until });
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
        let mut shortened = Vec::new();
        for (name, host) in &mut queues.hosts {
            let waiting_count = host.waiting_count;
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
            if host.waiting_count < waiting_count {
                shortened.push(name.clone());
            }
        }
        queues.in_hand.retain(|id, token| !lost.contains(&(*id, *token)));
        for name in shortened {
            queues.refill_if_low(&name);
        }
        if !queues.refills.is_empty() {
            self.ready.notify_one();
        }
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

impl DeliveryPermit {
    /// Ends the delivery and learns from its attempt. Returns the next one for the same host,
    /// unless another host waits for its turn.
    pub(super) fn finish(mut self, attempt: &Attempt) -> Option<(DueSubscription, DeliveryPermit)> {
        self.has_ended = true;
        let mut queues = self.queues.queues();
        queues.end(&self.host, (self.id, self.claim), Some(attempt));
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
            queues.end(&self.host, (self.id, self.claim), None);
            self.queues.after_end(queues, &self.host);
        }
    }
}

#[cfg(test)]
mod tests;
