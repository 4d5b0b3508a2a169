//! The Activity Streams verb of every entry (seed 003, "verb").

use crate::model::{Element, Entry, Feed, Node};
use crate::short_list::push_to_short_list;

/// The namespace of `as:verb` and `as:object-type`.
const NAMESPACE: &str = "http://activitystrea.ms/spec/1.0/";

/// The default verb (Atom Activity Streams 1.0, "activity:verb": "post").
const POST: &str = "http://activitystrea.ms/schema/1.0/post";

/// Adds the default verb to each entry without one.
pub(super) fn add_verbs(mut feed: Feed) -> Feed {
    for entry in &mut feed.entries {
        if !has_verb(entry) {
            let verb = Element {
                namespace: NAMESPACE.to_owned(),
                prefix: "as".to_owned(),
                name: "verb".to_owned(),
                children: vec![Node::Text(POST.to_owned())],
                ..Element::default()
            };
            push_to_short_list(&mut entry.extensions, verb);
        }
    }
    feed
}

fn has_verb(entry: &Entry) -> bool {
    entry.extensions.iter().any(|element| element.namespace == NAMESPACE && element.name == "verb")
}
