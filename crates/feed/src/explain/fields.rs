//! The fields of a feed, by their names in an explanation.
//!
//! Every field that `render` writes must be listed here; a test compares the two.

use std::hash::{DefaultHasher, Hash, Hasher};

use crate::model::TraceId;
use crate::model::{Entry, Feed};

/// A key for a field that stays valid when a pass changes other fields: its owner, its name and, in
/// a list, its trace id, or its index among the items without a trace id.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct FieldKey {
    owner: Option<usize>,
    name: &'static str,
    item: Option<Item>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Item {
    Traced(usize),
    Untraced(usize),
}

/// A field that has a value.
#[derive(Debug)]
pub(super) struct Field {
    pub(super) key: FieldKey,
    /// The name of the field in the output: `title`; in lists with the index: `links[0]`.
    pub(super) label: String,
    /// The name of the field in the trace and its owner there; `None` for items of lists.
    pub(super) scalar: Option<&'static str>,
    pub(super) owner: TraceId,
    /// The entry that the field belongs to; unset for a field of the feed.
    pub(super) entry: TraceId,
    /// The trace id of the item, in lists.
    pub(super) trace_id: TraceId,
    /// A hash of the value.
    pub(super) fingerprint: u64,
}

impl Field {
    /// Returns the name without `source.` and without an index.
    pub(super) fn name(&self) -> &'static str {
        self.key.name.rsplit('.').next().unwrap_or_default()
    }

    /// Returns whether the field belongs to the `atom:source` of an entry.
    pub(super) fn is_of_source(&self) -> bool {
        self.key.name.starts_with("source.")
    }
}

/// Returns all fields of a feed; fields of entries with the index of the entry.
pub(super) fn all(feed: &Feed) -> Vec<(Option<usize>, Field)> {
    let of_feed = of_feed(feed).into_iter().map(|field| (None, field));
    let entries = feed.entries.iter().enumerate();
    let of_entries = entries
        .flat_map(|(at, entry)| of_entry(entry).into_iter().map(move |field| (Some(at), field)));
    of_feed.chain(of_entries).collect()
}

/// Returns the fields of the feed itself.
pub(super) fn of_feed(feed: &Feed) -> Vec<Field> {
    let mut fields =
        Fields { owner: TraceId::default(), traced_owner: feed.trace_id, found: Vec::new() };
    fields.feed(feed, &OF_FEED);
    fields.found
}

/// Returns the fields of an entry.
pub(super) fn of_entry(entry: &Entry) -> Vec<Field> {
    let mut fields =
        Fields { owner: entry.trace_id, traced_owner: entry.trace_id, found: Vec::new() };
    fields.scalar("id", Some(&entry.id).filter(|id| !id.is_empty()));
    fields.scalar("title", entry.title.as_ref());
    fields.scalar("summary", entry.summary.as_ref());
    fields.scalar("content", entry.content.as_ref());
    fields.scalar("rights", entry.rights.as_ref());
    fields.scalar("published", entry.published.as_ref());
    fields.scalar("updated", entry.updated.as_ref());
    fields.list("authors", &entry.authors, |person| person.trace_id);
    fields.list("contributors", &entry.contributors, |person| person.trace_id);
    fields.list("links", &entry.links, |link| link.trace_id);
    fields.list("categories", &entry.categories, |category| category.trace_id);
    fields.scalar("lang", entry.lang.as_ref());
    fields.scalar("base", entry.base.as_ref());
    fields.list("extensions", &entry.extensions, |element| element.trace_id);
    if let Some(source) = &entry.source {
        fields.traced_owner = source.trace_id;
        fields.feed(source, &OF_SOURCE);
    }
    fields.found
}

/// The names of a feed's fields, in the order in which [`Fields::feed`] visits them.
type Names = [&'static str; 15];

const OF_FEED: Names = [
    "id",
    "title",
    "subtitle",
    "rights",
    "updated",
    "authors",
    "contributors",
    "links",
    "categories",
    "generator",
    "icon",
    "logo",
    "lang",
    "base",
    "extensions",
];

const OF_SOURCE: Names = [
    "source.id",
    "source.title",
    "source.subtitle",
    "source.rights",
    "source.updated",
    "source.authors",
    "source.contributors",
    "source.links",
    "source.categories",
    "source.generator",
    "source.icon",
    "source.logo",
    "source.lang",
    "source.base",
    "source.extensions",
];

struct Fields {
    /// The owner of the fields.
    owner: TraceId,
    /// The owner of the fields in the trace.
    traced_owner: TraceId,
    found: Vec<Field>,
}

impl Fields {
    fn feed(&mut self, feed: &Feed, names: &Names) {
        let [id, title, subtitle, rights, updated, authors, contributors, links, ..] = *names;
        let [.., categories, generator, icon, logo, lang, base, extensions] = *names;
        self.scalar(id, Some(&feed.id).filter(|id| !id.is_empty()));
        self.scalar(title, feed.title.as_ref());
        self.scalar(subtitle, feed.subtitle.as_ref());
        self.scalar(rights, feed.rights.as_ref());
        self.scalar(updated, feed.updated.as_ref());
        self.list(authors, &feed.authors, |person| person.trace_id);
        self.list(contributors, &feed.contributors, |person| person.trace_id);
        self.list(links, &feed.links, |link| link.trace_id);
        self.list(categories, &feed.categories, |category| category.trace_id);
        self.scalar(generator, feed.generator.as_ref());
        self.scalar(icon, feed.icon.as_ref());
        self.scalar(logo, feed.logo.as_ref());
        self.scalar(lang, feed.lang.as_ref());
        self.scalar(base, feed.base.as_ref());
        self.list(extensions, &feed.extensions, |element| element.trace_id);
    }

    fn scalar<T: Hash>(&mut self, name: &'static str, value: Option<&T>) {
        let Some(value) = value else { return };
        let own = name.rsplit('.').next().unwrap_or_default();
        self.found.push(Field {
            key: FieldKey { owner: self.owner.number(), name, item: None },
            label: name.to_owned(),
            scalar: Some(own),
            owner: self.traced_owner,
            entry: self.owner,
            trace_id: TraceId::default(),
            fingerprint: fingerprint(value),
        });
    }

    fn list<T: Hash>(&mut self, name: &'static str, items: &[T], trace_id: impl Fn(&T) -> TraceId) {
        let mut untraced = 0;
        for (at, value) in items.iter().enumerate() {
            let id = trace_id(value);
            let item = id.number().map_or_else(
                || {
                    untraced += 1;
                    Item::Untraced(untraced)
                },
                Item::Traced,
            );
            self.found.push(Field {
                key: FieldKey { owner: self.owner.number(), name, item: Some(item) },
                label: format!("{name}[{at}]"),
                scalar: None,
                owner: self.traced_owner,
                entry: self.owner,
                trace_id: id,
                fingerprint: fingerprint(value),
            });
        }
    }
}

fn fingerprint(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}
