//! The first fetch of a resource, which tells what existed before its first subscription.
//!
//! * It starts when the request arrives, before the callback is verified: whoever confirms a
//!   subscription is notified of every change from then on.
//! * It waits for no other fetch of its host, and the answer to a request waits for it only briefly,
//!   unless the answer is to contain what it finds. If a subscription is stored before the fetch has
//!   ended, a ping decides whether what it finds is a change (`baseline.rs` of the store).

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use feedgate_core::account::AccountId;
use feedgate_core::backfill;
use feedgate_core::intent::{Intent, IntentMode};
use feedgate_core::registrant::RegistrantNetwork;
use feedgate_core::resource::{Resource, ResourceKind};
use feedgate_core::store::StoreError;
use feedgate_core::subscription::SubscriptionRequest;
use feedgate_core::topic::Topic;
use tokio::time::timeout;
use tracing::{debug, warn};
use url::Url;

use super::SubscriptionService;
use crate::document_budget::GatewayBusy;
use crate::jobs::poll::{PolledNow, StartedPoll};
use crate::jobs::runner;
use crate::net::Patience;

/// The maximum time that a subscriber waits for a first fetch whose result is requested, or that
/// precedes the verification of a callback that nobody waits for. A slower resource is fetched later
/// like any other.
pub(super) const FIRST_FETCH_WAIT: Duration = Duration::from_secs(10);
/// The maximum time that the verification of a callback is delayed by a first fetch while the
/// subscriber waits for the answer.
pub(super) const SYNC_WAIT: Duration = Duration::from_secs(2);
/// The maximum time that any other answer waits for a first fetch: most servers respond in this time,
/// and people do not notice it.
pub(super) const ANSWER_WAIT: Duration = Duration::from_millis(300);
/// The maximum number of first fetches that precede a verification at the same time and that nobody
/// waits for. A document may occupy 10 MiB.
pub(super) const BEFORE_VERIFICATION: usize = 64;
/// How long a first fetch without a subscription since then tells what existed before.
const VALID_FOR: TimeDelta = TimeDelta::hours(1);

/// Whether the first fetch of a resource was started.
enum FirstFetch {
    /// The resource has subscribers, its history is loaded first, or it is never fetched.
    Unneeded,
    /// Too many were requested from its network; holds the time after which one may start.
    Delayed(Duration),
    Started(Box<StartedPoll>),
}

impl SubscriptionService {
    /// Starts the first fetch of the resource of an intent; returns `None` if it has subscribers
    /// already, or if too many others were requested from its network. If its history was requested, the current entries follow the history and are fetched
    /// after it.
    pub(super) async fn start_first_fetch(
        &self,
        intent: &Intent,
        now: DateTime<Utc>,
    ) -> Result<Option<StartedPoll>, StoreError> {
        let SubscriptionRequest { topic, registrant, .. } = &intent.request;
        // The log of a track is not fetched, and is made when its callback has agreed.
        if intent.mode != IntentMode::Subscribe || self.track_of(topic).is_some() {
            return Ok(None);
        }
        let resource = self.store.ensure_for(topic, *registrant, now).await?;
        if intent.backfill && backfill::is_unread(&resource) {
            return Ok(None);
        }
        let requester = (intent.request.account, *registrant);
        match self.start_unless_read(&resource, requester).await? {
            FirstFetch::Started(started) => Ok(Some(*started)),
            FirstFetch::Unneeded | FirstFetch::Delayed(_) => Ok(None),
        }
    }

    /// Starts the first fetch of the resource of an intent, and waits for it no longer than `longest`.
    /// With `None`, the fetch is left to the schedule: nobody is sent what it finds (rule N5).
    pub(super) async fn make_first_fetch(
        &self,
        intent: &Intent,
        longest: Option<Duration>,
        now: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        let Some(longest) = longest else { return Ok(()) };
        if let Some(started) = self.start_first_fetch(intent, now).await? {
            await_first_fetch(started, longest).await?;
        }
        Ok(())
    }

    /// Starts the first fetch of a resource for an account, or for anybody (`None`). For anybody, too
    /// many from one network are left to the schedule, which has the same limit.
    async fn start_unless_read(
        &self,
        resource: &Resource,
        (account, registrant): (Option<AccountId>, RegistrantNetwork),
    ) -> Result<FirstFetch, StoreError> {
        let is_watched = resource.subscribers > 0 && resource.status.last_fetch.is_some();
        if is_watched || resource.kind == ResourceKind::Collection {
            return Ok(FirstFetch::Unneeded);
        }
        if self.awaits_history(resource).await? {
            return Ok(FirstFetch::Unneeded);
        }
        if account.is_none()
            && let Ok(url) = Url::parse(&resource.fetch_url)
            && let Err(retry_in) =
                self.fetch.for_anonymous(registrant).admit_first_fetch(&url).await
        {
            return Ok(FirstFetch::Delayed(retry_in));
        }
        let ingest = match account {
            Some(_) => self.ingest.for_account(true),
            None => self.ingest.for_anonymous(registrant),
        };
        let started = ingest.start_poll(resource, Patience::FirstFetch).await?;
        Ok(FirstFetch::Started(Box::new(started)))
    }

    /// Starts the first fetch of a verified intent, unless it was made when the request arrived. The
    /// claim of the resource makes it the first one, however long it takes.
    pub(super) async fn ensure_first_fetch(
        &self,
        intent: &Intent,
        now: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        if intent.mode != IntentMode::Subscribe {
            return Ok(());
        }
        let known = self.store.find(intent.request.topic.as_str()).await?;
        let last_fetch = known.and_then(|resource| resource.status.last_fetch);
        if last_fetch.is_some_and(|at| at + VALID_FOR > now) {
            return Ok(());
        }
        self.start_first_fetch(intent, now).await.map(drop)
    }

    /// Stores an intent that is verified after its request is answered, and after the first fetch of
    /// its resource, unless that takes too long.
    pub(super) async fn enqueue_after_first_fetch(
        &self,
        intent: &Intent,
        now: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        let Ok(place) = Arc::clone(&self.first_fetches).try_acquire_owned() else {
            return self.store.enqueue_intent(intent, now).await.map(drop);
        };
        let Some(started) = self.start_first_fetch(intent, now).await? else {
            return self.store.enqueue_intent(intent, now).await.map(drop);
        };
        // If this node fails, the claim ends by itself.
        let until = now + FIRST_FETCH_WAIT;
        let due = self.store.enqueue_claimed_intent(intent, now, until).await?;
        let store = Arc::clone(&self.store);
        tokio::spawn(async move {
            if let Err(err) = await_first_fetch(started, FIRST_FETCH_WAIT).await {
                warn!(intent = due.id, code = err.code(), "the first fetch was not stored");
            }
            if let Err(err) = store.release_intent(&due, runner::now()).await {
                warn!(intent = due.id, code = err.code(), "a verification is delayed");
            }
            drop(place);
        });
        Ok(())
    }

    /// Returns whether a resource has not been fetched yet because its history is loaded first.
    pub(super) async fn awaits_history(&self, resource: &Resource) -> Result<bool, StoreError> {
        if !backfill::is_unread(resource) {
            return Ok(false);
        }
        let found = self.store.backfills(&[resource.id]).await?;
        Ok(found.iter().any(|backfill| backfill.holds && backfill.ended_at.is_none()))
    }

    /// Ensures that the resource is stored, for an account or a stranger in this network, and fetches it
    /// unless it has subscriptions already.
    pub(super) async fn ensure_read(
        &self,
        topic: &Topic,
        requester: (Option<AccountId>, RegistrantNetwork),
        now: DateTime<Utc>,
    ) -> Result<PolledNow, StoreError> {
        let resource = self.store.ensure_for(topic, requester.1, now).await?;
        let started = match self.start_unless_read(&resource, requester).await? {
            FirstFetch::Started(started) => *started,
            FirstFetch::Unneeded => return Ok(PolledNow::idle(resource)),
            FirstFetch::Delayed(retry_in) => {
                return Ok(PolledNow { resource, busy: Some(GatewayBusy { retry_in }) });
            }
        };
        let polled = await_first_fetch(started, FIRST_FETCH_WAIT).await?;
        Ok(polled.unwrap_or_else(|| PolledNow::idle(resource)))
    }
}

/// Waits for a first fetch. Returns the resource after it, or `None` if it has not ended in time.
pub(super) async fn await_first_fetch(
    started: StartedPoll,
    wait: Duration,
) -> Result<Option<PolledNow>, StoreError> {
    match timeout(wait, started.result()).await {
        Ok(polled) => polled.map(Some),
        Err(_) => {
            debug!("the first fetch of a resource takes longer than its subscriber waits");
            Ok(None)
        }
    }
}
