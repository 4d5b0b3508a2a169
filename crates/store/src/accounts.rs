//! Accounts, their tokens and their passwords.

mod account_list;
mod authentication;
mod deactivation;
mod sessions;
pub(crate) mod stored_files;
mod tokens;

use chrono::{DateTime, TimeDelta, Utc};

use super::engine::sql::params;
use super::engine::tx::Tx;
use crate::accounts::tokens::token_info;
use crate::log::row::most;
use crate::{Db, Store};
use feedgate_core::account::{
    AccountHoldings, AccountId, ChildTokenOutcome, NewToken, TokenId, TokenInfo,
};
use feedgate_core::password::PasswordHash;
use feedgate_core::store::StoreError;

/// How exact the time is stored when a token or a session was last used, so that few requests write.
pub(crate) const USE_RECORDED_EVERY: TimeDelta = TimeDelta::hours(1);

/// Accounts and their tokens.
impl Store {
    /// Stores a token, and creates its account if necessary. Returns the number of the token. Fails
    /// with [`StoreError::AccountRemoved`] if the account was removed.
    pub async fn create_token(
        &self,
        token: &NewToken,
        now: DateTime<Utc>,
    ) -> Result<i64, StoreError> {
        let token = token.clone();
        self.shared.write(move |tx| Box::pin(tokens::create(tx, token, None, now))).await
    }

    /// Stores a token that was created with the token `parent`, with which it is revoked. Tokens of the
    /// account that have ended are deleted if there are too many.
    pub async fn create_child_token(
        &self,
        token: &NewToken,
        parent: TokenId,
        now: DateTime<Utc>,
    ) -> Result<ChildTokenOutcome, StoreError> {
        let token = token.clone();
        self.shared.write(move |tx| Box::pin(tokens::create_child(tx, token, parent, now))).await
    }

    /// Returns all tokens, oldest first.
    pub async fn list_tokens(&self) -> Result<Vec<TokenInfo>, StoreError> {
        const ALL: &str = "
            select t.id, a.login, t.name, t.scopes, t.manages_tokens, t.created_at, t.revoked_at,
                   t.expires_at, t.used_at, t.parent_id
              from tokens t
              join accounts a on a.id = t.account_id
             order by t.id";
        let rows = self.shared.rows(ALL, &[]).await?;
        rows.into_iter().map(token_info).collect()
    }

    /// Returns up to `limit` tokens of an account whose numbers are greater than `after`, oldest first.
    pub async fn tokens_after(
        &self,
        account: AccountId,
        after: i64,
        limit: usize,
    ) -> Result<Vec<TokenInfo>, StoreError> {
        const PAGE: &str = "
            select t.id, a.login, t.name, t.scopes, t.manages_tokens, t.created_at, t.revoked_at,
                   t.expires_at, t.used_at, t.parent_id
              from tokens t
              join accounts a on a.id = t.account_id
             where t.account_id = $1 and t.id > $2 order by t.id limit $3";
        let rows = self.shared.rows(PAGE, params![account.0, after, most(limit)]).await?;
        rows.into_iter().map(token_info).collect()
    }

    /// Returns the tokens of an account, oldest first.
    pub async fn tokens_of(&self, login: &str) -> Result<Vec<TokenInfo>, StoreError> {
        const OF_ACCOUNT: &str = "
            select t.id, a.login, t.name, t.scopes, t.manages_tokens, t.created_at, t.revoked_at,
                   t.expires_at, t.used_at, t.parent_id
              from tokens t
              join accounts a on a.id = t.account_id
             where a.login = $1 order by t.id";
        let rows = self.shared.rows(OF_ACCOUNT, params![login]).await?;
        rows.into_iter().map(token_info).collect()
    }

    /// Revokes a token, and those that were created with it; `false` if there is no active token with this number.
    pub async fn revoke_token(&self, id: i64, now: DateTime<Utc>) -> Result<bool, StoreError> {
        self.shared.write(move |tx| Box::pin(tokens::revoke(tx, id, now))).await
    }

    /// Creates an account with a password; `false` if the login exists. Fails with
    /// [`StoreError::AccountRemoved`] if an account with the login was removed.
    pub async fn create_account(
        &self,
        login: &str,
        password: &PasswordHash,
        now: DateTime<Utc>,
    ) -> Result<bool, StoreError> {
        let (login, password) = (login.to_owned(), password.clone());
        self.shared.write(move |tx| Box::pin(create_account(tx, login, password, now))).await
    }

    /// Changes the password of an account; `false` if there is no such account.
    pub async fn set_password(
        &self,
        login: &str,
        password: &PasswordHash,
    ) -> Result<bool, StoreError> {
        const SET: &str =
            "update accounts set password_hash = $2 where login = $1 and removed_at is null";
        let params = [login.into(), password.as_str().into()];
        let set =
            self.shared.write(move |tx| Box::pin(async move { tx.execute(SET, &params).await }));
        Ok(set.await? > 0)
    }

    /// Returns the account with this login and its password hash, if it has a password.
    pub async fn password(
        &self,
        login: &str,
    ) -> Result<Option<(AccountId, PasswordHash)>, StoreError> {
        const KEPT: &str = "
            select id, password_hash from accounts
             where login = $1 and password_hash is not null";
        if is_nobodys(login) {
            return Ok(None);
        }
        let params = [login.into()];
        let found =
            self.shared.read(move |tx| Box::pin(async move { tx.first(KEPT, &params).await }));
        let Some(mut row) = found.await? else { return Ok(None) };
        let (id, kept) = (AccountId(row.int()?), row.text()?);
        let kept = PasswordHash::kept(kept);
        let kept =
            kept.ok_or_else(|| StoreError::Corrupt("a password hash is not valid".to_owned()));
        Ok(Some((id, kept?)))
    }

    /// Returns what an account owns; `None` if there is no such account, or it was removed.
    pub async fn account_holdings(
        &self,
        login: &str,
    ) -> Result<Option<AccountHoldings>, StoreError> {
        let Some((account, mut holdings)) = self.shared.holdings(login).await? else {
            return Ok(None);
        };
        holdings.subscriptions = self.sum(|db| db.count_subscriptions(account)).await?;
        Ok(Some(holdings))
    }

    /// Removes an account: its password, its tokens with those that were created with them, its files, and its subscriptions with their
    /// secrets are deleted. Nobody can use its login again. Returns what was deleted; `None` if
    /// there is no such account.
    pub async fn remove_account(
        &self,
        login: &str,
        now: DateTime<Utc>,
    ) -> Result<Option<AccountHoldings>, StoreError> {
        // If this is interrupted afterwards, `drop_ownerless` deletes what is left: others cannot wait for
        // one transaction with all of it.
        let Some((account, tokens)) = self.shared.remove_owner(login, now).await? else {
            return Ok(None);
        };
        let files = self.shared.delete_files(account).await?;
        self.shared.delete_traffic(account).await?;
        let subscriptions = self.sum(|db| db.end_subscriptions(account)).await?;
        Ok(Some(AccountHoldings { subscriptions, tokens, files }))
    }

    /// Deactivates an account: its credentials are refused, and its subscriptions are paused. May be
    /// repeated. Returns how many subscriptions were paused; `None` if there is no such account.
    pub async fn deactivate_account(
        &self,
        login: &str,
        now: DateTime<Utc>,
    ) -> Result<Option<u64>, StoreError> {
        // If this is interrupted afterwards, `pause_deactivated` pauses the subscriptions that are left.
        match self.shared.deactivate_owner(login, now).await? {
            Some(account) => self.sum(|db| db.pause_owned(account)).await.map(Some),
            None => Ok(None),
        }
    }

    /// Activates an account, and resumes the subscriptions that were paused when it was deactivated,
    /// but not those that their owner had paused. Returns how many were resumed; `None` if there is
    /// no such account.
    pub async fn activate_account(
        &self,
        login: &str,
        now: DateTime<Utc>,
    ) -> Result<Option<u64>, StoreError> {
        let Some(account) = self.shared.deactivated_account(login).await? else {
            return Ok(self.shared.holdings(login).await?.map(|_| 0));
        };
        let resumed = self.sum(|db| db.resume_owned(account, now)).await?;
        self.shared.activate_owner(account).await?;
        // A subscription may have been verified, and paused, in the meantime.
        Ok(Some(resumed + self.sum(|db| db.resume_owned(account, now)).await?))
    }

    /// Returns whether the account with this number is deactivated and not removed.
    pub async fn is_account_deactivated(&self, account: AccountId) -> Result<bool, StoreError> {
        const STATE: &str = "select deactivated_at, removed_at from accounts where id = $1";
        let found = self.shared.rows(STATE, params![account.0]).await?.into_iter().next();
        let Some(mut row) = found else { return Ok(false) };
        Ok(row.opt_time()?.is_some() && row.opt_time()?.is_none())
    }

    /// Returns whether an account is deactivated; for a login with a correct password.
    pub async fn is_deactivated(&self, login: &str) -> Result<bool, StoreError> {
        Ok(self.shared.deactivated_account(login).await?.is_some())
    }
}

/// The steps of removing an account, for stores in which accounts and subscriptions lie apart.
impl Db {
    /// Returns an account and what it owns, without its subscriptions.
    pub(crate) async fn holdings(
        &self,
        login: &str,
    ) -> Result<Option<(AccountId, AccountHoldings)>, StoreError> {
        const HELD: &str = "
            select a.id,
                   (select count(*) from tokens t
                     where t.account_id = a.id and t.revoked_at is null),
                   (select count(*) from stored_files f where f.account_id = a.id)
              from accounts a
             where a.login = $1 and a.removed_at is null";
        if is_nobodys(login) {
            return Ok(None);
        }
        let Some(mut row) = self.rows(HELD, params![login]).await?.into_iter().next() else {
            return Ok(None);
        };
        let account = AccountId(row.int()?);
        let (tokens, files) = (row.count()?, row.count()?);
        Ok(Some((account, AccountHoldings { subscriptions: 0, tokens, files })))
    }

    /// Returns how many subscriptions an account has.
    pub(crate) async fn count_subscriptions(&self, account: AccountId) -> Result<u64, StoreError> {
        const COUNT: &str = "select count(*) from subscriptions where account_id = $1";
        self.count(COUNT, params![account.0]).await
    }

    /// Removes an account with its password and its tokens. Returns how many tokens there were.
    pub(crate) async fn remove_owner(
        &self,
        login: &str,
        now: DateTime<Utc>,
    ) -> Result<Option<(AccountId, u64)>, StoreError> {
        let login = login.to_owned();
        self.write(move |tx| Box::pin(async move { remove_owner(tx, &login, now).await })).await
    }

    /// Ends all subscriptions of an account, some in each transaction. Returns how many there were.
    pub(crate) async fn end_subscriptions(&self, account: AccountId) -> Result<u64, StoreError> {
        let mut ended = 0;
        loop {
            let some = self.drop_owned(account).await?.len() as u64;
            ended += some;
            if some == 0 {
                return Ok(ended);
            }
        }
    }

    /// Returns the accounts that were removed after `since`, the last thousand at most.
    pub(crate) async fn removed_accounts(
        &self,
        since: DateTime<Utc>,
    ) -> Result<Vec<AccountId>, StoreError> {
        const REMOVED: &str = "
            select id from accounts where removed_at > $1 order by removed_at desc limit 1000";
        let rows = self.rows(REMOVED, params![since]).await?;
        rows.into_iter().map(|mut row| row.int().map(AccountId)).collect()
    }
}

async fn remove_owner(
    tx: &Tx<'_>,
    login: &str,
    now: DateTime<Utc>,
) -> Result<Option<(AccountId, u64)>, StoreError> {
    const ACCOUNT: &str = "
        update accounts set password_hash = null, removed_at = $2
         where login = $1 and removed_at is null
        returning id";
    const ALERTS: &str = "delete from alert_addresses where account_id = $1";
    if is_nobodys(login) {
        return Ok(None);
    }
    let Some(mut account) = tx.first(ACCOUNT, params![login, now]).await? else {
        return Ok(None);
    };
    let account = account.int()?;
    tx.execute(ALERTS, params![account]).await?;
    let tokens = tokens::revoke_all(tx, account, now).await?;
    Ok(Some((AccountId(account), tokens)))
}

/// Fails if an account with this login was removed.
pub(crate) async fn check_login(tx: &Tx<'_>, login: &str) -> Result<(), StoreError> {
    const REMOVED: &str =
        "select 1 from accounts where login = $1 and removed_at is not null {for share}";
    match tx.first(REMOVED, params![login]).await? {
        Some(_) => Err(StoreError::AccountRemoved(login.to_owned())),
        None => Ok(()),
    }
}

async fn create_account(
    tx: &Tx<'_>,
    login: String,
    password: PasswordHash,
    now: DateTime<Utc>,
) -> Result<bool, StoreError> {
    const MAKE: &str = "
        insert into accounts (login, password_hash, created_at) values ($1, $2, $3)
            on conflict (login) do nothing";
    check_login(tx, &login).await?;
    Ok(tx.execute(MAKE, params![login, password.as_str(), now]).await? > 0)
}

/// Returns whether a login contains U+0000, which PostgreSQL does not store: no account has it.
pub(crate) fn is_nobodys(login: &str) -> bool {
    login.contains('\0')
}
