//! What the tests share: feedgate itself, and the other people it talks to.
//!
//! feedgate, its databases and every socket are real; only publishers and subscribers
//! are made up. Whoever waits, waits for a condition, and gives up after [`PATIENCE`].

pub(crate) mod browser;
pub(crate) mod changed;
pub(crate) mod feeds;
pub(crate) mod gateway;
pub(crate) mod origin;
pub(crate) mod postgres;
pub(crate) mod publisher;
pub(crate) mod reader;
pub(crate) mod server;
pub(crate) mod subscriber;
pub(crate) mod world;

use std::time::Duration;

/// How long anything is waited for before the test fails: far longer than it can take,
/// since a machine that builds at the same time is slow.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
