//! Replies of rssCloud's REST interface: XML or JSON, with the sentences of the protocol.
//!
//! All other data of a reply is in attributes of its own, which no known client stumbles over.

use http::StatusCode;
use serde_json::{Value, json};
use warp::reply::Response;

use crate::http::kit::rejection::{Rejection, RejectionCode};
use crate::http::kit::reply::with_content_type;
use crate::http::kit::request::Request;
use feedgate_protocol::xml::escaped;

/// The reply to a request that succeeded, or whose rejection is in the words of the protocol.
pub(super) struct RestReply {
    /// The sentence of the protocol.
    pub(super) message: String,
    /// The additional data of the reply, by name.
    pub(super) attributes: Vec<(&'static str, Value)>,
}

impl From<&str> for RestReply {
    fn from(message: &str) -> RestReply {
        RestReply { message: message.to_owned(), attributes: Vec::new() }
    }
}

/// Carries out a request and renders the result, if the client accepts one of the two formats.
///
/// A body that cannot be read and a failure of this gateway are answered in plain HTTP; every other
/// rejection is a `success="false"`.
pub(super) async fn respond(
    request: &Request,
    element: &str,
    work: impl Future<Output = Result<RestReply, Rejection>>,
) -> Response {
    let Some(as_json) = wants_json(request.header("accept")) else {
        let text = "Not Acceptable"; // no line end: clients compare it with the deployed servers'
        return with_content_type(StatusCode::NOT_ACCEPTABLE, "text/plain; charset=utf-8", text);
    };
    match work.await {
        Ok(reply) => render(as_json, element, (true, &reply)),
        Err(rejection) => match rejection.code() {
            RejectionCode::UnreadableBody | RejectionCode::Unavailable => rejection.to_response(),
            _ => render(as_json, element, (false, &RestReply::from(rejection.reason()))),
        },
    }
}

fn render(as_json: bool, element: &str, (success, reply): (bool, &RestReply)) -> Response {
    let body =
        if as_json { as_object(success, reply) } else { as_element(element, success, reply) };
    let content_type =
        if as_json { "application/json; charset=utf-8" } else { "text/xml; charset=utf-8" };
    with_content_type(StatusCode::OK, content_type, body)
}

fn as_object(success: bool, reply: &RestReply) -> String {
    let mut object = json!({ "success": success, "msg": reply.message });
    for (name, value) in &reply.attributes {
        object[*name] = value.clone();
    }
    object.to_string()
}

fn as_element(element: &str, success: bool, reply: &RestReply) -> String {
    let attributes = reply.attributes.iter().map(|(name, value)| {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        format!(" {name}=\"{}\"", escaped(&text))
    });
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"yes\"?>\n\
         <{element} success=\"{success}\" msg=\"{}\"{}/>",
        escaped(&reply.message),
        attributes.collect::<String>()
    )
}

/// Returns whether an `Accept` header prefers JSON to XML; `None` if it takes neither.
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
    fn the_client_chooses_the_format_of_the_reply() {
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

    #[test]
    fn attributes_stand_beside_the_sentence() {
        let attributes = vec![("expires", json!("2026-11-21T23:00:00Z")), ("told", json!(7))];
        let reply = RestReply { message: "a < b".to_owned(), attributes };
        let element = as_element("notifyResult", true, &reply);
        let want = "<notifyResult success=\"true\" msg=\"a &lt; b\" \
                    expires=\"2026-11-21T23:00:00Z\" told=\"7\"/>";
        assert!(element.ends_with(want), "{element}");
        let want = r#"{"success":true,"msg":"a < b","expires":"2026-11-21T23:00:00Z","told":7}"#;
        assert_eq!(as_object(true, &reply), want);
    }
}
