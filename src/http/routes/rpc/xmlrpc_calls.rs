//! The procedures over XML-RPC.

use futures_util::{FutureExt, StreamExt, stream};

use crate::authoring::SubmittedFeed;
use crate::http::kit::rejected_request::RejectedRequest;
use crate::http::kit::rejection::Rejection;
use crate::http::kit::request::Request;
use crate::http::routes::rpc::calls::{self, cloud_ping, register};
use crate::http::routes::rpc::descriptions::ProcedureDescription;
use crate::http::routes::rpc::procedure::Procedure;
use crate::http::routes::rpc::save_rss;
use crate::http::routes::rsscloud::pings::PINGED;
use crate::http::routes::rsscloud::registration::HandlerFields;
use crate::http::routes::weblogs::ping::{WeblogPing, is_web_address, take_weblog_ping};
use crate::http::state::Gateway;
use feedgate_core::event::EventKind;
use feedgate_protocol::xmlrpc::{self, XmlRpcCall, XmlRpcValue};

/// The content type of responses and faults.
pub(super) const CONTENT_TYPE: &str = "text/xml; charset=utf-8";
/// The code of every fault, as on the deployed servers.
const FAULT_CODE: i32 = 4;
/// The most calls of one `system.multicall`, whose answer waits for all of them.
const MAX_CALLS: usize = 20;
/// The most of them that are carried out at once.
const CONCURRENT_CALLS: usize = 4;

/// Carries out a call; the result is a response or a fault.
pub(super) async fn carry_out(gateway: &Gateway, request: &Request) -> String {
    let longest = save_rss::longest_text_bytes(gateway, &request.body);
    let result = match xmlrpc::read_long_call(&request.body, longest) {
        Ok(call) if Procedure::find(gateway, &call.method) == Some(Procedure::Multicall) => {
            let calls = check_multicall(gateway, &call);
            let received = RejectedRequest::rsscloud(EventKind::Request, "");
            match received.record_if_rejected(gateway, calls) {
                Ok(calls) => Ok(call_procedures(gateway, request, calls).await),
                Err(rejection) => Err(rejection),
            }
        }
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
        Procedure::ListMethods => Ok(text_array(&ProcedureDescription::names())),
        Procedure::MethodHelp => {
            let [name] = texts(params);
            let described = calls::description(gateway, &name)?;
            Ok(XmlRpcValue::Text(described.help.to_owned()))
        }
        Procedure::MethodSignature => {
            let [name] = texts(params);
            let ways = calls::description(gateway, &name)?.signatures.iter();
            let ways = ways.map(|types| text_array(&Vec::from_iter(types.split(' '))));
            Ok(XmlRpcValue::Array(ways.collect()))
        }
        Procedure::Multicall => {
            Err(Rejection::bad_request("Can't call system.multicall inside of system.multicall."))
        }
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

/// Returns the calls of a `system.multicall`. What is wrong with a single one is its own result.
fn check_multicall(
    gateway: &Gateway,
    call: &XmlRpcCall,
) -> Result<Vec<Result<XmlRpcCall, Rejection>>, Rejection> {
    check_call(gateway, &call.method, &call.params).map_err(|(_, rejection)| rejection)?;
    let Some(XmlRpcValue::Array(calls)) = call.params.first() else {
        let reason = "Can't call \"multicall\" because its parameter is not an array of structs.";
        return Err(Rejection::bad_request(reason));
    };
    if calls.len() > MAX_CALLS {
        let reason = format!("Can't call more than {MAX_CALLS} procedures at once.");
        return Err(Rejection::bad_request(reason));
    }
    let call = |value: &XmlRpcValue| {
        let method = value.member("methodName").and_then(XmlRpcValue::text);
        let params = match value.member("params") {
            Some(XmlRpcValue::Array(params)) => Some(params.clone()),
            _ => None,
        };
        let call = method.zip(params).map(|(method, params)| XmlRpcCall { method, params });
        call.ok_or_else(|| {
            Rejection::bad_request("A call must be a struct with methodName and an array params.")
        })
    };
    Ok(calls.iter().map(call).collect())
}

/// Carries out the calls of a `system.multicall`: the result of each is in an array, so that it is told
/// from the struct of a fault.
async fn call_procedures(
    gateway: &Gateway,
    request: &Request,
    calls: Vec<Result<XmlRpcCall, Rejection>>,
) -> XmlRpcValue {
    let results = calls.into_iter().map(|call| {
        let result = async move {
            let call = call?;
            call_procedure(gateway, request, &call.method, &call.params).await
        };
        let result = result.map(|result| match result {
            Ok(value) => XmlRpcValue::Array(vec![value]),
            Err(rejection) => xmlrpc::fault_value(FAULT_CODE, rejection.reason()),
        });
        result.boxed()
    });
    let results: Vec<_> = results.collect();
    XmlRpcValue::Array(stream::iter(results).buffered(CONCURRENT_CALLS).collect().await)
}

fn text_array(texts: &[&str]) -> XmlRpcValue {
    XmlRpcValue::Array(texts.iter().map(|text| XmlRpcValue::Text((*text).to_owned())).collect())
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
        Procedure::MethodHelp => (EventKind::Request, "methodHelp", 1..=1),
        Procedure::MethodSignature => (EventKind::Request, "methodSignature", 1..=1),
        Procedure::Multicall => (EventKind::Request, "multicall", 1..=1),
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
