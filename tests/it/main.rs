//! Everything tested from outside the crate, in one binary so that it links once.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod architecture;
mod archive;
mod bot;
mod commands;
mod config;
mod consume;
mod delivery;
mod demo;
mod explain;
mod ingest;
mod killed;
mod listener;
mod main_job;
mod nodes;
mod normalize;
mod parts;
mod polling;
mod readme;
mod real_feeds;
mod refused;
mod render;
mod rsscloud;
mod schemas;
mod second_opinion;
mod shutdown;
mod simulate;
mod store;
mod superfeedr;
mod support;
mod trouble;
mod upstream;
mod weblogs;
mod websub;
mod wire;
mod worker;
