//! The same procedures over SOAP 1.1: "the rssCloud interface … can be implemented in
//! either XML-RPC or SOAP" (seed 001).
//!
//! A fault is sent with status 500, as SOAP 1.1 demands of HTTP.

use http::StatusCode;
use warp::reply::Response;

use super::Gateway;
use super::exchange::{Asked, with_type};
use super::params::Refused;
use super::rpc::{self, Procedure};
use super::rsscloud::{Named, PINGED};
use super::save_rss;
use crate::domain::event::Kind;
use crate::publish::Sent;
use crate::wire::soap::{self, Call};

/// Answers a call in an envelope.
pub(super) async fn answer(gateway: &Gateway, asked: &Asked) -> Response {
    let done = match soap::read_call(&asked.body) {
        Ok(call) => carry_out(gateway, asked, &call).await,
        Err(bad) => rpc::heard(Kind::Request, "").tell(gateway, Err(bad.to_string())),
    };
    let (status, body) = match done {
        Ok(body) => (StatusCode::OK, body),
        Err(why) => (StatusCode::INTERNAL_SERVER_ERROR, soap::fault(&why)),
    };
    with_type(status, "text/xml; charset=utf-8", body)
}

async fn carry_out(gateway: &Gateway, asked: &Asked, call: &Call) -> Result<String, String> {
    let method = call.method.as_str();
    let text = |names: &[&str], place| {
        call.param(names, place).map(|param| param.text().to_owned()).unwrap_or_default()
    };
    // UserLand's weblogs interface calls its procedure `ping` too; it has a name.
    let is_weblogs = call.params.len() > 1;
    match Procedure::find(gateway, method) {
        Some(Procedure::Hello) => Ok(soap::response(method, true)),
        Some(Procedure::PleaseNotify) => {
            please_notify(gateway, asked, call).await?;
            Ok(soap::response(method, true))
        }
        Some(Procedure::SaveRss) => {
            let (login, password) = (text(&["username"], 0), text(&["password"], 1));
            let feed = text(&["rsstext"], 2);
            let author = (login.as_str(), password.as_str());
            let saved = save_rss::save(gateway, asked, author, Sent::Text(&feed)).await?;
            Ok(soap::text_response(method, &saved))
        }
        Some(Procedure::Ping) if !is_weblogs => {
            let url = text(&["url"], 0);
            if url.is_empty() {
                let why = "Can't call \"ping\" because there aren't enough parameters.";
                return rpc::heard(Kind::Ping, "").tell(gateway, Err(why.to_owned()));
            }
            rpc::cloud_ping(gateway, asked, url).await?;
            Ok(soap::response(method, true))
        }
        Some(Procedure::Ping | Procedure::WeblogPing) => {
            let (name, url) = (text(&["weblogname"], 0), text(&["weblogurl"], 1));
            let changed = text(&["changesurl"], 2);
            let done = rpc::weblog_ping(gateway, asked, [name, url, changed, String::new()]).await;
            Ok(flerror(method, done))
        }
        Some(Procedure::WeblogExtendedPing) => {
            let (name, url) = (text(&["weblogname"], 0), text(&["weblogurl"], 1));
            let place = if call.params.len() == 3 { 2 } else { 3 };
            let (changed, feed) = (text(&["changesurl"], 2), text(&["rssurl", "feedurl"], place));
            Ok(flerror(method, rpc::weblog_ping(gateway, asked, [name, url, changed, feed]).await))
        }
        Some(Procedure::ListMethods) | None => {
            Err(format!("Can't make the call because \"{method}\" is not defined."))
        }
    }
}

async fn please_notify(gateway: &Gateway, asked: &Asked, call: &Call) -> Result<(), String> {
    if call.params.len() < 5 {
        let why = "Can't call \"pleaseNotify\" because there aren't enough parameters.";
        return rpc::heard(Kind::Subscribe, "").tell(gateway, Err(why.to_owned()));
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

fn flerror(method: &str, done: Result<(), Refused>) -> String {
    let is_error = done.is_err();
    let message = done.map_or_else(|refused| refused.why, |()| PINGED.to_owned());
    soap::flerror_response(method, is_error, &message)
}
