//! The endpoints: one file or folder for each protocol or page.

pub mod archive;
pub(crate) mod author;
pub mod changes;
pub(crate) mod cloud_aliases;
pub(crate) mod console;
pub(crate) mod discovered_feeds;
pub(crate) mod entry_finder;
pub(crate) mod errors;
pub(crate) mod event_links;
pub(crate) mod event_log;
pub(crate) mod feed_health;
pub(crate) mod icon;
pub(crate) mod openapi;
pub(crate) mod ops;
pub(crate) mod repair_list;
pub(crate) mod rpc;
pub(crate) mod rsscloud;
pub(crate) mod schemas;
pub(crate) mod storage;
pub(crate) mod superfeedr;
pub(crate) mod try_page;
pub(crate) mod upstream;
pub(crate) mod v1;
pub(crate) mod views;
pub(crate) mod weblogs;
pub(crate) mod websub;
