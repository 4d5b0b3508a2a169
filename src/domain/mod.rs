//! What feedgate talks about: plain values and their rules.
//!
//! Nothing here does I/O, reads a clock or knows a setting; `now` is always an
//! argument. The words are those of `docs/glossary.md`.

pub mod account;
pub mod asked;
pub mod backfill;
pub mod collection;
pub mod event;
pub mod feed;
pub mod herd;
pub mod host;
pub mod intent;
pub mod iri;
pub mod limit;
pub mod mark;
pub mod moves;
pub mod novelty;
pub mod offer;
pub mod outage;
pub mod pace;
pub mod page;
pub mod password;
pub mod ping;
pub mod plain;
pub mod poll;
pub mod rank;
pub mod record;
pub mod repair;
pub mod resource;
pub mod robots;
pub mod schedule;
pub mod shown;
pub mod sink;
pub mod source;
pub mod status;
pub mod storage;
pub mod subscription;
pub mod topic;
pub mod upstream;
