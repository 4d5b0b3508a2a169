//! Feed and log → Atom, JSON, archive documents.

pub mod atom;
pub mod json;
