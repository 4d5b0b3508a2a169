//! How often passwords may be guessed.
//!
//! Failures are counted by the network of the client, and by login. Each failure of a network above the
//! free ones doubles the time until its next attempt, and is forgotten after a minute. While many
//! networks guess the password of one login, a network has no free failure there, unless it has signed
//! in before. Nobody is delayed by the failures of others, so that nobody can lock an author out:
//! guessing takes as many networks as guesses. The tables have a fixed size, and the oldest networks
//! are forgotten; logins share slots by a hash that cannot be computed from outside.

use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use quick_cache::unsync::Cache;
use tokio::time::Instant;

use crate::net::network;

const SLOTS: usize = 1 << 12;
/// The most networks whose failures are counted: 2 MiB.
const MAX_NETWORKS: usize = 1 << 16;
/// The time after which one failure is forgotten.
const FORGET_AFTER: Duration = Duration::from_secs(60);

/// The failures of a network that cause no delay.
const FREE: u32 = 10;
/// The failures at a login after which it counts as guessed at by many.
const OF_MANY: u32 = 50;
/// The longest delay.
const MAX_DELAY: Duration = Duration::from_secs(900);

#[derive(Clone, Copy)]
struct Failures {
    count: u32,
    last: Instant,
}

/// The failed attempts to sign in.
pub(super) struct LoginAttempts {
    by_network: Mutex<Cache<Option<u64>, Failures>>,
    by_login: Mutex<Vec<Option<Failures>>>,
    /// Hashes of the clients and logins that have signed in.
    known: Vec<AtomicU64>,
    hasher: RandomState,
}

impl LoginAttempts {
    pub(super) fn new() -> LoginAttempts {
        LoginAttempts {
            by_network: Mutex::new(Cache::new(MAX_NETWORKS)),
            by_login: Mutex::new(vec![None; SLOTS]),
            known: (0..SLOTS).map(|_| AtomicU64::new(0)).collect(),
            hasher: RandomState::new(),
        }
    }

    /// Returns how long this client has to wait before it may try the password of `login`, if at
    /// all.
    pub(super) fn delay(
        &self,
        login: &str,
        client: Option<IpAddr>,
        now: Instant,
    ) -> Option<Duration> {
        let failures = *lock(&self.by_network).get(&client.map(network))?;
        let is_guessed_at = lock(&self.by_login)[self.slot(login)]
            .is_some_and(|failures| remaining(failures, now) > OF_MANY);
        let free = if is_guessed_at && !self.is_known(login, client) { 0 } else { FREE };
        let beyond = remaining(failures, now).checked_sub(free + 1)?;
        let delay = Duration::from_secs(1 << beyond.min(20)).min(MAX_DELAY);
        let next = failures.last + delay;
        next.checked_duration_since(now).filter(|left| !left.is_zero())
    }

    /// Counts a wrong password.
    pub(super) fn failed(&self, login: &str, client: Option<IpAddr>, now: Instant) {
        let (network, slot) = (client.map(network), self.slot(login));
        let mut by_network = lock(&self.by_network);
        let before = by_network.get(&network).copied();
        by_network.insert(network, one_more(before, now));
        let mut by_login = lock(&self.by_login);
        by_login[slot] = Some(one_more(by_login[slot], now));
    }

    /// Remembers that the client knows the password.
    pub(super) fn succeeded(&self, login: &str, client: Option<IpAddr>) {
        let hash = self.hash_of(login, client);
        self.known[hash as usize % SLOTS].store(hash, Ordering::Relaxed);
    }

    fn is_known(&self, login: &str, client: Option<IpAddr>) -> bool {
        let hash = self.hash_of(login, client);
        self.known[hash as usize % SLOTS].load(Ordering::Relaxed) == hash
    }

    fn hash_of(&self, login: &str, client: Option<IpAddr>) -> u64 {
        // 0 stands for nobody.
        self.hasher.hash_one((login, client.map(network))).max(1)
    }

    fn slot(&self, key: impl std::hash::Hash) -> usize {
        self.hasher.hash_one(key) as usize % SLOTS
    }
}

fn lock<T>(table: &Mutex<T>) -> MutexGuard<'_, T> {
    table.lock().unwrap_or_else(PoisonError::into_inner)
}

fn one_more(before: Option<Failures>, now: Instant) -> Failures {
    let before = before.map_or(0, |failures| remaining(failures, now));
    Failures { count: before.saturating_add(1), last: now }
}

/// Returns how many failures are not forgotten yet.
fn remaining(failures: Failures, now: Instant) -> u32 {
    let since = now.saturating_duration_since(failures.last);
    let forgotten = since.as_secs() / FORGET_AFTER.as_secs();
    failures.count.saturating_sub(u32::try_from(forgotten).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(text: &str) -> Option<IpAddr> {
        Some(text.parse().unwrap())
    }

    #[test]
    fn t09_a_client_that_guesses_waits_twice_as_long_each_time() {
        let (attempts, began) = (LoginAttempts::new(), Instant::now());
        let guesser = client("203.0.113.9");
        for guess in 0..FREE {
            attempts.failed(&format!("login {guess}"), guesser, began);
            assert_eq!(attempts.delay("ada", guesser, began), None, "{guess} failures are free");
        }
        for seconds in [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 900, 900] {
            attempts.failed("ada", guesser, began);
            let delay = Duration::from_secs(seconds);
            assert_eq!(attempts.delay("ada", guesser, began), Some(delay));
            assert_eq!(attempts.delay("ada", guesser, began + delay), None);
        }
        assert_eq!(attempts.delay("ada", client("198.51.100.7"), began), None, "others may try");
        let later = began + FORGET_AFTER * (2 * FREE);
        attempts.failed("ada", guesser, later);
        assert_eq!(attempts.delay("ada", guesser, later), None, "failures are forgotten");
    }

    #[test]
    fn h20_many_networks_that_guess_one_password_delay_nobody_else() {
        let (attempts, now) = (LoginAttempts::new(), Instant::now());
        let owner = client("198.51.100.7");
        attempts.succeeded("ada", owner);
        for guess in 0..=OF_MANY {
            attempts.failed("ada", client(&format!("203.0.{guess}.9")), now);
        }
        let newcomer = client("192.0.2.1");
        assert_eq!(attempts.delay("ada", newcomer, now), None, "the owner at another network");
        for guess in 0..2 {
            attempts.failed("ada", newcomer, now);
            let delay = attempts.delay("ada", newcomer, now);
            assert_eq!(delay, Some(Duration::from_secs(1 << guess)), "no failure is free");
        }
        assert_eq!(attempts.delay("bob", newcomer, now), None, "another login");
        attempts.failed("ada", owner, now);
        assert_eq!(attempts.delay("ada", owner, now), None, "a known network");
    }

    #[test]
    fn h20_more_networks_than_are_counted_delay_nobody_else() {
        let (attempts, now) = (LoginAttempts::new(), Instant::now());
        for guess in 0..3 * MAX_NETWORKS as u32 {
            attempts.failed("ada", Some(IpAddr::from(guess.to_be_bytes())), now);
        }
        assert_eq!(attempts.delay("ada", client("198.51.100.7"), now), None);
    }
}
