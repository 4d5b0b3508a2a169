//! The formats a feed can be written in: how they are told apart, by what is in the
//! document and never by its label (rule P50), and their own namespaces.

mod atom;
mod cdf;
mod hfeed;
mod jsonfeed;
mod outline;
mod redirect;
mod rss;

pub(super) use atom::ATOM03;
pub use hfeed::FORMAT as PAGE;
pub(super) use hfeed::read as read_page;
pub(super) use jsonfeed::read as read_json;

use super::bases::Bases;
use super::modules::{Home, Of};
use super::trace::Trace;
use super::tree::{El, Tree};
use super::vocabulary::{Vocabulary, keep};
use super::{MAX_ENTRIES, NotAFeed};
use crate::model::Feed;
use crate::repair::{Code, Repair};

/// The attributes of XML itself.
pub(super) static XML: Vocabulary =
    Vocabulary { prefix: "xml", uris: &["http://www.w3.org/XML/1998/namespace"], read: keep };

/// XHTML; a `body` among the elements of an entry is its content.
pub(super) static XHTML: Vocabulary =
    Vocabulary { prefix: "xhtml", uris: &["http://www.w3.org/1999/xhtml"], read: read_xhtml };

/// RDF.
static RDF: Vocabulary = Vocabulary {
    prefix: "rdf",
    uris: &["http://www.w3.org/1999/02/22-rdf-syntax-ns#"],
    read: keep,
};

/// The formats' own namespaces.
pub(super) static VOCABULARIES: &[&Vocabulary] =
    &[&XML, &XHTML, &RDF, &rss::RSS, &atom::ATOM, &atom::ATOM03];

/// The namespace for RSS elements that we keep: RSS itself has none.
pub(super) fn rss_vocabulary() -> &'static Vocabulary {
    &rss::RSS
}

/// The namespace for elements of Atom, of whatever version.
pub(super) fn atom_vocabulary() -> &'static Vocabulary {
    &atom::ATOM
}

/// Whether an element is in no namespace, or in one of those given to RSS.
pub(super) fn is_plain(element: El<'_>) -> bool {
    element.space().uri().is_empty() || element.of(&rss::RSS)
}

/// Whether an element is in Atom's namespace, of whatever version.
pub(super) fn is_atom(element: El<'_>) -> bool {
    element.of(&atom::ATOM) || element.of(&atom::ATOM03)
}

fn read_xhtml(element: El<'_>, home: &mut Home<'_>) -> bool {
    if !(element.named("body") || element.named("div")) {
        return false;
    }
    let content = rss::body(element, home);
    home.set_content(content)
}

/// What is read, and what is told about it.
#[derive(Debug)]
struct Reading<'r> {
    bases: Bases<'r>,
    repairs: &'r mut Vec<Repair>,
    trace: &'r mut Trace,
}

impl Reading<'_> {
    /// What a feed or an entry is read into.
    fn home<'h>(&'h mut self, of: Of<'h>) -> Home<'h> {
        Home { of, bases: self.bases, repairs: self.repairs, trace: self.trace }
    }
}

/// Reads the feed in a tree, wherever it is.
pub(super) fn read(
    tree: &Tree<'_>,
    bases: Bases<'_>,
    (repairs, trace): (&mut Vec<Repair>, &mut Trace),
) -> Result<Feed, NotAFeed> {
    let mut reading = Reading { bases, repairs, trace };
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
            "html" => page = true,
            "opml" => return Err(NotAFeed::Other("an OPML outline")),
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

/// The items of a document, wherever they lie, but not those inside other items. What
/// was cut off in the middle is left out, unless nothing else is there.
fn items<'t>(
    tree: &'t Tree<'t>,
    is_item: impl Fn(El<'t>) -> bool,
    repairs: &mut Vec<Repair>,
) -> Vec<El<'t>> {
    let mut found = tree.document().outermost(is_item, MAX_ENTRIES + 1);
    if found.len() > MAX_ENTRIES {
        found.truncate(MAX_ENTRIES);
        tell_too_many(repairs);
    }
    if found.len() > 1 && tree.cut().is_some() && found.last().copied() == tree.cut() {
        found.pop();
        repairs.push(Repair::new(Code::CutEntry, "the last entry is incomplete"));
    }
    found
}

fn tell_too_many(repairs: &mut Vec<Repair>) {
    let detail = format!("only the first {MAX_ENTRIES} are read");
    repairs.push(Repair::new(Code::TooManyEntries, detail));
}
