//! What is recorded of one attempt: bounded, and without secrets.

use std::time::Duration;

use chrono::{DateTime, Utc};
use http::HeaderMap;
use http::header::CONTENT_TYPE;

use super::secret_remover::{self, SecretRemover};
use crate::jobs::deliver::compose::Payload;
use crate::jobs::deliver::message::WEBHOOK_ID;
use crate::jobs::deliver::verdict::{self, DeliveryVerdict};
use crate::net::{CallbackRequest, CallbackResponse, FetchError};
use feedgate_core::attempt::{
    AttemptVerdict, AttemptedRequest, DeliveryAttempt, HeaderLine, PayloadContent, RecordedResponse,
};
use feedgate_core::redaction;
use feedgate_core::subscription::Subscription;

/// The most headers that are kept of a message …
const MOST_HEADERS: usize = 32;
/// … and the most bytes of their names and values together.
const MOST_HEADER_BYTES: usize = 4 * 1_024;
/// The most bytes that are kept of the body of a response: enough for an error page's message.
const MOST_BODY_BYTES: usize = 4 * 1_024;

/// The maximum length of the reason why there was no response, in characters.
const MOST_ERROR_CHARS: usize = 500;

/// An attempt that ended.
#[derive(Clone, Copy, Debug)]
pub(in crate::jobs::deliver) struct EndedAttempt<'a> {
    /// The subscription before the attempt.
    pub(in crate::jobs::deliver) subscription: &'a Subscription,
    pub(in crate::jobs::deliver) payload: &'a Payload,
    pub(in crate::jobs::deliver) request: &'a CallbackRequest,
    pub(in crate::jobs::deliver) answer: &'a Result<CallbackResponse, FetchError>,
    pub(in crate::jobs::deliver) verdict: DeliveryVerdict,
    /// When it began.
    pub(in crate::jobs::deliver) at: DateTime<Utc>,
    pub(in crate::jobs::deliver) took: Duration,
}

impl EndedAttempt<'_> {
    /// Returns what is stored of the attempt.
    pub(super) fn record(&self) -> DeliveryAttempt {
        let secrets = SecretRemover::for_subscription(self.subscription);
        let (next_attempt_at, error) = match (self.verdict, self.answer) {
            (DeliveryVerdict::Failed(next), Err(err)) => (next, err.to_string()),
            (DeliveryVerdict::Failed(next), Ok(_)) => (next, String::new()),
            (DeliveryVerdict::Suspended, Err(err)) => (None, err.to_string()),
            (DeliveryVerdict::Suspended, Ok(_)) => (None, String::new()),
            (DeliveryVerdict::Delivered | DeliveryVerdict::Ended, _) => (None, String::new()),
        };
        DeliveryAttempt {
            subscription: self.subscription.id,
            at: self.at,
            took: self.took,
            request: self.request(&secrets),
            response: self.answer.as_ref().ok().map(|answer| response(answer, &secrets)),
            error: secrets.remove_from(&redaction::line(&error, MOST_ERROR_CHARS)),
            verdict: self.recorded_verdict(),
            code: verdict::result_code(self.answer).to_owned(),
            next_attempt_at,
        }
    }

    pub(super) fn recorded_verdict(&self) -> AttemptVerdict {
        match self.verdict {
            DeliveryVerdict::Delivered => AttemptVerdict::Delivered,
            DeliveryVerdict::Failed(_) | DeliveryVerdict::Suspended => AttemptVerdict::Failed,
            DeliveryVerdict::Ended => AttemptVerdict::Ended,
        }
    }

    fn request(&self, secrets: &SecretRemover) -> AttemptedRequest {
        let CallbackRequest { headers, body, .. } = self.request;
        let content_type = headers.get(CONTENT_TYPE).map(|value| value.as_bytes());
        AttemptedRequest {
            content: self.content(),
            first: self.payload.first,
            last: self.payload.last,
            entries: self.payload.entries,
            body_bytes: body.len(),
            content_type: String::from_utf8_lossy(content_type.unwrap_or_default()).into_owned(),
            headers: recorded_headers(headers, secrets),
        }
    }

    fn content(&self) -> PayloadContent {
        if self.subscription.protocol.is_rsscloud() {
            PayloadContent::Ping
        } else if self.payload.is_status_only() {
            PayloadContent::Status
        } else if self.payload.entries > 0 {
            PayloadContent::Entries
        } else {
            PayloadContent::Body
        }
    }
}

fn response(answer: &CallbackResponse, secrets: &SecretRemover) -> RecordedResponse {
    RecordedResponse {
        status: answer.status.as_u16(),
        headers: recorded_headers(&answer.headers, secrets),
        body: recorded_body(&answer.body, secrets),
        is_public: answer.is_public,
    }
}

/// Returns the beginning of a body, without secrets.
fn recorded_body(body: &[u8], secrets: &SecretRemover) -> Vec<u8> {
    let mut body = secrets.remove_from_bytes(body);
    body.truncate(MOST_BODY_BYTES);
    body
}

/// Returns headers of a message, without secrets and within the bounds of a record: those that do not fit
/// are left out, and `webhook-id`, by which the attempts of a delivery are found, comes first. Values of
/// headers that carry credentials or the state of a session are left out.
fn recorded_headers(headers: &HeaderMap, secrets: &SecretRemover) -> Vec<HeaderLine> {
    let (mut lines, mut bytes) = (Vec::new(), 0);
    let (id, others): (Vec<_>, Vec<_>) = headers.iter().partition(|(name, _)| *name == WEBHOOK_ID);
    for (name, value) in id.into_iter().chain(others).take(MOST_HEADERS) {
        let value = match secret_remover::is_credential(name) || value.is_sensitive() {
            true => secret_remover::REMOVED.to_owned(),
            false => secrets.remove_from(&String::from_utf8_lossy(value.as_bytes())),
        };
        let name = name.as_str().to_owned();
        if bytes + name.len() + value.len() > MOST_HEADER_BYTES {
            continue;
        }
        bytes += name.len() + value.len();
        lines.push(HeaderLine { name, value });
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::header::{AUTHORIZATION, COOKIE, SET_COOKIE};

    #[test]
    fn what_is_kept_of_a_message_is_bounded() {
        let none = SecretRemover::default();
        assert_eq!(recorded_body(&[b'x'; 9_000], &none).len(), MOST_BODY_BYTES);
        let mut many = HeaderMap::new();
        for n in 0..99 {
            many.append("x-many", n.into());
        }
        assert_eq!(recorded_headers(&many, &none).len(), MOST_HEADERS);
        let mut long = HeaderMap::new();
        for _ in 0..9 {
            long.append("x-long", "y".repeat(1_000).parse().unwrap());
        }
        long.append("x-short", "z".parse().unwrap());
        long.append(WEBHOOK_ID, "7-1-2".parse().unwrap());
        let lines = recorded_headers(&long, &none);
        let names: Vec<_> = lines.iter().map(|line| line.name.as_str()).collect();
        let want = ["webhook-id", "x-long", "x-long", "x-long", "x-long", "x-short"];
        assert_eq!(names, want, "the fifth long one does not fit");
    }

    #[test]
    fn values_of_headers_that_are_credentials_are_left_out() {
        let mut headers = HeaderMap::new();
        for name in [AUTHORIZATION, COOKIE, SET_COOKIE] {
            headers.insert(name, "opensesame".parse().unwrap());
        }
        headers.insert("x-request-id", "7".parse().unwrap());
        let lines = recorded_headers(&headers, &SecretRemover::default());
        assert_eq!(lines.len(), 4, "the names stay");
        for line in lines {
            let want = if line.name == "x-request-id" { "7" } else { "…" };
            assert_eq!(line.value, want, "{}", line.name);
        }
    }
}
