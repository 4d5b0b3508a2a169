//! Documents of an archive and the plain feed as a page, for people who open their addresses in a
//! browser. Of each entry the title and the beginning of the text are shown as plain text.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use chrono::{DateTime, Utc};
use maud::{Markup, html};
use warp::reply::Response;

use super::conversion::NotRendered;
use super::location::{ArchiveLocation, DocumentName};
use super::render::{Archive, Order};
use super::reply::gone;
use crate::http::kit::browser_view::{BrowserView, how_to_subscribe, web_link};
use crate::http::kit::html::parts::{Tone, badge, relative_time};
use crate::http::kit::rejection::Rejection;
use crate::http::kit::request::Request;
use crate::http::state::Gateway;
use crate::jobs::runner;
use feedgate_core::document_format::DocumentFormat;
use feedgate_core::page::LocatedPage;
use feedgate_core::record::{Record, RecordKind};
use feedgate_core::redaction;
use feedgate_core::resource::Resource;
use feedgate_core::store::EntryRange;
use feedgate_core::stored_entry::{read_back, records_document};
use feedgate_feed::model::{Content, Entry, Text};

/// The bytes of entries that end a page.
const MAX_BYTES: usize = 1 << 20;
/// The number of entries on the page.
const ENTRIES: usize = 20;
/// The maximum length of a title, in characters.
const TITLE_CHARS: usize = 160;
/// The maximum length of the beginning of a text, in characters.
const TEXT_CHARS: usize = 280;
/// How long a page waits for memory for its entries.
const ADMISSION_WAIT: Duration = Duration::from_secs(5);
const ATOM: &str = "application/atom+xml";

/// An entry as displayed on the page.
struct DisplayedEntry {
    title: String,
    href: String,
    text: String,
    /// When the entry was published, or received if that is not known.
    at: DateTime<Utc>,
    /// When the gateway received this revision, if the entry was known before.
    updated_at: Option<DateTime<Utc>>,
}

/// Returns the response with the page; `None` if there is no such document.
pub(super) async fn serve(
    gateway: &Gateway,
    request: &Request,
    location: &ArchiveLocation,
    name: DocumentName,
) -> Result<Option<Response>, NotRendered> {
    let resource = gateway.store.get(location.id).await?;
    let Some(resource) = resource.filter(|resource| location.is_of(resource)) else {
        return Ok(None);
    };
    let number = match name {
        DocumentName::Numbered(number) => Some(number),
        DocumentName::Newest | DocumentName::Recent => None,
    };
    let Some(held) = gateway.store.page(resource.id, number).await? else {
        let oldest = gateway.store.oldest_page(resource.id).await?;
        let was_dropped = number.is_some_and(|number| (1..oldest).contains(&number));
        return Ok(was_dropped.then(gone));
    };
    let records = match name {
        DocumentName::Newest => {
            let range =
                EntryRange { limit: ENTRIES, max_bytes: Some(MAX_BYTES), ..EntryRange::default() };
            gateway.store.read_current(resource.id, &range).await?
        }
        DocumentName::Recent | DocumentName::Numbered(_) => {
            let page = gateway.store.read_page(resource.id, &held.page).await?;
            page.into_iter().rev().take(ENTRIES).map(|archived| archived.record).collect()
        }
    };
    let entries = read_entries(gateway, &resource, records).await?;
    Ok(Some(reply(gateway, request, (location, &resource, &held), name, &entries)))
}

/// Reads entries back from what is stored, within the memory for documents.
async fn read_entries(
    gateway: &Gateway,
    resource: &Resource,
    records: Vec<Record>,
) -> Result<Vec<DisplayedEntry>, Rejection> {
    let document = records_document(resource, &records);
    let memory = gateway.documents.admit(document.as_bytes(), ADMISSION_WAIT).await;
    let memory = memory.map_err(Rejection::busy)?;
    let resource = resource.clone();
    let read = memory.run_blocking(move || {
        let feed = read_back(&resource, &document);
        // An entry has several records in an archive, in the order of the document.
        let mut revisions: HashMap<&str, VecDeque<&Entry>> = HashMap::new();
        for entry in &feed.entries {
            revisions.entry(entry.id.as_str()).or_default().push_back(entry);
        }
        let present = records.iter().filter(|record| record.kind != RecordKind::Deleted);
        let displayed = present.filter_map(|record| {
            let entry = revisions.get_mut(record.entry_id.as_str())?.pop_front()?;
            Some(displayed_entry(entry, record))
        });
        displayed.collect::<Vec<_>>()
    });
    Ok(read.await.unwrap_or_default())
}

fn displayed_entry(entry: &Entry, record: &Record) -> DisplayedEntry {
    let content = match &entry.content {
        Some(Content::Text(text)) => Some(text),
        _ => None,
    };
    let text = entry.summary.as_ref().or(content).map(Text::to_plain).unwrap_or_default();
    let title = entry.title.as_ref().map(Text::to_plain).unwrap_or_default();
    let mut alternates = entry.links.iter().filter(|link| link.rel == "alternate");
    let text = redaction::line(&text, TEXT_CHARS);
    let title = redaction::line(&title, TITLE_CHARS);
    let is_titled = !title.trim().is_empty();
    DisplayedEntry {
        href: alternates.next().map(|link| link.href.clone()).unwrap_or_default(),
        at: entry.published.or(entry.updated).map_or(record.at, |at| at.to_utc()),
        updated_at: (record.kind == RecordKind::Update).then_some(record.at),
        title: if is_titled { title } else { redaction::line(&text, TITLE_CHARS / 2) },
        text: if is_titled { text } else { String::new() },
    }
}

fn reply(
    gateway: &Gateway,
    request: &Request,
    (location, resource, held): (&ArchiveLocation, &Resource, &LocatedPage),
    name: DocumentName,
    entries: &[DisplayedEntry],
) -> Response {
    let hub = gateway.public_url("hub");
    let (topic, order) = (&*resource.topic.displayed(), Order::NewestFirst);
    let format = DocumentFormat::Atom;
    let archive = Archive { topic, home: &location.home, hub: &hub, order, format };
    let url = match name {
        DocumentName::Newest => archive.newest_url(),
        DocumentName::Recent => archive.recent_url(),
        DocumentName::Numbered(number) => archive.document_url(number),
    };
    let feed = redaction::line(&resource.status.title, TITLE_CHARS);
    let feed = if feed.is_empty() { redaction::feed(topic) } else { feed };
    let title = match name {
        DocumentName::Newest | DocumentName::Recent => feed,
        DocumentName::Numbered(number) => format!("{feed}, document {number}"),
    };
    let content = html! {
        (explanation(location, resource, name))
        @if !location.is_private {
            (how_to_subscribe(&hub, &gateway.public_url("pleaseNotify")))
        }
        (entry_list(entries))
        (pages(location, held, name))
    };
    let links = match location.is_private {
        true => format!("<{url}>; rel=\"self\""),
        false => format!("<{hub}>; rel=\"hub\", <{url}>; rel=\"self\""),
    };
    BrowserView { title: &title, media_type: ATOM, url: &url, links: &links, content }
        .reply(request)
}

fn explanation(location: &ArchiveLocation, resource: &Resource, name: DocumentName) -> Markup {
    let topic = &*resource.topic.displayed();
    let what = match name {
        DocumentName::Newest => "the newest entries, for feed readers.",
        DocumentName::Recent => {
            "the newest part of the archive, for programs that read all entries."
        }
        DocumentName::Numbered(_) => "one part of the archive.",
    };
    html! {
        p {
            @if location.is_collection {
                "A collection of several feeds as one Atom feed: "
            } @else {
                "What this gateway received from " (web_link(topic, topic)) ", as Atom: "
            }
            (what)
        }
    }
}

fn entry_list(entries: &[DisplayedEntry]) -> Markup {
    let now = runner::now();
    html! {
        h2 { "Newest entries" }
        @if entries.is_empty() { p { "There are no entries yet." } }
        ul.posts {
            @for DisplayedEntry { title, href, text, at, updated_at } in entries {
                li {
                    b { (web_link(href, if title.is_empty() { "Untitled" } else { title.as_str() })) } " "
                    small { (relative_time(*at, now)) }
                    @if let Some(updated_at) = updated_at {
                        " " (badge(Tone::Neutral, "update")) " "
                        small { "received " (relative_time(*updated_at, now)) }
                    }
                    @if !text.is_empty() { br; (text) }
                }
            }
        }
    }
}

/// Returns the links to the other documents of the archive.
fn pages(location: &ArchiveLocation, held: &LocatedPage, name: DocumentName) -> Markup {
    let number = held.page.number;
    let home = match name {
        DocumentName::Newest => {
            format!("{}/", location.home.rsplit('/').next().unwrap_or_default())
        }
        DocumentName::Recent => String::new(),
        DocumentName::Numbered(_) => "../".to_owned(),
    };
    let document = |number: i64| format!("{home}documents/{number}");
    let has_links = name == DocumentName::Newest || number > held.oldest || held.is_archived();
    html! {
        @if has_links { nav.pages aria-label="Archive" {
            @if name == DocumentName::Newest {
                a href=(format!("{home}recent")) { "Archive of all entries" }
            } @else if number > held.oldest {
                a rel="prev" href=(document(number - 1)) { "Older entries" }
            }
            @if held.is_archived() {
                a rel="next" href=(document(number + 1)) { "Newer entries" }
                a href=(format!("{home}recent")) { "Newest entries" }
            }
        } }
    }
}
