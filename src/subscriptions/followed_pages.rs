//! Subscriptions to the feed that a page advertises, under the address of the page (rule P52).
//!
//! A request may say that the page which it names is to be followed. The page is then fetched once, as a
//! topic is before its first subscription, and the feed that it advertises becomes the topic of the
//! request. The address of the page stays as the alias of that topic, because the subscriber knows no
//! other: it is in the verification and in every notification, and it ends the subscription.
//!
//! * Following is a property of the request: a subscription stays with its feed, whatever the page
//!   advertises later. If the feed fails, a renewal looks at the page again.
//! * A document that is a reading list is followed in another way (`reading_lists.rs`).
//! * A callback has one subscription under an address. The newest request decides whether it is one to
//!   the page or to the feed.

use chrono::{DateTime, Utc};
use url::Url;

use super::first_fetch::FIRST_FETCH_WAIT;
use super::{CallerNetworks, SubscriptionRefusal, SubscriptionService, events};
use crate::jobs::poll::PolledNow;
use crate::net::Purpose;
use feedgate_core::account::AccountId;
use feedgate_core::intent::{Intent, IntentMode};
use feedgate_core::resource::{Resource, ResourceKind};
use feedgate_core::store::{StoreError, SubscriptionFilter};
use feedgate_core::subscription::SubscriptionRequest;
use feedgate_core::topic::{Callback, Topic};
use feedgate_feed::documents::DiscoveredFeed;
use feedgate_feed::parse::is_feed_list;
use feedgate_protocol::Protocol;

/// The maximum length of the address of a followed page and its callback together, in bytes. Both are
/// in one index, and PostgreSQL has no more room in a row of one.
pub(super) const LONGEST_BYTES: usize = 2_500;
const ATOM: &str = "application/atom+xml";

/// What a request says about following the page at its topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Follow {
    /// `follow=true`.
    Requested,
    /// Nothing, and pages are followed by default. One that cannot be read is subscribed to itself.
    ByDefault,
    /// Nothing, and the topic itself is meant, unless the callback is subscribed under its address
    /// already.
    Unsaid,
    /// `follow=false`: the topic itself is meant.
    Refused,
}

impl Follow {
    /// Returns what a request says whose parameter has this value, where `by_default` is the default.
    pub fn new(requested: Option<bool>, by_default: bool) -> Follow {
        match requested {
            Some(true) => Follow::Requested,
            Some(false) => Follow::Refused,
            None if by_default => Follow::ByDefault,
            None => Follow::Unsaid,
        }
    }
}

/// What is subscribed to instead of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FollowOutcome {
    /// This feed, which the page advertises.
    Feed(Topic),
    /// The page itself, because it advertises none.
    None,
    /// The document, which is a reading list, and the feeds that it states.
    List,
    /// The topic, which is no page to follow, or is not to be followed.
    Unsought,
}

/// Why the feed of a page is not subscribed to.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotFollowed {
    /// The page could not be fetched, or not in time; holds the reason.
    #[error("the page could not be read, so its feed is not known: {0}")]
    Unread(String),
    /// The topic is a part of a page.
    #[error("a part of a page has no feed: leave out the fragment, or follow")]
    Part,
    /// The address of the page is too long.
    #[error("the address of the page is too long to be followed")]
    TooLong,
}

impl NotFollowed {
    /// Returns a stable code, listed in `docs/errors.md`.
    pub fn code(&self) -> &'static str {
        match self {
            NotFollowed::Unread(_) => "page_unread",
            NotFollowed::Part => "part_not_followed",
            NotFollowed::TooLong => "page_address_too_long",
        }
    }
}

/// Returns the feed that a page advertises first. Feeds of comments come last, and Atom comes before
/// another format of the same feed.
pub fn advertised_feed(feeds: &[DiscoveredFeed]) -> Option<&DiscoveredFeed> {
    let first = feeds.iter().find(|feed| !is_of_comments(feed)).or(feeds.first())?;
    let is_better = |feed: &&DiscoveredFeed| {
        feed.mime == ATOM && feed.title == first.title && !is_of_comments(feed)
    };
    Some(feeds.iter().find(is_better).unwrap_or(first))
}

fn is_of_comments(feed: &DiscoveredFeed) -> bool {
    [&feed.href, &feed.title].into_iter().any(|text| text.to_lowercase().contains("comments"))
}

impl SubscriptionService {
    /// Returns a request to subscribe as one to the feed of the page that it names, if it is to be
    /// followed, and what is subscribed to instead of the page.
    pub async fn follow(
        &self,
        intent: Intent,
        follow: Follow,
        networks: CallerNetworks,
        now: DateTime<Utc>,
    ) -> Result<(Intent, FollowOutcome), SubscriptionRefusal> {
        let found = self.followed_feed(&intent.request, follow, networks, now).await;
        let found = found.inspect_err(|why| {
            self.event_log.record(events::refused(&intent, why, now));
        })?;
        Ok((followed(intent, follow, &found), found))
    }

    async fn followed_feed(
        &self,
        request: &SubscriptionRequest,
        follow: Follow,
        networks: CallerNetworks,
        now: DateTime<Utc>,
    ) -> Result<FollowOutcome, SubscriptionRefusal> {
        let SubscriptionRequest { topic, callback, account, .. } = request;
        if follow == Follow::Refused || topic.alias().is_some() || self.is_own_log(topic) {
            return Ok(FollowOutcome::Unsought);
        }
        if topic.fragment().is_some() {
            return match follow {
                Follow::Requested => Err(NotFollowed::Part.into()),
                _ => Ok(FollowOutcome::Unsought),
            };
        }
        let known = self.store.subscribed_under(*account, topic.as_str(), Some(callback)).await?;
        // One with headers of its own is a request's by `with_feed_headers`.
        let known = known.into_iter().find(|feed| !feed.has_own_headers());
        if let Some(feed) = known.clone()
            && (follow == Follow::Unsaid || !self.is_failing(&feed).await?)
        {
            return Ok(FollowOutcome::Feed(feed));
        }
        if follow == Follow::Unsaid {
            return Ok(FollowOutcome::Unsought);
        }
        let found = self.feed_of_page(request, networks, now).await;
        match (found, known) {
            (Err(SubscriptionRefusal::NotFollowed(_)) | Ok(FollowOutcome::None), Some(feed)) => {
                Ok(FollowOutcome::Feed(feed))
            }
            (Err(SubscriptionRefusal::NotFollowed(_) | SubscriptionRefusal::Busy(_)), None)
                if follow == Follow::ByDefault =>
            {
                Ok(FollowOutcome::Unsought)
            }
            (found, _) => found,
        }
    }

    /// Fetches the page at the topic of a request, unless it is watched, and returns the feed that it
    /// advertises.
    async fn feed_of_page(
        &self,
        request: &SubscriptionRequest,
        networks: CallerNetworks,
        now: DateTime<Utc>,
    ) -> Result<FollowOutcome, SubscriptionRefusal> {
        let SubscriptionRequest { topic, callback, account, registrant, .. } = request;
        if topic.as_str().len() + callback.as_str().len() > LONGEST_BYTES {
            return Err(NotFollowed::TooLong.into());
        }
        let url = topic.fetch_url();
        if let Some(why) = self.fetch.refuses(&url, Purpose::Topic) {
            return Err(SubscriptionRefusal::Forbidden(Purpose::Topic, why));
        }
        self.check_topic_network(topic, networks).await?;
        let PolledNow { resource, busy } =
            self.ensure_read(topic, (*account, *registrant), now).await?;
        if let Some(feed) = self.advertised_topic(&resource, &url) {
            return Ok(FollowOutcome::Feed(feed.with_alias(Some(topic.as_str().to_owned()))));
        }
        match (resource.kind, busy) {
            (ResourceKind::Feed | ResourceKind::Collection, _) => Ok(FollowOutcome::Unsought),
            (ResourceKind::Other, _) if !resource.status.is_failing() => {
                Ok(self.followed_document(&resource, request).await?)
            }
            (_, Some(busy)) => Err(busy.into()),
            (ResourceKind::Other | ResourceKind::Unknown, None) => {
                Err(NotFollowed::Unread(describe_unread(&resource)).into())
            }
        }
    }

    /// Returns what is followed of a document that advertises no feed. Reading lists are for accounts.
    async fn followed_document(
        &self,
        resource: &Resource,
        request: &SubscriptionRequest,
    ) -> Result<FollowOutcome, StoreError> {
        if request.account.is_none() {
            return Ok(FollowOutcome::None);
        }
        let stored = self.store.body(resource.id).await?;
        let is_list = stored.is_some_and(|(_, body)| is_feed_list(&body.bytes));
        Ok(if is_list { FollowOutcome::List } else { FollowOutcome::None })
    }

    /// Returns the topic of the feed that a page advertises. The credentials of its address are used
    /// for a feed on the same server only (S49).
    fn advertised_topic(&self, resource: &Resource, page: &Url) -> Option<Topic> {
        let topic_of = |feed: &DiscoveredFeed| {
            let url = Url::parse(&feed.href).ok()?;
            let url = with_credentials_of(page, url.clone()).unwrap_or(url);
            Topic::parse(url.as_str()).ok().filter(|topic| topic.fetch_url() != *page)
        };
        let mut feeds = resource.polling.offers.clone();
        feeds.retain(|feed| topic_of(feed).is_some_and(|topic| !self.is_own_log(&topic)));
        topic_of(advertised_feed(&feeds)?)
    }

    async fn is_failing(&self, topic: &Topic) -> Result<bool, StoreError> {
        let resource = self.store.find(topic.as_str()).await?;
        Ok(resource.is_none_or(|resource| resource.status.is_failing()))
    }

    /// Returns the topic to which an account, or a callback without one, is subscribed under the
    /// address `topic` because it follows that page; `topic` itself if it is subscribed to that, or to
    /// neither.
    pub(super) async fn followed_topic(
        &self,
        topic: &Topic,
        account: Option<AccountId>,
        callback: Option<&Callback>,
    ) -> Result<Topic, StoreError> {
        let under = self.store.subscribed_under(account, topic.as_str(), callback).await?;
        let Some(feed) = under.into_iter().next() else { return Ok(topic.clone()) };
        let itself = SubscriptionFilter {
            account: account.or(Some(AccountId::NOBODY)),
            topic: Some(topic.as_str().to_owned()),
            callback: callback.map(|callback| callback.as_str().to_owned()),
            limit: 1,
            ..SubscriptionFilter::default()
        };
        let (listed, _) = self.store.list(&itself).await?;
        Ok(if listed.is_empty() { feed } else { topic.clone() })
    }

    /// Returns the feed of the page whose address is the alias of a topic, if it is that of a page.
    pub fn followed_by<'t>(&self, topic: &'t Topic) -> Option<&'t str> {
        let page = Topic::parse(topic.alias()?).ok()?;
        (!self.is_own_log(&page) && !topic.has_own_headers()).then_some(topic.as_str())
    }

    /// Returns the intent to unsubscribe from the feed that its callback follows, if it names the page.
    pub(super) async fn of_followed_feed(
        &self,
        intent: &Intent,
    ) -> Result<Option<Intent>, StoreError> {
        let SubscriptionRequest { topic, account, callback, .. } = &intent.request;
        if intent.mode == IntentMode::Subscribe || topic.alias().is_some() {
            return Ok(None);
        }
        let feed = self.resolve(topic, *account, Some(callback)).await?;
        Ok((feed != *topic).then(|| {
            let request = SubscriptionRequest { topic: feed, ..intent.request.clone() };
            Intent { request, ..intent.clone() }
        }))
    }

    /// Returns a request with what it replaces: the other subscriptions of its callback under the address
    /// that it names. They end in one transaction with the change that is requested.
    pub(super) async fn with_replaced(
        &self,
        request: &SubscriptionRequest,
    ) -> Result<SubscriptionRequest, StoreError> {
        let SubscriptionRequest { topic, callback, account, .. } = request;
        let mut request = request.clone();
        let Ok(address) = Topic::parse(topic.subscribed_as()) else { return Ok(request) };
        if !self.is_own_log(&address) {
            let under =
                self.store.subscribed_under(*account, address.as_str(), Some(callback)).await?;
            let itself = topic.alias().is_some().then_some(address);
            request.replaces = under.into_iter().chain(itself).collect();
            request.replaces.retain(|other| other != topic);
        }
        Ok(request)
    }

    /// Ends what a request has replaced in other cells of the store, which no transaction reaches together. If
    /// the gateway ends before that, the next request under the address does it.
    pub(super) async fn end_replaced_elsewhere(
        &self,
        request: &SubscriptionRequest,
    ) -> Result<(), StoreError> {
        let SubscriptionRequest { replaces, account, callback, .. } = request;
        for other in replaces {
            let protocol = Some(Protocol::WebSub.as_str());
            self.store.unsubscribe(*account, other, callback, protocol).await?;
        }
        Ok(())
    }
}

/// Returns an intent for what was found.
fn followed(mut intent: Intent, follow: Follow, found: &FollowOutcome) -> Intent {
    let request = &mut intent.request;
    match (found, intent.mode) {
        (FollowOutcome::Feed(feed), IntentMode::Subscribe) => request.topic = feed.clone(),
        (FollowOutcome::List, IntentMode::Subscribe) => {
            request.reading_list = Some(request.topic.as_str().to_owned());
        }
        _ if follow == Follow::Refused => request.reading_list = Some(String::new()),
        _ => {}
    }
    intent
}

/// Returns `url` with the credentials of a page on the same server; `None` if there are none to add.
fn with_credentials_of(page: &Url, mut url: Url) -> Option<Url> {
    let has_own = !url.username().is_empty() || url.password().is_some();
    if url.origin() != page.origin() || has_own {
        return None;
    }
    url.set_username(page.username()).ok()?;
    url.set_password(page.password()).ok()?;
    Some(url)
}

/// Returns why a page could not be read, as a part of a sentence.
fn describe_unread(page: &Resource) -> String {
    match page.status.is_failing() {
        true => page.status.http_message.clone(),
        false => format!("its server did not send it within {} s", FIRST_FETCH_WAIT.as_secs()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p52_the_first_feed_is_followed_and_comments_come_last() {
        let feed = |href: &str, mime: &str, title: &str| DiscoveredFeed {
            href: format!("https://a.test{href}"),
            mime: mime.to_owned(),
            title: title.to_owned(),
        };
        let (rss, atom) = ("application/rss+xml", ATOM);
        #[rustfmt::skip]
        let cases = [
            ("none",              vec![], None),
            ("the first",         vec![feed("/1", rss, "A"), feed("/2", atom, "B")], Some("/1")),
            ("Atom of the same",  vec![feed("/1", rss, "A"), feed("/2", atom, "A")], Some("/2")),
            ("without titles",    vec![feed("/1", rss, ""), feed("/2", atom, "")], Some("/2")),
            ("comments last",     vec![feed("/comments/feed/", rss, "A"), feed("/feed/", rss, "B")], Some("/feed/")),
            ("by their title",    vec![feed("/1", atom, "Comments Feed"), feed("/2", rss, "A")], Some("/2")),
            ("in the query",      vec![feed("/?feed=comments-rss2", rss, "A"), feed("/2", rss, "A")], Some("/2")),
            ("comments alone",    vec![feed("/comments/feed/", rss, "A")], Some("/comments/feed/")),
        ];
        for (why, feeds, want) in cases {
            let want = want.map(|path| format!("https://a.test{path}"));
            assert_eq!(advertised_feed(&feeds).map(|feed| feed.href.clone()), want, "{why}");
        }
    }

    #[test]
    fn s49_the_credentials_of_a_page_are_those_of_feeds_on_its_server() {
        let page = Url::parse("https://u:p@a.test/").unwrap();
        #[rustfmt::skip]
        let cases = [
            ("https://a.test/feed",     Some("https://u:p@a.test/feed")),
            ("https://x:y@a.test/feed", None),
            ("http://a.test/feed",      None),
            ("https://a.test:81/feed",  None),
            ("https://b.test/feed",     None),
        ];
        for (feed, want) in cases {
            let found = with_credentials_of(&page, Url::parse(feed).unwrap());
            assert_eq!(found.as_ref().map(Url::as_str), want, "{feed}");
        }
    }
}
