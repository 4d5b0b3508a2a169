//! Whether a claimed delivery may still be sent.
//!
//! A delivery may wait for its host long after it was claimed. Meanwhile its subscription may have been
//! paused, renewed with another secret or ended, or its claim may have expired, as after a suspend of the
//! machine. So whatever has waited is read again right before it is sent, and given back if it has
//! changed. So is what is for a host that this node does not serve any more.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use chrono::TimeDelta;
use tracing::warn;

use crate::jobs::runner;
use feedgate_core::served_hosts::ServedHosts;
use feedgate_core::store::{HeldDelivery, StoreError};
use feedgate_core::subscription::DueSubscription;
use feedgate_store::{BatchLimits, Batcher, Store};

/// How old what is known of a subscription may be when a notification is sent. A pause takes effect within
/// a second of its answer.
const FRESH_FOR: TimeDelta = TimeDelta::milliseconds(500);
const LIMITS: BatchLimits =
    BatchLimits { gather: Duration::from_millis(1), most: 500, concurrent: 2 };

/// Reads again what has waited.
#[derive(Debug)]
pub(super) struct ClaimChecks {
    served: Arc<ServedHosts>,
    batcher: Batcher<Checked, Result<bool, Arc<StoreError>>>,
}

/// A delivery, and its host.
type Checked = (HeldDelivery, String);

impl ClaimChecks {
    /// Starts the task that reads, until this is dropped.
    pub(super) fn start(store: Arc<Store>) -> ClaimChecks {
        let served = store.served_hosts();
        let check = move |batch| check_batch(Arc::clone(&store), batch);
        ClaimChecks { served, batcher: Batcher::start(LIMITS, check) }
    }

    /// Returns whether a delivery may be sent. If not, its claim is released.
    pub(super) async fn may_send(&self, due: &DueSubscription) -> Result<bool, Arc<StoreError>> {
        let now = runner::now();
        let (age, host) = (now - due.claimed_at, due.subscription.callback.host());
        if age >= TimeDelta::zero() && age < FRESH_FOR && self.served.at(now).serves(&host) {
            return Ok(true);
        }
        let checked = self.batcher.submit((HeldDelivery::from(due), host)).await;
        checked.result().await.unwrap_or_else(|| Err(Arc::new(StoreError::Closed)))
    }
}

async fn check_batch(store: Arc<Store>, batch: Vec<Checked>) -> Vec<Result<bool, Arc<StoreError>>> {
    let held: Vec<_> = batch.iter().map(|(held, _)| *held).collect();
    let current = match store.still_current(&held, runner::now()).await {
        Ok(current) => current.into_iter().collect::<HashSet<_>>(),
        Err(err) => {
            let err = Arc::new(err);
            return batch.iter().map(|_| Err(Arc::clone(&err))).collect();
        }
    };
    // Reading may have taken longer than the lease of the hosts, so that is looked at last.
    let served = store.served_hosts().at(runner::now());
    let may_send = |(held, host): &Checked| current.contains(&held.id) && served.serves(host);
    let outdated = batch.iter().filter(|checked| !may_send(checked));
    let outdated: Vec<_> = outdated.map(|(held, _)| (held.id, held.claim)).collect();
    if !outdated.is_empty()
        && let Err(err) = store.release_subscription_claims(&outdated, runner::now()).await
    {
        let error = &err as &dyn std::error::Error;
        warn!(error, "claims of deliveries were not released; they will expire");
    }
    batch.iter().map(|checked| Ok(may_send(checked))).collect()
}
