//! Vocabularies: what a namespace is called, and who reads it.

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
    let wanted = essence(uri);
    all().find(|known| known.uris.iter().any(|held| essence(held).eq_ignore_ascii_case(wanted)))
}

/// What a prefix usually stands for.
pub(super) fn by_prefix(prefix: &str) -> Option<&'static Vocabulary> {
    all().find(|known| known.prefix.eq_ignore_ascii_case(prefix))
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
