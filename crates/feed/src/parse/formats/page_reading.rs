//! A page from which entries are read, in whatever way they are marked up, with what its head says of them.

use chrono::{DateTime, FixedOffset, Utc};
use url::Url;

use crate::model::{Attribute, Element, Entry, Feed, FeedFormat, Generator, Link, Node, Text};
use crate::parse::html::{HtmlElement, ParsedHtml};
use crate::parse::microformats::absolute;
use crate::parse::selection::{Choice, Room, Selection};
use crate::parse::texts::line;
use crate::parse::trace::{SourceTrace, Traceable};
use crate::parse::{MAX_ENTRIES, Notes};
use crate::repair::{Repair, RepairCode};

/// A namespace in which elements are written.
#[derive(Clone, Copy)]
pub(super) struct OutputNamespace {
    pub(super) uri: &'static str,
    pub(super) prefix: &'static str,
}

/// The namespace of the link to a person's picture, as Superfeedr subscribers expect it (seed 003,
/// "author").
const ATOM: OutputNamespace =
    OutputNamespace { uri: "http://www.w3.org/2005/Atom", prefix: "atom" };

/// Relations of page links that describe the feed, with their counterparts in Atom.
const LINKS: [(&str, &str); 6] = [
    ("hub", "hub"),
    ("self", "self"),
    ("next", "next"),
    ("prev", "previous"),
    ("previous", "previous"),
    ("license", "license"),
];

/// How many bytes of texts may be taken out of linked data for each byte of the page, and how many of
/// every page.
const TEXTS_OFTEN: usize = 2;
const TEXT_ROOM_BYTES: usize = 1024 * 1024;

/// The state of reading one page.
#[derive(Debug)]
pub(super) struct PageReading<'r> {
    pub(super) page: &'r ParsedHtml,
    pub(super) root: HtmlElement<'r>,
    /// The URL of the page.
    pub(super) url: &'r Url,
    /// The base of relative addresses.
    pub(super) base: &'r Url,
    /// The base that the page declares, if it declares one.
    pub(super) told: Option<String>,
    pub(super) told_by: Option<HtmlElement<'r>>,
    pub(super) received_at: Option<DateTime<Utc>>,
    /// The address that the page prefers for itself, or else the one at which it was found, which may differ
    /// from fetch to fetch.
    pub(super) own_address: String,
    /// How many bytes of texts may still be taken out of linked data, whose items may be read many times.
    pub(super) text_room: usize,
    /// See [`Feed::gap`].
    pub(super) gap: Option<usize>,
    pub(super) repairs: &'r mut Vec<Repair>,
    pub(super) trace: &'r mut SourceTrace,
}

impl<'r> PageReading<'r> {
    /// Begins to read a page at `url`, whose addresses are relative to `base`; `None` if it has no elements.
    pub(super) fn begin_page(
        page: &'r ParsedHtml,
        (url, base): (&'r Url, &'r Url),
        received_at: Option<DateTime<Utc>>,
        notes: Notes<'r>,
    ) -> Option<PageReading<'r>> {
        let Notes { repairs, trace } = notes;
        Some(PageReading {
            page,
            root: page.root()?,
            url,
            base,
            told: (base != url).then(|| base.to_string()),
            told_by: page.tells_base(),
            received_at,
            own_address: own_address(page, url, base),
            text_room: TEXTS_OFTEN * page.length + TEXT_ROOM_BYTES,
            gap: None,
            repairs,
            trace,
        })
    }

    /// Returns the feed with these entries, which are marked up in `scope`.
    pub(super) fn feed(
        &mut self,
        format: FeedFormat,
        scope: HtmlElement<'_>,
        entries: Vec<Entry>,
    ) -> Feed {
        if self.page.is_cut {
            let detail = "the rest of the page is not read".to_owned();
            self.repairs.push(Repair::new(RepairCode::PageCut, detail));
        }
        let mut feed = Feed {
            format,
            lang: scope.lang().map(str::to_owned),
            base: self.told.clone(),
            entries,
            gap: self.gap,
            ..Feed::default()
        };
        self.begin(&mut feed, scope);
        feed
    }

    /// Starts the trace of a feed or entry that is marked up in `tag`.
    pub(super) fn begin(&mut self, of: &mut impl Traceable, tag: HtmlElement<'_>) {
        self.trace.begin(of, tag);
        for (name, told) in [("lang", tag.tells_lang()), ("base", self.told_by)] {
            if let Some(told) = told {
                self.trace.record_field(*of.trace_id(), name, told);
            }
        }
    }

    /// Reads the entries of these items; of too many, those that are chosen by their dates.
    pub(super) fn entries<I: Copy>(
        &mut self,
        items: &[I],
        date: impl Fn(&Self, I) -> Option<DateTime<FixedOffset>>,
        read: impl Fn(&mut Self, I) -> Option<Entry>,
    ) -> Vec<Entry> {
        self.gap = None;
        if items.len() <= MAX_ENTRIES {
            return items.iter().filter_map(|item| read(self, *item)).collect();
        }
        let choices = items.iter().map(|item| Choice::of_entry(date(self, *item)));
        let choices: Vec<Choice> = choices.collect();
        let selection = Selection::choose(&choices, Room::ENTRIES, self.received_at);
        let before = |at: &usize| selection.gap.is_some_and(|gap| *at < gap);
        let (mut entries, mut gap) = (Vec::with_capacity(selection.kept.len()), 0);
        for at in &selection.kept {
            entries.extend(read(self, items[*at]));
            gap = if before(at) { entries.len() } else { gap };
        }
        self.gap = selection.gap.map(|_| gap);
        self.repairs.push(selection.report(entries.len()));
        entries
    }

    /// Reads the metadata in the head of the page.
    pub(super) fn describe_page(&mut self, feed: &mut Feed) {
        self.describe_title(feed);
        for tag in self.page.named("link") {
            let Some(href) = tag.attr("href").filter(|href| !href.is_empty()) else { continue };
            let href = absolute(self.base, href);
            let before = self.trace.snapshot(feed);
            for rel in tag.words("rel").map(str::to_ascii_lowercase) {
                let known = LINKS.iter().find(|(name, _)| *name == rel);
                feed.links.extend(known.map(|(_, rel)| link(href.clone(), rel)));
                if rel == "icon" {
                    feed.icon.get_or_insert_with(|| href.clone());
                }
            }
            self.trace.record_changes(before, feed, tag);
        }
        let mut metas = self.page.named("meta").into_iter();
        let generator = metas.find(|tag| tag.attr("name") == Some("generator"));
        if let Some((tag, name)) = generator.and_then(|tag| Some((tag, tag.attr("content")?))) {
            let before = self.trace.snapshot(feed);
            let name = line(name).into_owned();
            feed.generator = Some(Generator { name, ..Generator::default() });
            self.trace.record_changes(before, feed, tag);
        }
        if !feed.links.iter().any(|link| link.rel == "alternate") {
            let before = self.trace.snapshot(feed);
            feed.links.push(link(self.url.to_string(), "alternate"));
            self.trace.record_changes(before, feed, self.root);
        }
    }

    /// Marks the entry that is alone on the page, if it is at the address of the page.
    pub(super) fn mark_entry_of_page(&self, feed: &mut Feed) {
        let [entry] = &mut feed.entries[..] else { return };
        let alternate = entry.links.iter().find(|link| link.rel == "alternate");
        let stated = alternate.map_or(entry.id.as_str(), |link| link.href.as_str());
        let own_addresses = [self.url.as_str(), self.own_address.as_str()];
        entry.describes_page =
            own_addresses.into_iter().any(|own| without_fragment(own) == without_fragment(stated));
    }

    fn describe_title(&mut self, feed: &mut Feed) {
        if feed.title.is_some() {
            return;
        }
        let titles = self.page.named("title").into_iter().map(|tag| (tag, tag.text()));
        let mut titles = titles.filter(|(_, title)| !title.is_empty());
        if let Some((tag, title)) = titles.next() {
            let before = self.trace.snapshot(feed);
            feed.title = Some(Text::plain(title));
            self.trace.record_changes(before, feed, tag);
        }
    }
}

fn own_address(page: &ParsedHtml, url: &Url, base: &Url) -> String {
    let links = page.named("link").into_iter();
    let mut canonical = links.filter(|tag| tag.words("rel").any(|rel| rel == "canonical"));
    let href = canonical.find_map(|tag| tag.attr("href").filter(|href| !href.is_empty()));
    href.map_or_else(|| url.to_string(), |href| absolute(base, href))
}

/// Returns an address without the parts in which addresses of one page may differ.
pub(super) fn without_fragment(address: &str) -> &str {
    address.split('#').next().unwrap_or_default().trim_end_matches('/')
}

pub(super) fn link(href: String, rel: &str) -> Link {
    Link { href, rel: rel.to_owned(), ..Link::default() }
}

pub(super) fn attribute(name: &str, value: String) -> Attribute {
    Attribute { name: name.to_owned(), value, ..Attribute::default() }
}

/// Creates an element without children.
pub(super) fn element(
    namespace: OutputNamespace,
    name: &str,
    attributes: Vec<Attribute>,
) -> Element {
    Element {
        namespace: namespace.uri.to_owned(),
        prefix: namespace.prefix.to_owned(),
        name: name.to_owned(),
        attributes,
        children: Vec::new(),
        ..Element::default()
    }
}

/// Creates an element that holds a text.
pub(super) fn with_text(namespace: OutputNamespace, name: &str, text: String) -> Element {
    let mut element = element(namespace, name, Vec::new());
    element.children.push(Node::Text(text));
    element
}

/// Returns the link to a person's picture.
pub(super) fn avatar(href: String) -> Element {
    let attributes = vec![attribute("rel", "avatar".to_owned()), attribute("href", href)];
    element(ATOM, "link", attributes)
}
