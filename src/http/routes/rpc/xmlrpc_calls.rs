//! The procedures over XML-RPC.

use crate::authoring::SubmittedFeed;
use crate::http::kit::rejected_request::RejectedRequest;
use crate::http::kit::rejection::Rejection;
use crate::http::kit::request::Request;
use crate::http::routes::rpc::calls::{self, cloud_ping, register};
use crate::http::routes::rpc::procedure::{METHODS, Procedure};
use crate::http::routes::rpc::save_rss;
use crate::http::routes::rsscloud::pings::PINGED;
use crate::http::routes::rsscloud::registration::HandlerFields;
use crate::http::routes::weblogs::ping::{WeblogPing, is_web_address, take_weblog_ping};
use crate::http::state::Gateway;
use feedgate_core::event::EventKind;
use feedgate_protocol::xmlrpc::{self, XmlRpcValue};

/// The content type of responses and faults.
pub(super) const CONTENT_TYPE: &str = "text/xml; charset=utf-8";
/// The code of every fault, as on the deployed servers.
const FAULT_CODE: i32 = 4;

/// Carries out a call; the result is a response or a fault.
pub(super) async fn carry_out(gateway: &Gateway, request: &Request) -> String {
    let longest = save_rss::longest_text_bytes(gateway, &request.body);
    let result = match xmlrpc::read_long_call(&request.body, longest) {
        Ok(call) => call_procedure(gateway, request, &call.method, &call.params).await,
        Err(err) => {
            let unreadable = Err(Rejection::bad_request(err.to_string()));
            RejectedRequest::rsscloud(EventKind::Request, "")
                .record_if_rejected(gateway, unreadable)
        }
    };
    match result {
        Ok(value) => xmlrpc::response(&value),
        Err(rejection) => fault(&rejection),
    }
}

/// Returns the fault that says why a call was rejected.
pub(super) fn fault(rejection: &Rejection) -> String {
    xmlrpc::fault(FAULT_CODE, rejection.reason())
}

async fn call_procedure(
    gateway: &Gateway,
    request: &Request,
    method: &str,
    params: &[XmlRpcValue],
) -> Result<XmlRpcValue, Rejection> {
    let checked = check_call(gateway, method, params);
    let kind = checked.as_ref().err().map_or(EventKind::Request, |(kind, _)| *kind);
    let checked = checked.map_err(|(_, rejection)| rejection);
    let procedure = RejectedRequest::rsscloud(kind, "").record_if_rejected(gateway, checked)?;
    match procedure {
        Procedure::Hello => Ok(XmlRpcValue::Boolean(true)),
        Procedure::ListMethods => Ok(XmlRpcValue::Array(
            METHODS.iter().map(|name| XmlRpcValue::Text((*name).to_owned())).collect(),
        )),
        Procedure::PleaseNotify => please_notify(gateway, request, params).await,
        Procedure::Ping => {
            let [url] = texts(params);
            cloud_ping(gateway, request, &url).await?;
            Ok(XmlRpcValue::Boolean(true))
        }
        Procedure::SaveRss => {
            let [login, password, text] = texts(params);
            let feed = match &params[2] {
                XmlRpcValue::Bytes(bytes) => SubmittedFeed::Bytes(bytes),
                _ => SubmittedFeed::Text(&text),
            };
            let author = save_rss::AuthorCredentials { login: &login, password: &password };
            save_rss::save(gateway, request, author, feed).await.map(XmlRpcValue::Text)
        }
        Procedure::WeblogPing => {
            let [name, url, changed_page] = texts(params);
            let ping = WeblogPing { name, url, changed_page, feed: String::new() };
            Ok(flerror(take_weblog_ping(gateway, request, ping).await))
        }
        Procedure::WeblogExtendedPing => {
            let ping = extended_ping(params);
            Ok(flerror(take_weblog_ping(gateway, request, ping).await))
        }
    }
}

/// Returns the procedure, if it can be called with these parameters; or what was called, and why
/// not.
fn check_call(
    gateway: &Gateway,
    method: &str,
    params: &[XmlRpcValue],
) -> Result<Procedure, (EventKind, Rejection)> {
    let procedure = Procedure::find(gateway, method)
        .ok_or_else(|| (EventKind::Request, calls::undefined(method)))?;
    let (kind, name, arity) = match procedure {
        Procedure::Hello | Procedure::ListMethods => return Ok(procedure),
        Procedure::PleaseNotify => (EventKind::Subscribe, "pleaseNotify", 5..=6),
        Procedure::Ping => (EventKind::Ping, "ping", 1..=1),
        Procedure::SaveRss => (EventKind::Ping, "saveRss", 3..=3),
        Procedure::WeblogPing => (EventKind::Ping, "ping", 2..=4),
        Procedure::WeblogExtendedPing => (EventKind::Ping, "extendedPing", 3..=5),
    };
    match params.len() {
        few if few < *arity.start() => Err((kind, calls::too_few_params(name))),
        many if many > *arity.end() => Err((kind, calls::too_many_params(name))),
        _ => Ok(procedure),
    }
}

/// Reads the parameters of an extended ping. Three are name, home page and feed (WordPress);
/// four or five have the page that changed third and the feed fourth (seed 002). Some clients
/// leave that page out and send categories.
fn extended_ping(params: &[XmlRpcValue]) -> WeblogPing {
    let [name, url, third, fourth] = texts(params);
    let is_tags = !fourth.trim().is_empty() && !is_web_address(&fourth);
    let is_feed_third = params.len() == 3 || is_tags && is_web_address(&third);
    let (changed_page, feed) = if is_feed_third { (fourth, third) } else { (third, fourth) };
    WeblogPing { name, url, changed_page, feed }
}

/// Returns the first parameters as texts; missing ones are empty.
fn texts<const N: usize>(params: &[XmlRpcValue]) -> [String; N] {
    std::array::from_fn(|n| params.get(n).and_then(XmlRpcValue::text).unwrap_or_default())
}

async fn please_notify(
    gateway: &Gateway,
    request: &Request,
    params: &[XmlRpcValue],
) -> Result<XmlRpcValue, Rejection> {
    let [procedure, port, path, protocol] = texts(params);
    let urls = match params.get(4) {
        Some(XmlRpcValue::Array(urls)) => urls.iter().filter_map(XmlRpcValue::text).collect(),
        Some(single) => single.text().into_iter().collect::<Vec<_>>(),
        None => Vec::new(),
    };
    let domain = params.get(5).and_then(XmlRpcValue::text);
    let fields = HandlerFields { procedure, port, path, protocol, domain };
    register(gateway, request, fields, urls).await.map(|()| XmlRpcValue::Boolean(true))
}

/// Returns the result of a ping: "The response is a struct with two named parameters, flerror and
/// message" (seed 002, "Ping Response").
fn flerror(done: Result<(), Rejection>) -> XmlRpcValue {
    let message = done.as_ref().map_or_else(Rejection::reason, |()| PINGED);
    XmlRpcValue::Struct(vec![
        ("flerror".to_owned(), XmlRpcValue::Boolean(done.is_err())),
        ("message".to_owned(), XmlRpcValue::Text(message.to_owned())),
    ])
}
