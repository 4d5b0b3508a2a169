//! What was found → records for the log, oldest first.

use chrono::{DateTime, FixedOffset, Utc};
use sha2::{Digest, Sha256};

use crate::domain::feed::{Content, Entry, Feed, Link, Text, TextKind};
use crate::domain::poll::Body;
use crate::domain::record::{EntryKey, NewRecord};
use crate::domain::resource::Resource;
use crate::render;
use crate::store::{Store, StoreError};

use super::look::Found;

/// The longest content of a revision that is carried inside its record, in bytes. The
/// newest one is kept whole beside the log in any case.
const INLINE_LIMIT_BYTES: usize = 256 * 1024;

/// The records that may be new, oldest first.
///
/// The store is asked which entries it has not seen, so that only those are worked
/// on; its append is the judge.
pub(super) async fn records(
    store: &dyn Store,
    resource: &Resource,
    found: &Found,
    now: DateTime<Utc>,
) -> Result<Vec<NewRecord>, StoreError> {
    match found {
        Found::Feed { feed, .. } => {
            let keys: Vec<EntryKey> =
                feed.entries.iter().map(|entry| EntryKey::of(&entry.id)).collect();
            let unknown = store.unknown(resource.id, &keys).await?;
            let entries = feed.entries.iter().zip(keys);
            let new = entries.filter(|(_, key)| unknown.contains(key));
            let mut new: Vec<NewRecord> =
                new.map(|(entry, key)| entry_record(entry, key)).collect();
            if !is_oldest_first(feed) {
                new.reverse();
            }
            Ok(new)
        }
        Found::Other(fresh) => Ok(vec![revision(resource, &fresh.hash, &fresh.body, now)]),
        Found::NotModified { .. } | Found::Same(_) | Found::Trouble(_) => Ok(Vec::new()),
    }
}

fn entry_record(entry: &Entry, key: EntryKey) -> NewRecord {
    NewRecord { key, entry_id: entry.id.clone(), atom: render::atom::entry(entry) }
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
fn revision(resource: &Resource, hash: &str, body: &Body, now: DateTime<Utc>) -> NewRecord {
    let number = resource.body_version + 1;
    let name = format!("{} {number} {hash}", resource.topic);
    let id = urn(&name);
    let entry = Entry {
        id: id.clone(),
        title: Some(Text::plain(resource.topic.as_str())),
        updated: Some(now.fixed_offset()),
        published: Some(now.fixed_offset()),
        content: Some(content(resource, body)),
        links: vec![Link {
            href: resource.topic.as_str().to_owned(),
            rel: "alternate".to_owned(),
            mime: body.content_type.clone(),
            ..Link::default()
        }],
        ..Entry::default()
    };
    NewRecord { key: EntryKey::of(&name), entry_id: id, atom: render::atom::entry(&entry) }
}

/// Short text is carried along; anything else is pointed to.
fn content(resource: &Resource, body: &Body) -> Content {
    let mime = body.content_type.as_deref().and_then(|mime| mime.split(';').next());
    let mime = mime.map(|mime| mime.trim().to_ascii_lowercase());
    let short = body.bytes.len() <= INLINE_LIMIT_BYTES;
    let text = std::str::from_utf8(&body.bytes).ok().filter(|_| short);
    match (text, mime.as_deref()) {
        (Some(text), Some("text/html")) => {
            Content::Text(Text { kind: TextKind::Html, ..Text::plain(text) })
        }
        (Some(text), None | Some("text/plain")) => Content::Text(Text::plain(text)),
        (Some(text), Some("application/json")) => Content::Text(Text::plain(text)),
        _ => Content::Src { mime, href: resource.topic.as_str().to_owned() },
    }
}

/// A name as a URN that is the same whenever it is made (RFC 9562, version 8: the
/// bits are of our own making, here of a SHA-256).
fn urn(name: &str) -> String {
    let digest = Sha256::digest(name.as_bytes());
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&digest[..16]);
    bytes[6] = bytes[6] & 0x0f | 0x80;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex = hex::encode(bytes);
    let parts = [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]];
    format!("urn:uuid:{}", parts.join("-"))
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

    #[test]
    fn a_name_always_gives_the_same_urn() {
        let urn = urn("http://a.test/ 1 00");
        assert_eq!(urn.len(), "urn:uuid:".len() + 36);
        assert_eq!(urn.as_bytes()[23], b'8', "{urn}");
        assert_eq!(urn, super::urn("http://a.test/ 1 00"));
    }
}
