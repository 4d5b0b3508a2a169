//! What every feed goes through, in this order.
//!
//! A pass takes a feed and gives one back. It may rely on the passes before it and on
//! nothing else. Going through all of them twice changes nothing; a test holds every
//! fixture to that. What a pass had to mend it adds to the feed's repairs, under a
//! code of `docs/normalizer.md`.

mod activity;
mod dates;
mod geo;
mod html;
mod identity;
mod language;
mod links;
mod outline;
mod people;
mod repeats;
mod settle;
mod text;

use crate::context::Context;
use crate::model::{Feed, KnownBy};

pub use language::detect as detect_language;

/// A pass, under the name by which an explanation calls it.
type Pass = (&'static str, fn(Feed, &Context) -> Feed);

/// All passes.
const PASSES: [Pass; 10] = [
    ("links", links::make_absolute), // everything after it compares addresses
    ("text", |feed, _| text::settle(feed)),
    ("language", language::settle),
    ("dates", dates::settle),
    ("identity", identity::settle), // falls back on links and text
    ("people", people::settle),
    ("activity", |feed, _| activity::settle(feed)),
    ("geo", |feed, _| geo::settle(feed)),
    ("order", dates::tell_apart), // what is the same was dropped before
    ("settle", |feed, _| settle::settle(feed)),
];

/// Makes of a parsed feed one that can be stored, compared and sent.
///
/// It does no I/O and reads no clock: where the output must not depend on the time,
/// leave [`Context::received_at`] empty. Languages are not guessed here, because that
/// takes longer than all the rest; see [`detect_language`].
pub fn normalize(feed: Feed, context: &Context) -> Feed {
    PASSES.iter().fold(feed, |feed, (_, pass)| pass(feed, context))
}

/// The same, and shows `see` what each pass made of the feed.
pub fn watched(feed: Feed, context: &Context, mut see: impl FnMut(&'static str, &Feed)) -> Feed {
    PASSES.iter().fold(feed, |feed, (name, pass)| {
        let feed = pass(feed, context);
        see(name, &feed);
        feed
    })
}

/// The ids that the entries of a normalized feed will have if they are known by something
/// else from now on (rule N2), in their order.
pub fn ids(feed: &Feed, by: KnownBy) -> Vec<String> {
    identity::ids(feed, by)
}
