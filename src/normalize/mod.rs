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
mod people;
mod repeats;
mod settle;
mod text;

use crate::domain::feed::Feed;
use crate::domain::source::Context;

pub use language::detect as detect_language;

/// Makes of a parsed feed one that can be stored, compared and sent.
///
/// It does no I/O and reads no clock: where the output must not depend on the time,
/// leave [`Context::received_at`] empty. Languages are not guessed here, because that
/// takes longer than all the rest; see [`detect_language`].
pub fn normalize(feed: Feed, context: &Context) -> Feed {
    let feed = links::make_absolute(feed, context); // everything after it compares addresses
    let feed = text::settle(feed);
    let feed = language::settle(feed, context);
    let feed = dates::settle(feed, context);
    let feed = identity::settle(feed, context); // falls back on links and text
    let feed = people::settle(feed, context);
    let feed = activity::settle(feed);
    let feed = geo::settle(feed);
    settle::settle(feed)
}
