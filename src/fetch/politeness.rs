//! One fetch at a time per host, with a pause between the starts of two (rule P41).
//!
//! Who waits is served in the order of arrival. A host is what a server is to its
//! owner: name and port, so that `http` and `https` of one name do not wait for each
//! other when one redirects to the other. Callbacks do not pass here; deliveries are
//! bounded where they are claimed (rule D3).

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::OwnedMutexGuard;
use tokio::time::{Instant, sleep_until};
use url::Url;

/// Below this many hosts none is forgotten; an entry takes some hundred bytes.
const FORGET_FROM: usize = 4_096;

/// Hands out turns.
#[derive(Debug)]
pub(super) struct Hosts {
    spacing: Duration,
    /// For each host the earliest start of its next fetch. A tokio mutex, because it
    /// lets waiters in by order of arrival and is held through the fetch.
    hosts: Mutex<HashMap<String, Arc<tokio::sync::Mutex<Instant>>>>,
}

/// The right to talk to one host, until dropped.
#[derive(Debug)]
pub(super) struct Turn {
    host: String,
    _held: OwnedMutexGuard<Instant>,
}

impl Hosts {
    /// Turns with `spacing` between the starts of two at one host; zero is no pause.
    pub(super) fn new(spacing: Duration) -> Hosts {
        Hosts { spacing, hosts: Mutex::default() }
    }

    /// Waits for a turn at the host of `url`.
    pub(super) async fn turn(&self, url: &Url) -> Turn {
        let host = host_of(url);
        let mut next = self.entry(&host).lock_owned().await;
        sleep_until(*next).await;
        *next = Instant::now() + self.spacing;
        Turn { host, _held: next }
    }

    fn entry(&self, host: &str) -> Arc<tokio::sync::Mutex<Instant>> {
        let mut hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        if hosts.len() >= FORGET_FROM && hosts.len() == hosts.capacity() {
            let now = Instant::now();
            hosts.retain(|_, next| {
                // Somebody else holds it, or is about to.
                Arc::strong_count(next) > 1 || next.try_lock().is_ok_and(|next| *next > now)
            });
        }
        Arc::clone(
            hosts
                .entry(host.to_owned())
                .or_insert_with(|| Arc::new(tokio::sync::Mutex::new(Instant::now()))),
        )
    }
}

impl Turn {
    /// Whether this is a turn at the host of `url`.
    pub(super) fn covers(&self, url: &Url) -> bool {
        self.host == host_of(url)
    }
}

fn host_of(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default().trim_end_matches('.');
    format!("{host}:{}", url.port_or_known_default().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn starts_at_one_host_are_spaced_and_others_do_not_wait() {
        let hosts = Hosts::new(Duration::from_secs(1));
        let begun = Instant::now();
        for _ in 0..3 {
            drop(hosts.turn(&url("http://a.test/x")).await);
        }
        assert_eq!(begun.elapsed().as_secs(), 2);
        drop(hosts.turn(&url("http://b.test/x")).await);
        drop(hosts.turn(&url("https://a.test/x")).await);
        assert_eq!(begun.elapsed().as_secs(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_host_serves_one_at_a_time_in_the_order_of_arrival() {
        let hosts = Arc::new(Hosts::new(Duration::ZERO));
        let first = hosts.turn(&url("http://a.test/")).await;
        let order = Arc::new(Mutex::new(Vec::new()));
        let mut waiting = Vec::new();
        for n in 0..5 {
            let (hosts, order) = (Arc::clone(&hosts), Arc::clone(&order));
            waiting.push(tokio::spawn(async move {
                let _turn = hosts.turn(&url("http://a.test./other")).await;
                order.lock().unwrap().push(n);
            }));
            tokio::task::yield_now().await;
        }
        assert!(order.lock().unwrap().is_empty());
        drop(first);
        for task in waiting {
            task.await.unwrap();
        }
        assert_eq!(*order.lock().unwrap(), [0, 1, 2, 3, 4]);
    }
}
