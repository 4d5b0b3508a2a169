//! Items of items: `rssCloud:item`, "exactly like RSS 2.0's item, with one exception, it
//! can contain one or more" of its kind (seed 000, "How rssCloud uses RSS").
//!
//! Atom has no such thing, so each becomes an entry of its own that says which it stands
//! under. The outline is kept besides, on the item at its top.

use super::report_too_many;
use crate::parse::MAX_ENTRIES;
use crate::parse::tree::XmlElement;
use crate::parse::vocabulary::RSSCLOUD;
use crate::repair::Repair;

/// Whether an element is an item of an item, if it stands in one.
pub(super) fn is_below(element: XmlElement<'_>) -> bool {
    element.named("item") && element.is_in(&RSSCLOUD)
}

/// These items and those below them, each behind the one it stands under, whose place is
/// told.
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
