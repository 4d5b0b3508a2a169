//! `/v1/entries`: one stored entry, and the search in all that the account may read.

use std::sync::Arc;

use http::StatusCode;
use warp::Filter;
use warp::filters::BoxedFilter;
use warp::reply::Response;

use super::call::{RestCall, json_reply, to_response};
use super::paging::PageRequest;
use super::{entry_view, feeds};
use crate::http::kit::endpoint::Endpoint;
use crate::http::kit::paths;
use crate::http::kit::rejection::Rejection;
use crate::http::kit::request::Request;
use crate::http::routes::entry_finder::{self, EntrySpan};
use crate::http::state::Gateway;
use feedgate_core::account::Scope;
use feedgate_core::query::Query;
use feedgate_core::record::{Record, Seq};
use feedgate_core::search::{PossibleMatch, SearchPosition};
use feedgate_core::stored_entry::sourced;

const ENDPOINT: Endpoint =
    Endpoint { name: "v1_entries", methods: &["GET"], body_limit_bytes: 1_024 };

/// The most entries on a page of a search.
const MOST_FOUND: usize = 50;

/// Returns the routes of entries.
pub(super) fn routes(gateway: &Arc<Gateway>) -> BoxedFilter<(Response,)> {
    let all = paths::exact("v1/entries");
    let one = paths::with_segment("v1/entries/{}");
    ENDPOINT
        .route(gateway, all, |gateway, request| async move {
            to_response(&request, search(&gateway, &request).await)
        })
        .or(ENDPOINT.route_with_param(gateway, one, |gateway, request, id| async move {
            to_response(&request, show(&gateway, &request, &id).await)
        }))
        .unify()
        .boxed()
}

/// Returns a page of the entries that match a query, newest first.
async fn search(gateway: &Arc<Gateway>, request: &Request) -> Result<Response, Rejection> {
    let parameters = ["query", "limit", "cursor"];
    let call = RestCall::begin(gateway, request, Scope::Retrieve, &parameters).await?;
    let page = PageRequest::from_call(&call, "search")?;
    entry_finder::require_index(gateway)?;
    let text = call.query.get("query").unwrap_or_default();
    let query = Query::parse(text).map_err(|reason| {
        let reason = format!("query cannot be used: {reason}.");
        Rejection::unprocessable(reason).with_code("bad_query").with_field("query")
    })?;
    let span = EntrySpan { before: page.parse_after(SearchPosition::parse)?, after: None };
    let count = page.limit.min(MOST_FOUND);
    let found = entry_finder::find_entries(gateway, call.access.account, &query, span, count);
    let found = found.await?;
    let data = found.entries.iter().map(|found| {
        let PossibleMatch { resource, record, .. } = found;
        let atom = sourced(resource, &record.atom);
        entry_view::entry(resource, &Record { atom, ..record.clone() })
    });
    Ok(page.to_reply(&call, data.collect(), found.continues_before))
}

/// Returns the entry with this id, as it was received: an update has an id of its own.
async fn show(gateway: &Arc<Gateway>, request: &Request, id: &str) -> Result<Response, Rejection> {
    let call = RestCall::begin(gateway, request, Scope::Retrieve, &[]).await?;
    let not_found = || {
        let reason = "There is no entry with this id, or no longer.";
        Rejection::new(StatusCode::NOT_FOUND, reason)
    };
    let (feed, seq) = entry_view::parse_id(id).ok_or_else(not_found)?;
    let resource =
        feeds::find(&call, &feed.to_string()).await.map_err(|why| match why.status() {
            StatusCode::NOT_FOUND => not_found(),
            _ => why,
        })?;
    let read = gateway.store.read_after(resource.id, Seq((seq.0 - 1).max(0)), 1).await;
    let read = read.map_err(|err| Rejection::unavailable(&err))?;
    let record = read.into_iter().find(|record| record.seq == seq).ok_or_else(not_found)?;
    Ok(json_reply(StatusCode::OK, &entry_view::entry(&resource, &record)))
}
