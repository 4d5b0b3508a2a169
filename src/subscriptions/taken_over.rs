//! Requests whose claim is lost while the subscriber waits, as when the database could not be reached for longer
//! than a claim lasts: a worker of some node verifies them too, and carries them out.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::held_subscriptions::filter_for;
use super::{SubscribeOutcome, SubscriptionRefusal, SubscriptionService};
use feedgate_core::intent::{DueIntent, IntentMode};
use feedgate_core::store::{IntentFate, StoreError};
use feedgate_core::subscription::Subscription;

/// The longest wait for the worker. It verifies the callback as this node did.
const WAIT: Duration = Duration::from_secs(10);
/// The time between two looks.
const INTERVAL: Duration = Duration::from_millis(200);

impl SubscriptionService {
    /// Returns what became of a request that this node has verified, and did not carry out because it no
    /// longer holds its claim.
    pub(super) async fn outcome_elsewhere(
        &self,
        due: &DueIntent,
    ) -> Result<SubscribeOutcome, SubscriptionRefusal> {
        let begun = Instant::now();
        loop {
            match self.store.intent_fate(due).await? {
                IntentFate::Replaced => return Err(SubscriptionRefusal::Superseded),
                IntentFate::Ended if self.is_carried_out(due).await? => {
                    return Ok(SubscribeOutcome::Now);
                }
                // The request was refused, or a newer one was carried out since.
                IntentFate::Ended => return Err(SubscriptionRefusal::Superseded),
                IntentFate::Waiting if begun.elapsed() >= WAIT => {
                    return Ok(SubscribeOutcome::Later);
                }
                IntentFate::Waiting => sleep(INTERVAL).await,
            }
        }
    }

    /// Returns whether there is a subscription, or none, as the request wants.
    async fn is_carried_out(&self, due: &DueIntent) -> Result<bool, StoreError> {
        let request = &due.intent.request;
        let is_subscribe = due.intent.mode == IntentMode::Subscribe;
        let filter = filter_for(request.account, &request.topic, &request.callback);
        let (listed, _) = self.store.list(&filter).await?;
        let is_as_requested = |held: &Subscription| {
            held.protocol == request.protocol
                && held.topic.alias() == request.topic.alias()
                && (!is_subscribe
                    || held.signing.secret == request.signing.secret
                        && held.filter == request.filter
                        && held.format == request.format)
        };
        Ok(listed.iter().any(|held| is_as_requested(&held.subscription)) == is_subscribe)
    }
}
