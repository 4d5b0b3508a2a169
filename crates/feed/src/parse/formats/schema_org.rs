//! Pages that describe their entries in the vocabulary of schema.org, as JSON-LD or as microdata.
//!
//! What is an entry is decided in `listing.rs`, how it becomes one of Atom in `entry.rs`.

mod entry;
mod listing;
mod media;
mod text_size;
mod types;

use std::collections::HashSet;

use super::page_reading::{PageReading, link};
use crate::model::{Entry, Feed, FeedFormat};
use crate::parse::linked_data::{Graph, LinkedItemId, json_ld, microdata};
use crate::parse::memory_bound::mentions_json_ld;

use listing::{Listing, find_listing};

/// Returns whether the text of a page may contain JSON-LD.
pub(super) fn may_have_json_ld(text: &str) -> bool {
    mentions_json_ld(text.as_bytes())
}

/// Returns whether the text of a page may contain microdata of schema.org.
pub(super) fn may_have_microdata(text: &str) -> bool {
    text.contains("itemscope") && text.contains("schema.org")
}

/// Reads the entries that a page describes in JSON-LD; the reason if there are none.
pub(super) fn read_json_ld(reading: &mut PageReading<'_>) -> Result<Feed, String> {
    let page = reading.page;
    let (graph, is_broken) = json_ld::read(page, reading.repairs);
    if graph.top().is_empty() && is_broken {
        return Err("its JSON-LD cannot be read".to_owned());
    }
    read(reading, &graph, FeedFormat::JsonLd)
}

/// Reads the entries that a page describes in microdata; the reason if there are none.
pub(super) fn read_microdata(reading: &mut PageReading<'_>) -> Result<Feed, String> {
    let graph = microdata::read(reading.page, reading.base);
    read(reading, &graph, FeedFormat::Microdata)
}

fn read(
    reading: &mut PageReading<'_>,
    graph: &Graph<'_>,
    format: FeedFormat,
) -> Result<Feed, String> {
    let Listing { head, items } =
        find_listing(graph, &[reading.url.to_string(), reading.own_address.clone()])?;
    let is_alone = head.is_none() && items.len() == 1;
    let mut entries = reading.entries(
        &items,
        |_, item| entry::date(graph, item),
        |reading, item| reading.schema_org_entry(graph, item, is_alone),
    );
    if head.is_none() {
        drop_repeated(&mut entries);
    }
    if entries.is_empty() {
        return Err("what it lists has neither addresses nor texts".to_owned());
    }
    let scope = head.map_or(reading.root, |head| graph.node(head).tag);
    let mut feed = reading.feed(format, scope, entries);
    if let Some(head) = head {
        reading.describe_list(&mut feed, graph, head);
    }
    reading.describe_page(&mut feed);
    Ok(feed)
}

/// Drops articles at the address of an earlier one: several programs may describe the same article.
fn drop_repeated(entries: &mut Vec<Entry>) {
    let mut seen = HashSet::new();
    entries.retain(|entry| {
        let link = entry.links.iter().find(|link| link.rel == "alternate");
        link.is_none_or(|link| seen.insert(link.href.clone()))
    });
}

impl PageReading<'_> {
    /// Reads what a list says of itself.
    fn describe_list(&mut self, feed: &mut Feed, graph: &Graph<'_>, head: LinkedItemId) {
        let tag = graph.node(head).tag;
        let before = self.trace.snapshot(feed);
        feed.title = graph.text(head, &["name", "headline"]).map(|text| self.text_construct(text));
        let about = graph.text(head, &["description", "abstract"]);
        feed.subtitle = about.map(|text| self.text_construct(text));
        feed.authors = self.people(graph, head);
        feed.updated = entry::moment(graph, head, &["dateModified"]);
        feed.logo = self.address_in(graph, head, &["image", "logo", "thumbnailUrl"]);
        if let Some(lang) = entry::language(graph, head) {
            feed.lang = Some(lang);
        }
        let url = self.address_in(graph, head, &["url"]);
        feed.links.extend(url.map(|url| link(url, "alternate")));
        self.trace.record_changes(before, feed, tag);
    }
}

#[cfg(test)]
mod tests;
