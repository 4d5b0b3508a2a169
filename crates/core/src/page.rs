//! Pages: the parts in which a log is published (seed 004).
//!
//! What always holds: page boundaries are decided once, when a record is appended. A page that is
//! followed by another is a fixed range of records, whatever the settings become, so that documents
//! made from it never change.

use chrono::{DateTime, Utc};

use super::record::{Record, Seq};

/// The size limits of a page. A change applies to records appended from then on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageLimits {
    /// The maximum number of records in a page.
    pub records: i64,
    /// The maximum size of all records of a page, in bytes. A single record may be longer.
    pub bytes: i64,
}

impl Default for PageLimits {
    fn default() -> PageLimits {
        PageLimits { records: 50, bytes: 1 << 20 }
    }
}

impl PageLimits {
    /// Adds a record of this many bytes to the last page, or to a new page if the last one is full.
    pub fn place(&self, pages: &mut Vec<Page>, seq: Seq, bytes: i64, at: DateTime<Utc>) {
        match pages.last_mut() {
            Some(newest) if self.has_room(newest, bytes) => {
                newest.last = seq;
                newest.bytes += bytes;
                newest.ended_at = at;
            }
            newest => {
                let number = newest.map_or(1, |newest| newest.number + 1);
                pages.push(Page {
                    number,
                    first: seq,
                    last: seq,
                    bytes,
                    begun_at: at,
                    ended_at: at,
                });
            }
        }
    }

    fn has_room(&self, page: &Page, bytes: i64) -> bool {
        page.len() < self.records && page.bytes + bytes <= self.bytes
    }
}

/// A page: a range of the records of one log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    /// The number of the page: 1, 2, 3 … without gaps.
    pub number: i64,
    /// The number of the first record.
    pub first: Seq,
    /// The number of the last record; less than the first if the page is empty.
    pub last: Seq,
    /// The stored size of all records, in bytes.
    pub bytes: i64,
    /// When the first record was appended.
    pub begun_at: DateTime<Utc>,
    /// When the last record was appended.
    pub ended_at: DateTime<Utc>,
}

impl Page {
    /// The first page of an empty log.
    pub const EMPTY: Page = Page {
        number: 1,
        first: Seq(1),
        last: Seq::NONE,
        bytes: 0,
        begun_at: DateTime::UNIX_EPOCH,
        ended_at: DateTime::UNIX_EPOCH,
    };

    /// The number of records.
    pub fn len(&self) -> i64 {
        self.last.0 - self.first.0 + 1
    }

    /// Whether the page is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A page with its position among the stored pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocatedPage {
    /// The page.
    pub page: Page,
    /// The number of the oldest stored page.
    pub oldest: i64,
    /// The number of the newest page.
    pub newest: i64,
}

impl LocatedPage {
    /// The only page of an empty log.
    pub const EMPTY: LocatedPage = LocatedPage { page: Page::EMPTY, oldest: 1, newest: 1 };

    /// Whether the page is complete and will never change.
    pub fn is_archived(&self) -> bool {
        self.page.number < self.newest
    }
}

/// A record in an archive, in which no two entries may have the same id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Archived {
    /// The record.
    pub record: Record,
    /// Whether an earlier record has the same entry id, so that this one gets another.
    pub is_again: bool,
    /// The archive id of the record that this one replaces; `None` if it replaces none, or none
    /// that was known when it was appended.
    pub replaces: Option<ArchivedId>,
}

/// The id of a record in an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ArchivedId {
    /// The id of the entry.
    Source(String),
    /// An id derived from the record number.
    Own(Seq),
}

impl ArchivedId {
    /// The stored form: `#12` for an id derived from the number. No entry id has this form.
    pub fn kept(&self) -> String {
        match self {
            ArchivedId::Source(id) => id.clone(),
            ArchivedId::Own(seq) => format!("#{seq}"),
        }
    }

    /// Parses the stored form; `None` if it is empty.
    pub fn read(kept: &str) -> Option<ArchivedId> {
        let own = kept.strip_prefix('#').and_then(|seq| seq.parse().ok());
        match own {
            Some(seq) => Some(ArchivedId::Own(Seq(seq))),
            None => (!kept.is_empty()).then(|| ArchivedId::Source(kept.to_owned())),
        }
    }
}

/// How much of each log is stored. The newest page is never dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ArchiveRetention {
    /// The maximum age in days of the last record of a page; `None` for no limit.
    pub days: Option<u32>,
    /// The maximum number of pages; `None` for no limit.
    pub pages: Option<u32>,
}

impl ArchiveRetention {
    /// Whether nothing is ever dropped.
    pub fn keeps_all(&self) -> bool {
        *self == ArchiveRetention::default()
    }

    /// Whether a page is to be dropped at `now`; `newest` is the number of the newest page.
    pub fn drops(&self, page: &Page, newest: i64, now: DateTime<Utc>) -> bool {
        let is_old = |days: u32| page.ended_at < now - chrono::TimeDelta::days(days.into());
        let is_beyond = |pages: u32| page.number <= newest - i64::from(pages);
        page.number < newest && (self.days.is_some_and(is_old) || self.pages.is_some_and(is_beyond))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The pages that records of these lengths are cut into, as first and last numbers.
    fn cut(cut: PageLimits, lengths: &[i64]) -> Vec<(i64, i64)> {
        let mut pages = Vec::new();
        for (seq, bytes) in (1..).zip(lengths) {
            cut.place(&mut pages, Seq(seq), *bytes, DateTime::UNIX_EPOCH);
        }
        pages.iter().map(|page| (page.first.0, page.last.0)).collect()
    }

    #[test]
    fn a_page_is_full_by_records_or_by_bytes_and_a_long_record_has_one_of_its_own() {
        let small = PageLimits { records: 3, bytes: 100 };
        let cases = [
            (vec![], vec![]),
            (vec![1, 1, 1], vec![(1, 3)]),
            (vec![1, 1, 1, 1], vec![(1, 3), (4, 4)]),
            (vec![50, 50, 1], vec![(1, 2), (3, 3)]),
            (vec![50, 51, 1], vec![(1, 1), (2, 3)]),
            (vec![1, 101, 1], vec![(1, 1), (2, 2), (3, 3)]),
        ];
        for (lengths, want) in cases {
            assert_eq!(cut(small, &lengths), want, "{lengths:?}");
        }
    }

    #[test]
    fn what_is_cut_stays_cut_when_the_settings_change() {
        let mut pages = Vec::new();
        let sizes = [2, 2, 2, 5, 5, 5, 1, 1];
        for (seq, records) in (1..).zip(sizes) {
            let cut = PageLimits { records, bytes: 100 };
            cut.place(&mut pages, Seq(seq), 1, DateTime::UNIX_EPOCH);
        }
        let ranges: Vec<_> = pages.iter().map(|page| (page.number, page.len())).collect();
        assert_eq!(ranges, [(1, 2), (2, 4), (3, 1), (4, 1)]);
    }

    #[test]
    fn only_pages_that_are_archived_are_ever_dropped() {
        let now = DateTime::UNIX_EPOCH + chrono::TimeDelta::days(100);
        let keep = |days, pages| ArchiveRetention { days, pages };
        let cases = [
            (keep(None, None), 1, false),
            (keep(None, Some(2)), 1, true),
            (keep(None, Some(2)), 2, false),
            (keep(None, Some(1)), 3, false),
            (keep(Some(99), None), 2, true),
            (keep(Some(99), None), 3, false),
            (keep(Some(100), None), 1, false),
            (keep(Some(100), Some(1)), 1, true),
        ];
        for (retention, number, want) in cases {
            let page = Page { number, ..Page::EMPTY };
            assert_eq!(retention.drops(&page, 3, now), want, "{retention:?}, page {number}");
        }
    }

    #[test]
    fn a_name_is_read_as_it_was_kept() {
        for name in [ArchivedId::Own(Seq(12)), ArchivedId::Source("tag:a.test,2026:#12".to_owned())]
        {
            assert_eq!(ArchivedId::read(&name.kept()), Some(name));
        }
        assert_eq!(ArchivedId::read(""), None);
    }
}
