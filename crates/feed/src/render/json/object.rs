//! Serialization of `as:object`, the object of an activity (seed 003, "Object").

use serde_json::{Map, Value};

use crate::model::{Element, Feed, Person};
use crate::parse::dates;

use super::parts::{
    attribute, child, child_text, children, insert_some, last_short_name, links, permalink,
    seconds, standard_links,
};
use super::person::actor;

/// Returns the object. `feed` is the feed of the entry, whose id is part of generated ids.
pub(super) fn object(element: &Element, feed: &Feed) -> Value {
    let parts = children(element);
    let mut object = Map::new();
    for name in ["id", "title", "content"] {
        insert_some(&mut object, name, child_text(&parts, name));
    }
    for name in ["published", "updated"] {
        let date = child_text(&parts, name).and_then(|text| dates::parse(&text));
        insert_some(&mut object, name, date.map(seconds));
    }
    let linked = links(&parts);
    insert_some(&mut object, "permalinkUrl", permalink(&linked));
    insert_some(&mut object, "standardLinks", standard_links(&linked, None));
    insert_some(&mut object, "objectType", last_short_name(&parts, "object-type"));
    let author = child(&parts, "author").map(person);
    insert_some(&mut object, "actor", author.map(|author| actor(&author, &feed.id)));
    let terms: Vec<Value> = parts
        .iter()
        .filter(|part| part.name == "category")
        .filter_map(|part| attribute(part, "term").map(|term| Value::String(term.to_owned())))
        .collect();
    insert_some(&mut object, "categories", (!terms.is_empty()).then_some(Value::Array(terms)));
    Value::Object(object)
}

/// Reads a person construct that is part of an extension.
fn person(element: &Element) -> Person {
    let parts = children(element);
    Person {
        name: child_text(&parts, "name").unwrap_or_default(),
        email: child_text(&parts, "email"),
        uri: child_text(&parts, "uri"),
        extensions: parts,
        ..Person::default()
    }
}
