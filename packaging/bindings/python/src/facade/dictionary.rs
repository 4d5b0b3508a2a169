//! Writing into a dictionary of feedparser's class.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};

use super::Document;

/// A dictionary that is being filled.
pub(super) struct Writer<'d, 'py> {
    pub(super) document: &'d Document,
    pub(super) target: Bound<'py, PyDict>,
}

impl<'d, 'py> Writer<'d, 'py> {
    pub(super) fn py(&self) -> Python<'py> {
        self.target.py()
    }

    /// Returns a writer for a new dictionary.
    pub(super) fn dictionary(&self) -> PyResult<Writer<'d, 'py>> {
        let made = self.document.dictionary.bind(self.py()).call0()?;
        Ok(Writer { document: self.document, target: made.cast_into()? })
    }

    /// Returns a text or an address as an object of Python.
    pub(super) fn text(&self, value: &str) -> Bound<'py, PyString> {
        PyString::new(self.py(), &self.document.relative(value))
    }

    /// Sets a text or an address.
    pub(super) fn set(&self, key: &str, value: &str) -> PyResult<()> {
        self.set_object(key, self.text(value))
    }

    /// Sets a text or an address, `None` included.
    pub(super) fn set_or_none(&self, key: &str, value: Option<&str>) -> PyResult<()> {
        match value {
            Some(value) => self.set(key, value),
            None => self.set_object(key, self.py().None()),
        }
    }

    /// Sets a text or an address, if there is one.
    pub(super) fn set_if_some(&self, key: &str, value: Option<&str>) -> PyResult<()> {
        value.map_or(Ok(()), |value| self.set(key, value))
    }

    /// Sets any value.
    pub(super) fn set_object(&self, key: &str, value: impl IntoPyObject<'py>) -> PyResult<()> {
        self.target.set_item(PyString::intern(self.py(), key), value)
    }

    /// Sets the dictionary that another writer filled.
    pub(super) fn set_dictionary(&self, key: &str, filled: &Writer<'_, 'py>) -> PyResult<()> {
        self.set_object(key, &filled.target)
    }

    /// Appends a dictionary to the list with this key.
    pub(super) fn append(&self, key: &str, filled: &Writer<'_, 'py>) -> PyResult<()> {
        self.list(key)?.append(&filled.target)
    }

    /// Returns the list with this key, which is made if there is none.
    pub(super) fn list(&self, key: &str) -> PyResult<Bound<'py, PyList>> {
        if let Some(list) = self.get(key)? {
            return Ok(list.cast_into()?);
        }
        let list = PyList::empty(self.py());
        self.set_object(key, &list)?;
        Ok(list)
    }

    /// Returns a value that was set.
    pub(super) fn get(&self, key: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.target.get_item(PyString::intern(self.py(), key))
    }

    /// Returns whether a value was set.
    pub(super) fn has(&self, key: &str) -> PyResult<bool> {
        Ok(self.get(key)?.is_some())
    }
}
