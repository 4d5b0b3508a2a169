//! Explanations: where every value of a normalized feed came from, and which steps changed it.
//!
//! ```text
//! parse_with_trace ──► pass ──► compare ──► pass ──► compare ──► …
//! ```
//!
//! Passes do not report their changes. All fields are compared before and after each pass, and
//! every difference is attributed to that pass. Items of lists are identified by their trace ids,
//! so a pass may drop any of them.

mod fields;
mod json;
mod lines;
mod steps;

use std::collections::HashMap;

use serde_json::Value;

use crate::context::Context;
use crate::model::Feed;
use crate::parse::{self, NotAFeed, SourceTrace};
use crate::passes;
use crate::repair;
use fields::{Field, FieldKey};
use steps::Step;

/// The name of language detection in an explanation. Language detection is not a pass, because a
/// polling program runs it for new entries only.
const DETECTION: &str = "guess";

/// Normalizes a feed as [`normalize`](crate::normalize()) does, and explains where each field
/// of it came from.
///
/// ```
/// use feedgate_feed::{Context, explain};
///
/// let bytes = b"<rss version='2.0'><channel><title>Tides</title></channel></rss>";
/// let context = Context::new("https://tides.test/feed.xml".parse()?);
///
/// let explained = explain(bytes, &context)?.to_json();
/// assert_eq!(explained["feed"]["title"]["from"]["path"], "/rss/channel/title");
/// assert_eq!(explained["feed"]["title"]["from"]["column"], 29);
/// assert_eq!(explained["feed"]["id"]["steps"][0]["how"], "from_url");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn explain(bytes: &[u8], context: &Context) -> Result<Explanation, NotAFeed> {
    let (parsed, trace) = parse::parse_with_trace(bytes, context)?;
    let mut history = History::begin(&parsed);
    let feed = passes::run_observed(parsed, context, |pass, feed| {
        history.compare(pass, feed, context);
    });
    Ok(Explanation { feed, trace, history, context: context.clone() })
}

/// A normalized feed with the history of each of its fields.
#[derive(Debug)]
pub struct Explanation {
    feed: Feed,
    trace: SourceTrace,
    history: History,
    #[cfg_attr(not(feature = "language"), allow(dead_code, reason = "for detecting languages"))]
    context: Context,
}

impl Explanation {
    /// Returns the feed, as [`normalize`](crate::normalize()) returns it.
    pub fn feed(&self) -> &Feed {
        &self.feed
    }

    /// Returns how unreliable the feed is, from 0 to 1: see [`repair::bozo_rank`].
    pub fn bozo_rank(&self) -> f64 {
        repair::bozo_rank(&self.feed.repairs, self.feed.entries.len())
    }

    /// Detects the language of entries that declare none, and records it as a further step.
    #[cfg(feature = "language")]
    pub fn detect_languages(&mut self) {
        self.feed.entries.iter_mut().for_each(passes::detect_language);
        self.history.compare(DETECTION, &self.feed, &self.context);
    }

    /// Returns the explanation as JSON: for each field its origin (`from`) and the `steps` that
    /// changed it, and the list of repairs.
    pub fn to_json(&self) -> Value {
        json::explanation(self)
    }

    /// Returns the steps that changed a field after it was parsed.
    fn steps(&self, field: &Field) -> &[Step] {
        self.history.steps.get(&field.key).map_or(&[], Vec::as_slice)
    }
}

/// The changes made by the passes.
#[derive(Debug)]
struct History {
    steps: HashMap<FieldKey, Vec<Step>>,
    /// The fingerprint of every field after the last pass.
    last: HashMap<FieldKey, u64>,
}

impl History {
    fn begin(feed: &Feed) -> History {
        let fields = fields::all(feed).into_iter();
        let last = fields.map(|(_, field)| (field.key, field.fingerprint)).collect();
        History { steps: HashMap::new(), last }
    }

    /// Records the fields that `pass` changed.
    fn compare(&mut self, pass: &'static str, feed: &Feed, context: &Context) {
        let fields = fields::all(feed);
        let mut now = HashMap::with_capacity(fields.len());
        let after = steps::AfterPass::new(pass, feed, context);
        for (entry, field) in fields {
            let before = self.last.get(&field.key);
            if before != Some(&field.fingerprint) {
                let how = after.describe(entry, &field, before.is_none());
                let steps = how.into_iter().map(|how| Step { pass, how });
                self.steps.entry(field.key.clone()).or_default().extend(steps);
            }
            now.insert(field.key, field.fingerprint);
        }
        self.last = now;
    }
}
