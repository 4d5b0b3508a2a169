//! A cache of recently served archive documents.
//!
//! Invariants: the cached documents, in all encodings, take no more memory than the operator
//! allows. A document is rendered once however many clients request it, and compressed once in each
//! encoding. An archived document is served without a query of the store for up to [`TRUST`], after
//! which the store is queried again, because any node may have deleted it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::OnceCell;
use tokio::time::Instant;
use tracing::error;

use crate::byte_cache::{ByteCache, ByteSize, CacheName};
use crate::http::kit::content_coding::ContentCoding;
use crate::http::routes::archive::render::Order;
use feedgate_core::document_format::DocumentFormat;
use feedgate_core::record::Digest;
use feedgate_core::resource::ResourceId;

/// How long an archived document is served before a query whether it still exists.
const TRUST: Duration = Duration::from_secs(60);

/// The key of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct DocumentKey {
    /// The resource to whose archive the document belongs.
    pub(super) id: ResourceId,
    /// Whether the document was requested as that of a collection: a request for a resource must
    /// not be answered with a document of a collection.
    pub(super) is_collection: bool,
    /// Whether the document was requested by an account to which it belongs: others must not be
    /// answered with it.
    pub(super) is_private: bool,
    /// The number of the document; `None` for the recent document. No document has a number below
    /// zero, which stands for the feed of so many newest entries.
    pub(super) number: Option<i64>,
    /// The order of its entries.
    pub(super) order: Order,
    /// Its format.
    pub(super) format: DocumentFormat,
    /// The filter that its entries match, as a digest of its text.
    pub(super) filter: Option<Digest>,
}

/// The state of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DocumentState {
    /// A version that differs for each text ever served at the document's address.
    pub(super) version: String,
    /// Whether the document will never change again.
    pub(super) is_archived: bool,
}

/// A document in the encodings requested so far.
#[derive(Debug)]
pub(super) struct CachedDocument {
    /// The state from which the document was rendered.
    pub(super) state: DocumentState,
    plain: Bytes,
    gzip: OnceCell<Bytes>,
    brotli: OnceCell<Bytes>,
    /// The time at which the document was last known to exist in the store, in milliseconds since
    /// the creation of the cache.
    confirmed_ms: AtomicU64,
}

/// A cache entry. A document grows with each encoding, but the weight of an entry must not change
/// while it is cached, so the weight is stored here.
#[derive(Clone, Debug)]
struct Entry {
    document: Arc<CachedDocument>,
    bytes: usize,
}

impl Entry {
    fn new(document: &Arc<CachedDocument>) -> Entry {
        Entry { document: Arc::clone(document), bytes: document.bytes() }
    }
}

impl ByteSize for Entry {
    fn byte_size(&self) -> usize {
        self.bytes
    }
}

/// A cache of the archive documents of one node.
#[derive(Debug)]
pub struct ArchiveDocumentCache {
    documents: ByteCache<DocumentKey, Entry>,
    began: Instant,
}

impl ArchiveDocumentCache {
    /// Creates an empty cache with this capacity in bytes.
    pub fn new(capacity_bytes: usize) -> ArchiveDocumentCache {
        let documents = ByteCache::new(CacheName::Archives { capacity_bytes });
        ArchiveDocumentCache { documents, began: Instant::now() }
    }

    /// Returns an archived document that was known to exist less than [`TRUST`] ago.
    pub(super) fn get_trusted(&self, key: &DocumentKey) -> Option<Arc<CachedDocument>> {
        let document = self.documents.get(key)?.document;
        let since_ms = self.now_ms().saturating_sub(document.confirmed_ms.load(Ordering::Relaxed));
        let is_trusted = document.state.is_archived && u128::from(since_ms) < TRUST.as_millis();
        is_trusted.then_some(document)
    }

    /// Returns the document in a state that was just read from the store. Calls `render` if the
    /// cache does not have it.
    pub(super) async fn get_or_render<E>(
        &self,
        key: DocumentKey,
        state: DocumentState,
        render: impl Future<Output = Result<String, E>>,
    ) -> Result<Arc<CachedDocument>, E> {
        let is_current = |entry: &Entry| entry.document.state == state;
        let make = async {
            let document = CachedDocument::new(state.clone(), render.await?.into());
            Ok(Entry::new(&Arc::new(document)))
        };
        let document = self.documents.get_or_make(&key, is_current, make).await?.document;
        document.confirmed_ms.store(self.now_ms(), Ordering::Relaxed);
        Ok(document)
    }

    /// Returns the body of a document in this encoding, or unencoded if compression fails.
    pub(super) async fn encode(
        &self,
        key: DocumentKey,
        document: &Arc<CachedDocument>,
        coding: ContentCoding,
    ) -> (ContentCoding, Bytes) {
        let cell = match coding {
            ContentCoding::Plain => return (coding, document.plain.clone()),
            ContentCoding::Gzip => &document.gzip,
            ContentCoding::Brotli => &document.brotli,
        };
        if let Some(body) = cell.get() {
            return (coding, body.clone());
        }
        let encode = || async {
            let plain = document.plain.clone();
            let encoding = tokio::task::spawn_blocking(move || coding.encode(&plain));
            encoding.await.map_err(std::io::Error::other)?
        };
        let body = match cell.get_or_try_init(encode).await {
            Ok(body) => body.clone(),
            Err(err) => {
                error!(
                    error = &err as &dyn std::error::Error,
                    "an archive document could not be compressed; it is sent uncompressed"
                );
                return (ContentCoding::Plain, document.plain.clone());
            }
        };
        let is_same = |entry: &Entry| Arc::ptr_eq(&entry.document, document);
        self.documents.replace(&key, Entry::new(document), is_same);
        (coding, body)
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

impl CachedDocument {
    fn new(state: DocumentState, plain: Bytes) -> CachedDocument {
        let (gzip, brotli) = (OnceCell::new(), OnceCell::new());
        CachedDocument { state, plain, gzip, brotli, confirmed_ms: AtomicU64::new(0) }
    }

    /// Returns the body in this encoding, if it was requested before.
    pub(super) fn encoded(&self, coding: ContentCoding) -> Option<Bytes> {
        match coding {
            ContentCoding::Plain => Some(self.plain.clone()),
            ContentCoding::Gzip => self.gzip.get().cloned(),
            ContentCoding::Brotli => self.brotli.get().cloned(),
        }
    }

    /// Returns the current size in memory, in bytes.
    fn bytes(&self) -> usize {
        let encoded = [&self.gzip, &self.brotli].into_iter().filter_map(OnceCell::get);
        self.plain.len() + encoded.map(Bytes::len).sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use futures_util::future::join_all;
    use tokio::time::{advance, sleep};

    use super::*;
    use feedgate_core::store::StoreError;

    fn key(number: i64) -> DocumentKey {
        DocumentKey {
            id: ResourceId(7),
            is_collection: false,
            is_private: false,
            number: Some(number),
            order: Order::NewestFirst,
            format: DocumentFormat::Atom,
            filter: None,
        }
    }

    fn state(version: &str, is_archived: bool) -> DocumentState {
        DocumentState { version: version.to_owned(), is_archived }
    }

    async fn insert_document(
        cache: &ArchiveDocumentCache,
        number: i64,
        bytes: usize,
    ) -> Arc<CachedDocument> {
        let render = async { Ok::<_, StoreError>("x".repeat(bytes)) };
        cache.get_or_render(key(number), state("mark", true), render).await.unwrap()
    }

    fn has(cache: &ArchiveDocumentCache, number: i64) -> bool {
        cache.documents.get(&key(number)).is_some()
    }

    #[tokio::test]
    async fn it_never_holds_more_than_it_may_and_what_is_requested_stays() {
        let cache = ArchiveDocumentCache::new(100_000);
        insert_document(&cache, 0, 5_000).await;
        for number in 1..200 {
            let document = insert_document(&cache, number, 5_000).await;
            cache.encode(key(number), &document, ContentCoding::Gzip).await;
            assert!(has(&cache, 0), "requested all the time, {number}");
            let bytes = cache.documents.bytes();
            assert!(bytes <= 100_000, "{number}: {bytes}");
        }
        assert!(!has(&cache, 100) && has(&cache, 198));
        insert_document(&cache, 500, 60_000).await;
        assert!(!has(&cache, 500), "larger than all others may be together");
    }

    #[tokio::test]
    async fn encodings_count_towards_what_a_document_takes() {
        let cache = ArchiveDocumentCache::new(100_000);
        let document = insert_document(&cache, 1, 5_000).await;
        let plain = cache.documents.bytes();
        let (_, gzip) = cache.encode(key(1), &document, ContentCoding::Gzip).await;
        assert_eq!(cache.documents.bytes(), plain + gzip.len());
        let (_, brotli) = cache.encode(key(1), &document, ContentCoding::Brotli).await;
        assert_eq!(cache.documents.bytes(), plain + gzip.len() + brotli.len());
    }

    #[tokio::test(start_paused = true)]
    async fn a_document_is_trusted_for_a_while_after_it_was_confirmed() {
        let cache = ArchiveDocumentCache::new(100_000);
        insert_document(&cache, 1, 10).await;
        let render = async { Ok::<_, StoreError>(String::new()) };
        cache.get_or_render(key(2), state("mark", false), render).await.unwrap();
        assert!(cache.get_trusted(&key(1)).is_some());
        assert!(cache.get_trusted(&key(2)).is_none() && has(&cache, 2), "it may change");
        advance(TRUST).await;
        assert!(cache.get_trusted(&key(1)).is_none() && has(&cache, 1));
        insert_document(&cache, 1, 10).await;
        assert!(cache.get_trusted(&key(1)).is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_document_is_rendered_once_for_each_state() {
        let cache = ArchiveDocumentCache::new(100_000);
        let rendered = AtomicUsize::new(0);
        let request = |version| {
            let render = async {
                rendered.fetch_add(1, Ordering::Relaxed);
                sleep(Duration::from_secs(1)).await;
                Ok::<_, StoreError>("text".to_owned())
            };
            cache.get_or_render(key(1), state(version, false), render)
        };
        for (version, want) in [("one", 1), ("one", 1), ("two", 2)] {
            let documents = join_all((0..50).map(|_| request(version))).await;
            assert!(
                documents
                    .iter()
                    .all(|document| document.as_ref().unwrap().state.version == version)
            );
            assert_eq!(rendered.load(Ordering::Relaxed), want, "{version}");
        }
    }

    #[tokio::test]
    async fn each_encoding_is_made_once() {
        let cache = ArchiveDocumentCache::new(100_000);
        let document = insert_document(&cache, 1, 1_000).await;
        for coding in [ContentCoding::Gzip, ContentCoding::Brotli] {
            let (first, second) = tokio::join!(
                cache.encode(key(1), &document, coding),
                cache.encode(key(1), &document, coding),
            );
            assert_eq!((first.0, first.1.as_ptr()), (coding, second.1.as_ptr()));
        }
        let (_, plain) = cache.encode(key(1), &document, ContentCoding::Plain).await;
        assert_eq!(plain.len(), 1_000);
    }
}
