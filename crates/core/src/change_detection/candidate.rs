//! An entry of a document, with everything that identifies it.

use std::collections::HashMap;

use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use url::Url;

use super::FormerDocument;
use crate::record::{Digest, EntryKey};
use feedgate_feed::model::deleted_entry_id;
use feedgate_feed::model::{Attribute, Content, Element, Entry, Feed, Link, Text};
use feedgate_feed::{double_encoding, text_extraction};

/// The number of characters of a text that identify it (rule N3).
const FINGERPRINT_CHARS: usize = 500;
/// Parameters that track the source of a visit, and do not identify the target.
const TRACKING: [&str; 7] = ["fbclid", "gclid", "dclid", "msclkid", "mc_cid", "mc_eid", "igshid"];

/// An entry that may be new.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// The key of the entry.
    pub id: EntryKey,
    /// The key of the id without scheme and `www.`, if the id is an address.
    pub bare: Option<EntryKey>,
    /// The key of the normalized link; `None` if other entries of the document have the same.
    pub link: Option<EntryKey>,
    /// The key of the title and the beginning of the text; `None` if other entries of the document
    /// have the same.
    pub text: Option<EntryKey>,
    /// The future key of the entry, if the identification changes (rule N2).
    pub renamed: Option<EntryKey>,
    /// Whether the id is one that the publisher gave, and neither made of the content nor the link.
    pub has_own_id: bool,
    /// The title.
    pub title: Digest,
    /// The digest of the content (rule N7).
    pub digest: Digest,
    /// The publication date given by the source.
    pub published: Option<DateTime<Utc>>,
    /// The update date given by the source.
    pub updated: Option<DateTime<Utc>>,
    /// Whether the entry is the article that the document is, a page: a change is sent like one of a document.
    pub describes_page: bool,
    /// The Atom id.
    pub entry_id: String,
    /// The entry as one self-contained Atom element, once it has been rendered.
    pub atom: Option<String>,
}

impl Candidate {
    /// Returns a candidate that is identified by its id alone.
    pub fn of_id(entry_id: &str, atom: String) -> Candidate {
        Candidate {
            id: EntryKey::from_id(entry_id),
            bare: bare(entry_id),
            link: None,
            text: None,
            renamed: None,
            has_own_id: true,
            title: Digest::from_parts(&[]),
            digest: Digest::from_parts(&[&atom]),
            published: None,
            updated: None,
            describes_page: false,
            entry_id: entry_id.to_owned(),
            atom: Some(atom),
        }
    }

    /// Returns a candidate from a normalized entry, before it is rendered. Keys that it shares with
    /// other entries of the document are removed by [`FeedDocument::from_feed`].
    fn from_entry(entry: &Entry) -> Candidate {
        let title = entry.title.as_ref().map(Text::to_comparable).unwrap_or_default();
        let text = text_of(entry);
        let link = first(&entry.links, "alternate").map(plain_link);
        let enclosures: Vec<&str> = hrefs(&entry.links, "enclosure").collect();
        let mut parts =
            vec![folded(&title), without_space(&text), link.clone().unwrap_or_default()];
        parts.extend(enclosures.into_iter().map(str::to_owned));
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        let is_address = entry.id.contains("://");
        let is_link =
            is_address && link.as_ref().is_some_and(|link| *link == plain_link(&entry.id));
        Candidate {
            id: EntryKey::from_id(&entry.id),
            bare: bare(&entry.id),
            link: link.map(|link| EntryKey::from_id(&format!("link {link}"))),
            text: fingerprint(&title, &text),
            renamed: None,
            has_own_id: !entry.id_generated && !is_link,
            title: Digest::from_parts(&[&folded(&title)]),
            digest: Digest::from_parts(&parts),
            published: stated(entry, entry.published),
            updated: stated(entry, entry.updated),
            describes_page: entry.describes_page,
            entry_id: entry.id.clone(),
            atom: None,
        }
    }

    /// Makes the update date a part of the content ([`Feed::is_changed_by_date`]).
    fn identify_by_date(&mut self) {
        if let Some(updated) = self.updated {
            let content = hex::encode(self.digest.0);
            self.digest = Digest::from_parts(&[&content, &updated.to_rfc3339()]);
        }
    }

    /// Returns the publication or else the update date given by the source.
    pub fn date(&self) -> Option<DateTime<Utc>> {
        self.published.or(self.updated)
    }

    /// Returns the keys by which the entry may be known.
    pub fn keys(&self) -> impl Iterator<Item = EntryKey> + use<> {
        [Some(self.id), self.bare, self.link, self.text].into_iter().flatten()
    }
}

/// Returns a date given by the source, and not derived by the normalizer.
fn stated(entry: &Entry, date: Option<DateTime<chrono::FixedOffset>>) -> Option<DateTime<Utc>> {
    date.filter(|_| !entry.date_assumed).map(|date| date.to_utc())
}

/// An entry deleted by its publisher (RFC 6721, N8).
#[derive(Clone, Debug, PartialEq)]
pub struct Deletion {
    /// The key of the entry.
    pub id: EntryKey,
    /// The Atom id of the entry.
    pub entry_id: String,
    /// The `at:deleted-entry` element of the feed.
    pub element: Element,
    /// The element serialized, once it has been rendered.
    pub atom: Option<String>,
}

impl Deletion {
    /// Returns the deletion expressed by an element of a feed, if it is one.
    pub fn from_element(element: &Element) -> Option<Deletion> {
        let id = deleted_entry_id(element)?;
        Some(Deletion {
            id: EntryKey::from_id(id),
            entry_id: id.to_owned(),
            element: element.clone(),
            atom: None,
        })
    }

    /// Returns whether an element of a feed is a deletion.
    pub fn is(element: &Element) -> bool {
        Deletion::from_element(element).is_some()
    }

    /// Returns the time of the deletion as written (RFC 3339).
    pub fn when(&self) -> Option<&str> {
        let mut attributes = self.element.attributes.iter();
        attributes.find(|attribute| attribute.name == "when").map(|when| when.value.as_str())
    }

    /// Returns a copy with `at` as the time of the deletion, unless it has one. RFC 6721, section 3
    /// requires the time, which is all that distinguishes two deletions of the same entry.
    fn dated(mut self, at: DateTime<Utc>) -> Deletion {
        if self.when().is_none() {
            let (name, value) = ("when".to_owned(), at.to_rfc3339_opts(SecondsFormat::Secs, true));
            self.element.attributes.push(Attribute { name, value, ..Attribute::default() });
        }
        self
    }
}

/// The content of a feed document.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FeedDocument {
    /// When the document was fetched.
    pub at: DateTime<Utc>,
    /// The title of the feed, as plain text.
    pub title: String,
    /// The entries, oldest first.
    pub candidates: Vec<Candidate>,
    /// The index of the first entry after those that were left out in the middle of a document with
    /// too many entries, whose order is not known.
    pub gap: Option<usize>,
    /// The deletions.
    pub deletions: Vec<Deletion>,
    /// How far the clock of the publisher is ahead of ours.
    pub clock_ahead: TimeDelta,
    /// The entries that were in the document before this one, if the resource was not read as a feed then.
    pub former: Option<FormerDocument>,
}

impl FeedDocument {
    /// Collects the content of a normalized feed. `oldest_first` states the order of the entries in
    /// the document. `renamed` are the future ids of the entries, if the identification changes
    /// (rule N2).
    pub fn from_feed(
        feed: &Feed,
        oldest_first: bool,
        renamed: Option<Vec<String>>,
        at: DateTime<Utc>,
    ) -> FeedDocument {
        let mut candidates: Vec<Candidate> =
            feed.entries.iter().map(Candidate::from_entry).collect();
        for (candidate, id) in candidates.iter_mut().zip(renamed.unwrap_or_default()) {
            candidate.renamed = Some(EntryKey::from_id(&id));
        }
        if feed.is_changed_by_date() {
            candidates.iter_mut().for_each(Candidate::identify_by_date);
        }
        let mut gap = feed.gap;
        if !oldest_first {
            candidates.reverse();
            gap = gap.map(|gap| candidates.len().saturating_sub(gap));
        }
        keep_unique(&mut candidates, |candidate| &mut candidate.link);
        keep_unique(&mut candidates, |candidate| &mut candidate.text);
        keep_unique(&mut candidates, |candidate| &mut candidate.bare);
        let title = feed.title.as_ref().map(Text::to_plain).unwrap_or_default();
        let deletions = feed.extensions.iter().filter_map(Deletion::from_element);
        let deletions = deletions.map(|deletion| deletion.dated(at)).collect();
        let clock_ahead = TimeDelta::zero();
        FeedDocument { at, title, candidates, gap, deletions, clock_ahead, former: None }
    }

    /// Returns all keys by which its entries may be known.
    pub fn keys(&self) -> Vec<EntryKey> {
        let of_deletions = self.deletions.iter().map(|deletion| deletion.id);
        self.candidates.iter().flat_map(Candidate::keys).chain(of_deletions).collect()
    }
}

/// Removes keys that several candidates share, because such a key identifies none of them.
fn keep_unique(candidates: &mut [Candidate], key: fn(&mut Candidate) -> &mut Option<EntryKey>) {
    let mut counts: HashMap<EntryKey, usize> = HashMap::new();
    for candidate in &mut *candidates {
        if let Some(key) = *key(candidate) {
            *counts.entry(key).or_default() += 1;
        }
    }
    for candidate in candidates {
        let held = key(candidate);
        *held = held.filter(|key| counts[key] == 1);
    }
}

/// Returns the id without scheme and `www.`, if it is an address.
fn bare(id: &str) -> Option<EntryKey> {
    let (scheme, rest) = id.split_once("://")?;
    let is_web = scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https");
    let rest = rest.strip_prefix("www.").unwrap_or(rest);
    is_web.then(|| EntryKey::from_id(&format!("bare {rest}")))
}

/// Returns the link without parts that do not identify its target: scheme, `www.`, trailing slashes
/// and tracking parameters.
fn plain_link(href: &str) -> String {
    let Ok(url) = Url::parse(href) else { return href.to_owned() };
    let host = url.host_str().unwrap_or_default();
    let host = host.strip_prefix("www.").unwrap_or(host);
    let mut query: Vec<String> = url
        .query_pairs()
        .filter(|(name, _)| !name.starts_with("utm_") && !TRACKING.contains(&name.as_ref()))
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    query.sort_unstable();
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    let fragment = url.fragment().unwrap_or_default();
    format!("{host}{port}{}?{}#{fragment}", url.path().trim_end_matches('/'), query.join("&"))
}

/// Returns the title and the beginning of the text, if there is any.
fn fingerprint(title: &str, text: &str) -> Option<EntryKey> {
    let beginning: String = folded(text).chars().take(FINGERPRINT_CHARS).collect();
    let title = folded(title);
    let says_something = !title.is_empty() || !beginning.is_empty();
    says_something.then(|| EntryKey::from_id(&format!("text {title}\u{1f}{beginning}")))
}

/// Returns the text of the content, or else of the summary, without markup.
fn text_of(entry: &Entry) -> String {
    match &entry.content {
        Some(Content::Text(text)) => text.to_comparable(),
        Some(Content::Xml { value, .. }) => {
            text_extraction::plain(&double_encoding::repaired(value))
        }
        Some(Content::Media { value, .. }) => double_encoding::repaired(value).into_owned(),
        Some(Content::Src { href, .. }) => href.clone(),
        None => entry.summary.as_ref().map(Text::to_comparable).unwrap_or_default(),
    }
}

fn folded(text: &str) -> String {
    without_space(text).to_lowercase()
}

fn without_space(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).collect()
}

fn first<'a>(links: &'a [Link], rel: &'a str) -> Option<&'a str> {
    hrefs(links, rel).next()
}

fn hrefs<'a>(links: &'a [Link], rel: &'a str) -> impl Iterator<Item = &'a str> {
    let links = links.iter().filter(move |link| link.rel == rel);
    links.map(Link::compared_href).filter(|href| !href.is_empty())
}
