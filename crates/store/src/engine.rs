//! The two databases, and how statements and rows are passed to and from them.

pub(crate) mod batcher;
pub(crate) mod claims;
pub(crate) mod columns;
pub(crate) mod envelope;
pub(crate) mod error;
pub(crate) mod lease;
pub(crate) mod migrate;
pub(crate) mod operation;
pub(crate) mod postgres;
pub(crate) mod row;
pub(crate) mod sql;
pub(crate) mod sqlite;
pub(crate) mod tx;
