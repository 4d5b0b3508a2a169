//! The rows of tokens: creating, reading and revoking them.
//!
//! What always holds: a token that was created with another one is revoked with it. A child is created
//! while its parent is locked, and revoking locks a token before its children are looked for, so that
//! no child is missed.

use chrono::{DateTime, Utc};

use crate::accounts::check_login;
use crate::engine::row::Row;
use crate::engine::sql::params;
use crate::engine::tx::Tx;
use crate::log::row::most;
use feedgate_core::account::{
    Access, AccountId, ChildTokenOutcome, MOST_TOKENS, NewToken, Scope, Scopes, TokenId, TokenInfo,
};
use feedgate_core::store::StoreError;

/// The most tokens that are deleted when one is created: more than end meanwhile, so that those of an
/// account that had too many become fewer.
const FEW: i64 = 100;

/// Stores a token, and its account if that is missing.
pub(super) async fn create(
    tx: &Tx<'_>,
    token: NewToken,
    parent: Option<TokenId>,
    now: DateTime<Utc>,
) -> Result<i64, StoreError> {
    const ACCOUNT: &str = "
        insert into accounts (login, created_at) values ($1, $2)
            on conflict (login) do nothing";
    const ACCOUNT_ID: &str = "select id from accounts where login = $1 {for share}";
    const TOKEN: &str = "
        insert into tokens (account_id, name, scopes, manages_tokens, hash, created_at, expires_at,
                            parent_id)
        values ($1, $2, $3, $4, $5, $6, $7, $8)
        returning id";
    tx.execute(ACCOUNT, params![token.login.as_str(), now]).await?;
    check_login(tx, &token.login).await?;
    let account = tx.first(ACCOUNT_ID, params![token.login]).await?;
    let vanished = || StoreError::Corrupt("an account vanished".to_owned());
    let account = account.ok_or_else(vanished)?.int()?;
    let scopes = token.scopes.without(Scope::Tokens).to_words();
    let manages_tokens = i64::from(token.scopes.allow(Scope::Tokens));
    let (hash, parent) = (token.hash.0.to_vec(), parent.map(|parent| parent.0));
    #[rustfmt::skip]
    let params = params![
        account, token.name, scopes, manages_tokens, hash, now, token.expires_at, parent,
    ];
    tx.first(TOKEN, params).await?.ok_or_else(vanished)?.int()
}

/// Stores a token that ends with its parent.
pub(super) async fn create_child(
    tx: &Tx<'_>,
    mut token: NewToken,
    parent: TokenId,
    now: DateTime<Utc>,
) -> Result<ChildTokenOutcome, StoreError> {
    // Of several at the same time, each counts those before it.
    const ACCOUNT: &str = "select id from accounts where login = $1 {for update}";
    const PARENT: &str = "
        select expires_at from tokens
         where id = $1 and revoked_at is null and (expires_at is null or expires_at > $2)
               {for share}";
    if let Some(mut account) = tx.first(ACCOUNT, params![token.login.as_str()]).await? {
        let account = account.int()?;
        if !has_room(tx, account, now).await? {
            return Ok(ChildTokenOutcome::TooMany);
        }
        trim_ended(tx, account, now).await?;
    }
    let Some(mut held) = tx.first(PARENT, params![parent.0, now]).await? else {
        return Ok(ChildTokenOutcome::ParentEnded);
    };
    token.expires_at = [token.expires_at, held.opt_time()?].into_iter().flatten().min();
    let created = create(tx, token, Some(parent), now).await?;
    Ok(ChildTokenOutcome::Created(TokenId(created)))
}

/// Returns whether an account may have another valid token.
async fn has_room(tx: &Tx<'_>, account: i64, now: DateTime<Utc>) -> Result<bool, StoreError> {
    const VALID: &str = "
        select 1 from tokens
         where account_id = $1 and revoked_at is null and (expires_at is null or expires_at > $2)
         limit 1 offset $3";
    let last = most(MOST_TOKENS - 1);
    Ok(tx.first(VALID, params![account, now, last]).await?.is_none())
}

/// Deletes the oldest tokens that have ended, of an account that has too many of them.
async fn trim_ended(tx: &Tx<'_>, account: i64, now: DateTime<Utc>) -> Result<(), StoreError> {
    const TRIM: &str = "
        delete from tokens
         where id in (select id from tokens
                       where account_id = $1 and (revoked_at is not null or expires_at <= $2)
                       order by id desc limit $4 offset $3)";
    tx.execute(TRIM, params![account, now, most(MOST_TOKENS), FEW]).await.map(drop)
}

/// Revokes a token with those that were created with it.
pub(super) async fn revoke(tx: &Tx<'_>, id: i64, now: DateTime<Utc>) -> Result<bool, StoreError> {
    const REVOKE: &str = "update tokens set revoked_at = $2 where id = $1 and revoked_at is null";
    let is_revoked = tx.execute(REVOKE, params![id, now]).await? > 0;
    if is_revoked {
        revoke_children(tx, vec![id], now).await?;
    }
    Ok(is_revoked)
}

/// Revokes all tokens of an account with those that were created with them, for other accounts too.
/// Returns how many the account had.
pub(super) async fn revoke_all(
    tx: &Tx<'_>,
    account: i64,
    now: DateTime<Utc>,
) -> Result<u64, StoreError> {
    const REVOKE: &str = "
        update tokens set revoked_at = $2 where account_id = $1 and revoked_at is null
        returning id";
    let revoked = ids(tx.query(REVOKE, params![account, now]).await?)?;
    let count = revoked.len() as u64;
    revoke_children(tx, revoked, now).await?;
    Ok(count)
}

/// Revokes what was created with these tokens, which the transaction has revoked, and so on.
async fn revoke_children(
    tx: &Tx<'_>,
    mut parents: Vec<i64>,
    now: DateTime<Utc>,
) -> Result<(), StoreError> {
    const REVOKE: &str = "
        update tokens set revoked_at = $2 where parent_id = $1 and revoked_at is null
        returning id";
    while let Some(parent) = parents.pop() {
        parents.extend(ids(tx.query(REVOKE, params![parent, now]).await?)?);
    }
    Ok(())
}

fn ids(rows: Vec<Row>) -> Result<Vec<i64>, StoreError> {
    rows.into_iter().map(|mut row| row.int()).collect()
}

/// Reads `a.id, a.login, t.scopes, t.manages_tokens, t.id, t.expires_at`.
pub(super) fn access(row: &mut Row) -> Result<Access, StoreError> {
    Ok(Access {
        account: AccountId(row.int()?),
        login: row.text()?,
        scopes: scopes(row)?,
        token: TokenId(row.int()?),
        expires_at: row.opt_time()?,
    })
}

/// Reads `t.id, a.login, t.name, t.scopes, t.manages_tokens, t.created_at, t.revoked_at, t.expires_at,
/// t.used_at, t.parent_id`.
pub(super) fn token_info(mut row: Row) -> Result<TokenInfo, StoreError> {
    Ok(TokenInfo {
        id: row.int()?,
        login: row.text()?,
        name: row.text()?,
        scopes: scopes(&mut row)?,
        created_at: row.time()?,
        revoked_at: row.opt_time()?,
        expires_at: row.opt_time()?,
        used_at: row.opt_time()?,
        parent: row.opt_int()?,
    })
}

/// Reads `scopes, manages_tokens`. A token of a version that did not know the scope `tokens` has it if
/// it could do everything that a subscriber can, or was an administrator's.
fn scopes(row: &mut Row) -> Result<Scopes, StoreError> {
    let words = row.text()?;
    let scopes = Scopes::from_words(&words)
        .map_err(|word| StoreError::Corrupt(format!("unknown scope {word}")))?;
    let may_manage = match row.opt_int()? {
        Some(flag) => flag != 0,
        None => {
            scopes.allow(Scope::Admin) || scopes.first_missing(Scopes::of_subscriber()).is_none()
        }
    };
    Ok(if may_manage { scopes.with(Scope::Tokens) } else { scopes })
}
