//! The claims of polls in progress, which are renewed until the polls end.
//!
//! A poll can outlast its claim: it may read `robots.txt`, fetch a document twice and follow
//! redirects, each with a timeout of its own. Without renewal, another node would then poll the same
//! resource, and its host group, at the same time.

use std::collections::HashSet;
use std::error::Error;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::sleep;
use tokio_util::task::AbortOnDropHandle;
use tracing::warn;

use crate::jobs::runner;
use feedgate_core::claim::ClaimToken;
use feedgate_core::ports::{DueResource, Store};
use feedgate_core::resource::ResourceId;

type Claims = HashSet<(ResourceId, ClaimToken)>;

/// Renews the claims of polls in progress.
pub(super) struct PollClaims {
    held: Arc<Mutex<Claims>>,
    /// The task that renews claims until this is dropped.
    _renewing: AbortOnDropHandle<()>,
}

/// A claim that is renewed until this is dropped.
pub(super) struct HeldClaim {
    claim: (ResourceId, ClaimToken),
    held: Arc<Mutex<Claims>>,
}

impl PollClaims {
    /// Starts renewing claims, each of which lasts as long as `lease`. Must be called within a
    /// runtime.
    pub(super) fn start(store: Arc<dyn Store>, lease: Duration) -> PollClaims {
        let held = Arc::<Mutex<Claims>>::default();
        let renewing = tokio::spawn(renew(store, Arc::clone(&held), lease));
        PollClaims { held, _renewing: AbortOnDropHandle::new(renewing) }
    }

    /// Renews the claim of this resource from now on.
    pub(super) fn hold_claim(&self, due: &DueResource) -> HeldClaim {
        let claim = (due.resource.id, due.claim);
        lock(&self.held).insert(claim);
        HeldClaim { claim, held: Arc::clone(&self.held) }
    }
}

impl Drop for HeldClaim {
    fn drop(&mut self) {
        lock(&self.held).remove(&self.claim);
    }
}

/// Renews the claims of polls in progress, three times as often as they expire.
async fn renew(store: Arc<dyn Store>, held: Arc<Mutex<Claims>>, lease: Duration) {
    loop {
        sleep(lease / 3).await;
        let claims: Vec<_> = lock(&held).iter().copied().collect();
        if claims.is_empty() {
            continue;
        }
        let now = runner::now();
        // A poll whose claim was lost runs to its end; its result changes nothing.
        if let Err(err) = store.renew_resource_claims(&claims, now, now + lease).await {
            warn!(error = &err as &dyn Error, "claims of polls were not renewed");
        }
    }
}

fn lock(held: &Mutex<Claims>) -> MutexGuard<'_, Claims> {
    held.lock().unwrap_or_else(PoisonError::into_inner)
}

impl std::fmt::Debug for HeldClaim {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HeldClaim").field("claim", &self.claim).finish_non_exhaustive()
    }
}
