//! The same procedures over SOAP: "the rssCloud interface … can be implemented in either
//! XML-RPC or SOAP" (seed 001).
//!
//! The answer is in the version of the call. A fault is sent with status 500 in SOAP 1.1,
//! and with 400 in SOAP 1.2 where it is the caller's, as each demands of HTTP.

use http::StatusCode;
use warp::reply::Response;

use crate::authoring::Sent;
use crate::http::Gateway;
use crate::http::kit::exchange::{Asked, with_type};
use crate::http::kit::params::Refused;
use crate::http::routes::rpc::save_rss;
use crate::http::routes::rpc::{self, METHODS, Procedure};
use crate::http::routes::rsscloud::{Named, PINGED};
use feedgate_core::event::EventKind;
use feedgate_protocol::soap::{self, Call, Version};

/// How far into a message its envelope is looked for.
const BEGINS_WITHIN: usize = 1_024;

/// Whether a request says that it is SOAP, whatever its body is.
pub(crate) fn is_meant(asked: &Asked) -> bool {
    asked.headers.contains_key("soapaction") || asked.media_type() == Version::V12.media_type()
}

/// Whether a message begins with an envelope, and is no call of XML-RPC that tells of one.
pub(crate) fn begins(head: &[u8]) -> bool {
    holds(head, "envelope") && !holds(head, "<methodcall")
}

/// The version of a message that cannot be read, as far as can be told.
pub(crate) fn version(asked: &Asked, head: &[u8]) -> Version {
    let newer = Version::V12;
    let is_newer = asked.media_type() == newer.media_type() || holds(head, newer.namespace());
    if is_newer { newer } else { Version::V11 }
}

fn holds(head: &[u8], word: &str) -> bool {
    let head = &head[..head.len().min(BEGINS_WITHIN)];
    head.windows(word.len()).any(|held| held.eq_ignore_ascii_case(word.as_bytes()))
}

/// Answers a call in an envelope.
pub(crate) async fn answer(gateway: &Gateway, asked: &Asked) -> Response {
    match soap::read_call(&asked.body) {
        Ok(call) => match carry_out(gateway, asked, &call).await {
            Ok(body) => with_type(StatusCode::OK, call.version.content_type(), body),
            Err(why) => fault(call.version, &why),
        },
        Err(bad) => {
            let why = bad.to_string();
            let _: Result<(), _> =
                rpc::heard(EventKind::Request, "").tell(gateway, Err(why.clone()));
            fault(version(asked, &asked.body), &why)
        }
    }
}

/// A fault of the caller's.
pub(crate) fn fault(version: Version, why: &str) -> Response {
    let status = match version {
        Version::V11 => StatusCode::INTERNAL_SERVER_ERROR,
        Version::V12 => StatusCode::BAD_REQUEST,
    };
    with_type(status, version.content_type(), soap::fault(version, why))
}

async fn carry_out(gateway: &Gateway, asked: &Asked, call: &Call) -> Result<String, String> {
    let (version, method) = (call.version, call.method.as_str());
    let text = |names: &[&str], place| {
        call.param(names, place).map(|param| param.text().to_owned()).unwrap_or_default()
    };
    // UserLand's weblogs interface calls its procedure `ping` too; it has a name.
    let is_weblogs = call.params.len() > 1;
    match Procedure::find(gateway, method) {
        Some(Procedure::Hello) => Ok(soap::response(version, method, true)),
        Some(Procedure::PleaseNotify) => {
            please_notify(gateway, asked, call).await?;
            Ok(soap::response(version, method, true))
        }
        Some(Procedure::SaveRss) => {
            let (login, password) = (text(&["username"], 0), text(&["password"], 1));
            let feed = text(&["rsstext"], 2);
            let author = (login.as_str(), password.as_str());
            let saved = save_rss::save(gateway, asked, author, Sent::Text(&feed)).await?;
            Ok(soap::text_response(version, method, &saved))
        }
        Some(Procedure::Ping) if !is_weblogs => {
            let url = text(&["url"], 0);
            if url.is_empty() {
                let why = "Can't call \"ping\" because there aren't enough parameters.";
                return rpc::heard(EventKind::Ping, "").tell(gateway, Err(why.to_owned()));
            }
            rpc::cloud_ping(gateway, asked, url).await?;
            Ok(soap::response(version, method, true))
        }
        Some(Procedure::Ping | Procedure::WeblogPing) => {
            let (name, url) = (text(&["weblogname"], 0), text(&["weblogurl"], 1));
            let changed = text(&["changesurl"], 2);
            let done = rpc::weblog_ping(gateway, asked, [name, url, changed, String::new()]).await;
            Ok(flerror(call, done))
        }
        Some(Procedure::WeblogExtendedPing) => {
            let (name, url) = (text(&["weblogname"], 0), text(&["weblogurl"], 1));
            let place = if call.params.len() == 3 { 2 } else { 3 };
            let (changed, feed) = (text(&["changesurl"], 2), text(&["rssurl", "feedurl"], place));
            Ok(flerror(call, rpc::weblog_ping(gateway, asked, [name, url, changed, feed]).await))
        }
        Some(Procedure::ListMethods) => Ok(soap::list_response(version, method, &METHODS)),
        None => Err(format!("Can't make the call because \"{method}\" is not defined.")),
    }
}

async fn please_notify(gateway: &Gateway, asked: &Asked, call: &Call) -> Result<(), String> {
    if call.params.len() < 5 {
        let why = "Can't call \"pleaseNotify\" because there aren't enough parameters.";
        return rpc::heard(EventKind::Subscribe, "").tell(gateway, Err(why.to_owned()));
    }
    let text = |name: &str, place| {
        call.param(&[name], place).map(|param| param.text().to_owned()).unwrap_or_default()
    };
    let urls = call.param(&["urlList", "urls", "url"], 4);
    let urls = urls.map(|urls| urls.texts().to_vec()).unwrap_or_default();
    let domain = text("domain", 5);
    let named = Named {
        procedure: text("notifyProcedure", 0),
        port: text("port", 1),
        path: text("path", 2),
        protocol: text("protocol", 3),
        domain: Some(domain),
    };
    rpc::register(gateway, asked, named, urls).await
}

fn flerror(call: &Call, done: Result<(), Refused>) -> String {
    let is_error = done.is_err();
    let message = done.map_or_else(|refused| refused.why, |()| PINGED.to_owned());
    soap::flerror_response(call.version, &call.method, is_error, &message)
}
