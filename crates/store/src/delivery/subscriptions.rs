//! Subscriptions: creating, ending and listing them.
//!
//! Every transaction that adds or removes a subscription locks its resource's row first and updates
//! the count there, because a resource without subscribers is never due.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use chrono::{DateTime, TimeDelta, Utc};
use futures_util::future::try_join_all;

use crate::cells::merge::merge;
use crate::delivery::renewal::{newest_number, renew_known};
use crate::delivery::row::{HEADERS, OPTIONS, SECRET, number, option_values, subscriber};
use crate::delivery::subscriber_counts::{CountedSubscription, count_begun, count_of};
use crate::delivery::unsubscribe::{end_replaced, unsubscribe};
use crate::delivery::{
    backlogs, digests, kept_cursors, listing, pausing, progress, reading_lists, replays,
};
use crate::engine::columns::inserted;
use crate::engine::sql::params;
use crate::engine::tx::{Tx, Wake};
use crate::log::account_budget;
use crate::resources::ensure::ensure;
use crate::{Db, Store};
use feedgate_core::account::AccountId;
use feedgate_core::callback_headers::CallbackHeaders;
use feedgate_core::host_groups::HostGroups;
use feedgate_core::record::Seq;
use feedgate_core::resource::{Resource, ResourceId};
use feedgate_core::signing::Secret;
use feedgate_core::store::{
    DeliveryProgress, ListedSubscription, LogNumbers, StoreError, SubscriptionFilter,
    SubscriptionRange,
};
use feedgate_core::subscription::{
    Format, Subscription, SubscriptionId, SubscriptionOwner, SubscriptionRequest,
};
use feedgate_core::topic::{Callback, Topic};
use feedgate_protocol::signature::SignatureMethod;

/// How long what a resource had when it answered tells what existed before a first subscription.
const BASELINE_VALID_FOR: TimeDelta = TimeDelta::hours(1);

/// Subscriptions and their deliveries.
impl Store {
    /// Stores a verified subscription request, and creates its resource if necessary.
    ///
    /// A new subscription starts at the head. A subscription with the same account, topic, callback
    /// and protocol is renewed: secret, format and lease are replaced, failures are reset, and the
    /// cursor is kept.
    pub async fn subscribe(
        &self,
        request: &SubscriptionRequest,
        now: DateTime<Utc>,
    ) -> Result<Subscription, StoreError> {
        self.of_topic(request.topic.as_str()).subscriptions.subscribe(request.clone(), now).await
    }

    /// Deletes a subscription; `false` if there was none. `protocol` is the word of
    /// [`feedgate_protocol::Protocol::as_str`]; `None` deletes it for all protocols.
    pub async fn unsubscribe(
        &self,
        account: Option<AccountId>,
        topic: &Topic,
        callback: &Callback,
        protocol: Option<&str>,
    ) -> Result<bool, StoreError> {
        let db = self.of_topic(topic.as_str());
        let (topic, callback) = (topic.clone(), callback.clone());
        let protocol = protocol.map(str::to_owned);
        let ended = db.write(move |tx| {
            Box::pin(async move {
                unsubscribe(tx, account, (&topic, &callback), protocol.as_deref()).await
            })
        });
        ended.await
    }

    /// Returns the number of subscriptions of an owner. The cost does not grow with the number.
    pub async fn count_owned(&self, owner: &SubscriptionOwner) -> Result<u64, StoreError> {
        let count = self.sum(|db| {
            let owner = owner.clone();
            db.read(move |tx| Box::pin(async move { count_of(tx, &owner).await }))
        });
        count.await
    }

    /// One page of subscriptions, oldest first, and how many there are in all. Of those after
    /// the offset, 10,000 are counted at most.
    pub async fn list(
        &self,
        filter: &SubscriptionFilter,
    ) -> Result<(Vec<ListedSubscription>, u64), StoreError> {
        let only = match &filter.topic {
            Some(topic) => Some(self.of_topic(topic)),
            None => self.only_cell(),
        };
        if let Some(db) = only {
            let filter = filter.clone();
            return db.read(move |tx| Box::pin(listing::list(tx, filter))).await;
        }
        let total = self.sum(|db| db.count_listed(filter)).await?;
        let total = total.min(u64::try_from(listing::most_counted(filter)).unwrap_or_default());
        let page = |db, offset, limit| {
            Db::list_page(db, SubscriptionFilter { offset, limit, ..filter.clone() })
        };
        let created = |listed: &ListedSubscription| {
            (listed.subscription.created_at, listed.subscription.id.number)
        };
        let listed = merge(&self.cells, (filter.offset, filter.limit), page, created).await?;
        Ok((listed, total))
    }

    /// Returns the subscriptions of an account in a range, in the order of their numbers.
    pub async fn list_range(
        &self,
        range: SubscriptionRange,
    ) -> Result<Vec<ListedSubscription>, StoreError> {
        let cells = match range.resource {
            Some(id) => std::slice::from_ref(&self.cells[self.place_of(id.0)]),
            // The numbers of a cell are greater than those of the cells before it.
            None => &self.cells[self.place_of(range.after)..],
        };
        let mut listed: Vec<ListedSubscription> = Vec::new();
        for cell in cells {
            let rest = SubscriptionRange { limit: range.limit - listed.len(), ..range };
            listed.extend(cell.read(move |tx| Box::pin(listing::list_range(tx, rest))).await?);
            if listed.len() >= range.limit {
                break;
            }
        }
        Ok(listed)
    }

    /// Returns the subscription with this number.
    pub async fn listed(
        &self,
        id: SubscriptionId,
    ) -> Result<Option<ListedSubscription>, StoreError> {
        self.of_number(id.resource.0).read(move |tx| Box::pin(listing::listed(tx, id))).await
    }

    /// Returns the delivery progress of a resource for what came after `before`.
    pub async fn delivery_progress(
        &self,
        resource: ResourceId,
        before: LogNumbers,
        now: DateTime<Utc>,
    ) -> Result<DeliveryProgress, StoreError> {
        self.of_number(resource.0)
            .read(move |tx| Box::pin(progress::delivery_progress(tx, resource, before, now)))
            .await
    }

    /// Pauses deliveries: nothing is due until they are resumed, and what has been claimed is not sent.
    /// A request that is being sent ends, and moves the cursor if it succeeds.
    pub async fn pause(&self, id: SubscriptionId, now: DateTime<Utc>) -> Result<(), StoreError> {
        self.of_number(id.resource.0).write(move |tx| Box::pin(pausing::pause(tx, id, now))).await
    }

    /// Ends a pause. Whatever is owed is due at once.
    pub async fn resume(&self, id: SubscriptionId, now: DateTime<Utc>) -> Result<(), StoreError> {
        self.of_number(id.resource.0).write(move |tx| Box::pin(pausing::resume(tx, id, now))).await
    }

    /// Makes a delivery that is owed due at once, or, while one is in progress, once that has ended.
    /// Returns `false` if nothing is owed.
    pub async fn retry_delivery(
        &self,
        id: SubscriptionId,
        now: DateTime<Utc>,
    ) -> Result<bool, StoreError> {
        self.of_number(id.resource.0).write(move |tx| Box::pin(pausing::retry(tx, id, now))).await
    }

    /// Makes the subscription due again from an earlier cursor.
    pub async fn replay(
        &self,
        id: SubscriptionId,
        cursor: Seq,
        now: DateTime<Utc>,
    ) -> Result<bool, StoreError> {
        self.of_number(id.resource.0)
            .write(move |tx| Box::pin(replays::replay(tx, id, cursor, now)))
            .await
    }

    /// Makes subscriptions due whose digests are, from some entries before their cursors, and sets the
    /// time of the next one. Returns how many; 0 only if no digest is due.
    pub async fn start_digests(&self, now: DateTime<Utc>) -> Result<u64, StoreError> {
        self.sum(|db| db.write(move |tx| Box::pin(digests::start(tx, now)))).await
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
               is_baseline_known = case when subscribers = 0 and answered_at < $6 then 0
                                        else is_baseline_known end,
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
        let (day, known_since) = (account_budget::day_of(*now), *now - BASELINE_VALID_FOR);
        let params = params![resource.id.0, count, ends_wait, network, day, known_since];
        tx.execute(COUNT, params).await?;
        if resource.subscribers == 0 {
            tx.wake(Wake::Resources);
        }
        count_begun(tx, begun.into_iter()).await?;
    }
    for (subscription, (request, now)) in subscriptions.iter().zip(&requests) {
        reading_lists::follow_list(tx, subscription, request, *now).await?;
        end_replaced(tx, request).await?;
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
const OWN: [&str; 17] = [
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
    "header_secret",
    "reading_list",
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
    let headers = request.headers.as_ref().filter(|headers| !headers.is_empty());
    let headers = headers.map(CallbackHeaders::expose);
    let headers = tx.seal(HEADERS, &identity, headers.as_deref())?;
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
        request.new_signing().method.map(SignatureMethod::as_str),
        lease_until,
        now,
        digests::first(request, now),
        begun_after,
        request.registrant.as_number(),
        headers,
        request.reading_list.as_deref().unwrap_or_default(),
    ];
    let params = [own.as_slice(), &option_values(request)].concat();
    let Some(mut made) = tx.first(&MAKE, &params).await? else { return Ok(None) };
    let id = SubscriptionId { resource: resource.id, number: made.int()? };
    if cursor < head {
        backlogs::mark_one(tx, id, now).await?;
    }
    Ok(Some(request.begin(id, Seq(cursor), status, now)))
}
