//! The parameters of a request, read from wherever this door takes them.

use http::{StatusCode, header};
use warp::reply::Response;

use crate::http::kit::exchange::{Asked, plain, set};
use feedgate_protocol::form::{BadForm, Form};
use feedgate_protocol::multipart;

/// What bodies a door reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bodies {
    /// Only urlencoded forms, as WebSub says (`#subscriber-sends-subscription-request`).
    Forms,
    /// Multipart and JSON as well (rows ).
    Any,
    /// And text/plain, which browsers send when a page forgets to say: rssCloud's
    /// callers often do.
    Sloppy,
}

/// Why a request could not be taken, in the words of HTTP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refused {
    /// The status code.
    pub(crate) status: StatusCode,
    /// A sentence that says what was wrong.
    pub(crate) why: String,
    /// After how long it could be taken, in seconds, where that is known.
    pub(crate) retry_after_s: Option<u64>,
}

impl Refused {
    /// With this code and sentence.
    pub(crate) fn new(status: StatusCode, why: impl Into<String>) -> Refused {
        Refused { status, why: why.into(), retry_after_s: None }
    }

    /// The plain reply.
    pub(crate) fn reply(&self) -> Response {
        let mut reply = plain(self.status, &self.why);
        if let Some(wait_s) = self.retry_after_s {
            set(&mut reply, header::RETRY_AFTER, &wait_s.to_string());
        }
        reply
    }
}

/// The parameters of the body, then those of the query.
pub(crate) fn read(asked: &Asked, bodies: Bodies) -> Result<Form, Refused> {
    let query = Form::from_urlencoded(asked.query.as_bytes()).map_err(unreadable)?;
    if asked.body.is_empty() {
        return Ok(query);
    }
    let media_type = asked.media_type();
    let body = match media_type.as_str() {
        "" | "application/x-www-form-urlencoded" => Form::from_urlencoded(&asked.body),
        "text/plain" if bodies == Bodies::Sloppy => Form::from_urlencoded(asked.body.trim_ascii()),
        "multipart/form-data" if bodies != Bodies::Forms => {
            multipart::read(asked.header("content-type"), &asked.body)
        }
        "application/json" if bodies != Bodies::Forms => Form::from_json(&asked.body),
        _ => {
            let why =
                format!("The body must be application/x-www-form-urlencoded, it is {media_type}.");
            return Err(Refused::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, why));
        }
    };
    Ok(body.map_err(unreadable)?.and(query))
}

fn unreadable(err: BadForm) -> Refused {
    let status = match err {
        BadForm::TooMany => StatusCode::PAYLOAD_TOO_LARGE,
        BadForm::Json(_) | BadForm::Multipart(_) => StatusCode::BAD_REQUEST,
    };
    Refused::new(status, format!("Cannot read the parameters: {err}."))
}
