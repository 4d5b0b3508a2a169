//! `/feeds/{id}`: the newest entries of a resource as a plain feed.
//!
//! The recent document of an archive begins nearly empty whenever a document is full, so a reader
//! that knows no archives would lose entries there. This feed has a fixed number of entries, each in
//! its current version, and leads readers that do know archives (RFC 5005) on to older entries. It is
//! rendered and compressed once for all clients that request as many entries, until one is new.

use sha2::{Digest, Sha256};
use warp::reply::Response;

use super::document_cache::{DocumentKey, DocumentState};
use super::location::ArchiveLocation;
use super::render::{Archive, Order};
use super::reply::{CachePolicy, DocumentHeaders, DocumentRequest};
use crate::http::kit::params;
use crate::http::kit::rejection::Rejection;
use crate::http::kit::request::Request;
use crate::http::state::Gateway;
use feedgate_core::page::LocatedPage;
use feedgate_core::record::Record;
use feedgate_core::resource::{Resource, ResourceId};
use feedgate_core::store::{EntryRange, StoreError};

/// The number of entries, unless the request names one: more than most feeds publish between two
/// visits of a reader.
const DEFAULT_COUNT: usize = 100;
/// The largest number of entries: with entries of usual size a document of about a megabyte.
const MAX_COUNT: usize = 500;
/// The bytes of entries that end the feed, which has at least one: a feed of large entries leads on to
/// older ones sooner.
const MAX_BYTES: usize = 4 << 20;
/// The bytes of entries that count as a request when a feed is rendered that is not cached: compressing
/// them takes some 8 ms of processor time.
const BYTES_PER_REQUEST: usize = 256 << 10;
/// The version of the rendering, part of every entity tag, which is computed without the bytes.
const RENDERING: u32 = 1;

/// Returns the response with the feed; `None` if there is no such resource.
pub(super) async fn serve(
    gateway: &Gateway,
    request: &Request,
    location: &ArchiveLocation,
) -> Result<Option<Response>, StoreError> {
    let count = match requested_count(request) {
        Ok(count) => count,
        Err(rejection) => return Ok(Some(rejection.to_response())),
    };
    let resource = gateway.store.get(location.id).await?;
    let Some(resource) = resource.filter(|resource| location.is_of(resource)) else {
        return Ok(None);
    };
    let Some(newest) = gateway.store.page(resource.id, None).await? else { return Ok(None) };
    // A private archive has no topic that others could subscribe to.
    let hub = if location.is_private { String::new() } else { gateway.public_url("hub") };
    let topic = resource.topic.as_str();
    let archive = Archive { topic, home: &location.home, hub: &hub, order: Order::NewestFirst };
    let address = match count {
        Some(count) => format!("{}?count={count}", archive.newest_url()),
        None => archive.newest_url(),
    };
    let head = archive.head(&resource.feed_head, &resource.status);
    let version = version(&[&address, &hub, &head], &resource, newest.oldest);
    let link = format!("<{hub}>; rel=\"hub\", <{address}>; rel=\"self\"");
    let link = (!hub.is_empty()).then_some(link);
    let headers =
        DocumentHeaders { version, cache_policy: CachePolicy::Brief, link, modified: None };
    let reader = DocumentRequest::from(request);
    if let Some(response) = headers.not_modified(&reader) {
        return Ok(Some(response));
    }
    let limit = count.unwrap_or_else(|| default_count(&newest));
    let key = newest_key(location, limit);
    let state = DocumentState { version: headers.version.clone(), is_archived: false };
    let render = async {
        let range = EntryRange { limit, max_bytes: Some(MAX_BYTES), ..EntryRange::default() };
        let records = gateway.store.read_current(resource.id, &range).await?;
        let bytes: usize = records.iter().map(|record| record.atom.len()).sum();
        // Each number of entries is a document of its own, which clients can choose.
        gateway.anonymous_rate_limit.admit(request, bytes / BYTES_PER_REQUEST)?;
        let before = match records.len() == limit || bytes >= MAX_BYTES {
            true => previous_document(gateway, resource.id, &newest, &records).await?,
            false => None,
        };
        Ok::<_, NotRendered>(archive.newest(&head, &address, before, &records))
    };
    let document = match gateway.archive_documents.get_or_render(key, state, render).await {
        Ok(document) => document,
        Err(NotRendered::Rejected(rejection)) => return Ok(Some(rejection.to_response())),
        Err(NotRendered::Store(err)) => return Err(err),
    };
    let (coding, body) = gateway.archive_documents.encode(key, &document, reader.coding).await;
    Ok(Some(headers.document(&reader, coding, body)))
}

/// Returns the key of the feed of the newest `count` entries.
fn newest_key(location: &ArchiveLocation, count: usize) -> DocumentKey {
    let ArchiveLocation { id, is_collection, is_private, .. } = *location;
    let number = Some(-i64::try_from(count).unwrap_or(i64::MAX));
    DocumentKey { id, is_collection, is_private, number, order: Order::NewestFirst }
}

/// The reason why a feed was not rendered.
enum NotRendered {
    Store(StoreError),
    Rejected(Rejection),
}

impl From<StoreError> for NotRendered {
    fn from(err: StoreError) -> NotRendered {
        NotRendered::Store(err)
    }
}

impl From<Rejection> for NotRendered {
    fn from(rejection: Rejection) -> NotRendered {
        NotRendered::Rejected(rejection)
    }
}

/// Returns the number of entries that the request names; rejects anything but a number.
fn requested_count(request: &Request) -> Result<Option<usize>, Rejection> {
    let query = params::read_query(request);
    let Some(text) = query.get("count") else { return Ok(None) };
    match text.parse::<usize>() {
        Ok(count) => Ok(Some(count.clamp(1, MAX_COUNT))),
        Err(_) => {
            let reason = format!("count must be a number from 1 to {MAX_COUNT}, not {text}.");
            Err(Rejection::bad_request(reason))
        }
    }
}

/// Returns the default number of entries: at least all of the newest page, because only archived
/// documents may be linked to as previous ones.
fn default_count(newest: &LocatedPage) -> usize {
    DEFAULT_COUNT.max(usize::try_from(newest.page.len()).unwrap_or_default())
}

/// Returns the number of the newest document with entries that are older than `records`. There is
/// none if that document is still growing: a reader that has seen a previous document does not get
/// it again (RFC 5005, section 4).
async fn previous_document(
    gateway: &Gateway,
    id: ResourceId,
    newest: &LocatedPage,
    records: &[Record],
) -> Result<Option<i64>, StoreError> {
    let Some(oldest) = records.last() else { return Ok(None) };
    if newest.page.first < oldest.seq {
        return Ok(None);
    }
    // The pages behind `records` are at most as many as `records`, and usually two.
    for number in (newest.oldest..newest.page.number).rev() {
        let Some(held) = gateway.store.page(id, Some(number)).await? else { return Ok(None) };
        if held.page.first < oldest.seq {
            return Ok(Some(number));
        }
    }
    Ok(None)
}

/// Returns the version of the feed, computed without reading its entries.
fn version(texts: &[&str], resource: &Resource, oldest_page: i64) -> String {
    let mut digest = Sha256::new();
    digest.update(RENDERING.to_be_bytes());
    for number in [resource.head.0, oldest_page] {
        digest.update(number.to_be_bytes());
    }
    for text in texts {
        digest.update((text.len() as u64).to_be_bytes());
        digest.update(text);
    }
    hex::encode(&digest.finalize()[..12])
}
