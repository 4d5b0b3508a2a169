//! Claimed deliveries that wait for a permit of their callback's host.
//!
//! A claim costs the same for one delivery as for a hundred, so deliveries are claimed in portions
//! and wait here until their host may receive more.
//!
//! Invariants:
//!
//! * A host never has more deliveries in progress than its ceiling, nor more quick ones than its
//!   `ConcurrencyLimit`.
//! * A delivery that waits occupies no slot of the worker.
//! * Slow deliveries have a lane of their own, so that those to quick callbacks wait for at most as long
//!   as a delivery takes to turn slow (`lanes`). Deliveries that wait for slow ones keep no others from being
//!   claimed: if there are many, they are given back for a while.
//! * The owners of subscriptions take turns, among all hosts and at each host, and so do the resources of
//!   each owner there: nobody delays another by having thousands of subscriptions, or hosts (rule D16).
//! * A delivery whose claim has expired is dropped without being sent: another node may send it.

mod endpoint_speeds;
mod host_queue;
mod lanes;
mod queues;
mod turns;

use std::collections::HashSet;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use foldhash::{HashMap, HashMapExt as _};
use tokio::sync::Notify;
use tokio::time::timeout;

use super::concurrency_limit::{Attempt, SLOW_AFTER};
use feedgate_core::claim::ClaimToken;
use feedgate_core::store::ClaimLimits;
use feedgate_core::subscription::{DueSubscription, SubscriptionId};
pub(super) use host_queue::Refill;
use host_queue::WaitingDelivery;
use queues::{Queues, Started};

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
    started: Started,
    queues: HostQueues,
    has_ended: bool,
}

impl HostQueues {
    /// Creates queues for a node with at most `concurrency` quick deliveries in progress, of one host at
    /// most `per_host_ceiling` in all. `ready` wakes the worker.
    pub(super) fn new(
        concurrency: usize,
        per_host_ceiling: usize,
        ready: Arc<Notify>,
    ) -> HostQueues {
        let queues = Queues::new(concurrency, per_host_ceiling);
        HostQueues { queues: Arc::new(Mutex::new(queues)), ready }
    }

    /// Returns the limits of a claim for all hosts, or `None` while enough deliveries wait already.
    /// Hosts that are excluded as busy are claimed for by a [`Refill`] once they run low.
    pub(super) fn claim_limits(&self) -> Option<ClaimLimits> {
        let mut queues = self.queues();
        queues.give_back_held_up();
        let limit = queues.capacity.saturating_sub(queues.in_hand.len());
        let is_worth_it = limit * 4 >= queues.capacity || queues.next_host().is_none();
        if limit == 0 || !is_worth_it || queues.is_closed {
            return None;
        }
        let mut busy = Vec::new();
        for (name, host) in &mut queues.hosts {
            // An idle host has no delivery whose end would call for a refill.
            let is_refilled_separately =
                host.has_more || host.awaits_refill || host.ready_count() > host.portion() / 2;
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

    /// Takes the claims of deliveries that would wait for slow ones, to be given back for a while.
    pub(super) fn take_held_up(&self) -> Vec<(SubscriptionId, ClaimToken)> {
        std::mem::take(&mut self.queues().held_up)
    }

    /// Takes the claims of deliveries that wait for hosts of other nodes, for which `is_held` returns false, to
    /// be given back.
    pub(super) fn take_for_others(
        &self,
        is_held: impl Fn(&str) -> bool,
    ) -> Vec<(SubscriptionId, ClaimToken)> {
        let mut queues = self.queues();
        let others = queues.hosts.keys().filter(|name| !is_held(name)).cloned();
        let (others, mut taken): (Vec<_>, Vec<_>) = (others.collect(), Vec::new());
        for name in others {
            let Some(host) = queues.hosts.get_mut(&name) else { continue };
            let dropped = host.retain_waiting(|delivery| {
                taken.push(delivery.claim());
                false
            });
            (host.has_more, host.awaits_refill) = (false, false);
            queues.refills.retain(|refill| refill.host != name);
            queues.note_dropped(&dropped);
            queues.forget_if_idle(&name);
        }
        for (id, _) in &taken {
            queues.in_hand.remove(id);
        }
        taken
    }

    /// Takes up to `limit` deliveries that can start now.
    pub(super) fn start(&self, limit: usize) -> Vec<(DueSubscription, DeliveryPermit)> {
        let mut queues = self.queues();
        let mut started = Vec::new();
        while started.len() < limit && !queues.is_closed {
            let Some(next) = queues.start_next(Instant::now()) else { break };
            started.push(next);
        }
        drop(queues);
        started.into_iter().map(|next| self.with_permit(next)).collect()
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
            let dropped = host.retain_waiting(|delivery| {
                let claim = delivery.claim();
                if held.contains(&claim) {
                    delivery.claimed_until = claimed_until;
                }
                !lost.contains(&claim)
            });
            if dropped.values().any(|count| *count > 0) {
                shortened.push((name.clone(), dropped));
            }
        }
        queues.in_hand.retain(|id, token| !lost.contains(&(*id, *token)));
        for (name, dropped) in shortened {
            queues.note_dropped(&dropped);
            queues.give_turns(&name);
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
        hosts.into_values().flat_map(|host| host.into_claims()).collect()
    }

    fn with_permit(&self, next: (DueSubscription, Started)) -> (DueSubscription, DeliveryPermit) {
        let (due, started) = next;
        (due, DeliveryPermit { started, queues: self.clone(), has_ended: false })
    }

    fn queues(&self) -> MutexGuard<'_, Queues> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl DeliveryPermit {
    /// Awaits the delivery, which moves to the slow lane if it takes long.
    pub(super) async fn watch<T>(&mut self, delivery: impl Future<Output = T>) -> T {
        let mut delivery = pin!(delivery);
        if let Ok(result) = timeout(SLOW_AFTER, &mut delivery).await {
            return result;
        }
        self.turn_slow();
        delivery.await
    }

    fn turn_slow(&mut self) {
        let mut queues = self.queues.queues();
        queues.turn_slow(&mut self.started);
        drop(queues);
        // Others may start, or be claimed in the place of those that wait for slow ones now.
        self.queues.ready.notify_one();
    }

    /// Ends the delivery and learns from its attempt. Returns the next one for the same host,
    /// unless another host waits for its turn.
    pub(super) fn finish(mut self, attempt: &Attempt) -> Option<(DueSubscription, DeliveryPermit)> {
        self.has_ended = true;
        let mut queues = self.queues.queues();
        queues.end(&self.started, Some(attempt));
        queues.give_turns(&self.started.host);
        let is_next = queues.next_host() == Some(self.started.host.as_str());
        let may_continue = is_next && !queues.is_closed;
        let next = if may_continue { queues.start_next(Instant::now()) } else { None };
        self.queues.after_end(queues, &self.started.host);
        next.map(|next| self.queues.with_permit(next))
    }
}

impl HostQueues {
    /// Forgets the host of a delivery that has ended if it is idle, and wakes the worker if needed.
    fn after_end(&self, mut queues: MutexGuard<'_, Queues>, host: &str) {
        queues.refill_if_low(host);
        queues.forget_if_idle(host);
        self.wake_if_needed(queues);
    }

    /// Wakes the worker if a delivery can start, or a claim is required.
    fn wake_if_needed(&self, queues: MutexGuard<'_, Queues>) {
        let is_needed = queues.next_host().is_some() || !queues.refills.is_empty();
        drop(queues);
        if is_needed {
            self.ready.notify_one();
        }
    }
}

impl Drop for DeliveryPermit {
    fn drop(&mut self) {
        if !self.has_ended {
            let mut queues = self.queues.queues();
            queues.end(&self.started, None);
            queues.give_turns(&self.started.host);
            self.queues.after_end(queues, &self.started.host);
        }
    }
}

#[cfg(test)]
mod tests;
