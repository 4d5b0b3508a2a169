//! The ports of the store: everything that the program can do with a database.
//!
//! A port is a trait about one subject; [`Store`] is all of them together. To add an operation, add
//! a method here, its SQL in the file of `crates/store` that implements the port, and a test in
//! `tests/it/store` that runs on SQLite and on PostgreSQL. To add a port, list it in `store_of!`
//! too.

mod accounts;
mod attempts;
mod backfills;
mod changes;
mod clock;
mod collections;
mod events;
mod fan_outs;
mod gauges;
mod nodes;
mod ping_forwarding;
mod search_index;
mod sessions;
mod signing_keys;
mod store_error;
mod subscriptions;
mod survey;
mod tracks;

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use tokio::sync::Notify;

use crate::account::AccountId;
use crate::change_detection::{FeedDocument, Known};
use crate::claim::ClaimToken;
use crate::host::{Host, HostBackoff, HostRefusal, PausedHost, RequestAdmission};
use crate::moves::Move;
use crate::page::{ArchiveRetention, Archived, LocatedPage, Page};
use crate::ping::Ping;
use crate::poll::{Poll, Trigger};
use crate::record::{Audience, EntryKey, Record, Seq};
use crate::registrant::RegistrantNetwork;
use crate::resource::{Resource, ResourceId};
use crate::topic::Topic;
use crate::upstream::{Upstream, UpstreamSummary};
use feedgate_feed::Body;
use feedgate_protocol::robots::Robots;

pub use accounts::{Accounts, StoredFiles};
pub use attempts::{AttemptRange, AttemptRetention, Attempts};
pub use backfills::{Backfills, CommitProgress, DueBackfill};
pub use changes::{ChangeLine, Changes, ChangesHour, ChangesWindow};
pub use clock::{ClockMark, ClockReading, DatabaseClock};
pub use collections::Collections;
pub use events::{DroppedSubscription, EventArrival, EventNumbers, Events};
pub use fan_outs::FanOuts;
pub use gauges::{CellQueues, EndedTransaction, Gauges, OldestDue, TransactionObserver};
pub use nodes::Nodes;
pub use ping_forwarding::PingTargets;
pub use search_index::SearchIndex;
pub use sessions::Sessions;
pub use signing_keys::SigningKeys;
pub use store_error::StoreError;
pub use subscriptions::{
    ClaimedSubscriptions, DeliveryOutcome, DeliveryProgress, DeliveryResult, HeldDelivery, Intents,
    ListedSubscription, LogNumbers, SubscriptionFilter, Subscriptions,
};
pub use survey::{
    BodySummary, OpenSubscription, OpenSubscriptions, ResourcesPage, SubscriberGroup,
    SubscriptionCounts, Survey, WatchedResource,
};
pub use tracks::Tracks;

/// Names the ports that make a store.
macro_rules! store_of {
    ($($port:ident)*) => {
        /// All ports together.
        pub trait Store: $($port +)* Send + Sync {}

        impl<T> Store for T where T: $($port +)* Send + Sync {}
    };
}

store_of! {
    Accounts Sessions Resources Log FanOuts Archives Collections Tracks SearchIndex Subscriptions Attempts Intents Backfills Pings Changes
    Upstreams Hosts PingTargets Moves Rescheduler Schedule StoredFiles Events Nodes SigningKeys Survey
    Maintenance DatabaseClock
}

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

/// Resources.
#[async_trait]
pub trait Resources: Send + Sync {
    /// Returns the resource with this topic. If there is none, it is created and due immediately.
    async fn ensure(&self, topic: &Topic, now: DateTime<Utc>) -> Result<Resource, StoreError> {
        self.ensure_for(topic, RegistrantNetwork::UNKNOWN, now).await
    }

    /// Returns the resource with this topic, as [`ensure`](Self::ensure) does, for a stranger in this
    /// network, who is charged for its first document if it is created.
    async fn ensure_for(
        &self,
        topic: &Topic,
        registrant: RegistrantNetwork,
        now: DateTime<Utc>,
    ) -> Result<Resource, StoreError>;

    /// Returns the resource with this topic.
    async fn find(&self, topic: &str) -> Result<Option<Resource>, StoreError>;

    /// Returns the resource with this number, or that had it before the database was copied.
    async fn get(&self, id: ResourceId) -> Result<Option<Resource>, StoreError>;

    /// Returns whether an account or a collection of the operator watches a resource.
    async fn has_trusted_watcher(&self, id: ResourceId) -> Result<bool, StoreError>;

    /// Returns those of these resources that an account subscribes to, in any order. They are current
    /// numbers.
    async fn subscribed_by(
        &self,
        account: AccountId,
        ids: &[ResourceId],
    ) -> Result<Vec<ResourceId>, StoreError>;

    /// Records that documents of a resource came from an address that is not public
    /// ([`SourceNetwork::Inner`](crate::visibility::SourceNetwork)).
    async fn note_inner(&self, id: ResourceId) -> Result<(), StoreError>;

    /// Returns the earliest time of the next fetch of a resource: until then, it must wait because
    /// much was stored for its subscribers.
    async fn earliest_fetch(&self, id: ResourceId) -> Result<DateTime<Utc>, StoreError>;

    /// Claims resources that are due at `now`, longest due first, until `until`. Groups of servers
    /// in a pause, or to which a request was sent a moment ago, are skipped, and their skipped
    /// resources become due when the group may be free. If `room` allows one job per host, only one
    /// claim of a group exists at a time, on any node, until its poll is recorded (P41).
    ///
    /// No lock is held in between. If the process ends, its claim expires and the resource can be
    /// claimed again. The clock of the database decides when. A resource without subscriptions is
    /// never due.
    async fn claim_resources(
        &self,
        now: DateTime<Utc>,
        until: DateTime<Utc>,
        room: &ClaimLimits,
    ) -> Result<Vec<DueResource>, StoreError>;

    /// Claims this resource, whether it is due or not; `None` while it is claimed by somebody else.
    async fn claim_resource(
        &self,
        id: ResourceId,
        now: DateTime<Utc>,
        until: DateTime<Utc>,
    ) -> Result<Option<DueResource>, StoreError>;

    /// Extends those of `claims` that were not lost to `until`, with the claims of the groups of
    /// their servers, and returns their resources.
    async fn renew_resource_claims(
        &self,
        claims: &[(ResourceId, ClaimToken)],
        now: DateTime<Utc>,
        until: DateTime<Utc>,
    ) -> Result<Vec<ResourceId>, StoreError>;

    /// Gives a claimed resource back, with the group of its servers. Nothing else of it changes,
    /// and a ping that made it due still waits for its poll. If the claim was lost, nothing changes.
    async fn release_resource(&self, released: &ReleasedResource) -> Result<(), StoreError>;

    /// Appends the new content to the log and stores everything else that a poll found, in one
    /// transaction, which also ends the claim. Of a document with many new entries, the first are
    /// appended in transactions of their own; if the caller stops waiting, the next poll finds the
    /// others. `None` if the claim was lost: then nothing more changes, because the poll that holds
    /// the resource now finds the same content.
    ///
    /// Entries are classified here ([`crate::change_detection::classify`]). The records are
    /// numbered from head + 1 in the given order, and every subscription that is sent some of them
    /// becomes due, unless the poll is `silent`. A revision of a resource that is not a feed is
    /// appended if the body has changed. Two nodes that found the same change append it once. A
    /// ping that arrived during the poll makes the resource due again as soon as its minimum
    /// interval allows, because the change may have happened after the response.
    async fn record(&self, id: ResourceId, poll: &Poll) -> Result<Option<Appended>, StoreError>;

    /// Appends the new content sent by an upstream, as [`record`](Self::record) does. The claim,
    /// the schedule and the polling state stay unchanged.
    async fn push(
        &self,
        id: ResourceId,
        document: FeedDocument,
        now: DateTime<Utc>,
    ) -> Result<Appended, StoreError>;
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

/// Logs and bodies.
#[async_trait]
pub trait Log: Send + Sync {
    /// Returns up to `limit` records after `after`, ascending.
    async fn read_after(
        &self,
        id: ResourceId,
        after: Seq,
        limit: usize,
    ) -> Result<Vec<Record>, StoreError>;

    /// Returns the records owed to a subscription, with at least its audience, ascending.
    async fn owed(&self, id: ResourceId, owed: &OwedRange) -> Result<Vec<Record>, StoreError>;

    /// Returns the current entries, newest first, without those that were replaced by an update or
    /// deleted.
    async fn read_current(
        &self,
        id: ResourceId,
        span: &EntryRange,
    ) -> Result<Vec<Record>, StoreError>;

    /// Returns the known entries with these keys. The append classifies again; this call only
    /// avoids rendering known entries.
    async fn known(&self, id: ResourceId, keys: &[EntryKey]) -> Result<Known, StoreError>;

    /// Returns the number of the newest record with this Atom id.
    async fn find_seq(&self, id: ResourceId, entry_id: &str) -> Result<Option<Seq>, StoreError>;

    /// Returns the numbers of the newest records of these logs, in any order; logs that do not
    /// exist are left out.
    async fn heads(&self, ids: &[ResourceId]) -> Result<Vec<(ResourceId, Seq)>, StoreError>;

    /// Returns the newest body and its version.
    async fn body(&self, id: ResourceId) -> Result<Option<(i64, Body)>, StoreError>;
}

/// The pages of logs.
#[async_trait]
pub trait Archives: Send + Sync {
    /// Returns a page of a log, or the newest page if `number` is `None`. `None` if there is no
    /// page with this number, or no longer.
    async fn page(
        &self,
        id: ResourceId,
        number: Option<i64>,
    ) -> Result<Option<LocatedPage>, StoreError>;

    /// Returns the number of the oldest stored page; the pages before it were dropped.
    async fn oldest_page(&self, id: ResourceId) -> Result<i64, StoreError>;

    /// Returns the number of the oldest stored record, 1 if the log is empty; the records before it
    /// were dropped with their pages.
    async fn oldest_seq(&self, id: ResourceId) -> Result<Seq, StoreError>;

    /// Returns the records of a page, ascending, with their archive ids. Which records belong to a
    /// page was decided when they were appended. It is an error if records are missing because the
    /// page was dropped meanwhile, because archived documents never change.
    async fn read_page(&self, id: ResourceId, page: &Page) -> Result<Vec<Archived>, StoreError>;

    /// Drops the pages that are no longer retained, the oldest of each log first, and their
    /// records. Records owed to a subscription are kept, and so are known entries (N6). Returns the
    /// number of dropped pages.
    async fn drop_pages(
        &self,
        retention: &ArchiveRetention,
        now: DateTime<Utc>,
    ) -> Result<u64, StoreError>;
}

/// Pings and notifications from other servers.
#[async_trait]
pub trait Pings: Send + Sync {
    /// Stores a ping and makes the resources due that it names: those whose topic, fetch URL or web
    /// site is the address of the ping or of its feed. No resource is fetched sooner than `spacing`
    /// after its last fetch. Returns the number of resources that strangers may know of.
    async fn receive(&self, ping: &Ping, spacing: Duration) -> Result<usize, StoreError>;
}

/// Upstreams: hubs and clouds that notify the gateway of changes (P53).
#[async_trait]
pub trait Upstreams: Send + Sync {
    /// Claims upstreams that are due at `now`, within the limits for the hosts of the hubs and
    /// clouds, until `until`.
    async fn claim_upstreams(
        &self,
        now: DateTime<Utc>,
        until: DateTime<Utc>,
        room: &ClaimLimits,
    ) -> Result<Vec<DueUpstream>, StoreError>;

    /// Returns the upstream whose notification address has this token.
    async fn upstream(&self, token: &str) -> Result<Option<Upstream>, StoreError>;

    /// Returns what is displayed of the upstream of a resource.
    async fn upstream_summary(&self, id: ResourceId)
    -> Result<Option<UpstreamSummary>, StoreError>;

    /// Stores the state, the lease and the failures of an upstream, which is due again at `due_at`,
    /// and ends its claim. With `claim`, the update applies only if that claim was not lost:
    /// because a hub may verify before it responds, updates without a claim end it too. Returns
    /// whether it applied.
    async fn save_upstream(
        &self,
        upstream: &Upstream,
        claim: Option<ClaimToken>,
        due_at: DateTime<Utc>,
    ) -> Result<bool, StoreError>;

    /// Deletes an upstream; with `claim`, only if that claim was not lost.
    async fn end_upstream(
        &self,
        upstream: &Upstream,
        claim: Option<ClaimToken>,
    ) -> Result<(), StoreError>;

    /// Records a notification of a change at `now`, so that new entries of the next poll are
    /// attributed to the upstream, and that it had passed `hops` gateways. Returns `false` if the last
    /// notification was less than `spacing` ago.
    async fn record_upstream_push(
        &self,
        upstream: &Upstream,
        hops: u32,
        spacing: Duration,
        now: DateTime<Utc>,
    ) -> Result<bool, StoreError>;
}

/// The state of publishers' servers.
#[async_trait]
pub trait Hosts: Send + Sync {
    /// Returns the group of servers of `url` (see [`host_groups`](crate::host_groups)).
    fn group(&self, url: &str) -> String;

    /// Returns the state of a group.
    async fn host(&self, group: &str) -> Result<Host, StoreError>;

    /// Returns the groups that are left alone at `now`, those with the shortest wait first, at most
    /// `limit`.
    async fn paused_hosts(
        &self,
        now: DateTime<Utc>,
        limit: usize,
    ) -> Result<Vec<PausedHost>, StoreError>;

    /// Records that a URL was refused, and decides whether its whole group is paused (P26 to P28).
    /// In that case, the polls that are due before the end of the pause are postponed, with the
    /// reason in the status, so that they resume one by one.
    async fn refuse(&self, refused: &HostRefusal) -> Result<Option<HostBackoff>, StoreError>;

    /// Takes a time of a group for a request that a redirect leads there, if the group has one now. Own
    /// resources of the group have at least every second time.
    async fn admit_request(
        &self,
        group: &str,
        now: DateTime<Utc>,
    ) -> Result<RequestAdmission, StoreError>;

    /// Ends the claim of a group whose poll a redirect has led to another group. The interval between two
    /// polls of the group stays.
    async fn leave_group(&self, group: &str) -> Result<(), StoreError>;

    /// Records that a group answered well to a request for a resource of another group.
    async fn credit(&self, group: &str, at: DateTime<Utc>) -> Result<(), StoreError>;

    /// Returns the last `robots.txt` of a server (scheme, host and port), and when it was fetched.
    async fn robots(&self, origin: &str) -> Result<Option<(Robots, DateTime<Utc>)>, StoreError>;

    /// Stores the `robots.txt` of a server.
    async fn save_robots(
        &self,
        origin: &str,
        robots: &Robots,
        now: DateTime<Utc>,
    ) -> Result<(), StoreError>;

    /// Postpones one resource until `until`, with the reason in its status.
    async fn put_off(
        &self,
        id: ResourceId,
        until: DateTime<Utc>,
        why: &str,
    ) -> Result<(), StoreError>;
}

/// Changes the due times of resources after unusual events.
#[async_trait]
pub trait Rescheduler: Send + Sync {
    /// Spreads overdue polls over time, if there is a backlog (P46). Returns the number of
    /// resources that were rescheduled.
    async fn release_backlog(&self, now: DateTime<Utc>) -> Result<u64, StoreError>;

    /// Makes those of `ids` due at `at` that would be polled later. Returns their number.
    async fn poll_soon(&self, ids: &[ResourceId], at: DateTime<Utc>) -> Result<u64, StoreError>;
}

/// The fetch URLs that resources had before (P20).
#[async_trait]
pub trait Moves: Send + Sync {
    /// Returns the moves of a resource, newest first.
    async fn moves(&self, id: ResourceId) -> Result<Vec<Move>, StoreError>;

    /// Reverts a move that is in effect; `false` if there is none with this number. The resource
    /// becomes due at its old address, and is not moved to the same target again.
    async fn undo_move(
        &self,
        id: ResourceId,
        number: i64,
        now: DateTime<Utc>,
    ) -> Result<bool, StoreError>;
}

/// The factor of the poll schedule, which all nodes share.
#[async_trait]
pub trait Schedule: Send + Sync {
    /// Returns the number of polls per second of all resources with this `k` (`schedule::Demand`).
    async fn planned(&self, k: f64) -> Result<f64, StoreError>;

    /// Returns the `k` that all nodes share, which starts at the minimum.
    async fn k(&self) -> Result<f64, StoreError>;

    /// Stores `k` for all nodes.
    async fn save_k(&self, k: f64) -> Result<(), StoreError>;
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
    pub revoked_tokens: Option<DateTime<Utc>>,
    /// Sessions of the console, by the time when they were last used.
    pub sessions: Option<DateTime<Utc>>,
    /// Nodes, by the time when they last reported.
    pub nodes: Option<DateTime<Utc>>,
    /// Backfills, by the time when they ended. The entries that they brought in stay.
    pub backfills: Option<DateTime<Utc>>,
    /// What was counted for networks of strangers, by its day.
    pub network_budgets: Option<DateTime<Utc>>,
}

/// Maintenance tasks, each of which is run by one node at a time.
#[async_trait]
pub trait Maintenance: Send + Sync {
    /// Claims the task `name`, which runs once in `every` by the clock of the database. Returns
    /// whether this node has to run it. If the node fails, the task runs at its next time.
    async fn claim_maintenance_task(
        &self,
        name: &str,
        now: DateTime<Utc>,
        every: Duration,
    ) -> Result<bool, StoreError>;

    /// Deletes a batch of subscriptions whose lease has ended, and returns them; an empty result
    /// means that none are left.
    async fn drop_expired(
        &self,
        now: DateTime<Utc>,
    ) -> Result<Vec<DroppedSubscription>, StoreError>;

    /// Deletes a batch of rssCloud subscriptions with at least `errors` consecutive failures (seed
    /// 000: "after three consecutive errors"); an empty result means that none are left.
    async fn drop_failing(&self, errors: u32) -> Result<Vec<DroppedSubscription>, StoreError>;

    /// Deletes a batch of subscriptions of accounts that were removed after `since`, and returns
    /// them; an empty result means that none are left. There are some if an account was removed
    /// while one of its subscriptions was verified.
    async fn drop_ownerless(
        &self,
        since: DateTime<Utc>,
    ) -> Result<Vec<DroppedSubscription>, StoreError>;

    /// Pauses the subscriptions of accounts that were deactivated after `since`. There are some if an
    /// account was deactivated while one of its subscriptions was verified. Returns their number.
    async fn pause_deactivated(&self, since: DateTime<Utc>) -> Result<u64, StoreError>;

    /// Updates velocity and counts of resources last measured before `before`. Returns their
    /// number.
    async fn measure(&self, before: DateTime<Utc>, now: DateTime<Utc>) -> Result<u64, StoreError>;

    /// Deletes rows that have reached the end of their retention, a bounded number in each
    /// transaction. Returns how many.
    async fn prune(&self, before: &PruneBefore) -> Result<u64, StoreError>;

    /// Deletes resources that have had no subscription since `before`, with everything stored for
    /// them, and marks resources that are without subscription at `now` for the first time. Returns
    /// the number of deleted resources (S44).
    async fn forget_unwatched(
        &self,
        before: DateTime<Utc>,
        now: DateTime<Utc>,
    ) -> Result<u64, StoreError>;

    /// Deletes resources that were created at `before` or earlier, have never had a subscriber, and
    /// are not being polled at `now`. Returns how many.
    async fn forget_never_watched(
        &self,
        before: DateTime<Utc>,
        now: DateTime<Utc>,
    ) -> Result<u64, StoreError>;

    /// Returns the gauges of `/metrics` at `now`.
    async fn gauges(&self, now: DateTime<Utc>) -> Result<Gauges, StoreError>;

    /// Returns the size of the database in bytes: of the file of SQLite without its write-ahead log,
    /// or of the whole database on the PostgreSQL server that this node is connected to.
    async fn size_bytes(&self) -> Result<u64, StoreError>;

    /// Calls `observer` with every transaction that ends from now on. Only the first call of this
    /// function has an effect.
    fn observe_transactions(&self, observer: TransactionObserver);

    /// Checks that the store accepts writes and has the schema of this version.
    async fn ready(&self) -> Result<(), StoreError>;

    /// Returns the signals that wake the workers.
    fn wake_signals(&self) -> WakeSignals;

    /// Finishes pending writes and closes the store, which cannot be used afterwards.
    async fn close(&self);
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
