//! One reading of a reading list: subscribes to its feeds, ends what was made for feeds that were removed, and
//! reports what came of each.

use std::collections::{HashMap, HashSet};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use chrono::{DateTime, Utc};
use futures_util::future::BoxFuture;
use futures_util::{FutureExt, StreamExt, TryStreamExt, stream};
use url::form_urlencoded::Serializer;

use super::{ListedSubscriptions, MAX_LISTED_FEEDS, StatedFeeds, TOO_MANY_CHANGES};
use crate::jobs::runner;
use crate::subscriptions::{
    CallerNetworks, FirstFetchWait, RequestTerms, SubscriptionRefusal, SubscriptionService,
    Verification,
};
use feedgate_core::intent::{Intent, IntentMode};
use feedgate_core::reading_list::{
    DueReadingList, ReadingListFeed, ReadingListReport, ReadingListState,
};
use feedgate_core::store::{ListedSubscription, StoreError};
use feedgate_core::subscription::{Subscription, SubscriptionRequest};
use feedgate_core::topic::Topic;
use feedgate_core::visibility::SourceNetwork;

/// The maximum number of removed feeds that a report names.
const MAX_REMOVED: usize = 500;
/// The maximum number of subscriptions that are made for a list in an hour: all of them, and as many others.
const MAX_MADE_IN_HOUR: usize = 2 * MAX_LISTED_FEEDS;
/// The feeds of a list that are subscribed to at the same time.
const CONCURRENCY: usize = 4;

/// A list that is read.
pub(super) struct Reading<'r> {
    service: &'r SubscriptionService,
    /// The subscription to the document.
    list: &'r ListedSubscription,
    /// The report before.
    before: HashMap<&'r str, &'r ReadingListFeed>,
    /// What was made for the list before.
    listed: ListedSubscriptions,
    now: DateTime<Utc>,
    /// Why the account may have no more subscriptions.
    quota: OnceLock<Outcome>,
    /// How many subscriptions may be made, which count already as made for the list in this hour.
    reserved: usize,
    /// How many attempts to make one there were.
    attempts: AtomicUsize,
}

/// What came of a feed.
#[derive(Clone, Debug)]
struct Outcome {
    state: ReadingListState,
    code: &'static str,
    reason: String,
}

impl From<ReadingListState> for Outcome {
    fn from(state: ReadingListState) -> Outcome {
        Outcome { state, code: "", reason: String::new() }
    }
}

impl<'r> Reading<'r> {
    /// Begins to read a list that states these feeds, for which `listed` was made before.
    pub(super) async fn begin(
        service: &'r SubscriptionService,
        (due, list): (&'r DueReadingList, &'r ListedSubscription),
        stated: &StatedFeeds,
        listed: ListedSubscriptions,
    ) -> Result<Reading<'r>, StoreError> {
        let now = runner::now();
        let new = stated.urls.iter().filter(|url| !listed.contains_key(*url));
        let new = new.count().min(MAX_LISTED_FEEDS);
        let reserved = service.store.reserve_listed(due.id, new, MAX_MADE_IN_HOUR, now).await?;
        let before = due.report.feeds.iter().map(|feed| (feed.url.as_str(), feed)).collect();
        let (quota, attempts) = (OnceLock::new(), AtomicUsize::new(0));
        Ok(Reading { service, list, before, listed, now, quota, reserved, attempts })
    }

    /// Ends the reading: what was reserved and not made does not count.
    pub(super) async fn end(&self, due: &DueReadingList) -> Result<(), StoreError> {
        let unused = self.reserved.saturating_sub(self.attempts.load(Ordering::Relaxed));
        self.service.store.return_listed(due.id, unused, self.now).await
    }

    /// Brings the subscriptions into step with what is stated, and returns the report.
    pub(super) async fn carry_out(
        &self,
        stated: StatedFeeds,
    ) -> Result<ReadingListReport, StoreError> {
        let StatedFeeds { urls, problem } = stated;
        let (first, rest) = urls.split_at(urls.len().min(MAX_LISTED_FEEDS));
        let held = rest.iter().filter(|url| self.listed.contains_key(*url));
        let taken: Vec<&String> = first.iter().chain(held).collect();
        let omitted = urls.len() - taken.len();
        let mut reading: Vec<BoxFuture<'_, Result<ReadingListFeed, StoreError>>> = Vec::new();
        for url in taken {
            reading.push(self.read_feed(url).boxed());
        }
        let mut feeds: Vec<ReadingListFeed> =
            stream::iter(reading).buffered(CONCURRENCY).try_collect().await?;
        let stated: HashSet<&str> = urls.iter().map(String::as_str).collect();
        match problem {
            None => feeds.extend(self.end_unstated(&stated).await?),
            Some(_) => feeds.extend(self.kept_feeds(&stated)),
        }
        let (read_at, stated) = (Some(self.now), urls.len());
        Ok(ReadingListReport { read_at, problem, stated, omitted, feeds })
    }

    /// Subscribes to a feed that is stated, unless that was done before.
    async fn read_feed(&self, url: &str) -> Result<ReadingListFeed, StoreError> {
        let outcome = match self.listed.get(url) {
            Some((made, is_digest)) => self.renew_if_changed(made, *is_digest).await?.into(),
            None => self.subscribe(url).await?,
        };
        Ok(self.report(url, outcome))
    }

    /// Gives a subscription the options of the list, if they have changed since, unless its owner has changed
    /// or ended it meanwhile.
    async fn renew_if_changed(
        &self,
        made: &Subscription,
        is_digest: bool,
    ) -> Result<ReadingListState, StoreError> {
        if made.topic.alias().is_some() {
            return Ok(ReadingListState::Subscribed); // a log of this gateway decides about its format
        }
        let mut wanted = self.request(made.topic.clone());
        let reading_list = wanted.reading_list.clone();
        let request = SubscriptionRequest { digest: is_digest, reading_list, ..made.to_request() };
        if request == wanted {
            return Ok(ReadingListState::Subscribed);
        }
        wanted.signing.ends_secret = wanted.signing.secret.is_none();
        let list = made.reading_list.clone();
        let change = move |held: &ListedSubscription| match held.subscription.reading_list == list {
            true => Ok(wanted),
            false => Err(ReadingListState::Existing),
        };
        let changed = self.service.store.change_subscription(made.id, change, self.now).await?;
        Ok(match changed {
            Ok(true) => ReadingListState::Subscribed,
            Ok(false) => ReadingListState::Ended,
            Err(state) => state,
        })
    }

    /// Subscribes to a feed for which there is no subscription of the list. One that was ended is not made
    /// again.
    async fn subscribe(&self, url: &str) -> Result<Outcome, StoreError> {
        let topic = match Topic::parse(url) {
            Ok(topic) => topic,
            Err(why) => return Ok(refused("bad_topic", why.to_string())),
        };
        let Subscription { account, callback, .. } = &self.list.subscription;
        if let Some(account) = account
            && self.service.find_held(*account, &topic, callback).await?.is_some()
        {
            return Ok(ReadingListState::Existing.into());
        }
        let had = self.before.get(url).map(|feed| feed.state);
        if matches!(had, Some(ReadingListState::Subscribed | ReadingListState::Ended)) {
            return Ok(ReadingListState::Ended.into());
        }
        if let Some(quota) = self.quota.get() {
            return Ok(quota.clone());
        }
        if self.attempts.fetch_add(1, Ordering::Relaxed) >= self.reserved {
            return Ok(refused(TOO_MANY_CHANGES, "the list has changed too often".to_owned()));
        }
        // Whoever writes a public document does not have the rights of the account that follows it.
        if self.list.resource.exposure.source_network != SourceNetwork::Inner
            && let Err(refusal) =
                self.service.check_topic_network(&topic, CallerNetworks::Public).await
        {
            return Ok(refused(refusal.code(), refusal.to_string()));
        }
        let terms = RequestTerms::of_account(Verification::None, FirstFetchWait::None);
        let intent = self.intent(topic);
        match self.service.carry_out(&intent, terms, self.now).await {
            Ok(_) => Ok(ReadingListState::Subscribed.into()),
            Err(SubscriptionRefusal::Store(err)) => Err(err),
            Err(refusal) => {
                let outcome = refused(refusal.code(), refusal.to_string());
                if matches!(refusal, SubscriptionRefusal::QuotaExceeded(_)) {
                    self.quota.get_or_init(|| outcome.clone());
                }
                Ok(outcome)
            }
        }
    }

    fn intent(&self, topic: Topic) -> Intent {
        let request = self.request(topic);
        let parameters = [
            ("hub.mode", IntentMode::Subscribe.as_str()),
            ("hub.topic", request.topic.as_str()),
            ("hub.callback", request.callback.as_str()),
        ];
        let parameters = Serializer::new(String::new()).extend_pairs(parameters).finish();
        Intent { parameters, ..Intent::new(IntentMode::Subscribe, request) }
    }

    /// Returns the request for a subscription with the options of the list.
    fn request(&self, topic: Topic) -> SubscriptionRequest {
        let ListedSubscription { subscription: list, delivery, .. } = self.list;
        SubscriptionRequest {
            topic,
            digest: delivery.next_digest_at.is_some(),
            reading_list: Some(list.reading_list.clone()),
            ..list.to_request()
        }
    }

    /// Ends what was made for feeds that are not stated, and returns the feeds that were removed from the
    /// list, the newest first.
    async fn end_unstated(
        &self,
        stated: &HashSet<&str>,
    ) -> Result<Vec<ReadingListFeed>, StoreError> {
        let mut removed = Vec::new();
        for (url, (made, _)) in self.listed.iter().filter(|(url, _)| !stated.contains(url.as_str()))
        {
            self.service.end_listed(made).await?;
            removed.push(self.report(url, ReadingListState::Removed.into()));
        }
        let had = [ReadingListState::Subscribed, ReadingListState::Removed];
        let others = self.before.iter().filter(|(url, feed)| {
            had.contains(&feed.state) && !stated.contains(*url) && !self.listed.contains_key(**url)
        });
        removed.extend(others.map(|(url, _)| self.report(url, ReadingListState::Removed.into())));
        removed.sort_by(|one, other| other.at.cmp(&one.at).then_with(|| one.url.cmp(&other.url)));
        removed.truncate(MAX_REMOVED);
        Ok(removed)
    }

    /// Returns the feeds that are not stated by a document which may have stated more.
    fn kept_feeds(&self, stated: &HashSet<&str>) -> Vec<ReadingListFeed> {
        let had = [ReadingListState::Subscribed, ReadingListState::Ended];
        let before = self
            .before
            .values()
            .filter(|feed| had.contains(&feed.state) && !stated.contains(feed.url.as_str()));
        let mut kept: Vec<_> = before.map(|feed| (*feed).clone()).collect();
        // What is subscribed to comes first, and is not forgotten.
        kept.sort_by_cached_key(|feed| (!self.listed.contains_key(&feed.url), feed.url.clone()));
        kept.truncate(2 * MAX_LISTED_FEEDS);
        kept
    }

    fn report(&self, url: &str, outcome: Outcome) -> ReadingListFeed {
        let Outcome { state, code, reason } = outcome;
        let before = self.before.get(url).filter(|before| before.state == state);
        let at = before.map_or(self.now, |before| before.at);
        ReadingListFeed { url: url.to_owned(), state, code: code.to_owned(), reason, at }
    }
}

fn refused(code: &'static str, reason: String) -> Outcome {
    Outcome { state: ReadingListState::Refused, code, reason }
}
