//! Appends a document that an upstream sent to the log, without a fetch (rule N11).
//!
//! A push may contain less than the whole document and comes without its headers. Therefore it only
//! adds entries; validators, freshness and deletions are left to polls.

use std::time::Duration;

use bytes::Bytes;
use chrono::{DateTime, TimeDelta, Utc};
use tracing::debug;
use url::Url;

use feedgate_core::change_detection::Baseline;
use feedgate_core::poll::{NewContent, Trigger};
use feedgate_core::resource::{Resource, ResourceKind};
use feedgate_core::store::StoreError;
use feedgate_feed::Context;
use feedgate_feed::model::Feed;

use super::Poller;
use super::known_as::is_page_for_feed;
use super::read_document::parse_in_background;
use super::records;
use super::records::{InMemory, PollRecords};

/// How long an upstream waits until there is memory for its document.
const ADMISSION_WAIT: Duration = Duration::from_secs(5);
/// An entry that was published so long before the last good fetch is left to the poll that follows. Some
/// hubs, such as YouTube's, push edits of entries that have left the feed, which would look new.
const LEFT_TO_POLL: TimeDelta = TimeDelta::hours(48);

/// A document, as an upstream sent it.
#[derive(Clone, Debug)]
pub struct PushedDocument {
    /// `Content-Type` as received, if any.
    pub content_type: Option<String>,
    /// The body.
    pub body: Bytes,
}

impl Poller {
    /// Appends the new entries of a document whose signature was verified. Returns the number of
    /// new records. A document that is not a feed adds none, nor one for which there is no memory or no
    /// disk space: the poll that follows reads it.
    pub async fn push(
        &self,
        resource: &Resource,
        pushed: PushedDocument,
        now: DateTime<Utc>,
    ) -> Result<usize, StoreError> {
        // Only a poll can read a part of a document, or a resource that is not known as a feed.
        if resource.topic.fragment().is_some() || resource.kind != ResourceKind::Feed {
            return Ok(0);
        }
        if self.waits_for_disk_space(resource.id).await? {
            return Ok(0);
        }
        let Ok(url) = Url::parse(&resource.fetch_url) else { return Ok(0) };
        let content_type = pushed.content_type.into_iter();
        let headers = content_type.map(|value| ("content-type".to_owned(), value)).collect();
        let known_by = resource.polling.known_by;
        let context = Context { url, headers, received_at: Some(now), known_by };
        let admitted = self.client.documents().admit(&pushed.body, ADMISSION_WAIT).await;
        let Ok(memory) = admitted else {
            debug!(resource = resource.id.0, "no memory for the document that an upstream sent");
            return Ok(0);
        };
        let parsed = parse_in_background(pushed.body, context, &memory).await;
        let Some(Ok(mut feed)) = parsed else {
            debug!(resource = resource.id.0, "the document that an upstream sent is not a feed");
            return Ok(0);
        };
        if is_page_for_feed(&feed, resource) {
            return Ok(0);
        }
        leave_old_to_poll(&mut feed, resource);
        if feed.entries.is_empty() {
            return Ok(0);
        }
        let held =
            InMemory { feed: &mut feed, former: None, memory: &memory, trigger: Trigger::Push };
        let records = records::records_of_feed(&self.store, resource, held, now).await?;
        let Some(PollRecords { found: NewContent::Feed(document), .. }) = records else {
            return Ok(0);
        };
        let appended = self.store.push(resource.id, document, now).await?;
        self.metrics.fetched(0, appended.new);
        self.metrics.traffic().pushed(resource.id, appended.new);
        Ok(appended.new)
    }
}

/// Removes the entries that are left to the poll, which sees where they are in the document.
fn leave_old_to_poll(feed: &mut Feed, resource: &Resource) {
    let Resource { kind, status, polling, .. } = resource;
    let standing = Baseline::from_stored(*kind, status, polling, Trigger::Push);
    let Some(last_good) = standing.last_good else { return };
    feed.entries.retain(|entry| {
        let date = entry.published.or(entry.updated).filter(|_| !entry.date_assumed);
        date.is_none_or(|date| date >= last_good - LEFT_TO_POLL)
    });
}
