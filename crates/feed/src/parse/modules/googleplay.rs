//! Google Play's podcast elements: Apple's under another namespace. All are kept as well.

use super::itunes;
use crate::parse::target::Target;
use crate::parse::tree::XmlElement;

pub(super) fn read(element: XmlElement<'_>, target: &mut Target<'_>) -> bool {
    let name = element.lower_name();
    match name.as_ref() {
        "author" if target.authors().is_empty() => itunes::read(element, target),
        "description" if target.about().is_none() => {
            let text = target.bases.html(element);
            target.set_about(text)
        }
        "image" => itunes::read(element, target),
        _ => false,
    }
}
