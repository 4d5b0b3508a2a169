//! What is read and kept of the attempts to deliver.

use chrono::{DateTime, Utc};

/// The attempts of a subscription to read, newest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttemptRange {
    /// Only attempts before this one; `None` begins with the newest.
    pub before: Option<i64>,
    /// The maximum number of attempts.
    pub limit: usize,
}

/// How many attempts are kept, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttemptRetention {
    /// Attempts that began before this are deleted.
    pub since: DateTime<Utc>,
    /// The most attempts of all subscriptions. Several cells each keep their part of them.
    pub most: usize,
}
