//! Why a document was taken as entries in one format, and not in the others.

use super::{formats, json, parse};
use crate::context::Context;
use crate::model::FeedFormat;

/// What became of a document in one format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsideredFormat {
    /// The stable word for the format, or for all of its versions.
    pub name: &'static str,
    /// The number of entries that were taken, or why none were, as a clause for people.
    pub entries: Result<usize, String>,
}

/// The kind of document that a format is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Notation {
    Xml,
    Page,
    Json,
}

/// A format, or its versions.
struct Row {
    name: &'static str,
    notation: Notation,
    formats: &'static [FeedFormat],
    /// What a document of another format lacks; pages say it themselves.
    lacks: &'static str,
}

use FeedFormat::{
    ActivityStreams1, ActivityStreams2, Atom03, Atom10, Cdf, HEntry, HFeed, JsonFeed10, JsonFeed11,
    JsonLd, MappedJson, Microdata, Rdf, Redirect, Rss10, Rss11, Rss20, Rss090, Rss091, Rss092,
    Rss093, Rss094, RssInJson, Sitemap, SuperfeedrJson,
};

/// The formats in the order in which they are tried.
#[rustfmt::skip]
const ROWS: [Row; 15] = [
    Row { name: "rss",              notation: Notation::Xml,  formats: &[Rss090, Rss091, Rss092, Rss093, Rss094, Rss10, Rss11, Rss20, Rdf], lacks: "it has neither an rss, RDF or channel element nor items" },
    Row { name: "atom",             notation: Notation::Xml,  formats: &[Atom03, Atom10],         lacks: "it has neither a feed element nor an entry" },
    Row { name: "cdf",              notation: Notation::Xml,  formats: &[Cdf],                    lacks: "it has no channel of CDF" },
    Row { name: "redirect",         notation: Notation::Xml,  formats: &[Redirect],               lacks: "it does not say that a feed has moved" },
    Row { name: "sitemap",          notation: Notation::Xml,  formats: &[Sitemap],                lacks: "it has no urlset with pages" },
    Row { name: "hfeed",            notation: Notation::Page, formats: &[HFeed],                  lacks: "" },
    Row { name: "hentry",           notation: Notation::Page, formats: &[HEntry],                 lacks: "" },
    Row { name: "jsonld",           notation: Notation::Page, formats: &[JsonLd],                 lacks: "" },
    Row { name: "microdata",        notation: Notation::Page, formats: &[Microdata],              lacks: "" },
    Row { name: "rssinjson",        notation: Notation::Json, formats: &[RssInJson],              lacks: "it has no rss with a channel" },
    Row { name: "superfeedr",       notation: Notation::Json, formats: &[SuperfeedrJson],         lacks: "it has no status beside items with a permalinkUrl" },
    Row { name: "activitystreams2", notation: Notation::Json, formats: &[ActivityStreams2],       lacks: "it is no collection of ActivityStreams 2 with its items in it" },
    Row { name: "activitystreams1", notation: Notation::Json, formats: &[ActivityStreams1],       lacks: "it has no items with a verb and an object" },
    Row { name: "jsonfeed",         notation: Notation::Json, formats: &[JsonFeed10, JsonFeed11], lacks: "it has neither the version of a JSON Feed nor items with an id and contents" },
    Row { name: "mappedjson",       notation: Notation::Json, formats: &[MappedJson],             lacks: "only the fragment of a topic can map it" },
];

/// Returns what became of a document in each format, in the order in which they are tried.
pub fn consider(bytes: &[u8], context: &Context) -> Vec<ConsideredFormat> {
    let text = super::decode::decode(bytes, context.content_type(), &mut Vec::new());
    let taken = parse(bytes, context).ok();
    let is_json = text.trim_start().starts_with(['{', '['])
        || !text.trim_start().starts_with('<') && json::jsonp_argument(&text).is_some();
    let is_xml = taken.as_ref().is_some_and(|feed| notation(feed.format) == Some(Notation::Xml));
    let pages = if is_json || is_xml { Vec::new() } else { formats::consider_page(&text, context) };
    let mut was_taken = false;
    let consider = |row: &Row| {
        let feed = taken.as_ref().filter(|feed| row.formats.contains(&feed.format));
        let entries = match (feed, &taken) {
            (Some(feed), _) => {
                was_taken = true;
                Ok(feed.entries.len())
            }
            (None, Some(feed)) if was_taken => {
                Err(format!("it was read as {} before", feed.format))
            }
            _ if is_json && row.notation != Notation::Json => Err("it is JSON".to_owned()),
            _ if !is_json && row.notation == Notation::Json => Err("it is not JSON".to_owned()),
            _ if row.notation == Notation::Page => reason(row, &pages),
            _ => Err(row.lacks.to_owned()),
        };
        ConsideredFormat { name: row.name, entries }
    };
    ROWS.iter().map(consider).collect()
}

fn notation(format: FeedFormat) -> Option<Notation> {
    ROWS.iter().find(|row| row.formats.contains(&format)).map(|row| row.notation)
}

/// Returns why a page has no entries in a format.
fn reason(row: &Row, pages: &[(FeedFormat, Result<usize, String>)]) -> Result<usize, String> {
    let page = pages.iter().find(|(format, _)| row.formats.contains(format));
    match page {
        Some((_, Err(why))) => Err(why.clone()),
        _ => Err("it is not a page with entries in it".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(feature = "html")]
    fn considered(text: &str) -> Vec<(&'static str, Result<usize, String>)> {
        let context = Context::new(url::Url::parse("https://tides.test/").unwrap());
        let rows = consider(text.as_bytes(), &context);
        rows.into_iter().map(|row| (row.name, row.entries)).collect()
    }

    #[cfg(feature = "html")]
    fn reason_of(text: &str, name: &str) -> Result<usize, String> {
        considered(text).into_iter().find(|(held, _)| *held == name).unwrap().1
    }

    #[test]
    fn every_format_has_a_row() {
        for format in FeedFormat::ALL {
            let rows = ROWS.iter().filter(|row| row.formats.contains(format)).count();
            assert_eq!(rows, 1, "{format}");
        }
    }

    #[test]
    #[cfg(feature = "html")]
    fn each_format_says_why_it_was_taken_or_not() {
        const RSS: &str =
            "<rss version='2.0'><channel><item><title>x</title></item></channel></rss>";
        const POST: &str = "<script type='application/ld+json'>{\"@type\": \"BlogPosting\", \"url\": \"/1\"}</script>";
        const LINK: &str = "<link rel=alternate type='application/rss+xml' href=/feed>";
        const PRODUCT: &str = "<script type='application/ld+json'>[{\"@type\": \"Product\"}, {\"@type\": \"WebPage\"}]</script>";
        let page = |head: &str| format!("<!doctype html><html><head>{head}</head><body>x");
        let advertised = page(&format!("{LINK}{POST}"));
        #[rustfmt::skip]
        let cases = [
            (RSS.to_owned(),              "rss",       Ok(1)),
            (RSS.to_owned(),              "hfeed",     Err("it was read as rss2.0 before")),
            (RSS.to_owned(),              "jsonfeed",  Err("it was read as rss2.0 before")),
            (page(POST),                  "rss",       Err("it has neither an rss, RDF or channel element nor items")),
            (page(POST),                  "hfeed",     Err("it has no microformats")),
            (page(POST),                  "jsonld",    Ok(1)),
            (page(POST),                  "microdata", Err("it was read as jsonld before")),
            (page(PRODUCT),               "jsonld",    Err("it describes no entries, but Product, WebPage")),
            (page(PRODUCT),               "microdata", Err("it has no microdata of schema.org")),
            (page(""),                    "jsonld",    Err("it has no JSON-LD")),
            (page(""),                    "jsonfeed",  Err("it is not JSON")),
            (advertised,                  "jsonld",    Err("its 1 entry is not taken, because the page advertises a feed that has it: /feed")),
            ("{\"a\": 1}".to_owned(),     "hfeed",     Err("it is JSON")),
            ("{\"a\": 1}".to_owned(),     "rssinjson", Err("it has no rss with a channel")),
            ("tides".to_owned(),          "sitemap",   Err("it has no urlset with pages")),
        ];
        for (text, name, want) in cases {
            let want = want.map_err(str::to_owned);
            assert_eq!(reason_of(&text, name), want, "{name}: {text}");
        }
    }
}
