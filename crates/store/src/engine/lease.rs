//! The duration of a claim, the clock that measures it, and the token that identifies it.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use chrono::{DateTime, Utc};

use crate::engine::tx::Tx;
use feedgate_core::claim::ClaimToken;
use feedgate_core::ports::StoreError;

/// The clock that decides whether a claim has expired.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClaimClock {
    /// The clock of the database, so that a node whose clock is ahead does not take over valid
    /// claims. With SQLite it is the clock of the machine, which is that of the caller.
    #[default]
    Database,
    /// The time that the caller passes, for tests that simulate hours.
    Caller,
}

/// One claim of some jobs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClaimLease {
    /// The time by the clock of the caller; jobs that were due before it are claimed.
    pub(crate) now: DateTime<Utc>,
    /// The time by the clock that decides about claims; a claim that ends no later has expired.
    pub(crate) begins: DateTime<Utc>,
    /// The end of the claim, by the same clock as `begins`.
    pub(crate) ends: DateTime<Utc>,
    /// The token that distinguishes this claim from every other.
    pub(crate) token: ClaimToken,
}

/// The source of the leases of one process.
#[derive(Clone, Debug)]
pub(crate) struct Leases {
    clock: ClaimClock,
    last_token: Arc<AtomicI64>,
}

impl Leases {
    /// Creates leases whose tokens no other process has: they are counted from a random number.
    pub(crate) fn new(clock: ClaimClock) -> Leases {
        let random = RandomState::new().hash_one(std::process::id());
        let first = (random >> 2) as i64 + 1; // leaves room to count up
        Leases { clock, last_token: Arc::new(AtomicI64::new(first)) }
    }

    /// Returns a lease that lasts as long as from `now` to `until`.
    pub(crate) async fn lease(
        &self,
        tx: &Tx<'_>,
        now: DateTime<Utc>,
        until: DateTime<Utc>,
    ) -> Result<ClaimLease, StoreError> {
        let begins = self.claim_time(tx, now).await?;
        let token = ClaimToken(self.last_token.fetch_add(1, Ordering::Relaxed));
        Ok(ClaimLease { now, begins, ends: begins + (until - now), token })
    }

    /// Returns the time by the clock that decides about claims; `now` is that of the caller.
    pub(crate) async fn claim_time(
        &self,
        tx: &Tx<'_>,
        now: DateTime<Utc>,
    ) -> Result<DateTime<Utc>, StoreError> {
        const CLOCK: &str = "
            select cast(extract(epoch from statement_timestamp()) * 1000000 as bigint)";
        if self.clock == ClaimClock::Caller || !tx.is_shared() {
            return Ok(now);
        }
        tx.first(CLOCK, &[]).await?.map_or(Ok(now), |mut row| row.time())
    }
}
