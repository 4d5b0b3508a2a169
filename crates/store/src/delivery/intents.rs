//! Intents: subscriptions and unsubscriptions that still have to be verified.

use chrono::{DateTime, Utc};
use sha2::{Digest, Sha256};

use crate::backfill;
use crate::delivery::intent_columns::{
    COLUMNS, HEADERS, KEEP, SECRET, StoredIntent, VERIFY_TOKEN, read_intent, secret_text,
};
use crate::delivery::row::{number, subscriber};
use crate::delivery::subscriptions::subscribe;
use crate::delivery::unsubscribe::{end_replaced, unsubscribe};
use crate::engine::claims::ClaimedTable;
use crate::engine::lease::ClaimLease;
use crate::engine::row::Row;
use crate::engine::sql::params;
use crate::engine::tx::{Tx, Wake};
use crate::{Db, Store};
use feedgate_core::backfill::BackfillShare;
use feedgate_core::callback_headers::CallbackHeaders;
use feedgate_core::claim::ClaimToken;
use feedgate_core::intent::{DueIntent, Intent, IntentMode, VerifyToken};
use feedgate_core::registrant::RegistrantNetwork;
use feedgate_core::store::{ClaimLimits, EventArrival, IntentFate, StoreError};
use feedgate_core::subscription::SubscriptionRequest;

/// Intents that wait for verification.
impl Store {
    /// Stores an intent, due at `due_at`, and returns its number. It replaces an older one for the
    /// same account, address, callback and protocol.
    pub async fn enqueue_intent(
        &self,
        intent: &Intent,
        due_at: DateTime<Utc>,
    ) -> Result<i64, StoreError> {
        let db = self.of_topic(intent.request.topic.as_str());
        self.supersede_elsewhere(&intent.request).await?;
        let intent = intent.clone();
        let enqueued = db.write(move |tx| {
            Box::pin(async move { enqueue_intent(tx, &intent, due_at, ClaimToken::NONE).await })
        });
        enqueued.await
    }

    /// Stores an intent as [`enqueue_intent`](Self::enqueue_intent) does, and claims it until
    /// `until`, for a caller that verifies it at once.
    pub async fn enqueue_claimed_intent(
        &self,
        intent: &Intent,
        now: DateTime<Utc>,
        until: DateTime<Utc>,
    ) -> Result<DueIntent, StoreError> {
        let db = self.of_topic(intent.request.topic.as_str());
        self.supersede_elsewhere(&intent.request).await?;
        let (intent, ClaimLease { ends, token, .. }) =
            (intent.clone(), db.claims.lease(now, until));
        let enqueued = db.write(move |tx| {
            Box::pin(async move {
                let id = enqueue_intent(tx, &intent, ends, token).await?;
                Ok(DueIntent { id, claim: token, attempts: 0, intent })
            })
        });
        enqueued.await
    }

    /// Returns how many intents of strangers wait whose networks have one owner with this one, up to `limit`
    /// in each cell.
    pub async fn waiting_intents(
        &self,
        registrant: RegistrantNetwork,
        limit: u64,
    ) -> Result<u64, StoreError> {
        const WAITING: &str = "
            select count(*)
              from (select 1
                      from intents
                     where registrant_network between $1 and $2 and registrant_network < 0
                     limit $3) waiting";
        let (first, last) = registrant.of_one_owner();
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        self.sum(|db| async move { db.count(WAITING, params![first, last, limit]).await }).await
    }

    /// Claims intents due at `now`, within the limits for the hosts of their callbacks and their
    /// requesters, until `until`. The limits do not apply to callbacks that have a subscription to the topic.
    pub async fn claim_intents(
        &self,
        now: DateTime<Utc>,
        until: DateTime<Utc>,
        limits: &ClaimLimits,
    ) -> Result<Vec<DueIntent>, StoreError> {
        self.claim_within(
            limits,
            |due: &DueIntent| due.intent.request.limited_name(),
            |db, limits| async move {
                db.intent_queue.claim(db, db.claims.lease(now, until), &limits).await
            },
        )
        .await
    }

    /// Extends those of `claims` that were not lost to `until`, and returns the numbers of their intents.
    pub async fn renew_intent_claims(
        &self,
        claims: &[(i64, ClaimToken)],
        until: DateTime<Utc>,
    ) -> Result<Vec<i64>, StoreError> {
        let claims: Vec<_> = claims.iter().map(|(id, token)| ([*id], *token)).collect();
        Ok(self.renew_claims(INTENTS, &claims, until).await?.into_iter().flatten().collect())
    }

    /// Postpones an intent after a failed attempt. If the claim was lost, nothing changes.
    pub async fn retry_intent(&self, due: &DueIntent, at: DateTime<Utc>) -> Result<(), StoreError> {
        let claimed = ([due.id], due.claim);
        let retried = self.of_number(due.id).write(move |tx| {
            Box::pin(INTENTS.release(tx, claimed, at, ", attempts = attempts + 1"))
        });
        retried.await.map(drop)
    }

    /// Makes a claimed intent due at `at`, without counting an attempt. If the claim was lost, nothing
    /// changes.
    pub async fn release_intent(
        &self,
        due: &DueIntent,
        at: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        let claimed = ([due.id], due.claim);
        let released = self.of_number(due.id).write(move |tx| {
            Box::pin(async move {
                INTENTS.release(tx, claimed, at, "").await?;
                tx.wake(Wake::Intents);
                Ok(())
            })
        });
        released.await
    }

    /// Carries out an intent after its callback agreed, and deletes it, in one transaction. Returns
    /// `None` without changes if the intent has been replaced by a newer one, or was carried out
    /// already, or its claim was lost.
    pub async fn complete_intent(
        &self,
        due: &DueIntent,
        now: DateTime<Utc>,
    ) -> Result<Option<EventArrival>, StoreError> {
        let db = self.of_number(due.id);
        let (due, groups) = (due.clone(), db.groups.clone());
        let settled = db.write(move |tx| {
            Box::pin(async move {
                let DueIntent { id, claim, intent, .. } = due;
                // The intent that replaces this one waits for this row, and so comes after.
                if !INTENTS.delete_claimed(tx, ([id], claim)).await? {
                    return Ok(None);
                }
                let request = intent.request;
                Ok(Some(match intent.mode {
                    IntentMode::Subscribe => {
                        let share = BackfillShare::of_request(request.account);
                        let held = subscribe(tx, &groups, request, now).await?;
                        if intent.backfill {
                            backfill::begin(tx, (held.id.resource, share), now).await?;
                        }
                        if held.created_at < now {
                            EventArrival::Renewed
                        } else {
                            EventArrival::Began
                        }
                    }
                    IntentMode::Unsubscribe => {
                        end_replaced(tx, &request).await?;
                        let protocol = Some(request.protocol.as_str());
                        let named = (&request.topic, &request.callback);
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

    /// Returns what became of an intent whose claim was lost.
    pub async fn intent_fate(&self, due: &DueIntent) -> Result<IntentFate, StoreError> {
        const LATEST: &str = "select id from intents where hash = $1";
        let hash = hash(&due.intent.request);
        let latest = self.each(|db| {
            let hash = hash.clone();
            db.read(move |tx| Box::pin(async move { tx.first(LATEST, params![hash]).await }))
        });
        let mut fate = IntentFate::Ended;
        for mut row in latest.await?.into_iter().flatten() {
            match row.int()? == due.id {
                true => return Ok(IntentFate::Waiting),
                false => fate = IntentFate::Replaced,
            }
        }
        Ok(fate)
    }

    /// Deletes an intent that was refused. If the claim was lost, nothing changes.
    pub async fn end_intent(&self, due: &DueIntent) -> Result<(), StoreError> {
        let claimed = ([due.id], due.claim);
        let ended =
            self.of_number(due.id).write(move |tx| Box::pin(INTENTS.delete_claimed(tx, claimed)));
        ended.await.map(drop)
    }

    /// Deletes the intent for the account, address, callback and protocol of `request`, if there is
    /// one, because a newer request supersedes it.
    pub async fn supersede(&self, request: &SubscriptionRequest) -> Result<(), StoreError> {
        self.each(|db| forget(db, hash(request))).await.map(drop)
    }

    /// Deletes what `request` supersedes in other cells than its own: the intent for the feed of a page is in
    /// the cell of the feed, and one for the page itself in that of the page.
    async fn supersede_elsewhere(&self, request: &SubscriptionRequest) -> Result<(), StoreError> {
        match self.only_cell() {
            Some(_) => Ok(()),
            None => self.supersede(request).await,
        }
    }
}

/// The claims of intents.
pub(crate) const INTENTS: ClaimedTable<1> =
    ClaimedTable { columns: COLUMNS, ..ClaimedTable::new("intents", ["id"]) };

const FORGET: &str = "delete from intents where hash = $1";

async fn forget(db: &Db, hash: Vec<u8>) -> Result<(), StoreError> {
    let forgotten =
        db.write(move |tx| Box::pin(async move { tx.execute(FORGET, params![hash]).await }));
    forgotten.await.map(drop)
}

/// Stores an intent in place of an older one. A known subscriber has agreed before, and does not
/// wait behind unknown ones that name the same host. The new intent gets a number of its own, so
/// that a verification of the older one in progress can neither end nor settle it.
async fn enqueue_intent(
    tx: &Tx<'_>,
    intent: &Intent,
    due_at: DateTime<Utc>,
    claim: ClaimToken,
) -> Result<i64, StoreError> {
    const IS_SUBSCRIBER: &str = "
        select 1
          from subscriptions s
          join resources r on r.id = s.resource_id
         where r.topic = $1 and s.callback = $2
         limit 1";
    let request = &intent.request;
    let hash = hash(request);
    let (topic, callback) = (&request.topic, &request.callback);
    let identity = subscriber(topic, callback, &request.protocol);
    let secret = tx.seal(SECRET, &identity, secret_text(request))?;
    let verify_token = intent.verify_token.as_ref().map(VerifyToken::as_str);
    let verify_token = tx.seal(VERIFY_TOKEN, &identity, verify_token)?;
    let headers = request.headers.as_ref().map(CallbackHeaders::expose);
    let headers = tx.seal(HEADERS, &identity, headers.as_deref())?;
    tx.execute(FORGET, params![hash.clone()]).await?;
    let subject = params![request.topic.as_str(), request.callback.as_str()];
    let is_subscriber = tx.first(IS_SUBSCRIBER, subject).await?.is_some();
    let host = if is_subscriber { String::new() } else { request.limited_name() };
    let schedule = [hash.into(), host.into(), tx.at(due_at).into(), claim.0.into()];
    let params = StoredIntent { intent, secret, verify_token, headers }.params(schedule);
    let kept = tx.first(&KEEP, &params).await?;
    tx.wake(Wake::Intents);
    kept.ok_or_else(|| StoreError::Corrupt("an intent vanished".to_owned()))?.int()
}

/// Returns the hash of the subject of an intent: account, the address that the subscriber knows, callback and
/// protocol. Together they are longer than an index entry may be.
fn hash(request: &SubscriptionRequest) -> Vec<u8> {
    let mut hash = Sha256::new();
    hash.update(number(request.account).to_be_bytes());
    let (address, callback) = (request.topic.subscribed_as(), request.callback.as_str());
    // The empty part keeps the hashes that are stored.
    for part in [address, callback, request.protocol.as_str(), ""] {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    hash.finalize().to_vec()
}

/// Reads an intent that was claimed.
pub(crate) fn due_intent(
    id: i64,
    claim: ClaimToken,
    mut row: Row,
) -> Result<DueIntent, StoreError> {
    Ok(DueIntent { id, claim, attempts: row.small()?, intent: read_intent(&mut row)? })
}
