//! Authentication of accounts by their tokens. A token is looked up by its hash, so that the time that
//! takes says nothing about it (rule S33).

use chrono::{DateTime, Utc};

use crate::Store;
use crate::accounts::tokens::access;
use crate::accounts::{USE_RECORDED_EVERY, is_nobodys};
use crate::engine::sql::params;
use feedgate_core::account::{Access, TokenHash};
use feedgate_core::store::StoreError;

impl Store {
    /// Returns the account and the scopes of the token with this hash, and records that it was used;
    /// `None` if the token is unknown, revoked or expired, or belongs to another account. Fails with
    /// [`StoreError::AccountDeactivated`] if the account is deactivated.
    pub async fn authenticate(
        &self,
        login: &str,
        hash: &TokenHash,
        now: DateTime<Utc>,
    ) -> Result<Option<Access>, StoreError> {
        match is_nobodys(login) {
            true => Ok(None),
            false => self.find_access(Some(login), hash, now).await,
        }
    }

    /// Returns the account and the scopes of the token with this hash, as
    /// [`authenticate`](Self::authenticate) does, whatever the login.
    pub async fn authenticate_bearer(
        &self,
        hash: &TokenHash,
        now: DateTime<Utc>,
    ) -> Result<Option<Access>, StoreError> {
        self.find_access(None, hash, now).await
    }

    async fn find_access(
        &self,
        login: Option<&str>,
        hash: &TokenHash,
        now: DateTime<Utc>,
    ) -> Result<Option<Access>, StoreError> {
        let db = &self.shared;
        const VALID: &str = "
            select a.id, a.login, t.scopes, t.manages_tokens, t.id, t.expires_at, a.deactivated_at,
                   t.used_at
              from tokens t
              join accounts a on a.id = t.account_id
             where t.hash = $1 and t.revoked_at is null
               and (t.expires_at is null or t.expires_at > $2) and a.removed_at is null";
        const USED: &str = "update tokens set used_at = $2 where id = $1";
        let found = db.rows(VALID, params![hash.0.to_vec(), now]).await?;
        let Some(mut row) = found.into_iter().next() else { return Ok(None) };
        let access = access(&mut row)?;
        if login.is_some_and(|login| login != access.login) {
            return Ok(None);
        }
        if row.opt_time()?.is_some() {
            return Err(StoreError::AccountDeactivated(access.login));
        }
        let (number, used_at) = (access.token.0, row.opt_time()?);
        if used_at.is_none_or(|at| now - at >= USE_RECORDED_EVERY) {
            let params = [number.into(), now.into()];
            db.write(move |tx| Box::pin(async move { tx.execute(USED, &params).await })).await?;
        }
        Ok(Some(access))
    }
}
