//! Media RSS as its version 1.1 defines it, because validators and many readers know no later one.
//!
//! * A group holds the alternatives of one medium. A group with one content is that content, which has
//!   what else the group says.
//! * Elements of version 1.5 are kept inside of an element of ours ([`own_elements::later_media`]).

use crate::model::{Element, Node};
use crate::own_elements;

const MEDIA: &str = "http://search.yahoo.com/mrss/";

/// The optional elements that version 1.5 has added.
const LATER: [&str; 13] = [
    "backLinks",
    "comments",
    "community",
    "embed",
    "license",
    "location",
    "peerLink",
    "price",
    "responses",
    "rights",
    "scenes",
    "status",
    "subTitle",
];

/// Converts the elements of a feed or an entry.
pub(super) fn conform(extensions: &mut Vec<Element>) {
    extensions.iter_mut().filter(|element| is_group(element)).for_each(dissolve);
    for element in extensions.iter_mut().filter(|element| element.namespace == MEDIA) {
        enclose_later_inside(element);
    }
    let Some(at) = extensions.iter().position(is_later) else { return };
    let later = extensions.extract_if(.., |element| is_later(element)).map(Node::Element);
    let later = own_elements::later_media(later.collect());
    extensions.insert(at, later);
}

/// Replaces a group by the only content in it, which gets what else the group says.
fn dissolve(group: &mut Element) {
    if contents(group) != 1 || !group.attributes.is_empty() {
        return;
    }
    let inside = std::mem::take(&mut group.children);
    let (contents, others): (Vec<_>, Vec<_>) =
        inside.into_iter().filter_map(into_element).partition(is_content);
    let Some(mut content) = contents.into_iter().next() else { return };
    content.children.extend(others.into_iter().map(Node::Element));
    *group = content;
}

/// Encloses the elements of version 1.5 that are inside of a group or content.
fn enclose_later_inside(element: &mut Element) {
    let is_later = |child: &Node| matches!(child, Node::Element(child) if is_later(child));
    if element.children.iter().any(is_later) {
        let inside = std::mem::take(&mut element.children);
        let (later, others) = inside.into_iter().partition(is_later);
        element.children = others;
        element.children.push(Node::Element(own_elements::later_media(later)));
    }
    for child in &mut element.children {
        if let Node::Element(child) = child
            && is_content(child)
        {
            enclose_later_inside(child);
        }
    }
}

fn contents(group: &Element) -> usize {
    let is = |child: &&Node| matches!(child, Node::Element(child) if is_content(child));
    group.children.iter().filter(is).count()
}

fn into_element(node: Node) -> Option<Element> {
    match node {
        Node::Element(element) => Some(element),
        // White space: a group has no text of its own.
        Node::Text(_) => None,
    }
}

fn is_group(element: &Element) -> bool {
    element.namespace == MEDIA && element.name == "group"
}

fn is_content(element: &Element) -> bool {
    element.namespace == MEDIA && element.name == "content"
}

fn is_later(element: &Element) -> bool {
    element.namespace == MEDIA && LATER.contains(&element.name.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes elements as their names, with what is in them in brackets.
    fn names(elements: &[Element]) -> String {
        let name = |element: &Element| {
            let inside = element.children.iter().cloned().filter_map(into_element);
            let inside: Vec<Element> = inside.collect();
            match inside.is_empty() {
                true => element.name.clone(),
                false => format!("{}({})", element.name, names(&inside)),
            }
        };
        elements.iter().map(name).collect::<Vec<_>>().join(" ")
    }

    /// Reads what [`names`] writes.
    fn elements(written: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Vec<Element> {
        let mut found: Vec<Element> = Vec::new();
        let mut name = String::new();
        let end = |name: &mut String, found: &mut Vec<Element>| {
            if !name.is_empty() {
                let (namespace, name) = (MEDIA.to_owned(), std::mem::take(name));
                found.push(Element { namespace, name, ..Element::default() });
            }
        };
        while let Some(c) = written.next() {
            match c {
                '(' => {
                    end(&mut name, &mut found);
                    let inside = elements(written).into_iter().map(Node::Element).collect();
                    found.last_mut().unwrap().children = inside;
                }
                ')' => break,
                ' ' => end(&mut name, &mut found),
                c => name.push(c),
            }
        }
        end(&mut name, &mut found);
        found
    }

    #[test]
    fn n10_a_group_has_alternatives_and_later_elements_are_enclosed() {
        #[rustfmt::skip]
        let cases = [
            ("group(title content thumbnail community)", "content(title thumbnail media(community))"),
            ("group(title thumbnail)",                   "group(title thumbnail)"),
            ("group(content content title)",             "group(content content title)"),
            ("title group(content title)",               "title content(title)"),
            ("content group(content(player) license)",   "content content(player media(license))"),
            ("group(content content(embed) status)",     "group(content content(media(embed)) media(status))"),
            ("license thumbnail rights",                 "media(license rights) thumbnail"),
            ("thumbnail",                                "thumbnail"),
        ];
        for (written, want) in cases {
            let mut given = elements(&mut written.chars().peekable());
            conform(&mut given);
            assert_eq!(names(&given), want, "{written}");
            conform(&mut given);
            assert_eq!(names(&given), want, "{written}, again");
        }
    }
}
