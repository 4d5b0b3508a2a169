//! Nested entries of an outline (seed 000, `rssCloud:item`): their ids, and the references to their
//! parents.
//!
//! Authors of outlines rarely give each line an id. A line without one is identified by its parent
//! and its content: equal lines under different parents are distinct, and no id depends on
//! siblings.

use std::collections::{BTreeSet, HashMap};

use crate::model::{Attribute, Element, Entry};

/// The threading extensions (RFC 4685).
const THREADS: (&str, &str) = ("http://purl.org/syndication/thread/1.0", "thr");

/// Adds a reference to the parent to each nested entry (RFC 4685), unless its source has one.
pub(super) fn add_references(entries: &mut [Entry]) {
    for at in 0..entries.len() {
        let Some(above) = entries[at].under.and_then(|above| entries.get(above)) else { continue };
        let attribute = |name: &str, value: &str| Attribute {
            name: name.to_owned(),
            value: value.to_owned(),
            ..Attribute::default()
        };
        let link = above.links.iter().find(|link| link.rel == "alternate");
        let href = link.map(|link| attribute("href", &link.href));
        let attributes = [attribute("ref", &above.id)].into_iter().chain(href).collect();
        let is_told =
            |element: &Element| element.namespace == THREADS.0 && element.name == "in-reply-to";
        if !entries[at].extensions.iter().any(is_told) {
            entries[at].extensions.push(Element {
                namespace: THREADS.0.to_owned(),
                prefix: THREADS.1.to_owned(),
                name: "in-reply-to".to_owned(),
                attributes,
                ..Element::default()
            });
        }
    }
}

/// Drops the entries that are `repeated`. Their children move to the identical entry that is kept.
pub(super) fn remove_repeated(entries: &mut Vec<Entry>, repeated: &BTreeSet<usize>) {
    if repeated.is_empty() {
        return;
    }
    let kept = (0..entries.len()).filter(|at| !repeated.contains(at));
    let by_id: HashMap<String, usize> =
        kept.enumerate().map(|(place, at)| (entries[at].id.clone(), place)).collect();
    let ids: Vec<String> = entries.iter().map(|entry| entry.id.clone()).collect();
    for entry in entries.iter_mut() {
        entry.under = entry.under.and_then(|above| by_id.get(ids.get(above)?).copied());
    }
    let mut at = 0..;
    entries.retain(|_| at.next().is_none_or(|at| !repeated.contains(&at)));
}

#[cfg(test)]
mod tests {
    use url::Url;

    use super::super::{entry_ids, run};
    use crate::context::Context;
    use crate::model::{Entry, Feed, KnownBy, Link, Text};

    fn entry(id: &str, link: &str, title: &str, under: Option<usize>) -> Entry {
        let rel = "alternate".to_owned();
        let link = Link { rel, href: link.to_owned(), ..Link::default() };
        let links = if link.href.is_empty() { Vec::new() } else { vec![link] };
        Entry {
            id: id.to_owned(),
            title: Some(Text::plain(title)),
            links,
            under,
            ..Entry::default()
        }
    }

    #[test]
    fn n02_lines_of_an_outline_need_no_ids_and_are_known_by_what_they_stand_under() {
        let entries = vec![
            entry("urn:x:1", "https://a.test/1", "one", None),
            entry("", "", "yes", Some(0)),
            entry("", "", "no", Some(0)),
            entry("urn:x:2", "https://a.test/2", "two", None),
            entry("", "", "yes", Some(3)),
            entry("", "", "yes", Some(3)),
        ];
        let context = Context::new(Url::parse("https://a.test/feed").unwrap());
        let feed = run(Feed { entries, ..Feed::default() }, &context);
        assert_eq!(feed.known_by, KnownBy::Id, "what has no id in an outline is not counted");
        let found: Vec<&str> = feed.entries.iter().map(|entry| entry.id.as_str()).collect();
        assert_eq!(found.len(), 5, "the same twice under one is one: {found:?}");
        assert!(found[1].starts_with("urn:x:1:") && found[4].starts_with("urn:x:2:"), "{found:?}");
        assert_ne!(found[1], found[2]);
        let by_link = entry_ids(&feed, KnownBy::Link);
        assert_eq!(
            (by_link[0].as_str(), by_link[3].as_str()),
            ("https://a.test/1", "https://a.test/2")
        );
        assert!(by_link[4].starts_with("https://a.test/2#"), "{by_link:?}");
    }

    #[test]
    fn what_stood_under_an_entry_that_is_dropped_stands_under_its_double() {
        let entries = vec![
            entry("urn:x:1", "", "one", None),
            entry("urn:x:1", "", "one", None),
            entry("urn:x:2", "", "two", Some(1)),
        ];
        let context = Context::new(Url::parse("https://a.test/feed").unwrap());
        let feed = run(Feed { entries, ..Feed::default() }, &context);
        assert_eq!(feed.entries.len(), 2);
        assert_eq!(feed.entries[1].under, Some(0));
    }
}
