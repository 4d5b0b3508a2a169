//! Intents: subscriptions and unsubscriptions that still have to be verified.

use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use sha2::{Digest, Sha256};

use crate::Db;
use crate::backfill;
use crate::delivery::row::{account, callback, number, protocol, secret};
use crate::delivery::subscriptions::{subscribe, unsubscribe};
use crate::engine::claims::{self, ClaimQueue, queue_of};
use crate::engine::sql::{Row, params};
use crate::engine::tx::{Tx, Wake};
use crate::resources::row;
use feedgate_core::intent::{DueIntent, Intent, IntentMode, VerifyToken};
use feedgate_core::ports::{ClaimLimits, EventArrival, Intents, StoreError};
use feedgate_core::subscription::{Format, Lease, Secret, Statuses, SubscriptionRequest, Updates};

#[async_trait]
impl Intents for Db {
    async fn enqueue_intent(
        &self,
        intent: &Intent,
        due_at: DateTime<Utc>,
    ) -> Result<i64, StoreError> {
        let intent = intent.clone();
        self.write(move |tx| Box::pin(enqueue_intent(tx, intent, due_at))).await
    }

    async fn claim_intents(
        &self,
        now: DateTime<Utc>,
        until: DateTime<Utc>,
        room: &ClaimLimits,
    ) -> Result<Vec<DueIntent>, StoreError> {
        const CLAIM: &str =
            "update intents set due_at = $1 {from rows} where intents.id = {given id}";
        const CLAIMED: &str = "
            select i.id, i.attempts, i.mode, i.account_id, i.topic, i.callback, i.protocol,
                   i.procedure, i.format, i.updates, i.statuses, i.secret, i.lease_s,
                   i.verify_token, i.backfill
              from {rows}
              join intents i on i.id = given.id";
        let room = room.clone();
        let claimed = self.write(move |tx| {
            Box::pin(async move {
                let picked = claims::pick(tx, &QUEUE, now, &room).await?;
                let [_, ids] = claims::columns(&picked);
                let ids = [ids];
                tx.execute_rows(CLAIM, params![until], &ids).await?;
                let rows = tx.query_rows(CLAIMED, &[], &ids).await?;
                Ok(claims::read(rows, &picked, due_intent, |due| due.id))
            })
        });
        claimed.await
    }

    async fn retry_intent(&self, id: i64, at: DateTime<Utc>) -> Result<(), StoreError> {
        const RETRY: &str = "update intents set due_at = $2, attempts = attempts + 1 where id = $1";
        let retried =
            self.write(move |tx| Box::pin(async move { tx.execute(RETRY, params![id, at]).await }));
        retried.await.map(drop)
    }

    async fn complete_intent(
        &self,
        id: i64,
        intent: &Intent,
        now: DateTime<Utc>,
    ) -> Result<Option<EventArrival>, StoreError> {
        let (intent, groups) = (intent.clone(), self.groups.clone());
        let settled = self.write(move |tx| {
            Box::pin(async move {
                // The intent that replaces this one waits for this row, and so comes after.
                if tx.execute(END, params![id]).await? == 0 {
                    return Ok(None);
                }
                let request = intent.request;
                Ok(Some(match intent.mode {
                    IntentMode::Subscribe => {
                        let held = subscribe(tx, &groups, request, now).await?;
                        if intent.backfill {
                            backfill::begin(tx, held.id.resource, now).await?;
                        }
                        if held.created_at < now {
                            EventArrival::Renewed
                        } else {
                            EventArrival::Began
                        }
                    }
                    IntentMode::Unsubscribe => {
                        let protocol = Some(request.protocol.as_str());
                        let named = (request.topic.as_str(), request.callback.as_str());
                        match unsubscribe(tx, request.account, named, protocol).await? {
                            true => EventArrival::Ended,
                            false => EventArrival::Nothing,
                        }
                    }
                }))
            })
        });
        settled.await
    }

    async fn end_intent(&self, id: i64) -> Result<(), StoreError> {
        let ended =
            self.write(move |tx| Box::pin(async move { tx.execute(END, params![id]).await }));
        ended.await.map(drop)
    }

    async fn supersede(&self, request: &SubscriptionRequest) -> Result<(), StoreError> {
        let hash = hash(request);
        let forgotten =
            self.write(move |tx| Box::pin(async move { tx.execute(FORGET, params![hash]).await }));
        forgotten.await.map(drop)
    }
}

/// The queue of intents, by the host of the callback.
const QUEUE: ClaimQueue = queue_of!("intents", "id");

const END: &str = "delete from intents where id = $1";
const FORGET: &str = "delete from intents where hash = $1";

/// Stores an intent in place of an older one. A known subscriber has agreed before, and does not
/// wait behind unknown ones that name the same host. The new intent gets a number of its own, so
/// that a verification of the older one in progress can neither end nor settle it.
async fn enqueue_intent(
    tx: &Tx<'_>,
    intent: Intent,
    due_at: DateTime<Utc>,
) -> Result<i64, StoreError> {
    const IS_SUBSCRIBER: &str = "
        select 1
          from subscriptions s
          join resources r on r.id = s.resource_id
         where r.topic = $1 and s.callback = $2
         limit 1";
    // A conflict is possible only if another node has just inserted the same intent.
    const KEEP: &str = "
        insert into intents (hash, mode, account_id, topic, callback, protocol, procedure,
                             format, updates, statuses, secret, lease_s, verify_token,
                             due_at, backfill, host)
        values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)
            on conflict (hash) do update
           set id = excluded.id, host = excluded.host, mode = excluded.mode,
               procedure = excluded.procedure,
               format = excluded.format, updates = excluded.updates,
               statuses = excluded.statuses, secret = excluded.secret, lease_s = excluded.lease_s,
               verify_token = excluded.verify_token, backfill = excluded.backfill,
               attempts = 0, due_at = excluded.due_at
        returning id";
    let request = &intent.request;
    let hash = hash(request);
    tx.execute(FORGET, params![hash.clone()]).await?;
    let subject = params![request.topic.as_str(), request.callback.as_str()];
    let is_subscriber = tx.first(IS_SUBSCRIBER, subject).await?.is_some();
    let host = if is_subscriber { String::new() } else { request.callback.host_name() };
    #[rustfmt::skip]
    let params = params![
        hash, intent.mode.as_str(), number(request.account), request.topic.as_str(),
        request.callback.as_str(), request.protocol.as_str(), request.protocol.procedure(),
        request.format.as_str(), request.updates.as_str(), request.statuses.as_str(),
        request.secret.as_ref().map(Secret::expose),
        i64::try_from(request.lease.as_secs()).unwrap_or(i64::MAX), intent.verify_token.as_ref().map(VerifyToken::as_str), due_at,
        intent.backfill, host,
    ];
    let kept = tx.first(KEEP, params).await?;
    tx.wake(Wake::Intents).await?;
    kept.ok_or_else(|| StoreError::Corrupt("an intent vanished".to_owned()))?.int()
}

/// Returns the hash of the subject of an intent: account, topic, callback and protocol. Together
/// they are longer than an index entry may be.
fn hash(request: &SubscriptionRequest) -> Vec<u8> {
    let mut hash = Sha256::new();
    hash.update(number(request.account).to_be_bytes());
    for part in [request.topic.as_str(), request.callback.as_str(), request.protocol.as_str()] {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    hash.finalize().to_vec()
}

fn due_intent(mut row: Row) -> Result<DueIntent, StoreError> {
    let id = row.int()?;
    let attempts = row.small()?;
    let mode = row.word(IntentMode::from_word)?;
    let request = SubscriptionRequest {
        account: account(&mut row)?,
        topic: row::topic(&mut row)?,
        callback: callback(&mut row)?,
        protocol: protocol(&mut row)?,
        format: row.word(Format::from_word)?,
        updates: row.word(Updates::from_word)?,
        statuses: row.word(Statuses::from_word)?,
        secret: secret(&mut row)?,
        lease: Lease::from(Duration::from_secs(row.count()?)),
    };
    let verify_token = row.opt_text()?.map(VerifyToken::parse).transpose();
    let verify_token = verify_token.map_err(|err| StoreError::Corrupt(err.to_string()))?;
    let intent = Intent { mode, request, verify_token, backfill: row.int()? != 0 };
    Ok(DueIntent { id, attempts, intent })
}
