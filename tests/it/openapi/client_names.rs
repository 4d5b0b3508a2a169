//! The names in the document can be those of a generated client. Generators read the document in
//! different ways, and these rules are what all of them need (`tests/generators/run` runs them).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use super::{document, operations, resolved, root};

/// The kinds of components whose name becomes that of a type.
const KINDS: [&str; 6] =
    ["schemas", "parameters", "responses", "requestBodies", "headers", "securitySchemes"];

#[test]
fn a01_each_operation_has_an_id_of_its_own() {
    let document = document();
    let mut paths: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (path, method, operation) in operations(&document) {
        let id = operation["operationId"].as_str().unwrap_or_default();
        let is_camel_case = id.starts_with(|first: char| first.is_ascii_lowercase())
            && id.bytes().all(|byte| byte.is_ascii_alphanumeric());
        assert!(
            is_camel_case,
            "{method} {path}: `operationId` must be a verb and its object: {id}"
        );
        paths.entry(id).or_default().push(format!("{method} {path}"));
    }
    let shared: Vec<_> = paths.iter().filter(|(_, paths)| paths.len() > 1).collect();
    assert!(shared.is_empty(), "several operations have the same id: {shared:?}");
}

#[test]
fn a01_no_two_members_of_an_object_have_the_same_name() {
    let text = fs::read_to_string(root().join("schemas/openapi.json")).unwrap();
    serde_json::from_str::<UniqueMembers>(&text).unwrap();
}

#[test]
fn a01_names_differ_also_when_a_language_has_no_dots_and_brackets() {
    let document = document();
    let mut wrong = Vec::new();
    for (path, method, operation) in operations(&document) {
        let of_path = document["paths"][path]["parameters"].as_array().into_iter().flatten();
        let of_operation = operation["parameters"].as_array().into_iter().flatten();
        let names = of_path.chain(of_operation).map(|it| resolved(&document, it)["name"].as_str());
        let names: Vec<&str> = names.flatten().collect();
        wrong.extend(same_words(&names).into_iter().map(|pair| format!("{method} {path}: {pair}")));
    }
    for (name, schema) in document["components"]["schemas"].as_object().unwrap() {
        let properties = schema["properties"].as_object().into_iter().flatten();
        let names: Vec<&str> = properties.map(|(name, _)| name.as_str()).collect();
        wrong.extend(same_words(&names).into_iter().map(|pair| format!("{name}: {pair}")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Returns the pairs of names that consist of the same words.
fn same_words(names: &[&str]) -> Vec<String> {
    let mut seen: BTreeMap<String, &str> = BTreeMap::new();
    let mut pairs = Vec::new();
    for name in names {
        let letters = name.chars().filter(char::is_ascii_alphanumeric);
        let word: String = letters.flat_map(char::to_lowercase).collect();
        if let Some(other) = seen.insert(word, name) {
            pairs.push(format!("{other} and {name}"));
        }
    }
    pairs
}

#[test]
fn a01_components_have_names_that_a_reference_and_a_type_can_have() {
    let document = document();
    for kind in KINDS {
        for name in document["components"][kind].as_object().unwrap().keys() {
            let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
            assert!(name.bytes().all(is_name), "{kind}: {name}");
        }
    }
    // The types of the parameters of an operation are named for the operation.
    let ids = operations(&document);
    let ids = ids.iter().map(|(.., operation)| operation["operationId"].as_str().unwrap());
    let taken: BTreeSet<String> = ids
        .flat_map(|id| ["request", "response"].map(|part| format!("{id}{part}").to_lowercase()))
        .collect();
    for name in document["components"]["schemas"].as_object().unwrap().keys() {
        assert!(!taken.contains(&name.to_lowercase()), "{name} is the name of an operation's type");
    }
    // Go has a function NewX for each type X, and an object that is written out in a property has the
    // name of its schema and the property.
    let schemas = document["components"]["schemas"].as_object().unwrap();
    for (name, schema) in schemas {
        let constructor = format!("New{name}");
        assert!(!schemas.contains_key(&constructor), "{constructor} is the constructor of {name}");
        for (property, part) in schema["properties"].as_object().into_iter().flatten() {
            let inner = format!("{name}{property}").to_lowercase();
            let other = schemas.keys().find(|other| other.to_lowercase() == inner);
            let is_inline = part.get("properties").is_some() || part.get("enum").is_some();
            assert!(
                !is_inline || other.is_none(),
                "{other:?} is also the type of {property} in {name}"
            );
        }
    }
}

/// oapi-codegen makes a type of the values of a parameter, with the name of the component.
#[test]
fn a01_schemas_and_parameters_do_not_share_a_name() {
    let document = document();
    let components = ["schemas", "parameters"].map(|kind| &document["components"][kind]);
    let names = components.into_iter().filter_map(Value::as_object).flatten();
    let names: Vec<&str> = names.map(|(name, _)| name.as_str()).collect();
    let shared = same_words(&names);
    assert!(shared.is_empty(), "{shared:?}");
}

#[test]
fn a01_references_lead_to_whole_components() {
    let document = document();
    for (path, item) in document["paths"].as_object().unwrap() {
        assert!(item.get("$ref").is_none(), "{path}: generators drop paths that are references");
    }
    check_references(&document);
}

fn check_references(part: &Value) {
    if let Some(reference) = part["$ref"].as_str() {
        let name = reference.strip_prefix("#/components/").unwrap_or_default();
        let is_whole =
            name.split('/').count() == 2 && KINDS.iter().any(|kind| name.starts_with(kind));
        assert!(is_whole, "{reference} leads into another part of the document");
    }
    match part {
        Value::Object(members) => members.values().for_each(check_references),
        Value::Array(items) => items.iter().for_each(check_references),
        _ => {}
    }
}

/// Generators name the type of a schema that is written out in a body for the operation, and several
/// give that name to the parameters too.
#[test]
fn a01_bodies_are_types_with_a_name() {
    let document = document();
    for (path, method, operation) in operations(&document) {
        let body = resolved(&document, &operation["requestBody"]);
        for (media_type, content) in body["content"].as_object().into_iter().flatten() {
            let schema = &content["schema"];
            let has_name = schema["$ref"].is_string() || schema["type"] == "string";
            assert!(
                has_name,
                "{method} {path}: the body {media_type} must be a reference to a schema"
            );
        }
    }
}

/// Clients that are generated send each default, and a mode rejects the parameters of other modes.
#[test]
fn a01_clients_send_nothing_that_nobody_has_set() {
    let document = document();
    let mut wrong = Vec::new();
    for (path, method, operation) in operations(&document) {
        let parameters = operation["parameters"].as_array().into_iter().flatten();
        for parameter in parameters.map(|parameter| resolved(&document, parameter)) {
            if parameter["schema"].get("default").is_some() {
                wrong.push(format!("{method} {path}: {}", parameter["name"]));
            }
        }
        let body = resolved(&document, &operation["requestBody"]);
        for content in body["content"].as_object().into_iter().flatten().map(|(_, content)| content)
        {
            let schema = resolved(&document, &content["schema"]);
            for (name, property) in schema["properties"].as_object().into_iter().flatten() {
                if property.get("default").is_some() {
                    wrong.push(format!("{method} {path}: {name} of the body"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "say the default in the description instead: {}", wrong.join("\n"));
}

/// Clients that are generated reject what their schema does not have, unless it is open.
#[test]
fn a01_answers_may_get_new_members() {
    let document = document();
    let mut wrong = Vec::new();
    for (path, method, operation) in operations(&document) {
        for (status, response) in operation["responses"].as_object().unwrap() {
            let content = &resolved(&document, response)["content"];
            for (_, content) in content.as_object().into_iter().flatten() {
                let place = format!("{method} {path} {status}");
                find_closed(&document, &content["schema"], &place, &mut wrong);
            }
        }
    }
    assert!(wrong.is_empty(), "`additionalProperties` must be true in:\n{}", wrong.join("\n"));
}

/// Finds the objects with members whose schema is not open.
fn find_closed(document: &Value, schema: &Value, place: &str, wrong: &mut Vec<String>) {
    let place = schema["$ref"].as_str().unwrap_or(place);
    let schema = resolved(document, schema);
    let is_open = schema["additionalProperties"].as_bool() == Some(true);
    if schema.get("properties").is_some() && !is_open {
        wrong.push(place.to_owned());
    }
    let properties = schema["properties"].as_object().into_iter().flatten();
    let alternatives = schema["oneOf"].as_array().into_iter().flatten();
    let parts = properties.map(|(_, part)| part).chain(alternatives).chain(schema.get("items"));
    parts.for_each(|part| find_closed(document, part, place, wrong));
}

#[test]
fn a01_parameters_of_the_superfeedr_api_are_the_same_in_the_query_and_in_a_body() {
    let document = document();
    let in_body = &document["components"]["schemas"]["SuperfeedrForm"]["properties"];
    for path in ["/", "/hubbub"] {
        let parameters = document["paths"][path]["get"]["parameters"].as_array().unwrap();
        let parameters = parameters.iter().map(|it| resolved(&document, it));
        let mut in_query = serde_json::Map::new();
        for parameter in parameters.filter(|parameter| parameter["in"] == "query") {
            let mut property = parameter["schema"].clone();
            property["description"] = parameter["description"].clone();
            in_query.insert(parameter["name"].as_str().unwrap().to_owned(), property);
        }
        assert!(in_query.len() > 40, "{path}: {in_query:?}");
        assert_eq!(&Value::Object(in_query), in_body, "{path}");
    }
}

/// A document in which no object has two members of the same name. JSON permits them, and each
/// reader makes something else of them.
struct UniqueMembers;

impl<'de> Deserialize<'de> for UniqueMembers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<UniqueMembers, D::Error> {
        deserializer.deserialize_any(UniqueMembersVisitor)
    }
}

struct UniqueMembersVisitor;

impl<'de> Visitor<'de> for UniqueMembersVisitor {
    type Value = UniqueMembers;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("objects without two members of the same name")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<UniqueMembers, A::Error> {
        let mut names = BTreeSet::new();
        while let Some(name) = members.next_key::<String>()? {
            members.next_value::<UniqueMembers>()?;
            if let Some(name) = names.replace(name) {
                return Err(serde::de::Error::custom(format!("two members are called {name}")));
            }
        }
        Ok(UniqueMembers)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<UniqueMembers, A::Error> {
        while items.next_element::<UniqueMembers>()?.is_some() {}
        Ok(UniqueMembers)
    }

    fn visit_str<E>(self, _: &str) -> Result<UniqueMembers, E> {
        Ok(UniqueMembers)
    }

    fn visit_bool<E>(self, _: bool) -> Result<UniqueMembers, E> {
        Ok(UniqueMembers)
    }

    fn visit_u64<E>(self, _: u64) -> Result<UniqueMembers, E> {
        Ok(UniqueMembers)
    }

    fn visit_i64<E>(self, _: i64) -> Result<UniqueMembers, E> {
        Ok(UniqueMembers)
    }

    fn visit_f64<E>(self, _: f64) -> Result<UniqueMembers, E> {
        Ok(UniqueMembers)
    }

    fn visit_unit<E>(self) -> Result<UniqueMembers, E> {
        Ok(UniqueMembers)
    }
}
