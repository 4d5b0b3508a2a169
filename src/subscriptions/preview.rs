//! Previews of topics: what is at a URL, before anything is stored of it.
//!
//! A preview is one fetch by the client that makes all fetches, in the memory for documents. Each account
//! may request a limited number of them a minute, because each sends a request to somebody else's
//! server.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout};
use url::Url;

use super::request_checks::check_part;
use super::{SubscriptionRefusal, SubscriptionService};
use crate::jobs::poll::{KnownAs, ParsedDocument, read_document};
use crate::jobs::runner;
use crate::net::{FetchError, FetchRequest, FetchResponse, Patience, Purpose};
use feedgate_core::account::AccountId;
use feedgate_core::poll::Validators;
use feedgate_core::store::StoreError;
use feedgate_core::topic::{Topic, host};
use feedgate_feed::documents::DiscoveredFeed;
use feedgate_feed::model::Feed;
use feedgate_feed::parse::{is_feed_list, read_feed_list};

/// The maximum number of previews of one account a minute: more than somebody looks at.
const PER_MINUTE: usize = 20;
/// The maximum number of previews of all accounts a minute, which bounds the memory for counting them.
const ALL_PER_MINUTE: usize = 600;
const MINUTE: Duration = Duration::from_secs(60);
/// The maximum number of previews in progress.
const CONCURRENCY: usize = 8;
/// How long a preview waits for the server and for its turn.
const PATIENCE: Duration = Duration::from_secs(20);
/// The number of entries that a preview keeps of a feed.
const ENTRIES: usize = 10;

/// What was found at the URL of a topic.
#[derive(Debug)]
pub struct TopicPreview {
    /// The URL of the response, which differs from the topic after redirects.
    pub url: Url,
    /// The length of the document in bytes.
    pub bytes: usize,
    /// The time that the fetch took.
    pub took: Duration,
    /// The content.
    pub content: PreviewedContent,
}

/// The content of a document.
#[derive(Debug)]
pub enum PreviewedContent {
    /// A feed with its first entries.
    Feed {
        /// The feed.
        feed: Box<Feed>,
        /// The number of entries in the document.
        entries: usize,
    },
    /// Another document, which is watched for changes.
    Other {
        /// The kind, as words for people: `an HTML page`.
        kind: &'static str,
        /// The feeds that the document links to.
        feeds: Vec<DiscoveredFeed>,
        /// The number of feeds that the document states, if it is a reading list.
        listed: Option<usize>,
    },
    /// The fragment of the topic selects nothing, with the reason as a sentence.
    FragmentNotFound(String),
}

/// The reason why there is no preview.
#[derive(Debug, thiserror::Error)]
pub enum NoPreview {
    /// The account requested too many.
    #[error("too many previews, please try again in {} s", .retry_in.as_secs())]
    RateLimited {
        /// After how long another one is possible.
        retry_in: Duration,
    },
    /// The topic can never be subscribed to.
    #[error(transparent)]
    Refused(#[from] SubscriptionRefusal),
    /// The fetch failed.
    #[error(transparent)]
    Failed(#[from] FetchError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The server took too long.
    #[error("the server did not send the document within {} s", PATIENCE.as_secs())]
    TooSlow,
    /// The document could not be read.
    #[error("the document could not be read")]
    Unreadable,
}

/// Counts the previews of the last minute.
#[derive(Debug)]
pub(super) struct PreviewLimit {
    recent: Mutex<VecDeque<(Instant, AccountId)>>,
    places: Semaphore,
}

impl Default for PreviewLimit {
    fn default() -> PreviewLimit {
        PreviewLimit { recent: Mutex::default(), places: Semaphore::new(CONCURRENCY) }
    }
}

impl PreviewLimit {
    /// Counts a preview of an account. The error is the time after which one is possible.
    fn admit(&self, account: AccountId, now: Instant) -> Result<(), Duration> {
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        while recent.front().is_some_and(|(at, _)| *at + MINUTE <= now) {
            recent.pop_front();
        }
        let own = recent.iter().filter(|(_, held)| *held == account);
        let oldest = match own.clone().count() {
            PER_MINUTE.. => own.clone().next(),
            _ if recent.len() >= ALL_PER_MINUTE => recent.front(),
            _ => None,
        };
        if let Some((at, _)) = oldest {
            return Err((*at + MINUTE - now).max(Duration::from_secs(1)));
        }
        recent.push_back((now, account));
        Ok(())
    }
}

impl SubscriptionService {
    /// Fetches a topic for somebody who may subscribe to it. Nothing is stored.
    pub async fn preview(
        &self,
        topic: &Topic,
        account: AccountId,
    ) -> Result<TopicPreview, NoPreview> {
        if let Some(why) = self.fetch.refuses(&topic.fetch_url(), Purpose::Topic) {
            return Err(SubscriptionRefusal::Forbidden(Purpose::Topic, why).into());
        }
        check_part(topic)?;
        if let Some(known) = self.store.find(topic.as_str()).await?
            && let Some(until) = known.polling.left_alone_after(runner::now())
        {
            let host = host(&topic.fetch_url());
            return Err(FetchError::HostPaused { host, until }.into());
        }
        let admitted = self.previews.admit(account, Instant::now());
        admitted.map_err(|retry_in| NoPreview::RateLimited { retry_in })?;
        let fetched = async {
            // The semaphore is never closed.
            let _place = self.previews.places.acquire().await.ok();
            self.fetch_preview(topic).await
        };
        let mut preview = timeout(PATIENCE, fetched).await.map_err(|_| NoPreview::TooSlow)??;
        if let PreviewedContent::Other { feeds, listed: None, .. } = &mut preview.content
            && feeds.is_empty()
            && topic.fragment().is_none()
        {
            feeds.extend(self.well_known(&preview.url).await);
        }
        Ok(preview)
    }

    async fn fetch_preview(&self, topic: &Topic) -> Result<TopicPreview, NoPreview> {
        let (url, validators) = (topic.fetch_url(), Validators::default());
        let request = FetchRequest {
            url: url.as_str(),
            validators: &validators,
            subscribers: 0,
            feed_id: None,
        };
        let fetched = self.fetch.get_with(request, Patience::FirstFetch).await;
        // A request without validators is not answered with "not modified".
        let FetchResponse::Document(document) = fetched.result? else {
            return Err(NoPreview::Unreadable);
        };
        let memory = document.memory.clone().ok_or(NoPreview::Unreadable)?;
        let (url, bytes) = (document.url.clone(), document.body.len());
        let topic = topic.clone();
        let read = move || {
            let (body, context) = (&document.body, document.context(runner::now()));
            let parsed = read_document(body, &context, topic.fragment(), KnownAs::Nothing);
            read_content(parsed, body)
        };
        let content = memory.run_blocking(read).await.ok_or(NoPreview::Unreadable)?;
        Ok(TopicPreview { url, bytes, took: fetched.took, content })
    }
}

fn read_content(parsed: ParsedDocument, body: &[u8]) -> PreviewedContent {
    match parsed {
        ParsedDocument::Feed(mut feed) => {
            let entries = feed.entries.len();
            feed.entries.truncate(ENTRIES);
            feed.entries.shrink_to_fit();
            PreviewedContent::Feed { feed, entries }
        }
        ParsedDocument::Other(content, _) => {
            let list = is_feed_list(body).then(|| read_feed_list(body).ok()).flatten();
            let listed = list.map(|list| list.feeds.len());
            PreviewedContent::Other { kind: content.kind, feeds: content.feeds, listed }
        }
        ParsedDocument::NotAFeed(reason) => PreviewedContent::FragmentNotFound(reason.to_string()),
        ParsedDocument::FragmentNotFound(reason) | ParsedDocument::NotMapped(reason) => {
            PreviewedContent::FragmentNotFound(reason)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_may_request_some_previews_a_minute() {
        let (limit, began) = (PreviewLimit::default(), Instant::now());
        let admit = |account, after_s| {
            limit.admit(AccountId(account), began + Duration::from_secs(after_s))
        };
        for n in 0..PER_MINUTE {
            assert_eq!(admit(1, n as u64), Ok(()));
        }
        assert_eq!(admit(1, 30), Err(Duration::from_secs(30)));
        assert_eq!(admit(2, 30), Ok(()), "another account");
        assert_eq!(admit(1, 60), Ok(()), "the first is a minute ago");
        assert_eq!(admit(1, 60), Err(Duration::from_secs(1)));
        for n in 0..ALL_PER_MINUTE {
            let _ = admit(100 + n as i64, 200);
        }
        assert_eq!(admit(3, 210), Err(Duration::from_secs(50)), "all accounts together");
    }
}
