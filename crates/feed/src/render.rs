//! Output of feeds and entries as Atom, JSON and OPML, and XML in general.

pub mod atom;
pub mod json;
pub mod opml;
pub mod xml;

mod element;
mod fragment;
mod names;
mod status_report;
mod table;

pub use status_report::StatusReport;
