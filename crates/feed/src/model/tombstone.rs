//! Tombstones: deleted entries (RFC 6721, "The Atom 'deleted-entry' Element").

use super::Element;

/// The namespace of tombstones.
pub const TOMBSTONES: &str = "http://purl.org/atompub/tombstones/1.0";

/// Returns the Atom id of the deleted entry; `None` if the element is not a tombstone.
pub fn deleted_entry_id(element: &Element) -> Option<&str> {
    let is_deletion = element.namespace == TOMBSTONES && element.name == "deleted-entry";
    let mut attributes = element.attributes.iter().filter(|_| is_deletion);
    attributes.find(|attribute| attribute.name == "ref").map(|attribute| attribute.value.as_str())
}

/// Returns the Atom id of the deleted entry, to change it; `None` if the element is not a tombstone.
pub(crate) fn deleted_entry_id_mut(element: &mut Element) -> Option<&mut String> {
    deleted_entry_id(element)?;
    let mut attributes = element.attributes.iter_mut();
    attributes.find(|attribute| attribute.name == "ref").map(|attribute| &mut attribute.value)
}
