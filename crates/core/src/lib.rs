//! The domain types of feedgate and their rules.
//!
//! This crate does no I/O, and reads neither the clock nor settings: `now` is always a parameter.
//! The terms are those of `docs/contributing/glossary.md`.

pub mod account;
pub mod address_rules;
pub mod archive_identity;
pub mod attempt;
pub mod backfill;
pub mod backlog_smoothing;
pub mod callback_slots;
pub mod change_detection;
pub mod claim;
pub mod collection;
pub mod daily_counts;
pub mod delivery_health;
pub mod document_format;
pub mod event;
pub mod host;
pub mod host_groups;
pub mod idempotency;
pub mod intent;
pub mod moves;
pub mod node;
pub mod outage_detector;
pub mod own_archive;
pub mod own_document;
pub mod page;
pub mod password;
pub mod ping;
pub mod ping_forwarding;
pub mod poll;
pub mod poll_times;
pub mod polling;
pub mod polling_hints;
pub mod publisher_secrets;
pub mod query;
pub mod rank;
pub mod record;
pub mod redaction;
pub mod registrant;
pub mod resource;
pub mod resource_id;
pub mod schedule;
pub mod search;
pub mod served_hosts;
pub mod signing;
pub mod signing_key;
pub mod status;
pub mod store;
pub mod stored_entry;
pub mod stored_file;
pub mod subscription;
pub mod topic;
pub mod track;
pub mod upstream;
pub mod visibility;
mod words;
