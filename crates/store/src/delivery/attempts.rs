//! Recorded attempts to deliver.
//!
//! An attempt is stored after the result of its delivery, in a transaction of its own, which locks
//! nothing that a delivery waits for: only the keys of the subscriptions, so that none of them is
//! deleted in between.

use std::collections::BTreeSet;
use std::time::Duration;

use futures_util::future::try_join_all;

use crate::Store;
use crate::delivery::row::subscription_id;
use crate::engine::row::Row;
use crate::engine::sql::{Value, json, params};
use crate::engine::tx::Tx;
use crate::log::row::most;
use feedgate_core::attempt::{
    AttemptVerdict, AttemptedRequest, DeliveryAttempt, PayloadContent, RecordedResponse,
    StoredAttempt,
};
use feedgate_core::record::Seq;
use feedgate_core::store::{AttemptRange, AttemptRetention, StoreError};
use feedgate_core::subscription::SubscriptionId;

/// The number of rows deleted in one transaction: few enough that no other transaction waits long.
const BATCH: i64 = 1_000;

/// The columns as [`stored`] reads them, and the conditions on the rows.
macro_rules! wanted {
    ($then:literal) => {
        concat!(
            "select id, resource_id, subscription_id, at, took, verdict, code, error, next_at,
                    content, first_number, last_number, entries, body_bytes, content_type,
                    request_headers, status, is_public, response_headers, response_body
               from delivery_attempts
              where resource_id = $1 and subscription_id = $2 ",
            $then
        )
    };
}

/// Recorded attempts to deliver, which end with their subscription.
impl Store {
    /// Stores attempts in this order, and deletes the oldest of each of their subscriptions that has
    /// more than `most_of_subscription`. Attempts of subscriptions that ended meanwhile are left
    /// out. Returns how many were stored.
    pub async fn append_attempts(
        &self,
        attempts: Vec<DeliveryAttempt>,
        most_of_subscription: usize,
    ) -> Result<u64, StoreError> {
        let by_cell = self.by_cell(attempts, |attempt| attempt.subscription.resource.0);
        let stored = by_cell.into_iter().map(|(db, attempts)| {
            db.write(move |tx| Box::pin(append(tx, attempts, most_of_subscription)))
        });
        Ok(try_join_all(stored).await?.into_iter().sum())
    }

    /// Returns the attempts of a subscription, newest first.
    pub async fn attempts(
        &self,
        id: SubscriptionId,
        range: AttemptRange,
    ) -> Result<Vec<StoredAttempt>, StoreError> {
        let db = self.of_number(id.resource.0);
        const NEWEST: &str = wanted!("and id < $3 order by id desc limit $4");
        let before = range.before.unwrap_or(i64::MAX);
        let params = params![id.resource.0, id.number, before, most(range.limit)];
        db.rows(NEWEST, params).await?.into_iter().map(stored).collect()
    }

    /// Returns the attempt of a subscription with this number.
    pub async fn attempt(
        &self,
        id: SubscriptionId,
        number: i64,
    ) -> Result<Option<StoredAttempt>, StoreError> {
        let db = self.of_number(id.resource.0);
        const ONE: &str = wanted!("and id = $3");
        let rows = db.rows(ONE, params![id.resource.0, id.number, number]).await?;
        rows.into_iter().next().map(stored).transpose()
    }

    /// Returns the newest attempts of a subscription to send a record, newest first, up to `limit`.
    pub async fn attempts_to_send(
        &self,
        id: SubscriptionId,
        seq: Seq,
        limit: usize,
    ) -> Result<Vec<StoredAttempt>, StoreError> {
        let db = self.of_number(id.resource.0);
        const SENT: &str = wanted!(
            "and content = 'entries' and first_number <= $3 and last_number >= $3
              order by id desc limit $4"
        );
        let params = params![id.resource.0, id.number, seq.0, most(limit)];
        db.rows(SENT, params).await?.into_iter().map(stored).collect()
    }

    /// Deletes the attempts that are too old or too many, a bounded number in each transaction.
    /// Returns how many.
    pub async fn trim_attempts(&self, retention: &AttemptRetention) -> Result<u64, StoreError> {
        const OLD: &str = "
            delete from delivery_attempts
             where (resource_id, id) in (select resource_id, id from delivery_attempts
                                          where at < $1 order by at limit $2)";
        const NTH: &str = "select at from delivery_attempts order by at desc limit 1 offset $1";
        let since = retention.since;
        // Subscriptions are spread evenly over the cells.
        let most = most(retention.most.div_ceil(self.cells.len()));
        self.sum(|db| async move {
            let deleted = db.delete_in_batches(OLD, since, BATCH).await?;
            Ok(deleted + db.delete_beyond((NTH, OLD), most, BATCH).await?)
        })
        .await
    }
}

async fn append(
    tx: &Tx<'_>,
    mut attempts: Vec<DeliveryAttempt>,
    most_of_subscription: usize,
) -> Result<u64, StoreError> {
    // Without the lock, a subscription that ends now would leave its attempts behind.
    const EXISTING: &str = "
        select s.resource_id, s.id
          from {rows}
          join subscriptions s on s.resource_id = given.resource_id and s.id = given.id
         {postgres order by s.id for key share of s}";
    const ADD: &str = "
        insert into delivery_attempts (
            resource_id, subscription_id, at, took, verdict, code, error, next_at,
            content, first_number, last_number, entries, body_bytes, content_type,
            request_headers, status, is_public, response_headers, response_body)
        {values resource_id, subscription_id, at, took, verdict, code, error, next_at, \
            content, first_number, last_number, entries, body_bytes, content_type, \
            request_headers, status, is_public, response_headers, response_body}";
    // The newest of those that are too many, of the few subscriptions that have too many.
    const EXCESS: &str = "
        select given.resource_id, given.id, (select a.id from delivery_attempts a
                                              where a.resource_id = given.resource_id
                                                and a.subscription_id = given.id
                                              order by a.id desc limit 1 offset $1)
          from {rows}";
    const SHORTEN: &str = "
        delete from delivery_attempts
        {using rows}
         where delivery_attempts.resource_id = {given resource_id}
           and delivery_attempts.subscription_id = {given subscription_id}
           and delivery_attempts.id <= {given id}";
    let named = subscriptions_of(attempts.iter().map(|attempt| attempt.subscription));
    let mut existing = BTreeSet::new();
    for mut row in tx.query_rows(EXISTING, &[], &named).await? {
        existing.insert(subscription_id(&mut row)?);
    }
    attempts.retain(|attempt| existing.contains(&attempt.subscription));
    let added = tx.execute_rows(ADD, &[], &columns(&attempts)).await?;
    let kept = params![most(most_of_subscription)];
    let (mut resources, mut ids, mut newest) = (Vec::new(), Vec::new(), Vec::new());
    for mut row in tx.query_rows(EXCESS, kept, &subscriptions_of(existing.into_iter())).await? {
        let (resource, id, excess) = (row.int()?, row.int()?, row.opt_int()?);
        let Some(excess) = excess else { continue };
        resources.push(resource);
        ids.push(id);
        newest.push(excess);
    }
    let excess = [
        ("resource_id", Value::Ints(resources)),
        ("subscription_id", Value::Ints(ids)),
        ("id", Value::Ints(newest)),
    ];
    tx.execute_rows(SHORTEN, &[], &excess).await?;
    Ok(added)
}

/// Returns the numbers of subscriptions, each once.
fn subscriptions_of(
    subscriptions: impl Iterator<Item = SubscriptionId>,
) -> [(&'static str, Value); 2] {
    let distinct: BTreeSet<SubscriptionId> = subscriptions.collect();
    let (resources, ids) = distinct.into_iter().map(|id| (id.resource.0, id.number)).unzip();
    [("resource_id", Value::Ints(resources)), ("id", Value::Ints(ids))]
}

fn columns(attempts: &[DeliveryAttempt]) -> [(&'static str, Value); 19] {
    let ints = |of: fn(&DeliveryAttempt) -> i64| Value::Ints(attempts.iter().map(of).collect());
    let opt_ints =
        |of: fn(&DeliveryAttempt) -> Option<i64>| Value::OptInts(attempts.iter().map(of).collect());
    let texts =
        |of: fn(&DeliveryAttempt) -> String| Value::Texts(attempts.iter().map(of).collect());
    let response = |of: fn(&RecordedResponse) -> i64| {
        Value::Ints(attempts.iter().map(|it| it.response.as_ref().map_or(0, of)).collect())
    };
    let bodies = attempts.iter().map(|attempt| {
        attempt.response.as_ref().map(|response| response.body.clone()).unwrap_or_default()
    });
    [
        ("resource_id", ints(|it| it.subscription.resource.0)),
        ("subscription_id", ints(|it| it.subscription.number)),
        ("at", ints(|it| it.at.timestamp_micros())),
        ("took", ints(|it| i64::try_from(it.took.as_micros()).unwrap_or(i64::MAX))),
        ("verdict", texts(|it| it.verdict.as_str().to_owned())),
        ("code", texts(|it| it.code.clone())),
        ("error", texts(|it| it.error.clone())),
        ("next_at", opt_ints(|it| it.next_attempt_at.map(|at| at.timestamp_micros()))),
        ("content", texts(|it| it.request.content.as_str().to_owned())),
        ("first_number", ints(|it| it.request.first.0)),
        ("last_number", ints(|it| it.request.last.0)),
        ("entries", ints(|it| most(it.request.entries))),
        ("body_bytes", ints(|it| most(it.request.body_bytes))),
        ("content_type", texts(|it| it.request.content_type.clone())),
        ("request_headers", texts(|it| json(&it.request.headers))),
        ("status", opt_ints(|it| it.response.as_ref().map(|response| response.status.into()))),
        ("is_public", response(|response| response.is_public.into())),
        (
            "response_headers",
            texts(|it| it.response.as_ref().map_or("[]".to_owned(), |it| json(&it.headers))),
        ),
        ("response_body", Value::Blobs(bodies.collect())),
    ]
}

fn stored(mut row: Row) -> Result<StoredAttempt, StoreError> {
    let id = row.int()?;
    let subscription = subscription_id(&mut row)?;
    let (at, took) = (row.time()?, Duration::from_micros(row.count()?));
    let verdict = row.word(AttemptVerdict::from_word)?;
    let (code, error, next_attempt_at) = (row.text()?, row.text()?, row.opt_time()?);
    let request = AttemptedRequest {
        content: row.word(PayloadContent::from_word)?,
        first: Seq(row.int()?),
        last: Seq(row.int()?),
        entries: row.small()? as usize,
        body_bytes: row.small()? as usize,
        content_type: row.text()?,
        headers: row.json()?,
    };
    let status = row.opt_int()?;
    let response = RecordedResponse {
        status: status.and_then(|status| u16::try_from(status).ok()).unwrap_or_default(),
        is_public: row.int()? != 0,
        headers: row.json()?,
        body: row.blob()?,
    };
    let response = status.map(|_| response);
    let attempt = DeliveryAttempt {
        subscription,
        at,
        took,
        request,
        response,
        error,
        verdict,
        code,
        next_attempt_at,
    };
    Ok(StoredAttempt { id, attempt })
}
