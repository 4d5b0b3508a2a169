//! `feedgate export` and `feedgate import`: the state of a gateway as lines of JSON.
//!
//! The first line is a header; each further line is one row of a table, in the order of the list that
//! copies use (`copy/tables.rs`), so that a row follows those that it refers to. What always holds:
//!
//! * The logs are part of an export, because cursors are numbers in them. A subscriber of the importing
//!   gateway receives what it had not received when the export was made, and then what is new.
//! * The numbers of rows follow from those in the file and from the header, so importing a file again
//!   changes nothing.
//! * A subscription whose secret was left out is paused: unsigned notifications would be acknowledged by
//!   subscribers that drop them.

mod contents;
pub(crate) mod error;
pub(crate) mod export;
mod header;
pub(crate) mod import;
mod import_numbers;
mod insertion;
mod merge;
pub(crate) mod report;
mod row_json;
