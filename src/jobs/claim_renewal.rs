//! The claims of jobs in progress, which are renewed until the jobs end.
//!
//! A claim is short (`FEEDGATE_JOB_LEASE_S`), because what a node has claimed that was killed or is suspended waits
//! until the claim ends. A job may take longer: a poll may read `robots.txt`, fetch a document twice and
//! follow redirects, each with a timeout of its own; a verification waits for a permit, the first fetch of its
//! topic, the publisher and the callback. Without renewal, another node would then do the same work at the same
//! time.

use std::collections::{HashMap, HashSet};
use std::error::Error;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use chrono::{DateTime, Utc};
use futures_util::FutureExt;
use tokio::time::sleep;
use tokio_util::task::AbortOnDropHandle;
use tracing::warn;

use crate::clock;
use crate::jobs::runner;
use feedgate_core::claim::ClaimToken;
use feedgate_core::store::StoreError;

/// The key of a job, and the token of its claim.
type Claim<K> = (K, ClaimToken);

/// The claims in hand: the token of each, and when it ends unless it is renewed, by the time since the start
/// of the machine. Who claims a job again has lost the claim before.
type Held<K> = Arc<Mutex<HashMap<K, (ClaimToken, Duration)>>>;

/// Renews the claims of jobs of one kind that are in progress.
pub(crate) struct ClaimRenewal<K> {
    lease: Duration,
    held: Held<K>,
    /// The task that renews claims until this is dropped.
    _renewing: AbortOnDropHandle<()>,
}

/// A claim that is renewed until this is dropped.
pub struct HeldClaim<K: Copy + Eq + Hash> {
    claim: Claim<K>,
    held: Held<K>,
}

impl<K: Copy + Eq + Hash + Send + 'static> ClaimRenewal<K> {
    /// Starts renewing claims, each of which lasts as long as `lease`. `renew` gets the claims, the
    /// time, and the time until which they are extended, and returns the keys of those that were not lost;
    /// `job` is its name in log messages. Must be called within a runtime.
    pub(crate) fn start<F, R>(job: &'static str, lease: Duration, renew: F) -> ClaimRenewal<K>
    where
        F: Fn(Vec<Claim<K>>, DateTime<Utc>, DateTime<Utc>) -> R + Send + 'static,
        R: Future<Output = Result<Vec<K>, StoreError>> + Send,
    {
        let held = Held::<K>::default();
        let in_hand = Arc::clone(&held);
        let renewing = renew_repeatedly(job, lease, move |now, until| {
            let held = Arc::clone(&in_hand);
            let claims: Vec<_> =
                lock(&held).iter().map(|(key, (token, _))| (*key, *token)).collect();
            let ends = clock::since_boot() + lease;
            let renewed = (!claims.is_empty()).then(|| renew(claims.clone(), now, until));
            // A job whose claim was lost runs to its end; its result changes nothing.
            async move {
                let Some(renewed) = renewed else { return Ok(()) };
                let renewed: HashSet<K> = renewed.await?.into_iter().collect();
                let mut held = lock(&held);
                for (key, token) in claims.iter().filter(|(key, _)| renewed.contains(key)) {
                    if let Some(claim) = held.get_mut(key).filter(|claim| claim.0 == *token) {
                        claim.1 = ends;
                    }
                }
                Ok(())
            }
        });
        ClaimRenewal { lease, held, _renewing: renewing }
    }

    /// Returns the time at which a claim ends that is made at `now`, unless it is renewed.
    pub(crate) fn end_of_claim(&self, now: DateTime<Utc>) -> DateTime<Utc> {
        now + self.lease
    }

    /// Renews a claim from now on that ends at that time.
    pub(crate) fn hold_claim(
        &self,
        key: K,
        token: ClaimToken,
        ends: DateTime<Utc>,
    ) -> HeldClaim<K> {
        let lasts = (ends - runner::now()).to_std().unwrap_or_default();
        lock(&self.held).insert(key, (token, clock::since_boot() + lasts));
        HeldClaim { claim: (key, token), held: Arc::clone(&self.held) }
    }
}

impl<K: Copy + Eq + Hash> HeldClaim<K> {
    /// Returns whether the claim has not ended, as it does while this machine is suspended or cut off from
    /// the database: another node may do the job then.
    pub(crate) fn is_valid(&self) -> bool {
        let (key, token) = self.claim;
        let held = lock(&self.held).get(&key).copied();
        held.is_some_and(|(newest, ends)| newest == token && clock::since_boot() < ends)
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
    let renewing = async move {
        loop {
            sleep(lease / 3).await;
            let now = runner::now();
            if let Err(err) = renew(now, now + lease).await {
                warn!(job, error = &err as &dyn Error, "claims were not renewed; they will expire");
            }
        }
    };
    AbortOnDropHandle::new(tokio::spawn(renewing.boxed()))
}

impl<K: Copy + Eq + Hash> Drop for HeldClaim<K> {
    fn drop(&mut self) {
        let (key, token) = self.claim;
        let mut held = lock(&self.held);
        if held.get(&key).is_some_and(|(newest, _)| *newest == token) {
            held.remove(&key);
        }
    }
}

fn lock<K>(held: &Held<K>) -> MutexGuard<'_, HashMap<K, (ClaimToken, Duration)>> {
    held.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<K: Copy + Eq + Hash + std::fmt::Debug> std::fmt::Debug for HeldClaim<K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HeldClaim").field("claim", &self.claim).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::mpsc;

    #[tokio::test(start_paused = true)]
    async fn a_claim_that_is_not_renewed_ends() {
        let (sender, mut renewed) = mpsc::unbounded_channel();
        let claims = ClaimRenewal::start("test", Duration::from_secs(60), move |claims, _, _| {
            sender.send(claims).unwrap();
            async { Ok(vec![1]) }
        });
        let (token, ended) = (ClaimToken(7), runner::now());
        let held = [1, 2].map(|key| claims.hold_claim(key, token, ended));
        assert!(held.iter().all(|claim| !claim.is_valid()));
        for _ in 0..2 {
            let mut claims = renewed.recv().await.unwrap();
            claims.sort_unstable_by_key(|(key, _)| *key);
            assert_eq!(claims, [(1, token), (2, token)]);
        }
        assert_eq!(held.each_ref().map(HeldClaim::is_valid), [true, false], "the other was lost");
        let [first, _second] = &held;
        let again = claims.hold_claim(1, ClaimToken(8), claims.end_of_claim(runner::now()));
        assert_eq!((first.is_valid(), again.is_valid()), (false, true), "it was claimed again");
        drop(held);
        assert!(again.is_valid());
        drop(again);
        let other = claims.hold_claim(3, token, claims.end_of_claim(runner::now()));
        assert!(other.is_valid());
        assert_eq!(renewed.recv().await.unwrap(), [(3, token)], "what has ended is not renewed");
    }
}
