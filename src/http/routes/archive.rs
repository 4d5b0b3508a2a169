//! Simplefeed: the archive of a resource, page by page (seed 004), and its newest entries as a plain
//! feed.
//!
//! An archived document never changes and may be cached for a year; the recent document must be
//! revalidated. A request with the current entity tag is answered without reading a record, and an
//! archived document that is in the document cache is served without the store. Archives of private
//! resources are shown to the accounts that subscribe to them (rules S48, S56).

mod conversion;
pub(crate) mod document_cache;
pub(crate) mod fast_path;
mod location;
mod newest;
mod page;
pub mod render;
mod reply;

use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use http::{StatusCode, header};
use sha2::{Digest, Sha256};
use url::form_urlencoded::Serializer;
use warp::Filter;
use warp::filters::BoxedFilter;
use warp::reply::Response;

use crate::http::kit::anonymous_access::Permission;
use crate::http::kit::browser_view;
use crate::http::kit::endpoint::Endpoint;
use crate::http::kit::not_found_page;
use crate::http::kit::params;
use crate::http::kit::permissions;
use crate::http::kit::rejection::{Rejection, unavailable};
use crate::http::kit::reply::{empty, not_found, plain_text, set_header};
use crate::http::kit::request::Request;
use crate::http::kit::requested_format::requested_format;
use crate::http::state::Gateway;
use crate::jobs::runner;
use feedgate_core::document_format::DocumentFormat;
use feedgate_core::page::LocatedPage;
use feedgate_core::resource::Resource;
use render::{Archive, Order};

use conversion::{NotRendered, convert, version_in};
use document_cache::{CachedDocument, DocumentKey, DocumentState};
use location::{ArchiveLocation, ArchiveOwner, DocumentName};
use reply::{CachePolicy, DocumentHeaders, DocumentRequest, gone};

const ENDPOINT: Endpoint = Endpoint { name: "archive", methods: &["GET"], body_limit_bytes: 1_024 };

/// The version of the rendering, part of every entity tag. Must be incremented whenever documents
/// are rendered differently, because entity tags are computed without the bytes.
const RENDERING: u32 = 1;
/// The version of what is rendered differently in the recent document only.
const RECENT_RENDERING: u32 = 1;
/// The age from which `Last-Modified` is reliable: its precision is one second, and a document may
/// change twice within one.
const SETTLED: TimeDelta = TimeDelta::seconds(2);

/// Returns the routes of this endpoint. Their first segment names the owner of the archive.
pub(crate) fn routes(gateway: &Arc<Gateway>) -> BoxedFilter<(Response,)> {
    let below = |first: &'static str| {
        let path = move |tail: warp::path::Tail| format!("{first}/{}", tail.as_str());
        warp::path(first).and(warp::path::tail()).map(path).boxed()
    };
    let all = warp::path::full().and_then(plain_feed_of_all).or(below("all")).unify().boxed();
    let collections = all.or(below("collections")).unify().boxed();
    let route = below("feeds").or(collections).unify().or(below("accounts")).unify().boxed();
    ENDPOINT.route_with_param(gateway, route, |gateway, request, path: String| async move {
        let is_own = path.starts_with("accounts/"); // needs an account in any case
        if !is_own
            && let Err(rejection) =
                permissions::check_by_query(&gateway, &request, Permission::Views).await
        {
            return rejection.to_response();
        }
        let (path, of_address) = DocumentFormat::split_extension(&path);
        let (owner, name) = match location::parse_path(path) {
            Some(place) => place,
            None if path == "feeds/" => return redirect_to_archive(&gateway, &request).await,
            None => return nothing_here(&gateway, &request),
        };
        let document = requested_format(&request, of_address).map(|format| {
            // Whoever names a format is sent the document, in a browser as well.
            let is_named = of_address.is_some() || params::read_query(&request).has("format");
            let is_page = !is_named && browser_view::is_preferred(&request.headers, &request.query);
            RequestedDocument { name, format, is_page }
        });
        let response = match document {
            Ok(document) => handle(&gateway, &request, owner, document).await,
            Err(rejection) => rejection.to_response(),
        };
        permissions::keep_private(&gateway, response)
    })
}

fn nothing_here(gateway: &Gateway, request: &Request) -> Response {
    let prefers_page = browser_view::is_preferred(&request.headers, &request.query);
    if prefers_page { not_found_page::page(gateway, &request.path) } else { not_found() }
}

/// Returns the path if it is that of the plain feed of all resources, whose end is not behind a slash.
async fn plain_feed_of_all(path: warp::path::FullPath) -> Result<String, warp::Rejection> {
    let path = path.as_str().trim_start_matches('/');
    match DocumentFormat::split_extension(path).0 {
        "all" => Ok(path.to_owned()),
        _ => Err(warp::reject::not_found()),
    }
}

/// A document of an archive, as it is requested.
#[derive(Clone, Copy, Debug)]
struct RequestedDocument {
    name: DocumentName,
    format: DocumentFormat,
    /// Whether it is requested as a page for people.
    is_page: bool,
}

async fn handle(
    gateway: &Gateway,
    request: &Request,
    owner: ArchiveOwner,
    document: RequestedDocument,
) -> Response {
    let RequestedDocument { name, format, is_page } = document;
    let location = match location::find(gateway, request, owner).await {
        Ok(Some(location)) => location,
        Ok(None) => return nothing_here(gateway, request),
        Err(rejection) => return rejection.to_response(),
    };
    let number = match name {
        DocumentName::Newest | DocumentName::Recent => None,
        DocumentName::Numbered(number) => Some(number),
    };
    let served = match name {
        _ if is_page => page::serve(gateway, request, &location, name).await,
        DocumentName::Newest => newest::serve(gateway, request, &location, format).await,
        DocumentName::Recent | DocumentName::Numbered(_) => {
            serve(gateway, request, &location, (number, format)).await
        }
    };
    let mut response = match served {
        Ok(response) => response.unwrap_or_else(|| nothing_here(gateway, request)),
        Err(NotRendered::Store(err)) => unavailable(&err),
        Err(NotRendered::Rejected(rejection)) => rejection.to_response(),
    };
    if location.is_private {
        reply::keep_private(&mut response);
    }
    response
}

/// Redirects `/feeds?topic=URL` to the archive of a topic. Archives are addressed by number, which
/// a reader does not know.
async fn redirect_to_archive(gateway: &Gateway, request: &Request) -> Response {
    let query = params::read_query(request);
    let Some(topic) = query.get("topic") else {
        return plain_text(StatusCode::BAD_REQUEST, "Please specify a topic: /feeds?topic=URL");
    };
    let found = match gateway.store.find(topic).await {
        Ok(found) => found,
        Err(err) => return unavailable(&err),
    };
    let is_public = found.as_ref().is_some_and(Resource::is_readable);
    let may_read = match is_public {
        true => Ok(true),
        false => location::belongs_to_client(gateway, request, found.as_ref()).await,
    };
    let resource = match may_read {
        Ok(may_read) => found.filter(|_| may_read),
        Err(rejection) => return rejection.to_response(),
    };
    let Some(resource) = resource else {
        return plain_text(StatusCode::NOT_FOUND, "This topic is not watched here.");
    };
    let mut response = empty(StatusCode::FOUND);
    let format = query.get("format").and_then(DocumentFormat::from_word).unwrap_or_default();
    let (id, extension) = (resource.id, format.extension());
    // Only the plain feed has these parameters.
    let selecting = ["count", "filter"].into_iter();
    let selecting = selecting.filter_map(|name| Some((name, query.get(name)?)));
    let selecting = Serializer::new(String::new()).extend_pairs(selecting).finish();
    let path = match selecting.as_str() {
        "" => format!("feeds/{id}/recent{extension}"),
        query => format!("feeds/{id}{extension}?{query}"),
    };
    set_header(&mut response, header::LOCATION, &gateway.public_url(&path));
    if !is_public {
        reply::keep_private(&mut response);
    }
    response
}

/// Returns the requested order of entries.
fn order(query: &str) -> Order {
    let is_ascending = query.split('&').any(|pair| pair == "order=asc");
    if is_ascending { Order::OldestFirst } else { Order::NewestFirst }
}

/// Returns the response with the document; `None` if it does not exist.
async fn serve(
    gateway: &Gateway,
    request: &Request,
    location: &ArchiveLocation,
    (number, format): (Option<i64>, DocumentFormat),
) -> Result<Option<Response>, NotRendered> {
    if params::read_query(request).has("filter") {
        let reason =
            "A filter has an effect in the plain feed only, such as /feeds/7?filter=tides.";
        return Err(Rejection::bad_request(reason).into());
    }
    let order = order(&request.query);
    let key = DocumentKey { number, order, ..location.key(format) };
    if let Some(document) = gateway.archive_documents.get_trusted(&key) {
        let headers = DocumentHeaders::archived(&document.state.version);
        return Ok(Some(document_reply(gateway, request, key, &headers, &document).await));
    }
    let resource = gateway.store.get(key.id).await?;
    let Some(resource) = resource.filter(|resource| location.is_of(resource)) else {
        return Ok(None);
    };
    // A resource that was copied is served under its former number, too, with the same bytes as
    // before.
    let id = resource.id;
    let Some(held) = gateway.store.page(id, key.number).await? else {
        let oldest = gateway.store.oldest_page(id).await?;
        let was_dropped = key.number.is_some_and(|number| (1..oldest).contains(&number));
        return Ok(was_dropped.then(gone));
    };
    // A private archive has no topic that others could subscribe to.
    let hub = if location.is_private { String::new() } else { gateway.public_url("hub") };
    let topic = &*resource.topic.displayed();
    let archive = Archive { topic, home: &location.home, hub: &hub, order, format };
    let headers = match key.number {
        None => recent_headers(&archive, &resource, &held, runner::now()),
        Some(_) => {
            // Documents in other formats may be written in another way by later versions.
            let cache_policy = match held.is_archived() && format == DocumentFormat::Atom {
                true => CachePolicy::Immutable,
                false => CachePolicy::Revalidate,
            };
            let version = version_in(format, version(&archive, &held));
            DocumentHeaders { version, cache_policy, format, link: None, modified: None }
        }
    };
    if let Some(response) = headers.not_modified(&request.into()) {
        return Ok(Some(response));
    }
    let state =
        DocumentState { version: headers.version.clone(), is_archived: headers.is_archived() };
    let render = async {
        let records = gateway.store.read_page(id, &held.page).await?;
        let (status, atom) = match key.number {
            None => {
                let status = &resource.status;
                (Some(status), archive.recent(&resource.feed_head, status, &held, &records))
            }
            Some(_) => (None, archive.document(&held, &records)),
        };
        convert(gateway, request, format, (&resource, status), atom).await
    };
    let document = gateway.archive_documents.get_or_render(key, state, render).await?;
    Ok(Some(document_reply(gateway, request, key, &headers, &document).await))
}

/// Returns the response with a rendered document.
async fn document_reply(
    gateway: &Gateway,
    request: &Request,
    key: DocumentKey,
    headers: &DocumentHeaders,
    document: &Arc<CachedDocument>,
) -> Response {
    let request = DocumentRequest::from(request);
    if let Some(response) = headers.not_modified(&request) {
        return response;
    }
    let (coding, body) = gateway.archive_documents.encode(key, document, request.coding).await;
    headers.document(&request, coding, body)
}

/// Returns the headers of the recent document, which contains the status of the resource in
/// addition to its records.
fn recent_headers(
    archive: &Archive<'_>,
    resource: &Resource,
    held: &LocatedPage,
    now: DateTime<Utc>,
) -> DocumentHeaders {
    let status = serde_json::to_vec(&resource.status).unwrap_or_default();
    let mut digest = Sha256::new();
    digest.update(RECENT_RENDERING.to_be_bytes());
    digest.update(version(archive, held));
    digest.update((status.len() as u64).to_be_bytes());
    digest.update(status);
    digest.update(&resource.feed_head);
    let known = [resource.status.last_fetch, Some(resource.status.last_maintenance_at)];
    let modified = known.into_iter().flatten().fold(held.page.ended_at, Ord::max);
    // The link to the previous document disappears when that document is deleted, at an unknown
    // time.
    let may_have_lost_link = held.page.number > 1 && held.page.number == held.oldest;
    let (hub, recent, newest) = (archive.hub, archive.recent_url(), archive.newest_url());
    let media_type = archive.format.media_type();
    let link = format!(
        "<{hub}>; rel=\"hub\", <{recent}>; rel=\"self\", \
         <{newest}>; rel=\"alternate\"; type=\"{media_type}\""
    );
    DocumentHeaders {
        version: version_in(archive.format, hex::encode(&digest.finalize()[..12])),
        cache_policy: CachePolicy::Brief,
        format: archive.format,
        link: (!hub.is_empty()).then_some(link),
        modified: (modified <= now - SETTLED && !may_have_lost_link).then_some(modified),
    }
}

/// Returns the version of a page, computed without reading its records. It differs from that of
/// every other page and every other state of this page.
fn version(archive: &Archive<'_>, held: &LocatedPage) -> String {
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
