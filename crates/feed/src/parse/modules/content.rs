//! The content module of RSS: `content:encoded`, and `content:items` before it.

use crate::model::Content;
use crate::parse::target::Target;
use crate::parse::tree::XmlElement;

pub(super) fn read(element: XmlElement<'_>, target: &mut Target<'_>) -> bool {
    if !element.named("encoded") {
        return false;
    }
    let text = target.bases.html(element);
    if target.feed().is_some() {
        return target.set_about(text);
    }
    text.value.is_empty() || target.set_content(Content::Text(text))
}
