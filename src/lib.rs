//! Polls any resource, turns it into Atom, and tells whoever asked.
//!
//! Read the modules in the order they are declared: that is the way a document
//! travels. A module uses those above it, never those below; the test
//! `imports_only_go_down` holds us to that. The picture is in
//! `docs/architecture.md`.
//!
//! Programs that want only the normalizer need one function, [`normalize()`]: bytes in,
//! one Atom document out, no network and no store.

// Ground floor: what we talk about. No I/O, no clock, no settings.
pub mod domain;

// First floor: conversions between bytes and the domain. Still no I/O.
pub mod parse;

pub mod normalize;

pub mod render;

pub mod wire;

// Second floor: the two ways out of the process.
pub mod fetch;

pub mod store;

// Third floor: the loop that keeps work going, what it counts, and what it tells.
pub mod journal;

pub mod metrics;

pub mod worker;

// Fourth floor: what the work is.
pub mod ingest;

pub mod deliver;

pub mod onward;

pub mod upkeep;

pub mod collect;

// Between them: what some doors ask for and some work ends in.
pub mod subscribe;

pub mod upstream;

pub mod backfill;

pub mod publish;

// Fifth floor: the doors others knock on.
pub mod http;

// Top floor: puts the others together.
pub mod config;

pub mod app;

pub mod cli;

mod sourced;

mod normalized;

pub use normalized::{Normalized, normalize};

mod explain;

pub use explain::{Explanation, explain};
