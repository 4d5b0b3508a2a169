//! `/v1/feeds`: the feeds that an account subscribes to, and what is stored of them. A feed is whatever
//! has a URL and is watched: also a page, a document or the log of a track.

use std::sync::Arc;

use http::StatusCode;
use serde_json::Value;
use tokio::task::yield_now;
use warp::Filter;
use warp::filters::BoxedFilter;
use warp::reply::Response;

use super::call::{RestCall, json_reply, to_response};
use super::paging::{MAX_LIMIT, PageRequest};
use super::{entry_view, feed_id, feed_view};
use crate::http::kit::endpoint::Endpoint;
use crate::http::kit::paths;
use crate::http::kit::rejection::Rejection;
use crate::http::kit::request::Request;
use crate::http::state::Gateway;
use feedgate_core::account::Scope;
use feedgate_core::query::{EntryFilter, EntryMatcher};
use feedgate_core::record::{Record, Seq};
use feedgate_core::resource::{Resource, ResourceId};
use feedgate_core::store::EntryRange;
use feedgate_core::topic::Topic;

const ENDPOINT: Endpoint =
    Endpoint { name: "v1_feeds", methods: &["GET"], body_limit_bytes: 1_024 };

/// The bytes of entries that end a page, which has at least one entry.
const MAX_BYTES: usize = 4 << 20;

/// Returns the routes of feeds.
pub(super) fn routes(gateway: &Arc<Gateway>) -> BoxedFilter<(Response,)> {
    let all = paths::exact("v1/feeds");
    let one = paths::with_segment("v1/feeds/{}");
    let entries = paths::with_segment("v1/feeds/{}/entries");
    ENDPOINT
        .route(gateway, all, |gateway, request| async move {
            to_response(&request, list(&gateway, &request).await)
        })
        .or(ENDPOINT.route_with_param(gateway, one, |gateway, request, id| async move {
            to_response(&request, show(&gateway, &request, &id).await)
        }))
        .unify()
        .or(ENDPOINT.route_with_param(gateway, entries, |gateway, request, id| async move {
            to_response(&request, list_entries(&gateway, &request, &id).await)
        }))
        .unify()
        .boxed()
}

/// Returns a page of the feeds that the account subscribes to, or the one with a URL.
async fn list(gateway: &Arc<Gateway>, request: &Request) -> Result<Response, Rejection> {
    let call = RestCall::begin(gateway, request, Scope::List, &["limit", "cursor", "url"]).await?;
    let page = PageRequest::from_call(&call, "feeds")?;
    if let Some(url) = call.query.get("url") {
        let found = find_by_url(&call, url).await?;
        let data = found.iter().map(|resource| feed_view::feed(&call, resource)).collect();
        return Ok(page.to_reply(&call, data, None::<i64>));
    }
    let (account, after) = (call.access.account, ResourceId(page.after_number()?));
    let charge = call.admit_rows(page.limit)?;
    let found = gateway.store.resources_of_account(account, after, page.limit).await;
    let found = found.map_err(|err| Rejection::unavailable(&err))?;
    charge.return_unread(found.resources.len());
    let data = found.resources.iter().map(|resource| feed_view::feed(&call, resource)).collect();
    Ok(page.to_reply(&call, data, found.next))
}

async fn find_by_url(call: &RestCall<'_>, url: &str) -> Result<Option<Resource>, Rejection> {
    let Ok(topic) = Topic::parse(url) else { return Ok(None) };
    let topic = call.gateway.subscribe.resolve(&topic, Some(call.access.account), None).await;
    let topic = topic.map_err(|err| Rejection::unavailable(&err))?;
    let found = call.gateway.store.find(topic.as_str()).await;
    match found.map_err(|err| Rejection::unavailable(&err))? {
        Some(resource) if may_read(call, &resource).await? => Ok(Some(resource)),
        _ => Ok(None),
    }
}

async fn show(gateway: &Arc<Gateway>, request: &Request, id: &str) -> Result<Response, Rejection> {
    let call = RestCall::begin(gateway, request, Scope::List, &[]).await?;
    let resource = find(&call, id).await?;
    Ok(json_reply(StatusCode::OK, &feed_view::feed(&call, &resource)))
}

/// Returns the feed with this id. One that the account may not read is answered as one that does not
/// exist (S37).
pub(super) async fn find(call: &RestCall<'_>, id: &str) -> Result<Resource, Rejection> {
    let not_found = || Rejection::new(StatusCode::NOT_FOUND, "There is no feed with this id.");
    let id = feed_id::parse(id).ok_or_else(not_found)?;
    let found = call.gateway.store.get(id).await.map_err(|err| Rejection::unavailable(&err))?;
    match found {
        Some(resource) if may_read(call, &resource).await? => Ok(resource),
        _ => Err(not_found()),
    }
}

/// Returns whether the account may read a feed: it is for everybody, or the account subscribes to it.
async fn may_read(call: &RestCall<'_>, resource: &Resource) -> Result<bool, Rejection> {
    if resource.is_readable() {
        return Ok(true);
    }
    let own = call.gateway.store.subscribed_by(call.access.account, &[resource.id]).await;
    Ok(!own.map_err(|err| Rejection::unavailable(&err))?.is_empty())
}

/// Returns a page of the entries of a feed, newest first, each in its current version.
async fn list_entries(
    gateway: &Arc<Gateway>,
    request: &Request,
    id: &str,
) -> Result<Response, Rejection> {
    let parameters = ["limit", "cursor", "filter"];
    let call = RestCall::begin(gateway, request, Scope::Retrieve, &parameters).await?;
    let page = PageRequest::from_call(&call, "entries")?;
    let before = page.parse_after(|text| text.parse().ok().map(Seq))?;
    let matcher = matcher(&call)?;
    let resource = find(&call, id).await?;
    let limit = if matcher.is_some() { MAX_LIMIT } else { page.limit };
    let charge = call.admit_rows(limit)?;
    let span = EntryRange { after: None, before, limit, max_bytes: Some(MAX_BYTES) };
    let read = gateway.store.read_current(resource.id, &span).await;
    let read = read.map_err(|err| Rejection::unavailable(&err))?;
    charge.return_unread(read.len());
    let is_cut = read.len() == limit || bytes(&read) >= MAX_BYTES;
    let (mut data, mut next): (Vec<Value>, _) = (Vec::new(), None);
    for (compared, record) in (1..).zip(&read) {
        if matcher.as_ref().is_none_or(|matcher| matcher.matches(&resource, record)) {
            data.push(entry_view::entry(&resource, record));
        }
        next = (compared < read.len() || is_cut).then_some(record.seq);
        if data.len() == page.limit {
            break;
        }
        // Reading an entry takes a fraction of a millisecond.
        yield_now().await;
    }
    Ok(page.to_reply(&call, data, next))
}

fn bytes(records: &[Record]) -> usize {
    records.iter().map(|record| record.atom.len()).sum()
}

/// Returns which entries are requested; `None`: all.
fn matcher(call: &RestCall<'_>) -> Result<Option<EntryMatcher>, Rejection> {
    let Some(text) = call.query.get("filter") else { return Ok(None) };
    let matcher = EntryFilter::parse(text).and_then(|filter| filter.matcher());
    matcher.map(Some).map_err(|reason| {
        let reason = format!("filter cannot be used: {reason}.");
        Rejection::unprocessable(reason).with_code("bad_query").with_field("filter")
    })
}
