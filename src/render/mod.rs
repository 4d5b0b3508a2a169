//! Feed and log → Atom, JSON, archive documents, changes.xml, OPML.

pub mod archive;
pub mod atom;
pub mod changes;
pub mod json;
pub mod opml;

mod element;
mod fragment;
mod names;
mod table;
mod xml;
