//! h-feed: pages whose entries are marked up with microformats.
//!
//! A page is a feed if it has an `h-feed` with an entry in it, or several entries outside other
//! items, or the same in classic microformats. A single entry in microformats2 is the page of that entry,
//! and read as a feed of one (`hentry`). A classic `hfeed` with one entry, or a single `hentry`, is nothing,
//! because blog themes put these classes on every page. An entry without a name, content and address is
//! ignored.
//!
//! Properties without a counterpart in Atom are kept as elements: addresses in `href`, anything
//! else as text.

mod entry;
mod person;
mod place;
mod single;

pub(super) use single::read as read_single;

use chrono::{DateTime, FixedOffset};

use super::page_reading::{
    OutputNamespace, PageReading, attribute, avatar, element, link, with_text,
};
use crate::model::{Element, Entry, Feed, FeedFormat, Text};
use crate::parse::dates;
use crate::parse::html::Descend;
use crate::parse::microformats::{MicroformatItem, Property, ValueForm, absolute, outermost};
use crate::repair::{Repair, RepairCode};

/// The namespace of kept properties.
const H_ENTRY: OutputNamespace =
    OutputNamespace { uri: "http://microformats.org/profile/h-entry", prefix: "mf" };

/// Returns whether the text of a page may contain entries in microformats.
pub(super) fn may_be_in(text: &str) -> bool {
    text.contains("h-entry") || text.contains("hentry")
}

/// Reads the feed in a page; the reason if it has none.
pub(super) fn read(reading: &mut PageReading<'_>) -> Result<Feed, String> {
    let (item, entries) = reading.listed_entries().ok_or_else(|| {
        "it has neither an h-feed with an h-entry nor several h-entry elements".to_owned()
    })?;
    let scope = item.map_or(reading.root, |item| item.tag);
    let mut feed = reading.feed(FeedFormat::HFeed, scope, entries);
    if let Some(item) = item {
        reading.describe(&mut feed, item);
    }
    reading.describe_page(&mut feed);
    Ok(feed)
}

impl<'p> PageReading<'p> {
    /// Returns the entries of a page and the item that contains them.
    fn listed_entries(&mut self) -> Option<(Option<MicroformatItem<'p>>, Vec<Entry>)> {
        let mut feeds = Vec::new();
        self.root.walk(|tag| match MicroformatItem::at(tag) {
            Some(item) if item.is("h-entry") => Descend::Skip,
            Some(item) if item.is("h-feed") => {
                feeds.push(item);
                Descend::Enter
            }
            _ => Descend::Enter,
        });
        for feed in feeds {
            let entries = self.entries_of(&feed.items("h-entry"));
            let least = if feed.is_classic { 2 } else { 1 };
            if entries.len() >= least {
                return Some((Some(feed), entries));
            }
        }
        let mut loose = outermost(self.root);
        loose.retain(|item| item.is("h-entry"));
        let entries = self.entries_of(&loose);
        (entries.len() >= 2).then_some((None, entries))
    }

    fn entries_of(&mut self, items: &[MicroformatItem<'_>]) -> Vec<Entry> {
        self.entries(items, |_, item| date_of(item), |reading, item| reading.entry(item))
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
        Some(with_text(H_ENTRY, property.name, text))
    }
}

/// Returns the date that decides whether an entry is read of a page that has too many.
fn date_of(item: MicroformatItem<'_>) -> Option<DateTime<FixedOffset>> {
    let properties = item.properties();
    let date = |name| {
        let mut named = properties.iter().filter(|property| property.name == name);
        named.find_map(|property| dates::parse(&property.date()))
    };
    date("published").or_else(|| date("updated"))
}

/// The maximum size of a kept property, in bytes. The properties of an entry may all contain the
/// same text.
const KEPT_BYTES: usize = 4 * 1024;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use url::Url;

    use super::*;
    use crate::context::Context;
    use crate::parse::formats::read_page as read;
    use crate::parse::trace::SourceTrace;
    use crate::parse::{MAX_ENTRIES, Notes};

    fn read_page(text: &str) -> (Option<Feed>, Vec<Repair>) {
        let mut repairs = Vec::new();
        let url = Url::parse("https://tides.test/").unwrap();
        let notes = Notes { repairs: &mut repairs, trace: &mut SourceTrace::default() };
        (read(text, &Context::new(url), notes), repairs)
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
