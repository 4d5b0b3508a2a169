//! Linked data in a page: items with types and properties, as JSON-LD and microdata state them.
//!
//! Both are read into one graph, so that what a vocabulary says is read once. Names of schema.org are written
//! without its address, whatever way the page writes them. Nothing recurses over a page, and the graph has a
//! limited number of items and values.

pub(super) mod json_ld;
pub(super) mod microdata;

use std::collections::HashMap;

use super::html::HtmlElement;

/// The maximum number of items of a graph: several for each entry that is read.
const NODES: usize = 10 * super::MAX_ENTRIES;
/// The maximum number of values in a graph.
const VALUES: usize = 4 * NODES;

/// The number of an item in its graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct LinkedItemId(usize);

/// An item.
#[derive(Debug)]
pub(super) struct LinkedItem<'p> {
    /// The types, such as `BlogPosting`.
    pub(super) types: Vec<String>,
    /// The address or name that the item has in the graph, as written.
    pub(super) id: Option<String>,
    /// The properties in the order of the page; a property with several values occurs several times.
    pub(super) properties: Vec<(String, PropertyValue)>,
    /// The element that holds the item.
    pub(super) tag: HtmlElement<'p>,
}

/// The value of a property.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PropertyValue {
    /// A text, a number or an address; never empty.
    Text(String),
    /// A text with its markup; never empty.
    Markup(String),
    /// An item, which may only refer to another one by its id.
    Node(LinkedItemId),
}

/// The linked data of one page.
#[derive(Debug, Default)]
pub(super) struct Graph<'p> {
    nodes: Vec<LinkedItem<'p>>,
    /// The items that are not values of properties, in the order of the page.
    top: Vec<LinkedItemId>,
    /// The items that others may refer to.
    by_id: HashMap<String, LinkedItemId>,
    values: usize,
}

impl PropertyValue {
    /// Returns the text of a value that is not an item.
    pub(super) fn text(&self) -> Option<&str> {
        match self {
            PropertyValue::Text(text) | PropertyValue::Markup(text) => Some(text),
            PropertyValue::Node(_) => None,
        }
    }
}

impl<'p> Graph<'p> {
    /// Returns the items that are not values of properties.
    pub(super) fn top(&self) -> &[LinkedItemId] {
        &self.top
    }

    /// Returns the number of the item that an item refers to, or its own.
    pub(super) fn resolve(&self, id: LinkedItemId) -> LinkedItemId {
        let node = &self.nodes[id.0];
        let is_reference = node.properties.is_empty();
        let target = node.id.as_ref().filter(|_| is_reference).and_then(|id| self.by_id.get(id));
        target.copied().unwrap_or(id)
    }

    /// Returns the number that all items with the id of this one share.
    pub(super) fn identity(&self, id: LinkedItemId) -> LinkedItemId {
        let known = self.nodes[id.0].id.as_ref().and_then(|id| self.by_id.get(id));
        known.copied().unwrap_or(id)
    }

    /// Returns an item, or the one that it refers to.
    pub(super) fn node(&self, id: LinkedItemId) -> &LinkedItem<'p> {
        &self.nodes[self.resolve(id).0]
    }

    /// Returns the values of a property; of an item that does not state it, those of another one with its id.
    pub(super) fn values<'g>(
        &'g self,
        id: LinkedItemId,
        name: &str,
    ) -> impl Iterator<Item = &'g PropertyValue> + use<'g, 'p> {
        let states = |node: &&LinkedItem<'p>| node.properties.iter().any(|(held, _)| held == name);
        let node = &self.nodes[id.0];
        let other = || self.by_id.get(node.id.as_ref()?).map(|other| &self.nodes[other.0]);
        let stated = Some(node).filter(states).or_else(other);
        let name = name.to_owned();
        let properties = stated.into_iter().flat_map(|node| &node.properties);
        properties.filter(move |(held, _)| *held == name).map(|(_, value)| value)
    }

    /// Returns the first text among the values of these properties.
    pub(super) fn text(&self, id: LinkedItemId, names: &[&str]) -> Option<&str> {
        names.iter().find_map(|name| self.values(id, name).find_map(PropertyValue::text))
    }

    /// Adds an item; `None` if there are too many.
    fn add(&mut self, tag: HtmlElement<'p>) -> Option<LinkedItemId> {
        if self.nodes.len() >= NODES {
            return None;
        }
        let (types, properties) = (Vec::new(), Vec::new());
        self.nodes.push(LinkedItem { types, id: None, properties, tag });
        Some(LinkedItemId(self.nodes.len() - 1))
    }

    /// Adds a value of a property, unless there are too many.
    fn add_value(&mut self, id: LinkedItemId, name: &str, value: PropertyValue) {
        if self.values < VALUES {
            self.values += 1;
            self.nodes[id.0].properties.push((own_name(name).to_owned(), value));
        }
    }

    fn add_type(&mut self, id: LinkedItemId, name: &str) {
        let types = &mut self.nodes[id.0].types;
        if types.len() < TYPES {
            types.push(own_name(name).to_owned());
        }
    }

    /// Makes the items known by their ids, once all of them are complete: of several with the same id, the one
    /// that says the most.
    fn index(&mut self) {
        for (at, node) in
            self.nodes.iter().enumerate().filter(|(_, node)| !node.properties.is_empty())
        {
            let Some(id) = &node.id else { continue };
            let held = self.by_id.entry(id.clone()).or_insert(LinkedItemId(at));
            if self.nodes[held.0].properties.len() < node.properties.len() {
                *held = LinkedItemId(at);
            }
        }
    }
}

/// The maximum number of types of an item.
const TYPES: usize = 16;

/// The ways to write the beginning of a name of schema.org.
const BEGINNINGS: [&str; 5] = [
    "https://schema.org/",
    "http://schema.org/",
    "https://www.schema.org/",
    "http://www.schema.org/",
    "schema:",
];

/// Returns the name of a type or property without the address of schema.org.
fn own_name(name: &str) -> &str {
    let name = name.trim();
    BEGINNINGS.iter().find_map(|beginning| name.strip_prefix(beginning)).unwrap_or(name)
}
