//! Permits for the requests that a subscription request causes (rule S26).

use std::time::Duration;

use chrono::{DateTime, Utc};

use super::{NotVerified, SubscriptionRefusal, SubscriptionService};
use crate::verification_limits::{VerificationPermit, VerificationTarget};
use feedgate_core::account::AccountId;
use feedgate_core::registrant::Requester;
use feedgate_core::store::{StoreError, SubscriptionFilter};
use feedgate_core::subscription::SubscriptionRequest;
use feedgate_core::topic::{Callback, Topic};

/// The maximum number of open subscriptions of one callback to one topic that are examined: one in
/// each protocol.
const MOST_OF_ONE: usize = 4;

/// The maximum number of requests of one network of strangers that wait for verification. Those at hosts
/// that agree are verified within seconds.
const MOST_WAITING: u64 = 1_000;
/// The time after which some of them have usually been verified.
const WAITING_RETRY_AFTER: Duration = Duration::from_secs(60);

impl SubscriptionService {
    /// Returns a permit to verify a callback, or after how long one may be free if its host or its
    /// network has too many verifications. A callback that is subscribed already has agreed before,
    /// and needs no permit.
    pub(super) async fn visit(
        &self,
        request: &SubscriptionRequest,
    ) -> Result<Result<VerificationPermit, Duration>, StoreError> {
        let SubscriptionRequest { topic, callback, .. } = request;
        let Some(target) = self.verification_target(callback, request.requester()).await else {
            return Ok(Ok(VerificationPermit::free()));
        };
        if let Some(visit) = self.limits.try_visit(&target) {
            return Ok(Ok(visit));
        }
        match self.is_subscriber(topic, callback).await? {
            true => Ok(Ok(VerificationPermit::free())),
            false => Ok(self.limits.wait(&target).await),
        }
    }

    /// Refuses a verification that would be refused for earlier failures at the same host, before
    /// anything else is done for it.
    pub(super) async fn check_failures(
        &self,
        request: &SubscriptionRequest,
    ) -> Result<(), SubscriptionRefusal> {
        let SubscriptionRequest { topic, callback, .. } = request;
        let target = self.verification_target(callback, request.requester()).await;
        let Some(target) = target else { return Ok(()) };
        let Some(retry_after) = self.limits.retry_after(&target) else { return Ok(()) };
        if self.is_subscriber(topic, callback).await? {
            return Ok(());
        }
        Err(NotVerified::RateLimited { retry_after }.into())
    }

    /// Refuses a request of a stranger whose network has too many that wait for verification, unless the
    /// callback is subscribed already: it waits for no other.
    pub(super) async fn check_waiting(
        &self,
        request: &SubscriptionRequest,
    ) -> Result<(), SubscriptionRefusal> {
        let SubscriptionRequest { account, topic, callback, registrant, .. } = request;
        if account.is_some() || !registrant.is_known() {
            return Ok(());
        }
        let waiting = self.store.waiting_intents(*registrant, MOST_WAITING).await?;
        if waiting < MOST_WAITING || self.is_subscriber(topic, callback).await? {
            return Ok(());
        }
        Err(NotVerified::RateLimited { retry_after: WAITING_RETRY_AFTER }.into())
    }

    /// Returns a permit for a callback, if one is free now.
    pub(super) async fn try_permit(
        &self,
        request: &SubscriptionRequest,
    ) -> Option<VerificationPermit> {
        match self.verification_target(&request.callback, request.requester()).await {
            Some(target) => self.limits.try_visit(&target),
            None => Some(VerificationPermit::free()),
        }
    }

    /// Waits for a permit for an address that a handler redirects to or a publisher names. The error
    /// is the time after which one may be free.
    pub(super) async fn wait_for_permit(
        &self,
        address: &Callback,
        requester: Requester,
    ) -> Result<VerificationPermit, Duration> {
        match self.verification_target(address, requester).await {
            Some(target) => self.limits.wait(&target).await,
            None => Ok(VerificationPermit::free()),
        }
    }

    /// Returns what the verification of a callback counts for; `None` if it is not limited, because
    /// its addresses are the operator's.
    pub(super) async fn verification_target(
        &self,
        callback: &Callback,
        requester: Requester,
    ) -> Option<VerificationTarget> {
        // For strangers, the name is looked up within their share.
        let client = match requester.is_account() {
            true => self.fetch.clone(),
            false => self.fetch.for_anonymous(requester.network()),
        };
        VerificationTarget::resolve(&client, callback, requester).await
    }

    /// Returns whether a request for an open subscription knows its secret.
    pub async fn knows_secret(
        &self,
        request: &SubscriptionRequest,
        now: DateTime<Utc>,
    ) -> Result<bool, StoreError> {
        if request.signing.secret.is_none() {
            return Ok(false);
        }
        let filter = SubscriptionFilter {
            account: Some(AccountId::NOBODY),
            topic: Some(request.topic.as_str().to_owned()),
            callback: Some(request.callback.as_str().to_owned()),
            limit: MOST_OF_ONE,
            ..SubscriptionFilter::default()
        };
        let (listed, _) = self.store.list(&filter).await?;
        let mut held = listed.iter().map(|listed| &listed.subscription);
        Ok(held.any(|held| held.signing.is_proven_by(&request.signing, now)))
    }

    /// Returns whether a callback has a subscription to a topic.
    pub(super) async fn is_subscriber(
        &self,
        topic: &Topic,
        callback: &Callback,
    ) -> Result<bool, StoreError> {
        let filter = SubscriptionFilter {
            topic: Some(topic.as_str().to_owned()),
            callback: Some(callback.as_str().to_owned()),
            limit: 1,
            ..SubscriptionFilter::default()
        };
        Ok(self.store.list(&filter).await?.1 > 0)
    }
}
