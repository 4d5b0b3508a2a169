//! One fetch with everything that follows, and what it leaves behind.

use chrono::{DateTime, Utc};
use feedgate_feed::Body;

use super::change_detection::FeedDocument;
pub use super::polling::{Polling, Validators};
use super::record::Digest;
use super::resource_id::ResourceKind;
use super::schedule::Demand;
use super::status::Status;
use super::upstream::UpstreamFinding;

/// Why a poll was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// It was due.
    Schedule,
    /// Somebody said that the resource changed, or asked for it now.
    Ping,
    /// An upstream sent what is new.
    Push,
}

impl Trigger {
    /// The word in the store and in metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Trigger::Schedule => "schedule",
            Trigger::Ping => "ping",
            Trigger::Push => "push",
        }
    }
}

/// What a poll has for the log.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum NewContent {
    /// Nothing.
    #[default]
    Nothing,
    /// The entries of a feed: all of them, because each is judged beside the others.
    Feed(FeedDocument),
    /// What a resource that is no feed holds now, if its body has changed (rule N12).
    Revision {
        /// The Atom id of the revision.
        entry_id: String,
        /// The revision as one self-contained Atom `<entry>` element.
        atom: String,
    },
}

/// Everything one poll leaves in the store, in one transaction.
#[derive(Clone, Debug, PartialEq)]
pub struct Poll {
    /// When it ended.
    pub at: DateTime<Utc>,
    /// Why it was made.
    pub trigger: Trigger,
    /// Whether the server answered as it should. The status does not tell: one that says
    /// that all is well may be older than this poll (rule P32).
    pub answered_well: bool,
    /// What the resource is now; `None` leaves it.
    pub kind: Option<ResourceKind>,
    /// Where it is polled from now on; `None` leaves it.
    pub fetch_url: Option<String>,
    /// The web site the feed belongs to, by which weblogs ping; `None` leaves it.
    pub site_url: Option<String>,
    /// The feed without entries; `None` leaves it.
    pub feed_head: Option<String>,
    /// The body, if it differs from the one before.
    pub body: Option<Body>,
    /// The hub or cloud that the resource advertises.
    pub upstream: UpstreamFinding,
    /// The semantic digest of the body: a body with the same digest is unchanged (P11). `None`
    /// where every byte counts.
    pub semantic_digest: Option<Digest>,
    /// What may be new. What is already known is dropped by the store.
    pub found: NewContent,
    /// Whether nobody is to be told of these records, because they were there before
    /// anybody was watching: the cursors of the subscriptions there are move to the
    /// new head, or first body, with it (rule N5).
    pub silent: bool,
    /// When to fetch next.
    pub next_fetch: DateTime<Utc>,
    /// How much it wants to be polled, for the poll budget.
    pub demand: Demand,
    /// The new status. The store adds the number of records it appended to
    /// `entries_count_since_last_maintenance`.
    pub status: Status,
    /// What the poller remembers.
    pub polling: Polling,
    /// Whether status and polling are what they were when the resource was claimed, but for
    /// their [`PollTimes`](super::poll_times::PollTimes): then the store need not write the rest.
    pub leaves_details: bool,
}
