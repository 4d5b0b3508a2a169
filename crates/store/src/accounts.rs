//! Accounts, their tokens and their passwords.

pub(crate) mod stored_files;

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::engine::sql::{Row, params};
use super::engine::tx::Tx;
use crate::Db;
use feedgate_core::account::{
    Access, AccountId, AccountInfo, NewToken, Scopes, TokenHash, TokenInfo,
};
use feedgate_core::password::PasswordHash;
use feedgate_core::ports::{Accounts, StoreError};

#[async_trait]
impl Accounts for Db {
    async fn create_token(&self, token: &NewToken, now: DateTime<Utc>) -> Result<i64, StoreError> {
        let token = token.clone();
        self.write(move |tx| Box::pin(create_token(tx, token, now))).await
    }

    async fn authenticate(
        &self,
        login: &str,
        hash: &TokenHash,
    ) -> Result<Option<Access>, StoreError> {
        // Looked up by its hash, so that the time it takes says nothing (rule S33).
        const VALID: &str = "
            select a.id, a.login, t.scopes
              from tokens t
              join accounts a on a.id = t.account_id
             where t.hash = $1 and a.login = $2 and t.revoked_at is null";
        if is_nobodys(login) {
            return Ok(None);
        }
        let params = [hash.0.to_vec().into(), login.into()];
        let found = self.read(move |tx| Box::pin(async move { tx.first(VALID, &params).await }));
        let Some(mut row) = found.await? else { return Ok(None) };
        Ok(Some(Access {
            account: AccountId(row.int()?),
            login: row.text()?,
            scopes: scopes(&mut row)?,
        }))
    }

    async fn list_tokens(&self) -> Result<Vec<TokenInfo>, StoreError> {
        const ALL: &str = "
            select t.id, a.login, t.name, t.scopes, t.created_at, t.revoked_at
              from tokens t
              join accounts a on a.id = t.account_id
             order by t.id";
        let rows = self.read(|tx| Box::pin(tx.query(ALL, &[]))).await?;
        rows.into_iter().map(token_info).collect()
    }

    async fn revoke_token(&self, id: i64, now: DateTime<Utc>) -> Result<bool, StoreError> {
        const REVOKE: &str =
            "update tokens set revoked_at = $2 where id = $1 and revoked_at is null";
        let revoked = self
            .write(move |tx| Box::pin(async move { tx.execute(REVOKE, params![id, now]).await }));
        Ok(revoked.await? > 0)
    }

    async fn create_account(
        &self,
        login: &str,
        password: &PasswordHash,
        now: DateTime<Utc>,
    ) -> Result<bool, StoreError> {
        const MAKE: &str = "
            insert into accounts (login, password_hash, created_at) values ($1, $2, $3)
                on conflict (login) do nothing";
        let params = [login.into(), password.as_str().into(), now.into()];
        let made = self.write(move |tx| Box::pin(async move { tx.execute(MAKE, &params).await }));
        Ok(made.await? > 0)
    }

    async fn set_password(&self, login: &str, password: &PasswordHash) -> Result<bool, StoreError> {
        const SET: &str = "update accounts set password_hash = $2 where login = $1";
        let params = [login.into(), password.as_str().into()];
        let set = self.write(move |tx| Box::pin(async move { tx.execute(SET, &params).await }));
        Ok(set.await? > 0)
    }

    async fn password(&self, login: &str) -> Result<Option<(AccountId, PasswordHash)>, StoreError> {
        const KEPT: &str = "
            select id, password_hash from accounts
             where login = $1 and password_hash is not null";
        if is_nobodys(login) {
            return Ok(None);
        }
        let params = [login.into()];
        let found = self.read(move |tx| Box::pin(async move { tx.first(KEPT, &params).await }));
        let Some(mut row) = found.await? else { return Ok(None) };
        let (id, kept) = (AccountId(row.int()?), row.text()?);
        let kept = PasswordHash::kept(kept);
        let kept =
            kept.ok_or_else(|| StoreError::Corrupt("a password hash is not valid".to_owned()));
        Ok(Some((id, kept?)))
    }

    async fn list_accounts(&self) -> Result<Vec<AccountInfo>, StoreError> {
        const ALL: &str = "
            select a.login, a.created_at, case when a.password_hash is null then 0 else 1 end,
                   (select count(*) from tokens t
                     where t.account_id = a.id and t.revoked_at is null),
                   (select count(*) from stored_files f where f.account_id = a.id),
                   (select cast(coalesce(sum(f.bytes), 0) as bigint) from stored_files f
                     where f.account_id = a.id)
              from accounts a
             order by a.login";
        let rows = self.read(|tx| Box::pin(tx.query(ALL, &[]))).await?;
        rows.into_iter().map(account_info).collect()
    }

    async fn close_account(&self, login: &str, now: DateTime<Utc>) -> Result<bool, StoreError> {
        const ACCOUNT: &str =
            "update accounts set password_hash = null where login = $1 returning id";
        const TOKENS: &str =
            "update tokens set revoked_at = $2 where account_id = $1 and revoked_at is null";
        const FILES: &str = "delete from stored_files where account_id = $1";
        let login = login.to_owned();
        self.write(move |tx| {
            Box::pin(async move {
                let Some(mut account) = tx.first(ACCOUNT, params![login]).await? else {
                    return Ok(false);
                };
                let account = account.int()?;
                tx.execute(TOKENS, params![account, now]).await?;
                tx.execute(FILES, params![account]).await?;
                Ok(true)
            })
        })
        .await
    }
}

/// Returns whether a login contains U+0000, which PostgreSQL does not store: no account has it.
fn is_nobodys(login: &str) -> bool {
    login.contains('\0')
}

fn account_info(mut row: Row) -> Result<AccountInfo, StoreError> {
    Ok(AccountInfo {
        login: row.text()?,
        created_at: row.time()?,
        has_password: row.int()? != 0,
        tokens: row.count()?,
        files: row.count()?,
        bytes: row.count()?,
    })
}

async fn create_token(tx: &Tx<'_>, token: NewToken, now: DateTime<Utc>) -> Result<i64, StoreError> {
    const ACCOUNT: &str = "
        insert into accounts (login, created_at) values ($1, $2)
            on conflict (login) do nothing";
    const ACCOUNT_ID: &str = "select id from accounts where login = $1";
    const TOKEN: &str = "
        insert into tokens (account_id, name, scopes, hash, created_at)
        values ($1, $2, $3, $4, $5)
        returning id";
    tx.execute(ACCOUNT, params![token.login.as_str(), now]).await?;
    let account = tx.first(ACCOUNT_ID, params![token.login]).await?;
    let vanished = || StoreError::Corrupt("an account vanished".to_owned());
    let account = account.ok_or_else(vanished)?.int()?;
    let scopes = token.scopes.to_words();
    let params = params![account, token.name, scopes, token.hash.0.to_vec(), now];
    tx.first(TOKEN, params).await?.ok_or_else(vanished)?.int()
}

fn token_info(mut row: Row) -> Result<TokenInfo, StoreError> {
    Ok(TokenInfo {
        id: row.int()?,
        login: row.text()?,
        name: row.text()?,
        scopes: scopes(&mut row)?,
        created_at: row.time()?,
        revoked_at: row.opt_time()?,
    })
}

fn scopes(row: &mut Row) -> Result<Scopes, StoreError> {
    let words = row.text()?;
    Scopes::from_words(&words).map_err(|word| StoreError::Corrupt(format!("unknown scope {word}")))
}
