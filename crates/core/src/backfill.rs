//! Bringing in what a source published before it was watched: which of its documents are
//! read, and when that ends.
//!
//! The way goes back from the newest document, page by page; what is found is laid aside,
//! and goes into the log when the way has ended, oldest first. Everything here is decided
//! from what was seen; nothing is fetched or stored.

use chrono::{DateTime, Utc};

use super::change_detection::Candidate;
use super::resource::{Resource, ResourceId};
use feedgate_feed::model::{Feed, KnownBy};

/// Feed history, RFC 5005.
const HISTORY: &str = "http://purl.org/syndication/history/1.0";
/// How relations were written in full (RFC 4287 `#rfc.section.4.2.7.2`).
const REGISTRY: &str = "http://www.iana.org/assignments/relation/";
/// So many pages in a row without anything new are the end, whatever they link to: a
/// server that answers every page number with the same page would be asked for ever.
const MOST_BARREN: u32 = 3;

/// By which links a source leads to what came before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chain {
    /// `prev-archive`: documents that do not change (RFC 5005 `#section-4`, seed 004).
    Archive,
    /// `next`: pages of a list, which slide while it grows (RFC 5005 `#section-3`), and
    /// `next_url` of JSON Feed.
    Paged,
}

impl Chain {
    /// The relation, which is the word kept in the store.
    pub fn as_str(self) -> &'static str {
        match self {
            Chain::Archive => "prev-archive",
            Chain::Paged => "next",
        }
    }

    /// Reads the word kept in the store.
    pub fn from_word(word: &str) -> Option<Chain> {
        [Chain::Archive, Chain::Paged].into_iter().find(|chain| chain.as_str() == word)
    }
}

/// How much of a source's history is brought in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackfillLimits {
    /// Documents read; none turns it off.
    pub pages: u32,
    /// Entries kept; the page that passes it is the last.
    pub entries: u64,
    /// Bytes read, decompressed; as above.
    pub bytes: u64,
}

/// How the way back ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BackfillEnd {
    /// At the beginning, or where nothing new came any more.
    Complete,
    /// At a limit.
    Limited,
    /// At a document that could not be had: a code of `docs/errors.md`.
    Broken(String),
}

impl BackfillEnd {
    /// The word kept in the store and shown.
    pub fn as_str(&self) -> &str {
        match self {
            BackfillEnd::Complete => "complete",
            BackfillEnd::Limited => "limited",
            BackfillEnd::Broken(code) => code,
        }
    }

    /// Reads the word kept in the store.
    pub fn from_word(word: &str) -> BackfillEnd {
        match word {
            "complete" => BackfillEnd::Complete,
            "limited" => BackfillEnd::Limited,
            code => BackfillEnd::Broken(code.to_owned()),
        }
    }
}

/// How far the history of one resource has been brought in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backfill {
    /// The resource.
    pub resource: ResourceId,
    /// By which links its documents are followed, once that is known.
    pub chain: Option<Chain>,
    /// The document that is read next; `None` is the resource itself, or no more.
    pub next: Option<String>,
    /// Documents read.
    pub pages: u32,
    /// Entries laid aside.
    pub entries: u64,
    /// Bytes read, decompressed.
    pub bytes: u64,
    /// Documents in a row that had nothing new.
    pub barren: u32,
    /// Attempts at the next document.
    pub attempts: u32,
    /// What entries go by (rule N2).
    pub known_by: KnownBy,
    /// Whether the resource is not polled before the end: its log was empty, and what it
    /// holds now comes after what it held before.
    pub holds: bool,
    /// How the way back ended; `None` while it goes on.
    pub ending: Option<BackfillEnd>,
    /// Entries that came into the log.
    pub appended: u64,
    /// When all was in the log; `None` while there is something to do.
    pub ended_at: Option<DateTime<Utc>>,
}

/// A document of the past, as it was read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PastPage {
    /// Where it was asked for, and where it was found.
    pub urls: Vec<String>,
    /// Its length.
    pub bytes: u64,
    /// What its entries go by.
    pub known_by: KnownBy,
    /// Its entries, oldest first, rendered.
    pub entries: Vec<Candidate>,
    /// Where it leads.
    pub link: Option<(Chain, String)>,
}

impl Default for Backfill {
    fn default() -> Backfill {
        Backfill {
            resource: ResourceId(0),
            chain: None,
            next: None,
            pages: 0,
            entries: 0,
            bytes: 0,
            barren: 0,
            attempts: 0,
            known_by: KnownBy::default(),
            holds: false,
            ending: None,
            appended: 0,
            ended_at: None,
        }
    }
}

impl Backfill {
    /// A word for where it stands.
    pub fn state(&self) -> &'static str {
        match (&self.ending, self.ended_at) {
            (_, Some(_)) => "done",
            (Some(_), None) => "filling",
            (None, None) => "reading",
        }
    }

    /// Whether another document may be read.
    pub fn has_room(&self, limits: &BackfillLimits) -> bool {
        self.pages < limits.pages && self.entries < limits.entries && self.bytes < limits.bytes
    }

    /// Moves on behind a page of which `new` entries were laid aside. `was_seen` says
    /// that where it leads was read before.
    pub fn walked(&mut self, page: &PastPage, new: u64, was_seen: bool) {
        self.pages += 1;
        self.entries += new;
        self.bytes += page.bytes;
        self.attempts = 0;
        self.known_by = self.known_by.max(page.known_by);
        self.barren = if new == 0 { self.barren + 1 } else { 0 };
        match &page.link {
            Some((chain, url)) if !was_seen && self.barren < MOST_BARREN => {
                self.chain = Some(*chain);
                self.next = Some(url.clone());
            }
            _ => self.end(BackfillEnd::Complete),
        }
    }

    /// The way back ends; what was laid aside goes into the log.
    pub fn end(&mut self, ending: BackfillEnd) {
        self.next = None;
        self.ending = Some(ending);
    }
}

/// Whether nothing was ever read of a resource, so that its history can come first.
pub fn is_unread(resource: &Resource) -> bool {
    resource.head.0 == 0 && resource.body_version == 0 && resource.status.last_fetch.is_none()
}

/// Where a normalized document leads to what came before it, by the links followed so far.
/// `headers` are relations and addresses of its headers' links.
pub fn leads_to(
    feed: &Feed,
    headers: &[(String, String)],
    chain: Option<Chain>,
) -> Option<(Chain, String)> {
    let is_complete =
        feed.extensions.iter().any(|held| held.namespace == HISTORY && held.name == "complete");
    if is_complete {
        return None;
    }
    let in_feed = feed.links.iter().filter(|link| {
        // Blogs link the next page of their site as well.
        link.mime.as_deref().is_none_or(|mime| !mime.to_ascii_lowercase().starts_with("text/html"))
    });
    let in_feed = in_feed.map(|link| (link.rel.as_str(), link.href.as_str()));
    let in_headers = headers.iter().map(|(rel, href)| (rel.as_str(), href.as_str()));
    let links: Vec<(String, &str)> = in_feed
        .chain(in_headers)
        .map(|(rel, href)| (rel.trim_start_matches(REGISTRY).to_ascii_lowercase(), href))
        .collect();
    let by = |chain: Chain| {
        let link = links.iter().find(|(rel, _)| rel == chain.as_str())?;
        Some((chain, link.1.to_owned()))
    };
    match chain {
        Some(chain) => by(chain),
        None => by(Chain::Archive).or_else(|| by(Chain::Paged)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use feedgate_feed::model::TraceId;
    use feedgate_feed::model::{Element, Link};

    fn page(link: Option<&str>) -> PastPage {
        let link = link.map(|url| (Chain::Paged, url.to_owned()));
        PastPage { bytes: 10, link, ..PastPage::default() }
    }

    #[test]
    fn the_way_back_ends_at_the_beginning_in_a_circle_and_where_nothing_new_comes() {
        // Each step: link, new entries, whether the link was seen.
        type Steps = &'static [(Option<&'static str>, u64, bool)];
        let cases: [(&str, Steps, Option<BackfillEnd>, u32); 4] = [
            ("goes on", &[(Some("a"), 5, false), (Some("b"), 0, false)], None, 2),
            (
                "beginning",
                &[(Some("a"), 5, false), (None, 5, false)],
                Some(BackfillEnd::Complete),
                2,
            ),
            ("circle", &[(Some("a"), 5, true)], Some(BackfillEnd::Complete), 1),
            (
                "barren",
                &[(Some("a"), 0, false), (Some("b"), 0, false), (Some("c"), 0, false)],
                Some(BackfillEnd::Complete),
                3,
            ),
        ];
        for (why, steps, want, pages) in cases {
            let mut backfill = Backfill::default();
            for (link, new, seen) in steps {
                backfill.walked(&page(*link), *new, *seen);
            }
            assert_eq!((backfill.ending.clone(), backfill.pages), (want, pages), "{why}");
            assert_eq!(backfill.next.is_some(), backfill.ending.is_none(), "{why}");
        }
    }

    #[test]
    fn there_is_room_until_any_limit_is_reached() {
        let limits = BackfillLimits { pages: 3, entries: 100, bytes: 1_000 };
        let cases = [
            (0, 0, 0, true),
            (2, 99, 999, true),
            (3, 0, 0, false),
            (0, 100, 0, false),
            (0, 0, 1_000, false),
        ];
        for (pages, entries, bytes, want) in cases {
            let backfill = Backfill { pages, entries, bytes, ..Backfill::default() };
            assert_eq!(backfill.has_room(&limits), want, "{pages} {entries} {bytes}");
        }
    }

    #[test]
    fn archives_are_followed_before_pages_and_the_links_of_a_site_not_at_all() {
        let link = |rel: &str, href: &str, mime: Option<&str>| Link {
            rel: rel.to_owned(),
            href: href.to_owned(),
            mime: mime.map(str::to_owned),
            ..Link::default()
        };
        let header = |rel: &str| vec![(rel.to_owned(), "h".to_owned())];
        let both = vec![link("next", "n", None), link("prev-archive", "p", None)];
        let site = vec![link("next", "n", Some("text/html; charset=utf-8"))];
        let full = vec![link(&format!("{REGISTRY}prev-archive"), "p", None)];
        let cases = [
            (both.clone(), vec![], None, Some((Chain::Archive, "p"))),
            (both, vec![], Some(Chain::Paged), Some((Chain::Paged, "n"))),
            (vec![link("next", "n", None)], vec![], Some(Chain::Archive), None),
            (site, vec![], None, None),
            (full, vec![], None, Some((Chain::Archive, "p"))),
            (vec![], header("next"), None, Some((Chain::Paged, "h"))),
            (vec![link("next-archive", "x", None)], vec![], None, None),
        ];
        for (links, headers, chain, want) in cases {
            let mut feed = Feed { links, ..Feed::default() };
            let want = want.map(|(chain, url)| (chain, url.to_owned()));
            assert_eq!(leads_to(&feed, &headers, chain), want, "{feed:?}");
            feed.extensions.push(Element {
                namespace: HISTORY.to_owned(),
                prefix: "fh".to_owned(),
                name: "complete".to_owned(),
                attributes: Vec::new(),
                children: Vec::new(),
                trace_id: TraceId::default(),
            });
            assert_eq!(leads_to(&feed, &headers, chain), None, "RFC 5005 `#section-2`");
        }
    }
}
