//! Where everything in a normalized feed came from, and what was done to it.
//!
//! ```text
//! parse, traced ──► pass ──► look ──► pass ──► look ──► …
//! ```
//!
//! The passes know nothing of it. After each of them all fields are compared with what
//! they were: what changed was changed by that pass, what appeared was made by it. Items
//! of lists are told from each other by their marks, so it does not matter which of
//! them a pass drops.

mod fields;
mod how;
mod json;
mod lines;

use std::collections::HashMap;

use serde_json::Value;

use crate::context::Context;
use crate::model::Feed;
use crate::parse::{self, NotAFeed, Trace};
use crate::passes;
use crate::repair;
use fields::{Field, Key};
use how::Step;

/// The name of what guesses languages: no pass, because only new entries go through it.
const GUESS: &str = "guess";

/// Reads any feed, as [`normalize()`](crate::passes()) does, and tells where each field
/// of it came from. With `guess`, languages are guessed for entries that declare none.
///
/// ```
/// use feedgate::domain::source::Context;
///
/// let bytes = b"<rss version='2.0'><channel><title>Tides</title></channel></rss>";
/// let context = Context::of("https://tides.test/feed.xml".parse()?);
///
/// let explained = feedgate::explain(bytes, &context, false)?.to_json();
/// assert_eq!(explained["feed"]["title"]["from"]["path"], "/rss/channel/title");
/// assert_eq!(explained["feed"]["title"]["from"]["column"], 29);
/// assert_eq!(explained["feed"]["id"]["steps"][0]["how"], "from_url");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn explain(bytes: &[u8], context: &Context, guess: bool) -> Result<Explanation, NotAFeed> {
    let (parsed, trace) = parse::traced(bytes, context)?;
    let mut history = History::begin(&parsed);
    let mut feed = passes::watched(parsed, context, |pass, feed| {
        history.see(pass, feed, context);
    });
    if guess {
        feed.entries.iter_mut().for_each(passes::detect_language);
        history.see(GUESS, &feed, context);
    }
    Ok(Explanation { feed, trace, history })
}

/// A feed with the story of each of its fields.
#[derive(Debug)]
pub struct Explanation {
    feed: Feed,
    trace: Trace,
    history: History,
}

impl Explanation {
    /// The feed, as it is without explanation.
    pub fn feed(&self) -> &Feed {
        &self.feed
    }

    /// How little of the feed is to be relied on (`docs/normalizer.md`, "The bozo rank").
    pub fn bozo_rank(&self) -> f64 {
        repair::bozo_rank(&self.feed.repairs, self.feed.entries.len())
    }

    /// The whole of it; `docs/normalizer.md` says what stands where.
    pub fn to_json(&self) -> Value {
        json::whole(self)
    }

    /// What was done to a field since it was read.
    fn steps(&self, field: &Field) -> &[Step] {
        self.history.steps.get(&field.key).map_or(&[], Vec::as_slice)
    }
}

/// What passes have done.
#[derive(Debug)]
struct History {
    steps: HashMap<Key, Vec<Step>>,
    /// All fields as they were last, by what tells their values apart.
    last: HashMap<Key, u64>,
}

impl History {
    fn begin(feed: &Feed) -> History {
        let held = fields::all(feed).into_iter().map(|(_, field)| (field.key, field.print));
        History { steps: HashMap::new(), last: held.collect() }
    }

    /// Compares all fields with what they were before `pass`.
    fn see(&mut self, pass: &'static str, feed: &Feed, context: &Context) {
        let held = fields::all(feed);
        let mut now = HashMap::with_capacity(held.len());
        let seen = how::Seen::of(pass, feed, context);
        for (entry, field) in held {
            let was = self.last.get(&field.key);
            if was != Some(&field.print) {
                let told = seen.how(entry, &field, was.is_none());
                let steps = told.into_iter().map(|how| Step { pass, how });
                self.steps.entry(field.key.clone()).or_default().extend(steps);
            }
            now.insert(field.key, field.print);
        }
        self.last = now;
    }
}
