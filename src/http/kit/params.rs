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
    let body = match media_type.as_str() {
        "" | "application/x-www-form-urlencoded" => Form::from_urlencoded(&request.body),
        "text/plain" if formats == BodyFormats::Lenient => {
            Form::from_urlencoded(request.body.trim_ascii())
        }
        "multipart/form-data" => multipart::read(request.header("content-type"), &request.body),
        "application/json" if formats != BodyFormats::Forms => Form::from_json(&request.body),
        _ => {
            let reason = format!(
                "The body must be application/x-www-form-urlencoded or multipart/form-data, it is \
                 {media_type}."
            );
            return Err(Rejection::unreadable_body(StatusCode::UNSUPPORTED_MEDIA_TYPE, reason));
        }
    };
    Ok(body.map_err(unreadable)?.and(query))
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
