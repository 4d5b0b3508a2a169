//! The way through an archive: back to the last entry that was taken, then forward again.
//!
//! ```text
//! recent ──prev──► 3 ──prev──► 2   here it is
//!                              2 ──next──► 3 ──next──► 4 (which was "recent")
//! ```
//!
//! The way back only finds the place; entries are taken on the way forward, each document
//! being read again. So nothing is held but one document, and what the publisher adds or
//! archives meanwhile is neither missed nor taken twice: documents that are archived do
//! not change, and the newest only grows at its top.
//!
//! An archive may hold an entry and, further on, its updates under the same id (rule N7).
//! The place is one of them and not the id; see [`find`] for where it is if none says what
//! the entry said.

use std::collections::HashSet;

use url::Url;

use crate::domain::feed::Entry;

use super::place::{BadPlace, Mark};

/// One document of an archive.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Page {
    /// Its entries, newest first, as they stand.
    pub(super) entries: Vec<Entry>,
    /// The document with the entries before these.
    pub(super) prev: Option<Url>,
    /// The document with the entries after these.
    pub(super) next: Option<Url>,
}

/// Where documents come from.
pub(super) trait Pages {
    /// The document at `url`.
    async fn get(&mut self, url: &Url) -> Result<Page, Stopped>;
}

/// What takes entries.
pub(super) trait Take {
    /// Takes one entry. Only when this has succeeded is it behind us.
    async fn take(&self, entry: &Entry) -> Result<(), Stopped>;
}

/// What remembers the last entry that was taken.
pub(super) trait Place {
    /// Which it is; `None` if none ever was.
    fn mark(&self) -> Option<&Mark>;

    /// Moves on.
    fn keep(&mut self, mark: Mark) -> Result<(), BadPlace>;
}

/// Why reading stopped. What was taken before stays taken.
#[derive(Debug, thiserror::Error)]
pub(super) enum Stopped {
    /// A document could not be had.
    #[error("cannot read {url}: {reason}")]
    Unreadable {
        /// Which.
        url: String,
        /// Why.
        reason: String,
        /// Whether it may be otherwise soon.
        passing: bool,
    },
    /// A document is no longer kept, and so is none before it.
    #[error("{0} is no longer kept: what was in it is lost")]
    Dropped(Url),
    /// The archive does not hold the entry to begin behind.
    #[error(
        "the archive does not hold the entry {0}, behind which to begin; begin with --from \
         another, or with the oldest by removing the state file"
    )]
    PlaceLost(String),
    /// The links of the documents lead in a circle.
    #[error("the archive's links lead in a circle at {0}")]
    Circle(Url),
    /// The command did not take an entry.
    #[error("the entry {id} was not taken: {reason}")]
    NotTaken {
        /// Which.
        id: String,
        /// Why.
        reason: String,
    },
    /// The place could not be kept.
    #[error(transparent)]
    Place(#[from] BadPlace),
}

impl Stopped {
    /// Whether trying again later, and nothing else, may help.
    pub(super) fn is_passing(&self) -> bool {
        matches!(self, Stopped::Unreadable { passing: true, .. } | Stopped::NotTaken { .. })
    }
}

/// Takes all entries behind the place, oldest first. Returns how many there were.
pub(super) async fn catch_up<S: Pages, P: Place, T: Take>(
    pages: &mut S,
    recent: &Url,
    place: &mut P,
    taker: &T,
) -> Result<usize, Stopped> {
    let (mut page, mut newer) = find(pages, recent, place.mark()).await?;
    let mut seen = HashSet::new();
    let mut taken = 0;
    loop {
        for entry in page.entries[..newer].iter().rev() {
            taker.take(entry).await?;
            place.keep(Mark::of(entry))?;
            taken += 1;
        }
        let Some(next) = page.next else { return Ok(taken) };
        if !seen.insert(next.clone()) {
            return Err(Stopped::Circle(next));
        }
        page = pages.get(&next).await?;
        newer = page.entries.len();
    }
}

/// The document that holds the marked entry, or the oldest if none is marked, and how many
/// of its entries are newer.
///
/// Of several that the mark fits it is the newest. If there are only others with its id,
/// because the archive or the way entries are written has changed since, it is the oldest
/// of those: an entry taken twice is better than one missed. Behind a document that is no
/// longer kept there is nothing.
async fn find<S: Pages>(
    pages: &mut S,
    recent: &Url,
    mark: Option<&Mark>,
) -> Result<(Page, usize), Stopped> {
    let mut seen = HashSet::from([recent.clone()]);
    let mut page = pages.get(recent).await?;
    let mut namesake = None;
    loop {
        if let Some(mark) = mark {
            if let Some(newer) = page.entries.iter().position(|entry| mark.is_of(entry)) {
                return Ok((page, newer));
            }
            if let Some(newer) = page.entries.iter().rposition(|entry| entry.id == mark.id) {
                namesake = Some((page.clone(), newer));
            }
        }
        let prev = page.prev.take();
        if let Some(prev) = &prev
            && !seen.insert(prev.clone())
        {
            return Err(Stopped::Circle(prev.clone()));
        }
        let before = match prev {
            Some(prev) => match pages.get(&prev).await {
                Err(Stopped::Dropped(_)) => None,
                before => Some(before?),
            },
            None => None,
        };
        let Some(before) = before else {
            return match mark {
                Some(mark) => namesake.ok_or_else(|| Stopped::PlaceLost(mark.id.clone())),
                None => {
                    let all = page.entries.len();
                    Ok((page, all))
                }
            };
        };
        page = before;
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;
    use crate::domain::feed::Text;

    /// An archive whose publisher adds entries whenever somebody looks.
    struct Growing {
        /// Entries that there are.
        head: usize,
        /// How many come with each look, in turn.
        coming: Vec<usize>,
        size: usize,
        /// How many ids there are; further entries are updates (rule N7).
        ids: usize,
    }

    impl Growing {
        fn url(page: usize) -> Url {
            Url::parse(&format!("https://a.test/documents/{page}")).unwrap()
        }

        fn recent() -> Url {
            Url::parse("https://a.test/recent").unwrap()
        }

        fn newest(&self) -> usize {
            self.head.div_ceil(self.size).max(1)
        }
    }

    impl Pages for Growing {
        async fn get(&mut self, url: &Url) -> Result<Page, Stopped> {
            self.head += self.coming.pop().unwrap_or_default();
            let newest = self.newest();
            let (number, is_recent) = match url.path().rsplit('/').next().unwrap() {
                "recent" => (newest, true),
                number => (number.parse().unwrap(), false),
            };
            let (from, to) = ((number - 1) * self.size, (number * self.size).min(self.head));
            let entry = |n: usize| Entry {
                id: format!("e{}", n % self.ids),
                title: Some(Text::plain(n.to_string())),
                ..Entry::default()
            };
            Ok(Page {
                entries: (from + 1..=to).rev().map(entry).collect(),
                prev: (number > 1).then(|| Growing::url(number - 1)),
                next: (number < newest && !is_recent).then(|| Growing::url(number + 1)),
            })
        }
    }

    #[derive(Default)]
    struct Memory(Option<Mark>);

    impl Place for Memory {
        fn mark(&self) -> Option<&Mark> {
            self.0.as_ref()
        }

        fn keep(&mut self, mark: Mark) -> Result<(), BadPlace> {
            self.0 = Some(mark);
            Ok(())
        }
    }

    /// Takes entries; every `stumbles`-th attempt fails.
    struct Taker {
        taken: RefCell<Vec<String>>,
        attempts: RefCell<usize>,
        stumbles: usize,
    }

    impl Take for Taker {
        async fn take(&self, entry: &Entry) -> Result<(), Stopped> {
            *self.attempts.borrow_mut() += 1;
            if self.attempts.borrow().is_multiple_of(self.stumbles) {
                let (id, reason) = (entry.id.clone(), "it stumbled".to_owned());
                return Err(Stopped::NotTaken { id, reason });
            }
            self.taken.borrow_mut().push(entry.title.as_ref().unwrap().to_plain());
            Ok(())
        }
    }

    proptest::proptest! {
        #[test]
        fn each_entry_is_taken_once_and_in_order_while_others_come(
            size in 1_usize..6,
            ids in 1_usize..40,
            head in 0_usize..30,
            coming in proptest::collection::vec(0_usize..5, 0..60),
            stumbles in 2_usize..9,
            runs in 1_usize..6,
        ) {
            let mut archive = Growing { head, coming, size, ids };
            let (taken, attempts) = (RefCell::default(), RefCell::default());
            let taker = Taker { taken, attempts, stumbles };
            let mut place = Memory::default();
            let recent = Growing::recent();
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            for _ in 0..runs {
                let run = catch_up(&mut archive, &recent, &mut place, &taker);
                let ended = runtime.block_on(run);
                assert!(ended.as_ref().map_or_else(Stopped::is_passing, |_| true), "{ended:?}");
            }
            // Nobody writes any more, and nothing stumbles.
            archive.coming.clear();
            let taker = Taker { stumbles: usize::MAX, ..taker };
            let run = catch_up(&mut archive, &recent, &mut place, &taker);
            runtime.block_on(run).unwrap();
            let want: Vec<String> = (1..=archive.head).map(|n| n.to_string()).collect();
            assert_eq!(taker.taken.into_inner(), want);
        }
    }

    #[tokio::test]
    async fn a_place_that_the_archive_does_not_hold_is_lost() {
        let mut archive = Growing { head: 7, coming: Vec::new(), size: 3, ids: 7 };
        let elsewhere = Entry { id: "elsewhere".to_owned(), ..Entry::default() };
        let mut place = Memory(Some(Mark::of(&elsewhere)));
        let (taken, attempts) = (RefCell::default(), RefCell::default());
        let taker = Taker { taken, attempts, stumbles: usize::MAX };
        let run = catch_up(&mut archive, &Growing::recent(), &mut place, &taker).await;
        assert!(matches!(run, Err(Stopped::PlaceLost(_))), "{run:?}");
        assert_eq!(taker.taken.into_inner().len(), 0);
    }

    #[tokio::test]
    async fn n7_a_place_that_says_something_else_now_is_the_oldest_of_its_id() {
        let mut archive = Growing { head: 9, coming: Vec::new(), size: 3, ids: 4 };
        let other = Entry { id: "e2".to_owned(), ..Entry::default() };
        let mut place = Memory(Some(Mark::of(&other)));
        let (taken, attempts) = (RefCell::default(), RefCell::default());
        let taker = Taker { taken, attempts, stumbles: usize::MAX };
        catch_up(&mut archive, &Growing::recent(), &mut place, &taker).await.unwrap();
        assert_eq!(taker.taken.into_inner(), ["3", "4", "5", "6", "7", "8", "9"]);
    }

    #[tokio::test]
    async fn links_in_a_circle_are_not_followed_for_ever() {
        struct Circle;
        impl Pages for Circle {
            async fn get(&mut self, url: &Url) -> Result<Page, Stopped> {
                Ok(Page { prev: Some(url.clone()), ..Page::default() })
            }
        }
        let (taken, attempts) = (RefCell::default(), RefCell::default());
        let taker = Taker { taken, attempts, stumbles: usize::MAX };
        let run = catch_up(&mut Circle, &Growing::recent(), &mut Memory::default(), &taker).await;
        assert!(matches!(run, Err(Stopped::Circle(_))), "{run:?}");
    }

    #[tokio::test]
    async fn what_is_no_longer_kept_is_where_an_archive_begins() {
        struct Trimmed(Growing);
        impl Pages for Trimmed {
            async fn get(&mut self, url: &Url) -> Result<Page, Stopped> {
                if *url == Growing::url(1) {
                    return Err(Stopped::Dropped(url.clone()));
                }
                self.0.get(url).await
            }
        }
        let known = Mark::of(&Entry { id: "e2".to_owned(), ..Entry::default() });
        for (mark, is_lost) in [(None, false), (Some(known), true)] {
            let mut archive = Trimmed(Growing { head: 7, coming: Vec::new(), size: 3, ids: 7 });
            let (taken, attempts) = (RefCell::default(), RefCell::default());
            let taker = Taker { taken, attempts, stumbles: usize::MAX };
            let mut place = Memory(mark);
            let run = catch_up(&mut archive, &Growing::recent(), &mut place, &taker).await;
            assert_eq!(matches!(run, Err(Stopped::PlaceLost(_))), is_lost, "{run:?}");
            let want: &[&str] = if is_lost { &[] } else { &["4", "5", "6", "7"] };
            assert_eq!(taker.taken.into_inner(), want);
        }
    }
}
