//! What takes time to make, kept for those who ask next.
//!
//! One is made at a time. Who wants the same meanwhile waits for it and shares it; who goes
//! away while it is made does not end it. It serves for a minute.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync;
use tokio::time::Instant;

use feedgate_core::ports::StoreError;

/// How long a thing serves.
const OLDEST: Duration = Duration::from_secs(60);
/// The most things kept.
const MOST: usize = 32;
/// What they may take together; one alone may take more. There is room for two of the longest
/// lists: one for everybody, and one for the operator's networks.
const MOST_BYTES: usize = 48 << 20;

/// What takes up memory.
pub(super) trait Weighed {
    /// About how many bytes.
    fn bytes(&self) -> usize;
}

/// Things of one kind, by what tells them apart.
pub(super) struct Shelf<K, T> {
    held: Mutex<HashMap<K, Held<T>>>,
    making: Arc<sync::Mutex<()>>,
}

struct Held<T> {
    made: Instant,
    thing: Arc<T>,
}

impl<K, T> Default for Shelf<K, T> {
    fn default() -> Shelf<K, T> {
        Shelf { held: Mutex::default(), making: Arc::default() }
    }
}

impl<K, T> Shelf<K, T>
where
    K: Copy + Eq + Hash + Send + 'static,
    T: Weighed + Send + Sync + 'static,
{
    /// The thing of this name; `make` is called if it is not there, with the one before it.
    pub(super) async fn take<M, F>(self: &Arc<Self>, key: K, make: M) -> Result<Arc<T>, StoreError>
    where
        M: FnOnce(Option<Arc<T>>) -> F + Send + 'static,
        F: Future<Output = Result<Arc<T>, StoreError>> + Send,
    {
        if let Some(thing) = self.fresh(key) {
            return Ok(thing);
        }
        let turn = Arc::clone(&self.making).lock_owned().await;
        if let Some(thing) = self.fresh(key) {
            return Ok(thing);
        }
        let shelf = Arc::clone(self);
        let making = tokio::spawn(async move {
            let _turn = turn;
            let before = shelf.lock().get(&key).map(|held| Arc::clone(&held.thing));
            let thing = make(before).await?;
            shelf.keep(key, &thing);
            Ok(thing)
        });
        making.await.map_err(|err| StoreError::Database(Box::new(err)))?
    }

    fn fresh(&self, key: K) -> Option<Arc<T>> {
        let held = self.lock();
        let held = held.get(&key).filter(|held| held.made.elapsed() < OLDEST);
        held.map(|held| Arc::clone(&held.thing))
    }

    /// Makes room first: what nobody is served any more, then everything. What is wanted
    /// often is soon back.
    fn keep(&self, key: K, thing: &Arc<T>) {
        let mut held = self.lock();
        held.remove(&key);
        let is_full = |held: &HashMap<K, Held<T>>| {
            let bytes: usize = held.values().map(|held| held.thing.bytes()).sum();
            held.len() >= MOST || bytes + thing.bytes() > MOST_BYTES
        };
        if is_full(&held) {
            held.retain(|_, held| held.made.elapsed() < OLDEST);
        }
        if is_full(&held) {
            held.clear();
        }
        held.insert(key, Held { made: Instant::now(), thing: Arc::clone(thing) });
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<K, Held<T>>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::time::{advance, sleep};

    use super::*;

    impl Weighed for usize {
        fn bytes(&self) -> usize {
            *self
        }
    }

    /// How often each was made.
    #[derive(Default)]
    struct Maker(AtomicUsize);

    impl Maker {
        async fn take(self: &Arc<Self>, shelf: &Arc<Shelf<u32, usize>>, key: u32, bytes: usize) {
            let maker = Arc::clone(self);
            let make = move |_| async move {
                sleep(Duration::from_secs(1)).await;
                maker.0.fetch_add(1, Ordering::Relaxed);
                Ok(Arc::new(bytes))
            };
            assert_eq!(*shelf.take(key, make).await.unwrap(), bytes);
        }

        fn made(&self) -> usize {
            self.0.swap(0, Ordering::Relaxed)
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_thing_is_made_once_a_minute_however_many_want_it() {
        let (shelf, maker) = (Arc::default(), Arc::<Maker>::default());
        let all = (0..50).map(|_| maker.take(&shelf, 1, 10));
        futures_util::future::join_all(all).await;
        assert_eq!(maker.made(), 1);
        advance(OLDEST - Duration::from_millis(1)).await;
        maker.take(&shelf, 1, 10).await;
        assert_eq!(maker.made(), 0);
        advance(Duration::from_millis(1)).await;
        maker.take(&shelf, 1, 10).await;
        assert_eq!(maker.made(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn who_goes_away_does_not_end_what_others_wait_for() {
        let (shelf, maker) = (Arc::default(), Arc::<Maker>::default());
        let hasty = tokio::time::timeout(Duration::from_millis(1), maker.take(&shelf, 1, 10));
        assert!(hasty.await.is_err());
        maker.take(&shelf, 1, 10).await;
        assert_eq!(maker.made(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn no_more_is_kept_than_there_is_room_for() {
        let (shelf, maker) = (Arc::default(), Arc::<Maker>::default());
        for key in 0..3 * MOST as u32 {
            maker.take(&shelf, key, 1).await;
            assert!(shelf.lock().len() <= MOST);
        }
        for key in 0..8 {
            maker.take(&shelf, 1_000 + key, MOST_BYTES / 3).await;
            let bytes: usize = shelf.lock().values().map(|held| *held.thing).sum();
            assert!(bytes <= MOST_BYTES);
        }
    }
}
