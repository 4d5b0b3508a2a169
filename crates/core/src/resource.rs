//! A resource: anything with a URL that is polled.

use chrono::{DateTime, Utc};

use super::polling::Polling;
use super::record::Seq;
use super::status::Status;
use super::topic::Topic;
use super::visibility::{Exposure, ListedTopics, Visibility};

pub use super::resource_id::{ResourceId, ResourceKind};

/// A resource.
#[derive(Clone, Debug, PartialEq)]
pub struct Resource {
    /// The number in the store, which is part of the archive URL: `/feeds/{id}/recent`.
    pub id: ResourceId,
    /// The topic, as the first subscriber wrote it, which identifies the resource.
    pub topic: Topic,
    /// The fetch URL, which differs from the topic after a permanent move (P21).
    pub fetch_url: String,
    /// The kind, as found by polls.
    pub kind: ResourceKind,
    /// The number of the newest record; 0 while the log is empty.
    pub head: Seq,
    /// The version of the newest body, incremented whenever the body changes; 0 before the first
    /// body.
    pub body_version: i64,
    /// The feed without its entries, as serialized Atom elements; empty if the resource is not a
    /// feed. See `render::atom::head`.
    pub feed_head: String,
    /// The time of the next fetch.
    pub next_fetch: DateTime<Utc>,
    /// The status sent to subscribers.
    pub status: Status,
    /// The polling state.
    pub polling: Polling,
    /// The number of active subscriptions, which is sent to the publisher (P34).
    pub subscribers: u32,
    /// Until when the notifications of an upstream are relied on (P53); `None` if there is no such
    /// upstream.
    pub pushed_until: Option<DateTime<Utc>>,
    /// What decides who may see the resource.
    pub exposure: Exposure,
}

impl Resource {
    /// Returns who may see the resource. A collection belongs to whom it was made for, which its own
    /// endpoints check.
    pub fn visibility(&self, listed: ListedTopics) -> Visibility {
        match self.kind {
            ResourceKind::Collection => Visibility::Private,
            ResourceKind::Unknown | ResourceKind::Feed | ResourceKind::Other => {
                self.exposure.visibility(&self.topic, listed)
            }
        }
    }

    /// Returns whether everybody may read the resource who knows its address.
    pub fn is_readable(&self) -> bool {
        self.visibility(ListedTopics::Open) > Visibility::Private
    }

    /// Returns whether lists, searches and tracks of everybody may contain the resource.
    pub fn is_listed(&self, listed: ListedTopics) -> bool {
        self.visibility(listed) == Visibility::Listed
    }
}
