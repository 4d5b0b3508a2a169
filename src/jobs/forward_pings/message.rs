//! The request of a forwarded ping, and what its response means.

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue, Method};
use url::Url;
use url::form_urlencoded::byte_serialize;

use super::ForwardError;
use crate::net::{CallbackRequest, CallbackResponse, HttpClient};
use feedgate_core::ping_forwarding::{DuePing, PingMethod, PingTarget};
use feedgate_protocol::xmlrpc::{self, XmlRpcFault, XmlRpcValue};

/// Sends a ping to a target.
pub(super) async fn send(
    client: &HttpClient,
    target: &PingTarget,
    due: &DuePing,
) -> Result<(), ForwardError> {
    match target.means() {
        PingMethod::Get => {
            let url = address(&filled(target.url(), due))?;
            let (headers, body) = (HeaderMap::new(), Bytes::new());
            success(client.call(CallbackRequest { method: Method::GET, url, headers, body }).await?)
                .map(drop)
        }
        PingMethod::XmlRpc => {
            let url = address(target.url())?;
            if due.feed_url != due.url {
                // The address of the weblog serves as the address of the changed page.
                let sent = [&due.name, &due.url, &due.url, &due.feed_url];
                match call(client, &url, "weblogUpdates.extendedPing", &sent).await {
                    // WordPress falls back to a plain ping in this case, too.
                    Err(ForwardError::Refused(_)) => {}
                    sent => return sent,
                }
            }
            call(client, &url, "weblogUpdates.ping", &[&due.name, &due.url]).await
        }
    }
}

/// Returns the URL to get: placeholders are filled; a URL without any gets the parameters of
/// `/pingSiteForm`.
fn filled(template: &str, due: &DuePing) -> String {
    let escaped = |text: &str| byte_serialize(text.as_bytes()).collect::<String>();
    let places = [
        ("{name}", &due.name, "name"),
        ("{url}", &due.url, "url"),
        ("{feed}", &due.feed_url, "rssUrl"),
    ];
    if places.iter().any(|(place, ..)| template.contains(place)) {
        let fill = |url: String, (place, text, _): &(&str, &String, &str)| {
            url.replace(place, &escaped(text))
        };
        return places.iter().fold(template.to_owned(), fill);
    }
    let pairs = places.map(|(_, text, name)| format!("{name}={}", escaped(text)));
    let joint = if template.contains('?') { '&' } else { '?' };
    format!("{template}{joint}{}", pairs.join("&"))
}

fn address(text: &str) -> Result<Url, ForwardError> {
    Url::parse(text).map_err(|err| ForwardError::Refused(format!("{text} is not a URL: {err}")))
}

fn success(reply: CallbackResponse) -> Result<CallbackResponse, ForwardError> {
    if reply.status.is_success() { Ok(reply) } else { Err(ForwardError::Status(reply.status)) }
}

/// Calls a procedure.
async fn call(
    client: &HttpClient,
    url: &Url,
    procedure: &str,
    params: &[&String],
) -> Result<(), ForwardError> {
    let params: Vec<XmlRpcValue> =
        params.iter().map(|text| XmlRpcValue::Text((*text).clone())).collect();
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/xml"));
    let body = xmlrpc::call_with(procedure, &params).into();
    let request = CallbackRequest { method: Method::POST, url: url.clone(), headers, body };
    let reply = client.call(request).await?;
    let result = xmlrpc::read_response(&reply.body).map(|answer| answer.and_then(check_flerror));
    match result {
        // Some targets send a fault with an error status; the fault says more.
        Ok(Err(fault)) => Err(ForwardError::Refused(fault.message)),
        _ if !reply.status.is_success() => Err(ForwardError::Status(reply.status)),
        Ok(Ok(())) => Ok(()),
        Err(_) => Err(ForwardError::Protocol(kind(&reply))),
    }
}

/// Returns a description of a response that is not XML-RPC, without quoting it.
fn kind(reply: &CallbackResponse) -> String {
    let media_type = reply.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    match media_type.map(|value| value.split(';').next().unwrap_or_default().trim()) {
        _ if reply.body.is_empty() => "it is empty".to_owned(),
        Some(media_type) if !media_type.is_empty() => format!("its media type is {media_type}"),
        Some(_) | None => "it has no media type".to_owned(),
    }
}

/// Reads a response: a struct whose `flerror` is set is a refusal (seed 002, "Ping Response").
fn check_flerror(answer: XmlRpcValue) -> Result<(), XmlRpcFault> {
    let XmlRpcValue::Struct(members) = answer else { return Ok(()) };
    let member = |name: &str| members.iter().find(|(held, _)| held == name).map(|(_, v)| v);
    let is_error = match member("flerror") {
        Some(XmlRpcValue::Boolean(is_error)) => *is_error,
        Some(XmlRpcValue::Int(number)) => *number != 0,
        _ => false,
    };
    let message = member("message").and_then(XmlRpcValue::text).unwrap_or_default();
    if is_error { Err(XmlRpcFault { code: 0, message }) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use feedgate_core::claim::ClaimToken;

    #[test]
    fn places_in_a_url_are_filled_and_a_plain_one_is_asked_as_a_form() {
        let due = DuePing {
            id: 1,
            claim: ClaimToken::NONE,
            target: String::new(),
            name: "A & B".to_owned(),
            url: "http://a.test/?x=1".to_owned(),
            feed_url: "http://a.test/rss".to_owned(),
            version: 1,
            attempts: 0,
        };
        let form =
            "name=A+%26+B&url=http%3A%2F%2Fa.test%2F%3Fx%3D1&rssUrl=http%3A%2F%2Fa.test%2Frss";
        #[rustfmt::skip]
        let cases = [
            ("http://s.test/ping",        format!("http://s.test/ping?{form}")),
            ("http://s.test/?key=1",      format!("http://s.test/?key=1&{form}")),
            ("http://s.test/?u={feed}",   "http://s.test/?u=http%3A%2F%2Fa.test%2Frss".to_owned()),
            ("http://s.test/{name}",      "http://s.test/A+%26+B".to_owned()),
        ];
        for (template, want) in cases {
            assert_eq!(filled(template, &due), want);
        }
    }
}
