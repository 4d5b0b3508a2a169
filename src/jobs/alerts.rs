//! Alerts: tells owners of accounts what has become of their callbacks, their feeds and their quota.
//!
//! The job looks at each alert address every half a minute, and sends what its account has to be told in one
//! request, whose length does not grow with what has happened. What was not accepted is not stored as told, and
//! is sent again, together with what has changed meanwhile. An address that fails is retried for ever, ever more
//! rarely; it delays nobody else, because alerts have slots of their own.

mod message;
mod notifier;

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use tracing::{debug, warn};

use crate::jobs::claim_renewal::{ClaimRenewal, HeldClaim};
use crate::jobs::deliver::result_code;
use crate::jobs::runner::{self, Job};
use crate::metrics::Metrics;
use crate::net::{CallbackResponse, FetchError};
use feedgate_core::account::AccountId;
use feedgate_core::alert::{AlertAddressState, AlertAttempt, OwedAlerts, SPACING};
use feedgate_core::store::StoreError;
use feedgate_store::Store;

pub(crate) use notifier::AlertNotifier;

/// Alerts that are sent at the same time.
pub const CONCURRENCY: usize = 8;
/// How often an address is looked for alerts: a callback counts as failing after half an hour of failures, so
/// half a minute more does not matter, and a thousand addresses cost some hundred short statements a second.
const LOOK_EVERY: TimeDelta = TimeDelta::seconds(30);
/// The waits before failed alerts are sent again: after the first failure, the second, and so on. The last wait
/// is repeated.
const RETRY_STEPS_S: [u64; 6] = [10, 60, 300, 1_800, 7_200, 21_600];

/// Sends alerts.
pub struct AlertSender {
    store: Arc<Store>,
    notifier: AlertNotifier,
    metrics: Metrics,
    /// The most subscriptions of an account.
    quota: u64,
    claims: ClaimRenewal<AccountId>,
}

impl AlertSender {
    /// Creates a sender whose claims last as long as `lease`. `quota` is the most subscriptions of an account.
    /// Must be called within a runtime: claims are renewed by a task.
    pub(crate) fn new(
        store: Arc<Store>,
        notifier: AlertNotifier,
        metrics: Metrics,
        quota: u64,
        lease: Duration,
    ) -> AlertSender {
        let renewing = Arc::clone(&store);
        let claims = ClaimRenewal::start(AlertSender::NAME, lease, move |claims, _, until| {
            let store = Arc::clone(&renewing);
            async move { store.renew_alert_claims(&claims, until).await }
        });
        AlertSender { store, notifier, metrics, quota, claims }
    }

    /// Stores the result of an attempt to send `owed`.
    async fn record(
        &self,
        state: &AlertAddressState,
        owed: OwedAlerts,
        answer: Result<CallbackResponse, FetchError>,
    ) -> Result<(), StoreError> {
        let now = runner::now();
        if let Err(FetchError::GatewayBusy(_)) = &answer {
            return self.store.release_alert_address(state, now + SPACING).await;
        }
        let code = result_code(&answer);
        self.metrics.alerts_sent(code);
        let attempt = AlertAttempt { at: now, code: code.to_owned() };
        if answer.as_ref().is_ok_and(|reply| reply.status.is_success()) {
            let due_at = now + if owed.has_more { SPACING } else { LOOK_EVERY };
            return self.store.record_alerts_told(state, owed.told, Some(attempt), due_at).await;
        }
        let retry_at = retry_at(state.failures, now, runner::jitter());
        report(state, &attempt.code, answer.err(), retry_at);
        self.store.record_alerts_failed(state, attempt, retry_at).await
    }
}

/// Returns when alerts are sent again after one failure more than `failures`.
fn retry_at(failures: u32, now: DateTime<Utc>, jitter: f64) -> DateTime<Utc> {
    let step = RETRY_STEPS_S[(failures as usize).min(RETRY_STEPS_S.len() - 1)];
    // No request follows another one sooner than after `SPACING`.
    (now + Duration::from_secs(step).mul_f64(0.8 + 0.4 * jitter)).max(now + SPACING)
}

/// Logs only the host of an address, because addresses may contain keys.
fn report(state: &AlertAddressState, code: &str, err: Option<FetchError>, retry_at: DateTime<Utc>) {
    let host = state.address.callback.host();
    let (account, error) = (state.address.account.0, err.as_ref().map(|err| err as &dyn Error));
    match state.failures {
        // Only the first failed attempt is logged as a warning.
        0 => {
            warn!(account, host, code, error, %retry_at, "sending alerts failed; it will be retried")
        }
        _ => {
            debug!(account, host, code, error, %retry_at, "sending alerts failed; it will be retried")
        }
    }
}

impl Job for AlertSender {
    type Item = (AlertAddressState, HeldClaim<AccountId>);

    const NAME: &'static str = "alerts";

    async fn claim(&self, limit: usize) -> Result<Vec<Self::Item>, StoreError> {
        let now = runner::now();
        let until = self.claims.end_of_claim(now);
        let due = self.store.claim_alert_addresses(now, until, limit).await?;
        let held = due.into_iter().map(|state| {
            let claim = self.claims.hold_claim(state.address.account, state.claim, until);
            (state, claim)
        });
        Ok(held.collect())
    }

    /// Sends what an account has to be told, and stores the result.
    async fn perform(&self, (state, held): Self::Item) -> Result<(), StoreError> {
        let now = runner::now();
        let Some(login) = &state.login else {
            return self.store.release_alert_address(&state, now + LOOK_EVERY).await;
        };
        let owed = self.store.owed_alerts(&state, self.quota, now).await?;
        if owed.count() == 0 {
            let due_at = now + if owed.has_more { SPACING } else { LOOK_EVERY };
            return self.store.record_alerts_told(&state, owed.told, None, due_at).await;
        }
        if !held.is_valid() {
            return Ok(()); // another node may be sending them
        }
        let answer = self.notifier.send(&state, login, &owed, now).await;
        self.record(&state, owed, answer).await
    }

    fn number((state, _): &Self::Item) -> Option<i64> {
        Some(state.address.account.0)
    }
}

impl std::fmt::Debug for AlertSender {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AlertSender").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_alerts_are_retried_ever_more_rarely_and_never_too_soon() {
        let now = DateTime::UNIX_EPOCH;
        let waits: Vec<i64> = (0..8).map(|n| (retry_at(n, now, 0.5) - now).num_seconds()).collect();
        assert_eq!(waits, [10, 60, 300, 1_800, 7_200, 21_600, 21_600, 21_600]);
        assert_eq!((retry_at(0, now, 0.0) - now).num_seconds(), 10, "not sooner");
        assert_eq!((retry_at(1, now, 1.0) - now).num_seconds(), 72, "spread");
    }
}
