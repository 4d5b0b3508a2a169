//! Entries that a publisher has taken back (RFC 6721, "The Atom 'deleted-entry' Element").

use super::Element;

/// The namespace of tombstones.
pub const TOMBSTONES: &str = "http://purl.org/atompub/tombstones/1.0";

/// The Atom id of the entry that this element takes back; `None` for any other element.
pub fn deleted_entry_id(element: &Element) -> Option<&str> {
    let is_deletion = element.namespace == TOMBSTONES && element.name == "deleted-entry";
    let mut attributes = element.attributes.iter().filter(|_| is_deletion);
    attributes.find(|attribute| attribute.name == "ref").map(|attribute| attribute.value.as_str())
}
