//! Dublin Core, the fifteen elements.

use super::Home;
use crate::domain::feed::Category;
use crate::parse::person::person;
use crate::parse::texts::line;
use crate::parse::tree::El;
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
    let name = element.name().to_ascii_lowercase();
    match name.as_str() {
        // What is said of somebody in elements is kept beside the name.
        "creator" | "author" => {
            home.add_author(person(&line(&element.text()))) && !element.has_elements()
        }
        "contributor" => {
            home.add_contributor(person(&line(&element.text()))) && !element.has_elements()
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
