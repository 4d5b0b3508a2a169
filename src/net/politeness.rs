//! Fetches from one host run one at a time, with a pause between their starts (rule P41).
//!
//! Fetches from one host run in the order of arrival. A host is a name and a port, so that `http`
//! and `https` of one name do not wait for each other when one redirects to the other. Concurrent
//! fetches from one address are limited too, from the second fetch of a host on, when its address
//! is known. Requests to callbacks are limited where deliveries are claimed (rule D3). Limits
//! across nodes, and for groups of hosts, are kept in the store.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedMutexGuard, OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep_until};
use url::Url;

/// The number of hosts from which on idle ones are forgotten. An entry takes a few hundred bytes.
const FORGET_FROM: usize = 4_096;
/// The maximum number of concurrent fetches from hosts at one address. More than one, because a
/// large provider has more hosts at an address than can be fetched one after the other.
const PER_ADDRESS: usize = 4;

/// Grants turns to fetch from hosts.
#[derive(Debug)]
pub(super) struct HostTurns {
    spacing: Duration,
    /// A tokio mutex for each host, because it admits waiters in order of arrival and can be held
    /// during a fetch.
    hosts: Mutex<HashMap<String, Arc<tokio::sync::Mutex<Host>>>>,
    addresses: Mutex<HashMap<IpAddr, Arc<Semaphore>>>,
}

/// The state of one host.
#[derive(Debug)]
struct Host {
    /// The earliest start of the next fetch.
    next: Instant,
    /// The address at the last fetch.
    address: Option<IpAddr>,
}

/// The right to send requests to one host, until dropped.
#[derive(Debug)]
pub(super) struct HostTurn {
    host: String,
    held: OwnedMutexGuard<Host>,
    _permit: Option<OwnedSemaphorePermit>,
}

impl HostTurns {
    /// Creates host turns with `spacing` between the starts of two fetches from one host; zero
    /// means no pause.
    pub(super) fn new(spacing: Duration) -> HostTurns {
        HostTurns { spacing, hosts: Mutex::default(), addresses: Mutex::default() }
    }

    /// Waits for a turn at the host of `url`.
    pub(super) async fn turn(&self, url: &Url) -> HostTurn {
        let host = host_of(url);
        let mut held = self.entry(&host).lock_owned().await;
        let permit = match held.address {
            // These semaphores are never closed.
            Some(address) => self.address_permits(address).acquire_owned().await.ok(),
            None => None,
        };
        sleep_until(held.next).await;
        held.next = Instant::now() + self.spacing;
        HostTurn { host, held, _permit: permit }
    }

    /// Returns the permits of an address.
    fn address_permits(&self, address: IpAddr) -> Arc<Semaphore> {
        let mut addresses = self.addresses.lock().unwrap_or_else(PoisonError::into_inner);
        if addresses.len() >= FORGET_FROM && addresses.len() == addresses.capacity() {
            addresses.retain(|_, permits| Arc::strong_count(permits) > 1);
        }
        let permits = addresses.entry(address);
        Arc::clone(permits.or_insert_with(|| Arc::new(Semaphore::new(PER_ADDRESS))))
    }

    fn entry(&self, host: &str) -> Arc<tokio::sync::Mutex<Host>> {
        let mut hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        if hosts.len() >= FORGET_FROM && hosts.len() == hosts.capacity() {
            let now = Instant::now();
            hosts.retain(|_, host| {
                // Another fetch holds the turn or waits for it.
                Arc::strong_count(host) > 1 || host.try_lock().is_ok_and(|host| host.next > now)
            });
        }
        let new = || Host { next: Instant::now(), address: None };
        let host = hosts.entry(host.to_owned());
        Arc::clone(host.or_insert_with(|| Arc::new(tokio::sync::Mutex::new(new()))))
    }
}

impl HostTurn {
    /// Returns whether this is a turn at the host of `url`.
    pub(super) fn covers(&self, url: &Url) -> bool {
        self.host == host_of(url)
    }

    /// Records the address of the host.
    pub(super) fn set_address(&mut self, address: IpAddr) {
        self.held.address = Some(address);
    }

    /// Lets the next fetch start without a pause.
    pub(super) fn waive_pause(&mut self) {
        self.held.next = Instant::now();
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
        let hosts = HostTurns::new(Duration::from_secs(1));
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
    async fn p41_hosts_at_one_address_are_asked_a_few_at_a_time() {
        let hosts = HostTurns::new(Duration::ZERO);
        let host = |n: usize| url(&format!("http://{n}.test/"));
        for n in 0..=PER_ADDRESS {
            hosts.turn(&host(n)).await.set_address(IpAddr::from([192, 0, 2, 1]));
        }
        let mut turns = Vec::new();
        for n in 0..PER_ADDRESS {
            turns.push(hosts.turn(&host(n)).await);
        }
        let elsewhere = url("http://else.test/");
        let last = host(PER_ADDRESS);
        let mut one_more = std::pin::pin!(hosts.turn(&last));
        assert!(futures_util::poll!(&mut one_more).is_pending());
        drop(hosts.turn(&elsewhere).await);
        turns.pop();
        one_more.await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_host_serves_one_at_a_time_in_the_order_of_arrival() {
        let hosts = Arc::new(HostTurns::new(Duration::ZERO));
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
