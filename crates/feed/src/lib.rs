//! Reads any feed, sound or broken, and makes one Atom or JSON document of it.
//!
#![doc = include_str!("../README.md")]

pub mod double_encoding;
pub mod iri;
pub mod link_header;
pub mod model;
pub mod parse;
pub mod passes;
pub mod render;
pub mod repair;
pub mod text_extraction;

#[cfg(feature = "html")]
pub mod documents;

mod body;
mod context;
#[cfg(any(feature = "atom_syndication", feature = "feed-rs"))]
mod convert;
mod explain;
mod hex;
mod normalized;
mod own_elements;
#[cfg(feature = "serde")]
mod serde_words;
mod short_list;
mod trace_id;

pub use body::Body;
pub use context::Context;
pub use explain::{Explanation, explain};
pub use model::{Entry, Feed};
pub use normalized::{Normalized, normalize};
pub use parse::NotAFeed;
pub use repair::Repair;

pub use chrono;
pub use serde_json;
pub use url;
