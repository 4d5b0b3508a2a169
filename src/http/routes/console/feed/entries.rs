//! The entries of a feed on its page, as one reads them: the newest ones, or those that match a query of the language
//! that `search` and `track` have.
//!
//! Queries are compared with the stored entries here, because the search index is optional and has
//! no entries of topics that contain credentials. A request compares a bounded number of entries; a
//! link continues behind them.

use chrono::{DateTime, Utc};
use maud::{Markup, html};
use tokio::task::yield_now;
use url::form_urlencoded::Serializer;

use crate::http::kit::html::parts::relative_time;
use crate::http::kit::rejection::Rejection;
use crate::http::routes::console::feeds::SECTION;
use crate::http::routes::console::visit::Visit;
use feedgate_core::query::{EntryText, Query, QueryError};
use feedgate_core::record::{Record, Seq};
use feedgate_core::resource::Resource;
use feedgate_core::store::{EntryRange, StoreError};
use feedgate_core::stored_entry::read_records;
use feedgate_feed::model::{Content, Entry, Text};

/// The number of entries on a page.
const ENTRIES: usize = 10;
/// The number of entries that are read at a time, and how often they are read for one search.
const PORTION: usize = 100;
const MAX_PORTIONS: usize = 5;

/// The entries that a page lists.
#[derive(Debug)]
pub(super) struct ListedEntries {
    /// The numbers of the records, when they came, and what they contain; newest first.
    entries: Vec<(Seq, DateTime<Utc>, Option<Entry>)>,
    /// The record before which the list continues; `None` at the end of the log.
    continues_before: Option<Seq>,
    /// Why the query cannot be searched for.
    bad_query: Option<QueryError>,
}

impl ListedEntries {
    /// Reads the entries that the parameters `q` and `before` of the page request.
    pub(super) async fn read(
        visit: &Visit,
        resource: &Resource,
    ) -> Result<ListedEntries, Rejection> {
        let before = visit.value("before").parse().ok().map(Seq);
        let read = match visit.value("q") {
            "" => newest(visit, resource, before).await,
            text => match parse(text) {
                Ok(query) => search(visit, resource, &query, before).await,
                Err(why) => {
                    let (entries, continues_before) = (Vec::new(), None);
                    return Ok(ListedEntries { entries, continues_before, bad_query: Some(why) });
                }
            },
        };
        let (records, continues_before) = read.map_err(|err| Rejection::unavailable(&err))?;
        let entries = with_entries(resource, records);
        Ok(ListedEntries { entries, continues_before, bad_query: None })
    }

    /// Returns the number of entries of the feed, if the page lists all of them.
    pub(super) fn total(&self, visit: &Visit) -> Option<usize> {
        let is_whole = visit.value("q").is_empty() && visit.value("before").is_empty();
        (is_whole && self.continues_before.is_none()).then_some(self.entries.len())
    }

    /// Returns the search form and the entries, as one reads them.
    pub(super) fn list(&self, visit: &Visit, resource: &Resource, now: DateTime<Utc>) -> Markup {
        let folder = format!("{SECTION}/{}", resource.id);
        html! {
            (search_form(visit, &folder))
            @if let Some(why) = &self.bad_query {
                p role="alert" { "Invalid query: " (why) "." }
            } @else {
                (self.records(visit, &folder, now))
            }
            @if let Some(before) = self.continues_before {
                nav.pages aria-label="Entries" {
                    a rel="next" href=(visit.address(&page_address(&folder, visit.value("q"), before))) {
                        @if visit.value("q").is_empty() { "Older entries" } @else { "Search older entries" }
                    }
                }
            }
        }
    }

    fn records(&self, visit: &Visit, folder: &str, now: DateTime<Utc>) -> Markup {
        html! {
            ul.reading {
                @for (seq, at, entry) in &self.entries {
                    li {
                        a href=(visit.address(&format!("{folder}/entries/{seq}"))) {
                            (entry.as_ref().map_or_else(|| format!("Entry {seq}"), entry_title))
                        }
                        @if let Some(excerpt) = entry.as_ref().and_then(excerpt) { p { (excerpt) } }
                        " "
                        small {
                            @if let Some(at) = entry.as_ref().and_then(|entry| entry.published) {
                                "published " (relative_time(at.to_utc(), now)) ", "
                            }
                            "received " (relative_time(*at, now))
                        }
                    }
                }
            }
            @if self.entries.is_empty() { p { (self.nothing(visit)) } }
        }
    }

    /// Returns why the list is empty.
    fn nothing(&self, visit: &Visit) -> &'static str {
        match (visit.value("q"), self.continues_before, visit.value("before")) {
            ("", _, "") => "No entries yet.",
            ("", ..) => "There are no older entries.",
            (_, None, "") => "No entry matches.",
            (_, None, _) => "No older entry matches.",
            (_, Some(_), _) => "No match so far. Search older entries to continue.",
        }
    }
}

fn search_form(visit: &Visit, folder: &str) -> Markup {
    html! {
        form.filter role="search" method="get" action=(format!("{}#entries", visit.address(folder))) {
            label { "Search "
                input type="search" name="q" value=(visit.value("q")) maxlength=(Query::MAX_BYTES)
                    placeholder="word \"a phrase\" -not this|that";
            }
            button type="submit" { "Search" }
        }
    }
}

fn page_address(folder: &str, query: &str, before: Seq) -> String {
    let mut parameters = Serializer::new(String::new());
    parameters.extend_pairs((!query.is_empty()).then_some(("q", query)));
    parameters.append_pair("before", &before.to_string());
    format!("{folder}?{}#entries", parameters.finish())
}

/// Parses a query. Entries of this feed match whatever its rank is.
fn parse(text: &str) -> Result<Query, QueryError> {
    Query::parse(text)?;
    Query::parse(&format!("{text} porn:ok bozo:ok"))
}

/// Returns the newest records, and where the list continues.
async fn newest(
    visit: &Visit,
    resource: &Resource,
    before: Option<Seq>,
) -> Result<(Vec<Record>, Option<Seq>), StoreError> {
    let range = EntryRange { before, limit: ENTRIES, ..EntryRange::default() };
    let records = visit.gateway.store.read_current(resource.id, &range).await?;
    let last = records.last().map(|record| record.seq);
    let continues_before = last.filter(|_| records.len() == ENTRIES);
    Ok((records, continues_before))
}

/// Returns the newest records that match, and where the search continues.
async fn search(
    visit: &Visit,
    resource: &Resource,
    query: &Query,
    mut before: Option<Seq>,
) -> Result<(Vec<Record>, Option<Seq>), StoreError> {
    let mut found = Vec::new();
    for _ in 0..MAX_PORTIONS {
        let range = EntryRange { before, limit: PORTION, ..EntryRange::default() };
        let records = visit.gateway.store.read_current(resource.id, &range).await?;
        let is_end = records.len() < PORTION;
        for record in records {
            before = Some(record.seq);
            let text = EntryText::read(resource, &record.atom);
            if text.is_some_and(|text| query.matches(&text)) {
                found.push(record);
            }
            if found.len() == ENTRIES {
                return Ok((found, before));
            }
            yield_now().await;
        }
        if is_end {
            return Ok((found, None));
        }
    }
    Ok((found, before))
}

/// Returns records with their entries, read back from what is stored.
fn with_entries(
    resource: &Resource,
    records: Vec<Record>,
) -> Vec<(Seq, DateTime<Utc>, Option<Entry>)> {
    let entries = read_records(resource, &records).entries;
    let of = |record: &Record| entries.iter().find(|entry| entry.id == record.entry_id).cloned();
    records.iter().map(|record| (record.seq, record.at, of(record))).collect()
}

/// Returns the beginning of the text of an entry that has a title.
fn excerpt(entry: &Entry) -> Option<String> {
    const CHARS: usize = 240;
    /// How much of a text is read for it, in bytes.
    const READ_BYTES: usize = 8 << 10;
    entry.title.as_ref()?;
    let content = match &entry.content {
        Some(Content::Text(text)) => Some(text),
        _ => None,
    };
    let text = entry.summary.as_ref().or(content)?;
    let beginning = &text.value[..text.value.floor_char_boundary(READ_BYTES)];
    let text = Text { kind: text.kind, value: beginning.to_owned(), ..Text::default() };
    let excerpt = feedgate_core::redaction::line(&text.to_plain(), CHARS);
    Some(excerpt).filter(|excerpt| !excerpt.trim().is_empty() && *excerpt != entry_title(entry))
}

/// Returns the title of an entry as plain text, or the beginning of its text.
pub(crate) fn entry_title(entry: &Entry) -> String {
    const CHARS: usize = 160;
    let texts = [&entry.title, &entry.summary];
    let mut texts = texts.into_iter().flatten().map(Text::to_plain);
    let text = texts.find(|text| !text.trim().is_empty()).unwrap_or_else(|| entry.id.clone());
    feedgate_core::redaction::line(&text, CHARS)
}
