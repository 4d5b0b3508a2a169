//! `hub.mode=retrieve`: the last entries of a resource, newest first (rows R-1 to
//!
//!
//! Atom is joined from what is stored; JSON is a view of the same entries, made by
//! reading that Atom back. Only subscribers may ask.

use std::time::Duration;

use http::{StatusCode, header};
use serde_json::Value;
use tokio::time::{Instant, sleep};
use warp::reply::Response;

use super::account::{Answer, broken, number, unprocessable};
use super::{combined, subscribe};
use crate::http::Gateway;
use crate::http::kit::exchange::{Asked, as_strangers_words, empty, is_known, set, with_type};
use crate::http::kit::jsonp;
use crate::http::kit::params::Refused;
use crate::http::routes::discovered_feeds;
use feedgate_core::account::Access;
use feedgate_core::ports::{EntryRange, StoreError, SubscriptionFilter};
use feedgate_core::record::{Record, Seq};
use feedgate_core::resource::{Resource, ResourceKind};
use feedgate_core::stored_entry::read_back;
use feedgate_core::subscription::Format;
use feedgate_feed::model::Link;
use feedgate_feed::render::{atom, json};
use feedgate_protocol::form::Form;

/// Entries if nobody says otherwise, and at most (row R-3).
const COUNT: (usize, usize) = (10, 50);
/// How long somebody is kept waiting for the next entry: less than the minute after
/// which proxies take a silent connection for dead.
const LONGEST_WAIT: Duration = Duration::from_secs(50);
/// Between two looks at the log on behalf of one who waits. The news may come from
/// another node, so it is the store that is asked.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

/// Answers with what is stored of the topic.
pub(super) async fn retrieve(
    gateway: &Gateway,
    asked: &Asked,
    form: &Form,
    access: &Access,
) -> Result<Answer, Refused> {
    if !form.has("hub.topic") && combined::is_asked(form) {
        return combined::retrieve(gateway, asked, form, access).await;
    }
    let resource = subscribed(gateway, form, access).await?;
    let format = subscribe::format(asked, form)?;
    if resource.kind == ResourceKind::Other && format.is_none() {
        return raw(gateway, &resource).await.map_err(|err| broken(&err));
    }
    let known = etag(&resource, format);
    if !waits(form) && is_known(&asked.headers, &known) {
        return Ok(Answer::Reply(dressed(empty(StatusCode::NOT_MODIFIED), &known)));
    }
    let (resource, records) = settled(gateway, form, resource).await?;
    let etag = etag(&resource, format);
    Ok(answer(
        gateway,
        form,
        &Shelf { resource: &resource, head: None, records: &records, etag: &etag, format },
    ))
}

/// What is answered with.
pub(super) struct Shelf<'a> {
    /// Whose status the document has.
    pub(super) resource: &'a Resource,
    /// The head of a document that is of no single resource; `None` for the resource's own.
    pub(super) head: Option<&'a str>,
    /// Newest first.
    pub(super) records: &'a [Record],
    /// The entity tag.
    pub(super) etag: &'a str,
    /// What was asked for.
    pub(super) format: Option<Format>,
}

/// The records in the format asked for.
pub(super) fn answer(gateway: &Gateway, form: &Form, shelf: &Shelf<'_>) -> Answer {
    let Shelf { etag, format, .. } = shelf;
    if *format == Some(Format::Json) {
        let value = as_json(gateway, shelf);
        if jsonp::function(form).is_some() {
            return Answer::Json(value);
        }
        let content_type = "application/json; charset=utf-8";
        let response = with_type(StatusCode::OK, content_type, value.to_string());
        return Answer::Reply(dressed(response, etag));
    }
    // Exactly this type: the charset stands in the document (row S-8).
    let body = as_atom(gateway, shelf);
    let response = with_type(StatusCode::OK, "application/atom+xml", body);
    Answer::Reply(dressed(response, etag))
}

/// How many entries are asked for.
pub(super) fn count(form: &Form) -> Result<usize, Refused> {
    number(form, "count", COUNT)
}

/// The resource, if the account subscribes to it (row R-2).
async fn subscribed(gateway: &Gateway, form: &Form, access: &Access) -> Result<Resource, Refused> {
    let topic = subscribe::topic(form)?;
    let filter = SubscriptionFilter {
        account: Some(access.account),
        topic: Some(topic.as_str().to_owned()),
        limit: 1,
        ..SubscriptionFilter::default()
    };
    let (listed, _) = gateway.store.list(&filter).await.map_err(|err| broken(&err))?;
    let listed = listed.into_iter().next().ok_or_else(|| {
        Refused::new(StatusCode::NOT_FOUND, "You are not subscribed to this topic.")
    })?;
    Ok(listed.resource)
}

/// Whether the caller would rather wait than hear that there is nothing (row R-11).
fn waits(form: &Form) -> bool {
    form.get("wait") == Some("poll")
}

/// The records asked for. Who waits for news is answered at once if there are any,
/// else as soon as there are, else with none of them when the wait is over.
async fn settled(
    gateway: &Gateway,
    form: &Form,
    mut resource: Resource,
) -> Result<(Resource, Vec<Record>), Refused> {
    let until = Instant::now() + LONGEST_WAIT;
    loop {
        let found = records(gateway, form, &resource).await?;
        if !found.is_empty() || !waits(form) {
            return Ok((resource, found));
        }
        match grown(gateway, &resource, until).await.map_err(|err| broken(&err))? {
            Some(now) => resource = now,
            None => return Ok((resource, found)),
        }
    }
}

/// The resource once its log has grown; `None` if it does not in time.
async fn grown(
    gateway: &Gateway,
    resource: &Resource,
    until: Instant,
) -> Result<Option<Resource>, StoreError> {
    while Instant::now() < until {
        tokio::select! {
            () = gateway.stop.cancelled() => break,
            () = sleep(LOOK_AGAIN) => {}
        }
        match gateway.store.get(resource.id).await? {
            Some(now) if now.head > resource.head => return Ok(Some(now)),
            Some(_) => {}
            None => break,
        }
    }
    Ok(None)
}

/// The records asked for, newest first, each entry as it is now.
async fn records(
    gateway: &Gateway,
    form: &Form,
    resource: &Resource,
) -> Result<Vec<Record>, Refused> {
    let count = count(form)?;
    let before = seq(gateway, form, resource, "before").await?;
    let after = seq(gateway, form, resource, "after").await?;
    let span = EntryRange { after, before, limit: count };
    let read = gateway.store.read_current(resource.id, &span).await;
    read.map_err(|err| broken(&err))
}

/// The number of the entry whose id a parameter gives.
async fn seq(
    gateway: &Gateway,
    form: &Form,
    resource: &Resource,
    name: &str,
) -> Result<Option<Seq>, Refused> {
    let Some(entry_id) = form.get(name) else { return Ok(None) };
    let seq = gateway.store.find_seq(resource.id, entry_id).await.map_err(|err| broken(&err))?;
    let seq = seq.ok_or_else(|| unprocessable(format!("There is no entry {entry_id} here.")))?;
    Ok(Some(seq))
}

fn as_atom(gateway: &Gateway, shelf: &Shelf<'_>) -> String {
    let Shelf { resource, head, records, .. } = shelf;
    let entries: Vec<&str> = records.iter().map(|record| record.atom.as_str()).collect();
    let link = |rel: &str, href: String| Link { rel: rel.to_owned(), href, ..Link::default() };
    let mut links = vec![link("hub", gateway.address(""))];
    if head.is_none() {
        links.insert(0, link("self", resource.topic.as_str().to_owned()));
        links.push(link("current", gateway.address(&format!("feeds/{}/recent", resource.id))));
    }
    atom::document(&atom::AtomDocument {
        head: head.unwrap_or(&resource.feed_head),
        topic: resource.topic.as_str(),
        status: Some(resource.status.report()),
        links: &links,
        entries: &entries,
    })
}

fn as_json(gateway: &Gateway, shelf: &Shelf<'_>) -> Value {
    let Shelf { resource, records, .. } = shelf;
    let text = as_atom(gateway, shelf);
    let mut feed = read_back(resource, &text);
    // The order is ours, whatever a reader thinks of the dates.
    let order: Vec<&str> = records.iter().map(|record| record.entry_id.as_str()).collect();
    feed.entries.sort_by_key(|entry| order.iter().position(|id| *id == entry.id));
    let mut value = json::document(&feed, resource.topic.as_str(), resource.status.report());
    if records.is_empty() {
        // Without `items` a document means that the feed is in trouble (row N-13).
        value["items"] = Value::Array(Vec::new());
    }
    value
}

/// What is no feed, as it is, unless a format is asked for (row S-7).
async fn raw(gateway: &Gateway, resource: &Resource) -> Result<Answer, StoreError> {
    let Some((version, body)) = gateway.store.body(resource.id).await? else {
        return Ok(Answer::Done(StatusCode::NO_CONTENT));
    };
    let content_type = body.content_type.as_deref().unwrap_or("application/octet-stream");
    let response = with_type(StatusCode::OK, content_type, body.bytes);
    let mut response = dressed(response, &format!("\"{}-{version}-raw\"", resource.id));
    discovered_feeds::announce(&mut response, &resource.polling.offers);
    Ok(Answer::Reply(response))
}

/// Weak, because the times in the status move with each fetch and are no news.
fn etag(resource: &Resource, format: Option<Format>) -> String {
    let format = format.unwrap_or(Format::Atom).as_str();
    format!("W/\"{}-{}-{}-{format}\"", resource.id, resource.head, resource.status.version)
}

fn dressed(mut response: Response, etag: &str) -> Response {
    set(&mut response, header::ETAG, etag);
    set(&mut response, header::CACHE_CONTROL, "private, no-cache");
    set(&mut response, header::VARY, "Accept, Authorization");
    as_strangers_words(response)
}
