//! Walks through archives that grow, shrink and change.

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
    LastEntry::from_item(&ArchiveItem::from_entry(Entry { id: id.to_owned(), ..Entry::default() }))
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
