//! Outlines: `rssCloud:item`, "exactly like RSS 2.0's item, with one exception, it can contain one
//! or more" of its kind (seed 000, "How rssCloud uses RSS").
//!
//! Atom has no nested entries, so each nested item becomes an entry with a reference to its parent.
//! The whole outline is also kept as an extension of its topmost item.

use super::report_too_many;
use crate::parse::MAX_ENTRIES;
use crate::parse::tree::XmlElement;
use crate::parse::vocabulary::RSSCLOUD;
use crate::repair::Repair;

/// Returns whether an element is an item nested in another item.
pub(super) fn is_below(element: XmlElement<'_>) -> bool {
    element.named("item") && element.is_in(&RSSCLOUD)
}

/// Returns items with their nested items, each after its parent and with the index of its parent.
pub(super) fn flattened<'t>(
    items: Vec<XmlElement<'t>>,
    repairs: &mut Vec<Repair>,
) -> Vec<(XmlElement<'t>, Option<usize>)> {
    let mut flat = Vec::with_capacity(items.len());
    let mut waiting: Vec<(XmlElement<'t>, Option<usize>)> =
        items.into_iter().rev().map(|item| (item, None)).collect();
    while let Some((item, under)) = waiting.pop() {
        if flat.len() == MAX_ENTRIES {
            report_too_many(repairs);
            break;
        }
        let place = flat.len();
        flat.push((item, under));
        let first = waiting.len();
        waiting.extend(item.elements().filter(|e| is_below(*e)).map(|below| (below, Some(place))));
        waiting[first..].reverse();
    }
    flat
}
