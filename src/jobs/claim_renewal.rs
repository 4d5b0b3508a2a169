//! The claims of jobs in progress that can outlast them, which are renewed until the jobs end.
//!
//! A poll may read `robots.txt`, fetch a document twice and follow redirects, each with a timeout of
//! its own; a step of a backfill may do the same, and append thousands of entries. Without renewal,
//! another node would then do the same work at the same time.

use std::collections::HashSet;
use std::error::Error;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use chrono::{DateTime, Utc};
use tokio::time::sleep;
use tokio_util::task::AbortOnDropHandle;
use tracing::warn;

use crate::jobs::runner;
use feedgate_core::claim::ClaimToken;
use feedgate_core::resource::ResourceId;
use feedgate_core::store::StoreError;

type Claim = (ResourceId, ClaimToken);

/// Renews the claims of jobs of one kind that are in progress.
pub(crate) struct ClaimRenewal {
    held: Arc<Mutex<HashSet<Claim>>>,
    /// The task that renews claims until this is dropped.
    _renewing: AbortOnDropHandle<()>,
}

/// A claim that is renewed until this is dropped.
pub(crate) struct HeldClaim {
    claim: Claim,
    held: Arc<Mutex<HashSet<Claim>>>,
}

impl ClaimRenewal {
    /// Starts renewing claims, each of which lasts as long as `lease`. `renew` gets the claims, the
    /// time, and the time until which they are extended; `job` is its name in log messages. Must be
    /// called within a runtime.
    pub(crate) fn start<F, R>(job: &'static str, lease: Duration, renew: F) -> ClaimRenewal
    where
        F: Fn(Vec<Claim>, DateTime<Utc>, DateTime<Utc>) -> R + Send + 'static,
        R: Future<Output = Result<Vec<ResourceId>, StoreError>> + Send,
    {
        let held = Arc::<Mutex<HashSet<Claim>>>::default();
        let claims = Arc::clone(&held);
        let renewing = renew_repeatedly(job, lease, move |now, until| {
            let claims: Vec<_> = lock(&claims).iter().copied().collect();
            let renewed = (!claims.is_empty()).then(|| renew(claims, now, until));
            // A job whose claim was lost runs to its end; its result changes nothing.
            async move {
                match renewed {
                    Some(renewed) => renewed.await.map(drop),
                    None => Ok(()),
                }
            }
        });
        ClaimRenewal { held, _renewing: renewing }
    }

    /// Renews this claim from now on.
    pub(crate) fn hold_claim(&self, id: ResourceId, token: ClaimToken) -> HeldClaim {
        let claim = (id, token);
        lock(&self.held).insert(claim);
        HeldClaim { claim, held: Arc::clone(&self.held) }
    }
}

/// Calls `renew` three times as often as claims of the duration `lease` expire, with the time and that until
/// which they are extended, until the result is dropped. Must be called within a runtime.
pub(crate) fn renew_repeatedly<F, R>(
    job: &'static str,
    lease: Duration,
    renew: F,
) -> AbortOnDropHandle<()>
where
    F: Fn(DateTime<Utc>, DateTime<Utc>) -> R + Send + 'static,
    R: Future<Output = Result<(), StoreError>> + Send,
{
    AbortOnDropHandle::new(tokio::spawn(async move {
        loop {
            sleep(lease / 3).await;
            let now = runner::now();
            if let Err(err) = renew(now, now + lease).await {
                warn!(job, error = &err as &dyn Error, "claims were not renewed; they will expire");
            }
        }
    }))
}

impl Drop for HeldClaim {
    fn drop(&mut self) {
        lock(&self.held).remove(&self.claim);
    }
}

fn lock(held: &Mutex<HashSet<Claim>>) -> MutexGuard<'_, HashSet<Claim>> {
    held.lock().unwrap_or_else(PoisonError::into_inner)
}

impl std::fmt::Debug for HeldClaim {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HeldClaim").field("claim", &self.claim).finish_non_exhaustive()
    }
}
