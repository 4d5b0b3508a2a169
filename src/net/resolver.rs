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

use super::fetch_owner::FetchOwner;
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
    entries: Entries,
}

/// How names are looked up, by whom they are looked up for.
#[derive(Debug)]
pub(super) enum Lookups {
    /// With these resolvers, of which one is for accounts and the gateway itself.
    Given { known: Arc<dyn Lookup>, others: Arc<dyn Lookup> },
    /// With the system's resolver.
    System(SystemLookups),
}

/// The places in which the system looks up names. Strangers have places of their own, and so have the
/// deliveries that they have subscribed to, so that names for which nobody answers occupy none of the
/// others. Each network leaves some of these to the next.
#[derive(Debug)]
pub(super) struct SystemLookups {
    known: SystemLookup,
    anonymous: SystemLookup,
    deliveries: SystemLookup,
    entries: Entries,
}

/// How many names are looked up at the same time, each of which takes a thread: together less than half of
/// those of the pool.
const KNOWN_PLACES: usize = 112;
const ANONYMOUS_PLACES: usize = 64;
const DELIVERY_PLACES: usize = 64;

impl Lookups {
    /// Looks up names with the system's resolver, of which no lookup may take less than `shortest`.
    pub(super) fn of_system(shortest: Duration) -> Lookups {
        let system = |places| SystemLookup::new(places).within(shortest);
        Lookups::System(SystemLookups {
            known: system(KNOWN_PLACES),
            anonymous: system(ANONYMOUS_PLACES),
            deliveries: system(DELIVERY_PLACES),
            entries: Entries::default(),
        })
    }

    /// Returns what looks up names for `owner`.
    pub(super) fn for_owner(&self, owner: FetchOwner) -> Arc<dyn Lookup> {
        match self {
            Lookups::Given { known, .. } if owner == FetchOwner::Known => Arc::clone(known),
            Lookups::Given { others, .. } => Arc::clone(others),
            Lookups::System(system) => {
                let resolver = match owner {
                    FetchOwner::Known => system.known.clone(),
                    FetchOwner::Anonymous(network) => system.anonymous.for_network(network),
                    FetchOwner::Delivery(network) => system.deliveries.for_network(network),
                };
                let entries = Arc::clone(&system.entries);
                Arc::new(CachingLookup { resolver: Arc::new(resolver), entries })
            }
        }
    }
}

/// The addresses, or the reason why there are none.
type Answer = Result<Vec<IpAddr>, String>;
/// What is remembered of each name, and until when.
type Entries = Arc<Mutex<HashMap<String, (Instant, Answer)>>>;

impl CachingLookup {
    /// Creates a cache for the results of `resolver`.
    #[cfg(test)]
    fn new(resolver: Arc<dyn Lookup>) -> CachingLookup {
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

    use feedgate_core::registrant::RegistrantNetwork;
    use tokio::time::timeout;

    use super::*;

    /// Longer than lookups wait for places.
    const PATIENCE: Duration = Duration::from_millis(100);

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

    #[tokio::test]
    async fn h13_names_of_strangers_that_nobody_answers_for_hold_up_no_delivery() {
        static HELD: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());
        let resolve: fn(&str) -> io::Result<Vec<IpAddr>> = |name| {
            if name == "slow.test" {
                drop(HELD.blocking_lock());
            }
            Ok(vec![IpAddr::from([192, 0, 2, 1])])
        };
        let system = |places| SystemLookup::for_tests(places, resolve);
        let lookups = Lookups::System(SystemLookups {
            known: system(1),
            anonymous: system(4),
            deliveries: system(4),
            entries: Entries::default(),
        });
        let network = |last: u8| RegistrantNetwork::from_client(Some([192, 0, last, 1].into()));
        let held = HELD.lock().await;
        // Whoever wants the answers gives up. One network leaves places to the next.
        let give_up = async |owner| {
            let answer = timeout(PATIENCE, lookups.for_owner(owner).lookup("slow.test")).await;
            answer.is_err()
        };
        for (last, is_looked_up) in [(1, true), (1, true), (1, false), (2, true), (3, true)] {
            let owner = FetchOwner::Anonymous(network(last));
            assert_eq!(give_up(owner).await, is_looked_up, "{last}");
        }
        for _ in 0..4 {
            give_up(FetchOwner::Delivery(network(1))).await;
        }
        let fourth = lookups.for_owner(FetchOwner::Anonymous(network(4))).lookup("b.test").await;
        assert!(fourth.is_err(), "no place is left");
        for (owner, name) in
            [(FetchOwner::Delivery(network(2)), "a.test"), (FetchOwner::Known, "c.test")]
        {
            assert!(lookups.for_owner(owner).lookup(name).await.is_ok(), "{owner:?}");
        }
        drop(held);
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
