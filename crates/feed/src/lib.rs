//! Reads any feed, sound or broken, and makes one Atom or JSON document of it.

pub mod body;
pub mod context;
pub mod discovery;
pub mod explain;
pub mod iri;
pub mod model;
pub mod normalized;
pub mod parse;
pub mod passes;
pub mod render;
pub mod repair;
pub mod status_report;
pub mod text_extraction;
pub mod tombstone;
pub mod trace_id;

pub use explain::{Explanation, explain};
pub use normalized::{Normalized, normalize};
