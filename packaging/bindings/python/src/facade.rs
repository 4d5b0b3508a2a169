//! Feeds and entries with the names of feedparser, for `feedgate_feed/feedparser.py`.
//!
//! ```text
//! normalized feed ──► fill_feed, fill_entry ──► dictionaries of the class FeedParserDict
//! ```
//!
//! A dictionary is filled when it is first used. Texts are sanitized then, each entry on its own.

mod dates;
mod dictionary;
mod elements;
mod entry;
mod geo;
mod head;
mod media;
mod namespaces;
mod people;
mod texts;
mod written_dates;

use std::borrow::Cow;
use std::sync::{Mutex, MutexGuard, PoisonError};

use feedgate_feed::model::{Entry, Feed, FeedFormat};
use feedgate_feed::url::Url;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyDict;

use dictionary::Writer;
use written_dates::WrittenDates;

/// The base of documents whose address is not known. What was relative becomes relative again.
const UNKNOWN_BASE: &str = "http://relative.invalid/-/-/";

/// The parts of [`UNKNOWN_BASE`], each with what a reference begins with that leads there.
const RELATIVE: [(&str, &str); 3] =
    [(UNKNOWN_BASE, ""), ("http://relative.invalid/-/", "../"), ("http://relative.invalid/", "/")];

/// A document that was read, for the façade.
#[pyclass(frozen, module = "feedgate_feed._native")]
#[derive(Debug)]
pub(crate) struct Document {
    /// The feed without its entries.
    head: Feed,
    /// The entries that were not used yet.
    entries: Mutex<Vec<Option<Entry>>>,
    /// The class of all dictionaries.
    dictionary: Py<PyAny>,
    /// `time.struct_time`.
    struct_time: Py<PyAny>,
    sanitizes: bool,
    /// The base of the document, if it is known.
    base: Option<Url>,
    /// The dates as the document has them.
    written_dates: WrittenDates,
}

#[pymethods]
impl Document {
    /// Reads a document. Without `url`, relative addresses stay relative.
    #[new]
    #[pyo3(signature = (data, url, headers, dictionary, struct_time, sanitize))]
    fn read(
        py: Python<'_>,
        data: &Bound<'_, PyAny>,
        url: Option<&str>,
        headers: Vec<(String, String)>,
        dictionary: Py<PyAny>,
        struct_time: Py<PyAny>,
        sanitize: bool,
    ) -> PyResult<Document> {
        let context = crate::context(url.unwrap_or(UNKNOWN_BASE), headers)?;
        let bytes: PyBackedBytes = data.extract()?;
        let (normalized, written_dates) =
            py.detach(|| (feedgate_feed::normalize(&bytes, &context), WrittenDates::find(&bytes)));
        let mut head = normalized.map_err(crate::not_a_feed)?.into_feed();
        let entries = std::mem::take(&mut head.entries).into_iter().map(Some).collect();
        Ok(Document {
            head,
            entries: Mutex::new(entries),
            dictionary,
            struct_time,
            sanitizes: sanitize,
            base: Some(context.base()).filter(|base| base.as_str() != UNKNOWN_BASE),
            written_dates,
        })
    }

    /// The format of the document, such as `rss2.0`.
    #[getter]
    fn format(&self) -> &'static str {
        self.head.format.as_str()
    }

    /// The code and the detail of each fault.
    #[getter]
    fn faults(&self) -> Vec<(&'static str, &str)> {
        let faults = self.head.repairs.iter().filter(|repair| !repair.code.is_adaptation());
        faults.map(|repair| (repair.code.as_str(), repair.detail.as_str())).collect()
    }

    fn __len__(&self) -> usize {
        self.entries().len()
    }

    /// Fills the dictionary of the feed.
    fn fill_feed(&self, target: &Bound<'_, PyDict>) -> PyResult<()> {
        head::fill(&self.head, &self.writer(target))
    }

    /// Fills the dictionary of the entry with this number. Each is filled once.
    fn fill_entry(&self, index: usize, target: &Bound<'_, PyDict>) -> PyResult<()> {
        let entry = self.entries().get_mut(index).and_then(Option::take);
        entry.map_or(Ok(()), |entry| entry::fill(&self.head, entry, &self.writer(target)))
    }
}

impl Document {
    fn entries(&self) -> MutexGuard<'_, Vec<Option<Entry>>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn writer<'d, 'py>(&'d self, target: &'d Bound<'py, PyDict>) -> Writer<'d, 'py> {
        Writer { document: self, target: target.clone() }
    }

    /// Returns whether the document is of RSS, whose dates and defaults differ from those of Atom.
    fn is_rss(&self) -> bool {
        self.format().starts_with("rss") || self.head.format == FeedFormat::Rdf
    }

    /// Returns a value with the addresses in it as the source has them, if its base is not known.
    fn relative<'v>(&self, value: &'v str) -> Cow<'v, str> {
        if self.base.is_some() || !value.contains(RELATIVE[2].0) {
            return Cow::Borrowed(value);
        }
        let replaced = RELATIVE
            .iter()
            .fold(value.to_owned(), |value, (base, reference)| value.replace(base, reference));
        Cow::Owned(replaced)
    }
}
