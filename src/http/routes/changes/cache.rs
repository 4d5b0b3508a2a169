//! A cache of rendered documents of changes.
//!
//! Invariants:
//!
//! * A document is served until a new change is listed. A long document is served longer, in
//!   proportion to its rendering time, so that clients cannot keep the store busy with it. No
//!   document older than a minute is served.
//! * A document is rendered once however many clients request it, and only a few are rendered at
//!   the same time, because the parameter `last` multiplies the number of documents.
//! * The memory for texts is bounded. For a text that is too long, only that fact is cached.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use chrono::{DateTime, Utc};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Instant, timeout};

use super::edition::{Edition, Lines, Pages};
use super::stretch;
use crate::byte_cache::{ByteCache, ByteSize};
use crate::http::kit::viewer_access::ViewerAccess;
use crate::jobs::runner;
use feedgate_core::ping::TimeUnit;
use feedgate_core::ports::{ChangesWindow, Store, StoreError};

/// The maximum length of a cached text, in bytes: about thirty thousand lines.
const LONGEST_TEXT_BYTES: usize = 4 << 20;
/// The capacity of the cache, in bytes: sixteen texts of the maximum length.
const CAPACITY_BYTES: usize = 16 * LONGEST_TEXT_BYTES;
/// The maximum number of clients that are sent long documents at the same time: each holds some
/// pages until it has read them.
const READERS: usize = 64;
/// The maximum number of documents rendered at the same time: each is read from the store line by
/// line.
const RENDERERS: usize = 4;
/// The maximum time that a request waits until its document may be rendered.
const LONGEST_WAIT: Duration = Duration::from_secs(5);
/// The maximum age of a served document.
const LONGEST_AGE: Duration = Duration::from_secs(60);
/// How much longer each line lets a document be served despite a new change: ten times its
/// rendering time.
const EXTENSION_PER_LINE: Duration = Duration::from_micros(100);

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

/// A rendered document.
pub(super) struct RenderedChanges {
    /// The edition.
    pub(super) edition: Edition,
    /// The text; `None` if it is too long to be cached.
    pub(super) text: Option<Bytes>,
    lines: usize,
    rendered_at: Instant,
}

impl ByteSize for Arc<RenderedChanges> {
    fn byte_size(&self) -> usize {
        self.text.as_ref().map_or(0, Bytes::len)
    }
}

/// A cache of the documents of changes of one node.
pub(super) struct ChangesCache {
    documents: ByteCache<ChangesKey, Arc<RenderedChanges>>,
    renderers: Semaphore,
    /// Permits for clients that read documents too long to be cached.
    pub(super) readers: Arc<Semaphore>,
}

impl Default for ChangesCache {
    fn default() -> ChangesCache {
        ChangesCache {
            documents: ByteCache::new(CAPACITY_BYTES),
            renderers: Semaphore::new(RENDERERS),
            readers: Arc::new(Semaphore::new(READERS)),
        }
    }
}

impl ChangesCache {
    /// Returns the current edition of a document, with its text if it is cached.
    pub(super) async fn find(
        &self,
        store: &Arc<dyn Store>,
        requested: &RequestedDocument,
    ) -> Result<(Edition, Option<Arc<RenderedChanges>>), StoreError> {
        let current = current_edition(store, requested).await?;
        let stored = self.documents.get(&requested.key());
        Ok(match stored.filter(|stored| stored.may_serve(&current, Instant::now())) {
            Some(rendered) => (rendered.edition.clone(), Some(rendered)),
            None => (current, None),
        })
    }

    /// Returns the current document, rendering it if necessary.
    pub(super) async fn get_or_render(
        &self,
        store: &Arc<dyn Store>,
        requested: &RequestedDocument,
    ) -> Result<Arc<RenderedChanges>, RenderError> {
        let current = current_edition(store, requested).await?;
        let is_fresh = |stored: &Arc<RenderedChanges>| stored.may_serve(&current, Instant::now());
        let make = async {
            let _permit = self.acquire_renderer().await?;
            // More changes may have been listed while this request waited.
            let edition = current_edition(store, requested).await?;
            Ok(Arc::new(render(store, edition).await?))
        };
        self.documents.get_or_make(&requested.key(), is_fresh, make).await
    }

    async fn acquire_renderer(&self) -> Result<SemaphorePermit<'_>, RenderError> {
        match timeout(LONGEST_WAIT, self.renderers.acquire()).await {
            Ok(Ok(permit)) => Ok(permit),
            Ok(Err(_)) | Err(_) => Err(RenderError::Busy),
        }
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
    store: &Arc<dyn Store>,
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

impl RenderedChanges {
    /// Returns whether a cached document may be served at `now`, given that `current` was the
    /// edition a moment ago.
    fn may_serve(&self, current: &Edition, now: Instant) -> bool {
        let (Lines::Listed(rendered), Lines::Listed(listed)) =
            (&self.edition.lines, &current.lines)
        else {
            return self.edition == *current;
        };
        let age = now.saturating_duration_since(self.rendered_at);
        let lines = u32::try_from(self.lines).unwrap_or(u32::MAX);
        let is_extended = age < EXTENSION_PER_LINE.saturating_mul(lines);
        // A document that was rendered while this request waited is newer than the edition.
        age < LONGEST_AGE && (rendered.newest >= listed.newest || is_extended)
    }
}

/// Renders an edition, and drops the text if it is too long to be cached.
async fn render(store: &Arc<dyn Store>, edition: Edition) -> Result<RenderedChanges, StoreError> {
    let rendered_at = Instant::now();
    let mut pages = Pages::read(store, edition.clone());
    let mut text = String::new();
    while let Some(page) = pages.next().await? {
        text.push_str(&page);
        if text.len() > LONGEST_TEXT_BYTES {
            let lines = usize::MAX; // enough to be served for the whole minute
            return Ok(RenderedChanges { edition, text: None, lines, rendered_at });
        }
    }
    let lines = pages.lines;
    Ok(RenderedChanges { edition, text: Some(text.into()), lines, rendered_at })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edition(newest: i64) -> Edition {
        let updated = DateTime::UNIX_EPOCH;
        let lines = Lines::Listed(ChangesWindow { from: updated, until: updated, newest });
        let access = ViewerAccess::Public;
        Edition { lines, updated, count: 0, unit: TimeUnit::Minutes, access }
    }

    fn rendered(lines: usize, text: Option<Bytes>) -> RenderedChanges {
        RenderedChanges { edition: edition(7), text, lines, rendered_at: Instant::now() }
    }

    #[tokio::test(start_paused = true)]
    async fn a_document_is_served_until_something_is_new_and_a_long_one_for_longer() {
        #[rustfmt::skip]
        let cases = [
            ("as it was rendered",                10,         7, 59, true),
            ("rendered while it was waited for",  10,         6,  1, true),
            ("a minute at most",                  10,         7, 60, false),
            ("something is new",                  10,         8,  1, false),
            ("a long one is rendered less often", 100_000,    8,  9, true),
            ("but is",                            100_000,    8, 10, false),
            ("once a minute",                     usize::MAX, 8, 59, true),
            ("at least",                          usize::MAX, 8, 60, false),
        ];
        for (reason, lines, newest, after_s, want) in cases {
            let rendered = rendered(lines, None);
            let now = rendered.rendered_at + Duration::from_secs(after_s);
            assert_eq!(rendered.may_serve(&edition(newest), now), want, "{reason}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn only_so_many_documents_are_rendered_at_the_same_time() {
        let cache = ChangesCache::default();
        let mut permits = Vec::new();
        for _ in 0..RENDERERS {
            permits.push(cache.acquire_renderer().await.unwrap());
        }
        assert!(matches!(cache.acquire_renderer().await, Err(RenderError::Busy)));
        permits.pop();
        assert!(cache.acquire_renderer().await.is_ok());
    }

    #[tokio::test]
    async fn the_texts_take_no_more_than_their_capacity() {
        let cache = ChangesCache::default();
        let longest = Bytes::from(vec![b'x'; LONGEST_TEXT_BYTES]);
        for secs in 0..40 {
            let document = Arc::new(rendered(10, Some(longest.clone())));
            cache.documents.insert(
                (CoveredTime::Last(secs), TimeUnit::Minutes, ViewerAccess::Public),
                document,
            );
            assert!(cache.documents.bytes() <= CAPACITY_BYTES);
        }
        assert!(cache.documents.len() >= 12, "{}", cache.documents.len());
    }
}
