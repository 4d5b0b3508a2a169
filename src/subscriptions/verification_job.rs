//! The job that verifies stored intents and carries out those whose callbacks agree.
//!
//! A refusal of the callback is final, and nothing changes. An unreachable callback is retried,
//! each time with a new challenge; after the last attempt it is notified that the request is denied
//! (WebSub `#subscription-validation`), in case it is reachable by then, and the intent is deleted.

use std::sync::Arc;
use std::time::Duration;

use tracing::{error, warn};

use super::host_limits::{VerificationLimits, VerificationPermit};
use super::{SubscriptionService, verify};
use crate::jobs::runner::{self, Job};
use feedgate_core::intent::DueIntent;
use feedgate_core::ports::{ClaimLimits, StoreError};
use feedgate_core::topic;

/// The delays before further attempts. WebSub asks for prompt verification, and a restarting server
/// is back within minutes.
const WAITS: [Duration; 4] = [
    Duration::from_secs(10),
    Duration::from_secs(60),
    Duration::from_secs(5 * 60),
    Duration::from_secs(30 * 60),
];
/// The lease of a claimed intent: longer than a verification can take, so that no intent is
/// processed twice at the same time and claims need not be renewed. The longest is a wait of 10 s
/// for a permit, the first fetch of the resource, for which at most 10 s are allowed, a request to the
/// callback of 60 s (the maximum of `FEEDGATE_DELIVERY_TIMEOUT_S`), and another one, to notify it of
/// the denial: 140 s.
pub(super) const CLAIM: Duration = Duration::from_secs(180);

/// Verifies stored intents.
pub struct VerificationJob {
    subscribe: Arc<SubscriptionService>,
}

impl VerificationJob {
    /// Creates the job for the intents that `subscribe` stores.
    pub fn new(subscribe: Arc<SubscriptionService>) -> VerificationJob {
        VerificationJob { subscribe }
    }

    async fn carry_out(
        &self,
        due: &DueIntent,
        visit: VerificationPermit,
    ) -> Result<(), StoreError> {
        let subscribe = &self.subscribe;
        let Err(why) = subscribe.verify(&due.intent, Ok(visit)).await else {
            // A newer intent has replaced this one, and is verified separately.
            return subscribe.settle(due, runner::now()).await.map(drop);
        };
        let wait = WAITS.get(due.attempts as usize).filter(|_| why.is_transient());
        if due.attempts == 0 || wait.is_none() {
            // Logged on the first attempt only, and by host only, because callbacks contain tokens.
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
        match wait {
            Some(wait) => subscribe.store.retry_intent(due, runner::now() + *wait).await,
            None => {
                if why.is_transient() {
                    let reason = "the callback could not be verified";
                    verify::denied(&subscribe.fetch, &due.intent, reason).await;
                }
                subscribe.store.end_intent(due).await
            }
        }
    }
}

impl Job for VerificationJob {
    type Item = (DueIntent, VerificationPermit);

    const NAME: &'static str = "intents";

    async fn claim(&self, limit: usize) -> Result<Vec<Self::Item>, StoreError> {
        let (now, hosts) = (runner::now(), &self.subscribe.hosts);
        let room =
            ClaimLimits { limit, per_host: VerificationLimits::portion(), busy: hosts.busy() };
        let due = self.subscribe.store.claim_intents(now, now + CLAIM, &room).await?;
        let mut visits = Vec::with_capacity(due.len());
        for due in due {
            let callback = &due.intent.request.callback;
            let visit = match self.subscribe.fetch.resolves_to_inner(&callback.url()).await {
                true => VerificationPermit::free(),
                false => hosts.visit(callback),
            };
            visits.push((due, visit));
        }
        Ok(visits)
    }

    async fn perform(&self, (due, visit): Self::Item) {
        if let Err(err) = self.carry_out(&due, visit).await {
            let cause: &dyn std::error::Error = &err;
            error!(
                intent = due.id,
                error = cause,
                "the result of a verification was not stored; it will be repeated"
            );
        }
    }
}
