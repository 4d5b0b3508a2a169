//! Reading of one entry.

use std::collections::HashSet;

use chrono::{DateTime, FixedOffset};

use super::super::page_reading::{OutputNamespace, PageReading, avatar, link, with_text};
use super::listing::Item;
use super::media;
use super::text_size::text_size;
use crate::model::{Category, Content, Entry, Person, Text, TextKind};
use crate::parse::linked_data::{Graph, LinkedItemId, PropertyValue, is_short};
use crate::parse::microformats::absolute;
use crate::parse::texts::looks_like_html;
use crate::parse::{dates, person};
use crate::repair::{Repair, RepairCode};

/// The namespace of kept properties.
const SCHEMA: OutputNamespace = OutputNamespace { uri: "https://schema.org/", prefix: "schema" };
/// The maximum size of a kept property, in bytes, and the maximum number of them.
const KEPT_BYTES: usize = 4 * 1024;
const MOST_KEPT: usize = 64;
/// The maximum number of authors of an entry.
const MOST_PEOPLE: usize = 64;
/// The maximum number of categories of an entry, and how much of a text with commas is read, in bytes.
const MOST_TERMS: usize = 256;
const TERMS_BYTES: usize = 16 * 1024;

const PUBLISHED: [&str; 3] = ["datePublished", "uploadDate", "dateCreated"];

/// The properties that are mapped to Atom.
#[rustfmt::skip]
const READ: [&str; 34] = [
    "identifier", "url", "mainEntityOfPage", "headline", "name", "datePublished", "uploadDate", "dateCreated",
    "dateModified", "description", "abstract", "articleBody", "text", "author", "creator", "keywords",
    "articleSection", "genre", "image", "thumbnailUrl", "inLanguage", "associatedMedia", "audio", "video",
    "encoding", "contentUrl", "duration", "episodeNumber", "item", "position", "liveBlogUpdate", "mainEntity",
    "itemListElement", "timeRequired",
];

/// Properties that change without a change of the entry, or that say what can be done with it.
#[rustfmt::skip]
const LEFT_OUT: [&str; 10] = [
    "comment", "commentCount", "interactionStatistic", "interactionCount", "userInteractionCount",
    "aggregateRating", "review", "potentialAction", "speakable", "hasPart",
];

/// Returns whether what was read is an entry: it has an address or an id of its own, or a title with a text.
pub(super) fn is_one(entry: &Entry) -> bool {
    let has_address = entry.links.iter().any(|link| link.rel == "alternate");
    let has_text = entry.summary.is_some() || entry.content.is_some();
    has_address || !entry.id.is_empty() || entry.title.is_some() && has_text
}

/// Returns the date that decides whether an entry is read of a page that has too many.
pub(super) fn date(graph: &Graph<'_>, item: Item<'_>) -> Option<DateTime<FixedOffset>> {
    let node = item.node?;
    moment(graph, node, &PUBLISHED).or_else(|| moment(graph, node, &["dateModified"]))
}

/// Returns the first date among these properties.
pub(super) fn moment(
    graph: &Graph<'_>,
    node: LinkedItemId,
    names: &[&str],
) -> Option<DateTime<FixedOffset>> {
    names
        .iter()
        .find_map(|name| graph.first_values(node, name).find_map(|it| dates::parse(it.text()?)))
}

/// Returns the language of an item.
pub(super) fn language(graph: &Graph<'_>, node: LinkedItemId) -> Option<String> {
    let lang = graph.first_values(node, "inLanguage").find_map(|value| match value {
        PropertyValue::Node(id) => graph.short_text(*id, &["alternateName", "name"]),
        other => other.short_text(),
    });
    lang.map(str::to_owned)
}

impl PageReading<'_> {
    /// Reads an item as an entry, unless the entries before took all the room for texts. One that is alone is at the address of the page, if it has no other.
    pub(super) fn schema_org_entry(
        &mut self,
        graph: &Graph<'_>,
        item: Item<'_>,
        is_alone: bool,
    ) -> Option<Entry> {
        if self.text_room == 0 {
            return None;
        }
        let node = item.node.or(item.place);
        let tag = node.map_or(self.root, |node| graph.node(node).tag);
        let lang = tag.lang().map(str::to_owned);
        let mut entry = Entry { lang, base: self.told.clone(), ..Entry::default() };
        self.begin(&mut entry, tag);
        let before = self.trace.snapshot(&mut entry);
        if let Some(node) = node {
            self.describe_entry_of(graph, node, &mut entry);
        }
        if let Some(address) = item.address {
            entry.links.retain(|link| link.rel != "alternate");
            entry.links.push(link(address.to_owned(), "alternate"));
        }
        if let Some(place) = item.place.filter(|place| Some(*place) != node) {
            self.complete(&mut entry, graph, place);
        }
        if is_alone && !is_one(&entry) {
            let says = entry.title.is_some() || entry.content.is_some();
            entry.links.extend(says.then(|| link(self.own_address.clone(), "alternate")));
        } else if is_alone && !entry.links.iter().any(|link| link.rel == "alternate") {
            entry.links.push(link(self.own_address.clone(), "alternate"));
        }
        self.trace.record_changes(before, &mut entry, tag);
        (is_one(&entry) && self.has_room_for(&entry)).then_some(entry)
    }

    /// Takes the room for the texts of an entry. If it is too small, no further entries are read.
    fn has_room_for(&mut self, entry: &Entry) -> bool {
        let size = text_size(entry);
        let is_enough = size < self.text_room;
        if !is_enough {
            let detail = "the texts of all of them are longer than the page".to_owned();
            self.repairs.push(Repair::new(RepairCode::TooManyEntries, detail));
        }
        self.text_room = if is_enough { self.text_room - size } else { 0 };
        is_enough
    }

    /// Adds what the place of an item in a list says, where the item itself says nothing.
    fn complete(&mut self, entry: &mut Entry, graph: &Graph<'_>, place: LinkedItemId) {
        if entry.title.is_none() {
            entry.title = graph.text(place, &["name"]).map(|text| self.text_construct(text));
        }
        if !entry.links.iter().any(|link| link.rel == "alternate") {
            let url = self.address_in(graph, place, &["url"]);
            entry.links.extend(url.map(|url| link(url, "alternate")));
        }
    }

    fn describe_entry_of(&mut self, graph: &Graph<'_>, node: LinkedItemId, entry: &mut Entry) {
        entry.id = self.id_of(graph, node).unwrap_or_default();
        entry.lang = language(graph, node).or(entry.lang.take());
        let title = graph.text(node, &["headline", "name", "alternativeHeadline"]);
        entry.title = title.map(|text| self.text_construct(text));
        let about = graph.text(node, &["description", "abstract"]);
        entry.summary = about.map(|text| self.text_construct(text));
        entry.content = self.body_of(graph, node).map(Content::Text);
        entry.published = self.date_of(graph, node, &PUBLISHED);
        entry.updated = self.date_of(graph, node, &["dateModified"]);
        let url = self.address_in(graph, node, &["url"]).or_else(|| self.page_of(graph, node));
        entry.links.extend(url.map(|url| link(url, "alternate")));
        entry.authors = self.people(graph, node);
        entry.categories = categories(graph, node);
        media::describe(self, graph, node, entry);
        self.keep_others(graph, node, entry);
    }

    /// Returns the id that an item states: its identifier, or else its name in the graph.
    fn id_of(&self, graph: &Graph<'_>, node: LinkedItemId) -> Option<String> {
        let stated = graph.first_values(node, "identifier").find_map(|value| match value {
            PropertyValue::Node(id) => graph.short_text(*id, &["value", "propertyID"]),
            other => other.short_text(),
        });
        if let Some(stated) = stated {
            return Some(stated.to_owned());
        }
        // Names that begin with an underscore are valid in their document only.
        let named = graph.short_id(node).filter(|id| !id.starts_with("_:"))?;
        Some(match named.strip_prefix('#') {
            Some(position) if self.told.is_none() => {
                let page = self.own_address.clone();
                format!("{}#{position}", page.split('#').next().unwrap_or_default())
            }
            _ => absolute(self.base, named),
        })
    }

    /// Returns the address of the page that is about an item.
    fn page_of(&self, graph: &Graph<'_>, node: LinkedItemId) -> Option<String> {
        let page = graph.first_values(node, "mainEntityOfPage").find_map(|value| match value {
            PropertyValue::Node(id) => graph.short_id(*id).or(graph.short_text(*id, &["url"])),
            other => other.short_text(),
        });
        // Programs write `True` there, too.
        let is_address = |page: &&str| page.contains("://") || page.starts_with('/');
        page.filter(is_address).map(|page| absolute(self.base, page))
    }

    fn body_of(&self, graph: &Graph<'_>, node: LinkedItemId) -> Option<Text> {
        let body = graph.first_values(node, "articleBody").chain(graph.first_values(node, "text"));
        let mut bodies = body.filter(|value| value.text().is_some());
        match bodies.next()? {
            PropertyValue::Markup(markup) => Some(Text {
                kind: TextKind::Html,
                value: markup.clone(),
                base: self.told.clone(),
                ..Text::default()
            }),
            other => other.text().map(|text| self.text_construct(text)),
        }
    }

    /// Returns a text that is nominally plain, but HTML if it looks like HTML.
    pub(super) fn text_construct(&self, text: &str) -> Text {
        let kind = if looks_like_html(text) { TextKind::Html } else { TextKind::Text };
        Text { kind, value: text.to_owned(), base: self.told.clone(), ..Text::default() }
    }

    /// Returns the first date among these properties. If they have only invalid ones, the first is reported.
    fn date_of(
        &mut self,
        graph: &Graph<'_>,
        node: LinkedItemId,
        names: &[&str],
    ) -> Option<DateTime<FixedOffset>> {
        let date = moment(graph, node, names);
        if let (None, Some(text)) = (date, graph.text(node, names)) {
            let detail = text.chars().take(80).collect::<String>();
            self.repairs.push(Repair::new(RepairCode::BadDate, detail));
        }
        date
    }

    /// Returns the first address among the values of these properties.
    pub(super) fn address_in(
        &self,
        graph: &Graph<'_>,
        node: LinkedItemId,
        names: &[&str],
    ) -> Option<String> {
        let values = names.iter().flat_map(|name| graph.first_values(node, name));
        let mut addresses = values.filter_map(|value| match value {
            PropertyValue::Node(id) => {
                let stated = graph.short_text(*id, &["contentUrl", "url"]);
                stated.or(graph.short_id(*id).filter(|id| !id.starts_with("_:")))
            }
            other => other.short_text(),
        });
        addresses.next().map(|address| absolute(self.base, address))
    }

    /// Returns the authors of an item.
    pub(super) fn people(&self, graph: &Graph<'_>, node: LinkedItemId) -> Vec<Person> {
        let values = graph.values(node, "author").chain(graph.values(node, "creator"));
        let people = values.take(MOST_PEOPLE).filter_map(|value| match value {
            PropertyValue::Node(id) => self.person_of(graph, *id),
            other => person::person(other.short_text()?),
        });
        let mut found: Vec<Person> = Vec::new();
        for person in people {
            if !found.contains(&person) {
                found.push(person);
            }
        }
        found
    }

    fn person_of(&self, graph: &Graph<'_>, id: LinkedItemId) -> Option<Person> {
        let parts = [graph.short_text(id, &["givenName"]), graph.short_text(id, &["familyName"])];
        let joined = parts.into_iter().flatten().collect::<Vec<_>>().join(" ");
        let name = graph.short_text(id, &["name"]).map_or(joined, str::to_owned);
        let image = self.address_in(graph, id, &["image"]);
        let email = graph.short_text(id, &["email"]);
        let person = Person {
            name,
            email: email.map(|email| email.trim_start_matches("mailto:").to_owned()),
            uri: self.address_in(graph, id, &["url", "sameAs"]),
            extensions: image.into_iter().map(avatar).collect(),
            ..Person::default()
        };
        (person != Person::default()).then_some(person)
    }

    /// Keeps the properties without a counterpart in Atom: of items, their names or addresses.
    fn keep_others(&mut self, graph: &Graph<'_>, node: LinkedItemId, entry: &mut Entry) {
        let kept = graph.node(node).properties.iter().filter(|(name, _)| {
            let name = name.as_str();
            !READ.contains(&name) && !LEFT_OUT.contains(&name) && is_name(name)
        });
        for (name, value) in kept.take(MOST_KEPT) {
            let text = match value {
                PropertyValue::Node(id) => graph.text(*id, &["name", "url", "value"]),
                other => other.text(),
            };
            let Some(text) = text else { continue };
            if text.len() > KEPT_BYTES {
                let repair = Repair::new(RepairCode::OversizedExtension, name.clone());
                self.repairs.push(repair);
                continue;
            }
            entry.extensions.push(with_text(SCHEMA, name, text.to_owned()));
        }
    }
}

/// Returns the first categories of an item: keywords, which may be one text with commas, and sections.
fn categories(graph: &Graph<'_>, node: LinkedItemId) -> Vec<Category> {
    let names = ["keywords", "articleSection", "genre"];
    let values = names.iter().flat_map(|name| graph.values(node, name).map(move |it| (*name, it)));
    let (mut found, mut seen) = (Vec::new(), HashSet::new());
    for (name, value) in values.take(MOST_TERMS) {
        let text = match value {
            PropertyValue::Node(id) => graph.text(*id, &["name", "termCode"]),
            other => other.text(),
        };
        let text = text.unwrap_or_default();
        let text = &text[..text.floor_char_boundary(TERMS_BYTES)];
        let terms = if name == "keywords" { text.split(',').collect() } else { vec![text] };
        let terms = terms.into_iter().map(str::trim).filter(is_short);
        for term in terms.filter(|term| !term.is_empty()) {
            if found.len() < MOST_TERMS && seen.insert(term) {
                found.push(Category { term: term.to_owned(), ..Category::default() });
            }
        }
    }
    found
}

/// Returns whether the name of a property can be the name of an element.
fn is_name(name: &str) -> bool {
    let is_begun = name.starts_with(|c: char| c.is_ascii_alphabetic());
    is_begun && name.chars().all(|c| c.is_ascii_alphanumeric())
}
