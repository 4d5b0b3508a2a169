//! The procedures over SOAP: "the rssCloud interface … can be implemented in either XML-RPC or
//! SOAP" (seed 001).
//!
//! The reply is in the version of the call. Faults are sent with status 500 in SOAP 1.1, and
//! with 400 in SOAP 1.2 if the client caused the fault, as each version demands. A fault that this
//! gateway caused, because its store failed for example, does not blame the client.

use http::StatusCode;
use warp::reply::Response;

use crate::authoring::SubmittedFeed;
use crate::http::kit::rejected_request::RejectedRequest;
use crate::http::kit::rejection::Rejection;
use crate::http::kit::reply::with_content_type;
use crate::http::kit::request::Request;
use crate::http::routes::rpc::calls::{self, cloud_ping, register};
use crate::http::routes::rpc::descriptions::ProcedureDescription;
use crate::http::routes::rpc::procedure::Procedure;
use crate::http::routes::rpc::save_rss;
use crate::http::routes::rsscloud::pings::PINGED;
use crate::http::routes::rsscloud::registration::HandlerFields;
use crate::http::routes::weblogs::ping::{WeblogPing, take_weblog_ping};
use crate::http::state::Gateway;
use feedgate_core::event::EventKind;
use feedgate_protocol::soap::{self, SoapCall, SoapFaultCause, SoapVersion};

/// How many bytes from the beginning of a message its envelope may begin.
const ENVELOPE_WITHIN_BYTES: usize = 1_024;
/// The fewest parameters of `pleaseNotify`: all but the domain.
const PLEASE_NOTIFY_PARAMS: usize = 5;

/// Returns whether the headers of a request say that it is SOAP, whatever its body is.
pub(super) fn is_declared(request: &Request) -> bool {
    request.headers.contains_key("soapaction")
        || request.media_type() == SoapVersion::V12.media_type()
}

/// Returns whether a message begins with an envelope, and is no XML-RPC call that mentions one.
pub(super) fn begins(beginning: &[u8]) -> bool {
    contains(beginning, "envelope") && !contains(beginning, "<methodcall")
}

/// Returns the version of a message that cannot be read, as far as it can be recognized.
pub(super) fn version(request: &Request, beginning: &[u8]) -> SoapVersion {
    let newer = SoapVersion::V12;
    let is_newer =
        request.media_type() == newer.media_type() || contains(beginning, newer.namespace());
    if is_newer { newer } else { SoapVersion::V11 }
}

fn contains(beginning: &[u8], word: &str) -> bool {
    let beginning = &beginning[..beginning.len().min(ENVELOPE_WITHIN_BYTES)];
    beginning.windows(word.len()).any(|part| part.eq_ignore_ascii_case(word.as_bytes()))
}

/// Answers a call in an envelope.
pub(super) async fn handle(gateway: &Gateway, request: &Request) -> Response {
    match soap::read_call(&request.body) {
        Ok(call) => match carry_out(gateway, request, &call).await {
            Ok(body) => with_content_type(StatusCode::OK, call.version.content_type(), body),
            Err(rejection) => fault(call.version, &rejection),
        },
        Err(err) => {
            let rejection = Rejection::bad_request(err.to_string());
            RejectedRequest::rsscloud(EventKind::Request, "").record(gateway, &rejection);
            fault(version(request, &request.body), &rejection)
        }
    }
}

/// Returns the fault that says why a call was rejected.
pub(super) fn fault(version: SoapVersion, rejection: &Rejection) -> Response {
    let cause = match rejection.status().is_server_error() {
        true => SoapFaultCause::Server,
        false => SoapFaultCause::Client,
    };
    let status = match (version, cause) {
        (SoapVersion::V12, SoapFaultCause::Client) => StatusCode::BAD_REQUEST,
        (SoapVersion::V11, _) | (_, SoapFaultCause::Server) => StatusCode::INTERNAL_SERVER_ERROR,
    };
    let body = soap::fault(version, cause, rejection.reason());
    with_content_type(status, version.content_type(), body)
}

async fn carry_out(
    gateway: &Gateway,
    request: &Request,
    call: &SoapCall,
) -> Result<String, Rejection> {
    let (version, method) = (call.version, call.method.as_str());
    // UserLand's weblogs interface calls its procedure `ping` too; it also names the weblog.
    let is_weblogs = call.params.len() > 1;
    match Procedure::find(gateway, method) {
        Some(Procedure::Hello) => Ok(soap::response(version, method, true)),
        Some(Procedure::PleaseNotify) => {
            please_notify(gateway, request, call).await?;
            Ok(soap::response(version, method, true))
        }
        Some(Procedure::SaveRss) => {
            let (login, password) = (text(call, &["username"], 0), text(call, &["password"], 1));
            let author = save_rss::AuthorCredentials { login: &login, password: &password };
            let feed = text(call, &["rsstext"], 2);
            let saved =
                save_rss::save(gateway, request, author, SubmittedFeed::Text(&feed)).await?;
            Ok(soap::text_response(version, method, &saved))
        }
        Some(Procedure::Ping) if !is_weblogs => {
            let url = text(call, &["url"], 0);
            if url.is_empty() {
                let too_few = Err(calls::too_few_params("ping"));
                return RejectedRequest::rsscloud(EventKind::Ping, "")
                    .record_if_rejected(gateway, too_few);
            }
            cloud_ping(gateway, request, &url).await?;
            Ok(soap::response(version, method, true))
        }
        Some(Procedure::Ping | Procedure::WeblogPing) => {
            let ping = WeblogPing { feed: String::new(), ..weblog_ping(call) };
            Ok(flerror(call, take_weblog_ping(gateway, request, ping).await))
        }
        Some(Procedure::WeblogExtendedPing) => {
            Ok(flerror(call, take_weblog_ping(gateway, request, weblog_ping(call)).await))
        }
        Some(Procedure::ListMethods) => {
            Ok(soap::list_response(version, method, &ProcedureDescription::names()))
        }
        Some(Procedure::MethodHelp) => {
            let described = calls::description(gateway, &text(call, &["methodName"], 0))?;
            Ok(soap::text_response(version, method, described.help))
        }
        // Their results have arrays in arrays, which only XML-RPC writes here.
        Some(Procedure::MethodSignature | Procedure::Multicall) | None => {
            Err(calls::undefined(method))
        }
    }
}

/// Returns a parameter as text, by its name or else by its place; empty if it is missing.
fn text(call: &SoapCall, names: &[&str], place: usize) -> String {
    call.param(names, place).map(|param| param.text().to_owned()).unwrap_or_default()
}

fn weblog_ping(call: &SoapCall) -> WeblogPing {
    let feed_place = if call.params.len() == 3 { 2 } else { 3 };
    WeblogPing {
        name: text(call, &["weblogname"], 0),
        url: text(call, &["weblogurl"], 1),
        changed_page: text(call, &["changesurl"], 2),
        feed: text(call, &["rssurl", "feedurl"], feed_place),
    }
}

async fn please_notify(
    gateway: &Gateway,
    request: &Request,
    call: &SoapCall,
) -> Result<(), Rejection> {
    if call.params.len() < PLEASE_NOTIFY_PARAMS {
        let too_few = Err(calls::too_few_params("pleaseNotify"));
        return RejectedRequest::rsscloud(EventKind::Subscribe, "")
            .record_if_rejected(gateway, too_few);
    }
    let urls = call.param(&["urlList", "urls", "url"], 4);
    let urls = urls.map(|urls| urls.texts().to_vec()).unwrap_or_default();
    let fields = HandlerFields {
        procedure: text(call, &["notifyProcedure"], 0),
        port: text(call, &["port"], 1),
        path: text(call, &["path"], 2),
        protocol: text(call, &["protocol"], 3),
        domain: Some(text(call, &["domain"], 5)),
    };
    register(gateway, request, fields, urls).await
}

fn flerror(call: &SoapCall, done: Result<(), Rejection>) -> String {
    let message = done.as_ref().map_or_else(Rejection::reason, |()| PINGED);
    soap::flerror_response(call.version, &call.method, done.is_err(), message)
}
