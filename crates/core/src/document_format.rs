//! The formats of the feeds that this gateway publishes: what is stored in Atom, in the format that a
//! reader understands best.

use tracing::error;

use crate::resource::Resource;
use crate::status::Status;
use crate::stored_entry::read_back;
use feedgate_feed::render::{json_feed, rss};

/// A format of feeds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum DocumentFormat {
    /// Atom (RFC 4287), in which entries are stored.
    #[default]
    Atom,
    /// RSS 2.0.
    Rss,
    /// JSON Feed 1.1.
    JsonFeed,
}

impl DocumentFormat {
    /// All formats, the one that is sent to everybody who prefers no other first.
    pub const ALL: [DocumentFormat; 3] =
        [DocumentFormat::Atom, DocumentFormat::Rss, DocumentFormat::JsonFeed];

    /// The media type of documents.
    pub fn media_type(self) -> &'static str {
        match self {
            DocumentFormat::Atom => "application/atom+xml",
            DocumentFormat::Rss => "application/rss+xml",
            DocumentFormat::JsonFeed => "application/feed+json",
        }
    }

    /// The word in the parameter `format`.
    pub fn word(self) -> &'static str {
        match self {
            DocumentFormat::Atom => "atom",
            DocumentFormat::Rss => "rss",
            DocumentFormat::JsonFeed => "json-feed",
        }
    }

    /// Parses the word, ignoring case.
    pub fn from_word(word: &str) -> Option<DocumentFormat> {
        Self::ALL.into_iter().find(|format| format.word().eq_ignore_ascii_case(word))
    }

    /// The end of the addresses of documents. Atom has none: its addresses are older than the other
    /// formats.
    pub fn extension(self) -> &'static str {
        match self {
            DocumentFormat::Atom => "",
            DocumentFormat::Rss => ".rss",
            DocumentFormat::JsonFeed => ".json",
        }
    }

    /// Splits the path of a document into that of the same document in Atom and the format that its end
    /// names, if it does: `.atom`, `.rss` or `.json`.
    pub fn split_extension(path: &str) -> (&str, Option<DocumentFormat>) {
        let ends = Self::ALL.into_iter().map(|format| (format.extension(), format));
        let ends = ends.filter(|(end, _)| !end.is_empty()).chain([(".atom", DocumentFormat::Atom)]);
        for (end, format) in ends {
            if let Some(path) = path.strip_suffix(end) {
                return (path, Some(format));
            }
        }
        (path, None)
    }

    /// Returns a document of ours about `resource` in this format, made of the same document in Atom.
    /// `status` is the status that the document has, if it does.
    pub fn convert(self, resource: &Resource, atom: String, status: Option<&Status>) -> String {
        match self {
            DocumentFormat::Atom => atom,
            DocumentFormat::Rss => rss::document(&read_back(resource, &atom)),
            DocumentFormat::JsonFeed => {
                let feed = read_back(resource, &atom);
                let topic = resource.topic.displayed();
                let status = status.map(|status| (&*topic, status.report()));
                let document = json_feed::document(&feed, status);
                serde_json::to_string(&document).unwrap_or_else(|err| {
                    error!(error = %err, "a JSON Feed could not be written");
                    String::new()
                })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a03_the_end_of_a_path_names_the_format() {
        #[rustfmt::skip]
        let cases = [
            ("feeds/7",            "feeds/7",        None),
            ("feeds/7.rss",        "feeds/7",        Some(DocumentFormat::Rss)),
            ("feeds/7.json",       "feeds/7",        Some(DocumentFormat::JsonFeed)),
            ("feeds/7.atom",       "feeds/7",        Some(DocumentFormat::Atom)),
            ("feeds/7/recent.rss", "feeds/7/recent", Some(DocumentFormat::Rss)),
            ("feeds/7.rss.json",   "feeds/7.rss",    Some(DocumentFormat::JsonFeed)),
            ("feeds/7.xml",        "feeds/7.xml",    None),
        ];
        for (path, before, format) in cases {
            assert_eq!(DocumentFormat::split_extension(path), (before, format), "{path}");
        }
    }
}
