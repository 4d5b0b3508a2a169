//! Printings of documents, kept for those who ask next.
//!
//! A printing serves until something new is listed; a long one for as much longer as it
//! took to make, so that readers cannot keep the store busy with it. None is older than a
//! minute. While one is made, whoever wants the same waits for it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use chrono::{DateTime, Utc};
use tokio::sync;
use tokio::time::Instant;

use super::edition::{Edition, Lines, Pages};
use super::stretch;
use crate::domain::ping::Unit;
use crate::store::{Store, StoreError, Window};
use crate::worker;

/// The longest text that is kept: some thirty thousand lines.
const LONGEST_BYTES: usize = 4 << 20;
/// Documents with a place on the shelf at once; `last` makes many of one.
const PLACES: usize = 16;
/// How many are sent long documents at once: each holds some pages, for as long as it likes.
const READERS: usize = 64;
/// How old a printing may become.
const OLDEST: Duration = Duration::from_secs(60);
/// How much longer each line lets a printing be served though there is something new: ten
/// times what it takes to print it.
const FOR_EACH_LINE: Duration = Duration::from_micros(100);

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    /// The last seconds.
    Last(u64),
    /// The hour that begins then, and is not kept yet.
    Hour(DateTime<Utc>),
}

/// A document as it was printed.
pub(super) struct Printing {
    /// What was printed.
    pub(super) edition: Edition,
    /// Its text; `None` if that is too long to be kept.
    pub(super) text: Option<Bytes>,
    lines: usize,
    made: Instant,
    newest: i64,
}

/// A place for the printing of one document; locked while it is made.
type Place = Arc<sync::Mutex<Option<Arc<Printing>>>>;

/// The printings of one node.
pub(super) struct Shelf {
    places: Mutex<HashMap<(Kind, Unit), Place>>,
    /// Places for those who are sent a document that is too long to be kept.
    pub(super) readers: Arc<sync::Semaphore>,
}

impl Default for Shelf {
    fn default() -> Shelf {
        let readers = Arc::new(sync::Semaphore::new(READERS));
        Shelf { places: Mutex::default(), readers }
    }
}

impl Shelf {
    /// The printing of a document that is to be served now.
    pub(super) async fn take(
        &self,
        store: &Arc<dyn Store>,
        kind: Kind,
        unit: Unit,
    ) -> Result<Arc<Printing>, StoreError> {
        let place = self.place(kind, unit);
        let mut held = place.lock().await;
        let (newest, count) = store.newest_change().await?;
        if let Some(printing) = held.as_ref().filter(|held| held.serves(newest, Instant::now())) {
            return Ok(Arc::clone(printing));
        }
        let (from, until, updated) = stretch(kind, worker::now());
        let lines = Lines::Listed(Window { from, until, newest });
        let printing = Arc::new(print(store, Edition { lines, updated, count, unit }).await?);
        *held = Some(Arc::clone(&printing));
        Ok(printing)
    }

    /// Where a document has its place. The shelf is cleared when it is full: what is wanted
    /// often is soon back.
    fn place(&self, kind: Kind, unit: Unit) -> Place {
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        if places.len() >= PLACES && !places.contains_key(&(kind, unit)) {
            places.clear();
        }
        Arc::clone(places.entry((kind, unit)).or_default())
    }
}

impl Printing {
    /// Whether it may still be served, `newest` being the number of the newest line.
    fn serves(&self, newest: i64, now: Instant) -> bool {
        let age = now.saturating_duration_since(self.made);
        let lines = u32::try_from(self.lines).unwrap_or(u32::MAX);
        let is_current = self.newest == newest || age < FOR_EACH_LINE.saturating_mul(lines);
        age < OLDEST && is_current
    }
}

/// Prints an edition, as far as it can be kept.
pub(super) async fn print(
    store: &Arc<dyn Store>,
    edition: Edition,
) -> Result<Printing, StoreError> {
    let made = Instant::now();
    let newest = match &edition.lines {
        Lines::Listed(window) => window.newest,
        Lines::Kept { .. } => 0,
    };
    let mut pages = Pages::of(store, edition.clone());
    let mut text = String::new();
    while let Some(page) = pages.next().await? {
        text.push_str(&page);
        if text.len() > LONGEST_BYTES {
            let lines = usize::MAX; // as many as let it be served for the whole minute
            return Ok(Printing { edition, text: None, lines, made, newest });
        }
    }
    let lines = pages.lines;
    Ok(Printing { edition, text: Some(text.into()), lines, made, newest })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_printing_serves_until_something_is_new_and_a_long_one_for_longer() {
        let updated = DateTime::UNIX_EPOCH;
        let window = Window { from: updated, until: updated, newest: 7 };
        let edition =
            Edition { lines: Lines::Listed(window), updated, count: 0, unit: Unit::Minutes };
        let printing = |lines| Printing {
            edition: edition.clone(),
            text: None,
            lines,
            made: Instant::now(),
            newest: 7,
        };
        #[rustfmt::skip]
        let cases = [
            ("as it was printed",                 10,         7, 59, true),
            ("a minute at most",                  10,         7, 60, false),
            ("something is new",                  10,         8,  1, false),
            ("a long one is printed less often",  100_000,    8,  9, true),
            ("but is",                            100_000,    8, 10, false),
            ("once a minute",                     usize::MAX, 8, 59, true),
            ("at least",                          usize::MAX, 8, 60, false),
        ];
        for (why, lines, newest, after_s, want) in cases {
            let printing = printing(lines);
            let now = printing.made + Duration::from_secs(after_s);
            assert_eq!(printing.serves(newest, now), want, "{why}");
        }
    }
}
