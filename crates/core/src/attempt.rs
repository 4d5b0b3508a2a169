//! Attempts to deliver: what was sent to a callback, what it responded, and what follows.
//!
//! A recorded attempt contains no secret: whoever makes one removes the secrets of the subscription
//! and the credentials of its URLs from everything that is recorded. Attempts are for people who
//! investigate. No decision of the gateway depends on them, and some may be missing.

use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::record::Seq;
use crate::subscription::SubscriptionId;
use crate::words::words;

words! {
    /// What an attempt meant for its subscription.
    AttemptVerdict {
        /// The callback accepted the payload.
        Delivered = "delivered",
        /// The attempt failed.
        Failed = "failed",
        /// The callback ended the subscription.
        Ended = "ended",
    }
}

words! {
    /// What a payload contained.
    PayloadContent {
        /// The entries of records.
        Entries = "entries",
        /// The body of the resource, unchanged.
        Body = "body",
        /// The status of the resource, without entries.
        Status = "status",
        /// Only that the resource changed, as rssCloud notifies.
        Ping = "ping",
    }
}

/// A header of a request or a response.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeaderLine {
    /// The name in lower case.
    pub name: String,
    /// The value, without secrets.
    pub value: String,
}

/// The request of an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttemptedRequest {
    /// What the payload contained.
    pub content: PayloadContent,
    /// The first number that the payload covers: of a record, or of a body version if the cursor of
    /// the subscription counts those.
    pub first: Seq,
    /// The last number that the payload covers.
    pub last: Seq,
    /// The number of entries in the payload.
    pub entries: usize,
    /// The length of the body.
    pub body_bytes: usize,
    /// The media type of the body.
    pub content_type: String,
    /// The headers.
    pub headers: Vec<HeaderLine>,
}

/// The response to an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedResponse {
    /// The status code.
    pub status: u16,
    /// The headers.
    pub headers: Vec<HeaderLine>,
    /// The beginning of the body.
    pub body: Vec<u8>,
    /// Whether it came from a public address. If it did not, only the operator may read more of it
    /// than the status code (S13).
    pub is_public: bool,
}

impl RecordedResponse {
    /// Returns what may be shown: everything to the operator, and to others only the status code of
    /// a response that came from an address that is not public.
    #[must_use]
    pub fn visible_to(self, is_operator: bool) -> RecordedResponse {
        if self.is_public || is_operator {
            return self;
        }
        RecordedResponse { headers: Vec::new(), body: Vec::new(), ..self }
    }
}

/// One attempt to deliver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveryAttempt {
    /// The subscription.
    pub subscription: SubscriptionId,
    /// When it began.
    pub at: DateTime<Utc>,
    /// How long it took.
    pub took: Duration,
    /// What was sent.
    pub request: AttemptedRequest,
    /// What came back; `None` if there was no response.
    pub response: Option<RecordedResponse>,
    /// Why there was no response, in the words of the event log; empty if there was one.
    pub error: String,
    /// What it meant for the subscription.
    pub verdict: AttemptVerdict,
    /// The result as a code of the event log.
    pub code: String,
    /// When the delivery is retried; `None` if it is not, or only with the next change.
    pub next_attempt_at: Option<DateTime<Utc>>,
}

/// A stored attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredAttempt {
    /// The number. Later attempts of a subscription have greater ones.
    pub id: i64,
    /// The attempt.
    pub attempt: DeliveryAttempt,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s13_only_the_operator_reads_the_response_of_a_private_address() {
        let response = |is_public| RecordedResponse {
            status: 500,
            headers: vec![HeaderLine { name: "server".to_owned(), value: "router".to_owned() }],
            body: b"intranet".to_vec(),
            is_public,
        };
        let hidden = RecordedResponse { headers: vec![], body: vec![], ..response(false) };
        assert_eq!(response(false).visible_to(false), hidden);
        for (is_public, is_operator) in [(true, false), (false, true), (true, true)] {
            assert_eq!(response(is_public).visible_to(is_operator), response(is_public));
        }
    }
}
