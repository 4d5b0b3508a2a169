//! The records that a poll adds to the log.
//!
//! The store decides which entries are new, in the transaction that appends. The same
//! classification runs here first, with the entries that the store knows at that moment, so that
//! only entries that may become records are rendered: rendering takes longer than all the rest.

use chrono::{DateTime, FixedOffset, TimeDelta, Utc};

use crate::document_budget::DocumentMemory;
use feedgate_core::change_detection::{
    self, Baseline, Candidate, ChangeSet, FeedDocument, FormerDocument,
};
use feedgate_core::poll::{self, Trigger};
use feedgate_core::record::Digest;
use feedgate_core::resource::Resource;
use feedgate_core::store::{DueResource, StoreError};
use feedgate_feed::model::{Entry, Feed};
use feedgate_feed::passes;
use feedgate_feed::render;
use feedgate_store::Store;

use super::former_document::former_document;
use super::observation::{Found, ReceivedBody};
use super::semantic_digest;

/// The records of a poll, and how many of them are new.
#[derive(Debug, Default)]
pub(super) struct PollRecords {
    /// The new content, for the store.
    pub(super) found: poll::NewContent,
    /// The semantic digest of the body, if the document is a feed with entries.
    pub(super) semantic_digest: Option<Digest>,
    /// The number of new entries, or of new revisions.
    pub(super) new: usize,
    /// The number of known entries with changed content.
    pub(super) updated: usize,
}

/// Returns the records that `found` adds to the log. `None` if reading it panicked.
pub(super) async fn records(
    store: &Store,
    due: &DueResource,
    found: &mut Found,
    now: DateTime<Utc>,
) -> Result<Option<PollRecords>, StoreError> {
    let DueResource { resource, trigger, .. } = due;
    match found {
        Found::Feed { feed, received } => {
            let former = former_document(store, resource, (feed, &received.memory)).await?;
            let held = InMemory { feed, former, memory: &received.memory, trigger: *trigger };
            let mut records = records_of_feed(store, resource, held, now).await?;
            if let Some(PollRecords { found: poll::NewContent::Feed(document), .. }) = &mut records
            {
                document.clock_ahead = TimeDelta::seconds(received.clock_ahead_s);
            }
            Ok(records)
        }
        Found::Other(received) => {
            let found = revision(resource, received, now);
            Ok(Some(PollRecords { found, new: 1, ..PollRecords::default() }))
        }
        Found::NotModified { .. }
        | Found::Same(_)
        | Found::FragmentMissing(_)
        | Found::Failure(_) => Ok(Some(PollRecords::default())),
    }
}

/// A feed, the memory reserved for it, and why it was read.
#[derive(Debug)]
pub(super) struct InMemory<'m> {
    pub(super) feed: &'m mut Feed,
    /// The entries of the document before, if it was not read as a feed.
    pub(super) former: Option<FormerDocument>,
    pub(super) memory: &'m DocumentMemory,
    pub(super) trigger: Trigger,
}

/// Returns the records of a feed. `None` if reading it panicked.
pub(super) async fn records_of_feed(
    store: &Store,
    resource: &Resource,
    held: InMemory<'_>,
    now: DateTime<Utc>,
) -> Result<Option<PollRecords>, StoreError> {
    let InMemory { feed, former, memory, trigger } = held;
    let known_by = resource.polling.known_by;
    let mut owned = std::mem::take(feed);
    let read = memory.run_blocking(move || {
        let renamed =
            (owned.known_by != known_by).then(|| passes::entry_ids(&owned, owned.known_by));
        let document = FeedDocument::from_feed(&owned, is_oldest_first(&owned), renamed, now);
        // A document without entries is read for its own sake: no part of it is noise.
        let digest =
            (!owned.entries.is_empty()).then(|| semantic_digest::semantic_digest(&mut owned));
        (digest, document, owned)
    });
    let Some((digest, document, owned)) = read.await else { return Ok(None) };
    *feed = owned;
    let document = FeedDocument { former, ..document };
    let held = InMemory { feed, former: None, memory, trigger };
    entries(store, resource, held, document, digest).await
}

/// Returns the entries of a document. Only those that may be appended are rendered.
async fn entries(
    store: &Store,
    resource: &Resource,
    held: InMemory<'_>,
    document: FeedDocument,
    digest: Option<Digest>,
) -> Result<Option<PollRecords>, StoreError> {
    let InMemory { feed, memory, trigger, .. } = held;
    let known = store.known(resource.id, &document.keys()).await?;
    let Resource { kind, status, polling, subscribers, .. } = resource;
    let standing = Baseline::from_stored(*kind, status, polling, trigger);
    let standing = standing.for_subscribers(*subscribers);
    let changes = change_detection::classify(&document, &known, &standing, document.at);
    let (new, updated) = (changes.new_records(), changes.updated());
    let owned = std::mem::take(feed);
    let rendered = memory.run_blocking(move || {
        let document = rendered(&owned, document, &changes);
        (document, owned)
    });
    let Some((document, owned)) = rendered.await else { return Ok(None) };
    *feed = owned;
    let found = poll::NewContent::Feed(document);
    Ok(Some(PollRecords { found, semantic_digest: digest, new, updated }))
}

fn rendered(feed: &Feed, mut document: FeedDocument, changes: &ChangeSet) -> FeedDocument {
    let last = feed.entries.len().saturating_sub(1);
    let oldest_first = is_oldest_first(feed);
    let verdicts = changes.verdicts.iter().enumerate();
    for (at, _) in verdicts.filter(|(_, verdict)| verdict.is_appended()) {
        let entry = &feed.entries[if oldest_first { at } else { last - at }];
        document.candidates[at].atom = Some(render_entry(entry.clone()));
    }
    for (at, _) in &changes.deleted {
        let deletion = &mut document.deletions[*at];
        deletion.atom = Some(render::atom::deletion(&deletion.element));
    }
    document
}

/// Returns all entries of a normalized feed that was read at `at`, oldest first, rendered.
pub fn candidates(feed: &Feed, at: DateTime<Utc>) -> Vec<Candidate> {
    let oldest_first = is_oldest_first(feed);
    let mut candidates = FeedDocument::from_feed(feed, oldest_first, None, at).candidates;
    let last = feed.entries.len().saturating_sub(1);
    for (place, candidate) in candidates.iter_mut().enumerate() {
        let entry = &feed.entries[if oldest_first { place } else { last - place }];
        candidate.atom = Some(render_entry(entry.clone()));
    }
    candidates
}

/// Returns an entry as it is stored and sent.
pub fn render_entry(mut entry: Entry) -> String {
    // Detecting the language takes longer than everything else together, so the language is
    // detected for new entries only.
    passes::detect_language(&mut entry);
    render::atom::entry(&entry)
}

/// Returns whether the document lists its entries oldest first. Feeds list them newest first (rule
/// N10), unless their dates say otherwise.
fn is_oldest_first(feed: &Feed) -> bool {
    let dates: Vec<DateTime<FixedOffset>> =
        feed.entries.iter().filter_map(|entry| entry.published.or(entry.updated)).collect();
    let rising = dates.windows(2).filter(|pair| pair[0] < pair[1]).count();
    let falling = dates.windows(2).filter(|pair| pair[0] > pair[1]).count();
    rising > falling
}

/// Returns a revision of a document that is not a feed. It is appended if the body differs from the
/// last one, so content that returns after a change counts as new again (rule N12).
fn revision(resource: &Resource, received: &ReceivedBody, now: DateTime<Utc>) -> poll::NewContent {
    let body = &received.body;
    let topic = &resource.topic.displayed();
    let (entry_id, atom) =
        render::atom::revision(topic, body.content_type.as_deref(), &body.bytes, now);
    poll::NewContent::Revision { entry_id, atom }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn feed(days: &[Option<u32>]) -> Feed {
        let entries = days.iter().map(|day| {
            let date = day.map(|day| format!("2002-09-{day:02}T00:00:00Z"));
            let published = date.map(|date| DateTime::parse_from_rfc3339(&date).unwrap());
            Entry { published, ..Entry::default() }
        });
        Feed { entries: entries.collect(), ..Feed::default() }
    }

    #[test]
    fn n10_a_feed_lists_the_newest_first_unless_its_dates_rise() {
        let cases: [(&str, &[Option<u32>], bool); 5] = [
            ("as usual", &[Some(3), Some(2), Some(1)], false),
            ("the other way round", &[Some(1), Some(2), Some(3)], true),
            ("mostly the other way round", &[Some(1), Some(2), Some(4), Some(3)], true),
            ("all at once", &[Some(1), Some(1)], false),
            ("without dates", &[None, None], false),
        ];
        for (why, days, want) in cases {
            assert_eq!(is_oldest_first(&feed(days)), want, "{why}");
        }
    }
}
