//! Views that take time to render, cached for later requests.
//!
//! Invariants: a view is served for a minute at most. One view is rendered at a time, whatever its
//! key, because each reads the whole store or a large part of it; requests for the same view
//! meanwhile wait for it and share it. A view is finished and stored even if its client has
//! disconnected. The views of one cache take a bounded number of bytes.

use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::byte_cache::{ByteCache, ByteSize, CacheName};
use feedgate_core::store::StoreError;

/// How long a view is served.
const LONGEST_AGE: Duration = Duration::from_secs(60);
/// The most views in one cache.
const MOST_VIEWS: usize = 32;
/// The capacity for all views together. There is room for two of the longest lists: one for
/// everybody, and one for the operator's networks.
const MAX_BYTES: usize = CacheName::FeedList.capacity_bytes();
const _: () = assert!(CacheName::Statistics.capacity_bytes() == MAX_BYTES);
const _: () = assert!(CacheName::SubscriptionList.capacity_bytes() == MAX_BYTES);

/// Views of one kind.
pub(super) struct ViewCache<K, T> {
    views: ByteCache<K, View<T>>,
    making: Arc<Mutex<()>>,
}

struct View<T> {
    made_at: Instant,
    content: Arc<T>,
}

impl<T> Clone for View<T> {
    fn clone(&self) -> View<T> {
        View { made_at: self.made_at, content: Arc::clone(&self.content) }
    }
}

impl<T: ByteSize> ByteSize for View<T> {
    /// Returns at least a view's share of the capacity, so that there are no more than
    /// [`MOST_VIEWS`].
    fn byte_size(&self) -> usize {
        self.content.byte_size().max(MAX_BYTES / MOST_VIEWS)
    }
}

impl<K, T> ViewCache<K, T>
where
    K: Copy + Eq + Hash,
    T: ByteSize,
{
    /// Creates an empty cache, with the capacity of this one.
    pub(super) fn new(cache: CacheName) -> ViewCache<K, T> {
        ViewCache { views: ByteCache::new(cache), making: Arc::default() }
    }
}

impl<K, T> ViewCache<K, T>
where
    K: Copy + Eq + Hash + Send + Sync + 'static,
    T: ByteSize + Send + Sync + 'static,
{
    /// Returns the view of this key. If there is none that may still be served, `make` is called
    /// with the one before it.
    pub(super) async fn get_or_make<M, F>(
        self: &Arc<Self>,
        key: K,
        make: M,
    ) -> Result<Arc<T>, StoreError>
    where
        M: FnOnce(Option<Arc<T>>) -> F + Send + 'static,
        F: Future<Output = Result<Arc<T>, StoreError>> + Send,
    {
        if let Some(content) = self.get_fresh(key) {
            return Ok(content);
        }
        let turn = Arc::clone(&self.making).lock_owned().await;
        if let Some(content) = self.get_fresh(key) {
            return Ok(content);
        }
        let cache = Arc::clone(self);
        let making = tokio::spawn(async move {
            let _turn = turn;
            let before = cache.views.get(&key).map(|view| view.content);
            let content = make(before).await?;
            let view = View { made_at: Instant::now(), content: Arc::clone(&content) };
            cache.views.insert(key, view);
            Ok(content)
        });
        making.await.map_err(|err| StoreError::Database(Box::new(err)))?
    }

    /// Returns whether the view of this key is served without being made.
    pub(super) fn is_fresh(&self, key: K) -> bool {
        self.get_fresh(key).is_some()
    }

    fn get_fresh(&self, key: K) -> Option<Arc<T>> {
        let view = self.views.get(&key).filter(|view| view.made_at.elapsed() < LONGEST_AGE);
        view.map(|view| view.content)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::time::{advance, sleep};

    use super::*;

    impl ByteSize for usize {
        fn byte_size(&self) -> usize {
            *self
        }
    }

    /// How often a view was made.
    #[derive(Default)]
    struct Maker(AtomicUsize);

    impl Maker {
        async fn ask(self: &Arc<Self>, cache: &Arc<ViewCache<u32, usize>>, key: u32, bytes: usize) {
            let maker = Arc::clone(self);
            let make = move |_| async move {
                sleep(Duration::from_secs(1)).await;
                maker.0.fetch_add(1, Ordering::Relaxed);
                Ok(Arc::new(bytes))
            };
            assert_eq!(*cache.get_or_make(key, make).await.unwrap(), bytes);
        }

        fn made(&self) -> usize {
            self.0.swap(0, Ordering::Relaxed)
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_view_is_made_once_a_minute_however_many_ask_for_it() {
        let cache = Arc::new(ViewCache::new(CacheName::FeedList));
        let maker = Arc::<Maker>::default();
        let all = (0..50).map(|_| maker.ask(&cache, 1, 10));
        futures_util::future::join_all(all).await;
        assert_eq!(maker.made(), 1);
        advance(LONGEST_AGE - Duration::from_millis(1)).await;
        maker.ask(&cache, 1, 10).await;
        assert_eq!(maker.made(), 0);
        advance(Duration::from_millis(1)).await;
        maker.ask(&cache, 1, 10).await;
        assert_eq!(maker.made(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn who_goes_away_does_not_end_what_others_wait_for() {
        let cache = Arc::new(ViewCache::new(CacheName::FeedList));
        let maker = Arc::<Maker>::default();
        let hasty = tokio::time::timeout(Duration::from_millis(1), maker.ask(&cache, 1, 10));
        assert!(hasty.await.is_err());
        maker.ask(&cache, 1, 10).await;
        assert_eq!(maker.made(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn no_more_is_kept_than_there_is_room_for() {
        let cache = Arc::new(ViewCache::new(CacheName::FeedList));
        let maker = Arc::<Maker>::default();
        for key in 0..3 * MOST_VIEWS as u32 {
            maker.ask(&cache, key, 1).await;
            assert!(cache.views.len() <= MOST_VIEWS);
        }
        for key in 0..8 {
            maker.ask(&cache, 1_000 + key, MAX_BYTES / 3).await;
            assert!(cache.views.bytes() <= MAX_BYTES);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn there_is_room_for_two_of_the_longest_lists() {
        let cache = Arc::new(ViewCache::new(CacheName::FeedList));
        let maker = Arc::<Maker>::default();
        for key in [1, 2, 1, 2] {
            maker.ask(&cache, key, 17 << 20).await;
        }
        assert_eq!(maker.made(), 2);
    }
}
