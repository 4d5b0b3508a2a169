//! The constructs of Atom: persons, links, categories, texts and contents.

use chrono::SecondsFormat;

use crate::model::{
    Attribute, Category, Content, Element, Generator, Link, Node, Person, Text, TextKind,
};
use crate::parse::person::person;
use crate::parse::target::Target;
use crate::parse::texts::kind_of;
use crate::parse::tree::{Items, XmlElement, is_item};
use crate::parse::vocabulary::{RSS, XML};

const DCTERMS: &str = "http://purl.org/dc/terms/";

/// The IRI prefix of registered link relations (RFC 4287 `#rfc.section.4.2.7.2`).
const IANA: &str = "http://www.iana.org/assignments/relation/";

/// Returns a text construct that Atom 1.0 dropped, as an extension: markup is escaped, and `type`
/// is that of Atom 1.0.
pub(in crate::parse::formats) fn kept_text(
    element: XmlElement<'_>,
    target: &Target<'_>,
) -> Element {
    let text = target.bases.atom(element);
    let kind = if text.kind == TextKind::Text { "text" } else { "html" };
    let told = |prefix: &str, name: &str, value: String| Attribute {
        namespace: if prefix.is_empty() { String::new() } else { XML.uri().to_owned() },
        prefix: prefix.to_owned(),
        name: name.to_owned(),
        value,
    };
    let attributes = std::iter::once(told("", "type", kind.to_owned()))
        .chain(text.lang.map(|lang| told("xml", "lang", lang)))
        .chain(text.base.map(|base| told("xml", "base", base)));
    let rss = &RSS;
    Element {
        namespace: rss.uri().to_owned(),
        prefix: rss.prefix.to_owned(),
        name: element.name().to_ascii_lowercase(),
        attributes: attributes.collect(),
        children: vec![Node::Text(text.value)],
        ..Element::default()
    }
}

/// Sets the generator of a feed, unless it has one.
pub(in crate::parse::formats) fn set_generator(
    element: XmlElement<'_>,
    target: &mut Target<'_>,
) -> bool {
    let uri = element.attr("uri").or(element.attr("url")).or(element.attr("href"));
    let generator = Generator {
        name: element.text().into_owned(),
        uri: uri.map(|uri| target.bases.href(element, uri)),
        version: element.attr("version").map(str::to_owned),
    };
    let Some(feed) = target.feed() else { return false };
    *feed.generator.get_or_insert_with(|| generator.clone()) == generator
}

/// Reads the creation date of Atom 0.3, which became a Dublin Core term.
pub(in crate::parse::formats) fn read_created(
    element: XmlElement<'_>,
    target: &mut Target<'_>,
) -> bool {
    let Some(date) = target.date(element) else { return false };
    let text = date.to_rfc3339_opts(SecondsFormat::AutoSi, true);
    target.extensions().push(Element {
        namespace: DCTERMS.into(),
        prefix: "dcterms".into(),
        name: "created".into(),
        attributes: Vec::new(),
        children: vec![Node::Text(text)],
        ..Element::default()
    });
    true
}

/// Reads a person construct. A person without child elements is read in the form of RSS.
pub(in crate::parse::formats) fn read_person(
    element: XmlElement<'_>,
    target: &mut Target<'_>,
) -> Option<Person> {
    if !element.has_elements() {
        return person(&element.text());
    }
    let uri = ["uri", "url", "homepage"].iter().find_map(|name| {
        let child = element.child(name)?;
        child.filled().map(|uri| target.bases.href(child, &uri))
    });
    // Text that is not an e-mail address becomes part of the name. When a kept element of another
    // vocabulary is read again, that must not happen a second time.
    let own_email = |child: &XmlElement<'_>| {
        let own = child.is_atom() || child.is_rss();
        child.named("email") && (own || child.namespace().uri() == element.namespace().uri())
    };
    let mut person = Person {
        name: element.filled_child("name").unwrap_or_default(),
        email: element.elements().filter(own_email).find_map(XmlElement::filled),
        uri,
        extensions: Vec::new(),
        ..Person::default()
    };
    let items = target.items();
    for child in element.elements() {
        let known = ["name", "email", "uri", "url", "homepage"];
        let own = child.is_atom() || child.is_rss();
        if items == Items::Read && is_item(child) {
            continue;
        }
        if !(own && known.iter().any(|name| child.named(name))) {
            person.extensions.extend(child.to_extension(items));
        }
    }
    let somebody = !person.name.is_empty() || person.email.is_some() || person.uri.is_some();
    (somebody || !person.extensions.is_empty()).then_some(person)
}

/// Reads a link, with its address in an attribute or, as in RSS, in its text.
pub(in crate::parse::formats) fn read_link(element: XmlElement<'_>, target: &Target<'_>) -> Link {
    let named = |name: &str| element.attr(name).filter(|value| !value.is_empty());
    let text = element.text();
    // `uri` names what is linked, in a scheme of its own, where the text is the address.
    let is_address = text.contains("://") && !text.trim().contains(char::is_whitespace);
    let uri = named("uri");
    let href = named("href").or_else(|| named("url"));
    let href = href.or(uri.filter(|_| !is_address));
    let rel = named("rel").unwrap_or("alternate");
    let foreign = element.attributes().iter().filter(|a| !matches!(a.prefix, "" | "xml"));
    let attributes = foreign.map(|attribute| element.to_attribute(attribute, &attribute.value));
    Link {
        href: target.bases.href(element, href.unwrap_or(&text)),
        rel: rel.strip_prefix(IANA).unwrap_or(rel).to_owned(),
        mime: named("type").map(str::to_owned),
        hreflang: named("hreflang").map(str::to_owned),
        title: named("title").map(str::to_owned),
        length: named("length").map(str::to_owned),
        attributes: attributes.collect(),
        former_href: uri.filter(|_| href.is_none()).map(|uri| target.bases.href(element, uri)),
        // If the address is the text, the content of the element is not part of the link.
        extensions: href.map_or_else(Vec::new, |_| element.to_extensions(target.items())),
        ..Link::default()
    }
}

/// Reads a category, with its term in an attribute or, as in RSS, in its text.
pub(in crate::parse::formats) fn read_category(element: XmlElement<'_>) -> Category {
    let named = |name: &str| element.attr(name).filter(|value| !value.is_empty());
    let label = named("label").map(str::to_owned);
    let term = named("term").map(str::to_owned).or_else(|| element.filled());
    Category {
        term: term.or_else(|| label.clone()).unwrap_or_default(),
        scheme: named("scheme").or_else(|| named("domain")).map(str::to_owned),
        label,
        ..Category::default()
    }
}

/// Reads the content of an entry.
pub(in crate::parse::formats) fn read_content(
    element: XmlElement<'_>,
    target: &Target<'_>,
) -> Content {
    let element = best_part(element);
    let label = element.attr("type").unwrap_or_default();
    let kind = kind_of(label);
    if let Some(href) = content_address(element, target) {
        if is_empty(element) {
            let mime = (!label.is_empty()).then(|| label.to_owned());
            return Content::Src { mime, href };
        }
        if kind.is_none() {
            // The type is that of the address.
            return Content::Text(target.bases.plain(element));
        }
    }
    if kind.is_some() || !label.contains('/') {
        return Content::Text(target.bases.atom(element));
    }
    let mime = label.to_owned();
    if element.has_elements() {
        let base = target.bases.base(element).map(String::from);
        return Content::Xml { mime, value: target.bases.xml(element), base };
    }
    let value = element.text().into_owned();
    Content::Media { mime, value }
}

/// Returns the link to a content that is elsewhere although the element has a text. Atom has one or the
/// other (RFC 4287 `#rfc.section.4.1.3.2`), and readers show the text.
pub(in crate::parse::formats) fn link_beside_content(
    element: XmlElement<'_>,
    target: &Target<'_>,
) -> Option<Link> {
    let element = best_part(element);
    let href = content_address(element, target).filter(|_| !is_empty(element))?;
    let mime = element.attr("type").filter(|label| label.contains('/')).map(str::to_owned);
    Some(Link { href, rel: "related".to_owned(), mime, ..Link::default() })
}

/// Returns where a content is, if it is elsewhere.
fn content_address(element: XmlElement<'_>, target: &Target<'_>) -> Option<String> {
    let src = element.attr("src").or(element.attr("url")).filter(|src| !src.is_empty())?;
    Some(target.bases.href(element, src))
}

fn is_empty(element: XmlElement<'_>) -> bool {
    !element.has_elements() && element.filled().is_none()
}

/// Returns the markup among the alternatives of a content of Atom 0.3, or else the last of them; the
/// element itself if it has none.
fn best_part(content: XmlElement<'_>) -> XmlElement<'_> {
    let is_multipart = |element: XmlElement<'_>| {
        let label = element.attr("type").unwrap_or_default().get(.."multipart/".len());
        label.is_some_and(|label| label.eq_ignore_ascii_case("multipart/"))
    };
    if !is_multipart(content) {
        return content;
    }
    let parts = || content.elements().filter(|part| part.named("content") && !is_multipart(*part));
    let is_markup = |part: &XmlElement<'_>| {
        let kind = kind_of(part.attr("type").unwrap_or_default());
        matches!(kind, Some(TextKind::Html | TextKind::Xhtml))
    };
    parts().find(is_markup).or_else(|| parts().last()).unwrap_or(content)
}

/// Reads content that is XHTML elements or escaped HTML.
pub(in crate::parse::formats) fn body(element: XmlElement<'_>, target: &Target<'_>) -> Content {
    if !element.has_elements() {
        return Content::Text(target.bases.html(element));
    }
    let lang =
        element.lang().filter(|lang| element.parent().and_then(XmlElement::lang) != Some(lang));
    Content::Text(Text {
        kind: TextKind::Xhtml,
        value: target.bases.xhtml(element),
        lang: lang.map(str::to_owned),
        base: target.bases.base(element).map(String::from),
    })
}
