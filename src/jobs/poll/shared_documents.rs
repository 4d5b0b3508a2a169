//! Documents that several resources are parts of, fetched once for all of them.
//!
//! Topics that differ in nothing but their fragment are resources of their own, but one document of
//! the publisher's, which must not be fetched once for each of them. A poll that fetched the
//! document leaves it here; a poll of another part uses it, if it was fetched after that part's
//! last poll and less than that part's polling period ago. While one poll fetches the document,
//! those of other parts wait for it. So the document is fetched as often as if it had one part.
//!
//! A poll that was triggered by a ping does not use these documents: the announced change may have
//! come after the fetch. Each node has documents of its own. They take a bounded number of bytes.

use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};

use crate::byte_cache::{ByteCache, ByteSize, CacheName, FillGuard};
use crate::net::FetchedDocument;
use feedgate_core::poll::{Trigger, Validators};
use feedgate_core::store::DueResource;
use feedgate_core::visibility::SourceNetwork;

/// The capacity for all documents together: bodies, headers and addresses.
const CAPACITY_BYTES: usize = CacheName::SharedDocuments.capacity_bytes();
/// The most documents.
const MOST_DOCUMENTS: usize = 4_096;

/// The documents, by their address without a fragment. Clones share them.
#[derive(Clone, Debug)]
pub(super) struct SharedDocuments(Arc<ByteCache<String, SharedDocument>>);

#[derive(Clone, Debug)]
struct SharedDocument {
    fetched_at: DateTime<Utc>,
    /// Where the fetch led.
    source_network: SourceNetwork,
    document: Arc<FetchedDocument>,
}

impl ByteSize for SharedDocument {
    /// Returns at least a document's share of the capacity, so that there are no more than
    /// [`MOST_DOCUMENTS`]. The document's address is in the key, too.
    fn byte_size(&self) -> usize {
        let document = &self.document;
        let headers = document.headers.iter();
        let headers = headers.map(|(name, value)| name.as_str().len() + value.len());
        let validators = &document.validators;
        let etag = validators.etag.as_ref().map_or(0, Vec::len);
        let last_modified = validators.last_modified.as_ref().map_or(0, Vec::len);
        let addresses = 2 * document.url.as_str().len() + validators.url.len();
        let bytes = document.body.len() + headers.sum::<usize>() + etag + last_modified + addresses;
        bytes.max(CAPACITY_BYTES / MOST_DOCUMENTS)
    }
}

/// The source of a poll's document.
#[derive(Debug)]
pub(super) enum DocumentSource<'a> {
    /// A document that the poll of another part fetched at this time, from there.
    Shared {
        fetched_at: DateTime<Utc>,
        source_network: SourceNetwork,
        document: Box<FetchedDocument>,
    },
    /// The guard of a document that this poll fetches.
    Fetch(FetchGuard<'a>),
}

/// A fetch whose document others may use. If the fetch is dropped, or fails, one of the waiting
/// polls fetches.
#[derive(Debug)]
pub(super) struct FetchGuard<'a> {
    documents: &'a ByteCache<String, SharedDocument>,
    /// The address of the document; `None` if it is fetched for a whole resource.
    url: Option<&'a String>,
    /// `None` if no poll waits for the document, because it is fetched after a ping.
    guard: Option<FillGuard<'a, String, SharedDocument>>,
}

impl Default for SharedDocuments {
    fn default() -> SharedDocuments {
        SharedDocuments(Arc::new(ByteCache::new(CacheName::SharedDocuments)))
    }
}

impl SharedDocuments {
    /// Returns the document of a due resource, or a guard: this poll then fetches the document.
    pub(super) async fn find_or_fetch<'a>(
        &'a self,
        due: &'a DueResource,
        now: DateTime<Utc>,
    ) -> DocumentSource<'a> {
        let (documents, status) = (&*self.0, &due.resource.status);
        let is_part = due.resource.topic.fragment().is_some();
        let url = is_part.then_some(&due.resource.fetch_url);
        let Some(waited) = url.filter(|_| due.trigger == Trigger::Schedule) else {
            return DocumentSource::Fetch(FetchGuard { documents, url, guard: None });
        };
        let is_usable = |shared: &SharedDocument| {
            let is_newer = status.last_fetch.is_none_or(|last| shared.fetched_at > last);
            let period = TimeDelta::seconds(status.period_s.into());
            is_newer && now < shared.fetched_at + period
        };
        match documents.get_or_guard(waited, is_usable).await {
            Ok(SharedDocument { fetched_at, source_network, document }) => {
                let document = Box::new((*document).clone());
                DocumentSource::Shared { fetched_at, source_network, document }
            }
            Err(guard) => DocumentSource::Fetch(FetchGuard { documents, url, guard: Some(guard) }),
        }
    }
}

impl FetchGuard<'_> {
    /// Shares the document that was fetched.
    pub(super) fn share(
        self,
        document: &FetchedDocument,
        source_network: SourceNetwork,
        fetched_at: DateTime<Utc>,
    ) {
        if self.url.is_some() {
            // The capacity of the cache accounts for its memory.
            let document = FetchedDocument { memory: None, ..document.clone() };
            self.store(SharedDocument { fetched_at, source_network, document: Arc::new(document) });
        }
    }

    /// Records that the document with these validators is still the newest.
    pub(super) fn confirm(self, validators: &Validators, fetched_at: DateTime<Utc>) {
        match self.previous() {
            Some(shared) if shared.document.validators == *validators => {
                self.store(SharedDocument { fetched_at, ..shared });
            }
            _ => self.give_up(),
        }
    }

    /// Leaves the document unchanged: it may be new enough for others.
    pub(super) fn give_up(self) {
        if self.guard.is_some()
            && let Some(previous) = self.previous()
        {
            self.store(previous);
        }
    }

    fn previous(&self) -> Option<SharedDocument> {
        match &self.guard {
            Some(guard) => guard.previous().cloned(),
            None => self.documents.get(self.url?),
        }
    }

    fn store(self, shared: SharedDocument) {
        match (self.guard, self.url) {
            (Some(guard), _) => guard.fill(shared),
            (None, Some(url)) => self.documents.insert(url.clone(), shared),
            (None, None) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use bytes::Bytes;
    use futures_util::future::join_all;
    use http::{HeaderMap, HeaderValue};
    use tokio::time::{sleep, timeout};
    use url::Url;

    use super::*;
    use feedgate_core::claim::ClaimToken;
    use feedgate_core::poll::Polling;
    use feedgate_core::record::Seq;
    use feedgate_core::resource::{Resource, ResourceId, ResourceKind};
    use feedgate_core::status::Status;
    use feedgate_core::topic::Topic;

    fn at(secs: i64) -> DateTime<Utc> {
        DateTime::UNIX_EPOCH + TimeDelta::seconds(secs)
    }

    fn document(body: usize, header: usize) -> FetchedDocument {
        let value = HeaderValue::from_str(&"x".repeat(header)).unwrap();
        FetchedDocument {
            url: Url::parse("https://a.test/").unwrap(),
            headers: HeaderMap::from_iter([(http::header::LINK, value)]),
            body: Bytes::from(vec![b'x'; body]),
            validators: Validators::default(),
            hint_s: 0,
            clock_ahead_s: 0,
            memory: None,
        }
    }

    /// Returns a due resource that was last polled at this time, with a period of a minute.
    fn due(trigger: Trigger, fragment: &str, last_fetch: Option<i64>) -> DueResource {
        let topic = Topic::parse(format!("https://a.test/{fragment}")).unwrap();
        let status = Status { last_fetch: last_fetch.map(at), period_s: 60, ..Status::default() };
        let resource = Resource {
            id: ResourceId(1),
            topic,
            fetch_url: "https://a.test/".to_owned(),
            kind: ResourceKind::default(),
            head: Seq(0),
            body_version: 0,
            feed_head: String::new(),
            next_fetch: at(0),
            status,
            polling: Polling::default(),
            subscribers: 1,
            pushed_until: None,
            exposure: Default::default(),
        };
        DueResource { resource, claim: ClaimToken::NONE, trigger }
    }

    fn part() -> DueResource {
        due(Trigger::Schedule, "#a", None)
    }

    /// Returns when the document that a due resource would use was fetched.
    async fn shared_at(shared: &SharedDocuments, due: &DueResource, now: i64) -> Option<i64> {
        match shared.find_or_fetch(due, at(now)).await {
            DocumentSource::Shared { fetched_at, .. } => Some(fetched_at.timestamp()),
            DocumentSource::Fetch(guard) => {
                guard.give_up();
                None
            }
        }
    }

    async fn fetch(shared: &SharedDocuments, document: &FetchedDocument, now: i64) {
        let due = due(Trigger::Schedule, "#first", Some(now));
        match shared.find_or_fetch(&due, at(now)).await {
            DocumentSource::Fetch(guard) => guard.share(document, SourceNetwork::Public, at(now)),
            DocumentSource::Shared { .. } => panic!("it is not newer than the last fetch"),
        }
    }

    #[tokio::test]
    async fn a_document_is_used_by_other_parts_until_they_would_fetch_it_again() {
        let shared = SharedDocuments::default();
        fetch(&shared, &document(10, 10), 100).await;
        #[rustfmt::skip]
        let cases = [
            ("a part that was never polled",  due(Trigger::Schedule, "#a", None),      100, Some(100)),
            ("one that was polled before",    due(Trigger::Schedule, "#a", Some(99)),  159, Some(100)),
            ("a period later",                due(Trigger::Schedule, "#a", Some(99)),  160, None),
            ("one that was polled since",     due(Trigger::Schedule, "#a", Some(100)), 101, None),
            ("after a ping",                  due(Trigger::Ping, "#a", None),          101, None),
            ("the whole",                     due(Trigger::Schedule, "", None),        101, None),
            ("nobody took it away",           due(Trigger::Schedule, "#a", None),      102, Some(100)),
        ];
        for (why, due, now, want) in cases {
            assert_eq!(shared_at(&shared, &due, now).await, want, "{why}");
        }
    }

    #[tokio::test]
    async fn a_document_that_was_not_modified_is_as_good_as_a_new_one() {
        let other = Validators { etag: Some(b"\"other\"".to_vec()), ..Validators::default() };
        for trigger in [Trigger::Schedule, Trigger::Ping] {
            for (validators, want) in [(Validators::default(), 300), (other.clone(), 100)] {
                let shared = SharedDocuments::default();
                fetch(&shared, &document(10, 10), 100).await;
                let due = due(trigger, "#a", Some(200));
                let DocumentSource::Fetch(guard) = shared.find_or_fetch(&due, at(300)).await else {
                    panic!("it is too old");
                };
                guard.confirm(&validators, at(300));
                let held = shared.0.get(&due.resource.fetch_url).unwrap();
                assert_eq!(held.fetched_at, at(want), "{trigger:?}");
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_document_is_fetched_once_for_all_parts_that_are_due_together() {
        let (shared, fetches) = (SharedDocuments::default(), AtomicUsize::new(0));
        let polls = (0..20).map(|_| async {
            match shared.find_or_fetch(&part(), at(0)).await {
                DocumentSource::Shared { document, .. } => assert_eq!(document.body.len(), 10),
                DocumentSource::Fetch(guard) => {
                    fetches.fetch_add(1, Ordering::Relaxed);
                    sleep(Duration::from_secs(1)).await;
                    guard.share(&document(10, 10), SourceNetwork::Public, at(0));
                }
            }
        });
        join_all(polls).await;
        assert_eq!(fetches.into_inner(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_poll_that_fails_or_is_cancelled_leaves_the_fetch_to_the_next() {
        let shared = SharedDocuments::default();
        let (first, second, third) = (part(), part(), part());
        let first = timeout(Duration::from_secs(1), async {
            let _guard = shared.find_or_fetch(&first, at(0)).await;
            sleep(Duration::from_secs(60)).await;
        });
        let second = async {
            match shared.find_or_fetch(&second, at(0)).await {
                DocumentSource::Fetch(guard) => guard.give_up(),
                DocumentSource::Shared { .. } => panic!("nothing was fetched"),
            }
        };
        let (first, ()) = tokio::join!(first, second);
        assert!(first.is_err());
        assert!(matches!(shared.find_or_fetch(&third, at(0)).await, DocumentSource::Fetch(_)));
    }

    #[test]
    fn the_documents_are_bounded_in_bytes_and_number() {
        const MB: usize = 1024 * 1024;
        for (body, header) in [(3 * MB, 1), (1, 3 * MB), (1, 1)] {
            let shared = SharedDocuments::default();
            let document = Arc::new(document(body, header));
            for number in 0..MOST_DOCUMENTS + 10 {
                let document = Arc::clone(&document);
                let value = SharedDocument {
                    fetched_at: at(0),
                    source_network: SourceNetwork::Public,
                    document,
                };
                shared.0.insert(number.to_string(), value);
                assert!(shared.0.bytes() <= CAPACITY_BYTES && shared.0.len() <= MOST_DOCUMENTS);
            }
            assert!(shared.0.get(&(MOST_DOCUMENTS + 9).to_string()).is_some(), "the last");
        }
        let shared = SharedDocuments::default();
        let document = Arc::new(document(33 * MB, 1));
        let value =
            SharedDocument { fetched_at: at(0), source_network: SourceNetwork::Public, document };
        shared.0.insert("too large".to_owned(), value);
        assert!(shared.0.is_empty());
    }
}
