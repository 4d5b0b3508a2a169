//! The hub: Superfeedr's API at `/` and `/hubbub`, the open WebSub hub at `/hub`.
//!
//! Both are told what to do by `hub.mode`. They differ where their specifications
//! contradict each other: `/` takes parameters from anywhere, asks for a token, and
//! verifies only if asked to; `/hub` takes forms, asks nobody who they are, and
//! verifies always.

pub(crate) mod account;
mod auth;
mod combined;
mod list;
pub(crate) mod publish;
mod retrieve;
mod search;
mod subscribe;

pub(crate) use account::broken;
pub(crate) use auth::{access, demand};

use crate::http::routes::websub;
use std::sync::Arc;

use http::StatusCode;
use warp::Filter;
use warp::filters::BoxedFilter;
use warp::reply::Response;

use crate::net::{FetchError, Purpose};
use feedgate_core::event::EventKind;
use feedgate_core::intent::IntentMode;
use feedgate_protocol::form::Form;

use crate::http::Gateway;
use crate::http::kit::exchange::{Door, with_type};
use crate::http::kit::rejected_requests::Heard;

/// Room for a topic and a callback of 2 kB each, percent-encoded three bytes to one,
/// and for publishers who name many topics at once.
const ACCOUNT: Door =
    Door { name: "account", methods: &["GET", "POST"], body_limit_bytes: 1 << 20 };
const OPEN: Door = Door { name: "hub", methods: &["POST"], body_limit_bytes: 64 * 1024 };

/// The routes of this door.
pub(crate) fn routes(gateway: &Arc<Gateway>) -> BoxedFilter<(Response,)> {
    let root = warp::path::end().or(warp::path!("hubbub")).unify().boxed();
    let hub = warp::path("hub").and(warp::path::end()).boxed();
    let account = ACCOUNT.open(gateway, root, |gateway, asked| async move {
        account::answer(&gateway, &asked).await
    });
    let open = OPEN
        .open(gateway, hub, |gateway, asked| async move { websub::answer(&gateway, &asked).await });
    account.or(open).unify().boxed()
}

/// What is told of a request to subscribe or unsubscribe that is refused here.
pub(crate) fn heard<'a>(form: &'a Form, mode: IntentMode, via: &'static str) -> Heard<'a> {
    let kind = match mode {
        IntentMode::Subscribe => EventKind::Subscribe,
        IntentMode::Unsubscribe => EventKind::Unsubscribe,
    };
    let text = |name| form.get(name).unwrap_or_default();
    Heard { kind, via, feed: text("hub.topic"), callback: text("hub.callback") }
}

/// Why no request is made to a topic or a callback, and what can be done about it.
pub(crate) fn forbidden(purpose: Purpose, why: &FetchError) -> String {
    let setting = match purpose {
        Purpose::Topic => "FEEDGATE_EGRESS_ALLOW_TOPIC_CIDRS",
        Purpose::Callback => "FEEDGATE_EGRESS_ALLOW_CALLBACK_CIDRS",
    };
    match why {
        FetchError::Forbidden { host } => {
            format!("{host} is not a public address; an operator can allow it with {setting}")
        }
        other => other.to_string(),
    }
}

/// What a browser sees that comes to the front door.
fn page(gateway: &Gateway) -> Response {
    let hub = gateway.address("hub");
    let text = format!(
        "feedgate: any feed in, one schema out, pushed to whoever asks.\n\
         \n\
         Subscribe a callback of yours to a feed (WebSub, open to all):\n\
         \n\
         curl {hub} -d hub.mode=subscribe \\\n\
         \x20    -d hub.topic=https://example.com/feed -d hub.callback=https://example.com/callback\n\
         \n\
         With an account, entries come as Atom or JSON with a status (Superfeedr's API):\n\
         \n\
         curl {} -u LOGIN:TOKEN -d hub.mode=subscribe -d format=json \\\n\
         \x20    -d hub.topic=https://example.com/feed -d hub.callback=https://example.com/callback\n\
         \n\
         Also here: rssCloud at {} and {},\n\
         pings at {}, what changed lately at {}.\n\
         \n\
         What was done lately, and why something failed: {}, for programs {}.\n{}",
        gateway.address(""),
        gateway.address("rsscloud/pleaseNotify"),
        gateway.address("rsscloud/ping"),
        gateway.address("RPC2"),
        gateway.address("changes.xml"),
        gateway.address("viewLog"),
        gateway.address("log.json"),
        if gateway.settings.shows_views { views(gateway) } else { String::new() },
    );
    with_type(StatusCode::OK, "text/plain; charset=utf-8", text)
}

/// Where it is told what is watched.
fn views(gateway: &Gateway) -> String {
    format!(
        "What is watched: {}, and by whom: {}.\nIn numbers: {}, for programs {}.\n",
        gateway.address("feeds.opml"),
        gateway.address("subscriptions.json"),
        gateway.address("stats"),
        gateway.address("stats.json"),
    )
}
