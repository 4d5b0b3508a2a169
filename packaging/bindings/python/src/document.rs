//! A feed and its entries, as classes of Python. Both refer to the one feed that was read; the
//! attributes become Python objects when they are asked for.

use std::sync::Arc;

use feedgate_feed::chrono::{DateTime, FixedOffset};
use feedgate_feed::{Normalized, model, serde_json};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyTuple;

use crate::values::{Category, Content, Element, Generator, Link, Person, Repair, Text};

/// A feed, normalized: each entry has an id, a date and absolute addresses.
#[pyclass(frozen, module = "feedgate_feed")]
pub(crate) struct Feed {
    normalized: Arc<Normalized>,
    entries: PyOnceLock<Py<PyTuple>>,
}

/// An entry of a feed.
#[pyclass(frozen, module = "feedgate_feed")]
#[derive(Debug)]
pub(crate) struct Entry {
    normalized: Arc<Normalized>,
    index: usize,
}

/// Converts all values of a list.
fn all<'m, M, P: From<&'m M>>(values: &'m [M]) -> Vec<P> {
    values.iter().map(P::from).collect()
}

/// Returns the address of the first page among the links.
fn page(links: &[model::Link]) -> Option<&str> {
    links.iter().find(|link| link.rel == "alternate").map(|link| link.href.as_str())
}

impl Feed {
    pub(crate) fn new(normalized: Normalized) -> Feed {
        Feed { normalized: Arc::new(normalized), entries: PyOnceLock::new() }
    }

    fn model(&self) -> &model::Feed {
        self.normalized.feed()
    }
}

#[pymethods]
impl Feed {
    /// The format of the document, such as `rss2.0`.
    #[getter]
    fn format(&self) -> &'static str {
        self.model().format.as_str()
    }

    #[getter]
    fn id(&self) -> &str {
        &self.model().id
    }

    #[getter]
    fn title(&self) -> Option<Text> {
        self.model().title.as_ref().map(Text::from)
    }

    #[getter]
    fn subtitle(&self) -> Option<Text> {
        self.model().subtitle.as_ref().map(Text::from)
    }

    #[getter]
    fn rights(&self) -> Option<Text> {
        self.model().rights.as_ref().map(Text::from)
    }

    #[getter]
    fn updated(&self) -> Option<DateTime<FixedOffset>> {
        self.model().updated
    }

    /// The address of the web site.
    #[getter]
    fn link(&self) -> Option<&str> {
        page(&self.model().links)
    }

    #[getter]
    fn links(&self) -> Vec<Link> {
        all(&self.model().links)
    }

    #[getter]
    fn authors(&self) -> Vec<Person> {
        all(&self.model().authors)
    }

    #[getter]
    fn contributors(&self) -> Vec<Person> {
        all(&self.model().contributors)
    }

    #[getter]
    fn categories(&self) -> Vec<Category> {
        all(&self.model().categories)
    }

    #[getter]
    fn generator(&self) -> Option<Generator> {
        self.model().generator.as_ref().map(Generator::from)
    }

    #[getter]
    fn icon(&self) -> Option<&str> {
        self.model().icon.as_deref()
    }

    #[getter]
    fn logo(&self) -> Option<&str> {
        self.model().logo.as_deref()
    }

    #[getter]
    fn language(&self) -> Option<&str> {
        self.model().lang.as_deref()
    }

    /// The elements without a counterpart in Atom.
    #[getter]
    fn extensions(&self) -> Vec<Element> {
        all(&self.model().extensions)
    }

    /// The entries, in the order of the document.
    #[getter]
    fn entries<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let entries = self.entries.get_or_try_init(py, || {
            let normalized = &self.normalized;
            let indexes = 0..self.model().entries.len();
            let entries = indexes.map(|index| Entry { normalized: Arc::clone(normalized), index });
            PyTuple::new(py, entries.collect::<Vec<_>>()).map(Bound::unbind)
        })?;
        Ok(entries.bind(py).clone())
    }

    /// What was wrong with the document and was repaired, and what was adapted.
    #[getter]
    fn repairs(&self) -> Vec<Repair> {
        all(self.normalized.repairs())
    }

    /// How unreliable the feed is, from 0 to 1.
    #[getter]
    fn bozo_rank(&self) -> f64 {
        self.normalized.bozo_rank()
    }

    /// Returns the feed without anything in its texts that could act in a page.
    fn sanitized(&self, py: Python<'_>) -> Feed {
        let normalized = py.detach(|| {
            let mut normalized = Normalized::clone(&self.normalized);
            normalized.sanitize();
            normalized
        });
        Feed::new(normalized)
    }

    /// Returns the feed as an Atom document.
    fn to_atom(&self, py: Python<'_>) -> String {
        py.detach(|| self.normalized.to_atom())
    }

    /// Returns the feed as a JSON document with the field names of Superfeedr.
    fn to_json(&self, py: Python<'_>) -> String {
        let json = || self.normalized.to_json();
        py.detach(|| serde_json::Value::to_string(&json()))
    }

    fn __len__(&self) -> usize {
        self.model().entries.len()
    }

    fn __repr__(&self) -> String {
        format!("<Feed {:?}, {} entries>", self.model().id, self.model().entries.len())
    }
}

impl Entry {
    fn model(&self) -> &model::Entry {
        &self.normalized.feed().entries[self.index]
    }
}

#[pymethods]
impl Entry {
    #[getter]
    fn id(&self) -> &str {
        &self.model().id
    }

    #[getter]
    fn title(&self) -> Option<Text> {
        self.model().title.as_ref().map(Text::from)
    }

    #[getter]
    fn summary(&self) -> Option<Text> {
        self.model().summary.as_ref().map(Text::from)
    }

    #[getter]
    fn content(&self) -> Option<Content> {
        self.model().content.as_ref().map(Content::from)
    }

    #[getter]
    fn rights(&self) -> Option<Text> {
        self.model().rights.as_ref().map(Text::from)
    }

    #[getter]
    fn published(&self) -> Option<DateTime<FixedOffset>> {
        self.model().published
    }

    #[getter]
    fn updated(&self) -> Option<DateTime<FixedOffset>> {
        self.model().updated
    }

    /// Whether the source has no date.
    #[getter]
    fn is_date_assumed(&self) -> bool {
        self.model().date_assumed
    }

    /// The address of the page.
    #[getter]
    fn link(&self) -> Option<&str> {
        page(&self.model().links)
    }

    #[getter]
    fn links(&self) -> Vec<Link> {
        all(&self.model().links)
    }

    #[getter]
    fn enclosures(&self) -> Vec<Link> {
        let links = self.model().links.iter();
        links.filter(|link| link.rel == "enclosure").map(Link::from).collect()
    }

    #[getter]
    fn authors(&self) -> Vec<Person> {
        all(&self.model().authors)
    }

    #[getter]
    fn contributors(&self) -> Vec<Person> {
        all(&self.model().contributors)
    }

    #[getter]
    fn categories(&self) -> Vec<Category> {
        all(&self.model().categories)
    }

    #[getter]
    fn language(&self) -> Option<&str> {
        self.model().lang.as_deref()
    }

    /// The elements without a counterpart in Atom.
    #[getter]
    fn extensions(&self) -> Vec<Element> {
        all(&self.model().extensions)
    }

    fn __repr__(&self) -> String {
        format!("<Entry {:?}>", self.model().id)
    }
}
