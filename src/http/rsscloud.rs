//! rssCloud over REST: `pleaseNotify` and `ping` (seed 000), under the walkthrough's
//! paths and under those of the deployed servers.
//!
//! Answers are XML or JSON by `Accept`, which is looked at before anything is done.
//! A refusal is a 200 with `success="false"`: that is the protocol, and its clients
//! read nothing else. The sentences are the deployed servers' to the letter, because
//! clients show and compare them.

use std::sync::Arc;

use http::StatusCode;
use warp::Filter;
use warp::filters::BoxedFilter;
use warp::reply::Response;

use super::Gateway;
use super::exchange::{Asked, Door, out_of_order, with_type};
use super::params::{self, Bodies};
use super::strangers::TooMuch;
use crate::domain::ping::{Ping, Source};
use crate::domain::subscription::Protocol;
use crate::subscribe::Refusal;
use crate::subscribe::registration::Handler;
use crate::wire::form::Form;
use crate::wire::xml::{escaped, is_name};
use crate::worker;

const DOOR: Door = Door { name: "rsscloud", methods: &["POST"], body_limit_bytes: 100 * 1024 };
/// The most resources of one registration (rule S26).
const MOST_URLS: usize = 100;

/// What a registration is answered that worked.
pub(super) const REGISTERED: &str = "Thanks for the registration. It worked. When the resource \
    updates we'll notify you. Don't forget to re-register after 24 hours, your subscription will \
    expire in 25. Keep on truckin!";
/// What a ping is answered.
pub(super) const PINGED: &str = "Thanks for the ping.";

/// The routes of this door.
pub(super) fn routes(gateway: &Arc<Gateway>) -> BoxedFilter<(Response,)> {
    let register = warp::path!("pleaseNotify").or(warp::path!("rsscloud" / "pleaseNotify"));
    let ping = warp::path!("ping").or(warp::path!("rsscloud" / "ping"));
    let register = DOOR.open(gateway, register.unify().boxed(), |gateway, asked| async move {
        answer(&asked, "notifyResult", please_notify(&gateway, &asked)).await
    });
    let ping = DOOR.open(gateway, ping.unify().boxed(), |gateway, asked| async move {
        answer(&asked, "result", take_ping(&gateway, &asked)).await
    });
    register.or(ping).unify().boxed()
}

/// Why a request did not succeed.
enum No {
    /// In the protocol's words.
    Because(String),
    /// Otherwise.
    Reply(Response),
}

impl From<String> for No {
    fn from(why: String) -> No {
        No::Because(why)
    }
}

impl From<TooMuch> for No {
    fn from(much: TooMuch) -> No {
        No::Because(much.sentence())
    }
}

async fn please_notify(gateway: &Gateway, asked: &Asked) -> Result<&'static str, No> {
    let form = params::read(asked, Bodies::Sloppy).map_err(|refused| No::Reply(refused.reply()))?;
    let (handler, urls) = registration(&form, asked)?;
    gateway.strangers.admit(asked, urls.len())?;
    let done = gateway.subscribe.register(&handler, &urls, worker::now()).await;
    done.map(|()| REGISTERED).map_err(|refusal| no("subscription", &refusal))
}

fn registration(form: &Form, asked: &Asked) -> Result<(Handler, Vec<String>), String> {
    require(form, &["port", "path", "protocol"])?;
    let text = |name| form.get(name).unwrap_or_default().to_owned();
    let urls: Vec<String> = form
        .pairs()
        .filter(|(name, value)| is_url_key(name) && !value.trim().is_empty())
        .map(|(_, value)| value.trim().to_owned())
        .collect();
    let named = Named {
        procedure: text("notifyProcedure"),
        port: text("port"),
        path: text("path"),
        protocol: text("protocol"),
        domain: form.get("domain").map(str::to_owned),
    };
    handler(named, urls, asked)
}

/// A registration as any of the interfaces got it.
pub(super) struct Named {
    pub(super) procedure: String,
    pub(super) port: String,
    pub(super) path: String,
    pub(super) protocol: String,
    pub(super) domain: Option<String>,
}

/// Checks what can be checked without asking anybody. The error is the protocol's
/// sentence.
pub(super) fn handler(
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
    if urls.is_empty() {
        return Err("No resources specified.".to_owned());
    }
    if urls.len() > MOST_URLS {
        return Err(format!("Can't accept more than {MOST_URLS} resources at once."));
    }
    let domain = named.domain.filter(|domain| !domain.trim().is_empty());
    let (port, path) = (named.port, named.path);
    Ok((Handler { tls, protocol, domain, port, path, caller: asked.client }, urls))
}

async fn take_ping(gateway: &Gateway, asked: &Asked) -> Result<&'static str, No> {
    let form = params::read(asked, Bodies::Sloppy).map_err(|refused| No::Reply(refused.reply()))?;
    require(&form, &["url"])?;
    gateway.strangers.admit(asked, 1)?;
    let ping = Ping {
        at: worker::now(),
        source: Source::RssCloud,
        name: String::new(),
        url: form.get("url").unwrap_or_default().to_owned(),
        feed_url: None,
    };
    let done = gateway.subscribe.ping_readable(&ping, gateway.settings.ping_spacing).await;
    done.map(|()| PINGED).map_err(|refusal| no("ping", &refusal))
}

/// The protocol's sentence for a refusal of a `subscription` or a `ping`.
fn no(what: &str, refusal: &Refusal) -> No {
    match sentence(what, refusal) {
        Some(sentence) => No::Because(sentence),
        None => No::Reply(out_of_order(refusal)),
    }
}

/// The protocol's sentence for a refusal; `None` if the fault is ours.
pub(super) fn sentence(what: &str, refusal: &Refusal) -> Option<String> {
    match refusal {
        Refusal::Store(_) => None,
        Refusal::Unreadable(url) => Some(format!(
            "The {what} was cancelled because there was an error reading the resource at URL {url}."
        )),
        Refusal::BadPart(why) => Some(format!(
            "The {what} was cancelled because the part behind # cannot be watched: {why}."
        )),
        Refusal::NotVerified(_)
        | Refusal::Forbidden(..)
        | Refusal::NoHandler
        | Refusal::Superseded
        | Refusal::NoSubscription
        | Refusal::Several(_) => Some(format!(
            "The {what} was cancelled because the call failed when we tested the handler."
        )),
    }
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

/// Words a result as the caller can read it; does the work only if it can.
async fn answer(
    asked: &Asked,
    element: &str,
    work: impl Future<Output = Result<&'static str, No>>,
) -> Response {
    let Some(as_json) = wants_json(asked.header("accept")) else {
        let why = "Not Acceptable"; // no line end: what clients compare is the deployed servers'
        return with_type(StatusCode::NOT_ACCEPTABLE, "text/plain; charset=utf-8", why);
    };
    let (success, msg) = match work.await {
        Ok(msg) => (true, msg.to_owned()),
        Err(No::Because(msg)) => (false, msg),
        Err(No::Reply(response)) => return response,
    };
    if as_json {
        let body = serde_json::json!({ "success": success, "msg": msg }).to_string();
        return with_type(StatusCode::OK, "application/json; charset=utf-8", body);
    }
    let body = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"yes\"?>\n\
         <{element} success=\"{success}\" msg=\"{}\"/>",
        escaped(&msg)
    );
    with_type(StatusCode::OK, "text/xml; charset=utf-8", body)
}

/// Whether an `Accept` header prefers JSON to XML; `None` if it takes neither.
fn wants_json(accept: &str) -> Option<bool> {
    if accept.trim().is_empty() {
        return Some(false);
    }
    let mut best: Option<(f32, bool)> = None;
    for range in accept.split(',') {
        let mut parts = range.split(';').map(str::trim);
        let as_json = match parts.next().unwrap_or_default().to_ascii_lowercase().as_str() {
            "application/json" => true,
            "text/xml" | "application/xml" | "text/*" | "application/*" | "*/*" => false,
            _ => continue,
        };
        let quality = parts.find_map(|part| part.strip_prefix("q=")?.parse().ok()).unwrap_or(1.0);
        if quality > 0.0 && best.is_none_or(|(before, _)| quality > before) {
            best = Some((quality, as_json));
        }
    }
    best.map(|(_, as_json)| as_json)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_caller_chooses_the_form_of_the_answer() {
        #[rustfmt::skip]
        let cases = [
            ("",                              Some(false)),
            ("*/*",                           Some(false)),
            ("text/html,*/*",                 Some(false)),
            ("text/xml",                      Some(false)),
            ("application/xml",               Some(false)),
            ("application/json",              Some(true)),
            ("application/json, text/xml",    Some(true)),
            ("application/json;q=0.5, text/xml", Some(false)),
            ("Application/JSON; charset=utf-8", Some(true)),
            ("application/json;q=0",          None),
            ("text/html",                     None),
            ("text/plain",                    None),
        ];
        for (accept, want) in cases {
            assert_eq!(wants_json(accept), want, "{accept}");
        }
    }
}
