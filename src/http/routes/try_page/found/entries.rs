//! The entries of a feed that was found: a list, and each as readers show it, as it is sent, and with the
//! origin of its fields.

use chrono::{DateTime, Utc};
use maud::{Markup, html};

use crate::http::kit::html::parts::relative_time;
use crate::http::routes::console::entry::content::EntryContent;
use crate::http::routes::console::entry::explained::DocumentOrigins;
use crate::http::routes::console::feed::entries::entry_title;
use crate::http::routes::try_page::form::address_of;
use crate::jobs::poll::render_entry;
use crate::jobs::runner;
use crate::subscriptions::TopicPreview;
use feedgate_core::resource::ResourceKind;
use feedgate_core::topic::Topic;
use feedgate_feed::Context;
use feedgate_feed::model::{Entry, Feed};
use feedgate_feed::parse;
use feedgate_feed::render::atom::{self, AtomDocument};

/// The maximum length of each text of an entry, in bytes of the page. There are three, and a page takes
/// less than 100 kB.
const LONGEST_TEXT_BYTES: usize = 12 << 10;
/// The maximum length of a document that is explained, in bytes. An explanation takes several times as long
/// as reading the document, and is of all of its entries.
const LONGEST_EXPLAINED_BYTES: usize = 128 << 10;
/// The maximum length of an explanation, in bytes of the page.
const LONGEST_EXPLANATION_BYTES: usize = 48 << 10;

/// The first entries of a feed, rendered.
#[derive(Default)]
pub(super) struct TriedEntries {
    /// `None` if the document is no feed.
    topic: Option<Topic>,
    listed: Vec<ListedEntry>,
}

/// An entry in the list.
struct ListedEntry {
    title: String,
    at: Option<DateTime<Utc>>,
    /// Everything about the entry.
    details: Markup,
}

impl TriedEntries {
    /// Renders the entries of a feed that a preview found at a topic.
    pub(super) fn read(
        topic: &Topic,
        preview: &TopicPreview,
        feed: &Feed,
        now: DateTime<Utc>,
    ) -> TriedEntries {
        let document = &preview.document;
        let is_explained =
            document.body.len() <= LONGEST_EXPLAINED_BYTES && topic.fragment().is_none();
        let context = is_explained.then(|| document.context(now));
        let origins = context.and_then(|context| DocumentOrigins::read(&document.body, &context));
        let head = atom::stored_head(feed);
        let listed = feed.entries.iter().map(|entry| ListedEntry {
            title: entry_title(entry),
            at: date(entry),
            details: details(topic, &head, entry, origins.as_ref()),
        });
        TriedEntries { topic: Some(topic.clone()), listed: listed.collect() }
    }

    /// Returns the list, and everything about the entry with this number, from 1 on.
    pub(super) fn section(&self, number: usize) -> Markup {
        let Some(topic) = &self.topic else { return html! {} };
        let selected = self.listed.get(number.saturating_sub(1));
        html! {
            h2 { "First entries" }
            @if self.listed.is_empty() {
                p { "The feed has no entries yet. It can be subscribed to all the same." }
            } @else {
                (self.table(topic, number))
            }
            @if let Some(ListedEntry { title, details, .. }) = selected {
                h2 #entry { (title) }
                (details)
            }
        }
    }

    /// Returns the approximate size in bytes, with that of the topic twice: it is the key as well.
    pub(super) fn bytes(&self) -> usize {
        let topic = self.topic.as_ref().map_or(0, |topic| 2 * topic.as_str().len());
        let size = |entry: &ListedEntry| {
            size_of::<ListedEntry>() + entry.title.capacity() + entry.details.0.capacity()
        };
        topic + self.listed.iter().map(size).sum::<usize>()
    }

    fn table(&self, topic: &Topic, number: usize) -> Markup {
        let now = runner::now();
        html! {
            table.records {
                thead { tr { th scope="col" { "Title" } th scope="col" { "Published" } } }
                tbody {
                    @for (n, ListedEntry { title, at, .. }) in (1..).zip(&self.listed) {
                        tr {
                            td data-name="" {
                                @let href = format!("{}#entry", address_of(topic.as_str(), Some(n)));
                                a href=(href) rel="nofollow"
                                    aria-current=[(n == number).then_some("true")] { (title) }
                            }
                            td data-name="Published" {
                                @if let Some(at) = at { (relative_time(*at, now)) }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Returns the date of an entry, if the document has one.
fn date(entry: &Entry) -> Option<DateTime<Utc>> {
    let updated = entry.updated.filter(|_| !entry.date_assumed);
    entry.published.or(updated).map(|at| at.to_utc())
}

/// Returns everything about an entry: its text, what is sent of it, and where its fields came from.
fn details(
    topic: &Topic,
    head: &str,
    entry: &Entry,
    origins: Option<&DocumentOrigins<'_>>,
) -> Markup {
    let entry_atom = render_entry(entry.clone());
    let document = atom::document(&AtomDocument {
        head,
        topic: &topic.displayed(),
        status: None,
        links: &[],
        entries: &[&entry_atom],
    });
    let context = Context::new(topic.fetch_url());
    // What is sent is made of what is stored, and that is Atom.
    let sent = parse::parse(document.as_bytes(), &context).unwrap_or_default();
    let content = EntryContent::new(sent, ResourceKind::Feed, &entry_atom, LONGEST_TEXT_BYTES);
    let origin = origins.and_then(|origins| origins.find_entry(&entry.id));
    let origin = origin.map(|origin| origin.section("document"));
    html! {
        (content.text_section())
        h3 { "What subscribers are sent" }
        (content.source_section())
        h3 { "Where each field came from" }
        @match origin {
            Some(origin) if origin.0.len() <= LONGEST_EXPLANATION_BYTES => (origin),
            Some(_) => p.soft { "There is too much to show it here." },
            None => p.soft { "Documents over 128 kB, and parts of documents, are not explained here." },
        }
    }
}
