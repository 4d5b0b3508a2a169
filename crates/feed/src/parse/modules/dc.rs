//! Dublin Core, the fifteen elements.

use super::Home;
use crate::model::{Category, Person};
use crate::parse::person::person;
use crate::parse::texts::line;
use crate::parse::tree::{El, Items};
use crate::parse::vocabulary::Vocabulary;

pub(super) static DC: Vocabulary = Vocabulary {
    prefix: "dc",
    uris: &[
        "http://purl.org/dc/elements/1.1/",
        "http://purl.org/dc/elements/1.0/",
        "http://purl.org/metadata/dublin_core",
    ],
    read,
};

/// Reads what Dublin Core says in Atom's own terms.
pub(super) fn read(element: El<'_>, home: &mut Home<'_>) -> bool {
    if element.attributes().iter().any(|attribute| attribute.prefix != "xml") {
        return false;
    }
    let name = element.lower_name();
    match name.as_ref() {
        "creator" | "author" => {
            let person = somebody(element, home.items());
            home.add_author(person)
        }
        "contributor" => {
            let person = somebody(element, home.items());
            home.add_contributor(person)
        }
        "subject" => {
            let term = line(&element.text()).into_owned();
            home.add_category(Category { term, ..Category::default() })
        }
        "date" => home.set_updated(element),
        "title" => {
            let text = home.bases.plain(element);
            home.set_title(text)
        }
        "description" => {
            let text = home.bases.html(element);
            home.set_about(text)
        }
        "rights" => {
            let text = home.bases.plain(element);
            home.set_rights(text)
        }
        "language" => match element.filled() {
            Some(lang) if home.lang().as_ref().is_none_or(|held| *held == lang) => {
                *home.lang() = Some(lang);
                true
            }
            Some(lang) if home.entry().is_some() => {
                *home.lang() = Some(lang);
                true
            }
            _ => false,
        },
        _ => false,
    }
}

/// A person by the text of an element. What is said of somebody in elements is kept with
/// the name.
fn somebody(element: El<'_>, items: Items) -> Option<Person> {
    let mut found = person(&line(&element.text()))?;
    found.extensions = element.keep_inside(items);
    Some(found)
}
