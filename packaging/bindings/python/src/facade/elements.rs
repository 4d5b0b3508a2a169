//! Elements without a counterpart in Atom, under the names that feedparser has for them: the prefix
//! and the name, in lower case. Their children are beside them.

use feedgate_feed::model::{Element, Node};
use pyo3::prelude::*;

use super::dictionary::Writer;
use super::namespaces::{ACTIVITY, OWN, RDF, attribute, attribute_key, is_in, names};
use super::texts::Around;
use super::{dates, geo, media, people};

/// How deep elements are read.
const DEEPEST: usize = 16;

/// Sets all elements of a feed or entry.
pub(super) fn set(
    elements: &[Element],
    around: Around<'_>,
    writer: &Writer<'_, '_>,
) -> PyResult<()> {
    for element in elements {
        set_element(element, around, writer, 0)?;
    }
    Ok(())
}

fn set_element(
    element: &Element,
    around: Around<'_>,
    writer: &Writer<'_, '_>,
    depth: usize,
) -> PyResult<()> {
    // What the normalizer encloses is read as if it stood alone.
    if is_in(element, OWN) && element.name == "media" && depth <= DEEPEST {
        return set_children(element, around, writer, depth);
    }
    if is_in(element, OWN) || is_in(element, ACTIVITY) || depth > DEEPEST {
        return Ok(());
    }
    let (prefix, name) = names(element);
    match (&*prefix, name.as_str()) {
        ("", "image") => set_image(element, around, writer),
        ("", "textinput") => set_text_input(element, writer),
        ("", "cloud") => set_attributes("cloud", element, writer),
        ("", "webmaster") | ("dc", "publisher") => {
            people::set_detail("publisher", &people::from_text(&element.text()), writer)
        }
        ("", "pubdate") => dates::set_text("published", element.text().trim(), writer),
        ("", "expirationdate") => dates::set_text("expired", element.text().trim(), writer),
        ("dcterms", "created") => dates::set_text("created", element.text().trim(), writer),
        ("dcterms", "valid") => set_validity(&element.text(), writer),
        ("", "info") | ("feedburner", "browserfriendly") => set_info(element, around, writer),
        ("admin", "generatoragent") => set_agent(element, writer),
        ("admin", "errorreportsto") => writer.set_if_some("errorreportsto", resource(element)),
        ("cc" | "creativeCommons", "license") => set_license(element, writer),
        ("itunes", _) => set_itunes(&name, element, writer),
        ("media", _) => media::set(&name, element, writer),
        ("psc", "chapters") => media::set_chapters(element, writer),
        ("georss" | "gml", _) | ("", "where") => geo::set(element, writer),
        _ => set_other(&prefix, &name, element, writer)
            .and_then(|()| set_children(element, around, writer, depth)),
    }
}

fn set_children(
    element: &Element,
    around: Around<'_>,
    writer: &Writer<'_, '_>,
    depth: usize,
) -> PyResult<()> {
    children(element).try_for_each(|child| set_element(child, around, writer, depth + 1))
}

/// Returns the elements in an element.
pub(super) fn children(element: &Element) -> impl Iterator<Item = &Element> {
    element.children.iter().filter_map(|child| match child {
        Node::Element(child) => Some(child),
        Node::Text(_) => None,
    })
}

/// Returns the child with this name.
pub(super) fn child<'e>(element: &'e Element, name: &str) -> Option<&'e Element> {
    children(element).find(|child| child.name.eq_ignore_ascii_case(name))
}

/// Sets the text of an element, or its attributes if it has any.
fn set_other(prefix: &str, name: &str, element: &Element, writer: &Writer<'_, '_>) -> PyResult<()> {
    let key = if prefix.is_empty() { name.to_owned() } else { format!("{prefix}_{name}") };
    if element.attributes.is_empty() {
        writer.set(&key, element.text().trim())
    } else {
        set_attributes(&key, element, writer)
    }
}

/// Sets a dictionary of the attributes of an element.
pub(super) fn set_attributes(
    key: &str,
    element: &Element,
    writer: &Writer<'_, '_>,
) -> PyResult<()> {
    writer.set_dictionary(key, &attributes(element, writer)?)
}

/// Returns a dictionary of the attributes of an element.
pub(super) fn attributes<'d, 'py>(
    element: &Element,
    writer: &Writer<'d, 'py>,
) -> PyResult<Writer<'d, 'py>> {
    let filled = writer.dictionary()?;
    for held in &element.attributes {
        filled.set(&attribute_key(held), &held.value)?;
    }
    Ok(filled)
}

fn set_image(element: &Element, around: Around<'_>, writer: &Writer<'_, '_>) -> PyResult<()> {
    let image = writer.dictionary()?;
    for part in children(element) {
        let text = part.text();
        let text = text.trim();
        match part.name.to_ascii_lowercase().as_str() {
            "url" | "href" => image.set("href", text)?,
            size @ ("width" | "height") => {
                image.set_object(size, text.parse::<i64>().unwrap_or_default())?;
            }
            "link" => {
                image.set("link", text)?;
                let link = writer.dictionary()?;
                link.set("rel", "alternate")?;
                link.set("type", "text/html")?;
                link.set("href", text)?;
                image.append("links", &link)?;
            }
            "description" => image.set("subtitle", text)?,
            "title" => {
                let title = feedgate_feed::model::Text::plain(text);
                super::texts::set("title", Some(&title), around, &image)?;
            }
            other => image.set(other, text)?,
        }
    }
    if image.target.is_empty() {
        return Ok(());
    }
    if !image.has("href")?
        && let Some(Ok(held)) = writer.get("image")?.map(|held| held.get_item("href"))
    {
        image.set_object("href", held)?;
    }
    writer.set_dictionary("image", &image)
}

fn set_text_input(element: &Element, writer: &Writer<'_, '_>) -> PyResult<()> {
    let filled = writer.dictionary()?;
    for part in children(element) {
        let text = part.text();
        let text = text.trim();
        match part.name.to_ascii_lowercase().as_str() {
            "description" => filled.set("subtitle", text)?,
            name => filled.set(name, text)?,
        }
    }
    writer.set_dictionary("textinput", &filled)
}

/// Sets what `dcterms:valid` says: `start=2003-12-31;end=2004-01-31`.
fn set_validity(text: &str, writer: &Writer<'_, '_>) -> PyResult<()> {
    for part in text.split(';') {
        if let Some((key @ ("start" | "end"), date)) = part.trim().split_once('=') {
            dates::set_text(&format!("validity_{key}"), date.trim(), writer)?;
        }
    }
    Ok(())
}

fn set_info(element: &Element, around: Around<'_>, writer: &Writer<'_, '_>) -> PyResult<()> {
    use feedgate_feed::model::{Text, TextKind};
    let kind = match attribute(element, "type") {
        Some("html" | "text/html") => TextKind::Html,
        Some("xhtml" | "application/xhtml+xml") => TextKind::Xhtml,
        _ => TextKind::Text,
    };
    let value = element.text().trim().to_owned();
    let lang = attribute(element, "lang").map(str::to_owned);
    let base = attribute(element, "base").map(str::to_owned);
    super::texts::set("info", Some(&Text { kind, value, lang, base }), around, writer)
}

/// Returns the address in `rdf:resource`.
fn resource(element: &Element) -> Option<&str> {
    let is_resource = |held: &&feedgate_feed::model::Attribute| {
        held.name == "resource" && (held.namespace == RDF || held.namespace.is_empty())
    };
    element.attributes.iter().find(is_resource).map(|held| held.value.as_str())
}

fn set_agent(element: &Element, writer: &Writer<'_, '_>) -> PyResult<()> {
    let Some(agent) = resource(element) else { return Ok(()) };
    writer.set("generator", agent)?;
    let detail = writer.dictionary()?;
    detail.set("href", agent)?;
    writer.set_dictionary("generator_detail", &detail)
}

fn set_license(element: &Element, writer: &Writer<'_, '_>) -> PyResult<()> {
    let text = element.text();
    let href = resource(element).unwrap_or(text.trim());
    let link = writer.dictionary()?;
    link.set("rel", "license")?;
    if !href.is_empty() {
        link.set("href", href)?;
    }
    writer.append("links", &link)
}

fn set_itunes(name: &str, element: &Element, writer: &Writer<'_, '_>) -> PyResult<()> {
    let text = element.text();
    let text = text.trim();
    match name {
        "explicit" => writer.set_object("itunes_explicit", text == "true"),
        "block" => writer.set_object("itunes_block", u8::from(text.eq_ignore_ascii_case("yes"))),
        "image" | "link" => {
            let Some(href) = attribute(element, "href").or(attribute(element, "url")) else {
                return Ok(());
            };
            let image = writer.dictionary()?;
            image.set("href", href)?;
            writer.set_dictionary("image", &image)
        }
        "owner" => {
            let text = |name| child(element, name).map(|child| child.text().trim().to_owned());
            let (name, email) = (text("name").unwrap_or_default(), text("email"));
            let owner = feedgate_feed::model::Person { name, email, ..Default::default() };
            people::set_detail("publisher", &owner, writer)
        }
        // These are tags, texts and authors already.
        "category" | "keywords" | "author" | "title" | "summary" => Ok(()),
        "subtitle" => writer.set("subtitle", text),
        _ => set_other("itunes", name, element, writer),
    }
}
