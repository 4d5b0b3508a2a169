//! Identity: every entry gets a permanent id (rules N1, N2).
//!
//! | source | id |
//! | --- | --- |
//! | an id that is an IRI | that id, byte for byte |
//! | an id that is not an IRI | `urn:guid:` and the id, percent-encoded; a bare UUID as `urn:uuid:` |
//! | no id, but a link that no other entry has | the link |
//! | neither, but a parent in an outline | the parent's id and a hash of the content |
//! | neither | `tag:feedgate,2026:` and a hash of title, content and enclosure; flagged as generated |
//! | an id that several entries share | the oldest keeps it, the others get a hash appended |
//!
//! A feed whose ids are repeated or partly missing is identified by its links from then on
//! ([`KnownBy`]), because an id that several entries shared once identifies none of them later.
//!
//! The id of the source stays beside one that differs, so that readers that know it find the entry.
//!
//! An id depends only on the entry and the other entries of the document: not on the time, the
//! gateway, the address of the feed or the order of the document. Dates are never part of an id,
//! because they change.

mod distinct;
#[cfg(test)]
mod tests;

use std::collections::HashMap;

use hmac_sha256::Hash as Sha256;

use crate::context::Context;
use crate::double_encoding::repaired;
use crate::hex;
use crate::iri;
use crate::model::{Content, Entry, Feed, KnownBy, Link, Text, deleted_entry_id_mut};
use crate::own_elements;
use crate::repair::{Repair, RepairCode};

use super::outline;
use distinct::{content_key, make_distinct, marked};

/// The prefix of generated ids (RFC 4151). It names the program, not the gateway, so that entries
/// stay known when a gateway moves.
const GENERATED: &str = "tag:feedgate,2026:";

/// Assigns an id to the feed and to each entry.
pub(super) fn assign_ids(mut feed: Feed, context: &Context) -> Feed {
    feed.id = feed_id(&feed, context);
    for entry in &mut feed.entries {
        if let Some(source) = &mut entry.source {
            source.id = as_iri(&source.id).unwrap_or_default();
        }
    }
    // A deletion names the id that its entry has got.
    for id in feed.extensions.iter_mut().filter_map(deleted_entry_id_mut) {
        *id = as_iri(id).unwrap_or_default();
    }
    feed.known_by = context.known_by.max(known_by(&feed.entries));
    let stated: Vec<String> = feed.entries.iter().map(|entry| entry.id.trim().to_owned()).collect();
    if context.known_by == KnownBy::Link {
        feed.entries.iter_mut().for_each(|entry| entry.id.clear());
    }
    let without_id = feed.entries.iter().any(|entry| entry.id.trim().is_empty());
    let links = if without_id { link_counts(&feed.entries) } else { HashMap::new() };
    let mut repairs = assign_independent(&mut feed.entries, &links);
    let repeated = make_distinct(&mut feed.entries, &mut repairs);
    feed.gap = feed.gap.map(|gap| gap - repeated.range(..gap).count());
    let kept = stated.into_iter().enumerate().filter(|(at, _)| !repeated.contains(at));
    for (entry, (_, id)) in feed.entries.iter_mut().zip(kept) {
        keep_stated_id(entry, id);
    }
    outline::add_references(&mut feed.entries);
    feed.repairs.append(&mut repairs);
    feed
}

/// Keeps the id of the source beside another one. An entry that was written by this program has its
/// source's id already.
fn keep_stated_id(entry: &mut Entry, id: String) {
    let is_kept = own_elements::stated_value(&entry.extensions, "id").is_some();
    if !id.is_empty() && id != entry.id && !is_kept {
        entry.extensions.push(own_elements::stated("id", id));
    }
}

/// Returns the ids that the entries of a normalized feed would have if they were identified by
/// another property, in their order.
pub(super) fn entry_ids(feed: &Feed, by: KnownBy) -> Vec<String> {
    let mut entries = feed.entries.clone();
    if by == KnownBy::Link {
        entries.iter_mut().for_each(|entry| entry.id.clear());
    }
    let links = link_counts(&entries);
    assign_independent(&mut entries, &links);
    entries.into_iter().map(|entry| entry.id).collect()
}

/// Assigns each entry an id without regard to duplicates. Returns the repairs.
fn assign_independent(entries: &mut [Entry], links: &HashMap<String, usize>) -> Vec<Repair> {
    let mut repairs = Vec::new();
    for at in 0..entries.len() {
        let above = entries[at].under.filter(|above| *above < at);
        let above = above.map(|above| entries[above].id.as_str());
        let (id, repair) = entry_id(&entries[at], above, links);
        let is_generated =
            repair.as_ref().is_some_and(|repair| repair.code == RepairCode::IdGenerated);
        entries[at].id_generated |= is_generated || id.starts_with(GENERATED);
        entries[at].id = id;
        repairs.extend(repair);
    }
    repairs
}

/// The number and the share of missing or repeated ids above which ids are unreliable, as a minimum
/// and a divisor: "> 5 % (and ≥ 2) of a document's guids are empty or repeat" (rule N2).
const DOUBTFUL: (usize, usize) = (2, 20);

/// Returns the property that identifies the entries of a document best. A document without any ids
/// keeps `Id`, because ids may appear later at no loss. Entries in an outline rarely have ids, and
/// are not counted.
fn known_by(entries: &[Entry]) -> KnownBy {
    let mut ids: HashMap<&str, &Entry> = HashMap::with_capacity(entries.len());
    let mut doubtful = 0;
    for entry in entries.iter().filter(|entry| entry.under.is_none()) {
        let id = entry.id.trim();
        let is_doubtful = id.is_empty() || {
            // An identical entry is a repetition, not another entry.
            let first: &Entry = ids.entry(id).or_insert(entry);
            !std::ptr::eq(first, entry) && first != entry
        };
        doubtful += usize::from(is_doubtful);
    }
    if ids.is_empty() {
        return KnownBy::Id;
    }
    let (least, share) = DOUBTFUL;
    let is_doubtful = doubtful >= least && doubtful * share > entries.len();
    if is_doubtful { KnownBy::Link } else { KnownBy::Id }
}

/// Returns the id of the feed, or its address if it has none.
fn feed_id(feed: &Feed, context: &Context) -> String {
    let itself = feed.links.iter().find(|link| link.rel == "self").map(|link| link.href.as_str());
    let stated = as_iri(&feed.id).or_else(|| itself.and_then(as_iri));
    stated.unwrap_or_else(|| context.url.to_string())
}

/// Returns `id` as an IRI, wrapped if it is not one; `None` if it is empty.
fn as_iri(id: &str) -> Option<String> {
    let id = id.trim();
    if id.is_empty() {
        return None;
    }
    if iri::is_complete(id) {
        return Some(iri::encode(id).into_owned());
    }
    if is_uuid(id) {
        return Some(format!("urn:uuid:{id}"));
    }
    Some(iri::urn("guid", id))
}

fn is_uuid(text: &str) -> bool {
    let lengths = [8, 4, 4, 4, 12];
    text.len() == 36
        && text.split('-').map(str::len).eq(lengths)
        && text.chars().all(|c| c == '-' || c.is_ascii_hexdigit())
}

/// Returns the id of an entry without regard to the other entries. `above` is the id of its parent
/// in an outline.
fn entry_id(
    entry: &Entry,
    above: Option<&str>,
    links: &HashMap<String, usize>,
) -> (String, Option<Repair>) {
    let repair = |code, id: &str| Some(Repair::new(code, id).within(entry.trace_id));
    if let Some(id) = as_iri(&entry.id) {
        let wrapped = id != entry.id;
        return (id, if wrapped { repair(RepairCode::IdNotAnIri, &entry.id) } else { None });
    }
    if let Some(link) = permalink(entry).filter(|link| links.get(*link) == Some(&1)) {
        return (link.to_owned(), repair(RepairCode::IdFromLink, link));
    }
    let key = content_key(entry);
    let id = above.map_or_else(|| format!("{GENERATED}{key}"), |above| marked(above, &key[..16]));
    let generated = repair(RepairCode::IdGenerated, &id);
    (id, generated)
}

/// Returns the number of entries that have each link.
fn link_counts(entries: &[Entry]) -> HashMap<String, usize> {
    let mut counts = HashMap::new();
    for link in entries.iter().filter_map(permalink) {
        *counts.entry(link.to_owned()).or_insert(0) += 1;
    }
    counts
}

fn permalink(entry: &Entry) -> Option<&str> {
    first_link(&entry.links, "alternate")
}

fn enclosure(entry: &Entry) -> &str {
    first_link(&entry.links, "enclosure").unwrap_or_default()
}

fn first_link<'a>(links: &'a [Link], rel: &str) -> Option<&'a str> {
    let link = links.iter().find(|link| link.rel == rel);
    link.map(Link::compared_href).filter(|href| !href.is_empty())
}

fn title(entry: &Entry) -> String {
    entry.title.as_ref().map(Text::to_comparable).unwrap_or_default()
}

/// Returns the text of the content, or of the summary if there is no content.
fn body(entry: &Entry) -> String {
    match &entry.content {
        Some(Content::Text(text)) => text.to_comparable(),
        Some(Content::Media { value, .. } | Content::Xml { value, .. }) => {
            repaired(value).into_owned()
        }
        Some(Content::Src { href, .. }) => href.clone(),
        None => entry.summary.as_ref().map(Text::to_comparable).unwrap_or_default(),
    }
}

/// Returns 128 bits of the SHA-256 over the parts, in hex.
fn hash(parts: &[&str]) -> String {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update(part.as_bytes());
        hasher.update([0x1f]);
    }
    hex::encode(&hasher.finalize()[..16])
}
