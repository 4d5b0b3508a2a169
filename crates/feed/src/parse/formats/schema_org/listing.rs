//! Which of the items that a page describes are its entries.
//!
//! Nearly every page describes something: itself, its owner, its place in the site. So a page has entries in
//! one of these cases, in this order:
//!
//! * It is about a list of entries: a blog, a collection, a podcast, or a list that the page names as what
//!   it is about.
//! * It is an entry, or has several. If one of several is at the address of the page, the others are
//!   mentioned beside it.
//! * It has a list of anything with addresses, and is not about something else, such as a product.

use std::collections::HashSet;

use super::super::page_reading::without_fragment;
use super::types::{Role, role};
use crate::parse::MAX_ENTRIES;
use crate::parse::linked_data::{Graph, LinkedItemId, PropertyValue};

/// The properties that hold what is in a list.
const MEMBERS: [&str; 8] = [
    "blogPost",
    "blogPosts",
    "liveBlogUpdate",
    "itemListElement",
    "episode",
    "episodes",
    "dataFeedElement",
    "hasPart",
];
/// The properties of a list that hold items of whatever type.
const OF_ANYTHING: [&str; 2] = ["itemListElement", "dataFeedElement"];
/// The property of a page that holds what it is about.
const SUBJECT: &str = "mainEntity";
/// The maximum nesting of lists, as of a podcast, its seasons and their episodes.
const DEPTH: usize = 6;
/// How many values in lists are visited until a list with entries is found, because many lists may refer to
/// the same one.
const VISITS: usize = 100 * MAX_ENTRIES;
/// The maximum number of types that an explanation names.
const MOST_NAMED: usize = 5;

/// Something that may become an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Item<'g> {
    /// What is said of it.
    pub(super) node: Option<LinkedItemId>,
    /// Its place in a list, which may name it, too.
    pub(super) place: Option<LinkedItemId>,
    /// Its address, if nothing else is said.
    pub(super) address: Option<&'g str>,
}

/// The items of a page that may become entries, and what contains them.
#[derive(Debug)]
pub(super) struct Listing<'g> {
    pub(super) head: Option<LinkedItemId>,
    pub(super) items: Vec<Item<'g>>,
}

/// Finds the entries of a page with these addresses; the reason if it has none.
pub(super) fn find_listing<'g>(
    graph: &'g Graph<'_>,
    own_addresses: &[String],
) -> Result<Listing<'g>, String> {
    let subjects = subjects(graph);
    let is = |id: &LinkedItemId, role: Role| role_of(graph, *id) == role;
    let lists = subjects.iter().filter(|(id, is_main)| {
        is(id, Role::List) || *is_main && is(id, Role::PlainList) || is_live(graph, *id)
    });
    let mut visits = VISITS;
    let mut filled = |id| Some(members(graph, id, &mut visits)).filter(|it| !it.items.is_empty());
    if let Some(listing) = lists.map(|(id, _)| *id).find_map(&mut filled) {
        return Ok(listing);
    }
    let entries: Vec<LinkedItemId> =
        subjects.iter().map(|(id, _)| *id).filter(|id| is(id, Role::Entry)).collect();
    if !entries.is_empty() {
        let of_page = entries.iter().copied().filter(|id| is_at(graph, *id, own_addresses));
        let of_page: Vec<LinkedItemId> = of_page.collect();
        let chosen = if of_page.is_empty() { entries } else { of_page };
        let items =
            chosen.into_iter().map(|id| Item { node: Some(id), place: None, address: None });
        return Ok(Listing { head: None, items: items.collect() });
    }
    if !subjects.iter().any(|(id, _)| is(id, Role::Subject)) {
        let lists = subjects.iter().filter(|(id, _)| is(id, Role::PlainList));
        if let Some(listing) = lists.map(|(id, _)| *id).find_map(&mut filled) {
            return Ok(listing);
        }
    }
    Err(explanation(graph, &subjects))
}

/// Returns the items that a page describes, and what it is about according to itself. The second value
/// tells whether the page says so.
fn subjects(graph: &Graph<'_>) -> Vec<(LinkedItemId, bool)> {
    let (mut found, mut seen, mut stating) = (Vec::new(), HashSet::new(), HashSet::new());
    let main_of = move |id: LinkedItemId| {
        graph.values(id, SUBJECT).filter_map(move |value| match value {
            PropertyValue::Node(id) => Some(graph.resolve(*id)),
            PropertyValue::Text(_) | PropertyValue::Markup(_) => None,
        })
    };
    let is_around = |id: LinkedItemId| matches!(role_of(graph, id), Role::Page | Role::List);
    let top = move || graph.top().iter().map(move |id| graph.resolve(*id));
    let around = top().filter(|id| is_around(*id) && stating.insert(graph.stating(*id, SUBJECT)));
    for id in around.flat_map(main_of) {
        if seen.insert(graph.identity(id)) {
            found.push((id, true));
        }
    }
    for id in top() {
        if seen.insert(graph.identity(id)) {
            found.push((id, false));
        }
    }
    found
}

fn role_of(graph: &Graph<'_>, id: LinkedItemId) -> Role {
    role(&graph.node(id).types)
}

/// Returns whether an entry is one whose updates are entries.
fn is_live(graph: &Graph<'_>, id: LinkedItemId) -> bool {
    graph.values(id, "liveBlogUpdate").next().is_some()
}

/// Returns whether an item is at one of these addresses.
fn is_at(graph: &Graph<'_>, id: LinkedItemId, addresses: &[String]) -> bool {
    let page = graph.first_values(id, "mainEntityOfPage").filter_map(|value| match value {
        PropertyValue::Node(page) => graph.short_id(*page).or(graph.short_text(*page, &["url"])),
        other => other.short_text(),
    });
    let stated = page.chain(graph.short_text(id, &["url"])).chain(graph.short_id(id));
    let mut stated = stated.map(without_fragment).filter(|address| !address.is_empty());
    stated.any(|stated| addresses.iter().any(|address| without_fragment(address) == stated))
}

/// Returns what is in a list, and in lists inside of it, with at most this many visits.
fn members<'g>(graph: &'g Graph<'_>, head: LinkedItemId, visits: &mut usize) -> Listing<'g> {
    let (mut items, mut seen) = (Vec::new(), HashSet::from([graph.identity(head)]));
    let mut open = vec![(head, 0)];
    while let Some((list, depth)) = open.pop() {
        let mut inner = Vec::new();
        let values = MEMBERS.iter().flat_map(|name| {
            let is_of_anything = OF_ANYTHING.contains(name);
            graph.values(list, name).map(move |value| (value, is_of_anything))
        });
        let main = graph.values(list, SUBJECT).map(|value| (value, false));
        for (value, is_of_anything) in values.chain(main) {
            if *visits == 0 {
                break;
            }
            *visits -= 1;
            match member(graph, value, is_of_anything, &mut seen) {
                Some(Member::Item(item)) => items.push(item),
                Some(Member::List(list)) if depth < DEPTH => inner.push((list, depth + 1)),
                Some(Member::List(_)) | None => {}
            }
        }
        open.extend(inner.into_iter().rev());
    }
    Listing { head: Some(head), items }
}

/// What a value in a list is.
enum Member<'g> {
    Item(Item<'g>),
    List(LinkedItemId),
}

fn member<'g>(
    graph: &'g Graph<'_>,
    value: &'g PropertyValue,
    is_of_anything: bool,
    seen: &mut HashSet<LinkedItemId>,
) -> Option<Member<'g>> {
    let is_address = |text: &&str| text.starts_with("https://") || text.starts_with("http://");
    let place = match value {
        PropertyValue::Node(id) if role_of(graph, *id) == Role::ListItem => {
            Some(graph.resolve(*id))
        }
        _ => None,
    };
    let inner = place.and_then(|place| graph.values(place, "item").next());
    let node = match inner.unwrap_or(value) {
        PropertyValue::Node(id) => graph.resolve(*id),
        other => {
            let address = other.text().filter(is_address)?;
            return Some(Member::Item(Item { node: None, place, address: Some(address) }));
        }
    };
    if !seen.insert(graph.identity(node)) {
        return None;
    }
    let item = Member::Item(Item {
        node: Some(node),
        place: place.filter(|at| *at != node),
        address: None,
    });
    match role_of(graph, node) {
        Role::Entry | Role::ListItem => Some(item),
        Role::List | Role::PlainList if has_members(graph, node) => Some(Member::List(node)),
        Role::Furniture if graph.node(node).types.is_empty() => Some(item),
        Role::Furniture => None,
        Role::List | Role::PlainList | Role::Page | Role::Subject => is_of_anything.then_some(item),
    }
}

fn has_members(graph: &Graph<'_>, id: LinkedItemId) -> bool {
    MEMBERS.iter().any(|name| graph.values(id, name).next().is_some())
}

/// Says what a page without entries describes.
fn explanation(graph: &Graph<'_>, subjects: &[(LinkedItemId, bool)]) -> String {
    let mut named: Vec<&str> = Vec::new();
    for name in subjects.iter().flat_map(|(id, _)| &graph.node(*id).types) {
        if named.len() <= MOST_NAMED && !named.contains(&name.as_str()) {
            named.push(name);
        }
    }
    let rest = if named.len() > MOST_NAMED { " and others" } else { "" };
    let named: Vec<&str> = named.into_iter().take(MOST_NAMED).collect();
    match named.is_empty() {
        true => "it describes nothing with a type".to_owned(),
        false => format!("it describes no entries, but {}{rest}", named.join(", ")),
    }
}
