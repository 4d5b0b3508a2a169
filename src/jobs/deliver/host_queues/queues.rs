//! The queues of all hosts: whose turn it is, what starts, and which hosts are claimed for again.

use std::collections::VecDeque;
use std::time::Instant;

use foldhash::HashMap;

use super::host_queue::{HostQueue, Refill, WaitingDelivery};
use crate::jobs::deliver::concurrency_limit::Attempt;
use feedgate_core::claim::ClaimToken;
use feedgate_core::subscription::{DueSubscription, SubscriptionId};

/// The most hosts without work that are remembered, because their limit is low or a claim for them is
/// in progress.
const REMEMBERED: usize = 10_000;

/// The queues of all hosts, under one lock.
#[derive(Debug)]
pub(super) struct Queues {
    pub(super) hosts: HashMap<String, HostQueue>,
    /// Hosts with a waiting delivery and a free permit, each once, in the order of their turns.
    pub(super) turns: VecDeque<String>,
    /// Hosts that have few waiting deliveries here and more in the store.
    pub(super) refills: Vec<Refill>,
    /// All deliveries that are claimed and not finished.
    pub(super) in_hand: HashMap<SubscriptionId, ClaimToken>,
    pub(super) capacity: usize,
    pub(super) per_host_ceiling: usize,
    pub(super) is_closed: bool,
}

impl Queues {
    pub(super) fn add(&mut self, name: &str, delivery: WaitingDelivery) {
        let id = delivery.due.subscription.id;
        self.in_hand.insert(id, delivery.due.claim);
        let ceiling = self.per_host_ceiling;
        let host = match self.hosts.get_mut(name) {
            Some(host) => host,
            None => self.hosts.entry(name.to_owned()).or_insert_with(|| HostQueue::new(ceiling)),
        };
        host.add_waiting(id.resource, delivery);
        self.give_turn(name);
    }

    pub(super) fn note_claimed(&mut self, name: &str, has_more: bool) {
        if let Some(host) = self.hosts.get_mut(name) {
            host.has_more = has_more;
        }
        self.refill_if_low(name);
        self.forget_if_idle(name);
    }

    /// Adds a host that can start a delivery to the turns.
    pub(super) fn give_turn(&mut self, name: &str) -> bool {
        let Some(host) = self.hosts.get_mut(name) else { return false };
        let can_start = host.waiting_count > 0 && host.running < host.limit.current();
        if can_start && !host.has_turn {
            host.has_turn = true;
            self.turns.push_back(name.to_owned());
        }
        can_start
    }

    /// Starts a delivery of the host whose turn it is.
    pub(super) fn start_next(&mut self, now: Instant) -> Option<(String, DueSubscription)> {
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
    pub(super) fn start_one(&mut self, name: &str, now: Instant) -> Option<DueSubscription> {
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

    /// Requests a claim for a host that has few waiting deliveries and more in the store. While the latency
    /// is unknown, so is a good portion: a response is awaited as long as deliveries wait here.
    pub(super) fn refill_if_low(&mut self, name: &str) {
        let Some(host) = self.hosts.get_mut(name) else { return };
        let portion = host.portion();
        let is_low = host.waiting_count <= portion / 2 && !host.awaits_latency();
        if host.has_more && !host.awaits_refill && is_low {
            host.has_more = false;
            host.awaits_refill = true;
            self.refills.push(Refill { host: name.to_owned(), portion });
        }
    }

    /// Ends a delivery, and learns from its attempt if there was one.
    pub(super) fn end(
        &mut self,
        host: &str,
        (id, claim): (SubscriptionId, ClaimToken),
        attempt: Option<&Attempt>,
    ) {
        // The same node may have claimed the subscription anew after it lost this claim.
        if self.in_hand.get(&id) == Some(&claim) {
            self.in_hand.remove(&id);
        }
        let Some(host) = self.hosts.get_mut(host) else { return };
        if let Some(attempt) = attempt {
            let was_full = host.running >= host.limit.current();
            host.limit.observe(attempt, was_full);
        }
        host.running -= 1;
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
