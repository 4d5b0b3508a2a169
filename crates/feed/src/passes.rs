//! The passes of normalization, in their order.
//!
//! A pass takes a feed and returns one. A pass may rely on those before it and on nothing else.
//! Running all passes twice changes nothing, which a test checks for every fixture. Each pass
//! records what it repaired in the feed's repairs.

mod activity;
mod dates;
#[cfg(feature = "language")]
mod detect_language;
mod geo;
mod html;
mod identity;
mod item_links;
mod language;
mod links;
mod media;
mod modules;
mod outline;
mod people;
mod repeats;
mod sanitize;
mod settle;
mod tag;
mod text;

use crate::context::Context;
use crate::model::{Feed, KnownBy};

#[cfg(feature = "language")]
pub use detect_language::detect_language;
pub use sanitize::sanitize;

/// A pass with its name in explanations.
type Pass = (&'static str, fn(Feed, &Context) -> Feed);

/// All passes.
const PASSES: [Pass; 11] = [
    ("links", links::make_absolute), // first: later passes compare addresses
    ("text", |feed, _| text::clean_texts(feed)),
    ("modules", |feed, _| modules::conform(feed)),
    ("language", language::complete_languages),
    ("dates", dates::complete_dates),
    ("identity", identity::assign_ids), // uses links and texts
    ("people", people::complete_authors),
    ("activity", |feed, _| activity::add_verbs(feed)),
    ("geo", |feed, _| geo::add_points(feed)),
    ("order", dates::order_undated), // after repeated entries were removed
    ("settle", |feed, _| settle::make_valid(feed)),
];

/// Runs all passes over a parsed feed, so that it can be stored, compared and sent.
///
/// No I/O is done and no clock is read: for output that does not depend on the time, leave
/// [`Context::received_at`] empty. Languages are not detected here, because that takes longer
/// than all passes together.
pub fn run(feed: Feed, context: &Context) -> Feed {
    PASSES.iter().fold(feed, |feed, (_, pass)| pass(feed, context))
}

/// Runs all passes, and calls `observe` with the name and the result of each.
pub(crate) fn run_observed(
    feed: Feed,
    context: &Context,
    mut observe: impl FnMut(&'static str, &Feed),
) -> Feed {
    PASSES.iter().fold(feed, |feed, (name, pass)| {
        let feed = pass(feed, context);
        observe(name, &feed);
        feed
    })
}

/// Returns the ids that the entries of a normalized feed would have if they were identified by
/// another property (rule N2), in their order.
pub fn entry_ids(feed: &Feed, by: KnownBy) -> Vec<String> {
    identity::entry_ids(feed, by)
}
