//! HTML pages whose entries are marked up: each way to do so is a row of a table, in the order in which they
//! are tried.
//!
//! A page with a list of entries in microformats is a feed, whatever else it offers. All other markup
//! describes what is on the page, and is read only if the page advertises no feed, which would say more.

use super::page_reading::PageReading;
use super::{hfeed, schema_org};
use crate::context::Context;
use crate::link_header::{self, HeaderLink};
use crate::model::{Feed, FeedFormat};
use crate::parse::Notes;
use crate::parse::html::{ParsedHtml, feed_media_type};
use crate::parse::trace::SourceTrace;

/// A way to mark up entries in a page.
struct PageFormat {
    format: FeedFormat,
    /// Whether the text of a page may contain such entries: most pages are ruled out by this search,
    /// without parsing.
    may_be_in: fn(&str) -> bool,
    /// Reads the entries, or says in words for people why there are none.
    read: fn(&mut PageReading<'_>) -> Result<Feed, String>,
    /// Whether the page is left alone if it advertises a feed.
    yields_to_advertised: bool,
    /// What a page lacks that is ruled out by its text.
    lacks: &'static str,
}

/// The first that finds entries reads the page.
#[rustfmt::skip]
const FORMATS: [PageFormat; 4] = [
    PageFormat { format: FeedFormat::HFeed,     may_be_in: hfeed::may_be_in,               read: hfeed::read,                yields_to_advertised: false, lacks: "it has no microformats" },
    PageFormat { format: FeedFormat::HEntry,    may_be_in: hfeed::may_be_in,               read: hfeed::read_single,         yields_to_advertised: true,  lacks: "it has no microformats" },
    PageFormat { format: FeedFormat::JsonLd,    may_be_in: schema_org::may_have_json_ld,   read: schema_org::read_json_ld,   yields_to_advertised: true,  lacks: "it has no JSON-LD" },
    PageFormat { format: FeedFormat::Microdata, may_be_in: schema_org::may_have_microdata, read: schema_org::read_microdata, yields_to_advertised: true,  lacks: "it has no microdata of schema.org" },
];

/// Reads the feed in a page; `None` if the page is not a feed.
pub(in crate::parse) fn read(text: &str, context: &Context, notes: Notes<'_>) -> Option<Feed> {
    let mut formats = FORMATS.iter().filter(|format| (format.may_be_in)(text)).peekable();
    formats.peek()?;
    let mut page = ParsedHtml::read(text);
    let mut found = Vec::new();
    page.mend_texts(&mut found);
    let (url, received_at) = (context.base(), context.received_at);
    let base = page.base(&url);
    let advertised = advertised_feed(&page, context);
    let mended = found.len();
    let feed = formats.find_map(|format| {
        found.truncate(mended);
        let notes = Notes { repairs: &mut found, trace: &mut *notes.trace };
        let mut reading = PageReading::begin_page(&page, (&url, &base), received_at, notes)?;
        let mut feed = format.read_unless_advertised(&mut reading, advertised.as_deref()).ok()?;
        reading.mark_entry_of_page(&mut feed);
        Some(feed)
    })?;
    notes.repairs.append(&mut found);
    Some(feed)
}

/// Returns the number of entries that a page has in each format, or why it has none.
pub(in crate::parse) fn consider(
    text: &str,
    context: &Context,
) -> Vec<(FeedFormat, Result<usize, String>)> {
    let mut page = ParsedHtml::read(text);
    page.mend_texts(&mut Vec::new());
    let url = context.base();
    let base = page.base(&url);
    let advertised = advertised_feed(&page, context);
    let consider = |format: &PageFormat| {
        let (mut repairs, mut trace) = (Vec::new(), SourceTrace::default());
        let notes = Notes { repairs: &mut repairs, trace: &mut trace };
        let reading = PageReading::begin_page(&page, (&url, &base), None, notes);
        let entries = match reading.filter(|_| (format.may_be_in)(text)) {
            None => Err(format.lacks.to_owned()),
            Some(mut reading) => {
                let read = format.read_unless_advertised(&mut reading, advertised.as_deref());
                read.map(|feed| feed.entries.len())
            }
        };
        (format.format, entries)
    };
    FORMATS.iter().map(consider).collect()
}

/// Returns the address of the first feed that a page advertises in its `Link` headers or in itself, as written.
fn advertised_feed(page: &ParsedHtml, context: &Context) -> Option<String> {
    let values = context.headers.iter().filter(|(name, _)| name == "link");
    let mut links = link_header::read(values.map(|(_, value)| value.as_str())).into_iter();
    let is_feed = |link: &HeaderLink| link.mime.as_deref().and_then(feed_media_type).is_some();
    let in_headers = links.find(|link| link.is("alternate") && is_feed(link));
    let in_headers = in_headers.map(|link| link.target);
    in_headers.or_else(|| page.advertised_feed().map(str::to_owned))
}

impl PageFormat {
    fn read_unless_advertised(
        &self,
        reading: &mut PageReading<'_>,
        advertised: Option<&str>,
    ) -> Result<Feed, String> {
        let feed = (self.read)(reading)?;
        match advertised.filter(|_| self.yields_to_advertised) {
            None => Ok(feed),
            Some(href) => {
                let entries = feed.entries.len();
                let (is, it) =
                    if entries == 1 { ("entry is", "it") } else { ("entries are", "them") };
                Err(format!(
                    "its {entries} {is} not taken, because the page advertises a feed that has {it}: {href}"
                ))
            }
        }
    }
}
