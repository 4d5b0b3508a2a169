//! Polls any resource, turns it into Atom, and tells whoever asked.
//!
//! The map is in `docs/contributing/architecture.md`. Programs that want only the normalizer use the
//! crate `feedgate-feed`.

pub mod byte_cache;
pub mod clock;
pub mod disk_space;
pub mod document_budget;
mod fair_shares;
mod lane_slots;
pub mod net;

pub mod event_log;
pub mod fetch_traces;
pub mod head_watch;
pub mod metrics;
mod site_icons;
mod verification_limits;

pub mod jobs;

pub mod authoring;
pub mod subscriptions;
pub mod tokens;

pub mod http;

pub mod app;
pub mod cli;
pub mod config;
