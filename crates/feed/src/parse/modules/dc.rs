//! Dublin Core, the fifteen elements of version 1.1.

use crate::model::{Category, Person};
use crate::parse::person::person;
use crate::parse::target::Target;
use crate::parse::texts::line;
use crate::parse::tree::{Items, XmlElement};

/// Reads the elements that have a counterpart in Atom. One with attributes, such as a role or a
/// scheme, is kept as well.
pub(super) fn read(element: XmlElement<'_>, target: &mut Target<'_>) -> bool {
    let has_attributes = element.attributes().iter().any(|attribute| attribute.prefix != "xml");
    read_value(element, target) && !has_attributes
}

fn read_value(element: XmlElement<'_>, target: &mut Target<'_>) -> bool {
    let name = element.lower_name();
    match name.as_ref() {
        "creator" | "author" => {
            let person = somebody(element, target.items());
            target.add_author(person)
        }
        "contributor" => {
            let person = somebody(element, target.items());
            target.add_contributor(person)
        }
        "subject" => {
            let term = line(&element.text()).into_owned();
            target.add_category(Category { term, ..Category::default() })
        }
        "date" => target.set_date(element),
        // A term of Dublin Core, written as one of its elements.
        "modified" => target.set_updated(element),
        "title" => {
            let text = target.bases.plain(element);
            target.set_title(text)
        }
        "description" => {
            let text = target.bases.html(element);
            target.set_about(text)
        }
        "rights" => {
            let text = target.bases.plain(element);
            target.set_rights(text)
        }
        "language" => match element.filled() {
            Some(lang) if target.lang().as_ref().is_none_or(|held| *held == lang) => {
                *target.lang() = Some(lang);
                true
            }
            Some(lang) if target.entry().is_some() => {
                *target.lang() = Some(lang);
                true
            }
            _ => false,
        },
        _ => false,
    }
}

/// Returns the person named in the text of an element. Child elements are kept as extensions of the
/// person.
fn somebody(element: XmlElement<'_>, items: Items) -> Option<Person> {
    let mut found = person(&line(&element.text()))?;
    found.extensions = element.to_extensions(items);
    Some(found)
}
