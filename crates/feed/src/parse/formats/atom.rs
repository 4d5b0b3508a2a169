//! Atom 1.0 (RFC 4287), Atom 0.3 and earlier drafts: the location of entries in a document. Their
//! elements are read by [`elements`].

use super::{Reading, elements, items};
use crate::model::{Feed, FeedFormat, TOMBSTONES};
use crate::parse::target::FeedOrEntry;
use crate::parse::tree::{Tree, XmlElement};
use crate::parse::vocabulary::ATOM03;

/// Reads a feed. `root` is the feed element, or the parent of the entries if there is none.
pub(super) fn read<'t>(
    tree: &'t Tree<'t>,
    root: XmlElement<'t>,
    reading: &mut Reading<'_>,
) -> Feed {
    let old = root.is_in(&ATOM03) || root.attr("version").is_some_and(|version| version == "0.3");
    let mut feed = Feed {
        format: if old { FeedFormat::Atom03 } else { FeedFormat::Atom10 },
        ..Feed::default()
    };
    if root.named("feed") {
        let mut target = reading.target(FeedOrEntry::Feed(&mut feed));
        elements::read_head(root, &mut target);
    }
    let own = |element: XmlElement<'_>| {
        element.is_atom() || element.is_rss() || element.namespace().uri() == root.namespace().uri()
    };
    let is_entry =
        |element: XmlElement<'_>| (element.named("entry") || element.named("item")) && own(element);
    let entries = items(tree, is_entry, reading.repairs);
    let taken_back = root.elements().filter(|child| is_tombstone(*child));
    let before =
        |gone: XmlElement<'_>| entries.partition_point(|entry| entry.number() < gone.number());
    feed.taken_back = taken_back.map(before).collect();
    feed.entries.reserve(entries.len());
    for element in entries {
        let mut entry = reading.entry_at(element);
        let mut target = reading.target(FeedOrEntry::Entry(&mut entry));
        target.begin(element);
        elements::read_children(element, root, &mut target);
        feed.entries.push(entry);
    }
    feed
}

/// Returns whether an element is a tombstone of an entry (RFC 6721).
fn is_tombstone(element: XmlElement<'_>) -> bool {
    element.namespace().uri() == TOMBSTONES
        && element.name() == "deleted-entry"
        && element.attr("ref").is_some()
}
