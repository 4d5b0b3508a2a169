//! Serialization of a person as an actor (seed 003, "Author").

use hmac_sha256::Hash as Sha256;
use serde_json::{Map, Value};

use crate::hex;
use crate::model::Person;

use super::parts::{child_text, insert_some, last_short_name, links, permalink};
use super::picture::PICTURE_RELATIONS;

/// The prefix of generated ids (RFC 4151), which name the program and not the gateway.
const GENERATED: &str = "tag:feedgate,2026:person:";

/// Returns the person as an actor. `feed_id` is the id of the feed that names the person, which is
/// part of a generated id.
pub(super) fn actor(person: &Person, feed_id: &str) -> Value {
    let mut actor = Map::new();
    let mine = &person.extensions;
    let linked = links(mine);
    let address = permalink(&linked).or_else(|| person.uri.clone());
    let id = child_text(mine, "id").unwrap_or_else(|| generated_id(person, feed_id));
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

/// Returns the id of a person without one: the URI, which identifies the person everywhere, or else
/// a hash that stays the same as long as the feed uses the same name.
fn generated_id(person: &Person, feed_id: &str) -> String {
    if let Some(uri) = person.uri.as_ref().filter(|uri| !uri.is_empty()) {
        return uri.clone();
    }
    let mut hasher = Sha256::new();
    for part in [feed_id, &person.name] {
        hasher.update(part.as_bytes());
        hasher.update([0x1f]);
    }
    format!("{GENERATED}{}", hex::encode(&hasher.finalize()[..16]))
}
