//! The ports of the store: everything that the program can do with a database.
//!
//! A port is a trait about one subject; [`Store`] is all of them together. To add an operation, add
//! a method here, its SQL in the file of `crates/store` that implements the port, and a test in
//! `tests/it/store` that runs on SQLite and on PostgreSQL. To add a port, list it in `store_of!`
//! too.

mod accounts;
mod backfills;
mod changes;
mod collections;
mod events;
mod ping_forwarding;
mod store_error;
mod subscriptions;
mod survey;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use tokio::sync::Notify;

use crate::change_detection::{FeedDocument, Known};
use crate::host::{Host, HostBackoff, HostRefusal};
use crate::moves::Move;
use crate::page::{ArchiveRetention, Archived, LocatedPage, Page};
use crate::ping::Ping;
use crate::poll::{Poll, Trigger};
use crate::record::{Audience, EntryKey, Record, Seq};
use crate::resource::{Resource, ResourceId};
use crate::topic::Topic;
use crate::upstream::Upstream;
use feedgate_feed::Body;
use feedgate_protocol::robots::Robots;

pub use accounts::{Accounts, StoredFiles};
pub use backfills::{Backfills, DueBackfill};
pub use changes::{ChangeLine, Changes, ChangesHour, ChangesWindow};
pub use collections::Collections;
pub use events::{DroppedSubscription, EventArrival, Events};
pub use ping_forwarding::PingTargets;
pub use store_error::StoreError;
pub use subscriptions::{
    DeliveryProgress, DeliveryResult, Intents, ListedSubscription, LogNumbers, SubscriptionFilter,
    Subscriptions,
};
pub use survey::{
    OpenSubscription, OpenSubscriptions, SubscriberGroup, SubscriptionCounts, Survey,
    WatchedResource,
};

/// Names the ports that make a store.
macro_rules! store_of {
    ($($port:ident)*) => {
        /// Everything at once.
        pub trait Store: $($port +)* Send + Sync {}

        impl<T> Store for T where T: $($port +)* Send + Sync {}
    };
}

store_of! {
    Accounts Resources Log Archives Collections Subscriptions Intents Backfills Pings Changes Upstreams Hosts
    PingTargets Moves Rescheduler Schedule StoredFiles Events Survey Maintenance
}

/// A resource handed out to be polled.
#[derive(Clone, Debug, PartialEq)]
pub struct DueResource {
    /// The resource as it stood when claimed.
    pub resource: Resource,
    /// Whether a ping made it due.
    pub trigger: Trigger,
}

/// A claimed resource that is given back without the result of a poll.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReleasedResource {
    /// The resource.
    pub id: ResourceId,
    /// When it is given back.
    pub at: DateTime<Utc>,
    /// When it is due again, and why then, in a sentence; `None` leaves it due as it was.
    pub put_off: Option<(DateTime<Utc>, String)>,
}

/// How much more work a taker can take.
#[derive(Clone, Debug)]
pub struct ClaimLimits {
    /// Jobs in all.
    pub limit: usize,
    /// Jobs for any one host.
    pub per_host: usize,
    /// Hosts that have all they can take; nothing of theirs is handed out.
    pub busy: Vec<String>,
}

/// What an append came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Appended {
    /// The greatest number in the log now.
    pub head: Seq,
    /// How many of the records were new.
    pub new: usize,
}

/// What is watched.
#[async_trait]
pub trait Resources: Send + Sync {
    /// The resource with this topic; made, and due at once, if there is none.
    async fn ensure(&self, topic: &Topic, now: DateTime<Utc>) -> Result<Resource, StoreError>;

    /// The resource with this topic.
    async fn find(&self, topic: &str) -> Result<Option<Resource>, StoreError>;

    /// The resource with this number.
    async fn get(&self, id: ResourceId) -> Result<Option<Resource>, StoreError>;

    /// Takes resources due at `now`, longest due first, and hides them from other
    /// takers until `until`. A group of servers that is to be left alone, or was asked a
    /// moment ago, is passed over, and those of its resources that were in the way become due
    /// when it may be free. Where `room` has one place for each, a group is asked by
    /// one taker at a time, on whatever node, until its poll is recorded (rule P41).
    ///
    /// Nothing stays locked in between. If the taker dies, its claim expires and the
    /// resource is handed out again. A resource that nobody subscribes to is not due.
    async fn claim_resources(
        &self,
        now: DateTime<Utc>,
        until: DateTime<Utc>,
        room: &ClaimLimits,
    ) -> Result<Vec<DueResource>, StoreError>;

    /// Takes this one resource, due or not; `None` while somebody else has it.
    async fn claim_resource(
        &self,
        id: ResourceId,
        now: DateTime<Utc>,
        until: DateTime<Utc>,
    ) -> Result<Option<Resource>, StoreError>;

    /// Gives a claimed resource back, with the group of its servers. Nothing else of it changes,
    /// and a ping that made it due still waits for its poll.
    async fn release_resource(&self, released: &ReleasedResource) -> Result<(), StoreError>;

    /// Appends what is new to the log and keeps everything else a poll found, in one
    /// transaction; ends the claim.
    ///
    /// Which entries are new, or say something else than before, is judged here
    /// ([`crate::change_detection::classify`]); they are numbered from head + 1 in the order
    /// given, and every subscription that is now behind, and is sent some of them, becomes
    /// due, unless the poll is `silent`. A revision of what is no feed is appended if the
    /// body is another. Two nodes that found the same change append it once. A ping that
    /// came while the poll ran makes the resource due again as soon as its spacing allows,
    /// because what it told of may have come after the answer.
    async fn record(&self, id: ResourceId, poll: &Poll) -> Result<Appended, StoreError>;

    /// Appends what is new of what an upstream sent, as [`record`](Self::record) does;
    /// claim, schedule and all that a poll remembers stay as they are.
    async fn push(
        &self,
        id: ResourceId,
        document: FeedDocument,
        now: DateTime<Utc>,
    ) -> Result<Appended, StoreError>;
}

/// Which records a delivery may bring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwedRange {
    /// All after this one,
    pub after: Seq,
    /// up to and with this one,
    pub upto: Seq,
    /// that reach this far,
    pub least: Audience,
    /// but no more than so many.
    pub limit: usize,
}

/// Which entries to read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EntryRange {
    /// Those after this record, the oldest of them; `None` reads the newest.
    pub after: Option<Seq>,
    /// Those before this one; `None` reads up to the head.
    pub before: Option<Seq>,
    /// How many at most.
    pub limit: usize,
}

/// What is kept.
#[async_trait]
pub trait Log: Send + Sync {
    /// Up to `limit` records after `after`, ascending.
    async fn read_after(
        &self,
        id: ResourceId,
        after: Seq,
        limit: usize,
    ) -> Result<Vec<Record>, StoreError>;

    /// What a subscription is owed: records of at least this reach, ascending.
    async fn owed(&self, id: ResourceId, owed: &OwedRange) -> Result<Vec<Record>, StoreError>;

    /// Entries as they are now, newest first: what was replaced by an update, or taken back,
    /// is left out.
    async fn read_current(
        &self,
        id: ResourceId,
        span: &EntryRange,
    ) -> Result<Vec<Record>, StoreError>;

    /// What is known under these keys. The append judges again; this only saves work on
    /// what is not new.
    async fn known(&self, id: ResourceId, keys: &[EntryKey]) -> Result<Known, StoreError>;

    /// The number of the newest record with this Atom id.
    async fn find_seq(&self, id: ResourceId, entry_id: &str) -> Result<Option<Seq>, StoreError>;

    /// The newest body and its version.
    async fn body(&self, id: ResourceId) -> Result<Option<(i64, Body)>, StoreError>;
}

/// Logs by their pages.
#[async_trait]
pub trait Archives: Send + Sync {
    /// A page of a log; `None` asks for the newest. There is always a first one, unless it
    /// was dropped; `None` if there is none of this number now.
    async fn page(
        &self,
        id: ResourceId,
        number: Option<i64>,
    ) -> Result<Option<LocatedPage>, StoreError>;

    /// The number of the oldest page that is kept: those before it were dropped.
    async fn oldest_page(&self, id: ResourceId) -> Result<i64, StoreError>;

    /// The records of a page, ascending, with what they go by in an archive. Which those
    /// are was decided when they were appended. An error if they are not all there, because
    /// it was dropped since it was found: what is archived is published for ever.
    async fn read_page(&self, id: ResourceId, page: &Page) -> Result<Vec<Archived>, StoreError>;

    /// Drops the pages that are not to be kept, the oldest of each log first, and their
    /// records with them. What a subscription is still owed stays, and so does what is
    /// known of the entries (rule N6). Returns how many pages were dropped.
    async fn drop_pages(
        &self,
        retention: &ArchiveRetention,
        now: DateTime<Utc>,
    ) -> Result<u64, StoreError>;
}

/// What others told us.
#[async_trait]
pub trait Pings: Send + Sync {
    /// Keeps a ping and makes the resources it names due: those whose topic, fetch URL
    /// or web site is its address or its feed's address. None is fetched sooner than
    /// `spacing` after it was last fetched. Returns how many there are.
    async fn receive(&self, ping: &Ping, spacing: Duration) -> Result<usize, StoreError>;
}

/// Hubs and clouds that tell us of changes (rule P53).
#[async_trait]
pub trait Upstreams: Send + Sync {
    /// Takes upstreams with which something is to be done at `now`, as far as there is room
    /// by the hosts of the hubs and clouds, and hides them until `until`.
    async fn claim_upstreams(
        &self,
        now: DateTime<Utc>,
        until: DateTime<Utc>,
        room: &ClaimLimits,
    ) -> Result<Vec<Upstream>, StoreError>;

    /// The upstream that tells us at the address with this token.
    async fn upstream(&self, token: &str) -> Result<Option<Upstream>, StoreError>;

    /// Keeps state, lease and failures of an upstream, which is due again at `due_at`.
    /// With `claimed_until` only if nobody has done so since it was claimed until then:
    /// a hub may verify before it answers. `false` if nothing was kept.
    async fn save_upstream(
        &self,
        upstream: &Upstream,
        claimed_until: Option<DateTime<Utc>>,
        due_at: DateTime<Utc>,
    ) -> Result<bool, StoreError>;

    /// Forgets an upstream.
    async fn end_upstream(&self, upstream: &Upstream) -> Result<(), StoreError>;

    /// Keeps that it told of a change at `now`: what a poll then finds is its merit.
    /// `false` if it did so less than `spacing` ago.
    async fn record_upstream_push(
        &self,
        upstream: &Upstream,
        spacing: Duration,
        now: DateTime<Utc>,
    ) -> Result<bool, StoreError>;
}

/// What is known of publishers' servers.
#[async_trait]
pub trait Hosts: Send + Sync {
    /// The group of servers that `url` belongs to (see [`host_groups`](crate::host_groups)).
    fn group(&self, url: &str) -> String;

    /// What is known of a group.
    async fn host(&self, group: &str) -> Result<Host, StoreError>;

    /// Keeps that a URL was refused, and judges what it means for its group (rules P26 to
    /// P28). Where the whole group is left alone, what would have been asked before then is
    /// put off, with the reason in its status, so that it resumes one by one.
    async fn refuse(&self, refused: &HostRefusal) -> Result<Option<HostBackoff>, StoreError>;

    /// What a server (scheme, host and port) last said to us in its `robots.txt`, and when.
    async fn robots(&self, origin: &str) -> Result<Option<(Robots, DateTime<Utc>)>, StoreError>;

    /// Keeps what it said.
    async fn save_robots(
        &self,
        origin: &str,
        robots: &Robots,
        now: DateTime<Utc>,
    ) -> Result<(), StoreError>;

    /// Puts off one resource until `until`, and says why in its status.
    async fn put_off(
        &self,
        id: ResourceId,
        until: DateTime<Utc>,
        why: &str,
    ) -> Result<(), StoreError>;
}

/// Bringing what is due into order after something unusual.
#[async_trait]
pub trait Rescheduler: Send + Sync {
    /// Spreads what is overdue over the time to come, if it is a herd (rule P46). Returns
    /// how many were spread.
    async fn release_backlog(&self, now: DateTime<Utc>) -> Result<u64, StoreError>;

    /// Makes what is due later than its period and `slack` from now due after its period,
    /// because a clock was wrong when that was decided (rule P47). Returns how many.
    async fn shorten_waits(&self, now: DateTime<Utc>, slack: TimeDelta) -> Result<u64, StoreError>;

    /// Makes those of these that would be polled later due at `at`. Returns how many.
    async fn poll_soon(&self, ids: &[ResourceId], at: DateTime<Utc>) -> Result<u64, StoreError>;
}

/// Where resources were fetched before (rule P20).
#[async_trait]
pub trait Moves: Send + Sync {
    /// The moves of a resource, the newest first.
    async fn moves(&self, id: ResourceId) -> Result<Vec<Move>, StoreError>;

    /// Takes back a move that still holds; `false` if there is none of this number. The
    /// resource becomes due where it was, and is not moved to the same place again.
    async fn undo_move(
        &self,
        id: ResourceId,
        number: i64,
        now: DateTime<Utc>,
    ) -> Result<bool, StoreError>;
}

/// What all nodes share about when to poll.
#[async_trait]
pub trait Schedule: Send + Sync {
    /// How many polls a second come of all that is watched with this `k` of the
    /// schedule (`schedule::Demand`).
    async fn planned(&self, k: f64) -> Result<f64, StoreError>;

    /// The `k` that all nodes share; at first the least there is.
    async fn k(&self) -> Result<f64, StoreError>;

    /// Keeps `k` for all nodes.
    async fn save_k(&self, k: f64) -> Result<(), StoreError>;

    /// Mends what a clock that was ahead left behind: resources that were polled after
    /// `now`, and claims and chores held for longer than anything is held, are put
    /// where they had been if that had been now (rule P47). Returns how many resources.
    async fn set_back(&self, now: DateTime<Utc>) -> Result<u64, StoreError>;
}

/// The gauges of `/metrics` that are read from the database.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gauges {
    /// Watched resources.
    pub resources: u64,
    /// Those in error.
    pub failing: u64,
    /// Live subscriptions.
    pub subscriptions: u64,
    /// Those whose cursor lags.
    pub due: u64,
    /// Seconds for which the longest due one has been so.
    pub oldest_due_s: u64,
    /// Requests whose callback has not been verified yet.
    pub pending_verifications: u64,
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
    /// Backfills, by the time when they ended. The entries that they brought in stay.
    pub backfills: Option<DateTime<Utc>>,
}

/// Maintenance, done by whichever node gets to it first.
#[async_trait]
pub trait Maintenance: Send + Sync {
    /// Whether it is this node's turn to do the chore `name`, which is done once in
    /// `every`. Who gets `true` has it until then; if it dies, the next turn comes.
    async fn claim_maintenance_task(
        &self,
        name: &str,
        now: DateTime<Utc>,
        every: Duration,
    ) -> Result<bool, StoreError>;

    /// Drops some of the subscriptions whose lease has ended; none are left when it returns
    /// none.
    async fn drop_expired(
        &self,
        now: DateTime<Utc>,
    ) -> Result<Vec<DroppedSubscription>, StoreError>;

    /// Drops some of the rssCloud subscriptions with at least `errors` consecutive failures
    /// (seed 000: "after three consecutive errors"); none are left when it returns none.
    async fn drop_failing(&self, errors: u32) -> Result<Vec<DroppedSubscription>, StoreError>;

    /// Brings velocity and counts up to date for resources last measured before
    /// `before`. Returns how many.
    async fn measure(&self, before: DateTime<Utc>, now: DateTime<Utc>) -> Result<u64, StoreError>;

    /// Deletes rows that have reached the end of their retention, a bounded number in each
    /// transaction. Returns how many.
    async fn prune(&self, before: &PruneBefore) -> Result<u64, StoreError>;

    /// Drops resources that have had no subscriber since `before`, with all that is kept of
    /// them; those that have none at `now` for the first time are noted. Returns how many were
    /// dropped (rule S44).
    async fn forget_unwatched(
        &self,
        before: DateTime<Utc>,
        now: DateTime<Utc>,
    ) -> Result<u64, StoreError>;

    /// Returns the gauges of `/metrics` at `now`.
    async fn gauges(&self, now: DateTime<Utc>) -> Result<Gauges, StoreError>;

    /// Whether the store takes writes and its schema is this program's.
    async fn ready(&self) -> Result<(), StoreError>;

    /// What wakes the workers.
    fn wake_signals(&self) -> WakeSignals;

    /// Finishes what is written and closes; the store is of no use afterwards.
    async fn close(&self);
}

/// Wakes workers when work arrives, on this node or another. A worker that misses
/// one finds the work at its next look.
#[derive(Clone, Debug, Default)]
pub struct WakeSignals {
    /// A resource became due.
    pub resources: Arc<Notify>,
    /// A subscription became due.
    pub subscriptions: Arc<Notify>,
    /// An intent arrived.
    pub intents: Arc<Notify>,
    /// A collection has something to take in.
    pub collections: Arc<Notify>,
}
