//! The namespaces of feeds: the URIs under which each is found, and its usual prefix.
//!
//! These are data only. What is done with the elements of a namespace is decided by the
//! formats and modules above (`formats::read_foreign`).

mod known;

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::LazyLock;

pub(super) use known::*;

/// A namespace that occurs in feeds.
#[derive(Debug)]
pub(super) struct Vocabulary {
    /// The usual prefix: what it means where no document declares it, and what it is
    /// written with.
    pub(super) prefix: &'static str,
    /// Its URI, then others under which it is found, compared as [`by_uri`] does.
    pub(super) uris: &'static [&'static str],
}

impl Vocabulary {
    /// The right URI.
    pub(super) fn uri(&self) -> &'static str {
        self.uris.first().copied().unwrap_or_default()
    }
}

/// The vocabulary of a URI, whatever its scheme, case and trailing `/` or `#`.
pub(super) fn by_uri(uri: &str) -> Option<&'static Vocabulary> {
    if uri.is_empty() {
        return None;
    }
    let essence = essence(uri).to_ascii_lowercase();
    let known = BY_URI.get(essence.as_str()).copied();
    known.or_else(|| essence.ends_with("rsscloud").then_some(&RSSCLOUD))
}

/// All vocabularies by the part of their URIs that is compared. A table, because every
/// document declares several namespaces.
static BY_URI: LazyLock<HashMap<String, &'static Vocabulary>> = LazyLock::new(|| {
    let mut found = HashMap::new();
    for known in ALL {
        for uri in known.uris {
            found.entry(essence(uri).to_ascii_lowercase()).or_insert(*known);
        }
    }
    found
});

/// What a prefix usually stands for.
pub(super) fn by_prefix(prefix: &str) -> Option<&'static Vocabulary> {
    ALL.iter().copied().find(|known| known.prefix.eq_ignore_ascii_case(prefix))
}

/// Names with capitals in them, to correct other spellings.
#[rustfmt::skip]
const SPELLED: [(&str, &str); 14] = [
    ("rss", "textInput"), ("rss", "skipHours"), ("rss", "skipDays"), ("rss", "pubDate"),
    ("rss", "lastBuildDate"), ("rss", "managingEditor"), ("rss", "webMaster"),
    ("rss", "expirationDate"), ("wfw", "commentRss"), ("itunes", "episodeType"),
    ("sy", "updatePeriod"), ("sy", "updateFrequency"), ("sy", "updateBase"),
    ("feedburner", "origLink"),
];

/// The right spelling of a name of a vocabulary. A name written all in capitals becomes
/// lower case.
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

/// The part of a URI that is compared.
fn essence(uri: &str) -> &str {
    let uri = uri.trim().trim_end_matches(['/', '#']);
    let rest = uri.split_once("://").map_or(uri, |(_, rest)| rest);
    rest.strip_prefix("www.").unwrap_or(rest)
}
