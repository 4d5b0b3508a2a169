//! Anything with a URL that is watched, and where it stands.

use chrono::{DateTime, Utc};

use super::polling::Polling;
use super::record::Seq;
use super::status::Status;
use super::topic::Topic;

pub use super::resource_id::{ResourceId, ResourceKind};

/// One watched resource.
#[derive(Clone, Debug, PartialEq)]
pub struct Resource {
    /// Its number, which also names its archive: `/feeds/{id}/recent`.
    pub id: ResourceId,
    /// Its identity, as the first subscriber wrote it.
    pub topic: Topic,
    /// Where it is polled. Differs from the topic after a permanent move (rule P21).
    pub fetch_url: String,
    /// What it has turned out to be.
    pub kind: ResourceKind,
    /// The greatest number in its log; 0 while the log is empty.
    pub head: Seq,
    /// Grows by one whenever the body changes; 0 before the first body.
    pub body_version: i64,
    /// The feed without its entries, as serialized Atom elements; empty for what is
    /// no feed. See `render::atom::head`.
    pub feed_head: String,
    /// When it is fetched next.
    pub next_fetch: DateTime<Utc>,
    /// What subscribers are told about it.
    pub status: Status,
    /// What the poller remembers about it.
    pub polling: Polling,
    /// How many live subscriptions it has; told to its publisher (rule P34).
    pub subscribers: u32,
    /// Until when an upstream is relied on to tell of changes (rule P53); `None` for
    /// whom nobody is.
    pub pushed_until: Option<DateTime<Utc>>,
}
