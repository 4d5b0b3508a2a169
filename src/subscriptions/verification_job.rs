//! The job that verifies stored intents and carries out those whose callbacks agree.
//!
//! A refusal of the callback is final, and nothing changes. An unreachable callback is retried,
//! each time with a new challenge; after the last attempt it is notified that the request is denied
//! (WebSub `#subscription-validation`), in case it is reachable by then, and the intent is deleted.
//!
//! A host that has never agreed may not know of the request at all, so it receives one verification
//! and no denial (rule S26). An account vouches for its callbacks.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use futures_util::future::join_all;
use tracing::warn;

use super::validation::{self, NotValidated};
use super::{NotVerified, QuotaExceeded, SubscriptionRefusal, SubscriptionService, events};
use crate::jobs::claim_renewal::HeldClaim;
use crate::jobs::runner::{self, Job};
use crate::verification_limits::{VerificationLimits, VerificationPermit};
use feedgate_core::intent::{DueIntent, IntentMode};
use feedgate_core::store::{ClaimLimits, StoreError};
use feedgate_core::topic;

/// The delays before further attempts. WebSub asks for prompt verification, and a restarting server
/// is back within minutes.
const WAITS: [Duration; 4] = [
    Duration::from_secs(10),
    Duration::from_secs(60),
    Duration::from_secs(5 * 60),
    Duration::from_secs(30 * 60),
];
/// Verifications that run at the same time.
pub const CONCURRENCY: usize = 64;
/// The time over which intents are spread that wait for permits of the same network.
const FULL_NETWORK_SPREAD: Duration = Duration::from_secs(60);

/// Verifies stored intents.
pub struct VerificationJob {
    subscribe: Arc<SubscriptionService>,
}

/// A claimed intent, with the permit to verify its callback.
#[derive(Debug)]
pub struct ClaimedIntent {
    due: DueIntent,
    visit: VerificationPermit,
    claim: HeldClaim<i64>,
}

impl VerificationJob {
    /// Creates the job for the intents that `subscribe` stores.
    pub fn new(subscribe: Arc<SubscriptionService>) -> VerificationJob {
        VerificationJob { subscribe }
    }

    async fn carry_out(&self, claimed: ClaimedIntent) -> Result<(), StoreError> {
        let ClaimedIntent { due, visit, claim } = claimed;
        let (subscribe, due) = (&self.subscribe, &due);
        if due.intent.is_verified && !subscribe.is_held(&due.intent.request).await? {
            return subscribe.store.end_intent(due).await; // there is nothing to decide about
        }
        let validated = subscribe.validate(&due.intent).await?;
        if due.intent.is_verified {
            return self.decide(due, validated).await;
        }
        if validation::refusal(&validated).is_some() {
            // The permit counts as a failure: the callback is notified, and has confirmed nothing.
            return self.decide(due, validated).await;
        }
        if due.intent.mode == IntentMode::Subscribe
            && let Some(why) = subscribe.exceeded_quota(&due.intent.request).await?
        {
            return self.deny_for_quota(due, why).await;
        }
        if !claim.is_valid() {
            // As after a suspend of the machine: another node may verify the callback, or have done so.
            visit.ends_unsent();
            return subscribe.store.release_intent(due, runner::now()).await;
        }
        let is_trusted = due.intent.request.account.is_some() || visit.may_repeat();
        let Err(why) = subscribe.verify(&due.intent, Ok(visit)).await else {
            let now = runner::now();
            if let Some(why) = subscribe.open_track(&due.intent, now).await? {
                return self.deny_for_quota(due, why).await;
            }
            // A newer intent may have replaced this one, and is verified separately.
            if subscribe.apply_intent(due, now).await? {
                subscribe.validate_later(&due.intent, &validated, now).await?;
            }
            return Ok(());
        };
        if let Some(retry_in) = why.unsent_retry_in() {
            let again_at = runner::now() + retry_in.mul_f64(1.0 + runner::jitter());
            return subscribe.store.release_intent(due, again_at).await;
        }
        let may_contact = is_trusted || !why.has_contacted() || self.is_renewal(due).await?;
        let may_repeat = why.is_transient() && may_contact;
        let wait = WAITS.get(due.attempts as usize).filter(|_| may_repeat);
        log_failure(due, &why, wait);
        match wait {
            Some(wait) => subscribe.store.retry_intent(due, runner::now() + *wait).await,
            None => {
                if may_repeat && claim.is_valid() {
                    let reason = "the callback could not be verified";
                    subscribe.deny(&due.intent, reason).await;
                }
                subscribe.store.end_intent(due).await
            }
        }
    }

    /// Ends an intent whose owner has as many subscriptions as it may have, and notifies the callback.
    /// As after a denial by the publisher, the permit counts as a failure.
    async fn deny_for_quota(&self, due: &DueIntent, why: QuotaExceeded) -> Result<(), StoreError> {
        let subscribe = &self.subscribe;
        let reason = why.to_string();
        let refusal = SubscriptionRefusal::QuotaExceeded(why);
        subscribe.event_log.record(events::refused(&due.intent, &refusal, runner::now()));
        if !due.intent.request.callback.is_null_device() {
            subscribe.deny(&due.intent, &reason).await;
        }
        subscribe.store.end_intent(due).await
    }

    async fn is_renewal(&self, due: &DueIntent) -> Result<bool, StoreError> {
        let request = &due.intent.request;
        self.subscribe.is_subscriber(&request.topic, &request.callback).await
    }

    /// Adds a permit to an intent that was claimed until then, or releases it until one may be free. The claim
    /// is renewed from now on.
    async fn admit(&self, due: DueIntent, until: DateTime<Utc>) -> Option<ClaimedIntent> {
        let claim = self.subscribe.claims.hold_claim(due.id, due.claim, until);
        match self.visit(&due).await {
            Ok(visit) => visit.map(|visit| ClaimedIntent { due, visit, claim }),
            // The claim ends by itself.
            Err(err) => {
                warn!(intent = due.id, code = err.code(), "a verification is delayed");
                None
            }
        }
    }

    /// Returns a permit for an intent that was claimed, or releases it until one may be free.
    async fn visit(&self, due: &DueIntent) -> Result<Option<VerificationPermit>, StoreError> {
        let (subscribe, request) = (&self.subscribe, &due.intent.request);
        if due.intent.is_verified {
            return Ok(Some(VerificationPermit::free())); // the callback is not contacted again
        }
        let Some(target) =
            subscribe.verification_target(&request.callback, request.requester()).await
        else {
            return Ok(Some(VerificationPermit::free()));
        };
        let retry_after = match subscribe.limits.visit_claimed(&target) {
            Ok(permit) => return Ok(Some(permit)),
            Err(_) if self.is_renewal(due).await? => return Ok(Some(VerificationPermit::free())),
            Err(retry_after) => retry_after,
        };
        let spread = FULL_NETWORK_SPREAD.min(retry_after * 6).mul_f64(runner::jitter());
        let wait = retry_after + spread;
        subscribe.store.release_intent(due, runner::now() + wait).await?;
        Ok(None)
    }

    /// Carries out the decision of the publisher. A topic that could not be fetched for all attempts
    /// has not asked for any.
    async fn decide(
        &self,
        due: &DueIntent,
        validated: Result<(), NotValidated>,
    ) -> Result<(), StoreError> {
        let subscribe = &self.subscribe;
        let Err(why) = validated else { return subscribe.store.end_intent(due).await };
        let wait = WAITS.get(due.attempts as usize).filter(|_| why.is_transient());
        if let Some(wait) = wait {
            return subscribe.store.retry_intent(due, runner::now() + *wait).await;
        }
        if !matches!(why, NotValidated::NotFetched) {
            // Who has ended the subscription meanwhile is not notified of it.
            let is_denial = !due.intent.is_verified || subscribe.end_denied(&due.intent).await?;
            if is_denial && !due.intent.request.callback.is_null_device() {
                subscribe.deny(&due.intent, &why.reason()).await;
            }
        }
        subscribe.store.end_intent(due).await
    }
}

/// Logs a failed verification on the first attempt and when it is given up, and by host only, because
/// callbacks contain tokens.
fn log_failure(due: &DueIntent, why: &NotVerified, wait: Option<&Duration>) {
    if due.attempts > 0 && wait.is_some() {
        return;
    }
    let request = &due.intent.request;
    warn!(
        intent = due.id,
        mode = due.intent.mode.as_str(),
        topic_host = topic::host(&request.topic.fetch_url()),
        callback_host = request.callback.host(),
        code = why.code(),
        attempts = due.attempts + 1,
        again_in_s = wait.map(Duration::as_secs),
        "verifying a callback failed; {}",
        if wait.is_some() { "it will be retried" } else { "the request was dropped" }
    );
}

impl Job for VerificationJob {
    type Item = ClaimedIntent;

    const NAME: &'static str = "intents";

    async fn claim(&self, limit: usize) -> Result<Vec<Self::Item>, StoreError> {
        let (now, limits) = (runner::now(), &self.subscribe.limits);
        let room =
            ClaimLimits { limit, per_host: VerificationLimits::portion(), busy: limits.busy() };
        let until = self.subscribe.claims.end_of_claim(now);
        let due = self.subscribe.store.claim_intents(now, until, &room).await?;
        // Names are looked up at the same time, because a name server may take seconds.
        let admitted = join_all(due.into_iter().map(|due| self.admit(due, until))).await;
        Ok(admitted.into_iter().flatten().collect())
    }

    async fn perform(&self, claimed: ClaimedIntent) -> Result<(), StoreError> {
        self.carry_out(claimed).await
    }

    fn number(claimed: &ClaimedIntent) -> Option<i64> {
        Some(claimed.due.id)
    }
}
