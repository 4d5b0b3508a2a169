//! All fields of a feed that there are, by the names by which an explanation calls them.
//!
//! Whatever `render` writes must be here: a test compares the two.

use std::hash::{DefaultHasher, Hash, Hasher};

use crate::model::{Entry, Feed};
use crate::trace_id::Mark;

/// What tells a field from all others, whatever happens to those around it: its owner,
/// its name and, in a list, its mark or, without one, which of those without it is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    owner: Option<usize>,
    name: &'static str,
    item: Option<Item>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Item {
    Marked(usize),
    Unmarked(usize),
}

/// A field that is there.
#[derive(Debug)]
pub(super) struct Field {
    pub(super) key: Key,
    /// Its name: `title`; in lists with its place: `links[0]`.
    pub(super) shown: String,
    /// The name under which the trace knows it, if it is in no list, and whose it is.
    pub(super) scalar: Option<&'static str>,
    pub(super) owner: Mark,
    /// The entry it is in.
    pub(super) entry: Mark,
    /// Its own mark, in lists.
    pub(super) mark: Mark,
    /// What tells its value from others.
    pub(super) print: u64,
}

impl Field {
    /// The name without what is around it and without a place in a list.
    pub(super) fn name(&self) -> &'static str {
        self.key.name.rsplit('.').next().unwrap_or_default()
    }

    /// Whether it is one of the feed that an entry comes from.
    pub(super) fn is_of_source(&self) -> bool {
        self.key.name.starts_with("source.")
    }
}

/// All fields of a feed, those of entries with the entries' places.
pub(super) fn all(feed: &Feed) -> Vec<(Option<usize>, Field)> {
    let of_feed = of_feed(feed).into_iter().map(|field| (None, field));
    let entries = feed.entries.iter().enumerate();
    let of_entries = entries
        .flat_map(|(at, entry)| of_entry(entry).into_iter().map(move |field| (Some(at), field)));
    of_feed.chain(of_entries).collect()
}

/// The fields of a feed itself.
pub(super) fn of_feed(feed: &Feed) -> Vec<Field> {
    let mut fields = Fields { owner: Mark::default(), said: feed.mark, held: Vec::new() };
    fields.feed(feed, &OF_FEED);
    fields.held
}

/// The fields of an entry.
pub(super) fn of_entry(entry: &Entry) -> Vec<Field> {
    let mut fields = Fields { owner: entry.mark, said: entry.mark, held: Vec::new() };
    fields.scalar("id", Some(&entry.id).filter(|id| !id.is_empty()));
    fields.scalar("title", entry.title.as_ref());
    fields.scalar("summary", entry.summary.as_ref());
    fields.scalar("content", entry.content.as_ref());
    fields.scalar("rights", entry.rights.as_ref());
    fields.scalar("published", entry.published.as_ref());
    fields.scalar("updated", entry.updated.as_ref());
    fields.list("authors", &entry.authors, |person| person.mark);
    fields.list("contributors", &entry.contributors, |person| person.mark);
    fields.list("links", &entry.links, |link| link.mark);
    fields.list("categories", &entry.categories, |category| category.mark);
    fields.scalar("lang", entry.lang.as_ref());
    fields.scalar("base", entry.base.as_ref());
    fields.list("extensions", &entry.extensions, |element| element.mark);
    if let Some(source) = &entry.source {
        fields.said = source.mark;
        fields.feed(source, &OF_SOURCE);
    }
    fields.held
}

/// Names of the fields of a feed, in the order in which [`Fields::feed`] comes to them.
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
    /// Whose fields they are.
    owner: Mark,
    /// Under what mark the trace knows them.
    said: Mark,
    held: Vec<Field>,
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
        self.list(authors, &feed.authors, |person| person.mark);
        self.list(contributors, &feed.contributors, |person| person.mark);
        self.list(links, &feed.links, |link| link.mark);
        self.list(categories, &feed.categories, |category| category.mark);
        self.scalar(generator, feed.generator.as_ref());
        self.scalar(icon, feed.icon.as_ref());
        self.scalar(logo, feed.logo.as_ref());
        self.scalar(lang, feed.lang.as_ref());
        self.scalar(base, feed.base.as_ref());
        self.list(extensions, &feed.extensions, |element| element.mark);
    }

    fn scalar<T: Hash>(&mut self, name: &'static str, value: Option<&T>) {
        let Some(value) = value else { return };
        let own = name.rsplit('.').next().unwrap_or_default();
        self.held.push(Field {
            key: Key { owner: self.owner.number(), name, item: None },
            shown: name.to_owned(),
            scalar: Some(own),
            owner: self.said,
            entry: self.owner,
            mark: Mark::default(),
            print: print(value),
        });
    }

    fn list<T: Hash>(&mut self, name: &'static str, items: &[T], mark: impl Fn(&T) -> Mark) {
        let mut unmarked = 0;
        for (at, value) in items.iter().enumerate() {
            let mark = mark(value);
            let item = mark.number().map_or_else(
                || {
                    unmarked += 1;
                    Item::Unmarked(unmarked)
                },
                Item::Marked,
            );
            self.held.push(Field {
                key: Key { owner: self.owner.number(), name, item: Some(item) },
                shown: format!("{name}[{at}]"),
                scalar: None,
                owner: self.said,
                entry: self.owner,
                mark,
                print: print(value),
            });
        }
    }
}

fn print(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}
