//! The deliveries that wait for one host.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::super::concurrency_limit::ConcurrencyLimit;
use feedgate_core::account::AccountId;
use feedgate_core::claim::ClaimToken;
use feedgate_core::ports::ClaimLimits;
use feedgate_core::resource::ResourceId;
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
    /// The waiting deliveries of each account, in the order of their turns. Open subscriptions count
    /// as those of one account.
    pub(super) waiting: VecDeque<(Option<AccountId>, AccountQueue)>,
    pub(super) waiting_count: usize,
    pub(super) running: usize,
    pub(super) limit: ConcurrencyLimit,
    /// Whether the last claim left deliveries of this host in the store.
    pub(super) has_more: bool,
    /// Whether a claim for this host is requested or in progress.
    pub(super) awaits_refill: bool,
    pub(super) has_turn: bool,
}

/// The waiting deliveries of an account, a queue for each resource, in the order of their turns.
pub(super) type AccountQueue = VecDeque<(ResourceId, VecDeque<WaitingDelivery>)>;

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
            waiting: VecDeque::new(),
            waiting_count: 0,
            running: 0,
            limit: ConcurrencyLimit::new(ceiling),
            has_more: false,
            awaits_refill: false,
            has_turn: false,
        }
    }

    pub(super) fn is_idle(&self) -> bool {
        self.running == 0 && self.waiting_count == 0
    }

    /// Returns whether the latency is unknown and a delivery in progress may reveal it while others wait.
    pub(super) fn awaits_latency(&self) -> bool {
        self.limit.latency().is_none() && self.running > 0 && self.waiting_count > 0
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

    /// Adds a delivery behind those of its account and resource.
    pub(super) fn add_waiting(&mut self, resource: ResourceId, delivery: WaitingDelivery) {
        self.waiting_count += 1;
        let account = delivery.due.subscription.account;
        let resources = match self.waiting.iter().position(|(held, _)| *held == account) {
            Some(place) => &mut self.waiting[place].1,
            None => {
                self.waiting.push_back((account, AccountQueue::new()));
                let last = self.waiting.len() - 1;
                &mut self.waiting[last].1
            }
        };
        match resources.iter_mut().find(|(held, _)| *held == resource) {
            Some((_, waiting)) => waiting.push_back(delivery),
            None => resources.push_back((resource, VecDeque::from([delivery]))),
        }
    }

    /// Returns the next delivery of the account whose turn it is, and of the resource among its own.
    pub(super) fn next_waiting(&mut self) -> Option<WaitingDelivery> {
        let (account, mut resources) = self.waiting.pop_front()?;
        let (resource, mut waiting) = resources.pop_front()?;
        let delivery = waiting.pop_front();
        if !waiting.is_empty() {
            resources.push_back((resource, waiting));
        }
        if !resources.is_empty() {
            self.waiting.push_back((account, resources));
        }
        self.waiting_count -= usize::from(delivery.is_some());
        delivery
    }
}
