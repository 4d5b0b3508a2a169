//! Requests that a client may repeat: of two with the same key, one is carried out, and both get its answer.

use chrono::TimeDelta;

use crate::account::AccountId;

/// How long an answer is kept for clients that repeat their request.
pub const ANSWER_KEPT: TimeDelta = TimeDelta::hours(24);
/// How long ago the claim of a request was renewed at the latest: one that is older was lost with its node,
/// and the request may be repeated.
pub const LONGEST_SILENCE: TimeDelta = TimeDelta::seconds(60);
/// The most keys of one account; the oldest give way.
pub const MOST_KEYS: usize = 1_000;

/// A key that a client has chosen for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdempotencyKey {
    /// The account, whose keys are its own.
    pub account: AccountId,
    /// The SHA-256 of the key.
    pub key: [u8; 32],
    /// The SHA-256 of the request: its method, path and body.
    pub request: [u8; 32],
}

/// The answer to a request with a key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IdempotentAnswer {
    /// The status code of HTTP.
    pub status: u16,
    /// The value of `Location`; empty if there is none.
    pub location: String,
    /// The body, in JSON; empty if there is none.
    pub body: String,
}

/// What becomes of a request with a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IdempotencyClaim {
    /// The request is to be carried out.
    Begun,
    /// A request with this key and this content is being carried out.
    InProgress,
    /// The key was used for another request.
    OtherRequest,
    /// A request with this key and this content was answered.
    Answered(IdempotentAnswer),
}
