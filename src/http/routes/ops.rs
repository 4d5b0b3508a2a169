//! Pages for operators and for the owners of polled servers.

pub(crate) mod bot;
pub(crate) mod gauges;
pub(crate) mod health;
pub(crate) mod key_directory;
pub(crate) mod metrics;
