//! Feed and log → Atom, JSON, archive documents, changes.xml, OPML.

pub mod atom;
pub mod json;
pub mod opml;

mod element;
mod fragment;
mod names;
mod table;
pub mod xml;
