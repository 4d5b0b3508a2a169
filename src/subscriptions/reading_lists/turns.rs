//! Whose reading lists are read next. An account has one list read at a time, and the next one after each other
//! account with due lists has had one read: whoever follows few lists does not wait for all of those who follow
//! many.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::jobs::runner::{HostPermit, HostPermits};
use feedgate_core::reading_list::DueReadingList;
use feedgate_core::store::ClaimLimits;

/// The lists of an account that this node reads at the same time.
const PER_ACCOUNT: usize = 1;

/// The turns of the accounts whose reading lists are due.
#[derive(Debug)]
pub(super) struct ReadingListTurns {
    permits: HostPermits,
    /// The accounts that have had a turn in this round.
    had_turn: Mutex<HashSet<String>>,
}

impl ReadingListTurns {
    /// Creates turns. `freed` is notified when an account may have another list read.
    pub(super) fn new(freed: Arc<Notify>) -> ReadingListTurns {
        let permits = HostPermits::new(PER_ACCOUNT, freed);
        ReadingListTurns { permits, had_turn: Mutex::default() }
    }

    /// Returns the limits of the next claim: `limit` lists in all, and none of accounts that have had a turn.
    pub(super) fn claim_limits(&self, limit: usize) -> ClaimLimits {
        let mut limits = self.permits.claim_limits(limit);
        limits.busy.extend(self.had_turn().iter().cloned());
        limits
    }

    /// Begins the next round, because no list of an account is due that has had no turn. Returns `false` if no
    /// account has had one.
    pub(super) fn begin_round(&self) -> bool {
        let had_turn = std::mem::take(&mut *self.had_turn());
        !had_turn.is_empty()
    }

    /// Begins the turn of the account whose list was claimed.
    pub(super) fn begin_turn(&self, due: &DueReadingList) -> HostPermit {
        self.had_turn().insert(due.owner());
        self.permits.acquire(due.owner())
    }

    fn had_turn(&self) -> MutexGuard<'_, HashSet<String>> {
        self.had_turn.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
