//! The items of an archive: entries, and deletions of entries.

use chrono::DateTime;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use feedgate_core::change_detection::Deletion;
use feedgate_feed::model::{Content, Entry, Feed};
use feedgate_feed::render;

/// One item of an archive.
#[derive(Clone, Debug, PartialEq)]
pub enum ArchiveItem {
    /// An entry.
    Entry {
        /// The entry, normalized together with the feed-level fields of its document.
        entry: Box<Entry>,
        /// A hash that tells this version of the entry from others with its id, in any document.
        hash: String,
    },
    /// The deletion of an entry (`at:deleted-entry`, RFC 6721).
    Deleted(Box<Deletion>),
}

impl ArchiveItem {
    /// The element, without anything from its document.
    #[cfg(test)]
    pub(super) fn from_entry(entry: Entry) -> ArchiveItem {
        let hash = hash(&entry);
        ArchiveItem::Entry { entry: Box::new(entry), hash }
    }

    /// The id of the entry.
    pub fn id(&self) -> &str {
        match self {
            ArchiveItem::Entry { entry, .. } => &entry.id,
            ArchiveItem::Deleted(deletion) => &deletion.entry_id,
        }
    }

    /// Returns the hash that tells this version from others with the same id: the first 16 hex
    /// digits of a SHA-256.
    pub fn hash(&self) -> String {
        match self {
            ArchiveItem::Entry { hash, .. } => hash.clone(),
            ArchiveItem::Deleted(_) => digest(&self.atom()),
        }
    }

    /// Whether the item is a deletion.
    pub fn is_deleted(&self) -> bool {
        matches!(self, ArchiveItem::Deleted(_))
    }

    /// Returns the item as one self-contained Atom element.
    pub fn atom(&self) -> String {
        match self {
            ArchiveItem::Entry { entry, .. } => render::atom::entry(entry),
            ArchiveItem::Deleted(deletion) => render::atom::deletion(&deletion.element),
        }
    }

    /// Returns the item as JSON. An entry has the field names of Superfeedr, which define none for
    /// a deletion: a deletion has `id`, `deleted`, which is true, and `deletedAt` in seconds since
    /// 1970, if known.
    pub fn json(&self) -> Value {
        match self {
            ArchiveItem::Entry { entry, .. } => {
                let feed = Feed { entries: vec![Entry::clone(entry)], ..Feed::default() };
                render::json::feed(&feed)["items"][0].take()
            }
            ArchiveItem::Deleted(deletion) => {
                let mut value = json!({ "id": deletion.entry_id, "deleted": true });
                let at = deletion.when().and_then(|at| DateTime::parse_from_rfc3339(at).ok());
                if let Some(at) = at {
                    value["deletedAt"] = at.timestamp().into();
                }
                value
            }
        }
    }
}

/// Returns the hash of an entry as the document contains it, before normalization. The hash covers
/// the entry's own elements only, because the language and author of the recent document are
/// missing in the other documents.
pub(super) fn hash(parsed: &Entry) -> String {
    let mut alone = Entry { lang: None, base: None, source: None, ..parsed.clone() };
    let Entry { title, summary, rights, content, .. } = &mut alone;
    let text = match content {
        Some(Content::Text(text)) => Some(text),
        Some(Content::Xml { base, .. }) => {
            *base = None;
            None
        }
        _ => None,
    };
    let texts = [title, summary, rights].into_iter().flatten().chain(text);
    texts.for_each(|text| text.base = None);
    digest(&render::atom::entry(&alone))
}

fn digest(text: &str) -> String {
    hex::encode(&Sha256::digest(text.as_bytes())[..8])
}
