//! How many jobs are in hand for each host, so that a slow one delays nobody else
//! (rule D3) and a small one is not swamped (rule P41).

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Notify;

use feedgate_core::ports::ClaimLimits;

/// Jobs in hand, by host.
///
/// What a claim hands out for one host, and what is already in hand for it, never
/// come to more than the bound: a host is asked for more only when half of its places
/// are free, and then for no more than that half.
#[derive(Clone, Debug)]
pub struct Hosts {
    in_hand: Arc<Mutex<HashMap<String, usize>>>,
    per_host: usize,
    freed: Arc<Notify>,
}

/// A place at a host; given back when dropped.
#[derive(Debug)]
pub struct Place {
    host: String,
    hosts: Hosts,
}

impl Hosts {
    /// At most `per_host` at each. `freed` is notified when a host that had all it can
    /// take can take more.
    pub fn new(per_host: usize, freed: Arc<Notify>) -> Hosts {
        Hosts { in_hand: Arc::default(), per_host: per_host.max(1), freed }
    }

    /// What may be claimed now, `limit` jobs in all.
    pub fn room(&self, limit: usize) -> ClaimLimits {
        let in_hand = self.in_hand.lock().unwrap_or_else(PoisonError::into_inner);
        let busy = in_hand.iter().filter(|(_, jobs)| self.is_busy(**jobs));
        let busy = busy.map(|(host, _)| host.clone()).collect();
        ClaimLimits { limit, per_host: self.portion(), busy }
    }

    /// Takes a place for a job that was claimed.
    pub fn enter(&self, host: String) -> Place {
        let mut in_hand = self.in_hand.lock().unwrap_or_else(PoisonError::into_inner);
        *in_hand.entry(host.clone()).or_default() += 1;
        drop(in_hand);
        Place { host, hosts: self.clone() }
    }

    fn leave(&self, host: &str) {
        let mut in_hand = self.in_hand.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(jobs) = in_hand.get_mut(host) else { return };
        let was_busy = self.is_busy(*jobs);
        *jobs -= 1;
        let freed = was_busy && !self.is_busy(*jobs);
        if *jobs == 0 {
            in_hand.remove(host);
        }
        drop(in_hand);
        if freed {
            self.freed.notify_one();
        }
    }

    /// How many a claim may hand out for one host.
    fn portion(&self) -> usize {
        self.per_host.div_ceil(2)
    }

    /// Whether another portion would be too much.
    fn is_busy(&self, jobs: usize) -> bool {
        jobs + self.portion() > self.per_host
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.hosts.leave(&self.host);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_never_has_more_in_hand_than_its_bound() {
        for per_host in 1..=9 {
            let hosts = Hosts::new(per_host, Arc::default());
            let mut places = Vec::new();
            loop {
                let room = hosts.room(100);
                if room.busy.contains(&"a.test:80".to_owned()) {
                    break;
                }
                let portion = 0..room.per_host;
                places.extend(portion.map(|_| hosts.enter("a.test:80".to_owned())));
            }
            assert!(places.len() <= per_host, "{} of {per_host}", places.len());
            assert!(places.len() * 2 > per_host, "{} of {per_host}", places.len());
        }
    }

    #[tokio::test]
    async fn a_host_that_has_room_again_is_told_of() {
        let freed = Arc::new(Notify::new());
        let hosts = Hosts::new(1, Arc::clone(&freed));
        let place = hosts.enter("a.test:80".to_owned());
        assert_eq!(hosts.room(5).busy, ["a.test:80"]);
        drop(place);
        freed.notified().await;
        assert!(hosts.room(5).busy.is_empty());
    }
}
