//! What this node has counted in the minute in progress, until it is stored: what is counted of the gateway, and of a
//! limited number of feeds, hosts and accounts, however much happens.

use std::sync::{Mutex, MutexGuard, PoisonError};

use feedgate_core::resource_id::ResourceId;
use feedgate_core::traffic::{CountedDelivery, PollClass, QueueAges, TrafficBatch, TrafficCounts};

/// The counts since they were last taken.
#[derive(Debug, Default)]
pub struct NodeTraffic {
    counted: Mutex<TrafficBatch>,
}

impl NodeTraffic {
    /// A poll ended with this outcome, a stable word, and found so many new entries.
    pub fn polled(&self, feed: ResourceId, outcome: &str, entries: usize) {
        self.counted().add_poll(feed, PollClass::from_outcome(outcome), entries as u64);
    }

    /// A hub or cloud sent so many new entries.
    pub fn pushed(&self, feed: ResourceId, entries: usize) {
        self.counted().add_pushed(feed, entries as u64);
    }

    /// An attempt to deliver ended.
    pub fn delivered(&self, delivery: &CountedDelivery<'_>) {
        self.counted().add_delivery(delivery);
    }

    /// Returns what was counted of the gateway since the counts were last taken.
    pub fn total(&self) -> TrafficCounts {
        self.counted().total.clone()
    }

    /// Returns everything that was counted, and begins anew.
    pub fn take_counted(&self) -> TrafficBatch {
        std::mem::take(&mut self.counted())
    }

    /// Notes how long the first items of the queues have been due.
    pub fn note_ages(&self, ages: QueueAges) {
        self.counted().total.note_ages(ages);
    }

    /// Counts again what could not be stored.
    pub fn count_again(&self, total: &TrafficCounts) {
        self.counted().total.add(total);
    }

    fn counted(&self) -> MutexGuard<'_, TrafficBatch> {
        self.counted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
