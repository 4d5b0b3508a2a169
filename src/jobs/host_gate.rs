//! The host gate of a gateway: the pauses and intervals of host groups that the store keeps for all nodes.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use tokio::time::{Instant, sleep};
use tracing::warn;
use url::Url;

use crate::jobs::runner;
use crate::net::{GateRefusal, HostGate};
use feedgate_core::host::RequestAdmission;
use feedgate_store::Store;

/// The shortest wait between two attempts to get a time of a group.
const LEAST_WAIT: Duration = Duration::from_millis(20);
/// After how long a request is tried again that the store could not decide about.
const AFTER_STORE_ERROR: Duration = Duration::from_secs(60);

/// Asks the store.
pub struct SharedHostGate {
    store: Arc<Store>,
}

impl SharedHostGate {
    /// Creates the gate of the gateway with this store.
    pub fn new(store: Arc<Store>) -> SharedHostGate {
        SharedHostGate { store }
    }
}

#[async_trait]
impl HostGate for SharedHostGate {
    fn group(&self, url: &Url) -> String {
        self.store.group(url.as_str())
    }

    async fn paused_until(&self, group: &str) -> Option<DateTime<Utc>> {
        match self.store.host(group).await {
            Ok(host) => host.cool_until.filter(|until| *until > runner::now()),
            Err(err) => {
                let error = &err as &dyn Error;
                warn!(group, error, "a host is contacted although its pauses could not be read");
                None
            }
        }
    }

    async fn admit(&self, group: &str, max_wait: Duration) -> Result<(), GateRefusal> {
        let until = Instant::now() + max_wait;
        loop {
            let now = runner::now();
            let wait = match self.store.admit_request(group, now).await {
                Ok(RequestAdmission::Admitted) => return Ok(()),
                Ok(RequestAdmission::Paused(until)) => return Err(GateRefusal::Paused(until)),
                Ok(RequestAdmission::NotBefore(at)) => (at - now).to_std().unwrap_or_default(),
                Err(err) => {
                    let error = &err as &dyn Error;
                    warn!(group, error, "a redirect is not followed now: the store failed");
                    return Err(GateRefusal::Busy(AFTER_STORE_ERROR));
                }
            };
            let wait = wait.max(LEAST_WAIT);
            if Instant::now() + wait > until {
                return Err(GateRefusal::Busy(wait));
            }
            sleep(wait).await;
        }
    }
}

impl std::fmt::Debug for SharedHostGate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SharedHostGate").finish_non_exhaustive()
    }
}
