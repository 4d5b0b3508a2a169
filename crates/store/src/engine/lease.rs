//! The duration of a claim, and the token that identifies it. All nodes have the same time, that of the clock of
//! the database, so a claim that has expired for one of them has expired for all.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use chrono::{DateTime, Utc};

use crate::clock::clock_moves::{ClockMoves, ClockStamp};
use feedgate_core::claim::ClaimToken;

/// One claim of some jobs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClaimLease {
    /// When it begins: jobs that were due before are claimed, and a claim that ends no later has expired.
    pub(crate) now: DateTime<Utc>,
    /// When it ends.
    pub(crate) ends: DateTime<Utc>,
    /// The token that distinguishes this claim from every other.
    pub(crate) token: ClaimToken,
    /// The clock by which it begins and ends.
    pub(crate) clock: ClockStamp,
}

/// The source of the leases of one process.
#[derive(Clone, Debug)]
pub(crate) struct Leases {
    first_token: i64,
    last_token: Arc<AtomicI64>,
    clock_moves: ClockMoves,
}

impl Leases {
    /// Creates leases whose tokens no other process has: they are counted from a random number.
    pub(crate) fn new(clock_moves: &ClockMoves) -> Leases {
        let random = RandomState::new().hash_one(std::process::id());
        let first = (random >> 2) as i64 + 1; // leaves room to count up
        let last_token = Arc::new(AtomicI64::new(first));
        Leases { first_token: first, last_token, clock_moves: clock_moves.clone() }
    }

    /// Returns whether a token is of this process.
    pub(crate) fn is_own(&self, token: ClaimToken) -> bool {
        (self.first_token..self.last_token.load(Ordering::Relaxed)).contains(&token.0)
    }

    /// Returns a lease from `now`, which was read just before, to `until`.
    pub(crate) fn lease(&self, now: DateTime<Utc>, until: DateTime<Utc>) -> ClaimLease {
        let token = ClaimToken(self.last_token.fetch_add(1, Ordering::Relaxed));
        ClaimLease { now, ends: until, token, clock: self.clock_moves.stamp() }
    }
}
