//! The feed formats, and their detection: by the contents of the document and never by its media
//! type, which is often wrong (rule P50).

mod atom;
mod cdf;
mod elements;
#[cfg(feature = "html")]
mod hfeed;
mod jsonfeed;
mod outline;
#[cfg(feature = "html")]
mod page_reading;
#[cfg(feature = "html")]
mod pages;
mod redirect;
mod rss;
#[cfg(feature = "html")]
mod schema_org;
mod sitemap;
#[cfg(test)]
mod tests;

pub(super) use jsonfeed::read as read_json;
#[cfg(feature = "html")]
pub(super) use jsonfeed::read_items as read_mapped_items;
#[cfg(feature = "html")]
pub(super) use pages::{consider as consider_page, read as read_page};
pub use sitemap::ListedSitemap;
pub(super) use sitemap::read_index as read_sitemap_index;

use super::bases::Bases;
use super::modules::{self, ElementReader};
use super::target::{FeedOrEntry, Target};
use super::trace::SourceTrace;
use super::tree::{Tree, XmlElement};
use super::vocabulary::{ATOM, ATOM03, RSS, Vocabulary, XHTML};
use super::{MAX_ENTRIES, NotAFeed, Notes};
use crate::model::{Entry, Feed, FeedFormat};
use crate::repair::{Repair, RepairCode};

/// Returns the reader for elements of a vocabulary: a format, if it belongs to one, otherwise a
/// module. `None` if all its elements are kept as extensions.
fn reader_of(vocabulary: &'static Vocabulary) -> Option<ElementReader> {
    let is = |known: &'static Vocabulary| std::ptr::eq(known, vocabulary);
    if is(&ATOM) || is(&ATOM03) {
        return Some(elements::read_element);
    }
    if is(&RSS) {
        return Some(rss::read_hints);
    }
    if is(&XHTML) {
        return Some(read_xhtml);
    }
    modules::reader_of(vocabulary)
}

/// Reads an element of a vocabulary other than the format's own.
fn read_foreign(element: XmlElement<'_>, target: &mut Target<'_>) {
    target.read_or_keep(element, |element, target| {
        let reader = element.namespace().vocabulary().and_then(reader_of);
        reader.is_some_and(|read| read(element, target))
    });
}

/// Reads a `body` among the elements of an entry as its content. Returns whether it was one.
fn read_xhtml(element: XmlElement<'_>, target: &mut Target<'_>) -> bool {
    if !(element.named("body") || element.named("div")) {
        return false;
    }
    let content = elements::body(element, target);
    target.set_content(content)
}

/// The state of reading one document: its base addresses and the findings so far.
#[derive(Debug)]
struct Reading<'r> {
    bases: Bases<'r>,
    repairs: &'r mut Vec<Repair>,
    trace: &'r mut SourceTrace,
}

impl Reading<'_> {
    /// Returns a feed with the language and the base that an element has.
    fn feed_at(&self, element: XmlElement<'_>, format: FeedFormat) -> Feed {
        Feed { format, lang: lang_of(element), base: self.base_of(element), ..Feed::default() }
    }

    /// Returns an entry with the language and the base that an element has.
    fn entry_at(&self, element: XmlElement<'_>) -> Entry {
        Entry { lang: lang_of(element), base: self.base_of(element), ..Entry::default() }
    }

    fn base_of(&self, element: XmlElement<'_>) -> Option<String> {
        self.bases.base(element).map(String::from)
    }

    /// Returns a target for reading elements into a feed or an entry.
    fn target<'h>(&'h mut self, object: FeedOrEntry<'h>) -> Target<'h> {
        Target::new(object, self.bases, self.repairs, self.trace)
    }
}

fn lang_of(element: XmlElement<'_>) -> Option<String> {
    element.lang().map(str::to_owned)
}

/// Without the feature `html`, no feed is read from a page.
#[cfg(not(feature = "html"))]
pub(super) fn read_page(_: &str, _: &crate::context::Context, _: Notes<'_>) -> Option<Feed> {
    None
}

/// Without the feature `html`, no page is considered.
#[cfg(not(feature = "html"))]
pub(super) fn consider_page(
    _: &str,
    _: &crate::context::Context,
) -> Vec<(FeedFormat, Result<usize, String>)> {
    Vec::new()
}

/// Reads the feed in a tree, at whatever depth it begins.
pub(super) fn read(tree: &Tree<'_>, bases: Bases<'_>, notes: Notes<'_>) -> Result<Feed, NotAFeed> {
    let mut reading = Reading { bases, repairs: notes.repairs, trace: notes.trace };
    let document = tree.document();
    let mut page = false;
    let mut loose = None;
    for element in document.descendants() {
        let name = element.lower_name();
        match name.as_ref() {
            "rss" | "rdf" => return Ok(rss::read(tree, element, &mut reading)),
            "feed" => return Ok(atom::read(tree, element, &mut reading)),
            "channel" if cdf::is_channel(element) => return Ok(cdf::read(element, &mut reading)),
            "channel" => return Ok(rss::read(tree, element, &mut reading)),
            "redirect" | "newlocation" if redirect::is(element) => {
                return Ok(redirect::read(element));
            }
            "urlset" if sitemap::is(element) => return Ok(sitemap::read(element, &mut reading)),
            "html" => page = true,
            "opml" => return Err(NotAFeed::Other("an OPML outline")),
            "sitemapindex" => return Err(NotAFeed::SITEMAP_INDEX),
            "item" | "entry" if loose.is_none() && !page => loose = Some(element),
            _ => {}
        }
    }
    match loose {
        Some(entry) if entry.named("entry") => Ok(atom::read(tree, document, &mut reading)),
        Some(_) => Ok(rss::read(tree, document, &mut reading)),
        None if page => Err(NotAFeed::Other("an HTML page")),
        None if document.has_elements() => Err(NotAFeed::Other("XML of another kind")),
        None => Err(NotAFeed::Other("text")),
    }
}

/// Returns the items of a document, at any depth, except items nested in other items. An item that
/// is cut off by the end of the document is left out, unless it is the only one. A document with too
/// many items was shortened before its tree was built; where its items are not where they belong, the
/// first ones are read.
fn items<'t>(
    tree: &'t Tree<'t>,
    is_item: impl Fn(XmlElement<'t>) -> bool,
    repairs: &mut Vec<Repair>,
) -> Vec<XmlElement<'t>> {
    let mut found = tree.document().outermost(is_item, MAX_ENTRIES + 1);
    if found.len() > MAX_ENTRIES {
        found.truncate(MAX_ENTRIES);
        report_too_many(repairs);
    }
    if found.len() > 1 && tree.cut().is_some() && found.last().copied() == tree.cut() {
        found.pop();
        repairs.push(Repair::new(RepairCode::CutEntry, "the last entry is incomplete"));
    }
    found
}

fn report_too_many(repairs: &mut Vec<Repair>) {
    let detail = format!("only the first {MAX_ENTRIES} are read");
    repairs.push(Repair::new(RepairCode::TooManyEntries, detail));
}
