//! The formats that feeds are written in.

use std::fmt;
use std::str::FromStr;

/// Declares one format per line: its variant, its stable word, its name for people and its description.
macro_rules! formats {
    ($($name:ident $word:literal $title:literal $doc:literal,)*) => {
        /// The format that a feed was written in, detected from its contents.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum FeedFormat {
            /// Not read from a document; its stable word is empty.
            #[default]
            Unknown,
            $(#[doc = concat!($doc, ": `", $word, "`.")] $name,)*
        }

        impl FeedFormat {
            /// All formats that can be read.
            pub const ALL: &[FeedFormat] = &[$(FeedFormat::$name,)*];

            /// Returns the stable word for the format, such as `rss2.0`.
            pub const fn as_str(self) -> &'static str {
                match self {
                    FeedFormat::Unknown => "",
                    $(FeedFormat::$name => $word,)*
                }
            }

            /// Returns the name for people, such as `RSS 2.0`; empty if the format is unknown.
            pub const fn title(self) -> &'static str {
                match self {
                    FeedFormat::Unknown => "",
                    $(FeedFormat::$name => $title,)*
                }
            }
        }
    };
}

formats! {
    Rss090 "rss0.90" "RSS 0.90" "RSS 0.90",
    Rss091 "rss0.91" "RSS 0.91" "RSS 0.91",
    Rss092 "rss0.92" "RSS 0.92" "RSS 0.92",
    Rss093 "rss0.93" "RSS 0.93" "RSS 0.93",
    Rss094 "rss0.94" "RSS 0.94" "RSS 0.94",
    Rss10 "rss1.0" "RSS 1.0" "RSS 1.0",
    Rss11 "rss1.1" "RSS 1.1" "RSS 1.1",
    Rss20 "rss2.0" "RSS 2.0" "RSS 2.0, and RSS without a version",
    Rdf "rdf" "RDF" "RDF that is not RSS 1.0",
    Atom03 "atom0.3" "Atom 0.3" "Atom 0.3",
    Atom10 "atom1.0" "Atom 1.0" "Atom 1.0",
    Cdf "cdf" "CDF" "The channel definition format of 1997",
    JsonFeed10 "jsonfeed1.0" "JSON Feed 1.0" "JSON Feed 1.0",
    JsonFeed11 "jsonfeed1.1" "JSON Feed 1.1" "JSON Feed 1.1",
    RssInJson "rssinjson" "RSS in JSON" "RSS in JSON",
    SuperfeedrJson "superfeedr" "Superfeedr JSON" "The JSON of Superfeedr",
    ActivityStreams1 "activitystreams1" "ActivityStreams 1" "ActivityStreams 1",
    ActivityStreams2 "activitystreams2" "ActivityStreams 2" "A collection of ActivityStreams 2",
    MappedJson "mappedjson" "mapped JSON" "JSON that a mapping reads as a feed",
    HFeed "hfeed" "h-feed" "An HTML page with several entries in microformats",
    HEntry "hentry" "h-entry" "An HTML page with one entry in microformats",
    JsonLd "jsonld" "JSON-LD" "An HTML page that describes entries in JSON-LD",
    Microdata "microdata" "microdata" "An HTML page that describes entries in microdata",
    Sitemap "sitemap" "sitemap" "A sitemap of sitemaps.org",
    Redirect "redirect" "redirect document" "The document in which a feed says that it has moved",
}

impl FeedFormat {
    /// Returns whether the entries are marked up in an HTML page, which also is a document of its own.
    pub const fn is_page(self) -> bool {
        use FeedFormat::{HEntry, HFeed, JsonLd, Microdata};
        matches!(self, HFeed | HEntry | JsonLd | Microdata)
    }
}

impl fmt::Display for FeedFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The error of a word that is not the name of a feed format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownFeedFormat;

impl fmt::Display for UnknownFeedFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("unknown feed format")
    }
}

impl std::error::Error for UnknownFeedFormat {}

impl FromStr for FeedFormat {
    type Err = UnknownFeedFormat;

    fn from_str(word: &str) -> Result<FeedFormat, UnknownFeedFormat> {
        let mut formats = FeedFormat::ALL.iter().chain(&[FeedFormat::Unknown]);
        formats.find(|format| format.as_str() == word).copied().ok_or(UnknownFeedFormat)
    }
}
