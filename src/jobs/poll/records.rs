//! What was found → what there is for the log.
//!
//! The store judges what is new, in the transaction that appends. Here the same classify is
//! asked beforehand, with what the store knows by then, so that only those entries are
//! rendered of which a record can come: that takes longer than all the rest.

use chrono::{DateTime, FixedOffset, Utc};

use feedgate_core::change_detection::{self, Baseline, Candidate, ChangeSet, FeedDocument};
use feedgate_core::poll;
use feedgate_core::ports::{Store, StoreError};
use feedgate_core::record::Digest;
use feedgate_core::resource::Resource;
use feedgate_feed::model::{Entry, Feed};
use feedgate_feed::passes;
use feedgate_feed::render;

use super::observe::{Found, Fresh};
use super::read_document::aside;
use super::semantic_digest;

/// What a poll has for the log, and how much of it seems to be news.
#[derive(Debug, Default)]
pub(super) struct Records {
    /// For the store.
    pub(super) found: poll::NewContent,
    /// What the body says, if that is not its bytes.
    pub(super) meaning: Option<Digest>,
    /// New entries, or a new revision.
    pub(super) new: usize,
    /// Known entries that say something else.
    pub(super) updated: usize,
}

/// What there is for the log. `None` says that the work on it panicked.
pub(super) async fn records(
    store: &dyn Store,
    resource: &Resource,
    found: &mut Found,
    now: DateTime<Utc>,
) -> Result<Option<Records>, StoreError> {
    match found {
        Found::Feed { feed, .. } => of_feed(store, resource, feed, now).await,
        Found::Other(fresh) => {
            let found = revision(resource, fresh, now);
            Ok(Some(Records { found, new: 1, ..Records::default() }))
        }
        Found::NotModified { .. } | Found::Same(_) | Found::Partless(_) | Found::Trouble(_) => {
            Ok(Some(Records::default()))
        }
    }
}

/// What there is of a feed; `None` as above.
pub(super) async fn of_feed(
    store: &dyn Store,
    resource: &Resource,
    feed: &mut Feed,
    now: DateTime<Utc>,
) -> Result<Option<Records>, StoreError> {
    let known_by = resource.polling.known_by;
    let taken = std::mem::take(feed);
    let read = aside(move || {
        let renamed =
            (taken.known_by != known_by).then(|| passes::entry_ids(&taken, taken.known_by));
        let document = FeedDocument::of(&taken, is_oldest_first(&taken), renamed, now);
        (semantic_digest::of(&taken), document, taken)
    });
    let Some((meaning, document, taken)) = read.await else { return Ok(None) };
    *feed = taken;
    entries(store, resource, feed, document, meaning).await
}

/// The entries of a document, those rendered that the log may need.
async fn entries(
    store: &dyn Store,
    resource: &Resource,
    feed: &mut Feed,
    document: FeedDocument,
    meaning: Digest,
) -> Result<Option<Records>, StoreError> {
    let known = store.known(resource.id, &document.keys()).await?;
    let standing = Baseline::of(resource.kind, &resource.status, &resource.polling);
    let judgement = change_detection::classify(&document, &known, &standing, document.at);
    let (new, updated) = (judgement.news(), judgement.updated());
    let taken = std::mem::take(feed);
    let rendered = aside(move || {
        let document = rendered(&taken, document, &judgement);
        (document, taken)
    });
    let Some((document, taken)) = rendered.await else { return Ok(None) };
    *feed = taken;
    let found = poll::NewContent::Feed(document);
    Ok(Some(Records { found, meaning: Some(meaning), new, updated }))
}

fn rendered(feed: &Feed, mut document: FeedDocument, judgement: &ChangeSet) -> FeedDocument {
    let last = feed.entries.len().saturating_sub(1);
    let oldest_first = is_oldest_first(feed);
    let verdicts = judgement.verdicts.iter().enumerate();
    for (at, _) in verdicts.filter(|(_, verdict)| verdict.is_appended()) {
        let entry = &feed.entries[if oldest_first { at } else { last - at }];
        document.candidates[at].atom = Some(render_entry(entry.clone()));
    }
    for (at, _) in &judgement.deleted {
        let deletion = &mut document.deletions[*at];
        deletion.atom = Some(render::atom::deletion(&deletion.element));
    }
    document
}

/// All entries of a normalized feed that was read `at` that time, oldest first, rendered.
pub fn candidates(feed: &Feed, at: DateTime<Utc>) -> Vec<Candidate> {
    let oldest_first = is_oldest_first(feed);
    let mut candidates = FeedDocument::of(feed, oldest_first, None, at).candidates;
    let last = feed.entries.len().saturating_sub(1);
    for (place, candidate) in candidates.iter_mut().enumerate() {
        let entry = &feed.entries[if oldest_first { place } else { last - place }];
        candidate.atom = Some(render_entry(entry.clone()));
    }
    candidates
}

fn render_entry(mut entry: Entry) -> String {
    // Guessing takes longer than everything else together, so only new entries get it.
    passes::detect_language(&mut entry);
    render::atom::entry(&entry)
}

/// Whether the document lists its entries oldest first. Feeds list them newest first
/// (rule N10), unless their dates say otherwise.
fn is_oldest_first(feed: &Feed) -> bool {
    let dates: Vec<DateTime<FixedOffset>> =
        feed.entries.iter().filter_map(|entry| entry.published.or(entry.updated)).collect();
    let rising = dates.windows(2).filter(|pair| pair[0] < pair[1]).count();
    let falling = dates.windows(2).filter(|pair| pair[0] > pair[1]).count();
    rising > falling
}

/// A revision of something that is no feed. It is appended if the body is another than the
/// last one, so content that comes back after it was something else is news again (rule
/// N12).
fn revision(resource: &Resource, fresh: &Fresh, now: DateTime<Utc>) -> poll::NewContent {
    let body = &fresh.body;
    let topic = resource.topic.as_str();
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
