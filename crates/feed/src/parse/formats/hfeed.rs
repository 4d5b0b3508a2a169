//! h-feed: pages whose entries are marked up with microformats.
//!
//! A page is a feed if it has an `h-feed` with an entry in it, or several entries outside other
//! items, or the same in classic microformats. A single entry is the page of that entry and not a
//! feed. So is a classic `hfeed` with one entry, because blog themes put that class on every page.
//! An entry without a name, content and address is ignored.
//!
//! Properties without a counterpart in Atom are kept as elements: addresses in `href`, anything
//! else as text.

mod entry;
mod person;
mod place;

use chrono::{DateTime, Utc};
use url::Url;

use crate::model::{Attribute, Element, Entry, Feed, FeedFormat, Generator, Link, Node, Text};
use crate::parse::html::{Descend, HtmlElement, ParsedHtml};
use crate::parse::microformats::{MicroformatItem, Property, ValueForm, absolute, outermost};
use crate::parse::selection::{Choice, Room, Selection};
use crate::parse::texts::line;
use crate::parse::trace::{SourceTrace, Traceable};
use crate::parse::{MAX_ENTRIES, Notes, dates};
use crate::repair::{Repair, RepairCode};

/// A namespace in which elements are written.
#[derive(Clone, Copy)]
struct OutputNamespace {
    uri: &'static str,
    prefix: &'static str,
}

/// The namespace of kept properties.
const H_ENTRY: OutputNamespace =
    OutputNamespace { uri: "http://microformats.org/profile/h-entry", prefix: "mf" };

/// Relations of page links that describe the feed, with their counterparts in Atom.
const LINKS: [(&str, &str); 6] = [
    ("hub", "hub"),
    ("self", "self"),
    ("next", "next"),
    ("prev", "previous"),
    ("previous", "previous"),
    ("license", "license"),
];

/// The state of reading one page.
#[derive(Debug)]
struct Reading<'r> {
    /// The base of relative addresses.
    base: &'r Url,
    /// The base that the page declares, if it declares one.
    told: Option<String>,
    told_by: Option<HtmlElement<'r>>,
    received_at: Option<DateTime<Utc>>,
    /// See [`Feed::gap`].
    gap: Option<usize>,
    repairs: &'r mut Vec<Repair>,
    trace: &'r mut SourceTrace,
}

/// Reads the feed in the page at `url`, which was received at this time; `None` if the page is not a
/// feed.
pub(in crate::parse) fn read(
    text: &str,
    (url, received_at): (&Url, Option<DateTime<Utc>>),
    notes: Notes<'_>,
) -> Option<Feed> {
    // Most pages are ruled out by a text search, without parsing.
    if !(text.contains("h-entry") || text.contains("hentry")) {
        return None;
    }
    let mut page = ParsedHtml::read(text);
    let mut found = Vec::new();
    page.mend_texts(&mut found);
    let root = page.root()?;
    let base = page.base(url);
    let told = (base != *url).then(|| base.to_string());
    let told_by = page.tells_base();
    let repairs = &mut found;
    let mut reading =
        Reading { base: &base, told, told_by, received_at, gap: None, repairs, trace: notes.trace };
    let (item, entries) = entries(root, &mut reading)?;
    if page.is_cut {
        let detail = "the rest of the page is not read".to_owned();
        reading.repairs.push(Repair::new(RepairCode::PageCut, detail));
    }
    let mut feed = Feed {
        format: FeedFormat::HFeed,
        lang: item.map_or(root, |item| item.tag).lang().map(str::to_owned),
        base: reading.told.clone(),
        entries,
        gap: reading.gap,
        ..Feed::default()
    };
    let scope = item.map_or(root, |item| item.tag);
    reading.begin(&mut feed, scope);
    if let Some(item) = item {
        reading.describe(&mut feed, item);
    }
    reading.describe_page(&mut feed, &page, url);
    notes.repairs.append(&mut found);
    Some(feed)
}

/// Returns the entries of a page and the item that contains them.
fn entries<'p>(
    root: HtmlElement<'p>,
    reading: &mut Reading<'_>,
) -> Option<(Option<MicroformatItem<'p>>, Vec<Entry>)> {
    let mut feeds = Vec::new();
    root.walk(|tag| match MicroformatItem::at(tag) {
        Some(item) if item.is("h-entry") => Descend::Skip,
        Some(item) if item.is("h-feed") => {
            feeds.push(item);
            Descend::Enter
        }
        _ => Descend::Enter,
    });
    for feed in feeds {
        let entries = reading.entries(&feed.items("h-entry"));
        let least = if feed.is_classic { 2 } else { 1 };
        if entries.len() >= least {
            return Some((Some(feed), entries));
        }
    }
    let mut loose = outermost(root);
    loose.retain(|item| item.is("h-entry"));
    let entries = reading.entries(&loose);
    (entries.len() >= 2).then_some((None, entries))
}

impl Reading<'_> {
    fn entries(&mut self, items: &[MicroformatItem<'_>]) -> Vec<Entry> {
        self.gap = None;
        if items.len() <= MAX_ENTRIES {
            return items.iter().filter_map(|item| self.entry(*item)).collect();
        }
        let choices: Vec<Choice> = items.iter().map(|item| self.choice(*item)).collect();
        let selection = Selection::choose(&choices, Room::ENTRIES, self.received_at);
        let before = |at: &usize| selection.gap.is_some_and(|gap| *at < gap);
        let (mut entries, mut gap) = (Vec::with_capacity(selection.kept.len()), 0);
        for at in &selection.kept {
            entries.extend(self.entry(items[*at]));
            gap = if before(at) { entries.len() } else { gap };
        }
        self.gap = selection.gap.map(|_| gap);
        self.repairs.push(selection.report(entries.len()));
        entries
    }

    /// Returns what decides whether an entry is read of a page that has too many.
    fn choice(&self, item: MicroformatItem<'_>) -> Choice {
        let properties = item.properties();
        let date = |name| {
            let mut named = properties.iter().filter(|property| property.name == name);
            named.find_map(|property| dates::parse(&property.date()))
        };
        let date = date("published").or_else(|| date("updated"));
        Choice::of_entry(date)
    }

    /// Reads the properties of the item that contains the entries.
    fn describe(&mut self, feed: &mut Feed, item: MicroformatItem<'_>) {
        for property in item.properties() {
            let before = self.trace.snapshot(feed);
            let filled = || Some(property.text()).filter(|text| !text.is_empty());
            match property.name {
                "name" if feed.title.is_none() => feed.title = filled().map(Text::plain),
                "summary" | "note" if feed.subtitle.is_none() => {
                    feed.subtitle = filled().map(Text::plain);
                }
                "uid" if feed.id.is_empty() => feed.id = self.address(property).unwrap_or_default(),
                "url" => feed.links.extend(self.address(property).map(|to| link(to, "alternate"))),
                "photo" | "logo" if feed.logo.is_none() => feed.logo = self.address(property),
                "author" => feed.authors.extend(self.person(property)),
                _ if property.item.is_some_and(|item| item.is("h-entry")) => {}
                _ => feed.extensions.extend(self.kept(property)),
            }
            self.trace.record_changes(before, feed, property.tag);
        }
    }

    /// Reads the metadata in the head of the page.
    fn describe_page(&mut self, feed: &mut Feed, page: &ParsedHtml, url: &Url) {
        if feed.title.is_none() {
            let titles = page.named("title").into_iter().map(|tag| (tag, tag.text()));
            let mut titles = titles.into_iter().filter(|(_, title)| !title.is_empty());
            if let Some((tag, title)) = titles.next() {
                let before = self.trace.snapshot(feed);
                feed.title = Some(Text::plain(title));
                self.trace.record_changes(before, feed, tag);
            }
        }
        for tag in page.named("link") {
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
        let mut metas = page.named("meta").into_iter();
        let generator = metas.find(|tag| tag.attr("name") == Some("generator"));
        if let Some((tag, name)) = generator.and_then(|tag| Some((tag, tag.attr("content")?))) {
            let before = self.trace.snapshot(feed);
            let name = line(name).into_owned();
            feed.generator = Some(Generator { name, ..Generator::default() });
            self.trace.record_changes(before, feed, tag);
        }
        if let Some(root) = page.root()
            && !feed.links.iter().any(|link| link.rel == "alternate")
        {
            let before = self.trace.snapshot(feed);
            feed.links.push(link(url.to_string(), "alternate"));
            self.trace.record_changes(before, feed, root);
        }
    }

    /// Starts the trace of a feed or entry that is marked up in `tag`.
    fn begin(&mut self, of: &mut impl Traceable, tag: HtmlElement<'_>) {
        self.trace.begin(of, tag);
        for (name, told) in [("lang", tag.tells_lang()), ("base", self.told_by)] {
            if let Some(told) = told {
                self.trace.record_field(*of.trace_id(), name, told);
            }
        }
    }

    /// Returns the address in a property, or the address of the item that is its value.
    fn address(&self, property: Property<'_>) -> Option<String> {
        match property.item {
            Some(item) => self.address_of(item).or_else(|| property.address(self.base)),
            None => property.address(self.base),
        }
    }

    /// Returns the address of an item.
    fn address_of(&self, item: MicroformatItem<'_>) -> Option<String> {
        let held = item.properties();
        let told = held.iter().find(|property| property.name == "url");
        let told = told.and_then(|property| property.address(self.base));
        told.or_else(|| item.implied_url(&held).map(|href| absolute(self.base, href)))
    }

    /// Returns the name of an item.
    fn name_of(&self, item: MicroformatItem<'_>) -> Option<String> {
        let held = item.properties();
        let told = held.iter().find(|property| property.name == "name");
        let told = told.map(|property| property.text());
        told.or_else(|| item.implied_name(&held)).filter(|name| !name.is_empty())
    }

    /// Returns the element for a property without a counterpart in Atom.
    fn kept(&mut self, property: Property<'_>) -> Option<Element> {
        let text = match (property.form, property.item) {
            (ValueForm::Address, _) => {
                let href = vec![attribute("href", self.address(property)?)];
                return Some(element(H_ENTRY, property.name, href));
            }
            (ValueForm::Markup, _) => property.tag.markup(),
            (ValueForm::Date, _) => property.date(),
            (ValueForm::Text, Some(item)) => self.name_of(item).unwrap_or_else(|| property.text()),
            (ValueForm::Text, None) => property.text(),
        };
        if text.len() > KEPT_BYTES {
            let detail = property.name.to_owned();
            self.repairs.push(Repair::new(RepairCode::OversizedExtension, detail));
            return None;
        }
        let mut kept = element(H_ENTRY, property.name, Vec::new());
        kept.children.push(Node::Text(text));
        Some(kept)
    }
}

/// The maximum size of a kept property, in bytes. The properties of an entry may all contain the
/// same text.
const KEPT_BYTES: usize = 4 * 1024;

fn link(href: String, rel: &str) -> Link {
    Link { href, rel: rel.to_owned(), ..Link::default() }
}

fn attribute(name: &str, value: String) -> Attribute {
    Attribute { name: name.to_owned(), value, ..Attribute::default() }
}

/// Creates an element without children.
fn element(namespace: OutputNamespace, name: &str, attributes: Vec<Attribute>) -> Element {
    Element {
        namespace: namespace.uri.to_owned(),
        prefix: namespace.prefix.to_owned(),
        name: name.to_owned(),
        attributes,
        children: Vec::new(),
        ..Element::default()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read_page(text: &str) -> (Option<Feed>, Vec<Repair>) {
        let mut repairs = Vec::new();
        let url = Url::parse("https://tides.test/").unwrap();
        let notes = Notes { repairs: &mut repairs, trace: &mut SourceTrace::default() };
        (read(text, (&url, None), notes), repairs)
    }

    /// Fragments of pages, valid and malformed, that the property tests combine.
    #[rustfmt::skip]
    const PIECES: [&str; 30] = [
        "<div class=h-feed>", "<body class='hfeed h-card'>", "<div class=h-entry>", "<p class='hentry'>",
        "<a class='p-name u-url' href='x'>", "<a rel='bookmark tag' href=''>", "</a>", "</div>", "</p>",
        "<b class='p-author h-card'>", "<i class='p-author u-author dt-author e-author'>", "<table>",
        "<b class='dt-published value'>", "<i class=value>7pm</i>", "<i class=value-title title=é>",
        "<p class='p-geo h-geo'>", "<p class='geo latitude longitude p-latitude p-longitude'>91", "-1;1",
        "<p class='p-location h-adr'>", "<a class='u-email' href='mailté:'>", "<base href='data:x'>",
        "<div class='u-in-reply-to h-cite'>", "<template>", "<svg>", "<img class=u-photo src='&#0;'>",
        "<div class='e-content p-name'>", "<", "\u{0}é", "<script>", "<!--",
    ];

    proptest! {
        #[test]
        fn any_page_is_read_or_refused(at in prop::collection::vec(0..PIECES.len(), 0..48)) {
            let text: String = at.into_iter().map(|at| PIECES[at]).collect();
            let (feed, _) = read_page(&format!("<div class=h-entry>{text}"));
            for entry in feed.into_iter().flat_map(|feed| feed.entries) {
                let says = entry.title.is_some() || entry.summary.is_some();
                prop_assert!(says || entry.content.is_some() || !entry.links.is_empty());
            }
        }
    }

    #[test]
    fn of_a_page_beyond_the_limits_what_came_before_is_read() {
        let entries = "<div class=h-feed><p class=h-entry>One<p class=h-entry>Two";
        for hostile in
            ["<div class='h-entry p-x h-feed'>", "<b class='p-a p-b'>", "<a class=h-card>"]
        {
            let (feed, repairs) = read_page(&format!("{entries}</p>{}", hostile.repeat(5_000)));
            assert!(feed.unwrap().entries.len() >= 2, "{hostile}");
            let cut = repairs.iter().any(|repair| repair.code == RepairCode::PageCut);
            assert_eq!(cut, !hostile.contains("<a"), "{hostile}: an anchor ends the one before");
        }
        let (feed, repairs) = read_page(&"<p class=h-entry>x".repeat(MAX_ENTRIES + 7));
        assert_eq!(feed.unwrap().entries.len(), MAX_ENTRIES);
        assert_eq!(repairs[0].code, RepairCode::TooManyEntries);
    }
}
