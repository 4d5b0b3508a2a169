//! What operators and the owners of polled servers look at.

pub(crate) mod bot;
pub(crate) mod gauges;
pub(crate) mod health;
pub(crate) mod metrics;
