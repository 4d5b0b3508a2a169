//! An entry as queries see it: its words, links, hosts and language, and the ranks of its feed.

use std::collections::{BTreeSet, HashMap};

use url::Url;

use super::places::{PageAddress, domains};
use super::words::{folded, normal_form, words};
use crate::resource::Resource;
use crate::status::Status;
use crate::stored_entry::read_back;
use feedgate_feed::model::{Content, Entry, Text, TextKind};
use feedgate_feed::render::atom::{self, AtomDocument};
use feedgate_feed::text_extraction::{decode, plain};

/// The most words of an entry that are looked at: a long book.
const MAX_WORDS: usize = 200_000;
/// The most links of an entry that are looked at.
const MAX_LINKS: usize = 10_000;

/// Stands between the words of two texts.
const GAP: u32 = u32::MAX;

/// An entry as queries see it.
#[derive(Clone, Debug, Default)]
pub struct EntryText {
    /// The words in order, by their numbers in `compared`. [`GAP`] separates two texts, so that no
    /// phrase spans them.
    words: Vec<u32>,
    /// The same words, by their numbers in `written`.
    written_words: Vec<u32>,
    /// A number for each word as it is compared.
    compared: HashMap<String, u32>,
    /// A number for each word as it is written.
    written: HashMap<String, u32>,
    links: BTreeSet<PageAddress>,
    hosts: BTreeSet<String>,
    language: Option<String>,
    popularity: f64,
    porn_rank: f64,
    bozo_rank: f64,
}

/// Returns the number of a word, which gets the next one if it has none.
fn number_of(known: &mut HashMap<String, u32>, word: String) -> u32 {
    let next = u32::try_from(known.len()).unwrap_or(GAP - 1); // there are at most `MAX_WORDS`
    *known.entry(word).or_insert(next)
}

impl EntryText {
    /// Reads a stored entry of `resource`; `None` if it cannot be read.
    pub fn read(resource: &Resource, atom: &str) -> Option<EntryText> {
        let topic = resource.topic.as_str();
        let (head, entries) = (resource.feed_head.as_str(), &[atom]);
        let document = AtomDocument { head, topic, status: None, links: &[], entries };
        let feed = read_back(resource, &atom::document(&document));
        let mut entry = feed.entries.into_iter().next()?;
        entry.lang = entry.lang.or(feed.lang);
        Some(EntryText::new(&entry, &resource.topic.fetch_url(), &resource.status))
    }

    /// Returns what queries see of `entry`, which was published at `topic`.
    pub fn new(entry: &Entry, topic: &Url, status: &Status) -> EntryText {
        let mut read = EntryText {
            popularity: status.popularity,
            porn_rank: status.porn_rank.unwrap_or_default(),
            bozo_rank: status.bozo_rank,
            ..EntryText::default()
        };
        let language = entry.lang.as_deref().and_then(|lang| lang.split(['-', '_']).next());
        read.language =
            language.filter(|language| !language.is_empty()).map(str::to_ascii_lowercase);
        read.hosts.extend(topic.host_str().map(str::to_owned));
        read.add_links(entry, topic);
        for text in [&entry.title, &entry.summary].into_iter().flatten() {
            read.add_text(&text.to_plain());
            read.add_markup(text, topic);
        }
        match &entry.content {
            Some(Content::Text(text)) => {
                read.add_text(&text.to_plain());
                read.add_markup(text, topic);
            }
            Some(Content::Xml { value, .. }) => {
                read.add_text(&plain(value));
            }
            Some(Content::Media { .. } | Content::Src { .. }) | None => {}
        }
        for category in &entry.categories {
            read.add_text(&category.term);
            read.add_text(category.label.as_deref().unwrap_or_default());
        }
        for person in entry.authors.iter().chain(&entry.contributors) {
            read.add_text(&person.name);
        }
        read
    }

    fn add_links(&mut self, entry: &Entry, topic: &Url) {
        for link in &entry.links {
            let Some(page) = topic.join(&link.href).ok().as_ref().and_then(PageAddress::from_url)
            else {
                continue;
            };
            if link.rel == "alternate" {
                self.hosts.insert(page.host().to_owned());
            }
            self.links.insert(page);
        }
    }

    /// Adds the links in a text.
    fn add_markup(&mut self, text: &Text, topic: &Url) {
        if text.kind == TextKind::Text {
            return;
        }
        let base = text.base.as_deref().and_then(|base| topic.join(base).ok());
        let base = base.as_ref().unwrap_or(topic);
        for href in hrefs(&text.value) {
            if self.links.len() == MAX_LINKS {
                return;
            }
            let url = base.join(decode(href).trim()).ok();
            self.links.extend(url.as_ref().and_then(PageAddress::from_url));
        }
    }

    fn add_text(&mut self, text: &str) {
        if !self.words.is_empty() {
            self.words.push(GAP);
            self.written_words.push(GAP);
        }
        for word in words(&normal_form(text)) {
            if self.words.len() >= MAX_WORDS {
                return;
            }
            self.words.push(number_of(&mut self.compared, folded(word)));
            self.written_words.push(number_of(&mut self.written, word.to_owned()));
        }
    }

    /// Returns whether the entry has these words next to each other. If `exact` is given, they are
    /// written like that somewhere. The time is that of comparing numbers: a phrase may have hundreds
    /// of words, and an entry hundreds of thousands.
    pub(super) fn contains(&self, words: &[String], exact: Option<&[String]>) -> bool {
        let numbers = |known: &HashMap<String, u32>, words: &[String]| {
            words.iter().map(|word| known.get(word).copied()).collect::<Option<Vec<u32>>>()
        };
        let (place, wanted) = match exact {
            Some(exact) => (&self.written_words, numbers(&self.written, exact)),
            None => (&self.words, numbers(&self.compared, words)),
        };
        let Some(wanted) = wanted else { return false };
        match wanted.as_slice() {
            [] => false,
            [_] => true,
            [first, ..] => place
                .windows(wanted.len())
                .any(|window| window.first() == Some(first) && window == wanted),
        }
    }

    pub(super) fn links(&self) -> impl Iterator<Item = &PageAddress> {
        self.links.iter()
    }

    pub(super) fn hosts(&self) -> impl Iterator<Item = &str> {
        self.hosts.iter().map(String::as_str)
    }

    pub(super) fn language(&self) -> Option<&str> {
        self.language.as_deref()
    }

    pub(super) fn popularity(&self) -> f64 {
        self.popularity
    }

    pub(super) fn porn_rank(&self) -> f64 {
        self.porn_rank
    }

    pub(super) fn bozo_rank(&self) -> f64 {
        self.bozo_rank
    }

    /// Calls `visit` with each key that queries may require of this entry, some of them repeatedly:
    /// its words, and the domains of its hosts and links.
    pub(super) fn visit_keys(&self, mut visit: impl FnMut(&str)) {
        for domain in self.hosts().flat_map(domains) {
            visit(&format!("site:{domain}"));
        }
        let hosts: BTreeSet<&str> = self.links.iter().map(PageAddress::host).collect();
        for domain in hosts.into_iter().flat_map(domains) {
            visit(&format!("link:{domain}"));
        }
        self.compared.keys().for_each(|word| visit(word));
    }
}

/// Returns the values of the attributes `href` in markup.
fn hrefs(markup: &str) -> impl Iterator<Item = &str> {
    const NAME: &str = "href";
    let mut rest = markup;
    std::iter::from_fn(move || {
        loop {
            let at = rest
                .as_bytes()
                .windows(NAME.len())
                .position(|window| window.eq_ignore_ascii_case(NAME.as_bytes()))?;
            rest = &rest[at + NAME.len()..];
            let Some(value) = rest.trim_start().strip_prefix('=').map(str::trim_start) else {
                continue;
            };
            let (value, after) = match value.chars().next() {
                Some(quote @ ('"' | '\'')) => {
                    value[1..].split_once(quote).unwrap_or((&value[1..], ""))
                }
                _ => {
                    let end = value.find(|c: char| c.is_whitespace() || c == '>');
                    value.split_at(end.unwrap_or(value.len()))
                }
            };
            rest = after;
            return Some(value);
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_in_markup_are_found() {
        #[rustfmt::skip]
        let cases: [(&str, &[&str]); 5] = [
            (r#"<a href="https://a.test/?b&amp;c">x</a>"#, &["https://a.test/?b&amp;c"]),
            ("<A HREF = 'b'>x</A><a href=c class=d>",      &["b", "c"]),
            ("<a href>href</a>",                           &[]),
            (r#"<a href="open"#,                           &["open"]),
            ("é href é",                                   &[]),
        ];
        for (markup, want) in cases {
            assert_eq!(hrefs(markup).collect::<Vec<_>>(), want, "{markup}");
        }
    }
}
