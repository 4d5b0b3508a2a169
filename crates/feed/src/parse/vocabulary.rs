//! Vocabularies: what a namespace is called, and who reads it.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::LazyLock;

use super::formats;
use super::modules;
use super::modules::Home;
use super::tree::El;

/// A namespace we know.
#[derive(Debug)]
pub(super) struct Vocabulary {
    /// The usual prefix: what it means undeclared, and what we write it with.
    pub(super) prefix: &'static str,
    /// Its URI, then others under which it is found, compared as
    /// [`by_uri`] does.
    pub(super) uris: &'static [&'static str],
    /// Reads an element of a feed or an entry into its home in Atom. `false` says that
    /// it has none: it is kept as it is.
    pub(super) read: fn(El<'_>, &mut Home<'_>) -> bool,
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
    known.or_else(|| essence.ends_with("rsscloud").then_some(&modules::RSSCLOUD))
}

/// All vocabularies by what counts of their URIs: every document declares several.
static BY_URI: LazyLock<HashMap<String, &'static Vocabulary>> = LazyLock::new(|| {
    let mut found = HashMap::new();
    for known in all() {
        for uri in known.uris {
            found.entry(essence(uri).to_ascii_lowercase()).or_insert(known);
        }
    }
    found
});

/// What a prefix usually stands for.
pub(super) fn by_prefix(prefix: &str) -> Option<&'static Vocabulary> {
    all().find(|known| known.prefix.eq_ignore_ascii_case(prefix))
}

/// Names with capitals in them, for those who write them otherwise.
#[rustfmt::skip]
const SPELLED: [(&str, &str); 14] = [
    ("rss", "textInput"), ("rss", "skipHours"), ("rss", "skipDays"), ("rss", "pubDate"),
    ("rss", "lastBuildDate"), ("rss", "managingEditor"), ("rss", "webMaster"),
    ("rss", "expirationDate"), ("wfw", "commentRss"), ("itunes", "episodeType"),
    ("sy", "updatePeriod"), ("sy", "updateFrequency"), ("sy", "updateBase"),
    ("feedburner", "origLink"),
];

/// How a name of a vocabulary is spelled, for a name as written: what is written all in
/// capitals is in small letters.
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

/// Reads nothing: every element is kept as it is.
pub(super) fn keep(_: El<'_>, _: &mut Home<'_>) -> bool {
    false
}

fn all() -> impl Iterator<Item = &'static Vocabulary> {
    formats::VOCABULARIES.iter().chain(modules::VOCABULARIES).copied()
}

fn essence(uri: &str) -> &str {
    let uri = uri.trim().trim_end_matches(['/', '#']);
    let rest = uri.split_once("://").map_or(uri, |(_, rest)| rest);
    rest.strip_prefix("www.").unwrap_or(rest)
}
