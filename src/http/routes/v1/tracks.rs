//! `/v1/tracks`: queries over the entries of all feeds, to which an account subscribes. The log of a track
//! is a feed (`feeds`).

use std::sync::Arc;

use futures_util::FutureExt;
use http::{Method, StatusCode};
use serde::Serialize;
use serde_json::Value;
use warp::Filter;
use warp::filters::BoxedFilter;
use warp::reply::Response;

use super::call::{RestCall, json_reply, to_response};
use super::feed_id;
use super::idempotency;
use super::json_body::JsonBody;
use super::paging::PageRequest;
use super::refusal::reject_refusal;
use super::subscriptions::create;
use crate::http::kit::endpoint::Endpoint;
use crate::http::kit::paths;
use crate::http::kit::rejection::Rejection;
use crate::http::kit::reply::empty;
use crate::http::kit::request::Request;
use crate::http::state::Gateway;
use crate::jobs::runner;
use crate::subscriptions::{FirstFetchWait, RequestTerms, Verification};
use feedgate_core::account::Scope;
use feedgate_core::intent::{Intent, IntentMode};
use feedgate_core::query::{Query, QueryError};
use feedgate_core::resource::{Resource, ResourceId, ResourceKind};
use feedgate_core::store::SubscriptionRange;
use feedgate_core::track::Track;

const ALL: Endpoint =
    Endpoint { name: "v1_tracks", methods: &["GET", "POST"], body_limit_bytes: 64 << 10 };
const ONE: Endpoint =
    Endpoint { name: "v1_tracks", methods: &["GET", "DELETE"], body_limit_bytes: 1_024 };

/// The subscriptions of one track that are ended together.
const BATCH: usize = 100;

/// Returns the routes of tracks.
pub(super) fn routes(gateway: &Arc<Gateway>) -> BoxedFilter<(Response,)> {
    let all = paths::exact("v1/tracks");
    let one = paths::with_segment("v1/tracks/{}");
    ALL.route(gateway, all, |gateway, request| async move {
        match request.method {
            Method::POST => open(gateway, request).await,
            _ => to_response(&request, list(&gateway, &request).await),
        }
    })
    .or(ONE.route_with_param(gateway, one, |gateway, request, id| async move {
        let result = match request.method {
            Method::DELETE => end(&gateway, &request, &id).await,
            _ => show(&gateway, &request, &id).await,
        };
        to_response(&request, result)
    }))
    .unify()
    .boxed()
}

/// A track.
#[derive(Serialize)]
struct TrackView<'t> {
    id: String,
    query: String,
    url: &'t str,
    title: &'t str,
    entries: i64,
}

/// Returns the track whose log is `resource`; `None` if it is not that of a track.
fn describe(gateway: &Gateway, resource: &Resource) -> Option<Value> {
    if resource.kind != ResourceKind::Collection {
        return None;
    }
    let track = Track::from_topic(&gateway.settings.public_url, &resource.topic)?.ok()?;
    let displayed = TrackView {
        id: resource.id.to_string(),
        query: track.query.to_string(),
        url: track.topic.as_str(),
        title: &resource.status.title,
        entries: resource.head.0,
    };
    Some(serde_json::to_value(displayed).expect("a track is a struct of plain values"))
}

/// Subscribes to the track of a query, and opens it if that is necessary.
async fn open(gateway: Arc<Gateway>, request: Request) -> Response {
    idempotency::once(gateway, request, Scope::Subscribe, |call| open_once(call).boxed()).await
}

async fn open_once(call: &RestCall<'_>) -> Result<Response, Rejection> {
    let body = JsonBody::read(call.request, &create::fields("query"))?;
    let reject = |reason: QueryError| {
        let reason = format!("query cannot be used: {reason}.");
        Rejection::unprocessable(reason).with_code("bad_query").with_field("query")
    };
    let query = Query::parse(body.required_text("query")?).map_err(reject)?;
    let track = Track::new(&call.gateway.settings.public_url, query).map_err(reject)?;
    let requested = create::subscription_request(call, &body, track.topic)?;
    create::subscribe(call, &body, requested).await
}

/// Returns a page of the tracks that the account subscribes to. Its other feeds are read as well, so that
/// a page may be short although more follow.
async fn list(gateway: &Arc<Gateway>, request: &Request) -> Result<Response, Rejection> {
    let call = RestCall::begin(gateway, request, Scope::List, &["limit", "cursor"]).await?;
    let page = PageRequest::from_call(&call, "tracks")?;
    let after = ResourceId(page.after_number()?);
    let charge = call.admit_rows(page.limit)?;
    let found = gateway.store.resources_of_account(call.access.account, after, page.limit).await;
    let found = found.map_err(|err| Rejection::unavailable(&err))?;
    charge.return_unread(found.resources.len());
    let data = found.resources.iter().filter_map(|resource| describe(gateway, resource));
    Ok(page.to_reply(&call, data.collect(), found.next))
}

/// Returns the log of the track with this id, which the account subscribes to, and the track in JSON.
async fn find(call: &RestCall<'_>, id: &str) -> Result<(Resource, Value), Rejection> {
    let not_found = || Rejection::new(StatusCode::NOT_FOUND, "There is no track with this id.");
    let (store, account) = (&call.gateway.store, call.access.account);
    let unavailable = |err| Rejection::unavailable(&err);
    let id = feed_id::parse(id).ok_or_else(not_found)?;
    let resource = store.get(id).await.map_err(unavailable)?.ok_or_else(not_found)?;
    let own = store.subscribed_by(account, &[resource.id]).await.map_err(unavailable)?;
    let displayed = describe(call.gateway, &resource).filter(|_| !own.is_empty());
    Ok((resource, displayed.ok_or_else(not_found)?))
}

async fn show(gateway: &Arc<Gateway>, request: &Request, id: &str) -> Result<Response, Rejection> {
    let call = RestCall::begin(gateway, request, Scope::List, &[]).await?;
    Ok(json_reply(StatusCode::OK, &find(&call, id).await?.1))
}

/// Ends all subscriptions of the account to a track.
async fn end(gateway: &Arc<Gateway>, request: &Request, id: &str) -> Result<Response, Rejection> {
    let call = RestCall::begin(gateway, request, Scope::Unsubscribe, &[]).await?;
    let (resource, _) = find(&call, id).await?;
    let (account, resource) = (call.access.account, Some(resource.id));
    let mut after = 0;
    loop {
        let range = SubscriptionRange { account, resource, after, limit: BATCH };
        let held = gateway.store.list_range(range).await;
        let held = held.map_err(|err| Rejection::unavailable(&err))?;
        if held.is_empty() {
            return Ok(empty(StatusCode::NO_CONTENT));
        }
        for listed in held {
            after = listed.subscription.id.number;
            let intent = Intent::new(IntentMode::Unsubscribe, listed.subscription.to_request());
            let terms = RequestTerms::of_account(Verification::None, FirstFetchWait::Moment);
            let ended = gateway.subscribe.carry_out(&intent, terms, runner::now()).await;
            ended.map_err(reject_refusal)?;
        }
    }
}
