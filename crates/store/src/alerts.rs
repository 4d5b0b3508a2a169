//! Alerts: the address of each account, what it was told, and the difference between that and what is so now.
//!
//! Nothing is queued. What was told of a subscription is in its row, so that a partial index has exactly the
//! subscriptions of which something else was told; of feeds, the time up to which they were told is in the row
//! of the address. The addresses lie in the shared schema, subscriptions and feeds in their cells. What was
//! told is stored cell by cell and the address last: after a crash in between, the rest is told again.

mod owed;

use chrono::{DateTime, Utc};

use crate::Store;
use crate::delivery::row::{callback, secret};
use crate::engine::claims::{ClaimedTable, readable};
use crate::engine::envelope::RowIdentity;
use crate::engine::row::Row;
use crate::engine::sql::params;
use feedgate_core::account::AccountId;
use feedgate_core::alert::{
    AlertAddress, AlertAddressState, AlertAttempt, AlertKind, SPACING, ToldAlerts,
};
use feedgate_core::claim::ClaimToken;
use feedgate_core::store::StoreError;
use feedgate_core::topic::Callback;

/// The column with the secrets.
pub(crate) const SECRET: &str = "alert_addresses.secret";

/// The columns of an address behind its account, as [`read`] reads them.
macro_rules! address_columns {
    () => {
        ", claim_token, url, secret, kinds,
         (select a.login from accounts a
           where a.id = alert_addresses.account_id and a.removed_at is null and a.deactivated_at is null),
         created_at, feeds_told_until, is_quota_told, failures, attempted_at, attempt_code, due_at"
    };
}

/// The claims of alert addresses.
const ADDRESSES: ClaimedTable<1> = ClaimedTable {
    columns: address_columns!(),
    ..ClaimedTable::new("alert_addresses", ["account_id"])
};

/// Alert addresses.
impl Store {
    /// Returns the alert address of an account.
    pub async fn alert_address(
        &self,
        account: AccountId,
    ) -> Result<Option<AlertAddressState>, StoreError> {
        const FIND: &str = concat!(
            "select account_id",
            address_columns!(),
            " from alert_addresses where account_id = $1"
        );
        let found = self.shared.rows(FIND, params![account.0]).await?.into_iter().next();
        found.map(|mut row| read(row.int()?, row)).transpose()
    }

    /// Stores the alert address of an account, and looks for alerts at once, or when the time between two
    /// requests is over. What was told to another address before is not told again.
    pub async fn set_alert_address(
        &self,
        address: &AlertAddress,
        now: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        // An attempt in progress is to the address before: its result does not count.
        const SET: &str = "
            insert into alert_addresses (account_id, url, secret, kinds, created_at, feeds_told_until, due_at)
            values ($1, $2, $3, $4, $5, $5, $5)
                on conflict (account_id) do update
               set url = excluded.url, secret = excluded.secret, kinds = excluded.kinds, failures = 0,
                   claim_token = 0,
                   due_at = case when alert_addresses.claim_token <> 0 or alert_addresses.attempted_at > $6
                                 then cast($7 as bigint) else excluded.due_at end";
        let AlertAddress { account, callback, secret, kinds } = address.clone();
        let stored = self.shared.write(move |tx| {
            Box::pin(async move {
                let secret = secret.as_ref().map(|secret| secret.expose());
                let secret = tx.seal(SECRET, &identity(&callback), secret)?;
                let kinds = AlertKind::to_words(&kinds);
                #[rustfmt::skip]
                let values = params![
                    account.0, callback.as_str(), secret, kinds, now, now - SPACING, now + SPACING,
                ];
                tx.execute(SET, values).await
            })
        });
        stored.await.map(drop)
    }

    /// Deletes the alert address of an account. Returns whether there was one.
    pub async fn delete_alert_address(&self, account: AccountId) -> Result<bool, StoreError> {
        const DELETE: &str = "delete from alert_addresses where account_id = $1";
        let deleted = self
            .shared
            .write(move |tx| Box::pin(async move { tx.execute(DELETE, params![account.0]).await }));
        Ok(deleted.await? > 0)
    }

    /// Claims up to `limit` alert addresses that are due at `now`, until `until`.
    pub async fn claim_alert_addresses(
        &self,
        now: DateTime<Utc>,
        until: DateTime<Utc>,
        limit: usize,
    ) -> Result<Vec<AlertAddressState>, StoreError> {
        let lease = self.shared.claims.lease(now, until);
        let claimed = self.shared.write(move |tx| {
            Box::pin(async move { ADDRESSES.claim_due(tx, lease, &[], limit).await })
        });
        let claimed = claimed.await?.into_iter();
        Ok(claimed.filter_map(|([account], row)| readable(read(account, row))).collect())
    }

    /// Extends those of `claims` that were not lost to `until`, and returns their accounts.
    pub async fn renew_alert_claims(
        &self,
        claims: &[(AccountId, ClaimToken)],
        until: DateTime<Utc>,
    ) -> Result<Vec<AccountId>, StoreError> {
        let claims: Vec<_> = claims.iter().map(|(account, token)| ([account.0], *token)).collect();
        let renewed = self
            .shared
            .write(move |tx| Box::pin(async move { ADDRESSES.renew(tx, claims, until).await }));
        Ok(renewed.await?.into_iter().map(|[account]| AccountId(account)).collect())
    }

    /// Stores that the account was told this, in one attempt if there was something to tell, and when to look
    /// for alerts again. If the claim was lost, that time does not change.
    pub async fn record_alerts_told(
        &self,
        state: &AlertAddressState,
        told: ToldAlerts,
        attempt: Option<AlertAttempt>,
        due_at: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        const TOLD: &str = "
            update alert_addresses
               set claim_token = 0, failures = 0, due_at = $3, feeds_told_until = feeds_told_until + $4,
                   is_quota_told = $5,
                   attempted_at = coalesce($6, attempted_at), attempt_code = coalesce($7, attempt_code)
             where account_id = $1 and claim_token = $2";
        self.mark_subscriptions_told(told.subscriptions).await?;
        let (account, claim) = (state.address.account.0, state.claim.0);
        // By how much: the time itself moves if the clock is set while alerts are sent.
        let further = told.feeds_until - state.feeds_told_until;
        let (further, is_quota_told) =
            (further.num_microseconds().unwrap_or(0), told.is_quota_near);
        let recorded = self.shared.write(move |tx| {
            Box::pin(async move {
                let (at, code) = attempt.map(|attempt| (attempt.at, attempt.code)).unzip();
                let values =
                    params![account, claim, tx.at(due_at), further, is_quota_told, at, code];
                tx.execute(TOLD, values).await
            })
        });
        recorded.await.map(drop)
    }

    /// Stores that an attempt has failed, and when it is retried. If the claim was lost, nothing changes.
    pub async fn record_alerts_failed(
        &self,
        state: &AlertAddressState,
        attempt: AlertAttempt,
        retry_at: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        const FAILED: &str = "
            update alert_addresses
               set claim_token = 0, failures = failures + 1, due_at = $3, attempted_at = $4,
                   attempt_code = $5
             where account_id = $1 and claim_token = $2";
        let (account, claim) = (state.address.account.0, state.claim.0);
        let recorded = self.shared.write(move |tx| {
            Box::pin(async move {
                let values = params![account, claim, tx.at(retry_at), attempt.at, attempt.code];
                tx.execute(FAILED, values).await
            })
        });
        recorded.await.map(drop)
    }

    /// Ends a claim of an address to which nothing was sent.
    pub async fn release_alert_address(
        &self,
        state: &AlertAddressState,
        due_at: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        let claimed = ([state.address.account.0], state.claim);
        let released =
            self.shared.write(move |tx| Box::pin(ADDRESSES.release(tx, claimed, due_at, "")));
        released.await.map(drop)
    }
}

/// Returns what identifies the row with this address, but for the number of its account, which an import changes.
pub(crate) fn identity(address: &Callback) -> RowIdentity {
    RowIdentity::new(&[address.as_str()])
}

fn read(account: i64, mut row: Row) -> Result<AlertAddressState, StoreError> {
    let claim = ClaimToken(row.int()?);
    let callback = callback(&mut row)?;
    let secret = secret(&mut row, SECRET, || identity(&callback))?;
    let address = AlertAddress {
        account: AccountId(account),
        callback,
        secret,
        kinds: row.word(AlertKind::from_words)?,
    };
    let (login, created_at, feeds_told_until) = (row.opt_text()?, row.time()?, row.time()?);
    let (is_quota_told, failures) = (row.int()? != 0, row.small()?);
    let (attempted_at, code, due_at) = (row.opt_time()?, row.text()?, row.time()?);
    let last_attempt = attempted_at.map(|at| AlertAttempt { at, code });
    #[rustfmt::skip]
    let state = AlertAddressState {
        address, login, claim, created_at, feeds_told_until, is_quota_told, failures, last_attempt, due_at,
    };
    Ok(state)
}
