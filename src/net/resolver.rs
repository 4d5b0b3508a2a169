//! A cache of name lookups, valid for a minute (rule P49).
//!
//! The system's resolver is used, because only it knows the hosts file, the search list and the
//! local name servers. It does not report the TTL of a record, so every result is cached for a
//! minute, which is within the allowed range (30 s to 10 min). The guard checks cached addresses at
//! each connection like any others.

use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use tokio::time::Instant;

use super::guarded_client::{Lookup, is_unknown};
use super::system_lookup::SystemLookup;

/// How long a result is valid, including the result that a name does not exist.
const VALID_FOR: Duration = Duration::from_secs(60);
/// The number of names from which on expired ones are forgotten. An entry takes a few hundred
/// bytes.
const FORGET_FROM: usize = 16_384;

/// Resolves each name at most once a minute. A failed lookup is not cached: the next one may
/// succeed.
#[derive(Debug)]
pub(super) struct CachingLookup {
    resolver: Arc<dyn Lookup>,
    entries: Arc<Mutex<HashMap<String, (Instant, Answer)>>>,
}

/// How names are looked up for accounts and the gateway itself, and how for strangers.
#[derive(Debug)]
pub(super) struct Lookups {
    pub(super) known: Arc<dyn Lookup>,
    pub(super) anonymous: Arc<dyn Lookup>,
}

/// How many names are looked up at the same time, each of which takes a thread: together less than half of
/// those of the pool.
const KNOWN_PLACES: usize = 128;
const ANONYMOUS_PLACES: usize = 64;

impl Lookups {
    /// Looks up all names with the same resolver.
    pub(super) fn same(lookup: Arc<dyn Lookup>) -> Lookups {
        Lookups { known: Arc::clone(&lookup), anonymous: lookup }
    }

    /// Looks up names with the system's resolver. Strangers have places of their own, so that names for
    /// which nobody answers occupy none of the others.
    pub(super) fn of_system() -> Lookups {
        let system = |places| Arc::new(SystemLookup::new(places));
        let known = CachingLookup::new(system(KNOWN_PLACES));
        let anonymous = CachingLookup {
            resolver: system(ANONYMOUS_PLACES),
            entries: Arc::clone(&known.entries),
        };
        Lookups { known: Arc::new(known), anonymous: Arc::new(anonymous) }
    }
}

/// The addresses, or the reason why there are none.
type Answer = Result<Vec<IpAddr>, String>;

impl CachingLookup {
    /// Creates a cache for the results of `resolver`.
    pub(super) fn new(resolver: Arc<dyn Lookup>) -> CachingLookup {
        CachingLookup { resolver, entries: Arc::default() }
    }

    fn entries(&self) -> std::sync::MutexGuard<'_, HashMap<String, (Instant, Answer)>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn insert(&self, name: &str, answer: Answer) {
        let now = Instant::now();
        let mut entries = self.entries();
        if entries.len() >= FORGET_FROM && entries.len() == entries.capacity() {
            entries.retain(|_, (until, _)| *until > now);
        }
        entries.insert(name.to_owned(), (now + VALID_FOR, answer));
    }
}

#[async_trait]
impl Lookup for CachingLookup {
    async fn lookup(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        let entries =
            self.entries().get(name).filter(|(until, _)| *until > Instant::now()).cloned();
        if let Some((_, answer)) = entries {
            return answer.map_err(io::Error::other);
        }
        let answer = self.resolver.lookup(name).await;
        match &answer {
            Ok(found) => self.insert(name, Ok(found.clone())),
            Err(err) if is_unknown(err) => self.insert(name, Err(err.to_string())),
            Err(_) => {}
        }
        answer
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// A resolver that counts its lookups.
    #[derive(Debug, Default)]
    struct Counting(AtomicUsize);

    #[async_trait]
    impl Lookup for Counting {
        async fn lookup(&self, name: &str) -> io::Result<Vec<IpAddr>> {
            let n = self.0.fetch_add(1, Ordering::SeqCst);
            match name {
                "a.test" => Ok(vec![IpAddr::from([192, 0, 2, n as u8])]),
                "none.test" => Err(io::Error::other("Name or service not known")),
                _ => Err(io::Error::other("Temporary failure in name resolution")),
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn p49_answers_are_remembered_for_a_minute_and_failures_are_not() {
        #[rustfmt::skip]
        let cases = [
            ("an address",               "a.test",    [1, 1, 2]),
            ("that there is no such name", "none.test", [1, 1, 2]),
            ("a failure",                "ill.test",  [1, 2, 3]),
        ];
        for (why, name, want) in cases {
            let counting = Arc::new(Counting::default());
            let names = CachingLookup::new(counting.clone());
            let mut lookups = Vec::new();
            for pause in [0, 59, 2] {
                tokio::time::advance(Duration::from_secs(pause)).await;
                let answer = names.lookup(name).await;
                assert_eq!(answer.is_ok(), name == "a.test", "{why}");
                lookups.push(counting.0.load(Ordering::SeqCst));
            }
            assert_eq!(lookups, want, "{why}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn p49_names_whose_time_is_over_are_forgotten() {
        let names = CachingLookup::new(Arc::new(Counting::default()));
        for n in 0..3 * FORGET_FROM {
            names.insert(&format!("{n}.test"), Ok(Vec::new()));
            tokio::time::advance(Duration::from_millis(10)).await;
        }
        assert!(names.entries().len() < 2 * FORGET_FROM, "{}", names.entries().len());
    }
}
