//! Answers to requests with a key, so that a client may repeat a request of which it has seen no answer.
//!
//! A request is stored before it is carried out. Of two at the same time, one finds the row of the other. A
//! row without an answer is a claim, which whoever carries out the request renews. One that was not renewed
//! was lost with its node, and the next claim has another time: by that, a result of the lost one is told
//! apart, and changes nothing.

use chrono::{DateTime, Utc};

use crate::Store;
use crate::engine::sql::params;
use crate::engine::tx::Tx;
use crate::log::row::most;
use feedgate_core::idempotency::{
    ANSWER_KEPT, IdempotencyClaim, IdempotencyKey, IdempotentAnswer, LONGEST_SILENCE, MOST_KEYS,
};
use feedgate_core::store::StoreError;

/// The most keys of an account that are deleted when one is added.
const FEW: i64 = 10;

/// Requests with keys.
impl Store {
    /// Stores that a request is about to be carried out, unless it was before.
    pub async fn begin_idempotent(
        &self,
        key: &IdempotencyKey,
        now: DateTime<Utc>,
    ) -> Result<IdempotencyClaim, StoreError> {
        let key = *key;
        self.shared.write(move |tx| Box::pin(begin(tx, key, now))).await
    }

    /// Renews the claim from the time `claimed_at`: the request is still being carried out. Returns `false`
    /// if the claim was lost.
    pub async fn renew_idempotent(
        &self,
        key: &IdempotencyKey,
        claimed_at: DateTime<Utc>,
        now: DateTime<Utc>,
    ) -> Result<bool, StoreError> {
        // No index is of a sum, so that the row is found by its key, here and in `finish`.
        const RENEW: &str = "
            update idempotency_keys set created_at = $4
             where account_id = $1 and key_hash = $2 and created_at + 0 = $3 and status = 0";
        let params = params![key.account.0, key.key.to_vec(), claimed_at, now].to_vec();
        let renewed =
            self.shared.write(move |tx| Box::pin(async move { tx.execute(RENEW, &params).await }));
        Ok(renewed.await? > 0)
    }

    /// Stores the answer to a request that was claimed at the time `claimed_at`. `None` forgets the request,
    /// which may be repeated then. Returns `false` without changes if the claim was lost.
    pub async fn finish_idempotent(
        &self,
        key: &IdempotencyKey,
        claimed_at: DateTime<Utc>,
        answer: Option<IdempotentAnswer>,
    ) -> Result<bool, StoreError> {
        let key = *key;
        self.shared.write(move |tx| Box::pin(finish(tx, key, claimed_at, answer))).await
    }
}

async fn begin(
    tx: &Tx<'_>,
    key: IdempotencyKey,
    now: DateTime<Utc>,
) -> Result<IdempotencyClaim, StoreError> {
    const BEGIN: &str = "
        insert into idempotency_keys (account_id, key_hash, request_hash, created_at)
        values ($1, $2, $3, $4)
            on conflict (account_id, key_hash) do nothing";
    const HELD: &str = "
        select request_hash, created_at, status, location, body
          from idempotency_keys
         where account_id = $1 and key_hash = $2 {for update}";
    const BEGIN_AGAIN: &str = "
        update idempotency_keys
           set request_hash = $3, created_at = $4, status = 0, location = '', body = ''
         where account_id = $1 and key_hash = $2";
    let IdempotencyKey { account, key, request } = key;
    let (key, request) = (key.to_vec(), request.to_vec());
    let begun = params![account.0, key.clone(), request.clone(), now];
    if tx.execute(BEGIN, begun).await? > 0 {
        trim(tx, account.0, now).await?;
        return Ok(IdempotencyClaim::Begun);
    }
    let Some(mut row) = tx.first(HELD, params![account.0, key]).await? else {
        return Ok(IdempotencyClaim::InProgress);
    };
    let (held_request, since) = (row.blob()?, row.time()?);
    let status = u16::try_from(row.small()?).unwrap_or_default();
    let kept = if status == 0 { LONGEST_SILENCE } else { ANSWER_KEPT };
    if since + kept <= now {
        tx.execute(BEGIN_AGAIN, begun).await?;
        return Ok(IdempotencyClaim::Begun);
    }
    Ok(match status {
        _ if held_request != request => IdempotencyClaim::OtherRequest,
        0 => IdempotencyClaim::InProgress,
        status => {
            let (location, body) = (row.text()?, row.text()?);
            IdempotencyClaim::Answered(IdempotentAnswer { status, location, body })
        }
    })
}

/// Deletes the oldest keys of an account that has too many, but none whose request is being carried out.
async fn trim(tx: &Tx<'_>, account: i64, now: DateTime<Utc>) -> Result<(), StoreError> {
    const TRIM: &str = "
        delete from idempotency_keys
         where (account_id, key_hash) in (
               select account_id, key_hash from idempotency_keys
                where account_id = $1 and (status <> 0 or created_at <= $4)
                  and created_at <= (select created_at from idempotency_keys
                                      where account_id = $1
                                      order by created_at desc limit 1 offset $2)
                order by created_at limit $3)";
    let lost_before = now - LONGEST_SILENCE;
    tx.execute(TRIM, params![account, most(MOST_KEYS), FEW, lost_before]).await.map(drop)
}

async fn finish(
    tx: &Tx<'_>,
    key: IdempotencyKey,
    claimed_at: DateTime<Utc>,
    answer: Option<IdempotentAnswer>,
) -> Result<bool, StoreError> {
    const ANSWER: &str = "
        update idempotency_keys set status = $4, location = $5, body = $6
         where account_id = $1 and key_hash = $2 and created_at + 0 = $3 and status = 0";
    const FORGET: &str = "
        delete from idempotency_keys
         where account_id = $1 and key_hash = $2 and created_at + 0 = $3 and status = 0";
    let (account, key) = (key.account, key.key.to_vec());
    let finished = match answer {
        Some(IdempotentAnswer { status, location, body }) => {
            let params = params![account.0, key, claimed_at, i64::from(status), location, body];
            tx.execute(ANSWER, params).await?
        }
        None => tx.execute(FORGET, params![account.0, key, claimed_at]).await?,
    };
    Ok(finished > 0)
}
