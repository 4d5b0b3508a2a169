//! Subscriptions: creating, ending and listing them.
//!
//! Every transaction that adds or removes a subscription locks its resource's row first and updates
//! the count there, because a resource without subscribers is never due.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use futures_util::future::try_join_all;

use crate::Db;
use crate::delivery::row::{number, subscription, subscription_columns};
use crate::delivery::subscriber_counts::count_off;
use crate::delivery::{claim, deliveries, digests, listing, pausing};
use crate::engine::sql::params;
use crate::engine::tx::{Tx, Wake};
use crate::resources::ensure::ensure;
use feedgate_core::account::AccountId;
use feedgate_core::claim::{ClaimToken, QueuePosition};
use feedgate_core::host_groups::HostGroups;
use feedgate_core::ports::{
    ClaimLimits, ClaimedSubscriptions, DeliveryProgress, DeliveryResult, ListedSubscription,
    LogNumbers, StoreError, SubscriptionFilter, Subscriptions,
};
use feedgate_core::record::Seq;
use feedgate_core::resource::{Resource, ResourceId};
use feedgate_core::signing::Secret;
use feedgate_core::subscription::{
    DueSubscription, Format, Subscription, SubscriptionId, SubscriptionRequest,
};
use feedgate_core::topic::{Callback, Topic};
use feedgate_protocol::signature::SignatureMethod;

#[async_trait]
impl Subscriptions for Db {
    async fn subscribe(
        &self,
        request: &SubscriptionRequest,
        now: DateTime<Utc>,
    ) -> Result<Subscription, StoreError> {
        self.subscriptions.subscribe(request.clone(), now).await
    }

    async fn unsubscribe(
        &self,
        account: Option<AccountId>,
        topic: &Topic,
        callback: &Callback,
        protocol: Option<&str>,
    ) -> Result<bool, StoreError> {
        let (topic, callback) = (topic.clone(), callback.clone());
        let protocol = protocol.map(str::to_owned);
        let ended = self.write(move |tx| {
            Box::pin(async move {
                unsubscribe(tx, account, (&topic, &callback), protocol.as_deref()).await
            })
        });
        ended.await
    }

    async fn list(
        &self,
        filter: &SubscriptionFilter,
    ) -> Result<(Vec<ListedSubscription>, u64), StoreError> {
        let filter = filter.clone();
        self.read(move |tx| Box::pin(listing::list(tx, filter))).await
    }

    async fn claim_subscriptions(
        &self,
        now: DateTime<Utc>,
        until: DateTime<Utc>,
        limits: &ClaimLimits,
        from: QueuePosition,
    ) -> Result<ClaimedSubscriptions, StoreError> {
        let (limits, claims) = (limits.clone(), self.claims.clone());
        self.write(move |tx| {
            Box::pin(async move {
                let lease = claims.lease(tx, now, until).await?;
                claim::claim(tx, lease, limits, from).await
            })
        })
        .await
    }

    async fn claim_subscriptions_of_host(
        &self,
        host: &str,
        now: DateTime<Utc>,
        until: DateTime<Utc>,
        limit: usize,
    ) -> Result<Vec<DueSubscription>, StoreError> {
        let (host, claims) = (host.to_owned(), self.claims.clone());
        self.write(move |tx| {
            Box::pin(async move {
                let lease = claims.lease(tx, now, until).await?;
                claim::claim_of_host(tx, lease, &host, limit).await
            })
        })
        .await
    }

    async fn renew_subscription_claims(
        &self,
        claims: &[(SubscriptionId, ClaimToken)],
        now: DateTime<Utc>,
        until: DateTime<Utc>,
    ) -> Result<Vec<SubscriptionId>, StoreError> {
        let (held, claims) = (claims.to_vec(), self.claims.clone());
        self.write(move |tx| {
            Box::pin(async move {
                let lease = claims.lease(tx, now, until).await?;
                claim::renew(tx, &held, lease.ends).await
            })
        })
        .await
    }

    async fn release_subscription_claims(
        &self,
        claims: &[(SubscriptionId, ClaimToken)],
        now: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        let held = claims.to_vec();
        self.write(move |tx| Box::pin(async move { claim::release(tx, &held, now).await })).await
    }

    async fn settle(
        &self,
        settled: &[DeliveryResult],
        now: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        let settled = settled.to_vec();
        self.write(move |tx| Box::pin(deliveries::settle(tx, settled, now))).await
    }

    async fn delivery_progress(
        &self,
        resource: ResourceId,
        before: LogNumbers,
        now: DateTime<Utc>,
    ) -> Result<DeliveryProgress, StoreError> {
        self.read(move |tx| Box::pin(deliveries::delivery_progress(tx, resource, before, now)))
            .await
    }

    async fn pause(&self, id: SubscriptionId, now: DateTime<Utc>) -> Result<(), StoreError> {
        self.write(move |tx| Box::pin(pausing::pause(tx, id, now))).await
    }

    async fn resume(&self, id: SubscriptionId, now: DateTime<Utc>) -> Result<(), StoreError> {
        self.write(move |tx| Box::pin(pausing::resume(tx, id, now))).await
    }

    async fn retry_delivery(
        &self,
        id: SubscriptionId,
        now: DateTime<Utc>,
    ) -> Result<bool, StoreError> {
        self.write(move |tx| Box::pin(pausing::retry(tx, id, now))).await
    }

    async fn replay(
        &self,
        id: SubscriptionId,
        cursor: Seq,
        now: DateTime<Utc>,
    ) -> Result<bool, StoreError> {
        self.write(move |tx| Box::pin(deliveries::replay(tx, id, cursor, now))).await
    }

    async fn start_digests(&self, now: DateTime<Utc>) -> Result<u64, StoreError> {
        self.write(move |tx| Box::pin(digests::start(tx, now))).await
    }
}

/// Renews the subscription or creates it. The resource stays locked from beginning to end, so any
/// number of callers may do this at the same time.
pub(crate) async fn subscribe(
    tx: &Tx<'_>,
    groups: &HostGroups,
    request: SubscriptionRequest,
    now: DateTime<Utc>,
) -> Result<Subscription, StoreError> {
    let made = subscribe_together(tx, groups, vec![(request, now)]).await?.pop();
    made.ok_or_else(|| StoreError::Corrupt("a subscription vanished".into()))
}

/// Renews or creates the subscriptions of several requests for one topic.
pub(crate) async fn subscribe_together(
    tx: &Tx<'_>,
    groups: &HostGroups,
    requests: Vec<(SubscriptionRequest, DateTime<Utc>)>,
) -> Result<Vec<Subscription>, StoreError> {
    const COUNT: &str = "
        update resources
           set subscribers = subscribers + $2, unwatched_since = null, was_watched = 1,
               appends_paid_at = case when cast($3 as bigint) = 1 then 0 else appends_paid_at end
         where id = $1 and kind <> 'collection'";
    let Some((first, now)) = requests.first() else { return Ok(Vec::new()) };
    let resource = ensure(tx, groups, &first.topic, *now).await?;
    // PostgreSQL gets all inserts at once, so that the resource is not locked for as many round
    // trips. The first one goes ahead, because it prepares the statement for the others.
    let (first, others) = (&requests[..1], &requests[1..]);
    let mut made = make_all(tx, &resource, first).await?;
    made.extend(make_all(tx, &resource, others).await?);
    let made_count = made.iter().flatten().count() as i64;
    let mut subscriptions = Vec::with_capacity(requests.len());
    for (made, (request, now)) in made.into_iter().zip(&requests) {
        subscriptions.push(match made {
            Some(made) => made,
            None => renew_known(tx, &resource, request, *now).await?,
        });
    }
    if made_count > 0 {
        // The budget of subscribers without an account does not apply to others.
        let has_account = subscriptions.iter().any(|made| made.account.is_some());
        tx.execute(COUNT, params![resource.id.0, made_count, has_account]).await?;
        if resource.subscribers == 0 {
            tx.wake(Wake::Resources).await?;
        }
    }
    Ok(subscriptions)
}

/// Renews the subscription that exists with the account, callback, protocol and alias of `request`.
async fn renew_known(
    tx: &Tx<'_>,
    resource: &Resource,
    request: &SubscriptionRequest,
    now: DateTime<Utc>,
) -> Result<Subscription, StoreError> {
    const FIND: &str = concat!(
        "select ",
        subscription_columns!(),
        " from subscriptions s
          join resources r on r.id = s.resource_id
         where s.resource_id = $1 and s.account_id = $2 and s.callback = $3
           and s.protocol = $4 and s.alias = $5"
    );
    let key = params![
        resource.id.0,
        number(request.account),
        request.callback.as_str(),
        request.protocol.as_str(),
        request.topic.alias().unwrap_or_default()
    ];
    let vanished = || StoreError::Corrupt("a subscription vanished".into());
    let known = subscription(&mut tx.first(FIND, key).await?.ok_or_else(vanished)?)?;
    renew(tx, resource, &known, request, now).await?;
    subscription(&mut tx.first(FIND, key).await?.ok_or_else(vanished)?)
}

/// Ends the subscription to a topic with a callback, in all protocols if none is named.
pub(crate) async fn unsubscribe(
    tx: &Tx<'_>,
    account: Option<AccountId>,
    (topic, callback): (&Topic, &Callback),
    protocol: Option<&str>,
) -> Result<bool, StoreError> {
    const RESOURCE: &str = "select id from resources where topic = $1 {for update}";
    const END: &str = "
        delete from subscriptions
         where resource_id = $1 and account_id = $2 and callback = $3
           and protocol = coalesce($4, protocol) and alias = $5";
    let Some(mut row) = tx.first(RESOURCE, params![topic.as_str()]).await? else {
        return Ok(false);
    };
    let id = row.int()?;
    let alias = topic.alias().unwrap_or_default();
    let protocol = protocol.map(str::to_owned);
    let params = params![id, number(account), callback.as_str(), protocol, alias];
    let ended = tx.execute(END, params).await?;
    count_off(tx, &vec![id; ended as usize]).await?;
    Ok(ended > 0)
}

/// Returns the cursor of a new subscription with this format: the newest record or body.
fn end(resource: &Resource, format: Format) -> i64 {
    match format {
        Format::Raw => resource.body_version,
        Format::Atom | Format::Json | Format::Fitting => resource.head.0,
    }
}

/// Creates the subscriptions, as [`make`] does, in their order.
async fn make_all(
    tx: &Tx<'_>,
    resource: &Resource,
    requests: &[(SubscriptionRequest, DateTime<Utc>)],
) -> Result<Vec<Option<Subscription>>, StoreError> {
    try_join_all(requests.iter().map(|(request, now)| make(tx, resource, request, *now))).await
}

/// Creates the subscription. Returns `None` if there is one with this account, callback, protocol
/// and alias.
async fn make(
    tx: &Tx<'_>,
    resource: &Resource,
    request: &SubscriptionRequest,
    now: DateTime<Utc>,
) -> Result<Option<Subscription>, StoreError> {
    const MAKE: &str = "
        insert into subscriptions (resource_id, account_id, callback, host, protocol,
                                   procedure, format, updates, statuses,
                                   acknowledged_status, secret, cursor, lease_until,
                                   created_at, alias, signature_method, digest_at)
        values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)
            on conflict (resource_id, account_id, callback, protocol, alias) do nothing
        returning id";
    let status = request.statuses.version(&resource.status);
    let (cursor, lease_until) = (end(resource, request.format), request.lease.end(now));
    #[rustfmt::skip]
    let params = params![
        resource.id.0, number(request.account), request.callback.as_str(), request.callback.host(),
        request.protocol.as_str(), request.protocol.procedure(), request.format.as_str(),
        request.updates.as_str(), request.statuses.as_str(), status,
        request.signing.secret.as_ref().map(Secret::expose), cursor, lease_until, now,
        request.topic.alias().unwrap_or_default(),
        request.signing.method.map(SignatureMethod::as_str), digests::first(request, now),
    ];
    let Some(mut made) = tx.first(MAKE, params).await? else { return Ok(None) };
    Ok(Some(Subscription {
        id: SubscriptionId { resource: resource.id, number: made.int()? },
        account: request.account,
        topic: request.topic.clone(),
        callback: request.callback.clone(),
        protocol: request.protocol.clone(),
        format: request.format,
        updates: request.updates,
        statuses: request.statuses,
        status_told: status,
        signing: request.signing.begin(),
        cursor: Seq(cursor),
        failures: 0,
        failing_since: None,
        lease_until,
        created_at: now,
    }))
}

/// Replaces the options with those of the request, resets failures, and retries at once a delivery
/// that waited for a retry. A delivery in progress, if there is one, ends first; the cursor in its
/// result counts only if both cursors run over the same numbers.
async fn renew(
    tx: &Tx<'_>,
    resource: &Resource,
    known: &Subscription,
    request: &SubscriptionRequest,
    now: DateTime<Utc>,
) -> Result<(), StoreError> {
    const RENEW: &str = "
        update subscriptions
           set procedure = $3, format = $4, secret = $5, cursor = $6, lease_until = $7,
               updates = $11, statuses = $12, acknowledged_status = $13, failures = 0,
               failed_changes = 0, failed_upto = 0, failing_since = null,
               signature_method = $15, previous_secret = $16, previous_secret_until = $17,
               digest_at = case when cast($18 as bigint) is null then null
                                else coalesce(digest_at, $18) end,
               replay_from = case when cast($10 as bigint) = 0 then replay_from
                                  when claimed_until > $8 then cast($6 as bigint) end,
               replayed_upto = case when cast($10 as bigint) = 0 then replayed_upto else 0 end,
               due_at = case when paused_at is not null then null
                             when claimed_until > $8 then due_at
                             when cast($6 as bigint) < cast($9 as bigint) then $8
                             when cast($13 as bigint) < cast($14 as bigint) then $8 end
         where resource_id = $1 and id = $2";
    let owed = end(resource, request.format);
    let behind = known.cursor.0 < end(resource, known.format);
    let changed = (known.format == Format::Raw) != (request.format == Format::Raw);
    // A cursor over records has no meaning for bodies, nor the other way round: a subscription that
    // was behind in one is owed the newest of the other.
    let cursor = match (changed, behind) {
        (false, _) => known.cursor.0,
        (true, true) => (owed - 1).max(0),
        (true, false) => owed,
    };
    let status = request.statuses.version(&resource.status);
    let status_told = if known.statuses == request.statuses { known.status_told } else { status };
    let signing = known.signing.renew(&request.signing, now);
    let previous = signing.previous.as_ref();
    #[rustfmt::skip]
    let params = params![
        known.id.resource.0, known.id.number, request.protocol.procedure(), request.format.as_str(),
        signing.secret.as_ref().map(Secret::expose), cursor, request.lease.end(now), now, owed,
        i64::from(changed), request.updates.as_str(), request.statuses.as_str(), status_told, status,
        signing.method.map(SignatureMethod::as_str), previous.map(|previous| previous.secret.expose()),
        previous.map(|previous| previous.until), digests::first(request, now),
    ];
    tx.execute(RENEW, params).await?;
    if cursor < owed || status_told < status {
        tx.wake(Wake::Subscriptions).await?;
    }
    Ok(())
}
