//! Everything tested from outside the crate, in one binary so that it links once.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod architecture;
mod config;
mod killed;
mod main_job;
mod nodes;
mod normalize;
mod polling;
mod readme;
mod real_feeds;
mod schemas;
mod store;
mod support;
mod trouble;
