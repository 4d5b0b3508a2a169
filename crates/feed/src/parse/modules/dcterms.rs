//! Dublin Core terms.

use super::dc;
use crate::parse::target::Target;
use crate::parse::tree::XmlElement;

pub(super) fn read(element: XmlElement<'_>, target: &mut Target<'_>) -> bool {
    if element.named("issued") {
        target.set_published(element)
    } else if element.named("modified") {
        target.set_updated(element)
    } else if element.named("created") || element.named("date") {
        // `created` differs from `issued`, and RFC 4287 has no element for it, so it is kept.
        false
    } else {
        dc::read(element, target)
    }
}
