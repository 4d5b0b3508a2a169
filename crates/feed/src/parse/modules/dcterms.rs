//! Dublin Core, the qualified terms.

use super::{Home, dc};
use crate::parse::tree::El;
use crate::parse::vocabulary::Vocabulary;

pub(super) static DCTERMS: Vocabulary =
    Vocabulary { prefix: "dcterms", uris: &["http://purl.org/dc/terms/"], read };

fn read(element: El<'_>, home: &mut Home<'_>) -> bool {
    if element.named("issued") {
        home.set_published(element)
    } else if element.named("modified") {
        home.set_updated(element)
    } else if element.named("created") || element.named("date") {
        // `created` is a date of its own (RFC 4287 has no element for it), and kept.
        false
    } else {
        dc::read(element, home)
    }
}
