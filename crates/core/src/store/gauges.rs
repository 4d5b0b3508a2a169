//! What the store reports for `/metrics`.

use std::sync::Arc;
use std::time::Duration;

/// The gauges of `/metrics` that are read from the database.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gauges {
    /// Resources with subscriptions.
    pub resources: u64,
    /// Resources in an error.
    pub failing: u64,
    /// Active subscriptions.
    pub subscriptions: u64,
    /// Subscriptions whose cursor is behind.
    pub due: u64,
    /// How long the first item of each queue has been due.
    pub oldest_due: OldestDue,
    /// Subscription requests that have not been verified yet.
    pub pending_verifications: u64,
    /// The queues of each cell, in the order of the cells; empty if the store has one cell.
    pub cells: Vec<CellQueues>,
}

/// The queues of one cell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CellQueues {
    /// Subscriptions whose cursor is behind.
    pub due: u64,
    /// How long the first item of each queue has been due.
    pub oldest_due: OldestDue,
}

/// How long the item of each queue that has been due longest has been due, in seconds. 0 if nothing
/// is due.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OldestDue {
    /// Polls of resources, including those in progress.
    pub polls_s: u64,
    /// Deliveries to subscriptions.
    pub deliveries_s: u64,
    /// Verifications of subscription requests.
    pub verifications_s: u64,
    /// Pings to ping targets.
    pub forwarded_pings_s: u64,
}

impl OldestDue {
    /// Returns the ages of the oldest items of two stores.
    pub fn max(self, other: OldestDue) -> OldestDue {
        OldestDue {
            polls_s: self.polls_s.max(other.polls_s),
            deliveries_s: self.deliveries_s.max(other.deliveries_s),
            verifications_s: self.verifications_s.max(other.verifications_s),
            forwarded_pings_s: self.forwarded_pings_s.max(other.forwarded_pings_s),
        }
    }
}

/// A transaction of the store that ended.
#[derive(Clone, Copy, Debug)]
pub struct EndedTransaction {
    /// `sqlite` or `postgresql`.
    pub engine: &'static str,
    /// `read` or `write`.
    pub kind: &'static str,
    /// The time from the call to the result: with the waits for a connection and for other writers,
    /// and with attempts that were repeated.
    pub took: Duration,
}

/// Is called with each transaction that ends, in the task that ran it.
pub type TransactionObserver = Arc<dyn Fn(&EndedTransaction) + Send + Sync>;
