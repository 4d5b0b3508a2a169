//! Fetches from one host run one at a time, with a pause between their starts (rule P41).
//!
//! Fetches from one host run in the order of arrival. A host is a name and a port, so that `http`
//! and `https` of one name do not wait for each other when one redirects to the other. Concurrent
//! fetches from one address are limited too, from the second fetch of a host on, when its address
//! is known. Requests to callbacks are limited where deliveries are claimed (rule D3). Limits
//! across nodes, and for groups of hosts, are kept in the store.
//!
//! The first fetch of a resource neither waits for a pause nor for other fetches of its host, up to
//! a few at the same time, because a subscriber waits for it.
//!
//! Waiting is limited in number and time, because a waiting poll holds one of the few places in
//! which polls run. A fetch that cannot have its host or its address soon ends with [`HostBusy`].

mod line;

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedMutexGuard, OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep_until};
use url::Url;

use super::network;
use line::Line;

/// The number of hosts from which on idle ones are forgotten. An entry takes a few hundred bytes.
const FORGET_FROM: usize = 4_096;
/// The maximum number of concurrent fetches from hosts at one address. More than one, because a
/// large provider has more hosts at an address than can be fetched one after the other.
const PER_ADDRESS: usize = 4;
/// The maximum number of concurrent first fetches from one host: few enough for a small server, and
/// enough that somebody who subscribes to dozens of its resources waits for none of them.
const FIRST_FETCHES: usize = 8;
/// How long a poll that nobody waits for may wait for its host, and again for its address.
const BACKGROUND_WAIT: Duration = Duration::from_secs(2);
/// How long a fetch may wait for its host whose result somebody waits for.
const INTERACTIVE_WAIT: Duration = Duration::from_secs(30);

/// How long, and behind how many others, a fetch waits for its host or its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patience {
    /// For a poll that can be repeated later. It waits for at most 2 s.
    Background,
    /// For a further request of a poll that has begun. It also waits for the pause between two
    /// requests, which otherwise could end each repetition of the poll in the same place.
    Continued,
    /// For a request whose result somebody waits for.
    Interactive,
    /// For the first fetch of a resource, which a subscriber waits for. It waits only while many
    /// other first fetches from the host are in progress.
    FirstFetch,
}

/// A host, or the address that it shares with others, is busy with other fetches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostBusy {
    /// The host and port.
    pub host: String,
    /// After how long the fetch may be tried again, such that those that were turned away do not
    /// all return at once.
    pub retry_in: Duration,
}

/// Grants turns to fetch from hosts.
#[derive(Debug)]
pub(super) struct HostTurns {
    spacing: Duration,
    hosts: Mutex<HashMap<String, Arc<HostEntry>>>,
    /// By network: whoever has one address of IPv6 has a /64 of them.
    addresses: Mutex<HashMap<u64, Arc<AddressEntry>>>,
}

#[derive(Debug)]
struct HostEntry {
    /// A tokio mutex, because it admits waiters in order of arrival and can be held during a fetch.
    host: Arc<tokio::sync::Mutex<Host>>,
    line: Line,
    first_fetches: Arc<Semaphore>,
    first_fetch_line: Line,
}

#[derive(Debug)]
struct AddressEntry {
    permits: Arc<Semaphore>,
    line: Line,
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
    name: String,
    held: HeldTurn,
    entry: Arc<HostEntry>,
    address: Option<(Arc<AddressEntry>, OwnedSemaphorePermit)>,
    began: Instant,
}

/// What a turn holds of its host.
#[derive(Debug)]
enum HeldTurn {
    /// The host itself: no other turn begins meanwhile.
    Host(OwnedMutexGuard<Host>),
    /// One of the places for first fetches.
    FirstFetch { _permit: OwnedSemaphorePermit },
}

impl Patience {
    /// Returns the longest time that a fetch waits for a host with this pause between two fetches.
    pub(super) fn max_wait(self, spacing: Duration) -> Duration {
        match self {
            Patience::Background => BACKGROUND_WAIT,
            Patience::Continued => BACKGROUND_WAIT + spacing,
            Patience::Interactive | Patience::FirstFetch => INTERACTIVE_WAIT + spacing,
        }
    }

    /// The number of fetches that may wait at the same time for one place. Background polls leave room for those
    /// that somebody waits for.
    fn max_waiting(self) -> usize {
        match self {
            Patience::Background => 4,
            Patience::Continued => 8,
            Patience::Interactive | Patience::FirstFetch => 32,
        }
    }
}

impl HostTurns {
    /// Creates host turns with `spacing` between the starts of two fetches from one host; zero
    /// means no pause.
    pub(super) fn new(spacing: Duration) -> HostTurns {
        HostTurns { spacing, hosts: Mutex::default(), addresses: Mutex::default() }
    }

    /// Waits for a turn at the host of `url`, within the limits of `patience`.
    pub(super) async fn turn(&self, url: &Url, patience: Patience) -> Result<HostTurn, HostBusy> {
        let name = host_of(url);
        let entry = self.entry(&name);
        let wait = patience.max_wait(self.spacing);
        let until = Instant::now() + wait;
        if patience == Patience::FirstFetch {
            return self.first_fetch_turn(name, entry, until).await;
        }

        let lock = Arc::clone(&entry.host).lock_owned();
        let Some(mut held) = entry.line.wait(lock, patience.max_waiting(), until).await else {
            let retry_in = entry.line.put_off(self.spacing);
            return Err(HostBusy { host: name, retry_in });
        };
        if held.next > until {
            let retry_in = held.next.duration_since(Instant::now());
            return Err(HostBusy { host: name, retry_in });
        }
        sleep_until(held.next).await;

        let address = match held.address {
            Some(ip) => {
                let address = self.address(ip);
                let permit = Arc::clone(&address.permits).acquire_owned();
                let until = Instant::now() + wait;
                match address.line.wait(permit, patience.max_waiting(), until).await {
                    // Waiting fails only if a semaphore is closed, which nothing does.
                    Some(permit) => permit.ok().map(|permit| (address, permit)),
                    None => {
                        let retry_in = address.line.put_off(self.spacing / PER_ADDRESS as u32);
                        return Err(HostBusy { host: name, retry_in });
                    }
                }
            }
            None => None,
        };
        let began = Instant::now();
        held.next = began + self.spacing;
        Ok(HostTurn { name, held: HeldTurn::Host(held), entry, address, began })
    }

    /// Waits for one of the places for first fetches.
    async fn first_fetch_turn(
        &self,
        name: String,
        entry: Arc<HostEntry>,
        until: Instant,
    ) -> Result<HostTurn, HostBusy> {
        let permit = Arc::clone(&entry.first_fetches).acquire_owned();
        let max_waiting = Patience::FirstFetch.max_waiting();
        // Waiting fails only if a semaphore is closed, which nothing does.
        let admitted = entry.first_fetch_line.wait(permit, max_waiting, until).await;
        let Some(Ok(permit)) = admitted else {
            let retry_in = entry.first_fetch_line.put_off(self.spacing);
            return Err(HostBusy { host: name, retry_in });
        };
        let held = HeldTurn::FirstFetch { _permit: permit };
        Ok(HostTurn { name, held, entry, address: None, began: Instant::now() })
    }

    fn address(&self, address: IpAddr) -> Arc<AddressEntry> {
        let mut addresses = self.addresses.lock().unwrap_or_else(PoisonError::into_inner);
        if addresses.len() >= FORGET_FROM && addresses.len() == addresses.capacity() {
            addresses.retain(|_, entry| Arc::strong_count(entry) > 1);
        }
        let new = || AddressEntry {
            permits: Arc::new(Semaphore::new(PER_ADDRESS)),
            line: Line::new(PER_ADDRESS),
        };
        Arc::clone(addresses.entry(network(address)).or_insert_with(|| Arc::new(new())))
    }

    fn entry(&self, host: &str) -> Arc<HostEntry> {
        let mut hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        if hosts.len() >= FORGET_FROM && hosts.len() == hosts.capacity() {
            let now = Instant::now();
            hosts.retain(|_, entry| {
                // Another fetch holds the turn or waits for it.
                Arc::strong_count(entry) > 1
                    || entry.host.try_lock().is_ok_and(|host| host.next > now)
            });
        }
        let new = || HostEntry {
            host: Arc::new(tokio::sync::Mutex::new(Host { next: Instant::now(), address: None })),
            line: Line::new(1),
            first_fetches: Arc::new(Semaphore::new(FIRST_FETCHES)),
            first_fetch_line: Line::new(FIRST_FETCHES),
        };
        Arc::clone(hosts.entry(host.to_owned()).or_insert_with(|| Arc::new(new())))
    }
}

impl HostTurn {
    /// Returns whether this is a turn at the host of `url`.
    pub(super) fn covers(&self, url: &Url) -> bool {
        self.name == host_of(url)
    }

    /// Records the address of the host.
    pub(super) fn set_address(&mut self, address: IpAddr) {
        if let HeldTurn::Host(host) = &mut self.held {
            host.address = Some(address);
        }
    }

    /// Lets the next fetch start without a pause.
    pub(super) fn waive_pause(&mut self) {
        if let HeldTurn::Host(host) = &mut self.held {
            host.next = Instant::now();
        }
    }
}

impl Drop for HostTurn {
    fn drop(&mut self) {
        let took = self.began.elapsed();
        match &self.held {
            HeldTurn::Host(_) => self.entry.line.served(took),
            HeldTurn::FirstFetch { .. } => self.entry.first_fetch_line.served(took),
        }
        if let Some((address, _)) = &self.address {
            address.line.served(took);
        }
    }
}

/// The host and port of `url`.
pub(super) fn host_of(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default().trim_end_matches('.');
    format!("{host}:{}", url.port_or_known_default().unwrap_or_default())
}

#[cfg(test)]
mod tests;
