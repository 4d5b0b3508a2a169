//! The reason why a request is not carried out: a code for programs, a sentence for people, and the
//! status code of HTTP.
//!
//! Every endpoint rejects requests with this one type, and renders it in the words of its protocol:
//! [`Rejection::to_response`] is a text, [`Rejection::to_response_for`] a problem document for
//! clients that accept JSON, JSONP wraps it, XML-RPC and SOAP make a
//! fault of it, rssCloud answers 200 with `success="false"`.

use std::error::Error;
use std::time::Duration;

use http::{StatusCode, header};
use serde_json::json;
use warp::reply::Response;

use crate::document_budget::GatewayBusy;
use crate::http::kit::content_coding::weight;
use crate::http::kit::reply::{plain_text, set_header};
use crate::http::kit::request::Request;

/// The number of seconds after which a client may repeat a request that failed in the gateway.
const RETRY_AFTER_FAILURE_S: u64 = 30;

/// The media type of a problem document (RFC 9457).
const PROBLEM: &str = "application/problem+json";

/// The kind of the rejection. The words are listed in `docs/errors.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RejectionCode {
    /// The request cannot be carried out as it is.
    BadRequest,
    /// The body is not a form, or not in a format that this endpoint reads.
    UnreadableBody,
    /// The body is longer than this endpoint reads.
    BodyTooLarge,
    /// The client has sent too many requests lately.
    RateLimited,
    /// feedgate failed; the cause is in its log and is not shown to the client.
    Unavailable,
}

impl RejectionCode {
    /// Returns the word for the event log.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            RejectionCode::BadRequest => "bad_request",
            RejectionCode::UnreadableBody => "unreadable_body",
            RejectionCode::BodyTooLarge => "body_too_large",
            RejectionCode::RateLimited => "rate_limited",
            RejectionCode::Unavailable => "temporarily_unavailable",
        }
    }
}

/// The reason why a request is not carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rejection {
    code: RejectionCode,
    /// The exact reason, as a word; `None` if the kind says all there is to say.
    detail_code: Option<&'static str>,
    status: StatusCode,
    reason: String,
    /// The field or the parameter that has to be corrected, if it is one.
    field: Option<String>,
    retry_after_s: Option<u64>,
}

impl Rejection {
    /// Returns a rejection with this status and reason.
    pub(crate) fn new(status: StatusCode, reason: impl Into<String>) -> Rejection {
        let code = match status {
            StatusCode::PAYLOAD_TOO_LARGE => RejectionCode::BodyTooLarge,
            _ => RejectionCode::BadRequest,
        };
        let detail_code = match status {
            StatusCode::UNAUTHORIZED => Some("unauthorized"),
            StatusCode::FORBIDDEN => Some("missing_scope"),
            StatusCode::NOT_FOUND => Some("not_found"),
            StatusCode::METHOD_NOT_ALLOWED => Some("method_not_allowed"),
            _ => None,
        };
        let reason = reason.into();
        Rejection { code, detail_code, status, reason, field: None, retry_after_s: None }
    }

    /// Returns the rejection of a request that is wrong in itself (400).
    pub(crate) fn bad_request(reason: impl Into<String>) -> Rejection {
        Rejection::new(StatusCode::BAD_REQUEST, reason)
    }

    /// Returns the rejection of a request that is understood, but cannot be carried out (422).
    pub(crate) fn unprocessable(reason: impl Into<String>) -> Rejection {
        Rejection::new(StatusCode::UNPROCESSABLE_ENTITY, reason)
    }

    /// Returns the rejection of a body that cannot be read as parameters.
    pub(crate) fn unreadable_body(status: StatusCode, reason: String) -> Rejection {
        let code = RejectionCode::UnreadableBody;
        Rejection { code, detail_code: None, status, reason, field: None, retry_after_s: None }
    }

    /// Returns the rejection of a client that may repeat its request after `retry_after_s` seconds
    /// (429).
    pub(crate) fn rate_limited(retry_after_s: u64) -> Rejection {
        Rejection {
            code: RejectionCode::RateLimited,
            detail_code: None,
            status: StatusCode::TOO_MANY_REQUESTS,
            reason: format!(
                "Your address has sent too many requests, please try again in {retry_after_s} s."
            ),
            field: None,
            retry_after_s: Some(retry_after_s),
        }
    }

    /// Returns the rejection of an account that may repeat its request after `retry_after_s` seconds
    /// (429).
    pub(crate) fn account_rate_limited(retry_after_s: u64) -> Rejection {
        let reason = format!(
            "This account has sent too many requests, please try again in {retry_after_s} s."
        );
        Rejection { reason, ..Rejection::rate_limited(retry_after_s) }
    }

    /// Returns the rejection of a request whose callback its client has had verified too often, and
    /// which may be repeated after `retry_after_s` seconds (429).
    pub(crate) fn verification_rate_limited(retry_after_s: u64) -> Rejection {
        let reason = format!(
            "This callback was verified too often for this topic, please try again in \
             {retry_after_s} s."
        );
        Rejection { reason, ..Rejection::rate_limited(retry_after_s) }
    }

    /// Returns the rejection of a request of an account that has as many streams open as it may
    /// have, and which it may repeat after `retry_after_s` seconds (429).
    pub(crate) fn too_many_streams(retry_after_s: u64) -> Rejection {
        let reason = "This account has too many open streams.".to_owned();
        Rejection { reason, ..Rejection::rate_limited(retry_after_s) }
    }

    /// Returns the rejection of a request for which this node has no room at the moment, and which
    /// the client may repeat after `retry_after_s` seconds (503).
    pub(crate) fn overloaded(reason: &str, retry_after_s: u64) -> Rejection {
        Rejection {
            code: RejectionCode::Unavailable,
            status: StatusCode::SERVICE_UNAVAILABLE,
            reason: reason.to_owned(),
            detail_code: None,
            field: None,
            retry_after_s: Some(retry_after_s),
        }
    }

    /// Returns the rejection of a request for a callback whose host may be contacted again after
    /// `retry_after` (429).
    pub(crate) fn callback_rate_limited(retry_after: Duration) -> Rejection {
        let retry_after_s = retry_after.as_millis().div_ceil(1_000).max(1) as u64;
        Rejection {
            code: RejectionCode::RateLimited,
            detail_code: None,
            status: StatusCode::TOO_MANY_REQUESTS,
            reason: format!(
                "Too many callbacks on this host have not confirmed their subscriptions, please \
                 try again in {retry_after_s} s."
            ),
            field: None,
            retry_after_s: Some(retry_after_s),
        }
    }

    /// Returns the rejection of a request because the store failed (503). The cause is logged here,
    /// and is not shown to the client.
    pub(crate) fn unavailable(err: &(dyn Error + 'static)) -> Rejection {
        tracing::error!(error = err, "cannot serve a request");
        Rejection {
            code: RejectionCode::Unavailable,
            detail_code: None,
            status: StatusCode::SERVICE_UNAVAILABLE,
            reason: "feedgate is temporarily unavailable, please try again later.".to_owned(),
            field: None,
            retry_after_s: Some(RETRY_AFTER_FAILURE_S),
        }
    }

    /// Returns the rejection of a request for which this gateway has no memory now (503).
    pub(crate) fn busy(busy: GatewayBusy) -> Rejection {
        let retry_after_s = busy.retry_in.as_secs();
        Rejection {
            code: RejectionCode::Unavailable,
            detail_code: None,
            status: StatusCode::SERVICE_UNAVAILABLE,
            reason: format!("feedgate is busy, please try again in {retry_after_s} s."),
            field: None,
            retry_after_s: Some(retry_after_s),
        }
    }

    /// Returns the rejection with `prefix` before its reason.
    pub(crate) fn prefixed(self, prefix: &str) -> Rejection {
        let reason = format!("{prefix}{}", self.reason);
        Rejection { reason, ..self }
    }

    /// Returns the rejection with the number of seconds after which the request may be repeated.
    pub(crate) fn with_retry_after(self, retry_after_s: u64) -> Rejection {
        Rejection { retry_after_s: Some(retry_after_s), ..self }
    }

    /// Returns the rejection with the exact reason, as a word.
    pub(crate) fn with_code(self, code: &'static str) -> Rejection {
        Rejection { detail_code: Some(code), ..self }
    }

    /// Returns the rejection with the name of the field or the parameter that has to be corrected.
    pub(crate) fn with_field(self, field: impl Into<String>) -> Rejection {
        Rejection { field: Some(field.into()), ..self }
    }

    /// Returns the kind of the rejection.
    pub(crate) fn code(&self) -> RejectionCode {
        self.code
    }

    /// Returns the exact reason as a word, or else the kind of the rejection.
    pub(crate) fn exact_code(&self) -> &'static str {
        self.detail_code.unwrap_or(self.code.as_str())
    }

    /// Returns the status code of HTTP.
    pub(crate) fn status(&self) -> StatusCode {
        self.status
    }

    /// Returns the number of seconds after which the request may be repeated, if it is known.
    pub(crate) fn retry_after_s(&self) -> Option<u64> {
        self.retry_after_s
    }

    /// Returns the reason, as a sentence for people.
    pub(crate) fn reason(&self) -> &str {
        &self.reason
    }

    /// Returns the reply of an endpoint that speaks plain HTTP.
    pub(crate) fn to_response(&self) -> Response {
        self.set_retry_after(plain_text(self.status, &self.reason))
    }

    /// Returns the reply to `request`: a problem document with a code for programs (RFC 9457) if it
    /// accepts JSON or is a call of the REST API, and the sentence alone if not.
    pub(crate) fn to_response_for(&self, request: &Request) -> Response {
        if !request.is_rest() && !accepts_json(request) {
            return self.to_response();
        }
        let mut problem = json!({
            "type": format!("{}/errors/{}", request.public_url, self.exact_code()),
            "title": self.status.canonical_reason().unwrap_or_default(),
            "status": self.status.as_u16(),
            "detail": self.reason,
            "code": self.exact_code(),
        });
        if let Some(field) = &self.field {
            problem["field"] = field.as_str().into();
        }
        // The text in place of which the document is sent has the headers of its status.
        let (mut parts, _) = self.to_response().into_parts();
        parts.headers.remove(header::CONTENT_LENGTH);
        let mut response = Response::from_parts(parts, problem.to_string().into());
        set_header(&mut response, header::CONTENT_TYPE, PROBLEM);
        set_header(&mut response, header::VARY, "Accept");
        response
    }

    /// Adds `Retry-After` to the response: the time after which the request may be repeated, if it is
    /// known.
    pub(crate) fn set_retry_after(&self, mut reply: Response) -> Response {
        if let Some(wait_s) = self.retry_after_s {
            set_header(&mut reply, header::RETRY_AFTER, &wait_s.to_string());
        }
        reply
    }
}

/// Returns whether the client names JSON among the types that it accepts.
pub(crate) fn accepts_json(request: &Request) -> bool {
    let accept = request.header("accept").to_ascii_lowercase();
    let mut ranges = accept.split(',').map(|range| range.split_once(';').unwrap_or((range, "")));
    ranges.any(|(name, parameters)| {
        matches!(name.trim(), "application/json" | PROBLEM) && weight(parameters) > 0
    })
}

/// Returns the reply when the store fails, for endpoints that reject nothing else.
pub(crate) fn unavailable(err: &(dyn Error + 'static)) -> Response {
    Rejection::unavailable(err).to_response()
}
