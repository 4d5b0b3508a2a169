//! The turns of accounts at claims of deliveries (rule D16).
//!
//! Due deliveries are claimed in the order in which they became due, so that an account with a hundred
//! thousand of them would let the single one of another account wait behind them all. While more is
//! due than is claimed together, a part of each claim is for the next few accounts in turn, each with
//! its own longest due deliveries. Open subscriptions have no account and share the rest.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use crate::engine::claims::searched_queue::HostLimitedSearch;
use crate::engine::lease::ClaimLease;
use crate::engine::sql::params;
use crate::engine::tx::Tx;
use feedgate_core::store::StoreError;

/// The accounts that have a turn in one claim.
const ACCOUNTS: usize = 8;
/// The part of a claim that is for the turns of accounts: one in so many.
const SHARE: usize = 4;
/// If other nodes serve some of the hosts, so many times as much is read at most.
const MOST_NODES: usize = 8;

/// Whose turn it is.
#[derive(Debug, Default)]
pub(crate) struct AccountTurns {
    /// The account that had the last turn; 0: the first one is next.
    last: AtomicI64,
    /// Whether the last claim left due deliveries behind.
    has_backlog: AtomicBool,
}

impl AccountTurns {
    /// Notes whether a claim left due deliveries behind.
    pub(super) fn note_backlog(&self, has_backlog: bool) {
        self.has_backlog.store(has_backlog, Ordering::Relaxed);
    }

    /// Picks due deliveries of the accounts whose turn it is, some of which `nodes` share.
    pub(super) async fn pick(
        &self,
        tx: &Tx<'_>,
        lease: ClaimLease,
        search: &mut HostLimitedSearch,
        nodes: usize,
    ) -> Result<(), StoreError> {
        const NEXT: &str = "
            select account_id from backlogs {sqlite indexed by backlogs_account}
             where account_id > $1 and account_id <> 0
             order by account_id limit 1";
        const DUE: &str = "
            select resource_id, number, host, due_at, size
              from backlogs {sqlite indexed by backlogs_account}
             where account_id = $1 and account_id <> 0 and due_at <= $2
             order by due_at, number
             limit $3";
        if !self.has_backlog.load(Ordering::Relaxed) {
            return Ok(());
        }
        let share = search.limit() / SHARE;
        let portion = (share / ACCOUNTS).max(1);
        let rows_read = portion * nodes.min(MOST_NODES);
        let mut account = self.last.load(Ordering::Relaxed);
        for _ in 0..ACCOUNTS.min(share) {
            let next = tx.first(NEXT, params![account]).await?;
            account = next.map_or(Ok(0), |mut row| row.int())?;
            if account == 0 {
                break; // the next claim begins with the first account again
            }
            let enough = search.count + portion;
            for row in tx.query(DUE, params![account, lease.now, rows_read as i64]).await? {
                search.consider_part(row, enough.saturating_sub(search.count))?;
            }
        }
        self.last.store(account, Ordering::Relaxed);
        Ok(())
    }
}
