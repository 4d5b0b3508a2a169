//! The steps of deactivating and activating an account, for stores in which accounts and
//! subscriptions lie apart.
//!
//! Subscriptions are paused as they are by their owners (`delivery::pausing`), so that nothing that
//! they are owed is lost. Since when they are paused is since when their account is deactivated, which
//! distinguishes them from those that their owner has paused.

use chrono::{DateTime, Utc};

use super::is_nobodys;
use crate::Db;
use crate::delivery::pausing::{pause_batch, resume_batch};
use crate::engine::sql::params;
use feedgate_core::account::{AccountId, DeactivatedAccount};
use feedgate_core::store::StoreError;

impl Db {
    /// Marks an account as deactivated, unless it is already.
    pub(crate) async fn deactivate_owner(
        &self,
        login: &str,
        now: DateTime<Utc>,
    ) -> Result<Option<DeactivatedAccount>, StoreError> {
        const DEACTIVATE: &str = "
            update accounts set deactivated_at = coalesce(deactivated_at, $2)
             where login = $1 and removed_at is null
            returning id, deactivated_at";
        if is_nobodys(login) {
            return Ok(None);
        }
        let login = login.to_owned();
        let marked = self.write(move |tx| {
            Box::pin(async move { tx.first(DEACTIVATE, params![login, now]).await })
        });
        let Some(mut row) = marked.await? else { return Ok(None) };
        let id = AccountId(row.int()?);
        Ok(Some(DeactivatedAccount { id, since: row.time()? }))
    }

    /// Ends the mark of [`deactivate_owner`](Self::deactivate_owner).
    pub(crate) async fn activate_owner(
        &self,
        account: DeactivatedAccount,
    ) -> Result<(), StoreError> {
        const ACTIVATE: &str = "update accounts set deactivated_at = null where id = $1";
        let id = account.id.0;
        let marked =
            self.write(move |tx| Box::pin(async move { tx.execute(ACTIVATE, params![id]).await }));
        marked.await.map(drop)
    }

    /// Returns an account that is deactivated.
    pub(crate) async fn deactivated_account(
        &self,
        login: &str,
    ) -> Result<Option<DeactivatedAccount>, StoreError> {
        const STATE: &str = "
            select id, deactivated_at from accounts where login = $1 and removed_at is null";
        if is_nobodys(login) {
            return Ok(None);
        }
        let rows = self.rows(STATE, params![login]).await?;
        let Some(mut row) = rows.into_iter().next() else { return Ok(None) };
        let id = AccountId(row.int()?);
        Ok(row.opt_time()?.map(|since| DeactivatedAccount { id, since }))
    }

    /// Returns the accounts that were deactivated after `since`, the last thousand at most.
    pub(crate) async fn deactivated_accounts(
        &self,
        since: DateTime<Utc>,
    ) -> Result<Vec<DeactivatedAccount>, StoreError> {
        const DEACTIVATED: &str = "
            select id, deactivated_at from accounts
             where deactivated_at > $1 order by deactivated_at desc limit 1000";
        let rows = self.rows(DEACTIVATED, params![since]).await?;
        let accounts = rows.into_iter().map(|mut row| {
            let id = AccountId(row.int()?);
            Ok(DeactivatedAccount { id, since: row.time()? })
        });
        accounts.collect()
    }

    /// Pauses all subscriptions of a deactivated account. Returns how many were not paused before.
    pub(crate) async fn pause_owned(&self, account: DeactivatedAccount) -> Result<u64, StoreError> {
        let (mut paused, mut after) = (0, Some(0));
        while let Some(from) = after {
            let batch = self.write(move |tx| Box::pin(pause_batch(tx, account, from))).await?;
            (paused, after) = (paused + batch.changed, batch.next);
        }
        Ok(paused)
    }

    /// Resumes the subscriptions that were paused when their account was deactivated. Returns how
    /// many there were.
    pub(crate) async fn resume_owned(
        &self,
        account: DeactivatedAccount,
        now: DateTime<Utc>,
    ) -> Result<u64, StoreError> {
        let (mut resumed, mut after) = (0, Some(0));
        while let Some(from) = after {
            let batch =
                self.write(move |tx| Box::pin(resume_batch(tx, account, from, now))).await?;
            (resumed, after) = (resumed + batch.changed, batch.next);
        }
        Ok(resumed)
    }
}
