//! Backfill: reads what a source published before its first subscription. This module decides which
//! documents are read, and when the backfill ends.
//!
//! Documents are read from the newest backwards. Their entries are staged, and appended to the log
//! oldest first when the last document has been read. Nothing is fetched or stored here.

use chrono::{DateTime, Utc};

use super::account::AccountId;
use super::change_detection::Candidate;
use super::resource::{Resource, ResourceId};
use feedgate_feed::model::{Feed, KnownBy};

/// Feed history, RFC 5005.
const HISTORY: &str = "http://purl.org/syndication/history/1.0";
/// The full form of relation names (RFC 4287 `#rfc.section.4.2.7.2`).
const REGISTRY: &str = "http://www.iana.org/assignments/relation/";
/// The backfill ends after this many consecutive documents without new entries, because a server
/// that returns the same page for every page number would be read for ever.
const MOST_BARREN: u32 = 3;

/// The kind of links that lead to older documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chain {
    /// `prev-archive`: documents that do not change (RFC 5005 `#section-4`, seed 004).
    Archive,
    /// `next`: pages of a list whose content moves while the list grows (RFC 5005 `#section-3`),
    /// and `next_url` of JSON Feed.
    Paged,
}

impl Chain {
    /// The relation, which is also the word in the store.
    pub fn as_str(self) -> &'static str {
        match self {
            Chain::Archive => "prev-archive",
            Chain::Paged => "next",
        }
    }

    /// Parses the word in the store.
    pub fn from_word(word: &str) -> Option<Chain> {
        [Chain::Archive, Chain::Paged].into_iter().find(|chain| chain.as_str() == word)
    }
}

/// The operator's limits for one backfill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackfillLimits {
    /// The maximum number of documents; 0 disables backfills.
    pub pages: u32,
    /// The maximum number of entries. The document that exceeds it is the last one.
    pub entries: u64,
    /// The maximum number of decompressed bytes. The document that exceeds it is the last one.
    pub bytes: u64,
}

/// For whom a backfill runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackfillShare {
    /// An account requested it.
    Accounts,
    /// Only subscribers without an account requested it.
    Anonymous,
}

impl BackfillShare {
    /// Returns the share of a request of this account, or of none.
    pub fn of_request(account: Option<AccountId>) -> BackfillShare {
        match account {
            Some(_) => BackfillShare::Accounts,
            None => BackfillShare::Anonymous,
        }
    }
}

/// The reason why a backfill ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BackfillEnd {
    /// The oldest document was reached, or documents stopped having new entries.
    Complete,
    /// A limit was reached.
    Limited,
    /// A document could not be read; holds a code of `docs/errors.md`.
    Broken(String),
}

impl BackfillEnd {
    /// The word in the store and in messages.
    pub fn as_str(&self) -> &str {
        match self {
            BackfillEnd::Complete => "complete",
            BackfillEnd::Limited => "limited",
            BackfillEnd::Broken(code) => code,
        }
    }

    /// Parses the word in the store.
    pub fn from_word(word: &str) -> BackfillEnd {
        match word {
            "complete" => BackfillEnd::Complete,
            "limited" => BackfillEnd::Limited,
            code => BackfillEnd::Broken(code.to_owned()),
        }
    }
}

/// The progress of the backfill of one resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backfill {
    /// The resource.
    pub resource: ResourceId,
    /// The kind of links that are followed, once it is known.
    pub chain: Option<Chain>,
    /// The document to read next; `None` is the resource itself, or no further document.
    pub next: Option<String>,
    /// The number of documents read.
    pub pages: u32,
    /// The number of entries staged.
    pub entries: u64,
    /// The number of decompressed bytes read.
    pub bytes: u64,
    /// The number of consecutive documents without new entries.
    pub barren: u32,
    /// The number of attempts to read the next document.
    pub attempts: u32,
    /// What identifies an entry (N2).
    pub known_by: KnownBy,
    /// Whether polling is delayed until the backfill ends. It is delayed if the log was empty, so
    /// that the current entries are appended after the older ones.
    pub holds: bool,
    /// The reason why reading ended; `None` while documents are read.
    pub ending: Option<BackfillEnd>,
    /// The number of entries appended to the log.
    pub appended: u64,
    /// When all entries had been appended; `None` while there is something to do.
    pub ended_at: Option<DateTime<Utc>>,
}

/// An older document, as it was read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PastPage {
    /// The requested URL and the URL after redirects.
    pub urls: Vec<String>,
    /// The length in bytes.
    pub bytes: u64,
    /// What identifies its entries.
    pub known_by: KnownBy,
    /// The entries, oldest first, rendered.
    pub entries: Vec<Candidate>,
    /// The link to the next older document.
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
    /// The state in one word.
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

    /// Records a document of which `new` entries were staged. `was_seen` states whether the next
    /// document has been read before.
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

    /// Ends the reading. The staged entries are then appended to the log.
    pub fn end(&mut self, ending: BackfillEnd) {
        self.next = None;
        self.ending = Some(ending);
    }
}

/// Whether the resource was never fetched, so that its history can be appended first.
pub fn is_unread(resource: &Resource) -> bool {
    resource.head.0 == 0 && resource.body_version == 0 && resource.status.last_fetch.is_none()
}

/// Returns the link of a normalized document to the next older one, by the kind of links followed
/// so far. `headers` are the relations and targets of the links in the response headers.
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
        // Blogs also link the next page of their web site.
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
