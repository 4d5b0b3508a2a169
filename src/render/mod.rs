//! Feed and log → Atom, JSON, archive documents, changes.xml.

pub mod archive;
pub mod atom;
pub mod changes;
pub mod json;

mod element;
mod fragment;
mod names;
mod table;
mod xml;
