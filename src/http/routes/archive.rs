//! Simplefeed: the archive of a resource, page by page (seed 004).
//!
//! An archived document never changes and may be kept for a year; the recent one must
//! be asked for again. Whoever comes again with the entity tag of a document is answered
//! without a record being read, and an archived document in the [`ArchiveDocumentCache`] without
//! the store. Topics with a password or a token in them are somebody's secret: their archives are
//! shown to nobody here (rule S48).

mod document_cache;
mod fast_path;
mod location;
pub mod render;
mod reply;

use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use http::{StatusCode, header};
use sha2::{Digest, Sha256};
use warp::Filter;
use warp::filters::BoxedFilter;
use warp::reply::Response;

use crate::http::Gateway;
use crate::http::kit::exchange::{Asked, Door, empty, nothing_here, out_of_order, plain, set};
use crate::jobs::runner;
use feedgate_core::page::LocatedPage;
use feedgate_core::ports::StoreError;
use feedgate_core::resource::Resource;
use feedgate_protocol::form::Form;
use render::{Archive, Order};

use document_cache::{CachedDocument, DocumentKey, DocumentState};
use location::{Place, Whose, is_public};
use reply::{Keep, Reader, Terms, gone};

pub use document_cache::ArchiveDocumentCache;
pub(crate) use fast_path::at_hand;

const DOOR: Door = Door { name: "archive", methods: &["GET"], body_limit_bytes: 1_024 };

/// Grows whenever documents come to be written in another way: an entity tag tells bytes,
/// and is made without them.
const RENDERING: u32 = 1;
/// A document may have changed twice within one second, which is all that its date tells.
const SETTLED: TimeDelta = TimeDelta::seconds(2);

/// The routes of this door, behind the segments that say whose archive it is.
pub(crate) fn routes(gateway: &Arc<Gateway>) -> BoxedFilter<(Response,)> {
    let below = |first: &'static str| {
        let path = move |tail: warp::path::Tail| format!("{first}/{}", tail.as_str());
        warp::path(first).and(warp::path::tail()).map(path).boxed()
    };
    let collections = below("all").or(below("collections")).unify().boxed();
    let route = below("feeds").or(collections).unify().or(below("accounts")).unify().boxed();
    DOOR.open_with(gateway, route, |gateway, asked, path: String| async move {
        match location::aim(&path) {
            Some((whose, number)) => answer(&gateway, &asked, whose, number).await,
            None if path == "feeds/" => find(&gateway, &asked).await,
            None => nothing_here(),
        }
    })
}

async fn answer(gateway: &Gateway, asked: &Asked, whose: Whose, number: Option<i64>) -> Response {
    let place = match location::find(gateway, asked, whose).await {
        Ok(Some(place)) => place,
        Ok(None) => return nothing_here(),
        Err(refused) => return refused.reply(),
    };
    let (id, is_collection) = (place.id, place.is_collection);
    let key = DocumentKey { id, is_collection, number, order: order(&asked.query) };
    let mut response = match serve(gateway, asked, &place, key).await {
        Ok(response) => response.unwrap_or_else(nothing_here),
        Err(err) => out_of_order(&err),
    };
    if place.is_private {
        reply::keep_private(&mut response);
    }
    response
}

/// `/feeds?topic=URL` leads to the archive of a topic: archives are named by number,
/// which nobody can guess.
async fn find(gateway: &Gateway, asked: &Asked) -> Response {
    let query = Form::from_urlencoded(asked.query.as_bytes()).unwrap_or_default();
    let Some(topic) = query.get("topic") else {
        return plain(StatusCode::BAD_REQUEST, "Please name a topic: /feeds?topic=URL");
    };
    match gateway.store.find(topic).await {
        Ok(found) => match found.filter(is_public) {
            Some(resource) => {
                let mut response = empty(StatusCode::FOUND);
                let recent = gateway.address(&format!("feeds/{}/recent", resource.id));
                set(&mut response, header::LOCATION, &recent);
                response
            }
            None => plain(StatusCode::NOT_FOUND, "Nobody watches this topic here."),
        },
        Err(err) => out_of_order(&err),
    }
}

/// In which order the entries are to stand.
fn order(query: &str) -> Order {
    let is_ascending = query.split('&').any(|pair| pair == "order=asc");
    if is_ascending { Order::OldestFirst } else { Order::NewestFirst }
}

/// The document; `None` if there is none.
async fn serve(
    gateway: &Gateway,
    asked: &Asked,
    place: &Place,
    key: DocumentKey,
) -> Result<Option<Response>, StoreError> {
    if let Some(document) = gateway.archive_documents.get_trusted(&key) {
        let terms = Terms::of_archived(&document.state.mark);
        return Ok(Some(hand_over(gateway, asked, key, (&terms, &document)).await));
    }
    let resource = gateway.store.get(key.id).await?;
    let Some(resource) = resource.filter(|resource| place.shows(resource)) else {
        return Ok(None);
    };
    let Some(held) = gateway.store.page(key.id, key.number).await? else {
        let oldest = gateway.store.oldest_page(key.id).await?;
        let was_dropped = key.number.is_some_and(|number| (1..oldest).contains(&number));
        return Ok(was_dropped.then(gone));
    };
    // What is private is no topic that anybody could name.
    let hub = if place.is_private { String::new() } else { gateway.address("hub") };
    let topic = resource.topic.as_str();
    let archive = Archive { topic, home: &place.home, hub: &hub, order: key.order };
    let terms = match key.number {
        None => recent_terms(&archive, &resource, &held, runner::now()),
        Some(_) => {
            let keep = if held.is_archived() { Keep::ForEver } else { Keep::AskFirst };
            Terms { mark: mark(&archive, &held), keep, link: None, modified: None }
        }
    };
    if let Some(response) = terms.not_modified(&asked.into()) {
        return Ok(Some(response));
    }
    let state = DocumentState { mark: terms.mark.clone(), is_archived: terms.is_archived() };
    let render = async {
        let records = gateway.store.read_page(key.id, &held.page).await?;
        Ok::<_, StoreError>(match key.number {
            None => archive.recent((&resource.feed_head, &resource.status), &held, &records),
            Some(_) => archive.document(&held, &records),
        })
    };
    let document = gateway.archive_documents.get_or_render(key, state, render).await?;
    Ok(Some(hand_over(gateway, asked, key, (&terms, &document)).await))
}

/// The reply with a document that has been rendered.
async fn hand_over(
    gateway: &Gateway,
    asked: &Asked,
    key: DocumentKey,
    (terms, document): (&Terms, &Arc<CachedDocument>),
) -> Response {
    let reader = Reader::from(asked);
    if let Some(response) = terms.not_modified(&reader) {
        return response;
    }
    let body = gateway.archive_documents.encode(key, document, reader.coding).await;
    terms.document(&reader, body)
}

/// The recent document has what is known of the resource now besides its records.
fn recent_terms(
    archive: &Archive<'_>,
    resource: &Resource,
    held: &LocatedPage,
    now: DateTime<Utc>,
) -> Terms {
    let status = serde_json::to_vec(&resource.status).unwrap_or_default();
    let mut digest = Sha256::new();
    digest.update(mark(archive, held));
    digest.update((status.len() as u64).to_be_bytes());
    digest.update(status);
    digest.update(&resource.feed_head);
    let known = [resource.status.last_fetch, resource.status.last_maintenance_at];
    let modified = known.into_iter().flatten().fold(held.page.ended_at, Ord::max);
    // When the document before this one was dropped, and with it the link, is not known.
    let is_cut_off = held.page.number > 1 && held.page.number == held.oldest;
    let recent = archive.recent_url();
    Terms {
        mark: hex::encode(&digest.finalize()[..12]),
        keep: Keep::ForAMoment,
        link: (!archive.hub.is_empty())
            .then(|| format!("<{}>; rel=\"hub\", <{recent}>; rel=\"self\"", archive.hub)),
        modified: (modified <= now - SETTLED && !is_cut_off).then_some(modified),
    }
}

/// Tells one state of a page from every other and from every other page, without its
/// records: which they are, when they came, and where the page stands.
fn mark(archive: &Archive<'_>, held: &LocatedPage) -> String {
    let page = &held.page;
    let is_archived = held.is_archived();
    let is_linked = is_archived || page.number > held.oldest;
    let state = format!(
        "{RENDERING} {} {} {} {} {} {} {is_archived} {is_linked} {}",
        archive.document_url(page.number),
        page.first,
        page.last,
        page.bytes,
        page.begun_at.timestamp_micros(),
        page.ended_at.timestamp_micros(),
        archive.topic,
    );
    hex::encode(&Sha256::digest(state.as_bytes())[..12])
}
