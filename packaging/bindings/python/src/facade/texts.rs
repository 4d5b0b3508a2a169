//! Text constructs: the text under its name, and its type, language and base under `_detail`.

use feedgate_feed::model::{Content, Text, TextKind};
use pyo3::prelude::*;
use pyo3::types::PyString;

use super::dictionary::Writer;

/// The language and base of the element around a text.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Around<'f> {
    pub(super) lang: Option<&'f str>,
    pub(super) base: Option<&'f str>,
}

impl<'f> Around<'f> {
    /// Returns the language and base of an element inside. An empty language ends that around it.
    pub(super) fn inside(self, lang: Option<&'f str>, base: Option<&'f str>) -> Around<'f> {
        let lang = lang.or(self.lang).filter(|lang| !lang.is_empty());
        Around { lang, base: base.or(self.base) }
    }
}

/// Sets a text and its detail.
pub(super) fn set(
    key: &str,
    text: Option<&Text>,
    around: Around<'_>,
    writer: &Writer<'_, '_>,
) -> PyResult<()> {
    let Some(text) = text else { return Ok(()) };
    let value = writer.text(&text.value);
    writer.set_object(key, &value)?;
    let detail = detail(media_type(text.kind), &value, inside(text, around), writer)?;
    writer.set_dictionary(&format!("{key}_detail"), &detail)
}

/// Appends the content of an entry, which is its summary too if it has none. `binary` is the media
/// type of a text that was decoded.
pub(super) fn set_content(
    content: &Content,
    binary: Option<&str>,
    around: Around<'_>,
    writer: &Writer<'_, '_>,
) -> PyResult<()> {
    let empty = String::new();
    let (mime, value, around, src) = match content {
        Content::Text(text) => (media_type(text.kind), &text.value, inside(text, around), None),
        Content::Media { mime, value } => (mime.as_str(), value, around, None),
        Content::Xml { mime, value, base } => {
            (mime.as_str(), value, around.inside(None, base.as_deref()), None)
        }
        Content::Src { mime, href } => {
            (mime.as_deref().unwrap_or("text/plain"), &empty, around, Some(href))
        }
    };
    let mime = binary.unwrap_or(mime);
    let value = writer.text(value);
    let detail = detail(mime, &value, around, writer)?;
    if let Some(src) = src {
        detail.set("src", src)?;
    }
    writer.append("content", &detail)?;
    let is_text = matches!(mime, "text/plain" | "text/html" | "application/xhtml+xml");
    if is_text && !writer.has("summary")? {
        writer.set_object("summary", &value)?;
    }
    Ok(())
}

fn detail<'d, 'py>(
    mime: &str,
    value: &Bound<'py, PyString>,
    around: Around<'_>,
    writer: &Writer<'d, 'py>,
) -> PyResult<Writer<'d, 'py>> {
    let detail = writer.dictionary()?;
    detail.set("type", mime)?;
    detail.set_or_none("language", around.lang)?;
    detail.set("base", around.base.unwrap_or_default())?;
    detail.set_object("value", value)?;
    Ok(detail)
}

fn inside<'t>(text: &'t Text, around: Around<'t>) -> Around<'t> {
    around.inside(text.lang.as_deref(), text.base.as_deref())
}

/// Returns the media type of a text construct.
fn media_type(kind: TextKind) -> &'static str {
    match kind {
        TextKind::Text => "text/plain",
        TextKind::Html => "text/html",
        TextKind::Xhtml => "application/xhtml+xml",
    }
}
