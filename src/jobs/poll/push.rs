//! Appends a document that an upstream sent to the log, without a fetch (rule N11).
//!
//! A push may contain less than the whole document and comes without its headers. Therefore it only
//! adds entries; validators, freshness and deletions are left to polls.

use bytes::Bytes;
use chrono::{DateTime, Utc};
use tracing::debug;
use url::Url;

use feedgate_core::poll::NewContent;
use feedgate_core::ports::StoreError;
use feedgate_core::resource::{Resource, ResourceKind};
use feedgate_feed::Context;
use feedgate_feed::model::FeedFormat;

use super::Poller;
use super::read_document::parse_in_background;
use super::records;
use super::records::PollRecords;

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
    /// new records. A document that is not a feed adds none: the poll that follows reads it.
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
        let Ok(url) = Url::parse(&resource.fetch_url) else { return Ok(0) };
        let content_type = pushed.content_type.into_iter();
        let headers = content_type.map(|value| ("content-type".to_owned(), value)).collect();
        let known_by = resource.polling.known_by;
        let context = Context { url, headers, received_at: Some(now), known_by };
        let Some(Ok(mut feed)) = parse_in_background(pushed.body, context).await else {
            debug!(resource = resource.id.0, "the document that an upstream sent is not a feed");
            return Ok(0);
        };
        // Entries marked up in a page are not those of the feed that was there before (rule P52).
        if feed.format == FeedFormat::HFeed && resource.polling.format != FeedFormat::HFeed.as_str()
        {
            return Ok(0);
        }
        let records = records::records_of_feed(&*self.store, resource, &mut feed, now).await?;
        let Some(PollRecords { found: NewContent::Feed(document), .. }) = records else {
            return Ok(0);
        };
        let appended = self.store.push(resource.id, document, now).await?;
        self.metrics.fetched(0, appended.new);
        Ok(appended.new)
    }
}
