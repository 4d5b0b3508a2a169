//! Activity Streams: every entry says what was done (seed 003, "verb").

use crate::model::{Element, Entry, Feed, Node};

/// The namespace of `as:verb` and `as:object-type`.
const NAMESPACE: &str = "http://activitystrea.ms/spec/1.0/";

/// What an entry without a verb is understood to do (Atom Activity Streams 1.0,
/// "activity:verb": "post").
const POST: &str = "http://activitystrea.ms/schema/1.0/post";

/// Gives each entry without a verb the one that is understood.
pub(super) fn add_verbs(mut feed: Feed) -> Feed {
    for entry in &mut feed.entries {
        if !has_verb(entry) {
            entry.extensions.push(Element {
                namespace: NAMESPACE.to_owned(),
                prefix: "as".to_owned(),
                name: "verb".to_owned(),
                children: vec![Node::Text(POST.to_owned())],
                ..Element::default()
            });
        }
    }
    feed
}

fn has_verb(entry: &Entry) -> bool {
    entry.extensions.iter().any(|element| element.namespace == NAMESPACE && element.name == "verb")
}
