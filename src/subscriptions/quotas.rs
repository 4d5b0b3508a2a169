//! How many subscriptions an account may have, and how many open ones the callbacks of one host (rules
//! S30, S44); and how many tracks may be open for one network of callers without an account.
//!
//! A quota is checked when a subscription is requested, and again before its callback is verified.
//! Requests that are verified at the same time may exceed it by their number.

use super::{SubscriptionRefusal, SubscriptionService};
use feedgate_core::account::AccountId;
use feedgate_core::store::{StoreError, SubscriptionFilter};
use feedgate_core::subscription::{SubscriptionOwner, SubscriptionRequest};

/// The maximum number of open tracks that a network of callers without an account had opened. What is
/// stored is compared with the queries of all open tracks: with queries of frequent words, a hundred take
/// a fraction of a millisecond for each entry.
const TRACKS_PER_NETWORK: u64 = 100;

/// The maximum number of subscriptions of an owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubscriptionQuotas {
    /// Of one account.
    pub per_account: u64,
    /// Of no account, with callbacks at one host.
    pub per_host: u64,
}

impl SubscriptionQuotas {
    /// No limits, for services that take no requests.
    pub(super) const NONE: SubscriptionQuotas =
        SubscriptionQuotas { per_account: u64::MAX, per_host: u64::MAX };
}

/// The reason why a new subscription exceeds a quota.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuotaExceeded {
    /// The account has as many subscriptions as it may have.
    #[error("this account has {0} subscriptions, the most that an account may have")]
    Account(u64),
    /// The host has as many open subscriptions as it may have.
    #[error("there are {0} open subscriptions for {1}, the most that a host may have")]
    CallbackHost(u64, String),
    /// The network of the caller has as many open tracks as it may have.
    #[error("{0} tracks are open for your network, the most without an account")]
    Tracks(u64),
}

impl QuotaExceeded {
    /// Returns a stable code, listed in `docs/errors.md`.
    pub fn code(&self) -> &'static str {
        match self {
            QuotaExceeded::Account(_) => "account_quota",
            QuotaExceeded::CallbackHost(..) => "host_quota",
            QuotaExceeded::Tracks(_) => "track_quota",
        }
    }
}

impl SubscriptionService {
    /// Refuses a new subscription whose owner has as many as it may have. Renewals are not refused.
    pub(super) async fn check_quota(
        &self,
        request: &SubscriptionRequest,
    ) -> Result<(), SubscriptionRefusal> {
        match self.exceeded_quota(request).await? {
            Some(why) => Err(SubscriptionRefusal::QuotaExceeded(why)),
            None => Ok(()),
        }
    }

    /// Returns which quota a new subscription exceeds.
    pub(super) async fn exceeded_quota(
        &self,
        request: &SubscriptionRequest,
    ) -> Result<Option<QuotaExceeded>, StoreError> {
        match self.exceeded_owner_quota(request).await? {
            None => self.exceeded_track_quota(request).await,
            exceeded => Ok(exceeded),
        }
    }

    /// Returns the quota of open tracks if a new subscription without an account exceeds it: if its track
    /// would have to be opened, and its network has as many as it may have.
    pub(super) async fn exceeded_track_quota(
        &self,
        request: &SubscriptionRequest,
    ) -> Result<Option<QuotaExceeded>, StoreError> {
        if request.account.is_some() {
            return Ok(None);
        }
        let Some(track) = self.track_of(&request.topic) else { return Ok(None) };
        let most = TRACKS_PER_NETWORK;
        let is_exceeded = self.store.count_open_tracks(request.registrant, most).await? >= most
            && !self.store.is_track_open(&track.key()).await?;
        Ok(is_exceeded.then_some(QuotaExceeded::Tracks(most)))
    }

    async fn exceeded_owner_quota(
        &self,
        request: &SubscriptionRequest,
    ) -> Result<Option<QuotaExceeded>, StoreError> {
        let owner = request.owner();
        let most = match &owner {
            SubscriptionOwner::Account(_) => self.quotas.per_account,
            SubscriptionOwner::CallbackHost(_) => self.quotas.per_host,
        };
        if most == u64::MAX || self.store.count_owned(&owner).await? < most {
            return Ok(None);
        }
        if self.is_held(request).await? {
            return Ok(None);
        }
        Ok(Some(match owner {
            SubscriptionOwner::Account(_) => QuotaExceeded::Account(most),
            SubscriptionOwner::CallbackHost(host) => QuotaExceeded::CallbackHost(most, host),
        }))
    }

    /// Returns whether the account has a subscription to this topic with this callback.
    pub(super) async fn is_held(&self, request: &SubscriptionRequest) -> Result<bool, StoreError> {
        let filter = SubscriptionFilter {
            account: Some(request.account.unwrap_or(AccountId::NOBODY)),
            topic: Some(request.topic.as_str().to_owned()),
            callback: Some(request.callback.as_str().to_owned()),
            limit: 1,
            ..SubscriptionFilter::default()
        };
        Ok(self.store.list(&filter).await?.1 > 0)
    }
}
