//! Output of feeds and entries as Atom, RSS, JSON Feed, JSON and OPML, and XML in general.

pub mod atom;
pub mod json;
pub mod json_feed;
pub mod opml;
pub mod rss;
pub mod xml;

mod categories;
mod element;
mod entry_values;
mod fragment;
mod names;
mod status_report;
mod table;

pub use status_report::StatusReport;
