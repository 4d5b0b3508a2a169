//! The values of feeds and entries, as classes of Python. They do not change.

use feedgate_feed::model;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

/// Implements `__repr__` with the fields that are not `None` or empty.
macro_rules! represented {
    ($class:ident: $($field:ident),*) => {
        #[pymethods]
        impl $class {
            fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
                let mut fields = Vec::new();
                for name in [$(stringify!($field)),*] {
                    let value = slf.getattr(name)?;
                    if value.is_truthy()? {
                        fields.push(format!("{name}={}", value.repr()?));
                    }
                }
                Ok(format!("{}({})", stringify!($class), fields.join(", ")))
            }
        }
    };
}

/// A text: plain, HTML or XHTML.
#[pyclass(frozen, get_all, eq, module = "feedgate_feed")]
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Text {
    kind: &'static str,
    value: String,
    language: Option<String>,
    base: Option<String>,
}

/// The content of an entry: a text, inline data of another media type, or an address.
#[pyclass(frozen, get_all, eq, module = "feedgate_feed")]
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Content {
    kind: String,
    value: Option<String>,
    src: Option<String>,
    language: Option<String>,
    base: Option<String>,
}

/// A person.
#[pyclass(frozen, get_all, eq, module = "feedgate_feed")]
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Person {
    name: String,
    email: Option<String>,
    uri: Option<String>,
}

/// A link.
#[pyclass(frozen, get_all, eq, module = "feedgate_feed")]
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Link {
    href: String,
    rel: String,
    #[pyo3(name = "type")]
    mime: Option<String>,
    hreflang: Option<String>,
    title: Option<String>,
    length: Option<u64>,
}

/// A category.
#[pyclass(frozen, get_all, eq, module = "feedgate_feed")]
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Category {
    term: String,
    scheme: Option<String>,
    label: Option<String>,
}

/// The software that generated a feed.
#[pyclass(frozen, get_all, eq, module = "feedgate_feed")]
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Generator {
    name: String,
    uri: Option<String>,
    version: Option<String>,
}

/// What was wrong with a document and was repaired, or was adapted.
#[pyclass(frozen, get_all, eq, module = "feedgate_feed")]
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Repair {
    code: &'static str,
    detail: String,
    is_adaptation: bool,
}

/// An element without a counterpart in Atom, with all its content.
#[pyclass(frozen, eq, module = "feedgate_feed")]
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Element(model::Element);

represented!(Text: kind, value, language, base);
represented!(Content: kind, value, src, language, base);
represented!(Person: name, email, uri);
represented!(Link: href, rel, type, hreflang, title, length);
represented!(Category: term, scheme, label);
represented!(Generator: name, uri, version);
represented!(Repair: code, detail, is_adaptation);

#[pymethods]
impl Element {
    #[getter]
    fn namespace(&self) -> &str {
        &self.0.namespace
    }

    #[getter]
    fn prefix(&self) -> &str {
        &self.0.prefix
    }

    #[getter]
    fn name(&self) -> &str {
        &self.0.name
    }

    #[getter]
    fn text(&self) -> String {
        self.0.text()
    }

    /// Names of attributes in a namespace have its prefix.
    #[getter]
    fn attributes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let attributes = PyDict::new(py);
        for attribute in &self.0.attributes {
            attributes.set_item(attribute_name(attribute), &attribute.value)?;
        }
        Ok(attributes)
    }

    /// Texts and elements, in order.
    #[getter]
    fn children<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let children = PyList::empty(py);
        for child in &self.0.children {
            match child {
                model::Node::Text(text) => children.append(text)?,
                model::Node::Element(element) => children.append(Element(element.clone()))?,
            }
        }
        Ok(children)
    }

    fn __repr__(&self) -> String {
        let Element(model::Element { prefix, name, .. }) = self;
        let colon = if prefix.is_empty() { "" } else { ":" };
        format!("Element({prefix}{colon}{name}, text={:?})", self.0.text())
    }
}

/// Returns the name of an attribute, with its prefix.
pub(crate) fn attribute_name(attribute: &model::Attribute) -> String {
    if attribute.prefix.is_empty() {
        attribute.name.clone()
    } else {
        format!("{}:{}", attribute.prefix, attribute.name)
    }
}

impl From<&model::Element> for Element {
    fn from(element: &model::Element) -> Element {
        Element(element.clone())
    }
}

impl From<&model::Text> for Text {
    fn from(text: &model::Text) -> Text {
        Text {
            kind: kind(text.kind),
            value: text.value.clone(),
            language: text.lang.clone(),
            base: text.base.clone(),
        }
    }
}

impl From<&model::Content> for Content {
    fn from(content: &model::Content) -> Content {
        let none =
            Content { kind: String::new(), value: None, src: None, language: None, base: None };
        match content {
            model::Content::Text(text) => Content {
                kind: kind(text.kind).to_owned(),
                value: Some(text.value.clone()),
                language: text.lang.clone(),
                base: text.base.clone(),
                ..none
            },
            model::Content::Media { mime, value } => {
                Content { kind: mime.clone(), value: Some(value.clone()), ..none }
            }
            model::Content::Xml { mime, value, base } => {
                let (kind, value) = (mime.clone(), Some(value.clone()));
                Content { kind, value, base: base.clone(), ..none }
            }
            model::Content::Src { mime, href } => {
                Content { kind: mime.clone().unwrap_or_default(), src: Some(href.clone()), ..none }
            }
        }
    }
}

/// Returns the `type` of a text construct.
fn kind(kind: model::TextKind) -> &'static str {
    match kind {
        model::TextKind::Text => "text",
        model::TextKind::Html => "html",
        model::TextKind::Xhtml => "xhtml",
    }
}

impl From<&model::Person> for Person {
    fn from(person: &model::Person) -> Person {
        let model::Person { name, email, uri, .. } = person.clone();
        Person { name, email, uri }
    }
}

impl From<&model::Link> for Link {
    fn from(link: &model::Link) -> Link {
        Link {
            href: link.href.clone(),
            rel: link.rel.clone(),
            mime: link.mime.clone(),
            hreflang: link.hreflang.clone(),
            title: link.title.clone(),
            length: link.length.as_ref().and_then(|length| length.trim().parse().ok()),
        }
    }
}

impl From<&model::Category> for Category {
    fn from(category: &model::Category) -> Category {
        let model::Category { term, scheme, label, .. } = category.clone();
        Category { term, scheme, label }
    }
}

impl From<&model::Generator> for Generator {
    fn from(generator: &model::Generator) -> Generator {
        let model::Generator { name, uri, version } = generator.clone();
        Generator { name, uri, version }
    }
}

impl From<&feedgate_feed::Repair> for Repair {
    fn from(repair: &feedgate_feed::Repair) -> Repair {
        Repair {
            code: repair.code.as_str(),
            detail: repair.detail.clone(),
            is_adaptation: repair.code.is_adaptation(),
        }
    }
}
