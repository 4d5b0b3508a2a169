//! What an upstream sent → the log, without a fetch (rule N11).
//!
//! A push may hold less than the document and comes without its headers. So it adds
//! entries and says nothing else: validators, hints and what is gone are left to polls.

use bytes::Bytes;
use chrono::{DateTime, Utc};
use tracing::debug;
use url::Url;

use feedgate_core::poll::NewContent;
use feedgate_core::ports::StoreError;
use feedgate_core::resource::{Resource, ResourceKind};
use feedgate_feed::Context;
use feedgate_feed::model::FeedFormat;

use super::Ingest;
use super::records::Records;
use super::{observe, records};

/// A document as an upstream sent it.
#[derive(Clone, Debug)]
pub struct Pushed {
    /// `Content-Type` as received, if there was one.
    pub content_type: Option<String>,
    /// The bytes.
    pub body: Bytes,
}

impl Ingest {
    /// Takes in what is new in a document that somebody vouches for. Returns how many
    /// records that were. What is no feed tells nothing: a poll will see.
    pub async fn push(
        &self,
        resource: &Resource,
        pushed: Pushed,
        now: DateTime<Utc>,
    ) -> Result<usize, StoreError> {
        // What a part of a document is, or what is no feed yet, only a poll knows.
        if resource.topic.fragment().is_some() || resource.kind != ResourceKind::Feed {
            return Ok(0);
        }
        let Ok(url) = Url::parse(&resource.fetch_url) else { return Ok(0) };
        let content_type = pushed.content_type.into_iter();
        let headers = content_type.map(|value| ("content-type".to_owned(), value)).collect();
        let known_by = resource.polling.known_by;
        let context = Context { url, headers, received_at: Some(now), known_by };
        let Some(Ok(mut feed)) = observe::parse_aside(pushed.body, context).await else {
            debug!(resource = resource.id.0, "what an upstream sent is no feed");
            return Ok(0);
        };
        // A page with entries marked up in it, but not those of the feed (rule P52).
        if feed.format == FeedFormat::HFeed && resource.polling.format != FeedFormat::HFeed.as_str()
        {
            return Ok(0);
        }
        let records = records::of_feed(&*self.store, resource, &mut feed, now).await?;
        let Some(Records { found: NewContent::Feed(document), .. }) = records else { return Ok(0) };
        let appended = self.store.push(resource.id, document, now).await?;
        self.metrics.fetched(0, appended.new);
        Ok(appended.new)
    }
}
