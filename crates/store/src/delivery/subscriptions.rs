//! Subscriptions: creating, ending and listing them.
//!
//! Every transaction that adds or removes a subscription locks its resource's row first and updates
//! the count there, because a resource without subscribers is never due.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use futures_util::future::try_join_all;

use crate::Db;
use crate::delivery::renewal::{newest_number, renew_known};
use crate::delivery::row::{OPTIONS, SECRET, number, option_values, subscriber};
use crate::delivery::subscriber_counts::{CountedSubscription, count_begun, count_of};
use crate::delivery::unsubscribe::unsubscribe;
use crate::delivery::{
    backlogs, deliveries_of_node, digests, generations, kept_cursors, listing, pausing, progress,
    replays,
};
use crate::engine::columns::inserted;
use crate::engine::sql::params;
use crate::engine::tx::{Tx, Wake};
use crate::log::account_budget;
use crate::resources::ensure::ensure;
use feedgate_core::account::AccountId;
use feedgate_core::claim::{ClaimToken, QueuePosition};
use feedgate_core::host_groups::HostGroups;
use feedgate_core::ports::{
    ClaimLimits, ClaimedSubscriptions, DeliveryProgress, DeliveryResult, HeldDelivery,
    ListedSubscription, LogNumbers, StoreError, SubscriptionFilter, Subscriptions,
};
use feedgate_core::record::Seq;
use feedgate_core::resource::{Resource, ResourceId};
use feedgate_core::signing::Secret;
use feedgate_core::subscription::{
    DueSubscription, Format, Subscription, SubscriptionId, SubscriptionOwner, SubscriptionRequest,
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

    async fn count_owned(&self, owner: &SubscriptionOwner) -> Result<u64, StoreError> {
        let owner = owner.clone();
        self.read(move |tx| Box::pin(async move { count_of(tx, &owner).await })).await
    }

    async fn list(
        &self,
        filter: &SubscriptionFilter,
    ) -> Result<(Vec<ListedSubscription>, u64), StoreError> {
        let filter = filter.clone();
        self.read(move |tx| Box::pin(listing::list(tx, filter))).await
    }

    async fn listed(&self, id: SubscriptionId) -> Result<Option<ListedSubscription>, StoreError> {
        self.read(move |tx| Box::pin(listing::listed(tx, id))).await
    }

    async fn claim_subscriptions(
        &self,
        now: DateTime<Utc>,
        until: DateTime<Utc>,
        limits: &ClaimLimits,
        from: QueuePosition,
    ) -> Result<ClaimedSubscriptions, StoreError> {
        deliveries_of_node::claim(self, (now, until), limits, from).await
    }

    async fn claim_subscriptions_of_host(
        &self,
        host: &str,
        now: DateTime<Utc>,
        until: DateTime<Utc>,
        limit: usize,
    ) -> Result<Vec<DueSubscription>, StoreError> {
        deliveries_of_node::claim_of_host(self, (now, until), host, limit).await
    }

    async fn renew_subscription_claims(
        &self,
        claims: &[(SubscriptionId, ClaimToken)],
        now: DateTime<Utc>,
        until: DateTime<Utc>,
    ) -> Result<Vec<SubscriptionId>, StoreError> {
        deliveries_of_node::renew(self, claims, now, until).await
    }

    async fn release_subscription_claims(
        &self,
        claims: &[(SubscriptionId, ClaimToken)],
        now: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        deliveries_of_node::release(self, claims, now).await
    }

    async fn still_current(
        &self,
        held: &[HeldDelivery],
        now: DateTime<Utc>,
    ) -> Result<Vec<SubscriptionId>, StoreError> {
        let held = held.to_vec();
        let current = self.read(move |tx| {
            Box::pin(async move { generations::still_current(tx, &held, now).await })
        });
        current.await
    }

    async fn settle(
        &self,
        settled: &[DeliveryResult],
        now: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        deliveries_of_node::settle(self, settled, now).await
    }

    async fn delivery_progress(
        &self,
        resource: ResourceId,
        before: LogNumbers,
        now: DateTime<Utc>,
    ) -> Result<DeliveryProgress, StoreError> {
        self.read(move |tx| Box::pin(progress::delivery_progress(tx, resource, before, now))).await
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
        self.write(move |tx| Box::pin(replays::replay(tx, id, cursor, now))).await
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
               appends_paid_at = case when cast($3 as bigint) = 1 then 0
                                      when appends_paid_at > anonymous_paid_at
                                           and cast($4 as bigint) < 0
                                           and not exists (select 1 from account_appends
                                                            where account_id = $4
                                                              and used_up_day = $5)
                                      then anonymous_paid_at else appends_paid_at end
         where id = $1 and kind <> 'collection'";
    let Some((first, now)) = requests.first() else { return Ok(Vec::new()) };
    let resource = ensure(tx, groups, (&first.topic, first.registrant), *now).await?;
    // PostgreSQL gets all inserts at once, so that the resource is not locked for as many round
    // trips. The first one goes ahead, because it prepares the statement for the others.
    let (first, others) = (&requests[..1], &requests[1..]);
    let mut made = make_all(tx, &resource, first).await?;
    made.extend(make_all(tx, &resource, others).await?);
    let begun: Vec<_> = made.iter().flatten().map(CountedSubscription::from).collect();
    let mut subscriptions = Vec::with_capacity(requests.len());
    for (made, (request, now)) in made.into_iter().zip(&requests) {
        subscriptions.push(match made {
            Some(made) => made,
            None => renew_known(tx, &resource, request, *now).await?,
        });
    }
    if !begun.is_empty() {
        // The budget of subscribers without an account does not apply to others, and that of a network
        // only to who subscribes from there.
        let ends_wait = has_budget(tx, &subscriptions, *now).await?;
        let networks = requests.iter().map(|(request, _)| request.registrant.as_number());
        let network = networks.min().unwrap_or_default();
        let count = begun.len() as i64;
        let params =
            params![resource.id.0, count, ends_wait, network, account_budget::day_of(*now)];
        tx.execute(COUNT, params).await?;
        if resource.subscribers == 0 {
            tx.wake(Wake::Resources);
        }
        count_begun(tx, begun.into_iter()).await?;
    }
    Ok(subscriptions)
}

/// Returns whether one of the accounts of these subscriptions may have more appended today.
async fn has_budget(
    tx: &Tx<'_>,
    subscriptions: &[Subscription],
    now: DateTime<Utc>,
) -> Result<bool, StoreError> {
    let accounts: BTreeSet<_> = subscriptions.iter().filter_map(|made| made.account).collect();
    for account in accounts {
        if !account_budget::is_used_up(tx, account, now).await? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Creates the subscriptions, as [`make`] does, in their order.
async fn make_all(
    tx: &Tx<'_>,
    resource: &Resource,
    requests: &[(SubscriptionRequest, DateTime<Utc>)],
) -> Result<Vec<Option<Subscription>>, StoreError> {
    try_join_all(requests.iter().map(|(request, now)| make(tx, resource, request, *now))).await
}

/// The columns of a new subscription besides its options.
const OWN: [&str; 15] = [
    "resource_id",
    "account_id",
    "callback",
    "host",
    "protocol",
    "alias",
    "acknowledged_status",
    "secret",
    "cursor",
    "signature_method",
    "lease_until",
    "created_at",
    "digest_at",
    "begun_after",
    "registrant_network",
];

/// Stores a subscription, unless there is one with this account, callback, protocol and alias.
static MAKE: LazyLock<String> = LazyLock::new(|| {
    let inserted = inserted(&[OWN.as_slice(), &OPTIONS].concat());
    format!(
        "insert into subscriptions {inserted}
             on conflict (resource_id, account_id, callback, protocol, alias) do nothing
         returning id"
    )
});

/// Creates the subscription. Returns `None` if there is one with this account, callback, protocol
/// and alias.
async fn make(
    tx: &Tx<'_>,
    resource: &Resource,
    request: &SubscriptionRequest,
    now: DateTime<Utc>,
) -> Result<Option<Subscription>, StoreError> {
    let status = request.statuses.version(&resource.status);
    let (head, lease_until) = (newest_number(resource, request.format), request.lease.end(now));
    // A kept cursor lags behind the log, so that what the subscriber has missed is due at once.
    let kept = kept_cursors::take_cursor(tx, resource.id, request, now).await?;
    let cursor = kept.map_or(head, |kept| kept.min(head));
    let begun_after = if request.format == Format::Raw { resource.head.0 } else { cursor };
    let (topic, callback) = (&request.topic, &request.callback);
    let identity = subscriber(topic, callback, &request.protocol);
    let secret = request.signing.secret.as_ref().map(Secret::expose);
    let secret = tx.seal(SECRET, &identity, secret)?;
    let own = params![
        resource.id.0,
        number(request.account),
        request.callback.as_str(),
        request.callback.host(),
        request.protocol.as_str(),
        request.topic.alias().unwrap_or_default(),
        status,
        secret,
        cursor,
        request.signing.method.map(SignatureMethod::as_str),
        lease_until,
        now,
        digests::first(request, now),
        begun_after,
        request.registrant.as_number(),
    ];
    let params = [own.as_slice(), &option_values(request)].concat();
    let Some(mut made) = tx.first(&MAKE, &params).await? else { return Ok(None) };
    let id = SubscriptionId { resource: resource.id, number: made.int()? };
    if cursor < head {
        backlogs::mark_one(tx, id, now).await?;
    }
    Ok(Some(request.begin(id, Seq(cursor), status, now)))
}
