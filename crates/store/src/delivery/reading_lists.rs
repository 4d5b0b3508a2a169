//! Reading lists that accounts follow: when each is read again, the subscriptions that were made for it, and
//! the report on its feeds.
//!
//! A list is due when its document has changed, when its subscription is made, renewed or ended, and
//! once in a while. What is due while it is read ends the claim of whoever reads it: it is read once more, and
//! the result of the first reading is dropped. What the first reading may make is counted all the same.

use chrono::{DateTime, Utc};

use crate::delivery::row::{callback, subscription, subscription_columns};
use crate::delivery::subscriber_counts::{CountedSubscription, count_off, counted_columns};
use crate::engine::claims::ClaimedTable;
use crate::engine::row::Row;
use crate::engine::sql::{Value, json, params};
use crate::engine::tx::Tx;
use crate::log::row::most;
use crate::resources::row::{self, topic};
use crate::{Db, Store};
use feedgate_core::account::AccountId;
use feedgate_core::claim::ClaimToken;
use feedgate_core::reading_list::{DueReadingList, ReadingListReport};
use feedgate_core::resource::ResourceId;
use feedgate_core::store::{ClaimLimits, StoreError};
use feedgate_core::subscription::{Subscription, SubscriptionId, SubscriptionRequest};
use feedgate_core::topic::{Callback, Topic};

/// The most lists of one document that are due at once when it changes: an append waits for them.
const MOST_MARKED: i64 = 1_000;
/// The claims of reading lists.
pub(crate) const LISTS: ClaimedTable<1> = ClaimedTable {
    columns: ", resource_id, account_id, topic, callback, report",
    ..ClaimedTable::new("reading_lists", ["subscription_id"])
};
/// Whose lists are limited together, as those of a host are in other queues: the account.
pub(crate) const OWNER: &str = "cast(account_id as text)";

/// Reading lists.
impl Store {
    /// Claims reading lists that are due at `now`, within the limits for their accounts
    /// ([`DueReadingList::owner`]), until `until`.
    pub async fn claim_reading_lists(
        &self,
        now: DateTime<Utc>,
        until: DateTime<Utc>,
        limits: &ClaimLimits,
    ) -> Result<Vec<DueReadingList>, StoreError> {
        self.claim_within(
            limits,
            |due: &DueReadingList| due.owner(),
            |db, limits| async move {
                db.reading_list_queue.claim(db, db.claims.lease(now, until), &limits).await
            },
        )
        .await
    }

    /// Extends those of `claims` that were not lost to `until`, and returns the subscriptions of their lists.
    pub async fn renew_reading_list_claims(
        &self,
        claims: &[(SubscriptionId, ClaimToken)],
        until: DateTime<Utc>,
    ) -> Result<Vec<SubscriptionId>, StoreError> {
        let keys: Vec<_> = claims.iter().map(|(id, token)| ([id.number], *token)).collect();
        let renewed = self.renew_claims(LISTS, &keys, until).await?;
        let ids = claims.iter().map(|(id, _)| *id);
        Ok(ids.filter(|id| renewed.contains(&[id.number])).collect())
    }

    /// Counts up to `wanted` subscriptions that a reading of the list may make now: as many as are left of
    /// `limit` in an hour, whose number is returned. They count whatever becomes of the reading.
    pub async fn reserve_listed(
        &self,
        list: SubscriptionId,
        wanted: usize,
        limit: usize,
        now: DateTime<Utc>,
    ) -> Result<usize, StoreError> {
        const MADE: &str = "
            select made_hour, made_in_hour from reading_lists
             where resource_id = $1 and subscription_id = $2 {for update}";
        const RESERVE: &str = "
            update reading_lists set made_hour = $3, made_in_hour = $4
             where resource_id = $1 and subscription_id = $2";
        if wanted == 0 {
            return Ok(0);
        }
        let ([resource, number], hour) = (key(list), hour(now));
        let (wanted, limit) = (most(wanted), most(limit));
        let reserved = self.of_number(resource).write(move |tx| {
            Box::pin(async move {
                let Some(mut row) = tx.first(MADE, params![resource, number]).await? else {
                    return Ok(0);
                };
                let (made_hour, made) = (row.int()?, row.int()?);
                let made = if made_hour == hour { made } else { 0 };
                let reserved = wanted.min(limit - made).max(0);
                tx.execute(RESERVE, params![resource, number, hour, made + reserved]).await?;
                Ok(reserved)
            })
        });
        Ok(usize::try_from(reserved.await?).unwrap_or_default())
    }

    /// Counts subscriptions no more that were reserved at `reserved_at` and not made.
    pub async fn return_listed(
        &self,
        list: SubscriptionId,
        count: usize,
        reserved_at: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        const RETURN: &str = "
            update reading_lists set made_in_hour = made_in_hour - $4
             where resource_id = $1 and subscription_id = $2 and made_hour = $3";
        if count == 0 {
            return Ok(());
        }
        let ([resource, number], hour) = (key(list), hour(reserved_at));
        let count = most(count);
        let returned = self.of_number(resource).write(move |tx| {
            Box::pin(
                async move { tx.execute(RETURN, params![resource, number, hour, count]).await },
            )
        });
        returned.await.map(drop)
    }

    /// Stores the report on a list that was read, and when it is read again. Returns `false` without changes if
    /// the claim was lost.
    pub async fn store_reading_list_report(
        &self,
        due: &DueReadingList,
        report: &ReadingListReport,
        next_at: DateTime<Utc>,
    ) -> Result<bool, StoreError> {
        const STORE: &str = "
            update reading_lists
               set report = $4, due_at = $5, claim_token = 0
             where resource_id = $1 and subscription_id = $2 and claim_token = $3";
        let report = json(report);
        let ([resource, number], claim) = (key(due.id), due.claim);
        let stored = self.of_number(resource).write(move |tx| {
            Box::pin(async move {
                let next_at = tx.at(next_at);
                tx.execute(STORE, params![resource, number, claim.0, report, next_at]).await
            })
        });
        Ok(stored.await? > 0)
    }

    /// Makes a claimed list due at `at`. If the claim was lost, nothing changes.
    pub async fn release_reading_list(
        &self,
        due: &DueReadingList,
        at: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        let claimed = ([due.id.number], due.claim);
        let released = self
            .of_number(due.id.resource.0)
            .write(move |tx| Box::pin(async move { LISTS.release(tx, claimed, at, "").await }));
        released.await.map(drop)
    }

    /// Forgets a claimed list that is not followed any more. If the claim was lost, nothing changes.
    pub async fn forget_reading_list(&self, due: &DueReadingList) -> Result<(), StoreError> {
        let claimed = ([due.id.number], due.claim);
        let forgotten = self
            .of_number(due.id.resource.0)
            .write(move |tx| Box::pin(async move { LISTS.delete_claimed(tx, claimed).await }));
        forgotten.await.map(drop)
    }

    /// Returns the report on the list that a subscription follows.
    pub async fn reading_list_report(
        &self,
        id: SubscriptionId,
    ) -> Result<Option<ReadingListReport>, StoreError> {
        const REPORT: &str = "
            select report from reading_lists where resource_id = $1 and subscription_id = $2";
        let db = self.of_number(id.resource.0);
        let rows = db.rows(REPORT, params![id.resource.0, id.number]).await?;
        rows.into_iter().next().map(|mut row| row.json()).transpose()
    }

    /// Returns up to `limit` subscriptions of each cell that were made for a list, and whether they are sent a
    /// digest.
    pub async fn subscribed_by_list(
        &self,
        account: AccountId,
        list: &Topic,
        callback: &Callback,
        limit: usize,
    ) -> Result<Vec<(Subscription, bool)>, StoreError> {
        let found = self.each(|db| db.subscribed_by_list(account, list, callback, limit));
        Ok(found.await?.into_iter().flatten().collect())
    }

    /// Ends a subscription that was made for a reading list. Returns `false` if there is none: its owner may have
    /// made it their own.
    pub async fn end_listed(&self, listed: &Subscription) -> Result<bool, StoreError> {
        const END: &str = concat!(
            "delete from subscriptions
              where resource_id = $1 and id = $2 and reading_list = $3 returning ",
            counted_columns!()
        );
        let (id, list) = (listed.id, listed.reading_list.clone());
        let ended = self.of_number(id.resource.0).write(move |tx| {
            Box::pin(async move {
                row::lock(tx, vec![id.resource.0]).await?;
                let ended = tx.query(END, params![id.resource.0, id.number, list]).await?;
                let ended = ended.into_iter().map(|mut row| CountedSubscription::read(&mut row));
                let ended = ended.collect::<Result<Vec<_>, _>>()?;
                let is_ended = !ended.is_empty();
                count_off(tx, ended).await?;
                Ok(is_ended)
            })
        });
        ended.await
    }
}

impl Db {
    async fn subscribed_by_list(
        &self,
        account: AccountId,
        list: &Topic,
        callback: &Callback,
        limit: usize,
    ) -> Result<Vec<(Subscription, bool)>, StoreError> {
        const LISTED: &str = concat!(
            "select ",
            subscription_columns!(),
            ", case when s.digest_at is null then 0 else 1 end
               from subscriptions s join resources r on r.id = s.resource_id
              where s.reading_list = $1 and s.reading_list <> '' and s.account_id = $2
                and s.callback = $3 and r.topic <> $1
              limit $4"
        );
        let params = params![list.as_str(), account.0, callback.as_str(), most(limit)];
        let rows = self.rows(LISTED, params).await?;
        rows.into_iter().map(|mut row| Ok((subscription(&mut row)?, row.int()? != 0))).collect()
    }
}

/// Notes that a subscription follows a list, or does not any more. The list is due at once.
pub(crate) async fn follow_list(
    tx: &Tx<'_>,
    made: &Subscription,
    request: &SubscriptionRequest,
    now: DateTime<Utc>,
) -> Result<(), StoreError> {
    const FOLLOW: &str = "
        insert into reading_lists (resource_id, subscription_id, account_id, topic, callback, due_at, report)
        values ($1, $2, $3, $4, $5, $6, $7)
            on conflict (resource_id, subscription_id) do update
           set due_at = excluded.due_at, claim_token = 0";
    match (&request.reading_list, made.account) {
        (_, Some(account)) if made.follows_list() => {
            let [resource, number] = key(made.id);
            let (list, callback) = (made.topic.as_str(), made.callback.as_str());
            let none = json(&ReadingListReport::default());
            let now = tx.at(now);
            let params = params![resource, number, account.0, list, callback, now, none];
            tx.execute(FOLLOW, params).await.map(drop)
        }
        (Some(_), Some(_)) if made.reading_list.is_empty() => mark_due(tx, made.id).await,
        _ => Ok(()),
    }
}

/// Makes the list due that a subscription follows or has followed.
pub(crate) async fn mark_due(tx: &Tx<'_>, id: SubscriptionId) -> Result<(), StoreError> {
    const DUE: &str = "
        update reading_lists set due_at = 0, claim_token = 0
         where resource_id = $1 and subscription_id = $2";
    tx.execute(DUE, params![id.resource.0, id.number]).await.map(drop)
}

/// Makes the lists due that these subscriptions follow, whose account is active again.
pub(crate) async fn mark_resumed_due(
    tx: &Tx<'_>,
    subscriptions: &[(&'static str, Value)],
) -> Result<(), StoreError> {
    const DUE: &str = "
        update reading_lists set due_at = 0, claim_token = 0 {from rows}
         where reading_lists.resource_id = {given resource_id}
           and reading_lists.subscription_id = {given id}";
    tx.execute_rows(DUE, &[], subscriptions).await.map(drop)
}

/// Makes the lists due whose document has changed: [`MOST_MARKED`] of them, and the others when they are read
/// anyway.
pub(crate) async fn mark_changed_due(
    tx: &Tx<'_>,
    document: ResourceId,
    now: DateTime<Utc>,
) -> Result<(), StoreError> {
    const FOLLOWED: &str = "
        select subscription_id from reading_lists
         where resource_id = $1 order by subscription_id limit $2";
    const CHANGED: &str = "
        update reading_lists set due_at = $2, claim_token = 0
         where resource_id = $1 and subscription_id in ({ids $3})";
    let followed = tx.query(FOLLOWED, params![document.0, MOST_MARKED]).await?;
    let followed = followed.into_iter().map(|mut row| row.int());
    let followed = followed.collect::<Result<Vec<_>, StoreError>>()?;
    if followed.is_empty() {
        return Ok(());
    }
    let params = [document.0.into(), now.into(), Value::Ints(followed)];
    tx.execute(CHANGED, &params).await.map(drop)
}

fn key(id: SubscriptionId) -> [i64; 2] {
    [id.resource.0, id.number]
}

/// Returns the number of the hour of a time since 1970.
fn hour(at: DateTime<Utc>) -> i64 {
    at.timestamp().div_euclid(3_600)
}

/// Reads a list that was claimed.
pub(crate) fn due_list(
    number: i64,
    claim: ClaimToken,
    mut row: Row,
) -> Result<DueReadingList, StoreError> {
    Ok(DueReadingList {
        id: SubscriptionId { resource: ResourceId(row.int()?), number },
        claim,
        account: AccountId(row.int()?),
        topic: topic(&mut row)?,
        callback: callback(&mut row)?,
        report: row.json()?,
    })
}
