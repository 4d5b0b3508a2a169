//! The subscription service: starts, renews and ends subscriptions.
//!
//! ```text
//! request ──► fetch the resource, if it has no subscribers ──► validate ──► verify ──► store.subscribe
//!   │                                                        ▲
//!   └► intent, worked off later ─────────────────────────────┘
//! ```
//!
//! Invariants:
//!
//! * Nothing is stored or changed before the callback has agreed (rule D13), unless an account
//!   vouches for it: Superfeedr's API verifies no callbacks by default (row S-1).
//! * A subscription starts after the existing entries: the first fetch of a new resource starts
//!   before its first subscription is stored, so that no subscriber is sent years of old entries, and
//!   before its callback is verified, so that no subscriber misses a later change (`first_fetch`).
//! * Work that cannot be done at once is stored as an intent, and survives a restart.

mod caller_networks;
pub mod cancellation;
mod discovered_feeds;
mod events;
mod feed_headers;
mod first_fetch;
mod followed_pages;
mod handler_verification;
mod held_subscriptions;
mod own_callbacks;
mod own_logs;
mod permits;
mod pings;
mod preview;
mod quotas;
pub mod reading_lists;
mod refusal;
pub mod registration;
mod request_checks;
mod taken_over;
mod validation;
pub mod verification_job;
mod verify;
mod wait_for_delivery;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use tokio::sync::Semaphore;
use tokio::time::Instant;
use url::Url;

use crate::event_log::EventLog;
use crate::jobs::claim_renewal::ClaimRenewal;
use crate::jobs::poll::Poller;
use crate::jobs::runner::{self, Job};
use crate::metrics::Metrics;
use crate::net::HttpClient;
use crate::verification_limits::{VerificationLimits, VerificationPermit};
use feedgate_core::account::AccountId;
use feedgate_core::callback_headers::CallbackHeaders;
use feedgate_core::intent::{DueIntent, Intent, IntentMode};
use feedgate_core::store::{EventArrival, StoreError, SubscriptionFilter};
use feedgate_core::subscription::SubscriptionRequest;
use feedgate_core::topic::{Callback, Topic};
use feedgate_protocol::Protocol;
use feedgate_store::Store;

use first_fetch::{ANSWER_WAIT, FIRST_FETCH_WAIT, SYNC_WAIT};
use held_subscriptions::filter_for;
use preview::PreviewLimit;
use verification_job::VerificationJob;

pub use caller_networks::CallerNetworks;
pub(crate) use caller_networks::is_on_this_machine;
pub use discovered_feeds::{TopicEmptiness, TopicFindings};
pub use followed_pages::{Follow, FollowOutcome, NotFollowed, advertised_feed};
pub use held_subscriptions::{MAX_REPLAYED, replay_cursor};
pub use preview::{NoPreview, PreviewOwner, PreviewedContent, TopicPreview};
pub use quotas::{QuotaExceeded, SubscriptionQuotas};
pub use refusal::SubscriptionRefusal;
pub use validation::NotValidated;
pub use verify::NotVerified;

/// The maximum number of concurrent fetches of resources without subscriptions, caused by anonymous
/// pings.
const PROBES: usize = 8;

/// The maximum number of subscriptions of an account to one resource among which the only one under an
/// address is looked for.
const MOST_COMPARED: usize = 16;

/// Starts and ends subscriptions.
pub struct SubscriptionService {
    store: Arc<Store>,
    /// The address of this gateway, below which its archives are.
    public_url: Option<Url>,
    /// The address that this gateway listens on.
    listen: Option<SocketAddr>,
    quotas: SubscriptionQuotas,
    fetch: HttpClient,
    ingest: Poller,
    metrics: Metrics,
    event_log: EventLog,
    limits: VerificationLimits,
    /// The claims of intents.
    claims: ClaimRenewal<i64>,
    probes: Semaphore,
    previews: PreviewLimit,
    waiting: Semaphore,
    first_fetches: Arc<Semaphore>,
}

/// Whether and when a callback is verified before its subscription changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verification {
    /// The callback is not verified, because an account vouches for it.
    None,
    /// The callback is verified before the request is answered.
    Sync,
    /// The callback is verified after the request is answered.
    Async,
}

/// How long the answer to a subscription request waits for the first fetch of its resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FirstFetchWait {
    /// Not at all, because many subscriptions are requested together: the schedule fetches the
    /// resource.
    None,
    /// A moment, because the answer does not contain the result.
    Moment,
    /// Until the fetch has ended, within limits, because the answer contains the result.
    End,
}

impl FirstFetchWait {
    /// Returns the maximum time, where a moment is `moment`; `None` if no fetch is started.
    fn longest(self, moment: Duration) -> Option<Duration> {
        match self {
            FirstFetchWait::None => None,
            FirstFetchWait::Moment => Some(moment),
            FirstFetchWait::End => Some(FIRST_FETCH_WAIT),
        }
    }
}

/// How a request to subscribe or unsubscribe is carried out.
#[derive(Clone, Copy, Debug)]
pub struct RequestTerms {
    /// Whether and when its callback is verified.
    pub verification: Verification,
    /// How long the answer waits for the first fetch.
    pub wait: FirstFetchWait,
    /// Which private addresses the caller may name.
    pub networks: CallerNetworks,
}

impl RequestTerms {
    /// Returns the terms of a request of an account.
    pub fn of_account(verification: Verification, wait: FirstFetchWait) -> RequestTerms {
        RequestTerms { verification, wait, networks: CallerNetworks::Inner }
    }
}

/// The progress of a subscription request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SubscribeOutcome {
    /// The request has been carried out.
    Now,
    /// The request will be carried out once the callback has agreed.
    Later,
}

impl SubscriptionService {
    /// Creates the service. Must be called within a runtime: the claims of intents are renewed by a task.
    pub fn new(
        store: Arc<Store>,
        fetch: HttpClient,
        ingest: Poller,
        metrics: Metrics,
        event_log: EventLog,
    ) -> SubscriptionService {
        let limits = VerificationLimits::new(store.wake_signals().intents);
        let (renewing, lease) = (Arc::clone(&store), ingest.job_lease());
        let claims = ClaimRenewal::start(VerificationJob::NAME, lease, move |claims, _, until| {
            let store = Arc::clone(&renewing);
            async move { store.renew_intent_claims(&claims, until).await }
        });
        SubscriptionService {
            store,
            public_url: None,
            listen: None,
            quotas: SubscriptionQuotas::NONE,
            fetch,
            ingest,
            metrics,
            event_log,
            limits,
            claims,
            probes: Semaphore::new(PROBES),
            previews: PreviewLimit::default(),
            waiting: Semaphore::new(wait_for_delivery::WAITING),
            first_fetches: Arc::new(Semaphore::new(first_fetch::BEFORE_VERIFICATION)),
        }
    }

    /// Returns the limits of requests to hosts that anybody may name.
    pub(crate) fn verification_limits(&self) -> VerificationLimits {
        self.limits.clone()
    }

    /// Sets the address of this gateway. Subscriptions to archives below it follow the logs that they
    /// show.
    pub fn with_public_url(self, public_url: Url) -> SubscriptionService {
        SubscriptionService { public_url: Some(public_url), ..self }
    }

    /// Sets the address that this gateway listens on.
    pub fn with_listen_address(self, listen: SocketAddr) -> SubscriptionService {
        SubscriptionService { listen: Some(listen), ..self }
    }

    /// Sets how many subscriptions there may be.
    pub fn with_quotas(self, quotas: SubscriptionQuotas) -> SubscriptionService {
        SubscriptionService { quotas, ..self }
    }

    /// Carries out an intent of a WebSub or Superfeedr subscriber, or stores it for later. Requests
    /// that can never succeed are refused at once.
    pub async fn carry_out(
        &self,
        intent: &Intent,
        terms: RequestTerms,
        now: DateTime<Utc>,
    ) -> Result<SubscribeOutcome, SubscriptionRefusal> {
        let RequestTerms { verification, wait, networks } = terms;
        if let Err(why) = self.check_callback_network(&intent.request.callback, networks) {
            self.event_log.record(events::refused(intent, &why, now));
            return Err(why);
        }
        let track = self.described_track(intent, now)?;
        self.check_filter_of_feed(intent, now)?;
        let own_log = self.of_own_log(intent, track.as_ref()).await?;
        let of_feed = self.of_followed_feed(intent).await?;
        let requested = own_log.as_ref().or(of_feed.as_ref()).unwrap_or(intent);
        if requested.mode == IntentMode::Subscribe
            && let Err(why) = self.check_subscription(requested, own_log.is_some(), networks).await
        {
            self.event_log.record(events::refused(requested, &why, now));
            return Err(why);
        }
        let opened = self.opened_for_account(intent, track.as_ref(), now).await?;
        let intent = opened.as_ref().unwrap_or(requested);
        match verification {
            Verification::None => self.vouched(intent, wait, now).await?,
            Verification::Sync => return self.verified_now(intent, wait, now).await,
            Verification::Async => {
                self.check_waiting(&intent.request).await?;
                self.enqueue_after_first_fetch(intent, now).await?;
                self.event_log.record(events::pending(intent, now));
                return Ok(SubscribeOutcome::Later);
            }
        }
        Ok(SubscribeOutcome::Now)
    }

    /// Verifies the callback while the subscriber waits. The intent is stored meanwhile, so that of
    /// two concurrent requests the later one wins.
    async fn verified_now(
        &self,
        intent: &Intent,
        wait: FirstFetchWait,
        now: DateTime<Utc>,
    ) -> Result<SubscribeOutcome, SubscriptionRefusal> {
        self.check_failures(&intent.request).await?;
        let until = self.claims.end_of_claim(runner::now());
        let due = self.store.enqueue_claimed_intent(intent, now, until).await?;
        let _held = self.claims.hold_claim(due.id, due.claim, until);
        self.make_first_fetch(intent, wait.longest(SYNC_WAIT), now).await?;
        let visit = self.visit(&intent.request).await?;
        let validated = self.validate(intent).await?;
        if let Some(why) = validation::refusal(&validated) {
            self.store.end_intent(&due).await?;
            if let Ok(permit) = visit {
                self.send_denial(intent, why, permit);
            }
            return validated.map(|()| SubscribeOutcome::Now).map_err(Into::into);
        }
        if let Err(why) = self.verify(intent, visit).await {
            self.store.end_intent(&due).await?;
            return Err(why.into());
        }
        if let Some(why) = self.open_track(intent, now).await? {
            self.store.end_intent(&due).await?;
            return Err(SubscriptionRefusal::QuotaExceeded(why));
        }
        if !self.apply_intent(&due, now).await? {
            return self.outcome_elsewhere(&due).await;
        }
        self.validate_later(intent, &validated, now).await?;
        Ok(SubscribeOutcome::Now)
    }

    /// Carries out at once what an account vouches for. Intents that still wait for verification
    /// are older, and superseded.
    async fn vouched(
        &self,
        intent: &Intent,
        wait: FirstFetchWait,
        now: DateTime<Utc>,
    ) -> Result<(), SubscriptionRefusal> {
        let request = &intent.request;
        self.store.supersede(request).await?;
        match intent.mode {
            IntentMode::Subscribe => {
                self.make_first_fetch(intent, wait.longest(ANSWER_WAIT), now).await?;
                let validated = self.validate(intent).await?;
                if let Some(why) = validation::refusal(&validated) {
                    if let Some(permit) = self.try_permit(request).await {
                        self.send_denial(intent, why, permit);
                    }
                    return validated.map_err(Into::into);
                }
                let request = &self.with_replaced(request).await?;
                let held = match intent.backfill {
                    true => self.store.subscribe_with_history(request, now).await?,
                    false => self.store.subscribe(request, now).await?,
                };
                self.event_log.record(events::kept(request, &held, now));
                self.end_replaced_elsewhere(request).await?;
                self.validate_later(intent, &validated, now).await?;
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
                self.end_replaced_elsewhere(&self.with_replaced(request).await?).await?;
                self.event_log.record(events::settled(intent, Some(came), now));
            }
        }
        Ok(())
    }

    /// Returns the only callback with which `account` subscribes to `topic`: an unsubscription may
    /// leave the callback out (rows U-2 and U-3).
    pub async fn only_callback(
        &self,
        account: AccountId,
        topic: &Topic,
    ) -> Result<Callback, SubscriptionRefusal> {
        let mut named = Vec::new();
        for topic in self.topics_under(topic, account).await? {
            let filter = SubscriptionFilter {
                account: Some(account),
                topic: Some(topic.as_str().to_owned()),
                limit: MOST_COMPARED,
                ..SubscriptionFilter::default()
            };
            let (listed, total) = self.store.list(&filter).await?;
            if (listed.len() as u64) < total {
                return Err(SubscriptionRefusal::Several(total));
            }
            let listed = listed.into_iter().map(|listed| listed.subscription);
            named.extend(listed.filter(|it| it.topic.subscribed_as() == topic.subscribed_as()));
        }
        match (named.pop(), named.len() as u64) {
            (Some(held), 0) => Ok(held.callback),
            (Some(_), others) => Err(SubscriptionRefusal::Several(1 + others)),
            (None, _) => Err(SubscriptionRefusal::NoSubscription),
        }
    }

    async fn verify(
        &self,
        intent: &Intent,
        visit: Result<VerificationPermit, Duration>,
    ) -> Result<(), NotVerified> {
        let (at, begun) = (runner::now(), Instant::now());
        let verified = match visit {
            _ if intent.request.callback.is_null_device() => Ok(()),
            Ok(visit) => {
                let fetch = self.callback_client(&intent.request, &intent.request.callback);
                let headers = self.callback_headers(&intent.request).await;
                let verified = verify::intent(&fetch, intent, &headers).await;
                match &verified {
                    Err(why) if why.unsent_retry_in().is_some() => visit.ends_unsent(),
                    verified => visit.ends(verified.is_ok()),
                }
                verified
            }
            Err(retry_after) => Err(NotVerified::RateLimited { retry_after }),
        };
        let result = verified.as_ref().map_or_else(NotVerified::code, |()| "ok");
        self.metrics.verified(intent.mode.as_str(), result);
        let event = events::verified(&intent.request, intent.mode.as_str(), &verified, at);
        self.event_log.record(event.lasting(begun.elapsed()));
        verified
    }

    /// Returns the headers for the callback of a request: those that it names, or those of the subscription
    /// that it renews or ends. Without the store, the callback is verified without any.
    async fn callback_headers(&self, request: &SubscriptionRequest) -> CallbackHeaders {
        if request.headers.is_some() || request.account.is_none() {
            return request.headers.clone().unwrap_or_default();
        }
        let filter = filter_for(request.account, &request.topic, &request.callback);
        let listed = self.store.list(&filter).await.map(|(listed, _)| listed).unwrap_or_default();
        let mut held = listed.into_iter().map(|listed| listed.subscription);
        let same = held.find(|held| {
            held.protocol.as_str() == request.protocol.as_str()
                && held.topic.alias() == request.topic.alias()
        });
        same.map(|held| held.headers).unwrap_or_default()
    }

    /// Carries out a verified intent. Returns `false` if a later one has replaced it, or its claim
    /// was lost.
    async fn apply_intent(&self, due: &DueIntent, now: DateTime<Utc>) -> Result<bool, StoreError> {
        let intent = &due.intent;
        self.ensure_first_fetch(intent, now).await?;
        let request = self.with_replaced(&intent.request).await?;
        let due = DueIntent { intent: Intent { request, ..intent.clone() }, ..due.clone() };
        let came = self.store.complete_intent(&due, now).await?;
        self.event_log.record(events::settled(intent, came, now));
        if came.is_some() {
            self.end_replaced_elsewhere(&due.intent.request).await?;
        }
        Ok(came.is_some())
    }
}
