//! The vocabularies of feeds: the namespace URIs of each, and its usual prefix.
//!
//! This module holds data only. Formats (`formats.rs`) and modules (`modules.rs`) decide how the
//! elements of a vocabulary are read; elements that nothing reads are kept as they are.

mod known;

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::LazyLock;

pub(super) use known::*;

/// A namespace that occurs in feeds.
#[derive(Debug)]
pub(super) struct Vocabulary {
    /// The usual prefix: assumed where a document does not declare it, and used for output.
    pub(super) prefix: &'static str,
    /// The standard URI, followed by variants in use. URIs are compared as in [`by_uri`].
    pub(super) uris: &'static [&'static str],
}

impl Vocabulary {
    /// Returns the standard URI.
    pub(super) fn uri(&self) -> &'static str {
        self.uris.first().copied().unwrap_or_default()
    }
}

/// Returns the vocabulary of a URI, ignoring its scheme, case and trailing `/` or `#`.
pub(super) fn by_uri(uri: &str) -> Option<&'static Vocabulary> {
    if uri.is_empty() {
        return None;
    }
    let essence = essence(uri).to_ascii_lowercase();
    let known = BY_URI.get(essence.as_str()).copied();
    known.or_else(|| essence.ends_with("rsscloud").then_some(&RSSCLOUD))
}

/// All vocabularies by the significant part of their URIs; a hash table, because every document
/// declares several namespaces.
static BY_URI: LazyLock<HashMap<String, &'static Vocabulary>> = LazyLock::new(|| {
    let mut found = HashMap::new();
    for known in ALL {
        for uri in known.uris {
            found.entry(essence(uri).to_ascii_lowercase()).or_insert(*known);
        }
    }
    found
});

/// Returns the vocabulary that a prefix usually stands for.
pub(super) fn by_prefix(prefix: &str) -> Option<&'static Vocabulary> {
    ALL.iter().copied().find(|known| known.prefix.eq_ignore_ascii_case(prefix))
}

/// Names in mixed case, for correcting other spellings.
#[rustfmt::skip]
const SPELLED: [(&str, &str); 14] = [
    ("rss", "textInput"), ("rss", "skipHours"), ("rss", "skipDays"), ("rss", "pubDate"),
    ("rss", "lastBuildDate"), ("rss", "managingEditor"), ("rss", "webMaster"),
    ("rss", "expirationDate"), ("wfw", "commentRss"), ("itunes", "episodeType"),
    ("sy", "updatePeriod"), ("sy", "updateFrequency"), ("sy", "updateBase"),
    ("feedburner", "origLink"),
];

/// Returns the standard spelling of a name in a vocabulary. A name in capitals becomes lower case.
pub(super) fn spelled<'n>(known: Option<&Vocabulary>, name: &'n str) -> Cow<'n, str> {
    let Some(known) = known else { return Cow::Borrowed(name) };
    let right = SPELLED
        .iter()
        .find(|(prefix, held)| *prefix == known.prefix && held.eq_ignore_ascii_case(name));
    match right {
        Some((_, right)) => Cow::Borrowed(right),
        None if name.len() > 1 && !name.bytes().any(|byte| byte.is_ascii_lowercase()) => {
            Cow::Owned(name.to_ascii_lowercase())
        }
        None => Cow::Borrowed(name),
    }
}

/// Returns the significant part of a URI.
fn essence(uri: &str) -> &str {
    let uri = uri.trim().trim_end_matches(['/', '#']);
    let rest = uri.split_once("://").map_or(uri, |(_, rest)| rest);
    rest.strip_prefix("www.").unwrap_or(rest)
}
