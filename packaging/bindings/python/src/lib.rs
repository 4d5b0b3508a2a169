//! The native half of the Python package `feedgate_feed`: reading a document, and the classes of
//! its result. The façade with feedparser's names is in [`facade`] and in
//! `feedgate_feed/feedparser.py`.
//!
//! Documents are read without holding the GIL, and values become Python objects when they are
//! asked for.

mod document;
mod facade;
mod values;

use feedgate_feed::url::Url;
use feedgate_feed::{Context, NotAFeed};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;

pyo3::create_exception!(
    feedgate_feed,
    NotAFeedError,
    PyValueError,
    "The document is not a feed; the message says what it looks like."
);

/// Reads a feed of any format, sound or broken.
#[pyfunction]
#[pyo3(signature = (data, url, *, headers = Vec::new()))]
fn parse(
    py: Python<'_>,
    data: &Bound<'_, PyAny>,
    url: &str,
    headers: Vec<(String, String)>,
) -> PyResult<document::Feed> {
    let context = context(url, headers)?;
    let bytes: PyBackedBytes = data.extract()?;
    let normalized = py.detach(|| feedgate_feed::normalize(&bytes, &context));
    Ok(document::Feed::new(normalized.map_err(not_a_feed)?))
}

fn context(url: &str, headers: Vec<(String, String)>) -> PyResult<Context> {
    let url = Url::parse(url).map_err(|err| PyValueError::new_err(format!("{url:?}: {err}")))?;
    let headers =
        headers.into_iter().map(|(name, value)| (name.to_ascii_lowercase(), value)).collect();
    Ok(Context { headers, ..Context::new(url) })
}

#[expect(clippy::needless_pass_by_value, reason = "it is handed to map_err")]
fn not_a_feed(err: NotAFeed) -> PyErr {
    NotAFeedError::new_err(err.to_string())
}

/// Returns whether bytes are UTF-8.
#[pyfunction]
fn is_utf8(data: &Bound<'_, PyBytes>) -> bool {
    std::str::from_utf8(data.as_bytes()).is_ok()
}

/// Parsing allocates many small pieces, which the allocator of the system does slowly.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The module `feedgate_feed._native`.
#[pymodule]
mod _native {
    #[pymodule_export]
    use super::NotAFeedError;
    #[pymodule_export]
    use super::document::{Entry, Feed};
    #[pymodule_export]
    use super::facade::Document;
    #[pymodule_export]
    use super::values::{Category, Content, Element, Generator, Link, Person, Repair, Text};
    #[pymodule_export]
    use super::{is_utf8, parse};
}
