//! Accounts and their tokens.

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::db::Db;
use super::sql::{Row, params};
use super::tx::Tx;
use super::{Accounts, StoreError};
use crate::domain::account::{Access, AccountId, NewToken, Rights, TokenHash, TokenInfo};

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
            select a.id, a.login, t.rights
              from tokens t
              join accounts a on a.id = t.account_id
             where t.hash = $1 and a.login = $2 and t.revoked_at is null";
        let params = [hash.0.to_vec().into(), login.into()];
        let found = self.read(move |tx| Box::pin(async move { tx.first(VALID, &params).await }));
        let Some(mut row) = found.await? else { return Ok(None) };
        Ok(Some(Access {
            account: AccountId(row.int()?),
            login: row.text()?,
            rights: rights(&mut row)?,
        }))
    }

    async fn list_tokens(&self) -> Result<Vec<TokenInfo>, StoreError> {
        const ALL: &str = "
            select t.id, a.login, t.name, t.rights, t.created_at, t.revoked_at
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
}

async fn create_token(tx: &Tx<'_>, token: NewToken, now: DateTime<Utc>) -> Result<i64, StoreError> {
    const ACCOUNT: &str = "
        insert into accounts (login, created_at) values ($1, $2)
            on conflict (login) do nothing";
    const TOKEN: &str = "
        insert into tokens (account_id, name, rights, hash, created_at)
        select id, $2, $3, $4, $5 from accounts where login = $1
        returning id";
    tx.execute(ACCOUNT, params![token.login.as_str(), now]).await?;
    let rights = token.rights.to_words();
    let params = params![token.login, token.name, rights, token.hash.0.to_vec(), now];
    let made = tx.first(TOKEN, params).await?;
    made.ok_or_else(|| StoreError::Corrupt("an account vanished".to_owned()))?.int()
}

fn token_info(mut row: Row) -> Result<TokenInfo, StoreError> {
    Ok(TokenInfo {
        id: row.int()?,
        login: row.text()?,
        name: row.text()?,
        rights: rights(&mut row)?,
        created_at: row.time()?,
        revoked_at: row.opt_time()?,
    })
}

fn rights(row: &mut Row) -> Result<Rights, StoreError> {
    let words = row.text()?;
    Rights::from_words(&words).map_err(|word| StoreError::Corrupt(format!("no right: {word}")))
}
