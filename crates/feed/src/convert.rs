//! Conversions to and from the feeds of other crates, each behind a feature, so that a program that
//! uses one of them can read feeds with this crate.

#[cfg(feature = "atom_syndication")]
mod atom_syndication;
#[cfg(feature = "feed-rs")]
mod feed_rs;
