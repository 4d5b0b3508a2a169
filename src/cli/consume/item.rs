//! What stands in an archive: entries, and that entries were taken back.

use chrono::DateTime;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use feedgate_core::change_detection::Deletion;
use feedgate_feed::model::{Content, Entry, Feed};
use feedgate_feed::render;

/// One thing that stands in an archive.
#[derive(Clone, Debug, PartialEq)]
pub enum ArchiveItem {
    /// An entry.
    Entry {
        /// It itself, normalized with what its document says.
        entry: Box<Entry>,
        /// Tells it from others with its id, in whichever document it stands.
        hash: String,
    },
    /// That an entry was taken back (`at:deleted-entry`, RFC 6721).
    Deleted(Box<Deletion>),
}

impl ArchiveItem {
    /// An entry that has nothing from its document.
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

    /// Tells it from others with its id: the first 16 hex digits of a SHA-256.
    pub fn hash(&self) -> String {
        match self {
            ArchiveItem::Entry { hash, .. } => hash.clone(),
            ArchiveItem::Deleted(_) => digest(&self.atom()),
        }
    }

    /// Whether it says that the entry was taken back.
    pub fn is_deleted(&self) -> bool {
        matches!(self, ArchiveItem::Deleted(_))
    }

    /// As one self-contained Atom element.
    pub fn atom(&self) -> String {
        match self {
            ArchiveItem::Entry { entry, .. } => render::atom::entry(entry),
            ArchiveItem::Deleted(deletion) => render::atom::deletion(&deletion.element),
        }
    }

    /// In JSON: an entry in Superfeedr's names, which have none for a deletion. That has
    /// `id`, `deleted`, which is true, and `deletedAt` in seconds since 1970, if it is told.
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

/// The hash of an entry as it stands in a document, before it is normalized: of what it says
/// itself, and nothing that it has from its document. The recent document has a language and
/// an author that the others have not.
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
