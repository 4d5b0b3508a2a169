//! A cache of rendered documents of changes.
//!
//! Invariants:
//!
//! * A document is served until a new change is listed. A long document is served longer, in
//!   proportion to its rendering time, so that clients cannot keep the store busy with it, and then
//!   for the few seconds in which one task renders the next. No document older than a minute is served.
//! * A document is rendered once however many clients request it or disconnect, and compressed once.
//!   What the parameter `last` requests is a part of a cached document, so that it multiplies nothing.
//! * Few documents are rendered at the same time, and renderers pause, so that requests for many
//!   documents take a bounded share of the processors, also to compress the long ones.
//! * No document is longer than the cache has room for, in both forms.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use chrono::{DateTime, TimeDelta, Utc};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep, timeout};
use tracing::{error, warn};

use super::edition::{Edition, Lines, MAX_BYTES};
use super::rendered::{Freshness, LONG_BYTES, RenderedChanges, render, zip};
use super::stretch;
use crate::byte_cache::{ByteCache, ByteSize, CacheName};
use crate::http::kit::viewer_access::ViewerAccess;
use crate::jobs::runner;
use feedgate_core::ping::TimeUnit;
use feedgate_core::store::{ChangesWindow, StoreError};
use feedgate_store::Store;

/// The capacity of the cache, in bytes. The cache stores what takes up to half of it: the longest
/// document, plain and compressed, with the ends of its lines.
const CAPACITY_BYTES: usize = CacheName::Changes.capacity_bytes();
const _: () = assert!(CAPACITY_BYTES >= 2 * (2 * MAX_BYTES + MAX_BYTES / 2));
/// The maximum number of documents rendered at the same time.
const RENDERERS: usize = 2;
/// How many times as long as it rendered a renderer pauses: all renderers together take a fifth of a
/// processor.
const PAUSE_FACTOR: u32 = 9;
/// The longest pause. It is shorter than [`LONGEST_WAIT`].
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
/// The maximum time that a request waits until its document may be rendered.
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// The reason why a document was not rendered.
#[derive(Debug, thiserror::Error)]
pub(super) enum RenderError {
    /// Too many documents are being rendered.
    #[error("too many documents are being rendered")]
    Busy,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A requested document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RequestedDocument {
    /// A document that still changes, in this unit, for clients with this access.
    Open(CoveredTime, TimeUnit, ViewerAccess),
    /// The document of a completed hour, which has one edition in each unit for each access.
    Closed(Edition),
}

/// The time that a document covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum CoveredTime {
    /// The most recent seconds.
    Last(u64),
    /// The hour that begins at this time and has no stored document yet.
    Hour(DateTime<Utc>),
}

/// The key of a document. The document of an hour has the same key before and after the hour is
/// completed, and is rendered anew in between.
type ChangesKey = (CoveredTime, TimeUnit, ViewerAccess);

/// A cache entry. A document grows when it is compressed, but the weight of an entry must not change
/// while it is cached, so the weight is stored here.
#[derive(Clone)]
struct Entry {
    document: Arc<RenderedChanges>,
    bytes: usize,
}

impl ByteSize for Entry {
    fn byte_size(&self) -> usize {
        self.bytes
    }
}

/// A document, or the newest part of it, as it is sent.
pub(super) struct ChangesBody {
    /// The pieces of the body.
    pub(super) pieces: Vec<Bytes>,
    /// Whether they are compressed.
    pub(super) is_zipped: bool,
}

/// A cache of the documents of changes of one node.
pub(super) struct ChangesCache {
    documents: ByteCache<ChangesKey, Entry>,
    renderers: Arc<Semaphore>,
}

impl Default for ChangesCache {
    fn default() -> ChangesCache {
        ChangesCache {
            documents: ByteCache::new(CacheName::Changes),
            renderers: Arc::new(Semaphore::new(RENDERERS)),
        }
    }
}

impl ChangesCache {
    /// Returns the served edition of a document, with its text if it is cached. The next edition of a
    /// long document is rendered in the background.
    pub(super) async fn find(
        self: &Arc<Self>,
        store: &Arc<Store>,
        requested: &RequestedDocument,
    ) -> Result<(Edition, Option<Arc<RenderedChanges>>), StoreError> {
        let current = current_edition(store, requested).await?;
        let Some(Entry { document, .. }) = self.documents.get(&requested.key()) else {
            return Ok((current, None));
        };
        match document.freshness(&current, Instant::now()) {
            Freshness::Expired => return Ok((current, None)),
            Freshness::Fresh => {}
            Freshness::Renewable => self.renew(store, requested, &document),
        }
        Ok((document.edition.clone(), Some(document)))
    }

    /// Returns a document that may be served, rendering it if necessary.
    pub(super) async fn get_or_render(
        self: &Arc<Self>,
        store: &Arc<Store>,
        requested: &RequestedDocument,
    ) -> Result<Arc<RenderedChanges>, RenderError> {
        let (cache, store, requested) = (Arc::clone(self), Arc::clone(store), requested.clone());
        // A document is rendered and cached even if its client has disconnected, which it could do
        // as often as it likes.
        let making = tokio::spawn(async move {
            let current = current_edition(&store, &requested).await?;
            let is_usable = |entry: &Entry| {
                entry.document.freshness(&current, Instant::now()) != Freshness::Expired
            };
            let make = cache.render(&store, &requested);
            cache.documents.get_or_make(&requested.key(), is_usable, make).await
        });
        let made = making.await.map_err(|err| StoreError::Database(Box::new(err)))?;
        made.map(|entry| entry.document)
    }

    /// Renders the edition after `former` in the background, unless that is already being done.
    fn renew(
        self: &Arc<Self>,
        store: &Arc<Store>,
        requested: &RequestedDocument,
        former: &Arc<RenderedChanges>,
    ) {
        if !former.begin_renewal() {
            return;
        }
        let (cache, store, requested) = (Arc::clone(self), Arc::clone(store), requested.clone());
        let former = Arc::clone(former);
        tokio::spawn(async move {
            match cache.render(&store, &requested).await {
                Ok(entry) => cache.documents.insert(requested.key(), entry),
                Err(err) => {
                    let error = &err as &dyn std::error::Error;
                    warn!(
                        error,
                        "a list of changes was not renewed; another request will cause it"
                    );
                    former.end_renewal();
                }
            }
        });
    }

    /// Renders the current edition of a document when a renderer is free.
    async fn render(
        &self,
        store: &Arc<Store>,
        requested: &RequestedDocument,
    ) -> Result<Entry, RenderError> {
        let renderer = self.acquire_renderer().await?;
        let begun = Instant::now();
        // More changes may have been listed while this caller waited.
        let edition = current_edition(store, requested).await?;
        let rendered = render(store, edition).await;
        pause(renderer, begun.elapsed());
        Ok(Entry::new(&Arc::new(rendered?)))
    }

    /// Returns the body of a document, or of the part of it that covers the last `span`.
    pub(super) async fn body(
        &self,
        requested: &RequestedDocument,
        document: &Arc<RenderedChanges>,
        span: Option<TimeDelta>,
        takes_gzip: bool,
    ) -> ChangesBody {
        let pieces = document.pieces(span);
        let is_whole = pieces[0].len() == document.text.len();
        if !takes_gzip || (!is_whole && pieces[0].len() >= LONG_BYTES) {
            return ChangesBody { pieces, is_zipped: false };
        }
        let zipped = match is_whole {
            true => document.zipped().await,
            false => zip(pieces.clone()).await,
        };
        match zipped {
            Ok(zipped) => {
                if is_whole {
                    let is_same = |entry: &Entry| Arc::ptr_eq(&entry.document, document);
                    self.documents.replace(&requested.key(), Entry::new(document), is_same);
                }
                ChangesBody { pieces: vec![zipped], is_zipped: true }
            }
            Err(err) => {
                let error = &err as &dyn std::error::Error;
                error!(error, "a list of changes could not be compressed; it is sent uncompressed");
                ChangesBody { pieces, is_zipped: false }
            }
        }
    }

    async fn acquire_renderer(&self) -> Result<OwnedSemaphorePermit, RenderError> {
        match timeout(LONGEST_WAIT, Arc::clone(&self.renderers).acquire_owned()).await {
            Ok(Ok(permit)) => Ok(permit),
            Ok(Err(_)) | Err(_) => Err(RenderError::Busy),
        }
    }
}

/// Keeps a renderer that has taken `took` from rendering the next document for a while.
fn pause(renderer: OwnedSemaphorePermit, took: Duration) {
    let pause = took.saturating_mul(PAUSE_FACTOR).min(LONGEST_PAUSE);
    tokio::spawn(async move {
        sleep(pause).await;
        drop(renderer);
    });
}

impl Entry {
    fn new(document: &Arc<RenderedChanges>) -> Entry {
        Entry { document: Arc::clone(document), bytes: document.bytes() }
    }
}

impl RequestedDocument {
    fn key(&self) -> ChangesKey {
        match self {
            RequestedDocument::Open(time, unit, access) => (*time, *unit, *access),
            RequestedDocument::Closed(edition) => {
                (CoveredTime::Hour(edition.begins()), edition.unit, edition.access)
            }
        }
    }
}

/// Returns the current edition of a document.
async fn current_edition(
    store: &Arc<Store>,
    requested: &RequestedDocument,
) -> Result<Edition, StoreError> {
    match requested {
        RequestedDocument::Open(time, unit, access) => {
            let (newest, count) = store.newest_change().await?;
            let (from, until, updated) = stretch(*time, runner::now());
            let lines = Lines::Listed(ChangesWindow { from, until, newest });
            Ok(Edition { lines, updated, count, unit: *unit, access: *access })
        }
        RequestedDocument::Closed(edition) => Ok(edition.clone()),
    }
}

#[cfg(test)]
mod tests;
