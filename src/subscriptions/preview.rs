//! Previews of topics: what is at a URL, before anything is stored of it.
//!
//! A preview is one fetch by the client that makes all fetches, in the memory for documents. Each account,
//! and each network of clients without one, may request a limited number of them a minute, because each
//! sends a request to somebody else's server. All clients without an account together have half of what
//! there is: of the previews, and of the memory and the parsers for their documents.
//!
//! A preview has its place until what was found is read, and one time limit for everything.

mod limit;
mod no_preview;

use std::time::Duration;

use tokio::time::{Instant, sleep, timeout_at};

use super::request_checks::check_part;
use super::{CallerNetworks, SubscriptionRefusal, SubscriptionService};
use crate::document_budget::GatewayBusy;
use crate::jobs::poll::{KnownAs, ParsedDocument, discovered_feeds, first_plan, read_document};
use crate::jobs::runner;
use crate::net::{
    FetchError, FetchRequest, FetchResponse, FetchedDocument, HttpClient, Patience, Purpose,
};
use feedgate_core::account::AccountId;
use feedgate_core::registrant::{RegistrantNetwork, Requester};
use feedgate_core::schedule::{PollPlan, ScheduleBounds};
use feedgate_core::store::StoreError;
use feedgate_core::topic::{Topic, host};
use feedgate_core::visibility::{ListedTopics, Visibility};
use feedgate_feed::Context;
use feedgate_feed::documents::{self, DiscoveredFeed};
use feedgate_feed::model::Feed;
use feedgate_feed::parse::{is_feed_list, read_feed_list};

use limit::PreviewPlace;
use no_preview::{PATIENCE, refused_now};

pub(super) use limit::PreviewLimit;
pub use no_preview::NoPreview;

/// The number of entries that a preview keeps of a feed.
const ENTRIES: usize = 10;
/// The part of the time limit that feeds at well-known paths are not looked for in.
const LEFT_FOR_READING: Duration = Duration::from_secs(5);
/// About how long a server takes to refuse a request. A refusal without a request takes as long.
const REFUSED_AFTER: Duration = Duration::from_millis(400);

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
    /// Until when somebody waits for the preview.
    deadline: Instant,
    _place: PreviewPlace,
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

impl SubscriptionService {
    /// Fetches a topic for somebody who may subscribe to it. Nothing is stored.
    pub async fn preview(
        &self,
        topic: &Topic,
        owner: PreviewOwner,
    ) -> Result<TopicPreview, NoPreview> {
        let client = self.preview_client(topic, owner)?;
        check_part(topic)?;
        let requester = owner.requester();
        self.admit_preview(&client, topic, requester).await?;
        let bounds = self.ingest.bounds(runner::now()).await?;
        let deadline = Instant::now() + PATIENCE;
        let place = timeout_at(deadline, self.previews.enter(requester)).await;
        let place = place.map_err(|_| gateway_busy())?;
        if let Some(why) = self.requested_pause(topic, requester).await? {
            return Err(why.into());
        }
        let fetched = fetch_preview(&client, topic, bounds, (place, deadline)).await;
        let mut preview = fetched.map_err(|why| match requester.is_account() {
            true => why,
            false => why.for_anonymous(),
        })?;
        if let PreviewedContent::Other { feeds, listed: None, .. } = &mut preview.content
            && feeds.is_empty()
            && topic.fragment().is_none()
        {
            let found = self.well_known(&client, &preview.document.url);
            feeds.extend(timeout_at(deadline - LEFT_FOR_READING, found).await.ok().flatten());
        }
        Ok(preview)
    }

    /// Counts a preview, and without an account the fetch for it. What the limit of the server refuses does
    /// not count as a preview.
    async fn admit_preview(
        &self,
        client: &HttpClient,
        topic: &Topic,
        requester: Requester,
    ) -> Result<(), NoPreview> {
        let rate_limited = |retry_in| NoPreview::RateLimited { retry_in };
        self.previews.admit(requester, Instant::now()).map_err(rate_limited)?;
        if requester.is_account() {
            return Ok(());
        }
        let admitted = client.admit_first_fetch(&topic.fetch_url()).await;
        admitted.map_err(|retry_in| {
            self.previews.give_back(requester);
            rate_limited(retry_in)
        })
    }

    /// Returns why a topic is not fetched now whose server requested a pause. A client without an account
    /// learns of the pause only if everybody may see that the topic is polled (rule S56).
    async fn requested_pause(
        &self,
        topic: &Topic,
        requester: Requester,
    ) -> Result<Option<FetchError>, StoreError> {
        let Some(known) = self.store.find(topic.as_str()).await? else { return Ok(None) };
        let Some(until) = known.polling.left_alone_after(runner::now()) else { return Ok(None) };
        let visibility = known.exposure.visibility(topic, ListedTopics::Open);
        if requester.is_account() || visibility == Visibility::Listed {
            let host = host(&topic.fetch_url());
            return Ok(Some(FetchError::HostPaused { host, until }));
        }
        sleep(REFUSED_AFTER.mul_f64(0.5 + runner::jitter())).await;
        Ok(Some(refused_now(known.status.http_code)))
    }

    /// Returns the client that fetches a topic for the owner of a preview, if it may be fetched. Whether
    /// documents of a topic were found to come from inside is not looked up for a client without an account:
    /// its fetch goes to public addresses only, and tells it no more than of an unknown topic.
    fn preview_client(
        &self,
        topic: &Topic,
        owner: PreviewOwner,
    ) -> Result<HttpClient, SubscriptionRefusal> {
        let url = topic.fetch_url();
        let client = match owner {
            PreviewOwner::Account(_) => self.fetch.clone(),
            PreviewOwner::Anonymous { network, may_name } => {
                self.check_network(&url, Purpose::Topic, may_name)?;
                self.anonymous_topic_client(network, (&url, may_name)).with_half_of_memory()
            }
        };
        match client.refuses(&url, Purpose::Topic) {
            Some(why) => Err(SubscriptionRefusal::Forbidden(Purpose::Topic, why)),
            None => Ok(client),
        }
    }
}

impl TopicPreview {
    /// Runs `work` on what was found, when a parser is free and as long as somebody waits for it.
    pub async fn read<T: Send + 'static>(
        self,
        work: impl FnOnce(&TopicPreview) -> T + Send + 'static,
    ) -> Result<T, NoPreview> {
        let (memory, deadline) = (self.document.memory.clone(), self.deadline);
        let memory = memory.ok_or(NoPreview::Unreadable)?;
        read_until(deadline, memory.run_blocking(move || work(&self))).await
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
    (place, deadline): (PreviewPlace, Instant),
) -> Result<TopicPreview, NoPreview> {
    let url = topic.fetch_url();
    let request = FetchRequest::unconditional(url.as_str());
    let fetched = timeout_at(deadline, client.get_with(request, Patience::FirstFetch)).await;
    let fetched = fetched.map_err(|_| NoPreview::TooSlow)?;
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
        TopicPreview { document, took, content, plan, deadline, _place: place }
    };
    read_until(deadline, memory.run_blocking(read)).await
}

/// Waits until a document is read, no longer than until `deadline`: the parsers are busy then.
async fn read_until<T>(
    deadline: Instant,
    reading: impl Future<Output = Option<T>>,
) -> Result<T, NoPreview> {
    match timeout_at(deadline, reading).await {
        Ok(read) => read.ok_or(NoPreview::Unreadable),
        Err(_) => Err(gateway_busy()),
    }
}

fn gateway_busy() -> NoPreview {
    FetchError::from(GatewayBusy::for_now()).into()
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
