//! The page of a single entry in microformats2.
//!
//! Its entry is the only `h-entry` outside of other items. It is read if it states a name, a content or an
//! address: a class alone says nothing. An entry without an address of its own is found at that of the page,
//! so that its id stays the same when its text changes.

use super::super::page_reading::{PageReading, link};
use crate::model::{Feed, FeedFormat};
use crate::parse::microformats::{MicroformatItem, outermost};

/// The properties of which a single entry states at least one.
const STATED: [&str; 5] = ["name", "summary", "content", "url", "uid"];

/// Reads the only entry of a page; the reason if it has none.
pub(in crate::parse::formats) fn read(reading: &mut PageReading<'_>) -> Result<Feed, String> {
    let mut items = outermost(reading.root);
    items.retain(|item| item.is("h-entry"));
    let item = match items[..] {
        [item] if !item.is_classic => item,
        [_] => return Err("its hentry is that of a blog theme, which every page has".to_owned()),
        [] => return Err("it has no h-entry outside of other items".to_owned()),
        _ => return Err("it has several h-entry elements, most of which say nothing".to_owned()),
    };
    let properties = item.properties();
    let is_stated = properties.iter().any(|property| STATED.contains(&property.name));
    // An item that is a link has its name and its address, without a property.
    let is_link = matches!(item.tag.name(), "a" | "area") && item.tag.attr("href").is_some();
    if !is_stated && !is_link {
        return Err("its h-entry states no name, content or address".to_owned());
    }
    let entry = reading.entry(item).ok_or("its h-entry says nothing")?;
    let mut feed = reading.feed(FeedFormat::HEntry, item.tag, vec![entry]);
    reading.describe_page(&mut feed);
    give_address(&mut feed, reading, item);
    Ok(feed)
}

/// Gives the entry the address of the page, if it has no other.
fn give_address(feed: &mut Feed, reading: &mut PageReading<'_>, item: MicroformatItem<'_>) {
    let Some(entry) = feed.entries.first_mut() else { return };
    if !entry.links.iter().any(|link| link.rel == "alternate") {
        let before = reading.trace.snapshot(entry);
        entry.links.push(link(reading.own_address.clone(), "alternate"));
        reading.trace.record_changes(before, entry, item.tag);
    }
}
