//! The hub: Superfeedr's API at `/` and `/hubbub`, the open WebSub hub at `/hub`.
//!
//! Both are told what to do by `hub.mode`. They differ where their specifications
//! contradict each other: `/` takes parameters from anywhere, asks for a token, and
//! verifies only if asked to; `/hub` takes forms, asks nobody who they are, and
//! verifies always.

mod account;
mod auth;
mod combined;
mod jsonp;
mod list;
mod offers;
mod open;
mod publish;
mod retrieve;
mod search;
mod subscribe;

pub(super) use account::broken;
pub(super) use auth::{access, demand};

use std::sync::Arc;

use http::StatusCode;
use warp::Filter;
use warp::filters::BoxedFilter;
use warp::reply::Response;

use crate::domain::event::Kind;
use crate::domain::intent::Mode;
use crate::fetch::{FetchError, Purpose};
use crate::wire::form::Form;

use super::Gateway;
use super::exchange::{Door, with_type};
use super::heard::Heard;

/// Room for a topic and a callback of 2 kB each, percent-encoded three bytes to one,
/// and for publishers who name many topics at once.
const ACCOUNT: Door =
    Door { name: "account", methods: &["GET", "POST"], body_limit_bytes: 1 << 20 };
const OPEN: Door = Door { name: "hub", methods: &["POST"], body_limit_bytes: 64 * 1024 };

/// The routes of this door.
pub(super) fn routes(gateway: &Arc<Gateway>) -> BoxedFilter<(Response,)> {
    let root = warp::path::end().or(warp::path!("hubbub")).unify().boxed();
    let hub = warp::path("hub").and(warp::path::end()).boxed();
    let account = ACCOUNT.open(gateway, root, |gateway, asked| async move {
        account::answer(&gateway, &asked).await
    });
    let open = OPEN
        .open(gateway, hub, |gateway, asked| async move { open::answer(&gateway, &asked).await });
    account.or(open).unify().boxed()
}

/// What is told of a request to subscribe or unsubscribe that is refused here.
fn heard<'a>(form: &'a Form, mode: Mode, via: &'static str) -> Heard<'a> {
    let kind = match mode {
        Mode::Subscribe => Kind::Subscribe,
        Mode::Unsubscribe => Kind::Unsubscribe,
    };
    let text = |name| form.get(name).unwrap_or_default();
    Heard { kind, via, feed: text("hub.topic"), callback: text("hub.callback") }
}

/// Why no request is made to a topic or a callback, and what can be done about it.
fn forbidden(purpose: Purpose, why: &FetchError) -> String {
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
