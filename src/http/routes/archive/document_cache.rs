//! Documents that were served lately, ready to be served again.
//!
//! What holds here: the bytes of all documents on a shelf, in all their forms, stay below
//! what the operator allows; what was not asked for longest goes first. An archived
//! document is taken from the shelf without a look at the store, but for one now and then:
//! it may have been dropped since, by whatever node.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::OnceCell;
use tokio::time::Instant;
use tracing::error;

use crate::http::routes::archive::render::Order;
use feedgate_core::resource::ResourceId;

use crate::http::kit::content_coding::Coding;

/// How long an archived document is served without a look whether it is still kept.
const TRUST: Duration = Duration::from_secs(60);
/// What a document takes besides its bytes, about.
const OVERHEAD_BYTES: usize = 512;

/// Which document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    /// Of this resource.
    pub(super) id: ResourceId,
    /// Asked for as a collection: nothing of one is shown to who asks for a resource.
    pub(super) is_collection: bool,
    /// Its number; `None` for the recent one.
    pub(super) number: Option<i64>,
    /// In this order.
    pub(super) order: Order,
}

/// A document and the forms in which it was asked for.
#[derive(Debug)]
pub(super) struct Rendered {
    /// Tells its bytes from all others that were ever served at its address.
    pub(super) mark: String,
    /// Whether it will never change.
    pub(super) is_archived: bool,
    plain: Bytes,
    gzip: OnceCell<Bytes>,
    brotli: OnceCell<Bytes>,
    /// When it was last seen to be kept, in milliseconds of the shelf.
    seen_ms: AtomicU64,
}

/// Two generations: what is asked for moves into the young one, and when that has half of
/// the room, the old one is forgotten and the young one grows old.
#[derive(Debug)]
struct Generations {
    young: HashMap<Key, Arc<Rendered>>,
    old: HashMap<Key, Arc<Rendered>>,
    young_bytes: usize,
}

/// The documents at hand.
#[derive(Debug)]
pub struct Shelf {
    room_bytes: usize,
    begun: Instant,
    held: Mutex<Generations>,
}

impl Shelf {
    /// An empty one with room for so many bytes.
    pub fn new(room_bytes: usize) -> Shelf {
        let held = Generations { young: HashMap::new(), old: HashMap::new(), young_bytes: 0 };
        Shelf { room_bytes, begun: Instant::now(), held: Mutex::new(held) }
    }

    /// A document, whatever has become of it in the store since.
    pub(super) fn get(&self, key: &Key) -> Option<Arc<Rendered>> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = held.young.get(key) {
            return Some(Arc::clone(found));
        }
        let found = held.old.remove(key)?;
        self.keep(&mut held, *key, Arc::clone(&found));
        Some(found)
    }

    /// An archived document that was seen to be kept a moment ago.
    pub(super) fn trusted(&self, key: &Key) -> Option<Arc<Rendered>> {
        let found = self.get(key)?;
        let since = self.now_ms().saturating_sub(found.seen_ms.load(Ordering::Relaxed));
        (found.is_archived && u128::from(since) < TRUST.as_millis()).then_some(found)
    }

    /// Notes that a document was seen to be kept.
    pub(super) fn saw(&self, document: &Rendered) {
        document.seen_ms.store(self.now_ms(), Ordering::Relaxed);
    }

    /// Puts a document here.
    pub(super) fn put(
        &self,
        key: Key,
        (mark, is_archived): (String, bool),
        plain: Bytes,
    ) -> Arc<Rendered> {
        let document = Arc::new(Rendered {
            mark,
            is_archived,
            plain,
            gzip: OnceCell::new(),
            brotli: OnceCell::new(),
            seen_ms: AtomicU64::new(self.now_ms()),
        });
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.old.remove(&key);
        self.keep(&mut held, key, Arc::clone(&document));
        document
    }

    /// A document in this form, or as it is if that cannot be made.
    pub(super) async fn body(
        &self,
        key: Key,
        document: &Arc<Rendered>,
        coding: Coding,
    ) -> (Coding, Bytes) {
        let cell = match coding {
            Coding::Plain => return (coding, document.plain.clone()),
            Coding::Gzip => &document.gzip,
            Coding::Brotli => &document.brotli,
        };
        let encode = || async {
            let plain = document.plain.clone();
            let encoding = tokio::task::spawn_blocking(move || coding.encode(&plain));
            encoding.await.map_err(std::io::Error::other)?
        };
        let made = match cell.get_or_try_init(encode).await {
            Ok(body) => body.clone(),
            Err(err) => {
                error!(error = &err as &dyn std::error::Error, "a document was not compressed");
                return (Coding::Plain, document.plain.clone());
            }
        };
        // It takes more room now.
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let is_held =
            |here: Option<&Arc<Rendered>>| here.is_some_and(|it| Arc::ptr_eq(it, document));
        if is_held(held.young.get(&key)) {
            held.young_bytes += made.len();
            self.make_room(&mut held);
        }
        (coding, made)
    }

    fn keep(&self, held: &mut Generations, key: Key, document: Arc<Rendered>) {
        let bytes = document.bytes();
        if bytes > self.room_bytes / 2 {
            return; // everything else would have to go for it
        }
        held.young_bytes += bytes;
        if let Some(before) = held.young.insert(key, document) {
            held.young_bytes = held.young_bytes.saturating_sub(before.bytes());
        }
        self.make_room(held);
    }

    fn make_room(&self, held: &mut Generations) {
        if held.young_bytes > self.room_bytes / 2 {
            held.old = std::mem::take(&mut held.young);
            held.young_bytes = 0;
        }
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

impl Rendered {
    /// The document in this form, if it has been made.
    pub(super) fn made(&self, coding: Coding) -> Option<Bytes> {
        match coding {
            Coding::Plain => Some(self.plain.clone()),
            Coding::Gzip => self.gzip.get().cloned(),
            Coding::Brotli => self.brotli.get().cloned(),
        }
    }

    /// What it takes in memory now.
    fn bytes(&self) -> usize {
        let packed = [&self.gzip, &self.brotli].into_iter().filter_map(OnceCell::get);
        OVERHEAD_BYTES + self.plain.len() + packed.map(Bytes::len).sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: i64) -> Key {
        Key {
            id: ResourceId(7),
            is_collection: false,
            number: Some(number),
            order: Order::NewestFirst,
        }
    }

    fn put(shelf: &Shelf, number: i64, bytes: usize) -> Arc<Rendered> {
        shelf.put(key(number), ("mark".to_owned(), true), Bytes::from(vec![b'x'; bytes]))
    }

    /// What all that it holds takes.
    fn bytes(shelf: &Shelf) -> usize {
        let held = shelf.held.lock().unwrap();
        held.young.values().chain(held.old.values()).map(|document| document.bytes()).sum()
    }

    #[tokio::test]
    async fn it_never_holds_more_than_it_may_and_what_is_asked_for_stays() {
        let shelf = Shelf::new(100_000);
        put(&shelf, 0, 5_000);
        for number in 1..200 {
            let document = put(&shelf, number, 5_000);
            shelf.body(key(number), &document, Coding::Gzip).await;
            assert!(shelf.get(&key(0)).is_some(), "asked for all the time, {number}");
            assert!(bytes(&shelf) <= 100_000 + 10_000, "{number}: {}", bytes(&shelf));
        }
        assert!(shelf.get(&key(1)).is_none() && shelf.get(&key(198)).is_some());
        put(&shelf, 500, 60_000);
        assert!(shelf.get(&key(500)).is_none(), "longer than all others may be together");
    }

    #[tokio::test(start_paused = true)]
    async fn a_document_is_trusted_for_a_while_after_it_was_seen() {
        let shelf = Shelf::new(100_000);
        let document = put(&shelf, 1, 10);
        let open = shelf.put(key(2), ("mark".to_owned(), false), Bytes::new());
        assert!(shelf.trusted(&key(1)).is_some());
        assert!(shelf.trusted(&key(2)).is_none() && shelf.get(&key(2)).is_some(), "{open:?}");
        tokio::time::advance(TRUST).await;
        assert!(shelf.trusted(&key(1)).is_none() && shelf.get(&key(1)).is_some());
        shelf.saw(&document);
        assert!(shelf.trusted(&key(1)).is_some());
    }

    #[tokio::test]
    async fn each_form_is_made_once() {
        let shelf = Shelf::new(100_000);
        let document = put(&shelf, 1, 1_000);
        for coding in [Coding::Gzip, Coding::Brotli] {
            let (got, first) = shelf.body(key(1), &document, coding).await;
            let (_, second) = shelf.body(key(1), &document, coding).await;
            assert_eq!((got, first.as_ptr()), (coding, second.as_ptr()));
        }
        let (_, plain) = shelf.body(key(1), &document, Coding::Plain).await;
        assert_eq!(plain.len(), 1_000);
    }
}
