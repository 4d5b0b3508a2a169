//! Media RSS. All elements are kept; titles, descriptions and keywords fill fields that an entry
//! lacks.

use crate::parse::target::Target;
use crate::parse::tree::XmlElement;

pub(super) fn read(element: XmlElement<'_>, target: &mut Target<'_>) -> bool {
    let empty =
        |text: &Option<crate::model::Text>| text.as_ref().is_none_or(|text| text.value.is_empty());
    if element.named("title") && empty(target.title()) {
        let text = target.bases.plain(element);
        target.set_title(text);
    } else if element.named("description") && empty(target.about()) {
        let has_content = target.entry().is_some_and(|entry| entry.content.is_some());
        if !has_content {
            let text = target.bases.plain(element);
            target.set_about(text);
        }
    }
    false
}
