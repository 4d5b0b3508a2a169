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
    /// The indices of the properties, ordered by name.
    by_name: Vec<usize>,
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

    /// Returns the text of a value, if it is as short as names and addresses are.
    pub(super) fn short_text(&self) -> Option<&str> {
        self.text().filter(is_short)
    }
}

/// Returns whether a text is as short as names and addresses are: many items may refer to it.
pub(super) fn is_short(text: &&str) -> bool {
    text.len() <= SHORT_BYTES
}

impl LinkedItem<'_> {
    /// Returns the indices of the properties with this name, in the order of the page.
    fn named(&self, name: &str) -> &[usize] {
        let name_at = |at: &usize| self.properties[*at].0.as_str();
        let begin = self.by_name.partition_point(|at| name_at(at) < name);
        let rest = &self.by_name[begin..];
        &rest[..rest.partition_point(|at| name_at(at) == name)]
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
        let node = &self.nodes[self.stating(id, name).0];
        node.named(name).iter().map(|at| &node.properties[*at].1)
    }

    /// Returns the number of the item whose values of a property an item has.
    pub(super) fn stating(&self, id: LinkedItemId, name: &str) -> LinkedItemId {
        let is_stated = !self.nodes[id.0].named(name).is_empty();
        if is_stated { id } else { self.identity(id) }
    }

    /// Returns the first values of a property of which one is needed.
    pub(super) fn first_values<'g>(
        &'g self,
        id: LinkedItemId,
        name: &str,
    ) -> impl Iterator<Item = &'g PropertyValue> + use<'g, 'p> {
        self.values(id, name).take(FIRST_VALUES)
    }

    /// Returns the first text among the values of these properties.
    pub(super) fn text(&self, id: LinkedItemId, names: &[&str]) -> Option<&str> {
        names.iter().find_map(|name| self.first_values(id, name).find_map(PropertyValue::text))
    }

    /// Returns the first text among the values of these properties that is short.
    pub(super) fn short_text(&self, id: LinkedItemId, names: &[&str]) -> Option<&str> {
        let find = |name: &&str| self.first_values(id, name).find_map(PropertyValue::short_text);
        names.iter().find_map(find)
    }

    /// Returns the id of an item, or of the one that it refers to, if it is short.
    pub(super) fn short_id(&self, id: LinkedItemId) -> Option<&str> {
        self.node(id).id.as_deref().filter(is_short)
    }

    /// Adds an item; `None` if there are too many.
    fn add(&mut self, tag: HtmlElement<'p>) -> Option<LinkedItemId> {
        if self.nodes.len() >= NODES {
            return None;
        }
        let (types, properties, by_name) = (Vec::new(), Vec::new(), Vec::new());
        self.nodes.push(LinkedItem { types, id: None, properties, by_name, tag });
        Some(LinkedItemId(self.nodes.len() - 1))
    }

    /// Adds a value of a property, unless there are too many.
    fn add_value(&mut self, id: LinkedItemId, name: &str, value: PropertyValue) {
        let name = own_name(name);
        if self.values < VALUES && name.len() <= NAME_BYTES {
            self.values += 1;
            self.nodes[id.0].properties.push((name.to_owned(), value));
        }
    }

    fn add_type(&mut self, id: LinkedItemId, name: &str) {
        let types = &mut self.nodes[id.0].types;
        if types.len() < TYPES {
            types.push(own_name(name).to_owned());
        }
    }

    /// Makes properties known by their names, and the items by their ids, once all of them are complete: of
    /// several with the same id, the one that says the most.
    fn index(&mut self) {
        for LinkedItem { properties, by_name, .. } in &mut self.nodes {
            *by_name = (0..properties.len()).collect();
            by_name.sort_by(|a, b| properties[*a].0.cmp(&properties[*b].0));
        }
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

/// How many values of a property are looked at for one that is needed.
const FIRST_VALUES: usize = 16;
/// The maximum size of names and addresses, in bytes.
const SHORT_BYTES: usize = 4 * 1024;
/// The maximum size of the name of a property, in bytes. It is held once for each value.
const NAME_BYTES: usize = 128;
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
