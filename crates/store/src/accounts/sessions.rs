//! Sessions of the console.

use chrono::{DateTime, TimeDelta, Utc};

use crate::Store;
use crate::accounts::USE_RECORDED_EVERY;
use crate::accounts::tokens::access;
use crate::engine::sql::params;
use crate::engine::tx::Tx;
use feedgate_core::account::{Access, SessionHash, TokenHash};
use feedgate_core::store::StoreError;

/// Sessions. A session has the account and the scopes of the token with which it was begun, and ends
/// with that token (S39).
impl Store {
    /// Begins a session for the owner of a valid token; `false` if there is no such token.
    pub async fn begin_session(
        &self,
        session: &SessionHash,
        token: &TokenHash,
        now: DateTime<Utc>,
    ) -> Result<bool, StoreError> {
        let (session, token) = (session.clone(), token.clone());
        self.shared.write(move |tx| Box::pin(begin(tx, session, token, now))).await
    }

    /// Returns whose session it is, and records that it was used. `None` if there is no such session,
    /// if it was not used for `idle`, if its token was revoked, or if the account was removed or
    /// deactivated.
    pub async fn session(
        &self,
        session: &SessionHash,
        idle: TimeDelta,
        now: DateTime<Utc>,
    ) -> Result<Option<Access>, StoreError> {
        let db = &self.shared;
        const VALID: &str = "
            select a.id, a.login, t.scopes, t.manages_tokens, t.id, t.expires_at, s.used_at
              from sessions s
              join tokens t on t.id = s.token_id
              join accounts a on a.id = t.account_id
             where s.hash = $1 and s.used_at > $2 and t.revoked_at is null
               and (t.expires_at is null or t.expires_at > $3)
               and a.removed_at is null and a.deactivated_at is null";
        const USED: &str = "update sessions set used_at = $2 where hash = $1";
        let hash = session.0.to_vec();
        let found = db.rows(VALID, params![hash.clone(), now - idle, now]).await?;
        let Some(mut row) = found.into_iter().next() else { return Ok(None) };
        let access = access(&mut row)?;
        if now - row.time()? >= USE_RECORDED_EVERY {
            let params = [hash.into(), now.into()];
            db.write(move |tx| Box::pin(async move { tx.execute(USED, &params).await })).await?;
        }
        Ok(Some(access))
    }

    /// Ends a session.
    pub async fn end_session(&self, session: &SessionHash) -> Result<(), StoreError> {
        const END: &str = "delete from sessions where hash = $1";
        let params = [session.0.to_vec().into()];
        let ended =
            self.shared.write(move |tx| Box::pin(async move { tx.execute(END, &params).await }));
        ended.await.map(drop)
    }
}

async fn begin(
    tx: &Tx<'_>,
    session: SessionHash,
    token: TokenHash,
    now: DateTime<Utc>,
) -> Result<bool, StoreError> {
    const TOKEN: &str = "
        select id from tokens
         where hash = $1 and revoked_at is null and (expires_at is null or expires_at > $2)
               {for share}";
    const BEGIN: &str = "
        insert into sessions (hash, token_id, created_at, used_at) values ($1, $2, $3, $3)";
    let Some(mut token) = tx.first(TOKEN, params![token.0.to_vec(), now]).await? else {
        return Ok(false);
    };
    tx.execute(BEGIN, params![session.0.to_vec(), token.int()?, now]).await?;
    Ok(true)
}
