//! Previews of topics: what is at a URL, before anything is stored of it.
//!
//! A preview is one fetch by the client that makes all fetches, in the memory for documents. Each account,
//! and each network of clients without one, may request a limited number of them a minute, because each
//! sends a request to somebody else's server. All clients without an account together have half of what
//! there is.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Instant, timeout_at};

use super::request_checks::check_part;
use super::{CallerNetworks, SubscriptionRefusal, SubscriptionService};
use crate::fair_shares::{FairShare, FairShares};
use crate::jobs::poll::{KnownAs, ParsedDocument, discovered_feeds, first_plan, read_document};
use crate::jobs::runner;
use crate::net::{
    FetchError, FetchRequest, FetchResponse, FetchedDocument, HttpClient, Patience, Purpose,
};
use feedgate_core::account::AccountId;
use feedgate_core::poll::Validators;
use feedgate_core::registrant::{RegistrantNetwork, Requester};
use feedgate_core::schedule::{PollPlan, ScheduleBounds};
use feedgate_core::store::StoreError;
use feedgate_core::topic::{Topic, host};
use feedgate_feed::Context;
use feedgate_feed::documents::{self, DiscoveredFeed};
use feedgate_feed::model::Feed;
use feedgate_feed::parse::{is_feed_list, read_feed_list};

/// The maximum number of previews a minute of one account, or of one network without an account: more than
/// somebody looks at.
const PER_MINUTE: usize = 20;
/// The maximum number of all previews a minute, which bounds the memory for counting them.
const ALL_PER_MINUTE: usize = 600;
/// The maximum number of previews a minute without an account.
const ANONYMOUS_PER_MINUTE: usize = ALL_PER_MINUTE / 2;
const MINUTE: Duration = Duration::from_secs(60);
/// The maximum number of previews in progress.
const CONCURRENCY: usize = 8;
/// The maximum number of previews in progress without an account.
const ANONYMOUS_CONCURRENCY: usize = CONCURRENCY / 2;
/// How long a preview waits for the server and for its turn.
const PATIENCE: Duration = Duration::from_secs(20);
/// The number of entries that a preview keeps of a feed.
const ENTRIES: usize = 10;

/// For whom a preview is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PreviewOwner {
    /// An account.
    Account(AccountId),
    /// A client without an account.
    Anonymous {
        /// The network of the client.
        network: RegistrantNetwork,
        /// The addresses that the client may name.
        may_name: CallerNetworks,
    },
}

/// What was found at the URL of a topic.
#[derive(Debug)]
pub struct TopicPreview {
    /// The document. Its URL is that of the response, which differs from the topic after redirects.
    pub document: Box<FetchedDocument>,
    /// The time that the fetch took.
    pub took: Duration,
    /// The content.
    pub content: PreviewedContent,
    /// When the topic would be fetched again if it were subscribed to.
    pub plan: PollPlan,
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
        /// The feeds that the document links to, if it is a page.
        linked: Vec<DiscoveredFeed>,
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
    /// The owner of the preview requested too many, or too many were requested of the server.
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

/// Counts the previews of the last minute, and those in progress.
#[derive(Debug)]
pub(super) struct PreviewLimit {
    recent: Mutex<VecDeque<(Instant, Requester)>>,
    places: Semaphore,
    anonymous_places: Semaphore,
    networks: FairShares<Requester>,
}

/// The place of a preview in progress, until dropped.
struct PreviewPlace<'l> {
    _place: Option<SemaphorePermit<'l>>,
    _anonymous: Option<(FairShare<Requester>, Option<SemaphorePermit<'l>>)>,
}

impl Default for PreviewLimit {
    fn default() -> PreviewLimit {
        PreviewLimit {
            recent: Mutex::default(),
            places: Semaphore::new(CONCURRENCY),
            anonymous_places: Semaphore::new(ANONYMOUS_CONCURRENCY),
            networks: FairShares::new(ANONYMOUS_CONCURRENCY as u64),
        }
    }
}

impl PreviewLimit {
    /// Counts a preview. The error is the time after which one is possible.
    fn admit(&self, requester: Requester, now: Instant) -> Result<(), Duration> {
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        while recent.front().is_some_and(|(at, _)| *at + MINUTE <= now) {
            recent.pop_front();
        }
        let own = recent.iter().filter(|(_, held)| *held == requester);
        let anonymous = recent.iter().filter(|(_, held)| !held.is_account());
        let oldest = match (own.clone().count(), requester.is_account()) {
            (PER_MINUTE.., _) => own.clone().next(),
            _ if recent.len() >= ALL_PER_MINUTE => recent.front(),
            (_, false) if anonymous.clone().count() >= ANONYMOUS_PER_MINUTE => {
                anonymous.clone().next()
            }
            _ => None,
        };
        if let Some((at, _)) = oldest {
            return Err((*at + MINUTE - now).max(Duration::from_secs(1)));
        }
        recent.push_back((now, requester));
        Ok(())
    }

    /// Waits for a place. One without an account waits for others without one first.
    async fn enter(&self, requester: Requester) -> PreviewPlace<'_> {
        let anonymous = match requester.is_account() {
            true => None,
            false => {
                let share = self.networks.enter(requester, 1).await;
                Some((share, self.anonymous_places.acquire().await.ok()))
            }
        };
        // The semaphores are never closed.
        PreviewPlace { _place: self.places.acquire().await.ok(), _anonymous: anonymous }
    }
}

impl SubscriptionService {
    /// Fetches a topic for somebody who may subscribe to it. Nothing is stored.
    pub async fn preview(
        &self,
        topic: &Topic,
        owner: PreviewOwner,
    ) -> Result<TopicPreview, NoPreview> {
        let client = self.preview_client(topic, owner).await?;
        check_part(topic)?;
        if let Some(known) = self.store.find(topic.as_str()).await?
            && let Some(until) = known.polling.left_alone_after(runner::now())
        {
            let host = host(&topic.fetch_url());
            return Err(FetchError::HostPaused { host, until }.into());
        }
        let rate_limited = |retry_in| NoPreview::RateLimited { retry_in };
        let requester = owner.requester();
        self.previews.admit(requester, Instant::now()).map_err(rate_limited)?;
        if !requester.is_account() {
            client.admit_first_fetch(&topic.fetch_url()).await.map_err(rate_limited)?;
        }
        let bounds = self.ingest.bounds(runner::now()).await?;
        let until = Instant::now() + PATIENCE;
        let place = timeout_at(until, self.previews.enter(requester)).await;
        let _place = place.map_err(|_| NoPreview::TooSlow)?;
        let fetched = timeout_at(until, fetch_preview(&client, topic, bounds)).await;
        let mut preview = fetched.map_err(|_| NoPreview::TooSlow)??;
        if let PreviewedContent::Other { feeds, listed: None, .. } = &mut preview.content
            && feeds.is_empty()
            && topic.fragment().is_none()
        {
            feeds.extend(self.well_known(&client, &preview.document.url).await);
        }
        Ok(preview)
    }

    /// Returns the client that fetches a topic for the owner of a preview, if it may be fetched.
    async fn preview_client(
        &self,
        topic: &Topic,
        owner: PreviewOwner,
    ) -> Result<HttpClient, SubscriptionRefusal> {
        let url = topic.fetch_url();
        let client = match owner {
            PreviewOwner::Account(_) => self.fetch.clone(),
            PreviewOwner::Anonymous { network, may_name } => {
                self.check_topic_network(topic, may_name).await?;
                self.anonymous_topic_client(network, (&url, may_name))
            }
        };
        match client.refuses(&url, Purpose::Topic) {
            Some(why) => Err(SubscriptionRefusal::Forbidden(Purpose::Topic, why)),
            None => Ok(client),
        }
    }
}

impl PreviewOwner {
    fn requester(self) -> Requester {
        match self {
            PreviewOwner::Account(account) => {
                Requester::new(Some(account), RegistrantNetwork::UNKNOWN)
            }
            PreviewOwner::Anonymous { network, .. } => Requester::new(None, network),
        }
    }
}

async fn fetch_preview(
    client: &HttpClient,
    topic: &Topic,
    bounds: ScheduleBounds,
) -> Result<TopicPreview, NoPreview> {
    let (url, validators) = (topic.fetch_url(), Validators::default());
    let request =
        FetchRequest { url: url.as_str(), validators: &validators, subscribers: 0, feed_id: None };
    let fetched = client.get_with(request, Patience::FirstFetch).await;
    // A request without validators is not answered with "not modified".
    let FetchResponse::Document(document) = fetched.result? else {
        return Err(NoPreview::Unreadable);
    };
    let memory = document.memory.clone().ok_or(NoPreview::Unreadable)?;
    let (topic, took) = (topic.clone(), fetched.took);
    let read = move || {
        let now = runner::now();
        let (body, context) = (&document.body, document.context(now));
        let parsed = read_document(body, &context, topic.fragment(), KnownAs::Nothing);
        // Of the first period, the longest time.
        let plan = first_plan(&document, &parsed, &bounds, (now, 1.0));
        let content = read_content(parsed, body, &context);
        TopicPreview { document, took, content, plan }
    };
    memory.run_blocking(read).await.ok_or(NoPreview::Unreadable)
}

fn read_content(parsed: ParsedDocument, body: &[u8], context: &Context) -> PreviewedContent {
    match parsed {
        ParsedDocument::Feed(mut feed) => {
            let entries = feed.entries.len();
            feed.entries.truncate(ENTRIES);
            feed.entries.shrink_to_fit();
            let linked = match feed.format.is_page() {
                true => discovered_feeds(context, documents::linked_feeds(body, context)),
                false => Vec::new(),
            };
            PreviewedContent::Feed { feed, entries, linked }
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
    use tokio::time::timeout;

    use super::*;

    #[test]
    fn an_account_may_request_some_previews_a_minute() {
        let (limit, began) = (PreviewLimit::default(), Instant::now());
        let admit = |account, after_s| {
            let requester = PreviewOwner::Account(AccountId(account)).requester();
            limit.admit(requester, began + Duration::from_secs(after_s))
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

    #[test]
    fn clients_without_an_account_leave_half_of_the_previews_to_accounts() {
        let (limit, now) = (PreviewLimit::default(), Instant::now());
        let network = |n: usize| {
            let client = Some(std::net::IpAddr::from([198, 18, n as u8, 1]));
            let (network, may_name) =
                (RegistrantNetwork::from_client(client), CallerNetworks::Public);
            PreviewOwner::Anonymous { network, may_name }.requester()
        };
        let admitted = |n| (0..100).filter(|_| limit.admit(network(n), now).is_ok()).count();
        assert_eq!(admitted(0), PER_MINUTE, "one network");
        let all: usize = (1..100).map(admitted).sum();
        assert_eq!(PER_MINUTE + all, ANONYMOUS_PER_MINUTE);
        let account = PreviewOwner::Account(AccountId(1)).requester();
        assert_eq!(limit.admit(account, now), Ok(()));
    }

    #[tokio::test(start_paused = true)]
    async fn slow_servers_of_others_keep_no_account_waiting() {
        let limit = PreviewLimit::default();
        let network = |n: i64| Requester::new(None, RegistrantNetwork::from_number(-n * 1_000));
        let account = Requester::new(Some(AccountId(1)), RegistrantNetwork::UNKNOWN);
        let mut held = Vec::new();
        for n in 1..100 {
            held.extend(timeout(MINUTE, limit.enter(network(n))).await.ok());
        }
        assert_eq!(held.len(), ANONYMOUS_CONCURRENCY);
        for _ in 0..CONCURRENCY - ANONYMOUS_CONCURRENCY {
            held.push(timeout(MINUTE, limit.enter(account)).await.unwrap());
        }
        held.clear();
        assert!(timeout(MINUTE, limit.enter(network(1))).await.is_ok());
    }
}
