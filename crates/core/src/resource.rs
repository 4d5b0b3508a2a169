//! A resource: anything with a URL that is polled.

use chrono::{DateTime, Utc};

use feedgate_feed::model::FeedFormat;

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

    /// Returns whether what was read as a feed may be a list of something else in JSON, which earlier
    /// versions took for a feed: no entry was ever found, or ids of entries in JSON had to be generated.
    pub fn may_be_another_list(&self) -> bool {
        const JSON: [FeedFormat; 3] =
            [FeedFormat::Unknown, FeedFormat::JsonFeed10, FeedFormat::JsonFeed11];
        let is_json = JSON.iter().any(|format| self.polling.format == format.as_str());
        self.head == Seq(0) || is_json && self.status.generated_ids
    }

    /// Returns whether the resource was read as a document that is not a feed.
    pub fn is_known_document(&self) -> bool {
        self.kind == ResourceKind::Other && self.body_version > 0
    }

    /// Returns whether the next document is read as if it were the first: nobody is subscribed any more
    /// to the document that was known.
    pub fn is_read_anew(&self) -> bool {
        self.kind == ResourceKind::Other && self.subscribers == 0
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn n05_only_a_feed_with_generated_ids_or_without_entries_may_be_another_list() {
        let may_be = |head: i64, format: FeedFormat, generated_ids: bool| {
            let mut resource = Resource {
                id: ResourceId(1),
                topic: Topic::parse("https://tides.test/feed").unwrap(),
                fetch_url: "https://tides.test/feed".to_owned(),
                kind: ResourceKind::Feed,
                head: Seq(head),
                body_version: 1,
                feed_head: String::new(),
                next_fetch: DateTime::UNIX_EPOCH,
                status: Status::default(),
                polling: Polling::default(),
                subscribers: 1,
                pushed_until: None,
                exposure: Exposure::default(),
            };
            resource.status.generated_ids = generated_ids;
            format.as_str().clone_into(&mut resource.polling.format);
            resource.may_be_another_list()
        };
        assert!(may_be(3, FeedFormat::JsonFeed11, true), "taken for a feed by an earlier version");
        assert!(may_be(3, FeedFormat::Unknown, true));
        assert!(may_be(0, FeedFormat::JsonFeed11, false), "an empty list with a title");
        assert!(!may_be(3, FeedFormat::JsonFeed11, false), "its entries have ids");
        assert!(!may_be(3, FeedFormat::Atom10, true));
    }
}
