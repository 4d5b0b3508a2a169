//! Limits how many jobs run at the same time for each host, so that a slow host delays no other
//! (rule D3) and a small one is not overloaded (rule P41).

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use feedgate_core::store::ClaimLimits;

/// The running jobs of each host. Clones share the counts.
///
/// The jobs that are already running for a host and those that one more claim may return for it
/// never exceed the limit: a host is claimed from only while at least half of its permits are
/// free, and a claim returns at most that half.
#[derive(Clone, Debug)]
pub struct HostPermits {
    running: Arc<Mutex<HashMap<String, usize>>>,
    per_host: usize,
    freed: Arc<Notify>,
}

/// The permit of one job to contact one host, returned when dropped.
#[derive(Debug)]
pub struct HostPermit {
    host: String,
    permits: HostPermits,
}

impl HostPermits {
    /// Creates at most `per_host` permits for each host. `freed` is notified when a host that had
    /// reached its limit can be claimed from again.
    pub fn new(per_host: usize, freed: Arc<Notify>) -> HostPermits {
        HostPermits { running: Arc::default(), per_host: per_host.max(1), freed }
    }

    /// Returns the limits of the next claim: `limit` jobs in all, and none of a busy host.
    pub fn claim_limits(&self, limit: usize) -> ClaimLimits {
        let running = self.running();
        let busy = running.iter().filter(|(_, jobs)| self.is_busy(**jobs));
        let busy = busy.map(|(host, _)| host.clone()).collect();
        ClaimLimits { limit, per_host: self.claim_size(), busy }
    }

    /// Takes a permit for a job that was claimed.
    pub fn acquire(&self, host: String) -> HostPermit {
        *self.running().entry(host.clone()).or_default() += 1;
        HostPermit { host, permits: self.clone() }
    }

    fn release(&self, host: &str) {
        let mut running = self.running();
        let Some(jobs) = running.get_mut(host) else { return };
        let was_busy = self.is_busy(*jobs);
        *jobs -= 1;
        let freed = was_busy && !self.is_busy(*jobs);
        if *jobs == 0 {
            running.remove(host);
        }
        drop(running);
        if freed {
            self.freed.notify_one();
        }
    }

    /// Returns the most jobs that one claim may return for one host.
    fn claim_size(&self) -> usize {
        self.per_host.div_ceil(2)
    }

    /// Returns whether one more claim could exceed the limit.
    fn is_busy(&self, jobs: usize) -> bool {
        jobs + self.claim_size() > self.per_host
    }

    fn running(&self) -> MutexGuard<'_, HashMap<String, usize>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for HostPermit {
    fn drop(&mut self) {
        self.permits.release(&self.host);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_never_has_more_jobs_than_its_limit() {
        for per_host in 1..=9 {
            let permits = HostPermits::new(per_host, Arc::default());
            let mut held = Vec::new();
            loop {
                let limits = permits.claim_limits(100);
                if limits.busy.contains(&"a.test:80".to_owned()) {
                    break;
                }
                let claimed = 0..limits.per_host;
                held.extend(claimed.map(|_| permits.acquire("a.test:80".to_owned())));
            }
            assert!(held.len() <= per_host, "{} of {per_host}", held.len());
            assert!(held.len() * 2 > per_host, "{} of {per_host}", held.len());
        }
    }

    #[tokio::test]
    async fn a_host_whose_permits_are_free_again_wakes_the_worker() {
        let freed = Arc::new(Notify::new());
        let permits = HostPermits::new(1, Arc::clone(&freed));
        let permit = permits.acquire("a.test:80".to_owned());
        assert_eq!(permits.claim_limits(5).busy, ["a.test:80"]);
        drop(permit);
        freed.notified().await;
        assert!(permits.claim_limits(5).busy.is_empty());
    }
}
