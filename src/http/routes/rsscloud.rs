//! rssCloud over REST: `pleaseNotify`, `ping` (seed 000) and `cancel`, under the
//! walkthrough's paths, under those of the deployed servers, and wherever else the
//! operator's publishers say (`aliases`).
//!
//! Answers are XML or JSON by `Accept`, which is looked at before anything is done.
//! A refusal is a 200 with `success="false"`: that is the protocol, and its clients
//! read nothing else.

pub(crate) mod aliases;
mod answer;

use std::sync::Arc;

use chrono::SecondsFormat;
use serde_json::json;
use warp::Filter;
use warp::filters::BoxedFilter;
use warp::reply::Response;

use crate::http::Gateway;
use crate::http::kit::exchange::{Asked, Door, explained};
use crate::http::kit::params::{self, Bodies};
use crate::http::kit::rejected_requests::Heard;
use crate::jobs::runner;
use crate::subscriptions::Refusal;
use crate::subscriptions::cancellation::Cancelled;
use crate::subscriptions::registration::Handler;
use feedgate_core::event::EventKind;
use feedgate_core::ping::{Ping, PingSource};
use feedgate_protocol::Protocol;
use feedgate_protocol::form::Form;
use feedgate_protocol::xml::is_name;

use answer::{No, Said, answer, no};

pub(crate) use answer::sentence;

const DOOR: Door = Door { name: "rsscloud", methods: &["POST"], body_limit_bytes: 100 * 1024 };
/// The most resources of one registration (rule S26).
const MOST_URLS: usize = 100;

/// What a registration is answered that worked.
pub(crate) const REGISTERED: &str = "Thanks for the registration. It worked. When the resource \
    updates we'll notify you. Don't forget to re-register after 24 hours, your subscription will \
    expire in 25. Keep on truckin!";
/// What a ping is answered.
pub(crate) const PINGED: &str = "Thanks for the ping.";
/// What a cancellation is answered.
const CANCELLED: &str = "The subscription is cancelled. You will not be notified any more.";

/// What people are told who look at these addresses with a browser.
const HELP_REGISTER: &str = "To be notified when a resource changes, POST a form here with \
    port, path, protocol (http-post, https-post, xml-rpc or soap), url1, url2 and so on; \
    notifyProcedure for xml-rpc and soap; and domain, if notifications are to go elsewhere than \
    to the address you call from.";
const HELP_PING: &str = "To say that a resource has changed, POST a form here with its url. \
    With wait=1 the answer comes when its subscribers have been told.";
const HELP_CANCEL: &str = "To be notified no more, POST a form here with path, url and, as far as \
    they were given when registering, port, protocol and domain.";

/// The routes of this door.
pub(crate) fn routes(gateway: &Arc<Gateway>) -> BoxedFilter<(Response,)> {
    let register = warp::path!("pleaseNotify").or(warp::path!("rsscloud" / "pleaseNotify"));
    let ping = warp::path!("ping").or(warp::path!("rsscloud" / "ping"));
    let cancel = warp::path!("cancel").or(warp::path!("rsscloud" / "cancel"));
    let register = DOOR.open(gateway, register.unify().boxed(), registered);
    let ping = DOOR.open(gateway, ping.unify().boxed(), pinged);
    let cancel = DOOR.open(gateway, cancel.unify().boxed(), cancelled);
    let register = register.map(|reply| explained(reply, HELP_REGISTER));
    let ping = ping.map(|reply| explained(reply, HELP_PING));
    let cancel = cancel.map(|reply| explained(reply, HELP_CANCEL));
    register.or(ping).unify().or(cancel).unify().boxed()
}

/// Answers a registration.
pub(crate) async fn registered(gateway: Arc<Gateway>, asked: Asked) -> Response {
    answer(&asked, "notifyResult", please_notify(&gateway, &asked)).await
}

/// Answers a ping.
pub(crate) async fn pinged(gateway: Arc<Gateway>, asked: Asked) -> Response {
    answer(&asked, "result", take_ping(&gateway, &asked)).await
}

/// Answers a cancellation.
pub(crate) async fn cancelled(gateway: Arc<Gateway>, asked: Asked) -> Response {
    answer(&asked, "cancelResult", cancel(&gateway, &asked)).await
}

async fn please_notify(gateway: &Gateway, asked: &Asked) -> Result<Said, No> {
    let read = form(asked).and_then(|form| {
        let (handler, urls) = registration(&form, asked)?;
        gateway.strangers.admit(asked, urls.len())?;
        Ok((handler, urls))
    });
    let (handler, urls) = heard(gateway, asked, EventKind::Subscribe, read)?;
    let when = (gateway.settings.ping_spacing, runner::now());
    let done = gateway.subscribe.register(&handler, &urls, when).await;
    let lease_until = done.map_err(|refusal| no("subscription", &refusal))?;
    let mut said = Said::from(REGISTERED);
    if gateway.settings.tells_expiry {
        let expires = lease_until.to_rfc3339_opts(SecondsFormat::Secs, true);
        said.further.push(("expires", json!(expires)));
    }
    Ok(said)
}

fn form(asked: &Asked) -> Result<Form, No> {
    params::read(asked, Bodies::Sloppy).map_err(|refused| No::Reply(Box::new(refused.reply())))
}

/// Passes on what could be read of a request, and tells if that is nothing.
fn heard<T>(
    gateway: &Gateway,
    asked: &Asked,
    kind: EventKind,
    read: Result<T, No>,
) -> Result<T, No> {
    let urls = form(asked).map(|form| urls(&form)).unwrap_or_default();
    let feed = urls.first().map_or("", String::as_str);
    Heard { kind, via: PingSource::RssCloud.as_str(), feed, callback: "" }.tell(gateway, read)
}

fn registration(form: &Form, asked: &Asked) -> Result<(Handler, Vec<String>), String> {
    require(form, &["port", "path", "protocol"])?;
    let text = |name| form.get(name).unwrap_or_default().to_owned();
    let named = Named {
        procedure: text("notifyProcedure"),
        port: text("port"),
        path: text("path"),
        protocol: text("protocol"),
        domain: form.get("domain").map(str::to_owned),
    };
    handler(named, urls(form), asked)
}

fn urls(form: &Form) -> Vec<String> {
    let urls = form.pairs().filter(|(name, value)| is_url_key(name) && !value.trim().is_empty());
    urls.map(|(_, value)| value.trim().to_owned()).collect()
}

/// A registration as any of the interfaces got it.
pub(crate) struct Named {
    pub(crate) procedure: String,
    pub(crate) port: String,
    pub(crate) path: String,
    pub(crate) protocol: String,
    pub(crate) domain: Option<String>,
}

/// Checks what can be checked without asking anybody. The error is the protocol's
/// sentence.
pub(crate) fn handler(
    named: Named,
    urls: Vec<String>,
    asked: &Asked,
) -> Result<(Handler, Vec<String>), String> {
    let procedure = named.procedure;
    let (tls, protocol) = match named.protocol.as_str() {
        "http-post" => (false, Protocol::HttpPost),
        "https-post" => (true, Protocol::HttpPost),
        "xml-rpc" => (false, Protocol::XmlRpc { procedure }),
        "soap" => (false, Protocol::Soap { procedure }),
        other => {
            return Err(format!(
                "Can't accept the subscription because the protocol, <i>{other}</i>, is \
                 unsupported."
            ));
        }
    };
    match &protocol {
        Protocol::XmlRpc { procedure } | Protocol::Soap { procedure } if procedure.is_empty() => {
            return Err(missing(&["notifyProcedure"]));
        }
        Protocol::Soap { procedure } if !is_name(procedure) => {
            return Err(format!(
                "Can't accept the subscription because {procedure} cannot be the name of a SOAP \
                 procedure."
            ));
        }
        _ => {}
    }
    check_number(&urls)?;
    let domain = named.domain.filter(|domain| !domain.trim().is_empty());
    let (port, path) = (named.port, named.path);
    Ok((Handler { tls, protocol, domain, port, path, caller: asked.client }, urls))
}

fn check_number(urls: &[String]) -> Result<(), String> {
    match urls.len() {
        0 => Err("No resources specified.".to_owned()),
        1..=MOST_URLS => Ok(()),
        _ => Err(format!("Can't accept more than {MOST_URLS} resources at once.")),
    }
}

async fn take_ping(gateway: &Gateway, asked: &Asked) -> Result<Said, No> {
    let read = form(asked).and_then(|form| {
        require(&form, &["url"])?;
        gateway.strangers.admit(asked, 1)?;
        Ok(form)
    });
    let form = heard(gateway, asked, EventKind::Ping, read)?;
    let ping = Ping {
        at: runner::now(),
        source: PingSource::RssCloud,
        name: String::new(),
        url: form.get("url").unwrap_or_default().to_owned(),
        feed_url: None,
    };
    let mut said = Said::from(PINGED);
    if waits(gateway, &form) {
        let told = tell_all(gateway, &ping).await.map_err(|refusal| no("ping", &refusal))?;
        said.further.push(("told", json!(told)));
        return Ok(said);
    }
    let done = gateway.subscribe.ping_readable(&ping, gateway.settings.ping_spacing).await;
    done.map(|()| said).map_err(|refusal| no("ping", &refusal))
}

/// Whether whoever pings wants the answer when all have been told, or is given it then by
/// the operator's will.
pub(crate) fn waits(gateway: &Gateway, form: &Form) -> bool {
    if form.has("wait") { form.is_set("wait") } else { gateway.settings.ping_waits }
}

/// Takes a ping and waits, within bounds, until the subscribers have been told; returns how
/// many were.
pub(crate) async fn tell_all(gateway: &Gateway, ping: &Ping) -> Result<u64, Refusal> {
    let settings = &gateway.settings;
    gateway.subscribe.ping_and_wait(ping, settings.ping_spacing, settings.ping_wait).await
}

async fn cancel(gateway: &Gateway, asked: &Asked) -> Result<Said, No> {
    let read = form(asked).and_then(|form| {
        require(&form, &["path"])?;
        let urls = urls(&form);
        check_number(&urls)?;
        gateway.strangers.admit(asked, urls.len())?;
        Ok((form, urls))
    });
    let (form, urls) = heard(gateway, asked, EventKind::Unsubscribe, read)?;
    let text = |name| form.get(name).map(str::to_owned);
    let cancelled = Cancelled {
        protocol: text("protocol"),
        domain: text("domain"),
        port: text("port"),
        path: text("path").unwrap_or_default(),
        // Who comes through a proxy of somebody's has not shown where it comes from.
        caller: asked.client.filter(|_| !asked.is_hidden),
    };
    let done = gateway.subscribe.cancel(&cancelled, &urls).await;
    done.map(|()| Said::from(CANCELLED)).map_err(|refusal| no("cancellation", &refusal))
}

fn require(form: &Form, names: &[&str]) -> Result<(), String> {
    let lacking: Vec<&str> = names.iter().copied().filter(|name| !form.has(name)).collect();
    if lacking.is_empty() { Ok(()) } else { Err(missing(&lacking)) }
}

fn missing(names: &[&str]) -> String {
    format!("The following parameters were missing from the request body: {}.", names.join(", "))
}

/// `url`, `url1`, `URL2` …: every key that begins so is taken, as by the deployed
/// servers.
fn is_url_key(name: &str) -> bool {
    name.get(..3).is_some_and(|start| start.eq_ignore_ascii_case("url"))
}
