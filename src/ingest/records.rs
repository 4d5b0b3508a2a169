//! What was found → records for the log, oldest first.

use std::error::Error;

use chrono::{DateTime, FixedOffset, Utc};
use tracing::error;

use crate::domain::feed::{Entry, Feed};
use crate::domain::record::{EntryKey, NewRecord};
use crate::domain::resource::Resource;
use crate::normalize;
use crate::render;
use crate::store::{Store, StoreError};

use super::look::{Found, Fresh};

/// The records that may be new, oldest first.
///
/// The store is asked which entries it has not seen, so that only those are worked
/// on; its append is the judge. `None` says that the work on them panicked.
pub(super) async fn records(
    store: &dyn Store,
    resource: &Resource,
    found: &Found,
    now: DateTime<Utc>,
) -> Result<Option<Vec<NewRecord>>, StoreError> {
    match found {
        Found::Feed { feed, .. } => of_feed(store, resource, feed).await,
        Found::Other(fresh) => Ok(Some(vec![revision(resource, fresh, now)])),
        Found::NotModified { .. } | Found::Same(_) | Found::Trouble(_) => Ok(Some(Vec::new())),
    }
}

/// The entries of a feed that may be new, oldest first; `None` as above.
pub(super) async fn of_feed(
    store: &dyn Store,
    resource: &Resource,
    feed: &Feed,
) -> Result<Option<Vec<NewRecord>>, StoreError> {
    let keys: Vec<EntryKey> = feed.entries.iter().map(|entry| EntryKey::of(&entry.id)).collect();
    let unknown = store.unknown(resource.id, &keys).await?;
    let entries = feed.entries.iter().zip(keys);
    let new = entries.filter(|(_, key)| unknown.contains(key));
    let mut new: Vec<_> = new.map(|(entry, key)| (entry.clone(), key)).collect();
    if !is_oldest_first(feed) {
        new.reverse();
    }
    Ok(rendered_aside(new).await)
}

/// Works where it does not hold up others, and outlives a panic (rule S47).
async fn rendered_aside(new: Vec<(Entry, EntryKey)>) -> Option<Vec<NewRecord>> {
    let render = move || new.into_iter().map(|(entry, key)| entry_record(entry, key)).collect();
    tokio::task::spawn_blocking(render)
        .await
        .inspect_err(|err| error!(error = err as &dyn Error, "making records panicked"))
        .ok()
}

fn entry_record(mut entry: Entry, key: EntryKey) -> NewRecord {
    // Guessing takes longer than everything else together, so only new entries get it.
    normalize::detect_language(&mut entry);
    let atom = render::atom::entry(&entry);
    NewRecord { key, entry_id: entry.id, atom }
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

/// A revision of something that is no feed.
///
/// Its key holds the number that the revision will have, because content that comes
/// back after it was something else is news again (rule N12).
fn revision(resource: &Resource, fresh: &Fresh, now: DateTime<Utc>) -> NewRecord {
    let number = resource.body_version + 1;
    let key = EntryKey::of(&format!("revision {number} {}", fresh.hash));
    let body = &fresh.body;
    let topic = resource.topic.as_str();
    let (entry_id, atom) =
        render::atom::revision(topic, body.content_type.as_deref(), &body.bytes, now);
    NewRecord { key, entry_id, atom }
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
    fn a_feed_lists_the_newest_first_unless_its_dates_rise() {
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
