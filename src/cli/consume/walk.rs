//! The way through an archive: back to the last entry that was taken, then forward again.
//!
//! ```text
//! recent ──prev──► 3 ──prev──► 2   here it is
//! recent ◄──────── 3 ◄──────── 2   by the addresses seen on the way back
//! ```
//!
//! The way back only finds the place; entries are taken on the way forward, each document
//! being read again. So nothing is held but one document and addresses. `prev-archive` is
//! all that is followed: it must be there and name the document that immediately precedes
//! (RFC 5005, section 4), while `next-archive` may be missing or lead elsewhere.
//!
//! What the publisher adds or archives meanwhile is neither missed nor taken twice:
//! documents that are archived do not change, and the newest only grows at its top. It is
//! read last, and if others have come between it and what was taken, these come first.
//!
//! An archive may hold an entry and, further on, its updates under the same id (rule N7).
//! The place is one of them and not the id; see `go_back` for where it is if none says
//! what the entry said.

use std::collections::HashSet;

use url::Url;

use super::item::ArchiveItem;
use super::place::{BadPosition, LastEntry, ReadPosition};

/// Documents on the way back, at most: who leads anybody further means no good.
const LONGEST_WAY: usize = 500_000;
/// Looks for more that may bring nothing before it is given up: the next address of a
/// document is not the one it had a moment ago.
const IDLE_LOOKS: usize = 3;

/// One document of an archive.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ArchivePage {
    /// What stands in it, newest first.
    pub items: Vec<ArchiveItem>,
    /// The document with what came before.
    pub prev: Option<Url>,
}

/// Where documents come from.
pub trait PageSource {
    /// The document at `url`.
    fn get(&mut self, url: &Url) -> impl Future<Output = Result<ArchivePage, Stopped>>;
}

/// What takes entries.
pub trait EntryHandler {
    /// Handles one entry, or its deletion. The position moves past it only after this succeeded.
    fn handle(&self, item: &ArchiveItem) -> impl Future<Output = Result<(), Stopped>>;
}

/// How reading ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CaughtUp {
    /// How many entries were taken, and how many that were taken back.
    pub taken: usize,
    /// The document at which the archive begins because it is no longer kept, if nothing had
    /// been taken before.
    pub lost: Option<Url>,
}

/// Why reading stopped. What was taken before stays taken.
#[derive(Debug, thiserror::Error)]
pub enum Stopped {
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
        "the archive does not hold the entry {id}, behind which to begin{}; begin with --from \
         another, or with the oldest by removing the state file",
        lost_with(gone.as_ref())
    )]
    PlaceLost {
        /// The id of the entry.
        id: String,
        /// The document that is no longer kept, if the archive was longer once.
        gone: Option<Url>,
    },
    /// The links of the documents lead in a circle.
    #[error("the archive's links lead in a circle at {0}")]
    Circle(Url),
    /// There are more documents than any archive has.
    #[error("the archive has more than {LONGEST_WAY} documents behind the last entry taken")]
    TooLong,
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
    ReadPosition(#[from] BadPosition),
}

impl Stopped {
    /// Whether trying again later, and nothing else, may help.
    pub fn is_passing(&self) -> bool {
        matches!(self, Stopped::Unreadable { passing: true, .. } | Stopped::NotTaken { .. })
    }
}

fn lost_with(gone: Option<&Url>) -> String {
    let notice = |url| format!(": {url} is no longer kept, and what was in it is lost");
    gone.map(notice).unwrap_or_default()
}

/// Takes all that is behind the place, oldest first.
pub async fn catch_up<S: PageSource, P: ReadPosition, T: EntryHandler>(
    pages: &mut S,
    recent: &Url,
    place: &mut P,
    taker: &T,
) -> Result<CaughtUp, Stopped> {
    let mut done = CaughtUp::default();
    let (mut seam, mut idle) = (None, 0);
    loop {
        let before = done.taken;
        let way = go_back(pages, recent, place.mark(), seam.as_ref()).await?;
        done.lost = done.lost.or(way.lost);
        done.taken += take_all(&way.page.items[..way.newer], place, taker).await?;
        if way.url == *recent {
            return Ok(done);
        }
        let mut here = way.url;
        for url in way.ahead.into_iter().rev() {
            let page = pages.get(&url).await?;
            done.taken += take_all(&page.items, place, taker).await?;
            here = url;
        }
        idle = if done.taken == before { idle + 1 } else { 0 };
        if idle > IDLE_LOOKS {
            return Err(Stopped::Circle(here));
        }
        seam = Some(Seam { here, next: way.bottom });
    }
}

/// Takes these, which stand newest first, and says how many they were.
async fn take_all<P: ReadPosition, T: EntryHandler>(
    items: &[ArchiveItem],
    place: &mut P,
    taker: &T,
) -> Result<usize, Stopped> {
    for item in items.iter().rev() {
        taker.handle(item).await?;
        place.save(LastEntry::from_item(item))?;
    }
    Ok(items.len())
}

/// Between the newest document that was archived, and taken whole, and the one that followed
/// it, which was the recent one then. It is found again by either side, whatever was archived
/// or dropped since.
#[derive(Debug)]
struct Seam {
    here: Url,
    /// What stands at the bottom of the other.
    next: Option<LastEntry>,
}

impl Seam {
    /// Whether this document is the one that followed.
    fn is_before(&self, page: &ArchivePage) -> bool {
        let bottom = page.items.last().zip(self.next.as_ref());
        page.prev.as_ref() == Some(&self.here)
            || bottom.is_some_and(|(item, next)| next.is_of(item))
    }
}

/// Where the way back has led.
#[derive(Debug)]
struct Way {
    /// Where the document is.
    url: Url,
    /// It itself.
    page: ArchivePage,
    /// How many of its items are behind the place.
    newer: usize,
    /// The documents between it and the recent one, the newest first.
    ahead: Vec<Url>,
    /// What stands at the bottom of the recent one.
    bottom: Option<LastEntry>,
    /// What is no longer kept before it, if nothing was marked.
    lost: Option<Url>,
}

/// Back from the recent document to the one that holds what is marked, to the one behind
/// the seam, or to the oldest if there is neither.
///
/// Of several that the mark fits it is the newest. If there are only others with its id,
/// because the archive or the way entries are written has changed since, it is the oldest
/// of those: an entry taken twice is better than one missed. Behind a document that is no
/// longer kept there is nothing.
async fn go_back<S: PageSource>(
    pages: &mut S,
    recent: &Url,
    mark: Option<&LastEntry>,
    seam: Option<&Seam>,
) -> Result<Way, Stopped> {
    let mut seen = HashSet::from([recent.clone()]);
    let mut ahead = Vec::new();
    let mut namesake: Option<(Way, usize)> = None;
    let mut url = recent.clone();
    let mut page = pages.get(recent).await.map_err(not_there)?;
    let bottom = page.items.last().map(LastEntry::from_item);
    loop {
        let found = mark.and_then(|mark| mark.newest_in(&page.items));
        let is_behind_seam = seam.is_some_and(|seam| seam.is_before(&page));
        if let Some(newer) = found.or(is_behind_seam.then_some(page.items.len())) {
            return Ok(Way { url, page, newer, ahead, bottom, lost: None });
        }
        if let Some(newer) = mark.and_then(|mark| mark.oldest_namesake_in(&page.items)) {
            let (url, page) = (url.clone(), page.clone());
            let bottom = bottom.clone();
            let way = Way { url, page, newer, ahead: Vec::new(), bottom, lost: None };
            namesake = Some((way, ahead.len()));
        }
        let before = match page.prev.clone() {
            Some(prev) if !seen.insert(prev.clone()) => return Err(Stopped::Circle(prev)),
            Some(_) if seen.len() > LONGEST_WAY => return Err(Stopped::TooLong),
            Some(prev) => match pages.get(&prev).await {
                Err(Stopped::Dropped(gone)) => Err(Some(gone)),
                before => Ok((prev, before?)),
            },
            None => Err(None),
        };
        match before {
            Ok((before, its)) => {
                if url != *recent {
                    ahead.push(url);
                }
                (url, page) = (before, its);
            }
            Err(gone) => {
                let newer = page.items.len();
                let way = Way { url, page, newer, ahead, bottom, lost: gone };
                return begin(way, mark, namesake);
            }
        }
    }
}

/// Where to begin if the archive does not hold what is marked. `oldest` leads to where it
/// begins.
fn begin(
    oldest: Way,
    mark: Option<&LastEntry>,
    namesake: Option<(Way, usize)>,
) -> Result<Way, Stopped> {
    match (mark, namesake) {
        (None, _) => Ok(oldest),
        (Some(_), Some((way, passed))) => {
            let ahead = oldest.ahead.into_iter().take(passed).collect();
            Ok(Way { ahead, ..way })
        }
        (Some(mark), None) => Err(Stopped::PlaceLost { id: mark.id.clone(), gone: oldest.lost }),
    }
}

/// The recent document is never dropped: there is no archive.
fn not_there(why: Stopped) -> Stopped {
    match why {
        Stopped::Dropped(url) => Stopped::Unreadable {
            url: url.into(),
            reason: "there is no archive".to_owned(),
            passing: false,
        },
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;
    use feedgate_feed::model::{Entry, Text};

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

    impl PageSource for Growing {
        async fn get(&mut self, url: &Url) -> Result<ArchivePage, Stopped> {
            self.head += self.coming.pop().unwrap_or_default();
            let newest = self.newest();
            let number = match url.path().rsplit('/').next().unwrap() {
                "recent" => newest,
                number => number.parse().unwrap(),
            };
            let (from, to) = ((number - 1) * self.size, (number * self.size).min(self.head));
            let entry = |n: usize| {
                let (id, title) = (format!("e{}", n % self.ids), Text::plain(n.to_string()));
                ArchiveItem::from_entry(Entry { id, title: Some(title), ..Entry::default() })
            };
            Ok(ArchivePage {
                items: (from + 1..=to).rev().map(entry).collect(),
                prev: (number > 1).then(|| Growing::url(number - 1)),
            })
        }
    }

    #[derive(Default)]
    struct Memory(Option<LastEntry>);

    impl ReadPosition for Memory {
        fn mark(&self) -> Option<&LastEntry> {
            self.0.as_ref()
        }

        fn save(&mut self, mark: LastEntry) -> Result<(), BadPosition> {
            self.0 = Some(mark);
            Ok(())
        }
    }

    /// Behind an entry that says nothing.
    fn marked(id: &str) -> LastEntry {
        LastEntry::from_item(&ArchiveItem::from_entry(Entry {
            id: id.to_owned(),
            ..Entry::default()
        }))
    }

    /// Takes entries; every `stumbles`-th attempt fails.
    struct Taker {
        taken: RefCell<Vec<String>>,
        attempts: RefCell<usize>,
        stumbles: usize,
    }

    impl EntryHandler for Taker {
        async fn handle(&self, item: &ArchiveItem) -> Result<(), Stopped> {
            *self.attempts.borrow_mut() += 1;
            if self.attempts.borrow().is_multiple_of(self.stumbles) {
                let (id, reason) = (item.id().to_owned(), "it stumbled".to_owned());
                return Err(Stopped::NotTaken { id, reason });
            }
            let ArchiveItem::Entry { entry, .. } = item else {
                panic!("nothing was taken back: {item:?}")
            };
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
        let mut place = Memory(Some(marked("elsewhere")));
        let (taken, attempts) = (RefCell::default(), RefCell::default());
        let taker = Taker { taken, attempts, stumbles: usize::MAX };
        let run = catch_up(&mut archive, &Growing::recent(), &mut place, &taker).await;
        assert!(matches!(run, Err(Stopped::PlaceLost { .. })), "{run:?}");
        assert_eq!(taker.taken.into_inner().len(), 0);
    }

    #[tokio::test]
    async fn n7_a_place_that_says_something_else_now_is_the_oldest_of_its_id() {
        let mut archive = Growing { head: 9, coming: Vec::new(), size: 3, ids: 4 };
        let mut place = Memory(Some(marked("e2")));
        let (taken, attempts) = (RefCell::default(), RefCell::default());
        let taker = Taker { taken, attempts, stumbles: usize::MAX };
        catch_up(&mut archive, &Growing::recent(), &mut place, &taker).await.unwrap();
        assert_eq!(taker.taken.into_inner(), ["3", "4", "5", "6", "7", "8", "9"]);
    }

    #[tokio::test]
    async fn links_in_a_circle_are_not_followed_for_ever() {
        struct Circle;
        impl PageSource for Circle {
            async fn get(&mut self, url: &Url) -> Result<ArchivePage, Stopped> {
                Ok(ArchivePage { prev: Some(url.clone()), ..ArchivePage::default() })
            }
        }
        let (taken, attempts) = (RefCell::default(), RefCell::default());
        let taker = Taker { taken, attempts, stumbles: usize::MAX };
        let run = catch_up(&mut Circle, &Growing::recent(), &mut Memory::default(), &taker).await;
        assert!(matches!(run, Err(Stopped::Circle(_))), "{run:?}");
    }

    #[tokio::test]
    async fn an_archive_whose_addresses_change_all_the_time_is_given_up() {
        struct Restless(usize);
        impl PageSource for Restless {
            async fn get(&mut self, url: &Url) -> Result<ArchivePage, Stopped> {
                self.0 += 1;
                let prev = Url::parse(&format!("https://a.test/documents/1?at={}", self.0));
                let is_recent = *url == Growing::recent();
                Ok(ArchivePage { items: Vec::new(), prev: prev.ok().filter(|_| is_recent) })
            }
        }
        let (taken, attempts) = (RefCell::default(), RefCell::default());
        let taker = Taker { taken, attempts, stumbles: usize::MAX };
        let (mut archive, mut place) = (Restless(0), Memory::default());
        let run = catch_up(&mut archive, &Growing::recent(), &mut place, &taker).await;
        assert!(matches!(run, Err(Stopped::Circle(_))), "{run:?}");
    }

    #[tokio::test]
    async fn what_is_no_longer_kept_is_where_an_archive_begins() {
        struct Trimmed(Growing);
        impl PageSource for Trimmed {
            async fn get(&mut self, url: &Url) -> Result<ArchivePage, Stopped> {
                if *url == Growing::url(1) {
                    return Err(Stopped::Dropped(url.clone()));
                }
                self.0.get(url).await
            }
        }
        for (mark, is_lost) in [(None, false), (Some(marked("e2")), true)] {
            let mut archive = Trimmed(Growing { head: 7, coming: Vec::new(), size: 3, ids: 7 });
            let (taken, attempts) = (RefCell::default(), RefCell::default());
            let taker = Taker { taken, attempts, stumbles: usize::MAX };
            let mut place = Memory(mark);
            let run = catch_up(&mut archive, &Growing::recent(), &mut place, &taker).await;
            let gone = match run {
                Ok(CaughtUp { lost, .. }) if !is_lost => lost,
                Err(Stopped::PlaceLost { gone, .. }) if is_lost => gone,
                other => panic!("{other:?}"),
            };
            assert_eq!(gone, Some(Growing::url(1)), "it is told what is lost");
            let want: &[&str] = if is_lost { &[] } else { &["4", "5", "6", "7"] };
            assert_eq!(taker.taken.into_inner(), want);
        }
    }
}
