//! Serialization of a person as an actor (seed 003, "Author").

use serde_json::{Map, Value};

use crate::model::Person;
use crate::own_elements::{FeedHash, generated_person_id, stated_person_id};

use super::parts::{child_text, insert_some, last_short_name, links, permalink};
use super::picture::PICTURE_RELATIONS;

/// Returns the person as an actor. `feed_id` is the id of the feed that names the person, which is
/// part of a generated id.
pub(super) fn actor(person: &Person, feed_id: &str) -> Value {
    let mut actor = Map::new();
    let mine = &person.extensions;
    let linked = links(mine);
    let address = permalink(&linked).or_else(|| person.uri.clone());
    let id = stated_person_id(person)
        .unwrap_or_else(|| generated_person_id(person, FeedHash::of_id(feed_id)));
    let picture = linked.iter().find(|link| PICTURE_RELATIONS.contains(&link.rel.as_str()));
    actor.insert("displayName".to_owned(), Value::String(person.name.clone()));
    insert_some(&mut actor, "permalinkUrl", address);
    insert_some(&mut actor, "email", person.email.clone());
    actor.insert("id".to_owned(), Value::String(id));
    insert_some(&mut actor, "image", picture.map(|link| link.href.clone()));
    insert_some(&mut actor, "objectType", last_short_name(mine, "object-type"));
    insert_some(&mut actor, "title", child_text(mine, "title"));
    Value::Object(actor)
}
