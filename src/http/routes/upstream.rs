//! `/upstream/{token}`: where hubs and clouds tell us of changes (P53).
//!
//! The token is what they were given when they were asked; who has none is told that
//! there is nobody (410), which ends subscriptions that nobody needs any more.

use std::sync::Arc;

use http::{StatusCode, header};
use warp::Filter;
use warp::filters::BoxedFilter;
use warp::reply::Response;

use crate::http::kit::endpoint::Endpoint;
use crate::http::kit::params;
use crate::http::kit::rejection::unavailable;
use crate::http::kit::reply::{empty, plain_text, with_content_type};
use crate::http::kit::request::Request;
use crate::http::state::Gateway;
use crate::jobs::upstream::UpstreamClient;
use feedgate_core::ports::StoreError;
use feedgate_core::resource::Resource;
use feedgate_core::upstream::Upstream;
use feedgate_protocol::Protocol;
use feedgate_protocol::form::Form;
use feedgate_protocol::xmlrpc::XmlRpcValue;
use feedgate_protocol::{soap, xmlrpc};

/// A hub sends whole documents.
const ENDPOINT: Endpoint =
    Endpoint { name: "upstream", methods: &["GET", "POST"], body_limit_bytes: 10 * 1024 * 1024 };

/// The routes of this endpoint. Who pushes without a token of ours is sent away before the body
/// is read.
pub(crate) fn routes(gateway: &Arc<Gateway>) -> BoxedFilter<(Response,)> {
    let token = warp::path!("upstream" / String).boxed();
    let held = Arc::clone(gateway);
    let pushing = token
        .clone()
        .and(warp::post())
        .and_then(move |token: String| {
            let gateway = Arc::clone(&held);
            async move { pusher(&gateway, &token).await.map_err(warp::reject::custom) }
        })
        .boxed();
    let push = ENDPOINT.route_with_param(gateway, pushing, |_, request, pusher| async move {
        told(&request, pusher).await.unwrap_or_else(|err| unavailable(&err))
    });
    let ask =
        ENDPOINT.route_with_param(gateway, token, |gateway, request, token: String| async move {
            let Some(upstreams) = &gateway.upstreams else { return nobody() };
            asked_back(upstreams, &request, &token).await.unwrap_or_else(|err| unavailable(&err))
        });
    push.recover(sent_away).unify().or(ask).unify().boxed()
}

/// Who pushes, and for what.
type Pusher = (Arc<UpstreamClient>, Upstream, Resource);

/// Why a push is not read.
#[derive(Debug)]
enum UnreadBody {
    /// Nobody was given this address.
    Nobody,
    /// The store failed.
    Broken(StoreError),
}

impl warp::reject::Reject for UnreadBody {}

async fn pusher(gateway: &Gateway, token: &str) -> Result<Pusher, UnreadBody> {
    let upstreams = gateway.upstreams.as_ref().ok_or(UnreadBody::Nobody)?;
    let known = upstreams.known(token).await.map_err(UnreadBody::Broken)?;
    let (upstream, resource) = known.ok_or(UnreadBody::Nobody)?;
    Ok((Arc::clone(upstreams), upstream, resource))
}

async fn sent_away(rejection: warp::Rejection) -> Result<Response, warp::Rejection> {
    match rejection.find::<UnreadBody>() {
        Some(UnreadBody::Nobody) => Ok(nobody()),
        Some(UnreadBody::Broken(err)) => Ok(unavailable(err)),
        None => Err(rejection),
    }
}

/// A hub or a cloud asks whether we asked.
async fn asked_back(
    upstreams: &UpstreamClient,
    request: &Request,
    token: &str,
) -> Result<Response, StoreError> {
    let known = upstreams.known(token).await?.map(|(upstream, _)| upstream);
    let query = params::read_query(request);
    match query.get("hub.mode") {
        Some(mode) => intent(upstreams, known, mode, &query).await,
        None => Ok(challenge(known.as_ref(), &query)),
    }
}

/// WebSub `#hub-verifies-intent`.
async fn intent(
    upstreams: &UpstreamClient,
    known: Option<Upstream>,
    mode: &str,
    query: &Form,
) -> Result<Response, StoreError> {
    let echo = || echo(query.get_verbatim("hub.challenge").unwrap_or_default());
    match (mode, known) {
        // An address that nobody uses agrees to be left.
        ("unsubscribe", None) => Ok(echo()),
        ("subscribe", Some(upstream)) => {
            let topic = query.get_verbatim("hub.topic").unwrap_or_default().to_owned();
            let lease_s = query.get("hub.lease_seconds").and_then(|text| text.parse().ok());
            let agreed = upstreams.agree(upstream, &topic, lease_s).await?;
            Ok(if agreed { echo() } else { nothing_asked() })
        }
        ("denied", Some(upstream)) => {
            upstreams.denied(upstream).await?;
            Ok(empty(StatusCode::OK))
        }
        _ => Ok(nothing_asked()),
    }
}

/// rssCloud's verification: "the server … sends a GET request with url and challenge"
/// (seed 000).
fn challenge(known: Option<&Upstream>, query: &Form) -> Response {
    let Some(upstream) = known.filter(|held| held.offer.protocol.is_rsscloud()) else {
        return nobody();
    };
    match (query.get_verbatim("url"), query.get_verbatim("challenge")) {
        (Some(url), Some(challenge)) if url == upstream.offer.topic => echo(challenge),
        _ => nothing_asked(),
    }
}

/// Something changed. The answer is in the words of the protocol.
async fn told(
    request: &Request,
    (upstreams, upstream, resource): Pusher,
) -> Result<Response, StoreError> {
    let content_type = request.headers.get(header::CONTENT_TYPE);
    let content_type =
        content_type.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
    let signature = request.header("x-hub-signature");
    let push = (signature, content_type, request.body.clone());
    upstreams.told(&upstream, &resource, push).await?;
    Ok(match &upstream.offer.protocol {
        Protocol::XmlRpc { .. } => {
            let body = xmlrpc::response(&XmlRpcValue::Boolean(true));
            with_content_type(StatusCode::OK, "text/xml; charset=utf-8", body)
        }
        Protocol::Soap { .. } => {
            let version = soap::version(&request.body);
            let body = soap::response(version, "rssCloudNotify", true);
            with_content_type(StatusCode::OK, version.content_type(), body)
        }
        Protocol::WebSub | Protocol::HttpPost => empty(StatusCode::OK),
    })
}

/// A challenge as it came. What a stranger made up must not run in a browser.
fn echo(challenge: &str) -> Response {
    with_content_type(StatusCode::OK, "text/plain; charset=utf-8", challenge.to_owned())
}

fn nobody() -> Response {
    plain_text(StatusCode::GONE, "Nobody is told at this address any more.")
}

fn nothing_asked() -> Response {
    plain_text(StatusCode::NOT_FOUND, "That was not asked for.")
}
