//! Simplefeed: the archive of a resource, page by page (seed 004).
//!
//! An archived document never changes and may be kept for a year; the recent one must
//! be asked for again. Topics with a password in them are somebody's secret: their
//! archives are shown to nobody here (rule S48).

use std::sync::Arc;

use http::{StatusCode, header};
use sha2::{Digest, Sha256};
use warp::Filter;
use warp::filters::BoxedFilter;
use warp::reply::Response;

use super::Gateway;
use super::exchange::{
    Asked, Door, as_strangers_words, empty, is_known, nothing_here, out_of_order, plain, set,
    with_type,
};
use crate::domain::page::Held;
use crate::domain::resource::{Resource, ResourceId};
use crate::render::archive::{Archive, Order};
use crate::store::StoreError;
use crate::wire::form::Form;

const DOOR: Door = Door { name: "archive", methods: &["GET"], body_limit_bytes: 1_024 };

/// Which document is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Page {
    Recent,
    Number(i64),
}

/// The routes of this door, behind the segment `feeds`.
pub(super) fn routes(gateway: &Arc<Gateway>) -> BoxedFilter<(Response,)> {
    let feeds = warp::path("feeds").and(warp::path::tail()).boxed();
    DOOR.open_with(gateway, feeds, |gateway, asked, tail: warp::path::Tail| async move {
        match aim(tail.as_str()) {
            Some((id, page)) => answer(&gateway, &asked, id, page).await,
            None if tail.as_str().is_empty() => find(&gateway, &asked).await,
            None => nothing_here(),
        }
    })
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

/// `7/recent` or `7/documents/3`.
fn aim(tail: &str) -> Option<(ResourceId, Page)> {
    let number = |text: &str| text.parse::<i64>().ok().filter(|number| number.to_string() == text);
    let (id, rest) = tail.split_once('/')?;
    let page = match rest.split_once('/') {
        None if rest == "recent" => Page::Recent,
        Some(("documents", page)) => Page::Number(number(page)?),
        _ => return None,
    };
    Some((ResourceId(number(id)?), page))
}

async fn answer(gateway: &Gateway, asked: &Asked, id: ResourceId, page: Page) -> Response {
    match serve(gateway, asked, id, page).await {
        Ok(response) => response.unwrap_or_else(nothing_here),
        Err(err) => out_of_order(&err),
    }
}

async fn serve(
    gateway: &Gateway,
    asked: &Asked,
    id: ResourceId,
    page: Page,
) -> Result<Option<Response>, StoreError> {
    let Some(resource) = gateway.store.get(id).await?.filter(is_public) else { return Ok(None) };
    let home = gateway.address(&format!("feeds/{id}"));
    let hub = gateway.address("hub");
    let archive =
        Archive { topic: resource.topic.as_str(), home: &home, hub: &hub, order: order(asked) };
    let number = match page {
        Page::Recent => None,
        Page::Number(number) => Some(number),
    };
    let Some(held) = gateway.store.page(id, number).await? else {
        return Ok(was_removed(gateway, id, number).await?.then(gone));
    };

    // The range tells one state of a document from every other; the recent one has
    // a status besides, which changes with each fetch.
    let fetched = resource.status.last_fetch.unwrap_or_default().timestamp_micros();
    let etag = match page {
        Page::Recent => {
            let mark = mark(&archive, &held, held.oldest);
            format!("\"{mark}-{}-{fetched}\"", resource.status.version)
        }
        Page::Number(_) => {
            let least = if held.is_archived() { 1 } else { held.oldest };
            format!("\"{}\"", mark(&archive, &held, least))
        }
    };
    let mut response = if is_known(asked, &etag) {
        empty(StatusCode::NOT_MODIFIED)
    } else {
        let records = gateway.store.read_page(id, &held.page).await?;
        let body = match page {
            Page::Recent => {
                archive.recent((&resource.feed_head, &resource.status), &held, &records)
            }
            Page::Number(_) => archive.document(&held, &records),
        };
        with_type(StatusCode::OK, "application/atom+xml", body)
    };
    set(&mut response, header::ETAG, &etag);
    let is_final = page != Page::Recent && held.is_archived();
    let cache = if is_final { "public, max-age=31536000, immutable" } else { "public, max-age=30" };
    set(&mut response, header::CACHE_CONTROL, cache);
    let link = format!("<{hub}>; rel=\"hub\", <{}>; rel=\"self\"", archive.recent_url());
    if page == Page::Recent {
        set(&mut response, header::LINK, &link);
    }
    Ok(Some(as_strangers_words(response)))
}

/// In which order the entries are to stand.
fn order(asked: &Asked) -> Order {
    let query = Form::from_urlencoded(asked.query.as_bytes()).unwrap_or_default();
    match query.get("order") {
        Some("asc") => Order::OldestFirst,
        _ => Order::NewestFirst,
    }
}

/// Whether there was a document of this number, and it was dropped.
async fn was_removed(
    gateway: &Gateway,
    id: ResourceId,
    number: Option<i64>,
) -> Result<bool, StoreError> {
    match number {
        Some(number) if number > 0 => Ok(number < gateway.store.oldest_page(id).await?),
        _ => Ok(false),
    }
}

fn gone() -> Response {
    plain(StatusCode::GONE, "This part of the archive is no longer kept.")
}

/// What tells one state of a page from every other, and from every other page.
fn mark(archive: &Archive<'_>, held: &Held, least: i64) -> String {
    let page = &held.page;
    let state = format!(
        "{RENDERING} {} {} {} {} {} {} {} {} {}",
        archive.document_url(page.number),
        archive.hub,
        page.first,
        page.last,
        page.begun_at.timestamp_micros(),
        page.ended_at.timestamp_micros(),
        held.is_archived(),
        page.number > least,
        archive.topic,
    );
    hex::encode(&Sha256::digest(state.as_bytes())[..12])
}

/// Grows whenever documents are written another way: entity tags tell bytes, not records.
const RENDERING: u32 = 1;

fn is_public(resource: &Resource) -> bool {
    let url = resource.topic.fetch_url();
    url.username().is_empty() && url.password().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_we_publish_lead_somewhere() {
        let page = |page| Some((ResourceId(7), page));
        #[rustfmt::skip]
        let cases = [
            ("7/recent",        page(Page::Recent)),
            ("7/documents/3",   page(Page::Number(3))),
            ("7/documents/03",  None),
            ("7/documents/+3",  None),
            ("7/documents/3/",  None),
            ("7/recent/",       None),
            ("x/recent",        None),
            ("7",               None),
            ("",                None),
        ];
        for (tail, want) in cases {
            assert_eq!(aim(tail), want, "{tail}");
        }
    }
}
