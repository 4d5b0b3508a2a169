//! The answers of rssCloud's REST interface: XML or JSON, and the protocol's sentences.
//!
//! The sentences are the deployed servers' to the letter, because clients show and
//! compare them. What else is told stands in attributes of its own, which no known
//! client trips over.

use http::StatusCode;
use serde_json::{Value, json};
use warp::reply::Response;

use crate::http::kit::exchange::{Asked, out_of_order, with_type};
use crate::http::kit::rate_limit::TooMuch;
use crate::http::kit::rejected_requests::Why;
use crate::subscriptions::Refusal;
use feedgate_protocol::xml::escaped;

/// What is said to a request that succeeded.
pub(super) struct Said {
    /// In the protocol's words.
    pub(super) msg: String,
    /// What else is told, by name.
    pub(super) further: Vec<(&'static str, Value)>,
}

impl From<&str> for Said {
    fn from(msg: &str) -> Said {
        Said { msg: msg.to_owned(), further: Vec::new() }
    }
}

/// Why a request did not succeed.
pub(super) enum No {
    /// In the protocol's words.
    Because(String),
    /// Otherwise.
    Reply(Box<Response>),
}

impl Why for No {
    fn why(&self) -> &str {
        match self {
            No::Because(why) => why,
            No::Reply(_) => "the body of the request is no form",
        }
    }
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

/// The protocol's sentence for a refusal of a `subscription`, a `ping` or a
/// `cancellation`.
pub(super) fn no(what: &str, refusal: &Refusal) -> No {
    match sentence(what, refusal) {
        Some(sentence) => No::Because(sentence),
        None => No::Reply(Box::new(out_of_order(refusal))),
    }
}

/// The protocol's sentence for a refusal; `None` if the fault is ours.
pub(crate) fn sentence(what: &str, refusal: &Refusal) -> Option<String> {
    match refusal {
        Refusal::Store(_) => None,
        Refusal::Unreadable(url) => Some(format!(
            "The {what} was cancelled because there was an error reading the resource at URL {url}."
        )),
        Refusal::BadPart(why) => Some(format!(
            "The {what} was cancelled because the part behind # cannot be watched: {why}."
        )),
        Refusal::NoSubscription => Some("There is no such subscription.".to_owned()),
        Refusal::NotVerified(_)
        | Refusal::Forbidden(..)
        | Refusal::NoHandler
        | Refusal::Superseded
        | Refusal::Several(_) => Some(format!(
            "The {what} was cancelled because the call failed when we tested the handler."
        )),
    }
}

/// Words a result as the caller can read it; does the work only if it can.
pub(super) async fn answer(
    asked: &Asked,
    element: &str,
    work: impl Future<Output = Result<Said, No>>,
) -> Response {
    let Some(as_json) = wants_json(asked.header("accept")) else {
        let why = "Not Acceptable"; // no line end: what clients compare is the deployed servers'
        return with_type(StatusCode::NOT_ACCEPTABLE, "text/plain; charset=utf-8", why);
    };
    let (success, said) = match work.await {
        Ok(said) => (true, said),
        Err(No::Because(msg)) => (false, Said::from(msg.as_str())),
        Err(No::Reply(response)) => return *response,
    };
    let body =
        if as_json { as_object(success, &said) } else { as_element(element, success, &said) };
    let content_type =
        if as_json { "application/json; charset=utf-8" } else { "text/xml; charset=utf-8" };
    with_type(StatusCode::OK, content_type, body)
}

fn as_object(success: bool, said: &Said) -> String {
    let mut object = json!({ "success": success, "msg": said.msg });
    for (name, value) in &said.further {
        object[*name] = value.clone();
    }
    object.to_string()
}

fn as_element(element: &str, success: bool, said: &Said) -> String {
    let further = said.further.iter().map(|(name, value)| {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        format!(" {name}=\"{}\"", escaped(&text))
    });
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"yes\"?>\n\
         <{element} success=\"{success}\" msg=\"{}\"{}/>",
        escaped(&said.msg),
        further.collect::<String>()
    )
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

    #[test]
    fn what_is_told_besides_stands_beside_the_sentence() {
        let further = vec![("expires", json!("2026-11-21T23:00:00Z")), ("told", json!(7))];
        let said = Said { msg: "a < b".to_owned(), further };
        let element = as_element("notifyResult", true, &said);
        let want = "<notifyResult success=\"true\" msg=\"a &lt; b\" \
                    expires=\"2026-11-21T23:00:00Z\" told=\"7\"/>";
        assert!(element.ends_with(want), "{element}");
        let want = r#"{"success":true,"msg":"a < b","expires":"2026-11-21T23:00:00Z","told":7}"#;
        assert_eq!(as_object(true, &said), want);
    }
}
