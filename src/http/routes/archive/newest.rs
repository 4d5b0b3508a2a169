//! `/feeds/{id}`, `/all`, `/collections/{name}` and `/accounts/{login}`: the newest entries of a log as a
//! plain feed.
//!
//! The recent document of an archive begins nearly empty whenever a document is full, so a reader
//! that knows no archives would lose entries there. This feed has a fixed number of entries, each in
//! its current version, and leads readers that do know archives (RFC 5005) on to older entries. It is
//! rendered and compressed once for all clients that request as many entries, until one is new.

use chrono::{DateTime, Utc};
use sha2::{Digest, Sha256};
use url::form_urlencoded::Serializer;
use warp::reply::Response;

use super::SETTLED;
use super::conversion::{NotRendered, convert, version_in};
use super::document_cache::{DocumentKey, DocumentState};
use super::location::ArchiveLocation;
use super::render::{Archive, Order};
use super::reply::{CachePolicy, DocumentHeaders, DocumentRequest};
use crate::http::kit::params;
use crate::http::kit::rejection::Rejection;
use crate::http::kit::request::Request;
use crate::http::state::Gateway;
use crate::jobs::deliver::matching_records;
use crate::jobs::runner;
use feedgate_core::archive_identity::collected_record;
use feedgate_core::document_format::DocumentFormat;
use feedgate_core::page::LocatedPage;
use feedgate_core::query::{EntryFilter, QueryError};
use feedgate_core::record::{Digest as RecordDigest, Record};
use feedgate_core::resource::{Resource, ResourceId, ResourceKind};
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
/// The entries that count as a request when they are compared with a filter: that takes some 8 ms of
/// processor time.
const COMPARED_PER_REQUEST: usize = 40;
/// The version of the rendering, part of every entity tag, which is computed without the bytes.
const RENDERING: u32 = 1;

/// Returns the response with the feed; `None` if there is no such resource.
pub(super) async fn serve(
    gateway: &Gateway,
    request: &Request,
    location: &ArchiveLocation,
    format: DocumentFormat,
) -> Result<Option<Response>, NotRendered> {
    let count = requested_count(request)?;
    let filter = requested_filter(request)?;
    let resource = gateway.store.get(location.id).await?;
    let Some(resource) = resource.filter(|resource| location.is_of(resource)) else {
        return Ok(None);
    };
    let Some(newest) = gateway.store.page(resource.id, None).await? else { return Ok(None) };
    // A private archive has no topic that others could subscribe to.
    let hub = if location.is_private { String::new() } else { gateway.public_url("hub") };
    let topic = &*resource.topic.displayed();
    let order = Order::NewestFirst;
    let archive = Archive { topic, home: &location.home, hub: &hub, order, format };
    let address = address(&archive, count, filter.as_ref());
    let head = archive.head(&resource.feed_head, &resource.status);
    let version = version(&[&address, &hub, &head], &resource, newest.oldest);
    let version = version_in(format, version);
    let link = format!("<{hub}>; rel=\"hub\", <{address}>; rel=\"self\"{}", alternates(&archive));
    let link = (!hub.is_empty()).then_some(link);
    let modified = last_change(&resource, &newest).filter(|at| *at <= runner::now() - SETTLED);
    let headers =
        DocumentHeaders { version, cache_policy: CachePolicy::Brief, format, link, modified };
    let reader = DocumentRequest::from(request);
    if let Some(response) = headers.not_modified(&reader) {
        return Ok(Some(response));
    }
    let limit = count.unwrap_or_else(|| default_count(&newest));
    let key = newest_key(location, format, limit, filter.as_ref());
    let state = DocumentState { version: headers.version.clone(), is_archived: false };
    let render = async {
        let Selection { records, is_cut } =
            select(gateway, request, &resource, limit, filter.as_ref()).await?;
        let before = match is_cut {
            true => previous_document(gateway, resource.id, &newest, &records).await?,
            false => None,
        };
        let atom = archive.newest(&head, &address, before, &records);
        convert(gateway, request, format, (&resource, None), atom).await
    };
    let document = gateway.archive_documents.get_or_render(key, state, render).await?;
    let (coding, body) = gateway.archive_documents.encode(key, &document, reader.coding).await;
    Ok(Some(headers.document(&reader, coding, body)))
}

/// Returns when the feed changed last: its entries when one was appended, its head when a document of
/// the source was read. `None` if documents were deleted: the link to the previous one disappears with
/// it, at an unknown time.
fn last_change(resource: &Resource, newest: &LocatedPage) -> Option<DateTime<Utc>> {
    let appended_at = (!newest.page.is_empty()).then_some(newest.page.ended_at);
    let is_whole = newest.oldest == 1;
    appended_at.max(resource.status.last_parse).filter(|_| is_whole)
}

/// Returns the key of the feed of the newest `count` entries that match a filter.
fn newest_key(
    location: &ArchiveLocation,
    format: DocumentFormat,
    count: usize,
    filter: Option<&EntryFilter>,
) -> DocumentKey {
    let number = Some(-i64::try_from(count).unwrap_or(i64::MAX));
    let filter = filter.map(|filter| RecordDigest::from_parts(&[filter.as_str()]));
    DocumentKey { number, filter, ..location.key(format) }
}

/// Returns the address of the feed.
fn address(archive: &Archive<'_>, count: Option<usize>, filter: Option<&EntryFilter>) -> String {
    let mut query = Serializer::new(String::new());
    query.extend_pairs(count.map(|count| ("count", count.to_string())));
    query.extend_pairs(filter.map(|filter| ("filter", filter.as_str())));
    match query.finish().as_str() {
        "" => archive.newest_url(),
        query => format!("{}?{query}", archive.newest_url()),
    }
}

/// Returns the links to the feed in other formats, each after a comma.
fn alternates(archive: &Archive<'_>) -> String {
    let others = DocumentFormat::ALL.into_iter().filter(|format| *format != archive.format);
    let link = |format: DocumentFormat| {
        let url = Archive { format, ..*archive }.newest_url();
        format!(", <{url}>; rel=\"alternate\"; type=\"{}\"", format.media_type())
    };
    others.map(link).collect()
}

/// The entries of a feed.
struct Selection {
    /// The entries, newest first.
    records: Vec<Record>,
    /// Whether older entries may have been left out that belong to it.
    is_cut: bool,
}

/// Returns the newest entries, or those of them that match a filter.
async fn select(
    gateway: &Gateway,
    request: &Request,
    resource: &Resource,
    limit: usize,
    filter: Option<&EntryFilter>,
) -> Result<Selection, NotRendered> {
    let read = if filter.is_some() { MAX_COUNT } else { limit };
    let range = EntryRange { limit: read, max_bytes: Some(MAX_BYTES), ..EntryRange::default() };
    // Each number of entries, and each filter, is a document of its own, which clients can choose.
    let compared = if filter.is_some() { MAX_COUNT / COMPARED_PER_REQUEST } else { 0 };
    gateway.anonymous_rate_limit.admit(request, compared)?;
    let mut records = gateway.store.read_current(resource.id, &range).await?;
    let bytes: usize = records.iter().map(|record| record.atom.len()).sum();
    gateway.anonymous_rate_limit.admit(request, bytes / BYTES_PER_REQUEST)?;
    // Older documents have entries that do not match.
    let is_cut = filter.is_none() && (records.len() == limit || bytes >= MAX_BYTES);
    if let Some(filter) = filter {
        let matcher = filter.matcher().map_err(reject_filter)?;
        records = matching_records(&matcher, resource, records).await;
        records.truncate(limit);
    }
    if resource.kind == ResourceKind::Collection {
        let topic = resource.topic.as_str();
        let archived = gateway.store.archived(resource.id, records).await?;
        records = archived.into_iter().map(|held| collected_record(topic, held)).collect();
    }
    Ok(Selection { records, is_cut })
}

/// Returns the filter that the request names (row Q-5).
fn requested_filter(request: &Request) -> Result<Option<EntryFilter>, Rejection> {
    let query = params::read_query(request);
    query.get("filter").map(EntryFilter::parse).transpose().map_err(reject_filter)
}

fn reject_filter(reason: QueryError) -> Rejection {
    let reason = format!("Please provide a valid filter. ({reason}.)");
    Rejection::bad_request(reason).with_code("bad_query")
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
