//! `/upstream/{token}`: where hubs and clouds tell us of changes (rule P53).
//!
//! The token is what they were given when they were asked; who has none is told that
//! there is nobody (410), which ends subscriptions that nobody needs any more.

use std::sync::Arc;

use http::{StatusCode, header};
use warp::Filter;
use warp::filters::BoxedFilter;
use warp::reply::Response;

use crate::http::Gateway;
use crate::http::kit::exchange::{Asked, Door, empty, out_of_order, plain, with_type};
use crate::jobs::upstream::UpstreamClient;
use feedgate_core::ports::StoreError;
use feedgate_core::resource::Resource;
use feedgate_core::upstream::Upstream;
use feedgate_protocol::Protocol;
use feedgate_protocol::form::Form;
use feedgate_protocol::xmlrpc::Value;
use feedgate_protocol::{soap, xmlrpc};

/// A hub sends whole documents.
const DOOR: Door =
    Door { name: "upstream", methods: &["GET", "POST"], body_limit_bytes: 10 * 1024 * 1024 };

/// The routes of this door. Who pushes without a token of ours is sent away before the body
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
    let push = DOOR.open_with(gateway, pushing, |_, asked, pusher| async move {
        told(&asked, pusher).await.unwrap_or_else(|err| out_of_order(&err))
    });
    let ask = DOOR.open_with(gateway, token, |gateway, asked, token: String| async move {
        let Some(upstreams) = &gateway.upstreams else { return nobody() };
        asked_back(upstreams, &asked, &token).await.unwrap_or_else(|err| out_of_order(&err))
    });
    push.recover(sent_away).unify().or(ask).unify().boxed()
}

/// Who pushes, and for what.
type Pusher = (Arc<UpstreamClient>, Upstream, Resource);

/// Why a push is not read.
#[derive(Debug)]
enum Unread {
    /// Nobody was given this address.
    Nobody,
    /// The store failed.
    Broken(StoreError),
}

impl warp::reject::Reject for Unread {}

async fn pusher(gateway: &Gateway, token: &str) -> Result<Pusher, Unread> {
    let upstreams = gateway.upstreams.as_ref().ok_or(Unread::Nobody)?;
    let known = upstreams.known(token).await.map_err(Unread::Broken)?;
    let (upstream, resource) = known.ok_or(Unread::Nobody)?;
    Ok((Arc::clone(upstreams), upstream, resource))
}

async fn sent_away(rejection: warp::Rejection) -> Result<Response, warp::Rejection> {
    match rejection.find::<Unread>() {
        Some(Unread::Nobody) => Ok(nobody()),
        Some(Unread::Broken(err)) => Ok(out_of_order(err)),
        None => Err(rejection),
    }
}

/// A hub or a cloud asks whether we asked.
async fn asked_back(
    upstreams: &UpstreamClient,
    asked: &Asked,
    token: &str,
) -> Result<Response, StoreError> {
    let known = upstreams.known(token).await?.map(|(upstream, _)| upstream);
    let query = Form::from_urlencoded(asked.query.as_bytes()).unwrap_or_default();
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
    asked: &Asked,
    (upstreams, upstream, resource): Pusher,
) -> Result<Response, StoreError> {
    let content_type = asked.headers.get(header::CONTENT_TYPE);
    let content_type =
        content_type.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
    let signature = asked.header("x-hub-signature");
    let push = (signature, content_type, asked.body.clone());
    upstreams.told(&upstream, &resource, push).await?;
    Ok(match &upstream.offer.protocol {
        Protocol::XmlRpc { .. } => {
            let body = xmlrpc::response(&Value::Boolean(true));
            with_type(StatusCode::OK, "text/xml; charset=utf-8", body)
        }
        Protocol::Soap { .. } => {
            let version = soap::version(&asked.body);
            let body = soap::response(version, "rssCloudNotify", true);
            with_type(StatusCode::OK, version.content_type(), body)
        }
        Protocol::WebSub | Protocol::HttpPost => empty(StatusCode::OK),
    })
}

/// A challenge as it came. What a stranger made up must not run in a browser.
fn echo(challenge: &str) -> Response {
    with_type(StatusCode::OK, "text/plain; charset=utf-8", challenge.to_owned())
}

fn nobody() -> Response {
    plain(StatusCode::GONE, "Nobody is told at this address any more.")
}

fn nothing_asked() -> Response {
    plain(StatusCode::NOT_FOUND, "That was not asked for.")
}
