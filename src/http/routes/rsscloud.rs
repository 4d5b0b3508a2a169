//! rssCloud over REST: `pleaseNotify`, `ping` (seed 000) and `cancel`, under the paths of the
//! walkthrough and under those of the deployed servers. `cloud_aliases` adds the paths that the
//! operator lists.
//!
//! Replies are XML or JSON by `Accept`, which is checked before anything is done. A rejection
//! is a 200 with `success="false"`: that is the protocol, and its clients read nothing else.

pub(crate) mod aliases;
mod forms;
pub(crate) mod pings;
pub(crate) mod registration;
mod reply;

use std::sync::Arc;

use chrono::SecondsFormat;
use serde_json::json;
use url::Url;
use warp::Filter;
use warp::filters::BoxedFilter;
use warp::reply::Response;

use crate::http::kit::anonymous_access::Permission;
use crate::http::kit::endpoint::Endpoint;
use crate::http::kit::params::{self, BodyFormats};
use crate::http::kit::paths;
use crate::http::kit::permissions;
use crate::http::kit::rejected_request::RejectedRequest;
use crate::http::kit::rejection::Rejection;
use crate::http::kit::reply::with_method_help;
use crate::http::kit::request::Request;
use crate::http::routes::websub::parameters::{reject_callback_credentials, reject_filter};
use crate::http::state::Gateway;
use crate::jobs::runner;
use crate::subscriptions::cancellation::Cancelled;
use crate::subscriptions::registration::NotificationHandler;
use feedgate_core::event::EventKind;
use feedgate_core::ping::{Ping, PingSource};
use feedgate_protocol::form::Form;

use pings::{PINGED, ping_and_wait, waits_for_delivery};
use registration::{HandlerFields, REGISTERED, check_url_count, missing_parameters};
use registration::{admit_handler, admit_verifications, reject_refusal};
use reply::{RestReply, respond};

const ENDPOINT: Endpoint =
    Endpoint { name: "rsscloud", methods: &["POST"], body_limit_bytes: 100 * 1024 };

/// The sentence for a cancellation.
const CANCELLED: &str = "The subscription is cancelled. You will not be notified any more.";

/// The texts for people who open these addresses in a browser.
const HELP_REGISTER: &str = "To be notified when a resource changes, POST a form here with \
    port, path, protocol (http-post, https-post, xml-rpc or soap), url1, url2 and so on; \
    notifyProcedure for xml-rpc and soap; and domain, if notifications are to go elsewhere than \
    to the address you call from.";
const HELP_PING: &str = "To say that a resource has changed, POST a form here with its url. \
    With wait=1 the reply comes when its subscribers have been notified.";
const HELP_CANCEL: &str = "To stop notifications, POST a form here with path, url and, as far as \
    they were given in the registration, port, protocol and domain.";

/// Returns the routes of this endpoint.
pub(crate) fn routes(gateway: &Arc<Gateway>) -> BoxedFilter<(Response,)> {
    let register = paths::any_of(vec!["pleaseNotify", "rsscloud/pleaseNotify"]);
    let ping = paths::any_of(vec!["ping", "rsscloud/ping"]);
    let cancel = paths::any_of(vec!["cancel", "rsscloud/cancel"]);
    let register = ENDPOINT.route(gateway, register, handle_registration);
    let ping = ENDPOINT.route(gateway, ping, handle_ping);
    let cancel = ENDPOINT.route(gateway, cancel, handle_cancellation);
    let register = register.map(|reply| with_method_help(reply, HELP_REGISTER));
    let ping = ping.map(|reply| with_method_help(reply, HELP_PING));
    let cancel = cancel.map(|reply| with_method_help(reply, HELP_CANCEL));
    let forms = forms::routes(gateway);
    register.or(ping).unify().or(cancel).unify().or(forms).unify().boxed()
}

/// Answers a registration.
pub(crate) async fn handle_registration(gateway: Arc<Gateway>, request: Request) -> Response {
    respond(&request, "notifyResult", register(&gateway, &request)).await
}

/// Answers a ping.
pub(crate) async fn handle_ping(gateway: Arc<Gateway>, request: Request) -> Response {
    respond(&request, "result", ping(&gateway, &request)).await
}

/// Answers a cancellation.
pub(crate) async fn handle_cancellation(gateway: Arc<Gateway>, request: Request) -> Response {
    respond(&request, "cancelResult", cancel(&gateway, &request)).await
}

async fn register(gateway: &Gateway, request: &Request) -> Result<RestReply, Rejection> {
    let read = admit_registration(gateway, request).await;
    let (handler, urls) = record_if_rejected(gateway, request, EventKind::Subscribe, read)?;
    let spacing = gateway.settings.ping_spacing;
    let done = gateway.subscribe.register(&handler, &urls, spacing, runner::now()).await;
    let lease_until = done.map_err(|refusal| reject_refusal("subscription", &refusal))?;
    gateway.recent_registrants.remember(request);
    let mut reply = RestReply::from(REGISTERED);
    if gateway.settings.rsscloud_tell_expiry {
        let expires = lease_until.to_rfc3339_opts(SecondsFormat::Secs, true);
        reply.attributes.push(("expires", json!(expires)));
    }
    Ok(reply)
}

async fn ping(gateway: &Gateway, request: &Request) -> Result<RestReply, Rejection> {
    let read = admit_ping(gateway, request).await;
    let form = record_if_rejected(gateway, request, EventKind::Ping, read)?;
    let ping = Ping {
        at: runner::now(),
        source: PingSource::RssCloud,
        name: String::new(),
        url: form.get("url").unwrap_or_default().to_owned(),
        feed_url: None,
    };
    let mut reply = RestReply::from(PINGED);
    let urls = Vec::from_iter(Url::parse(&ping.url));
    let networks = permissions::caller_networks(gateway, request, &form, &urls).await?;
    if waits_for_delivery(gateway, &form) {
        let notified = ping_and_wait(gateway, &ping, networks).await;
        let notified = notified.map_err(|refusal| reject_refusal("ping", &refusal))?;
        // Clients that did not request it may compare the whole reply.
        if form.is_set("wait") || gateway.settings.rsscloud_tell_count {
            reply.attributes.push(("told", json!(notified)));
        }
        return Ok(reply);
    }
    let spacing = gateway.settings.ping_spacing;
    let done = gateway.subscribe.ping_readable(&ping, spacing, networks).await;
    done.map(|()| reply).map_err(|refusal| reject_refusal("ping", &refusal))
}

async fn cancel(gateway: &Gateway, request: &Request) -> Result<RestReply, Rejection> {
    let read = admit_cancellation(gateway, request).await;
    let (cancelled, urls) = record_if_rejected(gateway, request, EventKind::Unsubscribe, read)?;
    let done = gateway.subscribe.cancel(&cancelled, &urls).await;
    let done = done.map(|()| RestReply::from(CANCELLED));
    done.map_err(|refusal| reject_refusal("cancellation", &refusal))
}

async fn admit_ping(gateway: &Gateway, request: &Request) -> Result<Form, Rejection> {
    let form = read_form(request)?;
    require(&form, &["url"])?;
    permissions::check(gateway, request, &form, Permission::Pings).await?;
    gateway.anonymous_rate_limit.admit(request, 1)?;
    Ok(form)
}

async fn admit_cancellation(
    gateway: &Gateway,
    request: &Request,
) -> Result<(Cancelled, Vec<String>), Rejection> {
    let form = read_form(request)?;
    require(&form, &["path"])?;
    let urls = urls(&form);
    check_url_count(&urls)?;
    permissions::check(gateway, request, &form, Permission::RssCloud).await?;
    gateway.anonymous_rate_limit.admit(request, urls.len())?;
    let text = |name| form.get(name).map(str::to_owned);
    let cancelled = Cancelled {
        protocol: text("protocol"),
        domain: text("domain"),
        port: text("port"),
        path: text("path").unwrap_or_default(),
        // An address that others share says nothing about the client.
        caller: request.own_address(),
    };
    for callback in cancelled.callbacks() {
        admit_verifications(gateway, request, &urls, callback.as_str())?;
    }
    Ok((cancelled, urls))
}

fn read_form(request: &Request) -> Result<Form, Rejection> {
    params::read(request, BodyFormats::Lenient)
}

fn record_if_rejected<T>(
    gateway: &Gateway,
    request: &Request,
    kind: EventKind,
    read: Result<T, Rejection>,
) -> Result<T, Rejection> {
    let urls = read_form(request).map(|form| urls(&form)).unwrap_or_default();
    let feed = urls.first().map_or("", String::as_str);
    RejectedRequest::rsscloud(kind, feed).record_if_rejected(gateway, read)
}

async fn admit_registration(
    gateway: &Gateway,
    request: &Request,
) -> Result<(NotificationHandler, Vec<String>), Rejection> {
    let form = read_form(request)?;
    require(&form, &["port", "path", "protocol"])?;
    reject_filter(&form)?;
    reject_callback_credentials(&form)?;
    let text = |name| form.get(name).unwrap_or_default().to_owned();
    let fields = HandlerFields {
        procedure: text("notifyProcedure"),
        port: text("port"),
        path: text("path"),
        protocol: text("protocol"),
        domain: form.get("domain").map(str::to_owned),
    };
    let urls = urls(&form);
    Ok((admit_handler(gateway, request, &form, (fields, &urls)).await?, urls))
}

fn require(form: &Form, names: &[&str]) -> Result<(), Rejection> {
    let missing: Vec<&str> = names.iter().copied().filter(|name| !form.has(name)).collect();
    if missing.is_empty() { Ok(()) } else { Err(missing_parameters(&missing)) }
}

fn urls(form: &Form) -> Vec<String> {
    let urls = form.pairs().filter(|(name, value)| is_url_key(name) && !value.trim().is_empty());
    urls.map(|(_, value)| value.trim().to_owned()).collect()
}

/// Returns whether a key begins with `url`, as on the deployed servers: `url`, `url1`, `URL2` and
/// so on.
fn is_url_key(name: &str) -> bool {
    name.get(..3).is_some_and(|start| start.eq_ignore_ascii_case("url"))
}
