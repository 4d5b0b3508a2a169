//! Media RSS and the chapters of podcasts.

use feedgate_feed::model::Element;
use pyo3::prelude::*;
use pyo3::types::PyDelta;

use super::dictionary::Writer;
use super::elements::{attributes, children};
use super::entry::add_tag;
use super::namespaces::{OWN, attribute, is_in, names};

/// The scheme of categories without one.
const SCHEME: &str = "http://search.yahoo.com/mrss/category_schema";

/// How deep groups are read.
const DEEPEST: usize = 4;

/// Sets an element of Media RSS.
pub(super) fn set(name: &str, element: &Element, writer: &Writer<'_, '_>) -> PyResult<()> {
    set_element(name, element, writer, 0)
}

fn set_element(
    name: &str,
    element: &Element,
    writer: &Writer<'_, '_>,
    depth: usize,
) -> PyResult<()> {
    let text = element.text();
    let text = text.trim();
    match name {
        "content" | "thumbnail" | "credit" => {
            let filled = attributes(element, writer)?;
            match name {
                "credit" if !text.is_empty() => filled.set("content", text)?,
                "thumbnail" if !text.is_empty() && !filled.has("url")? => {
                    filled.set("url", text)?
                }
                _ => {}
            }
            writer.append(&format!("media_{name}"), &filled)?;
        }
        "rating" | "license" | "restriction" | "player" => {
            let key = format!("media_{name}");
            if !writer.has(&key)? {
                let filled = attributes(element, writer)?;
                match name {
                    "restriction" if !text.is_empty() => {
                        let words: Vec<String> =
                            text.split_whitespace().map(str::to_ascii_lowercase).collect();
                        filled.set_object("content", words)?;
                    }
                    _ if !text.is_empty() || name == "player" => filled.set("content", text)?,
                    _ => {}
                }
                writer.set_dictionary(&key, &filled)?;
            }
        }
        "category" => {
            let scheme = attribute(element, "scheme").unwrap_or(SCHEME);
            add_tag(text, Some(scheme), attribute(element, "label"), writer)?;
        }
        "keywords" => {
            for term in text.split(',').map(str::trim).filter(|term| !term.is_empty()) {
                add_tag(term, None, None, writer)?;
            }
        }
        "description" if !writer.has("summary")? && !text.is_empty() => {
            writer.set("summary", text)?
        }
        "title" if !writer.has("title")? && !text.is_empty() => writer.set("title", text)?,
        "group" | "title" | "description" => {}
        _ if element.attributes.is_empty() => writer.set(&format!("media_{name}"), text)?,
        _ => writer.set_dictionary(&format!("media_{name}"), &attributes(element, writer)?)?,
    }
    if depth == DEEPEST {
        return Ok(());
    }
    for child in children(element) {
        let (prefix, name) = names(child);
        if prefix == "media" {
            set_element(&name, child, writer, depth + 1)?;
        } else if is_in(child, OWN) {
            // Later elements of Media RSS, which the normalizer encloses.
            set_element("group", child, writer, depth + 1)?;
        }
    }
    Ok(())
}

/// Sets the first list of chapters.
pub(super) fn set_chapters(element: &Element, writer: &Writer<'_, '_>) -> PyResult<()> {
    if writer.has("psc_chapters")? {
        return Ok(());
    }
    let list = attributes(element, writer)?;
    list.list("chapters")?;
    for chapter in children(element).filter(|child| child.name.eq_ignore_ascii_case("chapter")) {
        let filled = attributes(chapter, writer)?;
        let start = attribute(chapter, "start").and_then(milliseconds);
        match start {
            Some(start) => {
                let (seconds, rest) = (start / 1000, start % 1000);
                let delta = PyDelta::new(writer.py(), 0, seconds, rest * 1000, true)?;
                filled.set_object("start_parsed", delta)?;
            }
            None => filled.set_object("start_parsed", writer.py().None())?,
        }
        list.append("chapters", &filled)?;
    }
    writer.set_dictionary("psc_chapters", &list)
}

/// Reads `00:03:50.270` or `03:50`.
fn milliseconds(text: &str) -> Option<i32> {
    let (clock, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let fraction =
        fraction.get(..3).map_or_else(|| fraction.parse().ok(), |three| three.parse().ok());
    let parts: Option<Vec<i32>> = clock.split(':').map(|part| part.parse().ok()).collect();
    let parts = parts.filter(|parts| (2..=3).contains(&parts.len()))?;
    let seconds =
        parts.iter().try_fold(0_i32, |sum, part| sum.checked_mul(60)?.checked_add(*part))?;
    seconds.checked_mul(1000)?.checked_add(fraction?)
}
