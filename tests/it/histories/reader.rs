//! A reader that may die at any step: the code of `feedgate consume`, between a gateway
//! that something happens to and a ledger.

use std::cell::{Cell, RefCell};
use std::fs;
use std::path::Path;

use feedgate::cli::consume::item::ArchiveItem;
use feedgate::cli::consume::place::{PositionFile, ReadPosition};
use feedgate::cli::consume::walk::{ArchivePage, EntryHandler, PageSource, Stopped, catch_up};
use tokio::sync::Notify;
use url::Url;

use super::ledger::Ledger;
use super::publishing::Feed;

/// What happens between two requests of a reader.
pub(super) trait Around: PageSource {
    /// Lets what is next in the script happen, before the reader's next request.
    async fn pass(&mut self, feed: &RefCell<Feed>, ledger: &RefCell<Ledger>);
}

/// A reader's life.
struct Life {
    /// Steps that are left; `None` for ever.
    left: Cell<Option<u8>>,
    over: Notify,
}

impl Life {
    /// One step further, or the end: then this never returns.
    async fn step(&self) {
        match self.left.get() {
            Some(0) => {
                self.over.notify_one();
                std::future::pending::<()>().await;
            }
            left => self.left.set(left.map(|left| left - 1)),
        }
    }
}

/// Documents that a mortal asks for.
struct Mortal<'a, A> {
    life: &'a Life,
    around: &'a mut A,
    feed: &'a RefCell<Feed>,
    ledger: &'a RefCell<Ledger>,
}

impl<A: Around> PageSource for Mortal<'_, A> {
    async fn get(&mut self, url: &Url) -> Result<ArchivePage, Stopped> {
        self.life.step().await;
        self.around.pass(self.feed, self.ledger).await;
        let page = self.around.get(url).await;
        self.life.step().await;
        page
    }
}

/// Writes down what is handed over.
struct Clerk<'a> {
    life: &'a Life,
    feed: &'a RefCell<Feed>,
    ledger: &'a RefCell<Ledger>,
    /// Whether something is in hand that is not remembered yet.
    holds: Cell<bool>,
}

impl EntryHandler for Clerk<'_> {
    async fn handle(&self, item: &ArchiveItem) -> Result<(), Stopped> {
        self.life.step().await;
        let what = match item {
            ArchiveItem::Entry { entry, .. } => entry.title.as_ref().unwrap().to_plain(),
            ArchiveItem::Deleted(gone) => {
                format!("{} is gone since {}", gone.entry_id, gone.when().unwrap())
            }
        };
        self.ledger.borrow_mut().handed_over(&what, &self.feed.borrow().printed);
        self.holds.set(true);
        self.life.step().await;
        self.holds.set(false);
        Ok(())
    }
}

/// Reads an archive once from where it was left, for so many steps at most, and remembers
/// how far that was in `state`.
pub(super) async fn read<A: Around>(
    (around, recent): (&mut A, &Url),
    (feed, ledger): (&RefCell<Feed>, &RefCell<Ledger>),
    (state, steps): (&Path, Option<u8>),
) -> Result<(), Stopped> {
    let mut place = PositionFile::open(Some(state.to_owned()), None).unwrap();
    ledger.borrow_mut().begins(place.mark().is_some());
    let life = Life { left: Cell::new(steps), over: Notify::new() };
    let clerk = Clerk { life: &life, feed, ledger, holds: Cell::new(false) };
    let mut pages = Mortal { life: &life, around, feed, ledger };
    tokio::select! {
        ended = catch_up(&mut pages, recent, &mut place, &clerk) => return ended.map(drop),
        () = life.over.notified() => {}
    }
    if clerk.holds.get() {
        ledger.borrow_mut().died_with_it();
    }
    // It may have died while it wrote the next place.
    fs::write(state.with_extension("new"), "tag:tides").unwrap();
    Ok(())
}
