//! The target that elements are read into: a feed or an entry.
//!
//! Formats and modules fill the same fields through this type. The first to fill a field wins, so a
//! format reads its own elements before those of modules.

use crate::model::{Category, Content, Element, Entry, Feed, Hints, Link, Node, Person, Text};
use crate::parse::bases::Bases;
use crate::parse::dates;
use crate::parse::texts::line;
use crate::parse::trace::SourceTrace;
use crate::parse::tree::{Items, XmlElement};
use crate::repair::{Repair, RepairCode};
use crate::short_list::push_to_short_list;
use chrono::{DateTime, FixedOffset};

/// Elements whose text is an address, by prefix and name.
const ADDRESSES: [(&str, &str); 6] = [
    ("rss", "docs"),
    ("rss", "comments"),
    ("rss", "url"),
    ("rss", "link"),
    ("wfw", "comment"),
    ("wfw", "commentRss"),
];

/// The maximum number of authors or contributors of one feed or entry: each is compared with those
/// before it. Any more are kept as extensions.
const PEOPLE: usize = 256;

/// A feed or an entry.
#[derive(Debug)]
pub(super) enum FeedOrEntry<'h> {
    Feed(&'h mut Feed),
    Entry(&'h mut Entry),
}

/// A feed or entry that is being filled.
#[derive(Debug)]
pub(super) struct Target<'h> {
    pub(super) object: FeedOrEntry<'h>,
    pub(super) bases: Bases<'h>,
    pub(super) repairs: &'h mut Vec<Repair>,
    pub(super) trace: &'h mut SourceTrace,
    /// Whether `published` is a date that does not say of what it is: see [`Target::set_date`].
    published_by_date: bool,
}

/// Implements access to a field that feeds and entries share.
macro_rules! slots {
    ($($name:ident: $kind:ty;)*) => {
        $(
            pub(super) fn $name(&mut self) -> &mut $kind {
                match &mut self.object {
                    FeedOrEntry::Feed(feed) => &mut feed.$name,
                    FeedOrEntry::Entry(entry) => &mut entry.$name,
                }
            }
        )*
    };
}

impl<'h> Target<'h> {
    /// Returns a target to read elements into.
    pub(super) fn new(
        object: FeedOrEntry<'h>,
        bases: Bases<'h>,
        repairs: &'h mut Vec<Repair>,
        trace: &'h mut SourceTrace,
    ) -> Target<'h> {
        Target { object, bases, repairs, trace, published_by_date: false }
    }
}

impl Target<'_> {
    slots! {
        id: String;
        title: Option<Text>;
        rights: Option<Text>;
        updated: Option<DateTime<FixedOffset>>;
        authors: Vec<Person>;
        contributors: Vec<Person>;
        links: Vec<Link>;
        categories: Vec<Category>;
        lang: Option<String>;
        extensions: Vec<Element>;
    }

    /// Returns the entry, if the target is one.
    pub(super) fn entry(&mut self) -> Option<&mut Entry> {
        match &mut self.object {
            FeedOrEntry::Entry(entry) => Some(entry),
            FeedOrEntry::Feed(_) => None,
        }
    }

    /// Returns the feed, if the target is one.
    pub(super) fn feed(&mut self) -> Option<&mut Feed> {
        match &mut self.object {
            FeedOrEntry::Feed(feed) => Some(feed),
            FeedOrEntry::Entry(_) => None,
        }
    }

    /// Returns how items inside a kept element are treated: items of a feed are read as entries.
    pub(super) fn items(&self) -> Items {
        match self.object {
            FeedOrEntry::Feed(_) => Items::Read,
            FeedOrEntry::Entry(_) => Items::Quoted,
        }
    }

    /// Returns the polling hints.
    pub(super) fn hints(&mut self) -> Option<&mut Hints> {
        self.feed().map(|feed| &mut feed.hints)
    }

    /// Returns the short text: `summary` of an entry, `subtitle` of a feed.
    pub(super) fn about(&mut self) -> &mut Option<Text> {
        match &mut self.object {
            FeedOrEntry::Feed(feed) => &mut feed.subtitle,
            FeedOrEntry::Entry(entry) => &mut entry.summary,
        }
    }

    /// Starts the feed or entry at `element`. `xml:lang` and `xml:base` may be inherited from its
    /// ancestors.
    pub(super) fn begin(&mut self, element: XmlElement<'_>) {
        let owner = match &mut self.object {
            FeedOrEntry::Feed(feed) => {
                self.trace.begin(*feed, element);
                feed.trace_id
            }
            FeedOrEntry::Entry(entry) => {
                self.trace.begin(*entry, element);
                entry.trace_id
            }
        };
        let lang = element.lang_source().map(|(told, _)| ("lang", told));
        let base = element.base_sources().next().map(|(told, _)| ("base", told));
        for (name, told) in lang.into_iter().chain(base) {
            self.trace.record_field(owner, name, told);
        }
    }

    /// Calls `read` on an element, and traces the fields that it fills to that element.
    pub(super) fn reading(&mut self, element: XmlElement<'_>, read: impl FnOnce(&mut Target<'_>)) {
        let before = match &mut self.object {
            FeedOrEntry::Feed(feed) => self.trace.snapshot(*feed),
            FeedOrEntry::Entry(entry) => self.trace.snapshot(*entry),
        };
        read(self);
        match &mut self.object {
            FeedOrEntry::Feed(feed) => self.trace.record_changes(before, *feed, element),
            FeedOrEntry::Entry(entry) => self.trace.record_changes(before, *entry, element),
        }
    }

    /// Calls `read` on an element, and keeps the element as an extension if `read` returns `false`
    /// because the element has no counterpart in Atom.
    pub(super) fn read_or_keep<'t>(
        &mut self,
        element: XmlElement<'t>,
        read: impl FnOnce(XmlElement<'t>, &mut Target<'_>) -> bool,
    ) {
        self.reading(element, |target| {
            if !read(element, target) {
                target.keep_extension(element);
            }
        });
    }

    /// Keeps an element that has no counterpart in Atom.
    pub(super) fn keep_extension(&mut self, element: XmlElement<'_>) {
        let items = self.items();
        match element.to_extension(items) {
            Some(mut kept) => {
                self.absolute(element, &mut kept);
                push_to_short_list(self.extensions(), kept);
            }
            None => {
                let detail = element.name().to_owned();
                self.report(Repair::new(RepairCode::OversizedExtension, detail), element);
            }
        }
    }

    fn report(&mut self, repair: Repair, element: XmlElement<'_>) {
        self.repairs.push(Repair { byte: element.start(), ..repair });
    }

    /// Resolves addresses that are the text of a kept element, where an `xml:base` applies.
    fn absolute(&self, element: XmlElement<'_>, kept: &mut Element) {
        let Some(base) = self.bases.base(element) else { return };
        let resolve = |element: &mut Element| {
            let name = element.name.as_str();
            let known = ADDRESSES
                .iter()
                .any(|(prefix, held)| element.prefix == *prefix && held.eq_ignore_ascii_case(name));
            if let ([Node::Text(text)], true) = (element.children.as_mut_slice(), known)
                && let Ok(absolute) = base.join(text.trim())
                && !text.trim().contains(':')
            {
                *text = absolute.into();
            }
        };
        resolve(kept);
        for child in &mut kept.children {
            if let Node::Element(child) = child {
                resolve(child);
            }
        }
    }

    /// Sets the title if it is unset. Returns whether it was.
    pub(super) fn set_title(&mut self, text: Text) -> bool {
        fill(self.title(), text)
    }

    /// Sets the summary or subtitle if it is unset. Returns whether it was.
    pub(super) fn set_about(&mut self, text: Text) -> bool {
        fill(self.about(), text)
    }

    /// Sets the rights if they are unset. Returns whether they were.
    pub(super) fn set_rights(&mut self, text: Text) -> bool {
        fill(self.rights(), text)
    }

    /// Sets the content of an entry if it is unset. Returns whether it was.
    pub(super) fn set_content(&mut self, content: Content) -> bool {
        match self.entry() {
            Some(entry) if entry.content.is_none() => {
                entry.content = Some(content);
                true
            }
            Some(entry) => entry.content.as_ref() == Some(&content),
            None => false,
        }
    }

    /// Adds an author, unless it is listed already. Returns `false` if the element must be kept.
    pub(super) fn add_author(&mut self, person: Option<Person>) -> bool {
        add_person(self.authors(), person)
    }

    /// Adds a contributor, unless it is listed already. Returns `false` if the element must be
    /// kept.
    pub(super) fn add_contributor(&mut self, person: Option<Person>) -> bool {
        add_person(self.contributors(), person)
    }

    /// Adds a category.
    pub(super) fn add_category(&mut self, category: Category) -> bool {
        if category.term.is_empty() {
            return false;
        }
        push_to_short_list(self.categories(), category);
        true
    }

    /// Adds a link.
    pub(super) fn add_link(&mut self, link: Link) -> bool {
        if link.href.is_empty() {
            return false;
        }
        push_to_short_list(self.links(), link);
        true
    }

    /// Reads the date in an element. An invalid date is reported as a repair.
    pub(super) fn date(&mut self, element: XmlElement<'_>) -> Option<DateTime<FixedOffset>> {
        let text = element.text();
        let date = dates::parse(&text);
        if date.is_none() && !text.is_empty() {
            let detail: String = line(&text).chars().take(64).collect();
            self.report(Repair::new(RepairCode::BadDate, detail), element);
        }
        date
    }

    /// Sets `updated` from an element if it is unset. Returns `false` if the element must be kept.
    pub(super) fn set_updated(&mut self, element: XmlElement<'_>) -> bool {
        let Some(date) = self.date(element) else { return element.text().is_empty() };
        *self.updated().get_or_insert(date) == date
    }

    /// Sets `updated` from the only date that RSS 1.0 has, which is that of the publication as well as
    /// long as no element says it more exactly. Returns `false` if the element must be kept.
    pub(super) fn set_date(&mut self, element: XmlElement<'_>) -> bool {
        let Some(date) = self.date(element) else { return element.text().is_empty() };
        if let FeedOrEntry::Entry(entry) = &mut self.object
            && entry.published.is_none()
        {
            entry.published = Some(date);
            self.published_by_date = true;
        }
        *self.updated().get_or_insert(date) == date
    }

    /// Sets `published` of an entry from an element if it is unset; feeds have no such field.
    /// Returns `false` if the element must be kept.
    pub(super) fn set_published(&mut self, element: XmlElement<'_>) -> bool {
        let Some(date) = self.date(element) else { return element.text().is_empty() };
        let replaced = std::mem::take(&mut self.published_by_date);
        match &mut self.object {
            FeedOrEntry::Entry(entry) if replaced => {
                entry.published = Some(date);
                true
            }
            FeedOrEntry::Entry(entry) => *entry.published.get_or_insert(date) == date,
            FeedOrEntry::Feed(feed) => *feed.updated.get_or_insert(date) == date,
        }
    }
}

fn fill(slot: &mut Option<Text>, text: Text) -> bool {
    match slot {
        Some(held) if !held.value.is_empty() => text.value.is_empty() || held.value == text.value,
        _ => {
            *slot = Some(text);
            true
        }
    }
}

fn add_person(people: &mut Vec<Person>, person: Option<Person>) -> bool {
    let Some(person) = person else { return false };
    let same = |held: &Person| {
        held == &person
            || (!person.name.is_empty()
                && held.name == person.name
                && person.email.is_none()
                && person.uri.is_none()
                && person.extensions.is_empty())
    };
    if people.iter().any(same) {
        return true;
    }
    let room = people.len() < PEOPLE;
    if room {
        push_to_short_list(people, person);
    }
    room
}
