//! One entry: what subscribers are sent of it, and how it was read from the document of its feed.

pub(crate) mod content;
pub(crate) mod explained;
mod recipients;
mod revisions;

use chrono::{DateTime, FixedOffset, Utc};
use http::StatusCode;
use maud::{Markup, html};
use warp::reply::Response;

use super::feed::{self, entry_title};
use super::feed_state::{address as feed_address, title};
use super::feeds::SECTION;
use super::visit::Visit;
use crate::http::kit::auth;
use crate::http::kit::html::parts::{Tone, badge, relative_time, timestamp};
use crate::http::kit::rejection::Rejection;
use crate::jobs::runner;
use feedgate_core::account::Scope;
use feedgate_core::record::{Record, RecordKind, Seq};
use feedgate_core::redaction;
use feedgate_core::resource::{Resource, ResourceKind};
use feedgate_feed::model::{Entry, Link, Person};

use content::EntryContent;
use explained::Explained;
use recipients::Recipients;
use revisions::Revisions;

/// The maximum number of people, links or categories on the page.
const MOST_LISTED: usize = 20;
/// The maximum length of a name, in characters.
const NAME_CHARS: usize = 160;
/// The maximum length of an address, in bytes, and in characters where it is displayed.
const LONGEST_ADDRESS: usize = 2_048;

/// What the page displays.
struct EntryPage {
    resource: Resource,
    record: Record,
    /// The newest record of the same entry.
    newest: Option<Seq>,
    content: EntryContent,
    explained: Explained,
    revisions: Revisions,
    recipients: Recipients,
}

impl EntryPage {
    async fn read(visit: &Visit, id: &str, seq: &str) -> Result<EntryPage, Rejection> {
        let not_found = || Rejection::new(StatusCode::NOT_FOUND, "There is no such entry.");
        let unavailable = |err| Rejection::unavailable(&err);
        let resource = feed::find(visit, id).await?;
        auth::require(visit.access()?, Scope::Retrieve)?;
        let seq = seq.parse().ok().filter(|seq| *seq > 0).map(Seq).ok_or_else(not_found)?;
        let store = &visit.gateway.store;
        let records = store.read_after(resource.id, Seq(seq.0 - 1), 1).await;
        let record = records.map_err(unavailable)?.into_iter().find(|record| record.seq == seq);
        let record = record.ok_or_else(not_found)?;
        let newest = store.find_seq(resource.id, &record.entry_id).await.map_err(unavailable)?;
        let content = EntryContent::read(visit, &resource, &record).await?;
        let explained = Explained::read(visit, &resource, &record).await?;
        let revisions = Revisions::read(visit, &resource, &record).await?;
        let recipients = Recipients::read(visit, &resource, &record).await?;
        #[rustfmt::skip]
        let page = EntryPage {
            resource, record, newest, content, explained, revisions, recipients,
        };
        Ok(page)
    }
}

/// Returns the page.
pub(super) async fn page(visit: &Visit, id: &str, seq: &str) -> Result<Response, Rejection> {
    let page = EntryPage::read(visit, id, seq).await?;
    let now = runner::now();
    let entry = page.content.entry.as_ref();
    let heading = entry.map_or_else(|| format!("Entry {}", page.record.seq), entry_title);
    let feed = format!("{SECTION}/{}", page.resource.id);
    let content = html! {
        (visit.crumbs(&[("Feeds", SECTION), (&title(&page.resource), &feed)]))
        (facts(visit, &page, now))
        (page.content.text_section())
        (page.revisions.section(visit, &page.resource, now))
        h2 { "Sent to" }
        (page.recipients.table(visit, &page.resource, now))
        h2 { "Published as" }
        (page.content.source_section())
        @if page.resource.kind != ResourceKind::Other {
            h2 { "Origin of each field" }
            (page.explained.section())
        }
    };
    Ok(visit.page(&heading, SECTION, content))
}

fn facts(visit: &Visit, page: &EntryPage, now: DateTime<Utc>) -> Markup {
    let EntryPage { resource, record, .. } = page;
    let feed = format!("{SECTION}/{}", resource.id);
    html! {
        dl.facts {
            dt { "Feed" } dd { a href=(visit.address(&feed)) { (title(resource)) } }
            dt { "Source" } dd { (address(feed_address(resource).as_str())) }
            dt { "Number" }
            dd {
                (record.seq) " in the log of the feed, " (described_kind(record.kind)) " "
                @if let Some(before) = record.predecessor {
                    a href=(visit.address(&format!("{feed}/entries/{before}"))) {
                        "previous revision"
                    }
                    " "
                }
                @if let Some(newest) = page.newest.filter(|newest| *newest > record.seq) {
                    a href=(visit.address(&format!("{feed}/entries/{newest}"))) {
                        "newest revision"
                    }
                }
            }
            dt { "Received" } dd { (timestamp(record.at)) " (" (relative_time(record.at, now)) ")" }
            @if let Some(entry) = &page.content.entry { (entry_facts(entry, now)) }
            dt { "Id" } dd { code { (redaction::line(&record.entry_id, 2_048)) } }
        }
    }
}

fn entry_facts(entry: &Entry, now: DateTime<Utc>) -> Markup {
    let date = |at: DateTime<FixedOffset>| {
        let at = at.to_utc();
        html! { (timestamp(at)) " (" (relative_time(at, now)) ")" }
    };
    let (authors, categories) = (names(&entry.authors), categories(entry));
    html! {
        @if let Some(at) = entry.published { dt { "Published" } dd { (date(at)) } }
        @if let Some(at) = entry.updated {
            dt { "Updated" }
            dd { (date(at)) @if entry.date_assumed { ", assumed" } }
        }
        @if !authors.is_empty() { dt { "Authors" } dd { (authors) } }
        @if !categories.is_empty() { dt { "Categories" } dd { (categories) } }
        @for link in entry.links.iter().take(MOST_LISTED) {
            dt { (relation(link)) }
            dd {
                (address(&link.href))
                @if let Some(mime) = &link.mime { " " small { (redaction::line(mime, NAME_CHARS)) } }
            }
        }
    }
}

fn kind(kind: RecordKind) -> Markup {
    let tone = match kind {
        RecordKind::New => Tone::Good,
        RecordKind::Update | RecordKind::Old => Tone::Neutral,
        RecordKind::Deleted => Tone::Warning,
    };
    let word = match kind {
        RecordKind::New => "new",
        RecordKind::Update => "update",
        RecordKind::Old => "not sent",
        RecordKind::Deleted => "deleted",
    };
    badge(tone, word)
}

fn described_kind(kind: RecordKind) -> &'static str {
    match kind {
        RecordKind::New => "a new entry",
        RecordKind::Update => "an update",
        RecordKind::Old => "old when it was received, and not sent",
        RecordKind::Deleted => "a deletion",
    }
}

fn names(people: &[Person]) -> String {
    let names = people.iter().take(MOST_LISTED).map(|person| match person.name.as_str() {
        "" => person.email.as_deref().or(person.uri.as_deref()).unwrap_or_default(),
        name => name,
    });
    joined(names)
}

fn categories(entry: &Entry) -> String {
    let categories = entry.categories.iter().take(MOST_LISTED);
    joined(categories.map(|category| category.label.as_deref().unwrap_or(&category.term)))
}

fn joined<'t>(texts: impl Iterator<Item = &'t str>) -> String {
    let texts: Vec<String> = texts.map(|text| redaction::line(text, NAME_CHARS)).collect();
    texts.join(", ")
}

/// Returns the relation of a link, as the name of a fact.
fn relation(link: &Link) -> String {
    match link.rel.as_str() {
        "alternate" | "" => "Link".to_owned(),
        "enclosure" => "Enclosure".to_owned(),
        rel => format!("Link ({})", redaction::line(rel, NAME_CHARS)),
    }
}

/// Returns an address as a link, if it is one of the web and no longer than addresses are.
fn address(href: &str) -> Markup {
    let is_web = ["http://", "https://"].iter().any(|scheme| href.starts_with(scheme));
    html! {
        @if is_web && href.len() <= LONGEST_ADDRESS {
            a href=(href) rel="nofollow noreferrer" { (redaction::line(href, LONGEST_ADDRESS)) }
        } @else {
            (redaction::line(href, LONGEST_ADDRESS))
        }
    }
}
