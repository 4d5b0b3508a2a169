//! The size of what was read of an item, which many entries may share.

use crate::model::{Content, Element, Entry, Node, Person, Text};

/// The size for which a person, a link, a category or an element counts without its texts, in bytes.
const PART_BYTES: usize = 32;

/// Returns the size of the texts of an entry, in bytes.
pub(super) fn text_size(entry: &Entry) -> usize {
    let content = match &entry.content {
        Some(Content::Text(text)) => of_text(text),
        _ => 0,
    };
    let texts = [&entry.title, &entry.summary].into_iter().flatten().map(of_text).sum::<usize>();
    let links = entry.links.iter().map(|link| {
        PART_BYTES + link.href.len() + total_length([&link.mime, &link.title, &link.length])
    });
    let terms = entry.categories.iter().map(|category| PART_BYTES + category.term.len());
    entry.id.len()
        + total_length([&entry.lang, &entry.base])
        + texts
        + content
        + links.sum::<usize>()
        + terms.sum::<usize>()
        + entry.authors.iter().map(of_person).sum::<usize>()
        + entry.extensions.iter().map(of_element).sum::<usize>()
}

fn total_length<const N: usize>(texts: [&Option<String>; N]) -> usize {
    texts.into_iter().flatten().map(String::len).sum()
}

fn of_text(text: &Text) -> usize {
    text.value.len() + total_length([&text.base, &text.lang])
}

fn of_person(person: &Person) -> usize {
    let extensions = person.extensions.iter().map(of_element);
    PART_BYTES
        + person.name.len()
        + total_length([&person.email, &person.uri])
        + extensions.sum::<usize>()
}

/// Returns the size of an element, which has no other elements in it.
fn of_element(element: &Element) -> usize {
    let attributes = element.attributes.iter().map(|held| held.value.len());
    let texts = element.children.iter().map(|child| match child {
        Node::Text(text) => text.len(),
        Node::Element(_) => 0,
    });
    PART_BYTES + element.name.len() + attributes.sum::<usize>() + texts.sum::<usize>()
}
