//! What the store is asked and what it answers: the types of the arguments and results of its methods
//! (`feedgate_store::Store`), each subject's in a file of its own.

mod attempts;
mod backfills;
mod changes;
mod clock;
mod events;
mod gauges;
mod lists;
mod store_error;
mod subscriptions;
mod survey;

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use chrono::{DateTime, Utc};
use tokio::sync::Notify;

use crate::claim::ClaimToken;
use crate::poll::Trigger;
use crate::record::{Audience, Seq};
use crate::resource::{Resource, ResourceId};
use crate::upstream::Upstream;

pub use attempts::{AttemptRange, AttemptRetention};
pub use backfills::{CommitProgress, DueBackfill, StagedPage};
pub use changes::{ChangeLine, ChangesHour, ChangesWindow};
pub use clock::{ClockMark, ClockReading};
pub use events::{DroppedSubscription, EventArrival, EventNumbers, IntentFate};
pub use gauges::{CellQueues, EndedTransaction, Gauges, OldestDue, TransactionObserver};
pub use lists::{
    FeedOrder, FeedQuery, FeedsFound, ListCounts, ListPosition, ListedState, SubscriptionQuery,
    SubscriptionsFound,
};
pub use store_error::StoreError;
pub use subscriptions::{
    ClaimedSubscriptions, DeliveryOutcome, DeliveryProgress, DeliveryResult, HeldDelivery,
    ListedSubscription, LogNumbers, SubscriptionFilter, SubscriptionRange,
};
pub use survey::{
    BodySummary, OpenSubscription, OpenSubscriptions, ResourcesPage, SubscriberGroup,
    SubscriptionCounts, WatchedResource,
};

/// A resource that was claimed for a poll.
#[derive(Clone, Debug, PartialEq)]
pub struct DueResource {
    /// The resource as it stood when claimed.
    pub resource: Resource,
    /// The claim, which the result of the poll names.
    pub claim: ClaimToken,
    /// Whether a ping made the resource due.
    pub trigger: Trigger,
}

/// An upstream that was claimed for a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DueUpstream {
    /// The upstream.
    pub upstream: Upstream,
    /// The claim, which the result of the request names.
    pub claim: ClaimToken,
}

/// A claimed resource that is given back without the result of a poll.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReleasedResource {
    /// The resource.
    pub id: ResourceId,
    /// The claim that ends.
    pub claim: ClaimToken,
    /// When it is given back.
    pub at: DateTime<Utc>,
    /// When it is due again, and why then, in a sentence; `None` leaves it due as it was.
    pub put_off: Option<(DateTime<Utc>, String)>,
    /// Until when the resource is not fetched, whatever reports a change of it; `None` leaves that
    /// unchanged.
    pub left_alone_until: Option<DateTime<Utc>>,
}

impl ReleasedResource {
    /// Returns a claimed resource that is given back at `at`, and stays due as it was.
    pub fn unchanged(due: &DueResource, at: DateTime<Utc>) -> ReleasedResource {
        let (id, claim) = (due.resource.id, due.claim);
        ReleasedResource { id, claim, at, put_off: None, left_alone_until: None }
    }
}

/// The number of jobs that a claim may return.
#[derive(Clone, Debug)]
pub struct ClaimLimits {
    /// The maximum number of jobs.
    pub limit: usize,
    /// The maximum number of jobs for one host.
    pub per_host: usize,
    /// Hosts that have reached their limit; none of their jobs is returned.
    pub busy: Vec<String>,
}

impl ClaimLimits {
    /// The deliveries of one host that are claimed together while its speed is unknown: twice as many as
    /// may be in progress at first.
    pub const FIRST_PORTION: usize = 16;
    /// The most deliveries of one host that are claimed together: some 30 ms of work for a fast host.
    pub const LARGEST_PORTION: usize = 1_024;
}

/// The result of an append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Appended {
    /// The number of the newest record.
    pub head: Seq,
    /// The number of new records.
    pub new: usize,
}

/// The records that a delivery may send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwedRange {
    /// All records after this one,
    pub after: Seq,
    /// up to and including this one,
    pub upto: Seq,
    /// that have at least this audience,
    pub least: Audience,
    /// up to this number of records, and up to the one with which they have this many bytes.
    pub limit: usize,
    /// The number of bytes that ends the range.
    pub max_bytes: usize,
}

/// The entries to read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EntryRange {
    /// The oldest entries after this record; `None` reads the newest ones.
    pub after: Option<Seq>,
    /// Only entries before this record; `None` reads up to the head.
    pub before: Option<Seq>,
    /// The maximum number of entries.
    pub limit: usize,
    /// The range ends with the entry with which it has this many bytes; `None`: bytes do not count.
    pub max_bytes: Option<usize>,
}

/// The ends of retentions: of each kind, the rows from before its time are deleted. `None` keeps
/// them all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PruneBefore {
    /// Refusals, what was read in `robots.txt`, and what was learned of hosts.
    pub host_records: Option<DateTime<Utc>>,
    /// Permanent redirects that were followed. The URL that a resource has now stays.
    pub moves: Option<DateTime<Utc>>,
    /// API tokens, by the time of their revocation.
    pub ended_tokens: Option<DateTime<Utc>>,
    /// Sessions of the console, by the time when they were last used.
    pub sessions: Option<DateTime<Utc>>,
    /// Nodes, by the time when they last reported.
    pub nodes: Option<DateTime<Utc>>,
    /// Backfills, by the time when they ended. The entries that they brought in stay.
    pub backfills: Option<DateTime<Utc>>,
    /// What was counted for networks of strangers, by its day.
    pub network_budgets: Option<DateTime<Utc>>,
    /// Requests that clients may repeat, by the time when they were begun.
    pub idempotency_keys: Option<DateTime<Utc>>,
}

/// Wakes workers when there is work, on this node or another. A worker that misses a signal finds
/// the work at its next check.
#[derive(Clone, Debug, Default)]
pub struct WakeSignals {
    /// A resource became due.
    pub resources: Arc<Notify>,
    /// A subscription became due.
    pub subscriptions: Arc<Notify>,
    /// A subscription became due, for clients that follow a log: what wakes the deliverer goes to one
    /// waiter of `subscriptions`, which must not be such a client.
    pub logs: Arc<Notify>,
    /// How often this node learned that a transaction of any node made subscriptions due. Direct
    /// notifications of `subscriptions` do not count.
    pub subscription_signals: Arc<AtomicU64>,
    /// An intent was stored.
    pub intents: Arc<Notify>,
    /// A collection has records to take.
    pub collections: Arc<Notify>,
    /// An append left subscriptions to be marked due.
    pub fan_outs: Arc<Notify>,
}
