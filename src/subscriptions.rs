//! Beginning, renewing and ending subscriptions.
//!
//! ```text
//! wish ──► verify ──► make sure of the resource ──► store.subscribe
//!   │        ▲
//!   └► intent, worked off later
//! ```
//!
//! What holds here:
//!
//! * Nothing is stored or changed before the callback has agreed (rule D13), unless
//!   an account vouches for it: Superfeedr's API asks nobody by default (row S-1).
//! * A subscription starts behind what is already there: a new resource is read
//!   before its first subscription, so that nobody is sent years of old entries.
//! * What cannot be done at once waits in the store, and survives a restart.

pub mod cancellation;
mod discovered_feeds;
mod events;
mod host_limits;
mod pings;
pub mod registration;
pub mod verification_job;
mod verify;
mod wait_for_delivery;

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout};
use tracing::debug;
use url::Url;

use crate::event_log::EventLog;
use crate::jobs::poll::Poller;
use crate::jobs::runner;
use crate::metrics::Metrics;
use crate::net::{FetchError, HttpClient, Purpose};
use feedgate_core::account::AccountId;
use feedgate_core::backfill;
use feedgate_core::intent::{Intent, IntentMode};
use feedgate_core::ports::{EventArrival, Store, StoreError, SubscriptionFilter};
use feedgate_core::resource::{Resource, ResourceKind};
use feedgate_core::subscription::{Format, SubscriptionRequest};
use feedgate_core::topic::{Callback, Topic};
use feedgate_feed::documents::{Fragment, InvalidFragment};
use feedgate_protocol::Protocol;

use host_limits::{VerificationLimits, VerificationPermit};

pub use verify::NotVerified;

/// How long a subscriber who waits for an answer is kept waiting for the first look
/// at a resource. A slower one is read later like any other.
const FIRST_LOOK: Duration = Duration::from_secs(10);

/// Resources read at once because a stranger pinged them though nobody watches them.
const PROBES: usize = 8;

/// Makes and ends subscriptions.
pub struct SubscriptionService {
    store: Arc<dyn Store>,
    fetch: HttpClient,
    ingest: Poller,
    metrics: Metrics,
    event_log: EventLog,
    hosts: VerificationLimits,
    probes: Semaphore,
    waiting: Semaphore,
}

/// Whether a callback is asked before its subscription changes, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verification {
    /// Not at all: an account vouches for it.
    None,
    /// Before the request is answered.
    Sync,
    /// After the request is answered.
    Async,
}

/// How far a wish has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SubscribeOutcome {
    /// It is carried out.
    Now,
    /// It will be, once the callback has agreed.
    Later,
}

/// Why a wish was not carried out.
#[derive(Debug, thiserror::Error)]
pub enum SubscriptionRefusal {
    /// The callback did not agree.
    #[error("the callback did not agree")]
    NotVerified(#[from] NotVerified),
    /// The topic or the callback is at an address that no request is made to.
    #[error("no request is made to this address")]
    Forbidden(Purpose, #[source] FetchError),
    /// The topic's fragment names no part of any resource.
    #[error("the part behind # cannot be watched")]
    BadPart(#[source] InvalidFragment),
    /// The resource cannot be read.
    #[error("there was an error reading the resource at URL {0}")]
    Unreadable(String),
    /// Domain, port and path do not make an address.
    #[error("the parts of the handler make no address")]
    NoHandler,
    /// The same was asked once more, or its contrary, before the callback had agreed.
    #[error("a newer request has taken the place of this one")]
    Superseded,
    /// An unsubscription without a callback fits no subscription.
    #[error("there is no subscription to this topic")]
    NoSubscription,
    /// An unsubscription without a callback fits several subscriptions.
    #[error("there are {0} subscriptions to this topic: name the callback")]
    Several(u64),
    /// The store failed.
    #[error("the store failed")]
    Store(#[from] StoreError),
}

impl SubscriptionRefusal {
    /// A word for logs and metrics, listed in `docs/errors.md`.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotVerified(why) => why.code(),
            Self::Forbidden(_, why) => why.code(),
            Self::BadPart(_) => "bad_fragment",
            Self::Unreadable(_) => "unreadable_resource",
            Self::NoHandler => "bad_handler",
            Self::Superseded => "superseded",
            Self::NoSubscription => "no_subscription",
            Self::Several(_) => "several_subscriptions",
            Self::Store(err) => err.code(),
        }
    }
}

impl SubscriptionService {
    /// Puts the parts together.
    pub fn new(
        store: Arc<dyn Store>,
        fetch: HttpClient,
        ingest: Poller,
        metrics: Metrics,
        event_log: EventLog,
    ) -> SubscriptionService {
        let hosts = VerificationLimits::new(store.wake_signals().intents);
        SubscriptionService {
            store,
            fetch,
            ingest,
            metrics,
            event_log,
            hosts,
            probes: Semaphore::new(PROBES),
            waiting: Semaphore::new(wait_for_delivery::WAITING),
        }
    }

    /// Carries out an intent of a WebSub or Superfeedr subscriber, or keeps it for
    /// later. What could never come to anything is refused at once.
    pub async fn carry_out(
        &self,
        intent: &Intent,
        verification: Verification,
        now: DateTime<Utc>,
    ) -> Result<SubscribeOutcome, SubscriptionRefusal> {
        let of_collection = self.of_collection(intent).await?;
        let intent = of_collection.as_ref().unwrap_or(intent);
        if intent.mode == IntentMode::Subscribe
            && let Err(why) = self.check(&intent.request, of_collection.is_some())
        {
            self.event_log.record(events::refused(intent, &why, now));
            return Err(why);
        }
        match verification {
            Verification::None => self.vouched(intent, now).await?,
            Verification::Sync => self.verified_now(intent, now).await?,
            Verification::Async => {
                self.store.enqueue_intent(intent, now).await?;
                self.event_log.record(events::pending(intent, now));
                return Ok(SubscribeOutcome::Later);
            }
        }
        Ok(SubscribeOutcome::Now)
    }

    /// The same for a collection, if its topic is one: that is nowhere to be fetched, so its
    /// new entries are what is sent of it as it is.
    async fn of_collection(&self, intent: &Intent) -> Result<Option<Intent>, StoreError> {
        let found = self.store.find(intent.request.topic.as_str()).await?;
        if found.is_none_or(|resource| resource.kind != ResourceKind::Collection) {
            return Ok(None);
        }
        let mut intent = intent.clone();
        if intent.request.format == Format::Raw {
            intent.request.format = Format::Atom;
        }
        Ok(Some(intent))
    }

    /// Asks the callback while the subscriber waits. Meanwhile the intent is kept like any
    /// other, so that of two requests the newer one has the last word.
    async fn verified_now(
        &self,
        intent: &Intent,
        now: DateTime<Utc>,
    ) -> Result<(), SubscriptionRefusal> {
        let id = self.store.enqueue_intent(intent, now + verification_job::CLAIM).await?;
        let visit = self.visit(&intent.request.topic, &intent.request.callback).await?;
        if let Err(why) = self.verify(intent, visit).await {
            self.store.end_intent(id).await?;
            return Err(why.into());
        }
        match self.settle(id, intent, now).await? {
            true => Ok(()),
            false => Err(SubscriptionRefusal::Superseded),
        }
    }

    /// Does at once what an account vouches for; what still waits to be verified is older.
    async fn vouched(&self, intent: &Intent, now: DateTime<Utc>) -> Result<(), StoreError> {
        let request = &intent.request;
        self.store.supersede(request).await?;
        match intent.mode {
            IntentMode::Subscribe => {
                self.look_for(intent, now).await?;
                let held = match intent.backfill {
                    true => self.store.subscribe_with_history(request, now).await?,
                    false => self.store.subscribe(request, now).await?,
                };
                self.event_log.record(events::kept(request, &held, now));
            }
            IntentMode::Unsubscribe => {
                let protocol = Some(Protocol::WebSub.as_str());
                let ended = self.store.unsubscribe(
                    request.account,
                    &request.topic,
                    &request.callback,
                    protocol,
                );
                let came = if ended.await? { EventArrival::Ended } else { EventArrival::Nothing };
                self.event_log.record(events::settled(intent, Some(came), now));
            }
        }
        Ok(())
    }

    /// WebSub `#subscription-validation` leaves it to the hub which topics and callbacks
    /// it accepts. An address that is fixed in the URL is judged before the answer; where
    /// a name leads is told by the first request.
    fn check(
        &self,
        request: &SubscriptionRequest,
        is_collection: bool,
    ) -> Result<(), SubscriptionRefusal> {
        let refused = |url: &Url, purpose| match self.fetch.refuses(url, purpose) {
            Some(why) => Err(SubscriptionRefusal::Forbidden(purpose, why)),
            None => Ok(()),
        };
        if !is_collection {
            refused(&request.topic.fetch_url(), Purpose::Topic)?;
        }
        check_part(&request.topic)?;
        match request.callback.is_null_device() {
            true => Ok(()),
            false => refused(&request.callback.url(), Purpose::Callback),
        }
    }

    /// The only callback with which `account` subscribes to `topic`: unsubscribing
    /// may leave it out (rows U-2 and U-3).
    pub async fn only_callback(
        &self,
        account: AccountId,
        topic: &Topic,
    ) -> Result<Callback, SubscriptionRefusal> {
        let filter = SubscriptionFilter {
            account: Some(account),
            topic: Some(topic.as_str().to_owned()),
            limit: 2,
            ..SubscriptionFilter::default()
        };
        let (listed, total) = self.store.list(&filter).await?;
        match listed.into_iter().next() {
            Some(listed) if total == 1 => Ok(listed.subscription.callback),
            Some(_) => Err(SubscriptionRefusal::Several(total)),
            None => Err(SubscriptionRefusal::NoSubscription),
        }
    }

    /// A place for asking a callback what is in its name; `None` if its host is asked too
    /// much (rule S26). Who is subscribed already has agreed before, and need not wait.
    async fn visit(
        &self,
        topic: &Topic,
        callback: &Callback,
    ) -> Result<Option<VerificationPermit>, StoreError> {
        if let Some(visit) = self.hosts.try_visit(callback) {
            return Ok(Some(visit));
        }
        let filter = SubscriptionFilter {
            topic: Some(topic.as_str().to_owned()),
            callback: Some(callback.as_str().to_owned()),
            limit: 1,
            ..SubscriptionFilter::default()
        };
        match self.store.list(&filter).await?.1 {
            0 => Ok(self.hosts.wait(callback).await),
            _ => Ok(Some(VerificationPermit::free())),
        }
    }

    async fn verify(
        &self,
        intent: &Intent,
        visit: Option<VerificationPermit>,
    ) -> Result<(), NotVerified> {
        let (at, begun) = (runner::now(), Instant::now());
        let verified = match visit {
            _ if intent.request.callback.is_null_device() => Ok(()),
            Some(visit) => {
                let verified = verify::intent(&self.fetch, intent).await;
                visit.ends(verified.is_ok());
                verified
            }
            None => Err(NotVerified::RateLimited),
        };
        let result = verified.as_ref().map_or_else(NotVerified::code, |()| "ok");
        self.metrics.verified(intent.mode.as_str(), result);
        let event = events::verified(&intent.request, intent.mode.as_str(), &verified, at);
        self.event_log.record(event.lasting(begun.elapsed()));
        verified
    }

    /// Does what a verified intent says; `false` if a newer one has taken its place.
    async fn settle(
        &self,
        id: i64,
        intent: &Intent,
        now: DateTime<Utc>,
    ) -> Result<bool, StoreError> {
        if intent.mode == IntentMode::Subscribe {
            self.look_for(intent, now).await?;
        }
        let came = self.store.complete_intent(id, intent, now).await?;
        self.event_log.record(events::settled(intent, came, now));
        Ok(came.is_some())
    }

    /// Polls the resource of an intent, unless its history was requested: the current entries come
    /// after the history and wait for it.
    async fn look_for(&self, intent: &Intent, now: DateTime<Utc>) -> Result<(), StoreError> {
        let topic = &intent.request.topic;
        if intent.backfill && backfill::is_unread(&self.store.ensure(topic, now).await?) {
            return Ok(());
        }
        self.ensure_read(topic, now).await.map(drop)
    }

    /// Whether a resource is not read yet because its history comes first.
    async fn awaits_history(&self, resource: &Resource) -> Result<bool, StoreError> {
        if !backfill::is_unread(resource) {
            return Ok(false);
        }
        let found = self.store.backfills(&[resource.id]).await?;
        Ok(found.iter().any(|backfill| backfill.holds && backfill.ended_at.is_none()))
    }

    /// Stores the resource if it is unknown, and polls it unless it is polled already.
    async fn ensure_read(&self, topic: &Topic, now: DateTime<Utc>) -> Result<Resource, StoreError> {
        let resource = self.store.ensure(topic, now).await?;
        let is_watched = resource.subscribers > 0 && resource.status.last_fetch.is_some();
        if is_watched || resource.kind == ResourceKind::Collection {
            return Ok(resource);
        }
        if self.awaits_history(&resource).await? {
            return Ok(resource);
        }
        match timeout(FIRST_LOOK, self.ingest.poll_now(&resource)).await {
            Ok(polled) => polled,
            Err(_) => {
                debug!(resource = resource.id.0, "a new resource takes long to answer");
                Ok(resource)
            }
        }
    }
}

/// A part that could never be found is refused before anybody waits for it.
fn check_part(topic: &Topic) -> Result<(), SubscriptionRefusal> {
    match topic.fragment().map(Fragment::parse).transpose() {
        Ok(_) => Ok(()),
        Err(why) => Err(SubscriptionRefusal::BadPart(why)),
    }
}
