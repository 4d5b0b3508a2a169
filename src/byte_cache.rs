//! A cache bounded in bytes, in which a value is made once however many callers request it.
//!
//! Invariants:
//!
//! * All values together take no more than the capacity, and a value that takes more than half of
//!   it is not stored. Values that are requested again stay longer than others.
//! * Callers that request a value that is being made wait for it. If its maker fails or is
//!   cancelled, the next waiting caller makes it. A failure is not stored.
//! * No caller waits longer than `LONGEST_WAIT`: a caller that has waited so long makes the value
//!   itself, so that callers never queue up behind one maker after the other fails.
//!
//! The owner of the cache decides at each call whether a value may still be used: the freshness of
//! cached documents depends on more than their age.

mod cache_name;

use std::fmt;
use std::hash::{Hash, RandomState};
use std::time::Duration;

use quick_cache::sync::{Cache, DefaultLifecycle, PlaceholderGuard};
use quick_cache::{OptionsBuilder, Weighter};
use tokio::time::timeout;

pub use cache_name::CacheName;

/// How long a caller waits for a value that another one makes.
const LONGEST_WAIT: Duration = Duration::from_secs(5);
/// The size of an entry besides its value: the key, counters and links.
const ENTRY_BYTES: usize = 512;
/// The share of the capacity for values that were requested again; the other half is for recent
/// ones, which would otherwise be evicted by the next before they are requested again.
const SHARE_FOR_REUSED: f64 = 0.5;
/// The average size of a value, to within a factor of a hundred. It determines how many evicted
/// values the cache remembers.
const TYPICAL_BYTES: usize = 8 * 1024;

/// A value with a known memory size.
pub trait ByteSize {
    /// Returns the approximate size in bytes, which is always the same for one value.
    fn byte_size(&self) -> usize;
}

#[derive(Clone)]
struct EntryBytes;

impl<K, V: ByteSize> Weighter<K, V> for EntryBytes {
    fn weight(&self, _: &K, value: &V) -> u64 {
        ENTRY_BYTES.saturating_add(value.byte_size()) as u64
    }
}

// Keys contain addresses that others choose, so they are hashed as in the standard library's maps.
type Lifecycle<K, V> = DefaultLifecycle<K, V>;
type Entries<K, V> = Cache<K, V, EntryBytes, RandomState, Lifecycle<K, V>>;
type Guard<'a, K, V> = PlaceholderGuard<'a, K, V, EntryBytes, RandomState, Lifecycle<K, V>>;

/// A cache bounded in bytes. Values are returned as clones, so they should be cheap to clone.
pub struct ByteCache<K, V> {
    entries: Entries<K, V>,
}

impl<K: Eq + Hash + Clone, V: Clone + ByteSize> ByteCache<K, V> {
    /// Creates an empty cache, with the capacity of this one for all entries together.
    pub fn new(cache: CacheName) -> ByteCache<K, V> {
        let capacity_bytes = cache.capacity_bytes();
        let options = OptionsBuilder::new()
            // There is one shard, because each shard would have a separate share of the capacity.
            .shards(1)
            .weight_capacity(capacity_bytes as u64)
            .estimated_items_capacity(capacity_bytes / TYPICAL_BYTES)
            .hot_allocation(SHARE_FOR_REUSED)
            .build()
            .expect("the capacities are set above");
        let (hasher, lifecycle) = (RandomState::new(), Lifecycle::default());
        ByteCache { entries: Entries::with_options(options, EntryBytes, hasher, lifecycle) }
    }

    /// Returns the value of a key. A value that is being made is not waited for.
    pub fn get(&self, key: &K) -> Option<V> {
        self.entries.get(key)
    }

    /// Stores a value, replacing the previous one.
    pub fn insert(&self, key: K, value: V) {
        self.entries.insert(key, value);
    }

    /// Stores a value in place of one that `is_same` accepts, if that is still there.
    pub fn replace(&self, key: &K, value: V, is_same: impl FnOnce(&V) -> bool) {
        if self.entries.peek(key).is_some_and(|held| is_same(&held)) {
            // An error means that the value was evicted in between.
            let _ = self.entries.replace(key.clone(), value, true);
        }
    }

    /// Returns the value of a key if it is usable, or else a guard: the caller then makes the
    /// value, and others wait until the guard is filled or dropped.
    pub async fn get_or_guard(
        &self,
        key: &K,
        is_usable: impl Fn(&V) -> bool,
    ) -> Result<V, FillGuard<'_, K, V>> {
        let mut previous = None;
        let guarded = async {
            loop {
                match self.entries.get_value_or_guard_async(key).await {
                    Ok(value) if is_usable(&value) => return Ok(value),
                    Ok(value) => {
                        self.entries.remove_if(key, |held| !is_usable(held));
                        previous = Some(value);
                    }
                    Err(guard) => return Err(guard),
                }
            }
        };
        let guard = match timeout(LONGEST_WAIT, guarded).await {
            Ok(Ok(value)) => return Ok(value),
            Ok(Err(guard)) => Some(guard),
            Err(_) => None,
        };
        Err(FillGuard { cache: self, key: key.clone(), guard, previous })
    }

    /// Returns the value of a key: the stored one if it is usable, or the one that `make` makes.
    pub async fn get_or_make<E>(
        &self,
        key: &K,
        is_usable: impl Fn(&V) -> bool,
        make: impl Future<Output = Result<V, E>>,
    ) -> Result<V, E> {
        match self.get_or_guard(key, is_usable).await {
            Ok(value) => Ok(value),
            Err(guard) => {
                let value = make.await?;
                guard.fill(value.clone());
                Ok(value)
            }
        }
    }

    /// Returns the size of all entries in bytes.
    pub fn bytes(&self) -> usize {
        usize::try_from(self.entries.weight()).unwrap_or(usize::MAX)
    }

    /// Returns the number of values.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns whether the cache is empty.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

impl<K, V> fmt::Debug for ByteCache<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ByteCache").finish_non_exhaustive()
    }
}

/// The guard of the caller that makes a value while others wait for it. If the guard is dropped
/// unfilled, one of the waiting callers makes the value.
pub struct FillGuard<'a, K, V> {
    cache: &'a ByteCache<K, V>,
    key: K,
    /// `None` after [`LONGEST_WAIT`]: another caller still makes the value, too.
    guard: Option<Guard<'a, K, V>>,
    previous: Option<V>,
}

impl<K: Eq + Hash + Clone, V: Clone + ByteSize> FillGuard<'_, K, V> {
    /// Returns the value that was found not to be usable; it is no longer in the cache.
    pub fn previous(&self) -> Option<&V> {
        self.previous.as_ref()
    }

    /// Stores the value and passes it to all callers that wait for it.
    pub fn fill(self, value: V) {
        match self.guard {
            // An error means that another caller stored a newer value without waiting.
            Some(guard) => guard.insert(value).unwrap_or_default(),
            None => self.cache.insert(self.key, value),
        }
    }
}

impl<K, V> fmt::Debug for FillGuard<'_, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FillGuard")
            .field("has_guard", &self.guard.is_some())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures_util::future::join_all;
    use tokio::time::sleep;

    use super::*;

    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    struct Blob(usize);

    impl ByteSize for Blob {
        fn byte_size(&self) -> usize {
            self.0
        }
    }

    /// A cache, and the number of times that a value was made for it.
    struct Counted {
        cache: ByteCache<u32, Blob>,
        made: AtomicUsize,
    }

    impl Counted {
        fn new(capacity_bytes: usize) -> Arc<Counted> {
            let cache = ByteCache::new(CacheName::OfTest { capacity_bytes });
            Arc::new(Counted { cache, made: AtomicUsize::new(0) })
        }

        /// Requests a value that takes a second to make; the first `failures` fail.
        async fn ask(&self, key: u32, failures: usize) -> Result<Blob, usize> {
            let make = async {
                let number = self.made.fetch_add(1, Ordering::Relaxed) + 1;
                sleep(Duration::from_secs(1)).await;
                if number > failures { Ok(Blob(10)) } else { Err(number) }
            };
            self.cache.get_or_make(&key, |_| true, make).await
        }

        fn made(&self) -> usize {
            self.made.swap(0, Ordering::Relaxed)
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_value_is_made_once_however_many_ask() {
        let counted = Counted::new(100_000);
        let asking = (0..500).map(|_| {
            let counted = Arc::clone(&counted);
            tokio::spawn(async move { counted.ask(1, 0).await })
        });
        for value in join_all(asking).await {
            assert_eq!(value.unwrap(), Ok(Blob(10)));
        }
        assert_eq!(counted.made(), 1);
        assert_eq!(counted.ask(1, 0).await, Ok(Blob(10)));
        assert_eq!(counted.made(), 0, "it is there");
    }

    #[tokio::test(start_paused = true)]
    async fn a_value_that_is_too_large_to_store_is_made_once_for_all_who_wait() {
        let counted = Counted::new(0);
        join_all((0..50).map(|_| counted.ask(1, 0))).await;
        assert_eq!((counted.made(), counted.cache.len()), (1, 0));
        counted.ask(1, 0).await.unwrap();
        assert_eq!(counted.made(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn the_next_in_line_takes_over_when_the_maker_is_cancelled() {
        let counted = Counted::new(100_000);
        let hasty = timeout(Duration::from_millis(500), counted.ask(1, 0));
        let (hasty, others) =
            tokio::join!(hasty, async { join_all((0..50).map(|_| counted.ask(1, 0))).await });
        assert!(hasty.is_err());
        assert!(others.iter().all(Result::is_ok));
        assert_eq!(counted.made(), 2, "by the one who went away, and by one of the others");
    }

    #[tokio::test(start_paused = true)]
    async fn a_failure_is_the_makers_own_and_not_stored() {
        let counted = Counted::new(100_000);
        let values = join_all((0..50).map(|_| counted.ask(1, 2))).await;
        assert_eq!(values.iter().filter(|value| value.is_err()).count(), 2);
        assert_eq!(counted.made(), 3);
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_waits_for_one_failing_maker_after_the_other() {
        let counted = Counted::new(100_000);
        let began = tokio::time::Instant::now();
        let values = join_all((0..50).map(|_| counted.ask(1, usize::MAX))).await;
        assert!(values.iter().all(Result::is_err));
        assert!(began.elapsed() <= LONGEST_WAIT + Duration::from_secs(1));
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_not_usable_is_made_anew_and_its_maker_knows_it() {
        let cache = ByteCache::new(CacheName::OfTest { capacity_bytes: 100_000 });
        cache.insert(1, Blob(10));
        let guard = cache.get_or_guard(&1, |held| held.0 > 10).await.unwrap_err();
        assert_eq!((guard.previous(), cache.get(&1)), (Some(&Blob(10)), None));
        guard.fill(Blob(20));
        assert_eq!(cache.get_or_guard(&1, |held| held.0 > 10).await.unwrap(), Blob(20));
    }

    #[test]
    fn it_never_takes_more_than_its_capacity() {
        let cache = ByteCache::new(CacheName::OfTest { capacity_bytes: 1_000_000 });
        for key in 0..5_000 {
            cache.insert(key, Blob(key as usize * 7_919 % 90_000));
            assert!(cache.bytes() <= 1_000_000);
            assert!(key == 0 || cache.get(&0).is_some(), "asked for all the time, {key}");
        }
        assert!(cache.bytes() > 800_000, "its capacity is used: {}", cache.bytes());
        assert!(cache.get(&4_999).is_some(), "what came last is there");
        cache.insert(6_000, Blob(600_000));
        assert_eq!(cache.get(&6_000), None, "it takes more than half");
    }

    #[test]
    fn what_grows_is_counted_as_it_is() {
        let cache = ByteCache::new(CacheName::OfTest { capacity_bytes: 100_000 });
        cache.insert(1, Blob(10));
        cache.replace(&1, Blob(30_000), |held| held.0 == 10);
        assert_eq!(cache.bytes(), ENTRY_BYTES + 30_000);
        cache.replace(&1, Blob(10), |held| held.0 == 10);
        assert_eq!(cache.bytes(), ENTRY_BYTES + 30_000, "it is another one by now");
        for key in 2..30 {
            cache.insert(key, Blob(10));
            cache.replace(&key, Blob(30_000), |_| true);
            assert!(cache.bytes() <= 100_000);
        }
    }
}
