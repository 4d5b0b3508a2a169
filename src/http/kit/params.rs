//! The parameters of a request, from its query and from whatever bodies an endpoint reads.

use http::StatusCode;
use url::form_urlencoded;

use crate::http::kit::rejection::Rejection;
use crate::http::kit::request::Request;
use feedgate_core::intent::Intent;
use feedgate_protocol::form::{BadForm, Form};
use feedgate_protocol::multipart;
use feedgate_protocol::signature::SignatureMethod;

/// The formats of bodies that an endpoint reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyFormats {
    /// Forms: urlencoded, as WebSub says (`#subscriber-sends-subscription-request`), or multipart, as
    /// PHP's curl sends an array of fields.
    Forms,
    /// JSON as well.
    Any,
    /// All of these, and text/plain, which browsers send for a script that names no type:
    /// clients of rssCloud often do.
    Lenient,
}

/// Returns the parameters of the body, then those of the query.
pub(crate) fn read(request: &Request, formats: BodyFormats) -> Result<Form, Rejection> {
    let query = Form::from_urlencoded(request.query.as_bytes()).map_err(unreadable)?;
    if request.body.is_empty() {
        return Ok(query);
    }
    let media_type = request.media_type();
    let is_form =
        matches!(media_type.as_str(), "" | "application/x-www-form-urlencoded" | "text/plain");
    if is_form && request.body.trim_ascii_start().starts_with(b"{") {
        return Err(json_as_form(&media_type, formats));
    }
    let body = match media_type.as_str() {
        "" | "application/x-www-form-urlencoded" => Form::from_urlencoded(&request.body),
        "text/plain" if formats == BodyFormats::Lenient => {
            Form::from_urlencoded(request.body.trim_ascii())
        }
        "multipart/form-data" => multipart::read(request.header("content-type"), &request.body),
        "application/json" if formats != BodyFormats::Forms => Form::from_json(&request.body),
        _ => {
            let json = if formats == BodyFormats::Forms { "" } else { ", application/json" };
            let reason = format!(
                "The body must be application/x-www-form-urlencoded{json} or multipart/form-data, it is \
                 {media_type}."
            );
            return Err(Rejection::unreadable_body(StatusCode::UNSUPPORTED_MEDIA_TYPE, reason));
        }
    };
    Ok(body.map_err(unreadable)?.and(query))
}

/// Returns the rejection of JSON that was sent as a form, which curl and others do unless they are told
/// otherwise: as a form, it is one parameter with a strange name.
fn json_as_form(media_type: &str, formats: BodyFormats) -> Rejection {
    let reason = match (formats, media_type) {
        (BodyFormats::Forms, _) => "The body is JSON, which this address does not read. Send the \
             parameters as application/x-www-form-urlencoded: hub.mode=subscribe&hub.topic=…"
            .to_owned(),
        (_, "") => {
            "The body is JSON, but has no Content-Type. Send Content-Type: application/json."
                .to_owned()
        }
        (_, media_type) => format!(
            "The body is JSON, but its Content-Type is {media_type}. Send Content-Type: \
             application/json."
        ),
    };
    Rejection::unreadable_body(StatusCode::UNSUPPORTED_MEDIA_TYPE, reason)
}

/// Returns a sentence, after a space, if a request has a parameter without the `hub.` of its `name`.
pub(crate) fn suggest_prefix(form: &Form, name: &str) -> String {
    let bare = name.trim_start_matches("hub.");
    if form.has(bare) { format!(" Did you mean {name} instead of {bare}?") } else { String::new() }
}

/// Returns the parameters of the query alone; none if it cannot be read.
pub(crate) fn read_query(request: &Request) -> Form {
    Form::from_urlencoded(request.query.as_bytes()).unwrap_or_default()
}

/// Returns the hash function of `X-Hub-Signature` in `signature`, or why it is none.
pub(crate) fn signature(form: &Form) -> Result<Option<SignatureMethod>, String> {
    let Some(word) = form.get("signature") else { return Ok(None) };
    let known = || SignatureMethod::ALL.map(SignatureMethod::as_str).join(", ");
    let method = SignatureMethod::from_word(word);
    let method = method.ok_or_else(|| format!("signature must be one of {}, not {word}.", known()));
    method.map(Some)
}

/// Returns the parameters of a subscription for a publisher that validates it (row P-5): all but
/// secrets, as a URL-encoded form.
pub(crate) fn for_publisher(form: &Form) -> Result<String, Rejection> {
    const SECRETS: [&str; 7] = [
        "hub.secret",
        "hub.verify_token",
        "authorization",
        "callback_authorization",
        "callback_headers",
        "feed_authorization",
        "feed_headers",
    ];
    let form = SECRETS.iter().fold(form.clone(), |form, name| form.without(name));
    let mut encoded = form_urlencoded::Serializer::new(String::new());
    let encoded = encoded.extend_pairs(form.pairs()).finish();
    if encoded.len() > Intent::MAX_PARAMETERS_BYTES {
        let limit = Intent::MAX_PARAMETERS_BYTES;
        let reason = format!("The parameters of a subscription are longer than {limit} bytes.");
        return Err(Rejection::unreadable_body(StatusCode::PAYLOAD_TOO_LARGE, reason));
    }
    Ok(encoded)
}

fn unreadable(err: BadForm) -> Rejection {
    let status = match err {
        BadForm::TooMany | BadForm::TooLong => StatusCode::PAYLOAD_TOO_LARGE,
        BadForm::Json(_) | BadForm::Multipart(_) => StatusCode::BAD_REQUEST,
    };
    Rejection::unreadable_body(status, format!("Cannot read the parameters: {err}."))
}
