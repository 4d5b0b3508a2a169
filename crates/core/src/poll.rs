//! The result of one poll.

use chrono::{DateTime, TimeDelta, Utc};
use feedgate_feed::Body;

use super::change_detection::FeedDocument;
use super::claim::ClaimToken;
pub use super::polling::{Polling, Validators};
use super::record::Digest;
use super::resource_id::ResourceKind;
use super::schedule::Demand;
use super::status::Status;
use super::upstream::UpstreamFinding;
use super::visibility::SourceNetwork;

/// Why a poll was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// The resource was due.
    Schedule,
    /// A ping reported a change, or somebody requested a fetch.
    Ping,
    /// An upstream sent new content.
    Push,
}

impl Trigger {
    /// Returns the word in the store and in metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Trigger::Schedule => "schedule",
            Trigger::Ping => "ping",
            Trigger::Push => "push",
        }
    }
}

/// The new content for the log.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum NewContent {
    /// No new content.
    #[default]
    Nothing,
    /// The entries of a feed. All of them are included, because the classification compares them.
    Feed(FeedDocument),
    /// The new content of a resource that is not a feed (rule N12).
    Revision {
        /// The Atom id of the revision.
        entry_id: String,
        /// The revision as one self-contained Atom `<entry>` element.
        atom: String,
    },
}

/// Everything that one poll stores.
#[derive(Clone, Debug, PartialEq)]
pub struct Poll {
    /// The claim under which the poll was made. [`ClaimToken::NONE`] is that of a resource that
    /// nobody has claimed.
    pub claim: ClaimToken,
    /// When the poll ended.
    pub at: DateTime<Utc>,
    /// The reason for the poll.
    pub trigger: Trigger,
    /// Whether the server responded successfully. The status does not show it, because it may be
    /// older than this poll (rule P32).
    pub answered_well: bool,
    /// The kind of the resource; `None` leaves it unchanged.
    pub kind: Option<ResourceKind>,
    /// The new fetch URL; `None` leaves it unchanged.
    pub fetch_url: Option<String>,
    /// Where the documents of this poll came from, if that says more than was known; `None` leaves it
    /// unchanged.
    pub source_network: Option<SourceNetwork>,
    /// The web site of the feed, by which weblogs ping; `None` leaves it unchanged.
    pub site_url: Option<String>,
    /// The feed without entries; `None` leaves it unchanged.
    pub feed_head: Option<String>,
    /// The body, if it differs from the previous one.
    pub body: Option<Body>,
    /// The hub or cloud that the resource advertises.
    pub upstream: UpstreamFinding,
    /// The semantic digest of the body: a body with the same digest is unchanged (rule P11). `None`
    /// if every byte counts.
    pub semantic_digest: Option<Digest>,
    /// Entries that may be new. The store drops those that are known.
    pub found: NewContent,
    /// Whether nobody is notified of the new records, because they existed before the first
    /// subscription: the cursors of existing subscriptions are moved to the new head, or to the
    /// first body (rule N5).
    pub silent: bool,
    /// Whether nobody was subscribed when the poll began, so that subscriptions made since are not
    /// notified of a new body either (rule N5).
    pub is_baseline: bool,
    /// The time of the next fetch.
    pub next_fetch: DateTime<Utc>,
    /// The demand for polls, for the poll budget.
    pub demand: Demand,
    /// The new status. The store adds the number of appended records to
    /// `entries_count_since_last_maintenance`.
    pub status: Status,
    /// The new polling state.
    pub polling: Polling,
    /// Whether status and polling state equal those of the claimed resource except for their
    /// [`PollTimes`](super::poll_times::PollTimes), so that the store need not write the rest.
    pub leaves_details: bool,
}

impl Poll {
    /// Moves what was read by a clock that was set by `by` since.
    pub fn move_times(&mut self, by: TimeDelta) {
        self.at += by;
        self.next_fetch += by;
        self.polling.left_alone_until = self.polling.left_alone_until.map(|until| until + by);
    }
}
