//! Printings of documents, kept for those who ask next.
//!
//! A printing serves until something new is listed; a long one for as much longer as it
//! took to make, so that readers cannot keep the store busy with it. None is older than a
//! minute. While one is made, whoever wants the same waits for it; and only a few are made at
//! once, because `last` makes many documents of one.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use chrono::{DateTime, Utc};
use tokio::sync;
use tokio::time::{Instant, timeout};

use super::edition::{Edition, Lines, Pages};
use super::stretch;
use crate::jobs::runner;
use feedgate_core::ping::TimeUnit;
use feedgate_core::ports::{ChangesWindow, Store, StoreError};

/// The longest text that is kept: some thirty thousand lines.
const LONGEST_BYTES: usize = 4 << 20;
/// Documents with a place on the shelf at once; `last` makes many of one.
const PLACES: usize = 16;
/// How many are sent long documents at once: each holds some pages, for as long as it likes.
const READERS: usize = 64;
/// How many documents are printed at once: each is read from the store line by line.
const PRINTERS: usize = 4;
/// How long a reader waits for one of them.
const PATIENCE: Duration = Duration::from_secs(5);
/// How old a printing may become.
const OLDEST: Duration = Duration::from_secs(60);
/// How much longer each line lets a printing be served though there is something new: ten
/// times what it takes to print it.
const FOR_EACH_LINE: Duration = Duration::from_micros(100);

/// Why there is no printing.
#[derive(Debug, thiserror::Error)]
pub(super) enum NotPrinted {
    /// Too many documents are being printed.
    #[error("too many documents are being printed")]
    Busy,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A document that is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// One that changes, in this unit.
    Listed(Kind, TimeUnit),
    /// That of an hour that is over: it has but one edition in each unit.
    Kept(Edition),
}

/// Which lines are asked for.
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
}

/// A place for the printing of one document; locked while it is made.
type Place = Arc<sync::Mutex<Option<Arc<Printing>>>>;

/// The printings of one node.
pub(super) struct Shelf {
    places: Mutex<HashMap<(Kind, TimeUnit), Place>>,
    printers: sync::Semaphore,
    /// Places for those who are sent a document that is too long to be kept.
    pub(super) readers: Arc<sync::Semaphore>,
}

impl Default for Shelf {
    fn default() -> Shelf {
        let readers = Arc::new(sync::Semaphore::new(READERS));
        Shelf { places: Mutex::default(), printers: sync::Semaphore::new(PRINTERS), readers }
    }
}

impl Shelf {
    /// The edition of a document that is to be served now, and its printing if there is one.
    pub(super) async fn look(
        &self,
        store: &Arc<dyn Store>,
        wanted: &Wanted,
    ) -> Result<(Edition, Option<Arc<Printing>>), StoreError> {
        let place = self.place(wanted);
        let held = place.lock().await;
        let now = edition(store, wanted).await?;
        Ok(match held.as_ref().filter(|held| held.serves(&now, Instant::now())) {
            Some(printing) => (printing.edition.clone(), Some(Arc::clone(printing))),
            None => (now, None),
        })
    }

    /// The printing of a document that is to be served now.
    pub(super) async fn take(
        &self,
        store: &Arc<dyn Store>,
        wanted: &Wanted,
    ) -> Result<Arc<Printing>, NotPrinted> {
        let place = self.place(wanted);
        let mut held = place.lock().await;
        let now = edition(store, wanted).await?;
        if let Some(printing) = held.as_ref().filter(|held| held.serves(&now, Instant::now())) {
            return Ok(Arc::clone(printing));
        }
        let _printer = self.printer().await?;
        let printing = Arc::new(print(store, now).await?);
        *held = Some(Arc::clone(&printing));
        Ok(printing)
    }

    async fn printer(&self) -> Result<sync::SemaphorePermit<'_>, NotPrinted> {
        match timeout(PATIENCE, self.printers.acquire()).await {
            Ok(Ok(place)) => Ok(place),
            Ok(Err(_)) | Err(_) => Err(NotPrinted::Busy),
        }
    }

    /// Where a document has its place. The shelf is cleared when it is full: what is wanted
    /// often is soon back. What somebody is at stays.
    fn place(&self, wanted: &Wanted) -> Place {
        let key = match wanted {
            Wanted::Listed(kind, unit) => (*kind, *unit),
            Wanted::Kept(edition) => (Kind::Hour(edition.begins()), edition.unit),
        };
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        if places.len() >= PLACES && !places.contains_key(&key) {
            places.retain(|_, place| Arc::strong_count(place) > 1);
        }
        Arc::clone(places.entry(key).or_default())
    }
}

/// A document as it is now.
async fn edition(store: &Arc<dyn Store>, wanted: &Wanted) -> Result<Edition, StoreError> {
    match wanted {
        Wanted::Listed(kind, unit) => {
            let (newest, count) = store.newest_change().await?;
            let (from, until, updated) = stretch(*kind, runner::now());
            let lines = Lines::Listed(ChangesWindow { from, until, newest });
            Ok(Edition { lines, updated, count, unit: *unit })
        }
        Wanted::Kept(edition) => Ok(edition.clone()),
    }
}

impl Printing {
    /// Whether it may still be served where the document is this edition by `now`.
    fn serves(&self, current: &Edition, now: Instant) -> bool {
        let (Lines::Listed(held), Lines::Listed(listed)) = (&self.edition.lines, &current.lines)
        else {
            return self.edition == *current;
        };
        let age = now.saturating_duration_since(self.made);
        let lines = u32::try_from(self.lines).unwrap_or(u32::MAX);
        let is_recent = age < FOR_EACH_LINE.saturating_mul(lines);
        age < OLDEST && (held.newest == listed.newest || is_recent)
    }
}

/// Prints an edition, as far as it can be kept.
async fn print(store: &Arc<dyn Store>, edition: Edition) -> Result<Printing, StoreError> {
    let made = Instant::now();
    let mut pages = Pages::of(store, edition.clone());
    let mut text = String::new();
    while let Some(page) = pages.next().await? {
        text.push_str(&page);
        if text.len() > LONGEST_BYTES {
            let lines = usize::MAX; // as many as let it be served for the whole minute
            return Ok(Printing { edition, text: None, lines, made });
        }
    }
    let lines = pages.lines;
    Ok(Printing { edition, text: Some(text.into()), lines, made })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_printing_serves_until_something_is_new_and_a_long_one_for_longer() {
        let updated = DateTime::UNIX_EPOCH;
        let edition = |newest| {
            let lines = Lines::Listed(ChangesWindow { from: updated, until: updated, newest });
            Edition { lines, updated, count: 0, unit: TimeUnit::Minutes }
        };
        let printing =
            |lines| Printing { edition: edition(7), text: None, lines, made: Instant::now() };
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
            assert_eq!(printing.serves(&edition(newest), now), want, "{why}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn only_so_many_documents_are_printed_at_once() {
        let shelf = Shelf::default();
        let mut printers = Vec::new();
        for _ in 0..PRINTERS {
            printers.push(shelf.printer().await.unwrap());
        }
        assert!(matches!(shelf.printer().await, Err(NotPrinted::Busy)));
        printers.pop();
        assert!(shelf.printer().await.is_ok());
    }

    #[test]
    fn a_full_shelf_is_cleared_of_what_nobody_is_at() {
        let shelf = Shelf::default();
        let wanted = |secs| Wanted::Listed(Kind::Last(secs), TimeUnit::Minutes);
        let held = shelf.place(&wanted(0));
        for secs in 1..=PLACES as u64 {
            shelf.place(&wanted(secs));
        }
        assert!(Arc::ptr_eq(&held, &shelf.place(&wanted(0))));
        assert_eq!(shelf.places.lock().unwrap().len(), 2);
    }
}
