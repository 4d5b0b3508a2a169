//! Bytes → feed: any feed, however broken.
//!
//! ```text
//! bytes ──► decode ──► text ──► tidy, build ──► tree ──► formats, modules ──► feed
//! ```
//!
//! * A text that holds at least one recognizable item never fails. Everything that had to be
//!   repaired is listed in [`Feed::repairs`].
//! * What has a counterpart in Atom is mapped to it, everything else is kept as extensions.
//!   Nothing is dropped silently: what a limit cuts off is listed as a repair as well.
//! * Nothing recurses over input, entities that a document declares are not expanded, and no
//!   network is accessed (S14, S16).
//!
//! Each format is one file in `formats`, each module with elements of its own one file in
//! `modules`.

mod bases;
mod consideration;
mod crop;
pub(crate) mod dates;
mod decode;
mod faults;
mod formats;
mod hints;
#[cfg(feature = "html")]
pub(crate) mod html;
mod json;
#[cfg(feature = "html")]
mod linked_data;
mod memory_bound;
mod mend;
#[cfg(feature = "html")]
mod microformats;
mod modules;
mod opml;
mod person;
mod selection;
mod target;
mod texts;
mod trace;
mod tree;
mod vocabulary;

use std::borrow::Cow;
use std::fmt;

pub use consideration::{ConsideredFormat, consider};
pub use formats::ListedSitemap;
#[cfg(feature = "html")]
pub(crate) use memory_bound::has_too_many_values;
pub use memory_bound::{max_memory, memory_bound};
pub use opml::{FeedList, ListedFeed, NotAList, is_feed_list, listed_feeds, read_feed_list};
pub(crate) use trace::{SourceLocation, SourceTrace};

use url::Url;

use crate::context::Context;
use crate::model::Feed;
use crate::repair::Repair;

/// The maximum number of entries read from one document (rule S16): the newest ones.
const MAX_ENTRIES: usize = 5000;

/// The reason why a document is not a feed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NotAFeed {
    /// The document is empty.
    Empty,
    /// The document is of another kind, as words for people: `an HTML page`.
    Other(&'static str),
}

impl NotAFeed {
    /// The document is a list in JSON, as services write them, of something that is not entries.
    pub const OTHER_LIST: NotAFeed = NotAFeed::Other("JSON with items that are not entries");
    /// The document is an index of sitemaps ([`listed_sitemaps`]).
    pub const SITEMAP_INDEX: NotAFeed = NotAFeed::Other("an index of sitemaps");
}

impl fmt::Display for NotAFeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotAFeed::Empty => f.write_str("the document is empty"),
            NotAFeed::Other(what) => write!(f, "not a feed: looks like {what}"),
        }
    }
}

impl std::error::Error for NotAFeed {}

/// The findings collected while a document is read: its repairs, and the location of each value.
#[derive(Debug)]
struct Notes<'n> {
    repairs: &'n mut Vec<Repair>,
    trace: &'n mut SourceTrace,
}

impl Notes<'_> {
    fn reborrow(&mut self) -> Notes<'_> {
        Notes { repairs: self.repairs, trace: self.trace }
    }
}

/// Parses any feed without changing what it says. Most programs want
/// [`normalize`](crate::normalize()), which also gives every entry an id, a date and absolute
/// addresses.
pub fn parse(bytes: &[u8], context: &Context) -> Result<Feed, NotAFeed> {
    read(bytes, context, &mut SourceTrace::default())
}

/// Parses any feed, and records the location of every value.
pub(crate) fn parse_with_trace(
    bytes: &[u8],
    context: &Context,
) -> Result<(Feed, SourceTrace), NotAFeed> {
    let mut trace = SourceTrace::recording();
    let feed = read(bytes, context, &mut trace)?;
    Ok((feed, trace))
}

/// Decodes the text of a document, by its bytes and its `Content-Type`.
#[cfg(feature = "html")]
pub(crate) fn decode_text<'b>(bytes: &'b [u8], content_type: Option<&str>) -> Cow<'b, str> {
    decode::decode(bytes, content_type, &mut Vec::new())
}

/// Reads items of JSON Feed that a mapping has made of another document.
#[cfg(feature = "html")]
pub(crate) fn parse_items(items: Vec<serde_json::Value>, context: &Context) -> Feed {
    let mut repairs = Vec::new();
    let notes = Notes { repairs: &mut repairs, trace: &mut SourceTrace::default() };
    let mut feed = formats::read_mapped_items(items, context.received_at, notes);
    feed.repairs = repairs;
    feed
}

fn read(bytes: &[u8], context: &Context, trace: &mut SourceTrace) -> Result<Feed, NotAFeed> {
    let mut repairs = Vec::new();
    let mut text = decode::decode(bytes, context.content_type(), &mut repairs);
    let notes = Notes { repairs: &mut repairs, trace: &mut *trace };
    let mut feed = match text.trim_start().chars().next() {
        None => return Err(NotAFeed::Empty),
        Some('{' | '[') => formats::read_json(&text, context.received_at, notes)?,
        Some(c)
            if c != '<'
                && let Some(text) = json::jsonp_argument(&text) =>
        {
            formats::read_json(text, context.received_at, notes)?
        }
        Some(_) => match read_markup(&text, context, notes) {
            Ok(feed) => feed,
            Err(not_a_feed) => {
                let notes = Notes { repairs: &mut repairs, trace: &mut *trace };
                if let Some(inside) = escaped_document(&text) {
                    text = Cow::Owned(inside);
                    read_markup(&text, context, notes)?
                } else {
                    let json = json::behind_other_output(&text).ok_or(not_a_feed)?;
                    formats::read_json(json, context.received_at, notes)?
                }
            }
        },
    };
    trace.set_text(&text);
    feed.repairs = repairs;
    Ok(feed)
}

/// Returns the sitemaps that an index lists, in its order; none for another document.
pub fn listed_sitemaps(bytes: &[u8], context: &Context) -> Vec<ListedSitemap> {
    let mut repairs = Vec::new();
    let text = decode::decode(bytes, context.content_type(), &mut repairs);
    let tidy = tree::tidy(Cow::Borrowed(&*text), &mut repairs);
    let tree = tree::build(&tidy, memory_bound::max_nodes(text.len()), &mut repairs);
    formats::read_sitemap_index(&tree, &context.base())
}

/// Returns the document that is the text of a `string` element, as services of ASP.NET write it.
fn escaped_document(text: &str) -> Option<String> {
    let (before, rest) = text.split_once("<string")?;
    let (_, rest) = rest.split_once('>')?;
    let (inside, _) = rest.rsplit_once("</string")?;
    let is_alone = before.trim().is_empty() || before.trim_start().starts_with("<?xml");
    let is_escaped = is_alone && before.len() < 200 && inside.trim_start().starts_with("&lt;");
    is_escaped.then(|| quick_xml::escape::unescape(inside).ok().map(Cow::into_owned))?
}

fn read_markup(text: &str, context: &Context, mut notes: Notes<'_>) -> Result<Feed, NotAFeed> {
    let url = context.base();
    let before = notes.repairs.len();
    let cropped = crop::crop(text, context.received_at);
    let read = cropped.as_ref().map_or(text, |cropped| cropped.text.as_str());
    let nodes = memory_bound::max_nodes(text.len());
    match read_tree(read, nodes, &url, notes.reborrow()) {
        Ok(mut feed) => {
            if let Some(cropped) = cropped {
                let repairs = notes.repairs[before..].iter_mut();
                let bytes = repairs.filter_map(|repair| repair.byte.as_mut());
                let bytes = bytes.chain(notes.trace.offsets_mut());
                bytes.for_each(|byte| *byte = cropped.original(*byte));
                feed.gap = cropped.gap;
                notes.repairs.push(cropped.repair);
            }
            Ok(feed)
        }
        Err(not_a_feed) => {
            // Repairs of the XML reading do not apply to a page, which is read as HTML.
            notes.repairs.truncate(before);
            formats::read_page(text, context, notes).ok_or(not_a_feed)
        }
    }
}

/// Reads a feed from a tree of at most so many nodes.
fn read_tree(
    text: &str,
    max_nodes: usize,
    url: &Url,
    mut notes: Notes<'_>,
) -> Result<Feed, NotAFeed> {
    let mut tidy = Cow::Borrowed(text);
    let mut after_tidy = notes.repairs.len();
    let tree = match tree::build_sound(text, max_nodes, notes.repairs) {
        Some(tree) => tree,
        None => {
            tidy = tree::tidy(tidy, notes.repairs);
            after_tidy = notes.repairs.len();
            tree::build(&tidy, max_nodes, notes.repairs)
        }
    };
    let bases = bases::Bases { url, known: &bases::KnownBases::default() };
    let feed = formats::read(&tree, bases, notes.reborrow())?;
    // Offsets are reported in the text before `tidy` changed it.
    let offsets = tree::OriginalOffsets::new(text, &tidy);
    let repairs = notes.repairs[after_tidy..].iter_mut();
    let bytes = repairs.filter_map(|repair| repair.byte.as_mut());
    bytes.chain(notes.trace.offsets_mut()).for_each(|byte| *byte = offsets.original(*byte));
    Ok(feed)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::model::Text;
    use crate::repair::RepairCode;

    fn context() -> Context {
        Context::new(Url::parse("https://tides.test/feed").unwrap())
    }

    /// Fragments of documents, valid and malformed, that the property tests combine.
    #[rustfmt::skip]
    const PIECES: [&str; 52] = [
        "<?xml version='1.0' encoding='koi8-r'?>", "<rss version='2.0'>", "<channel>", "<item>",
        "<feed xmlns='http://www.w3.org/2005/Atom' xml:base='/a/'>", "<entry xml:lang=''>",
        "<title>", "</title>", "<title type='xhtml'>", "<link>", "</link>", "<link href='x' rel=self/>",
        "<description>", "</description>", "<content type='xhtml'>", "<content type='a/b' mode='base64'>",
        "</content>", "<div>", "</div>", "<p title=\"", "<b>", "</b>", "<br>", "</item>", "</entry>",
        "</channel>", "</rss>", "</feed>", "<![CDATA[", "]]>", "<!--", "-->", "<", ">", "&", ";",
        "&eacute;", "&#xd83d;", "&#0;", "\"", "'", "=", "é\u{a0}»", "Ã©", " ", "\r\n", "\u{0}",
        "<pubDate>31 Feb 2004 24:61</pubDate>", "<guid>x</guid>", "<author>a@b（山）</author>",
        "<media:group><itunes:image href='javascript:x'/>", "<x:y xmlns:x='urn:x' x:z='1'>",
    ];

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..512)) {
            let _ = parse(&bytes, &context());
        }

        #[test]
        fn any_document_is_read_or_refused(at in prop::collection::vec(0..PIECES.len(), 0..64)) {
            let text: String = at.into_iter().map(|at| PIECES[at]).collect();
            let _ = parse(text.as_bytes(), &context());
        }

        #[test]
        fn a_feed_that_breaks_off_keeps_what_came_whole(length in 0..1200_usize) {
            let items: String = (0..10)
                .map(|n| format!("<item><title>Tide {n}</title><guid>urn:x:{n}</guid></item>\n"))
                .collect();
            let whole = format!("<rss><channel><title>Tides</title>{items}</channel></rss>");
            let broken = &whole[..length.min(whole.len())];
            let came_whole = broken.matches("</item>").count();
            let found = parse(broken.as_bytes(), &context()).map_or(0, |feed| feed.entries.len());
            prop_assert!(found >= came_whole, "{found} of {came_whole}");
        }
    }

    #[test]
    fn hostile_documents_do_no_harm() {
        let many = |piece: &str| piece.repeat(20_000);
        let cases = [
            many("<item>"),
            many("<media:group>"),
            many("<a b=\""),
            many("<![CDATA[<"),
            many("<!--<"),
            many("</a>"),
            many("&#x"),
            many("<a:b xmlns:a='"),
            format!("<rss><channel><item><title>{}", many("<b>")),
            format!("<rss {}>", many("a='b' ")),
            format!("<feed>{}", many("<entry/>")),
            format!("<!DOCTYPE a [<!ENTITY e '{}'>]><a>{}", "&e;".repeat(1_000), many("&e;")),
            format!("<!DOCTYPE a [{}", many("<!ENTITY e '<")),
        ];
        for text in cases {
            let _ = parse(text.as_bytes(), &context());
        }
    }

    #[test]
    fn what_is_said_once_is_not_said_a_million_times() {
        let long = "x/".repeat(10_000);
        let entries = "<entry xml:lang='l'><link href='y'/><n:z n:w=''/></entry>".repeat(100);
        let texts = [
            format!("<feed xml:base='{long}'>{entries}</feed>"),
            format!("<feed xml:lang='{long}'>{}</feed>", entries.replace(" xml:lang='l'", "")),
            format!("<feed xmlns:n='{long}'>{entries}</feed>"),
            format!("<a xmlns:n='u'>{}{entries}", "<b xml:base='c/'>".repeat(200)),
        ];
        for text in texts {
            let feed = parse(text.as_bytes(), &context()).unwrap();
            let entry = format!("{:?}", feed.entries[50]);
            assert!(entry.len() < 3_000, "{entry}");
        }
    }

    #[test]
    fn only_so_many_entries_are_read() {
        let text = format!("<feed>{}</feed>", "<entry/>".repeat(MAX_ENTRIES + 7));
        let feed = parse(text.as_bytes(), &context()).unwrap();
        assert_eq!(feed.entries.len(), MAX_ENTRIES);
        assert!(feed.repairs.iter().any(|repair| repair.code == RepairCode::TooManyEntries));
    }

    #[test]
    fn what_is_no_feed_says_what_it_is() {
        #[rustfmt::skip]
        let cases = [
            ("",                                   NotAFeed::Empty),
            (" \r\n",                              NotAFeed::Empty),
            ("<!doctype html><html><body/></html>", NotAFeed::Other("an HTML page")),
            ("<opml version='2.0'/>",              NotAFeed::Other("an OPML outline")),
            ("<x/>",                               NotAFeed::Other("XML of another kind")),
            ("tides",                              NotAFeed::Other("text")),
            ("{\"a\": 1}",                         NotAFeed::Other("JSON of another kind")),
            ("{\"a\": ",                           NotAFeed::Other("broken JSON")),
            ("{\"items\": []}",                    NotAFeed::Other("JSON of another kind")),
            ("{\"items\": [{\"sku\": 7}]}",          NotAFeed::OTHER_LIST),
        ];
        for (text, want) in cases {
            assert_eq!(parse(text.as_bytes(), &context()), Err(want), "{text}");
        }
        let feed = parse(b"<rss><channel><title>Tides", &context()).unwrap();
        assert_eq!(feed.title, Some(Text::plain("Tides")));
    }
}
