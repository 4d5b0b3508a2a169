//! The two databases, and how a statement gets there and back.

pub(crate) mod claims;
pub(crate) mod error;
pub(crate) mod lease;
pub(crate) mod migrate;
pub(crate) mod postgres;
pub(crate) mod sql;
pub(crate) mod sqlite;
pub(crate) mod tx;
