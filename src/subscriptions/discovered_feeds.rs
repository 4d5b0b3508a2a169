//! Discovery of feeds for clients that subscribed to a page and may want its feed (rule P52).
//!
//! The client is shown the feeds, and chooses. The topic is replaced on request only
//! (`followed_pages.rs`).

use std::time::Duration;

use tokio::time::timeout;
use url::Url;

use super::SubscriptionService;
use crate::net::{FetchRequest, FetchResponse, HttpClient};
use feedgate_core::record::Seq;
use feedgate_core::redaction;
use feedgate_core::resource::ResourceKind;
use feedgate_core::store::StoreError;
use feedgate_core::topic::Topic;
use feedgate_feed::Context;
use feedgate_feed::documents::{self, DiscoveredFeed};
use feedgate_feed::parse;

/// The time limit for all guesses together. Fetches from one host run one at a time with a pause,
/// so only a few fit in.
const PATIENCE: Duration = Duration::from_secs(15);

/// The maximum length of a media type, in characters.
const MIME_CHARS: usize = 100;

/// What the fetches of a topic have found so far, for the answer to a subscription.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TopicFindings {
    /// The feeds that the page at the topic links to; none if it is not a page.
    pub feeds: Vec<DiscoveredFeed>,
    /// Why the last fetch failed, if it did.
    pub failure: Option<String>,
    /// Whether the topic was read and has no entries.
    pub emptiness: Option<TopicEmptiness>,
}

/// What a topic is that was read and has no entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TopicEmptiness {
    /// A document without entries, of which no part was named.
    NoFeed,
    /// A feed without entries.
    EmptyFeed,
}

impl SubscriptionService {
    /// Returns what the fetches of `topic` have found so far. If it is a page that links to no feed
    /// and the client asked for discovery, the well-known paths are tried.
    pub async fn findings(&self, topic: &Topic, look: bool) -> Result<TopicFindings, StoreError> {
        let Some(resource) = self.store.find(topic.as_str()).await? else {
            return Ok(TopicFindings::default());
        };
        let (status, mut feeds) = (resource.status, resource.polling.offers);
        if resource.kind == ResourceKind::Feed {
            feeds.clear();
        }
        if look && feeds.is_empty() && resource.kind == ResourceKind::Other {
            feeds.extend(self.well_known(&self.fetch, &topic.fetch_url()).await);
        }
        let emptiness = match resource.kind {
            _ if status.is_failing() || status.last_parse.is_none() => None,
            ResourceKind::Other if topic.fragment().is_none() => Some(TopicEmptiness::NoFeed),
            ResourceKind::Feed if resource.head == Seq::NONE => Some(TopicEmptiness::EmptyFeed),
            _ => None,
        };
        let failure = status.is_failing().then_some(status.http_message);
        Ok(TopicFindings { feeds, failure, emptiness })
    }

    /// Returns the first feed at a well-known path of a page. Anybody can name any page, so few
    /// pages are tried at once, each request for a client without an account counts at the limit of the
    /// server, and a redirect counts as not found.
    pub(super) async fn well_known(
        &self,
        client: &HttpClient,
        page: &Url,
    ) -> Option<DiscoveredFeed> {
        let _place = self.probes.try_acquire().ok()?;
        let look = async {
            for place in documents::WELL_KNOWN_PATHS {
                let Ok(url) = page.join(place) else { continue };
                if client.is_for_anonymous() && client.admit_first_fetch(&url).await.is_err() {
                    return None;
                }
                if let Some(offer) = feed_at(client, url).await {
                    return Some(offer);
                }
            }
            None
        };
        timeout(PATIENCE, look).await.unwrap_or_default()
    }
}

async fn feed_at(client: &HttpClient, url: Url) -> Option<DiscoveredFeed> {
    let ask = FetchRequest::unconditional(url.as_str());
    let fetched = client.get(ask).await;
    let Ok(FetchResponse::Document(document)) = fetched.result else { return None };
    if document.url != url {
        return None;
    }
    let context = Context::new(url.clone());
    let body = document.body.clone();
    let parsed = document.memory.as_ref()?.run_blocking(move || parse::parse(&body, &context));
    let feed = parsed.await?.ok()?;
    let title = feed.title.as_ref().map(|title| title.to_plain()).unwrap_or_default();
    let mime = document.headers.get(http::header::CONTENT_TYPE)?.to_str().ok()?;
    let mime = redaction::line(mime, MIME_CHARS);
    DiscoveredFeed::new(&url, url.as_str(), &mime, &title).filter(|_| !feed.format.is_page())
}
