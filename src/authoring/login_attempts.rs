//! How often passwords may be guessed.
//!
//! Failures are counted by client and by login. Each failure above the free ones doubles the time
//! until the next attempt, and is forgotten after a minute. The tables have a fixed size: keys share
//! slots by a hash that cannot be computed from outside. A client that has signed in before is not
//! delayed by the failures of others, so that nobody can lock an author out.

use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::net::network;

const SLOTS: usize = 1 << 12;
/// The time after which one failure is forgotten.
const FORGET_AFTER: Duration = Duration::from_secs(60);

/// Bounds of the attempts that share a key.
struct Bounds {
    /// Failures that cause no delay.
    free: u32,
    /// The longest delay.
    max_delay: Duration,
}

const OF_CLIENT: Bounds = Bounds { free: 10, max_delay: Duration::from_secs(900) };
/// Guesses of many clients at one password.
const OF_LOGIN: Bounds = Bounds { free: 50, max_delay: Duration::from_secs(60) };

#[derive(Clone, Copy)]
struct Failures {
    count: u32,
    last: Instant,
}

/// The failed attempts to sign in.
pub(super) struct LoginAttempts {
    by_client: Mutex<Vec<Option<Failures>>>,
    by_login: Mutex<Vec<Option<Failures>>>,
    /// Hashes of the clients and logins that have signed in.
    known: Vec<AtomicU64>,
    hasher: RandomState,
}

impl LoginAttempts {
    pub(super) fn new() -> LoginAttempts {
        LoginAttempts {
            by_client: Mutex::new(vec![None; SLOTS]),
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
        let of_client = delay(&self.by_client, self.slot(client.map(network)), &OF_CLIENT, now);
        let of_login = match self.is_known(login, client) {
            true => None,
            false => delay(&self.by_login, self.slot(login), &OF_LOGIN, now),
        };
        of_client.max(of_login)
    }

    /// Counts a wrong password.
    pub(super) fn failed(&self, login: &str, client: Option<IpAddr>, now: Instant) {
        count(&self.by_client, self.slot(client.map(network)), now);
        count(&self.by_login, self.slot(login), now);
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

fn delay(
    table: &Mutex<Vec<Option<Failures>>>,
    slot: usize,
    bounds: &Bounds,
    now: Instant,
) -> Option<Duration> {
    let failures = table.lock().unwrap_or_else(PoisonError::into_inner)[slot]?;
    let beyond = remaining(failures, now).checked_sub(bounds.free + 1)?;
    let delay = Duration::from_secs(1 << beyond.min(20)).min(bounds.max_delay);
    let next = failures.last + delay;
    next.checked_duration_since(now).filter(|left| !left.is_zero())
}

fn count(table: &Mutex<Vec<Option<Failures>>>, slot: usize, now: Instant) {
    let mut table = table.lock().unwrap_or_else(PoisonError::into_inner);
    let before = table[slot].map_or(0, |failures| remaining(failures, now));
    table[slot] = Some(Failures { count: before.saturating_add(1), last: now });
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
        for guess in 0..OF_CLIENT.free {
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
        let later = began + FORGET_AFTER * (2 * OF_CLIENT.free);
        attempts.failed("ada", guesser, later);
        assert_eq!(attempts.delay("ada", guesser, later), None, "failures are forgotten");
    }

    #[test]
    fn t09_many_clients_that_guess_one_password_wait_but_its_owner_does_not() {
        let (attempts, now) = (LoginAttempts::new(), Instant::now());
        let owner = client("198.51.100.7");
        attempts.succeeded("ada", owner);
        for guess in 0..=OF_LOGIN.free {
            attempts.failed("ada", client(&format!("203.0.{guess}.9")), now);
        }
        let newcomer = client("192.0.2.1");
        assert_eq!(attempts.delay("ada", newcomer, now), Some(Duration::from_secs(1)));
        assert_eq!(attempts.delay("ada", owner, now), None);
        assert_eq!(attempts.delay("bob", newcomer, now), None, "another login");
    }
}
