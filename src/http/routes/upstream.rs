//! `/upstream/{token}`: the callback for the hubs and clouds that this gateway subscribes to (rule
//! P53).
//!
//! Each subscription has a token of its own. A request with an unknown token is answered with 410,
//! which ends subscriptions that are no longer needed.

use std::net::IpAddr;
use std::sync::Arc;

use http::{HeaderMap, StatusCode, header};
use warp::Filter;
use warp::filters::BoxedFilter;
use warp::reply::Response;

use crate::http::kit::client_address::{self, PeerAddr};
use crate::http::kit::endpoint::Endpoint;
use crate::http::kit::params;
use crate::http::kit::paths;
use crate::http::kit::rejection::unavailable;
use crate::http::kit::reply::{empty, plain_text, with_content_type};
use crate::http::kit::request::Request;
use crate::http::state::Gateway;
use crate::jobs::deliver::X_HOPS;
use crate::jobs::upstream::{UpstreamClient, UpstreamNotification};
use feedgate_core::resource::Resource;
use feedgate_core::store::StoreError;
use feedgate_core::upstream::Upstream;
use feedgate_protocol::Protocol;
use feedgate_protocol::form::Form;
use feedgate_protocol::xmlrpc::XmlRpcValue;
use feedgate_protocol::{soap, xmlrpc};

/// The body limit is large because hubs send whole documents.
const ENDPOINT: Endpoint =
    Endpoint { name: "upstream", methods: &["GET", "POST"], body_limit_bytes: 10 * 1024 * 1024 };

/// Returns the routes of this endpoint. A push with an unknown token, or one too many, is rejected before
/// its body is read.
pub(crate) fn routes(gateway: &Arc<Gateway>) -> BoxedFilter<(Response,)> {
    let token = paths::with_segment("upstream/{}");
    let shared = Arc::clone(gateway);
    let pushing = token
        .clone()
        .and(warp::post())
        .and(warp::header::headers_cloned())
        .and(warp::ext::optional::<PeerAddr>())
        .and_then(move |token: String, headers: HeaderMap, peer: Option<PeerAddr>| {
            let gateway = Arc::clone(&shared);
            async move {
                let client = (peer.map(|PeerAddr(peer)| peer.ip()), &headers);
                let pusher = find_pusher(&gateway, &token, client).await;
                pusher.map_err(warp::reject::custom)
            }
        })
        .boxed();
    let push = ENDPOINT.route_with_param(gateway, pushing, |_, request, pusher| async move {
        take_push(&request, pusher).await.unwrap_or_else(|err| unavailable(&err))
    });
    let verify =
        ENDPOINT.route_with_param(gateway, token, |gateway, request, token: String| async move {
            let Some(upstreams) = &gateway.upstreams else { return unknown_token() };
            if let Err(wait_s) =
                gateway.anonymous_rate_limit.admit_push(request.limited_as(), &token)
            {
                return too_many(wait_s);
            }
            verify_intent(upstreams, &request, &token).await.unwrap_or_else(|err| unavailable(&err))
        });
    push.recover(reject_push).unify().or(verify).unify().boxed()
}

/// The sender of a push, and the resource that it is about.
struct Pusher {
    upstreams: Arc<UpstreamClient>,
    upstream: Upstream,
    resource: Resource,
}

/// The reason why the body of a push is not read.
#[derive(Debug)]
enum RejectedPush {
    /// No subscription has this token.
    UnknownToken,
    /// The hub, or its network, has sent too many. Holds the seconds until it may send another.
    TooMany(u64),
    /// The store failed.
    Store(StoreError),
}

impl warp::reject::Reject for RejectedPush {}

async fn find_pusher(
    gateway: &Gateway,
    token: &str,
    (peer, headers): (Option<IpAddr>, &HeaderMap),
) -> Result<Pusher, RejectedPush> {
    let upstreams = gateway.upstreams.as_ref().ok_or(RejectedPush::UnknownToken)?;
    let client = client_address::find(peer, headers, &gateway.settings.trusted_proxies);
    let admitted = gateway.anonymous_rate_limit.admit_push(client.limited_as(), token);
    admitted.map_err(RejectedPush::TooMany)?;
    let known = upstreams.find(token).await.map_err(RejectedPush::Store)?;
    let (upstream, resource) = known.ok_or(RejectedPush::UnknownToken)?;
    Ok(Pusher { upstreams: Arc::clone(upstreams), upstream, resource })
}

async fn reject_push(rejection: warp::Rejection) -> Result<Response, warp::Rejection> {
    match rejection.find::<RejectedPush>() {
        Some(RejectedPush::UnknownToken) => Ok(unknown_token()),
        Some(RejectedPush::TooMany(wait_s)) => Ok(too_many(*wait_s)),
        Some(RejectedPush::Store(err)) => Ok(unavailable(err)),
        None => Err(rejection),
    }
}

/// Answers a hub or a cloud that verifies a subscription.
async fn verify_intent(
    upstreams: &UpstreamClient,
    request: &Request,
    token: &str,
) -> Result<Response, StoreError> {
    let known = upstreams.find(token).await?.map(|(upstream, _)| upstream);
    let query = params::read_query(request);
    match query.get("hub.mode") {
        Some(mode) => verify_websub(upstreams, known, mode, &query).await,
        None => Ok(verify_rsscloud(known.as_ref(), &query)),
    }
}

/// Answers a hub (WebSub `#hub-verifies-intent`).
async fn verify_websub(
    upstreams: &UpstreamClient,
    known: Option<Upstream>,
    mode: &str,
    query: &Form,
) -> Result<Response, StoreError> {
    let echo = || echo(query.get_verbatim("hub.challenge").unwrap_or_default());
    match (mode, known) {
        // A token that is no longer used confirms the unsubscription.
        ("unsubscribe", None) => Ok(echo()),
        ("subscribe", Some(upstream)) => {
            let topic = query.get_verbatim("hub.topic").unwrap_or_default().to_owned();
            let lease_s = query.get("hub.lease_seconds").and_then(|text| text.parse().ok());
            let agreed = upstreams.confirm(upstream, &topic, lease_s).await?;
            Ok(if agreed { echo() } else { not_requested() })
        }
        ("denied", Some(upstream)) => {
            upstreams.denied(upstream).await?;
            Ok(empty(StatusCode::OK))
        }
        _ => Ok(not_requested()),
    }
}

/// Answers a cloud: "the server … sends a GET request with url and challenge" (seed 000).
fn verify_rsscloud(known: Option<&Upstream>, query: &Form) -> Response {
    let Some(upstream) = known.filter(|upstream| upstream.offer.protocol.is_rsscloud()) else {
        return unknown_token();
    };
    match (query.get_verbatim("url"), query.get_verbatim("challenge")) {
        (Some(url), Some(challenge)) if url == upstream.offer.topic => echo(challenge),
        _ => not_requested(),
    }
}

/// Takes a push. The reply is in the words of the protocol.
async fn take_push(request: &Request, pusher: Pusher) -> Result<Response, StoreError> {
    let Pusher { upstreams, upstream, resource } = pusher;
    let content_type = request.headers.get(header::CONTENT_TYPE);
    let content_type =
        content_type.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
    let signature = request.header("x-hub-signature");
    let body = request.body.clone();
    let hops = request.header(X_HOPS.as_str()).trim().parse().unwrap_or_default();
    let notification = UpstreamNotification { signature, content_type, hops, body };
    upstreams.handle_notification(&upstream, &resource, notification).await?;
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

/// Returns the challenge as it was sent, as plain text: third-party content must not run in a
/// browser.
fn echo(challenge: &str) -> Response {
    with_content_type(StatusCode::OK, "text/plain; charset=utf-8", challenge.to_owned())
}

fn unknown_token() -> Response {
    plain_text(StatusCode::GONE, "This callback is no longer in use.")
}

/// Tells a hub to send a push again later: the hub keeps it until then.
fn too_many(wait_s: u64) -> Response {
    let text = format!("Too many notifications, please try again in {wait_s} s.");
    let mut response = plain_text(StatusCode::TOO_MANY_REQUESTS, &text);
    response.headers_mut().insert(header::RETRY_AFTER, wait_s.into());
    response
}

fn not_requested() -> Response {
    plain_text(StatusCode::NOT_FOUND, "This gateway did not request that.")
}
