//! Subscriptions, intents and forwarded pings: each in the cell of its topic.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use futures_util::future::{BoxFuture, join_all, try_join_all};

use crate::Db;
use crate::cells::Cells;
use crate::cells::claiming::CellClaims;
use crate::cells::merge::merge;
use crate::delivery::listing;
use feedgate_core::account::AccountId;
use feedgate_core::claim::{CellPosition, ClaimToken, QueuePosition};
use feedgate_core::intent::{DueIntent, Intent};
use feedgate_core::ping::WeblogChange;
use feedgate_core::ping_forwarding::DuePing;
use feedgate_core::ports::{
    ClaimLimits, ClaimedSubscriptions, DeliveryProgress, DeliveryResult, EventArrival,
    HeldDelivery, Intents, ListedSubscription, LogNumbers, PingTargets, StoreError,
    SubscriptionFilter, Subscriptions,
};
use feedgate_core::record::Seq;
use feedgate_core::resource::ResourceId;
use feedgate_core::subscription::{
    DueSubscription, Subscription, SubscriptionId, SubscriptionOwner, SubscriptionRequest,
};
use feedgate_core::topic::{Callback, Topic};

#[async_trait]
impl Subscriptions for Cells {
    async fn subscribe(
        &self,
        request: &SubscriptionRequest,
        now: DateTime<Utc>,
    ) -> Result<Subscription, StoreError> {
        self.of_topic(request.topic.as_str()).subscribe(request, now).await
    }

    async fn unsubscribe(
        &self,
        account: Option<AccountId>,
        topic: &Topic,
        callback: &Callback,
        protocol: Option<&str>,
    ) -> Result<bool, StoreError> {
        self.of_topic(topic.as_str()).unsubscribe(account, topic, callback, protocol).await
    }

    async fn listed(&self, id: SubscriptionId) -> Result<Option<ListedSubscription>, StoreError> {
        self.of_number(id.resource.0).listed(id).await
    }

    async fn count_owned(&self, owner: &SubscriptionOwner) -> Result<u64, StoreError> {
        let counts = self.cells.iter().map(|cell| cell.count_owned(owner));
        Ok(try_join_all(counts).await?.into_iter().sum())
    }

    async fn list(
        &self,
        filter: &SubscriptionFilter,
    ) -> Result<(Vec<ListedSubscription>, u64), StoreError> {
        if let Some(topic) = &filter.topic {
            return self.of_topic(topic).list(filter).await;
        }
        let counts = try_join_all(self.cells.iter().map(|cell| cell.count_listed(filter))).await?;
        let most_counted = u64::try_from(listing::most_counted(filter)).unwrap_or_default();
        let total = counts.into_iter().sum::<u64>().min(most_counted);
        let page = |cell, offset, limit| {
            let filter = SubscriptionFilter { offset, limit, ..filter.clone() };
            Db::list_page(cell, filter)
        };
        let created = |listed: &ListedSubscription| {
            (listed.subscription.created_at, listed.subscription.id.number)
        };
        let listed = merge(&self.cells, (filter.offset, filter.limit), page, created).await?;
        Ok((listed, total))
    }

    async fn claim_subscriptions(
        &self,
        now: DateTime<Utc>,
        until: DateTime<Utc>,
        limits: &ClaimLimits,
        from: QueuePosition,
    ) -> Result<ClaimedSubscriptions, StoreError> {
        let mut position = match from.cell.remaining {
            Some(_) => from,
            None => QueuePosition { cell: self.begin_search(), ..from },
        };
        let (mut claims, mut skipped) = (CellClaims::new(limits.limit), 0);
        loop {
            let limits = ClaimLimits { limit: claims.left(), ..limits.clone() };
            let cell = &self.cells[usize::from(position.cell.current) % self.cells.len()];
            let claimed = cell.claim_subscriptions(now, until, &limits, position).await;
            let place = position.cell;
            let (is_end, claimed) = match claimed {
                Ok(claimed) => {
                    skipped += claimed.skipped;
                    position = QueuePosition { cell: place, ..claimed.position };
                    (claimed.is_end, Ok(claimed.due))
                }
                Err(err) => (true, Err(err)), // the search goes on in the next cell
            };
            claims.add(claimed);
            if !is_end {
                let due = claims.into_claimed();
                return Ok(ClaimedSubscriptions { due, position, skipped, is_end });
            }
            let Some(remaining) = place.remaining.and_then(|left| left.checked_sub(1)) else {
                let due = claims.finish()?;
                return Ok(ClaimedSubscriptions { due, position, skipped, is_end });
            };
            let current = (place.current + 1) % self.cells.len() as u16;
            let cell = CellPosition { current, remaining: Some(remaining) };
            position = QueuePosition { cell, ..QueuePosition::START };
        }
    }

    async fn claim_subscriptions_of_host(
        &self,
        host: &str,
        now: DateTime<Utc>,
        until: DateTime<Utc>,
        limit: usize,
    ) -> Result<Vec<DueSubscription>, StoreError> {
        let mut claims = CellClaims::new(limit);
        for cell in self.in_turn() {
            if claims.left() == 0 {
                break;
            }
            let left = claims.left();
            claims.add(cell.claim_subscriptions_of_host(host, now, until, left).await);
        }
        claims.finish()
    }

    async fn renew_subscription_claims(
        &self,
        claims: &[(SubscriptionId, ClaimToken)],
        now: DateTime<Utc>,
        until: DateTime<Utc>,
    ) -> Result<Vec<SubscriptionId>, StoreError> {
        let by_cell = self.by_cell(claims.to_vec(), |(id, _)| id.resource.0);
        let renewed = self.cells.iter().zip(&by_cell);
        let renewed =
            renewed.map(|(cell, claims)| cell.renew_subscription_claims(claims, now, until));
        Ok(try_join_all(renewed).await?.into_iter().flatten().collect())
    }

    async fn release_subscription_claims(
        &self,
        claims: &[(SubscriptionId, ClaimToken)],
        now: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        let by_cell = self.by_cell(claims.to_vec(), |(id, _)| id.resource.0);
        let released = self.cells.iter().zip(&by_cell).filter(|(_, claims)| !claims.is_empty());
        let released = released.map(|(cell, claims)| cell.release_subscription_claims(claims, now));
        join_all(released).await.into_iter().collect()
    }

    async fn still_current(
        &self,
        held: &[HeldDelivery],
        now: DateTime<Utc>,
    ) -> Result<Vec<SubscriptionId>, StoreError> {
        let by_cell = self.by_cell(held.to_vec(), |held| held.id.resource.0);
        let current = self.cells.iter().zip(&by_cell).filter(|(_, held)| !held.is_empty());
        let current = current.map(|(cell, held)| cell.still_current(held, now));
        Ok(try_join_all(current).await?.into_iter().flatten().collect())
    }

    async fn settle(
        &self,
        settled: &[DeliveryResult],
        now: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        let by_cell = self.by_cell(settled.to_vec(), |result| result.id.resource.0);
        let stored = self.cells.iter().zip(&by_cell).filter(|(_, results)| !results.is_empty());
        let stored = stored.map(|(cell, results)| cell.settle(results, now));
        join_all(stored).await.into_iter().collect() // a cell that fails does not keep the others from it
    }

    async fn delivery_progress(
        &self,
        resource: ResourceId,
        before: LogNumbers,
        now: DateTime<Utc>,
    ) -> Result<DeliveryProgress, StoreError> {
        self.of_number(resource.0).delivery_progress(resource, before, now).await
    }

    async fn pause(&self, id: SubscriptionId, now: DateTime<Utc>) -> Result<(), StoreError> {
        self.of_number(id.resource.0).pause(id, now).await
    }

    async fn resume(&self, id: SubscriptionId, now: DateTime<Utc>) -> Result<(), StoreError> {
        self.of_number(id.resource.0).resume(id, now).await
    }

    async fn retry_delivery(
        &self,
        id: SubscriptionId,
        now: DateTime<Utc>,
    ) -> Result<bool, StoreError> {
        self.of_number(id.resource.0).retry_delivery(id, now).await
    }

    async fn replay(
        &self,
        id: SubscriptionId,
        cursor: Seq,
        now: DateTime<Utc>,
    ) -> Result<bool, StoreError> {
        self.of_number(id.resource.0).replay(id, cursor, now).await
    }

    async fn start_digests(&self, now: DateTime<Utc>) -> Result<u64, StoreError> {
        let mut started = 0;
        for cell in &self.cells {
            started += cell.start_digests(now).await?;
        }
        Ok(started)
    }
}

impl Db {
    async fn count_listed(&self, filter: &SubscriptionFilter) -> Result<u64, StoreError> {
        let filter = filter.clone();
        self.read(move |tx| Box::pin(async move { listing::count_listed(tx, &filter).await })).await
    }

    fn list_page(
        &self,
        filter: SubscriptionFilter,
    ) -> BoxFuture<'_, Result<Vec<ListedSubscription>, StoreError>> {
        Box::pin(self.read(move |tx| Box::pin(listing::list_page(tx, filter))))
    }
}

impl Cells {
    /// Returns the place of a new search through all cells, which begins at another cell each time.
    fn begin_search(&self) -> CellPosition {
        let first = self.turn.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let current = (first % self.cells.len()) as u16;
        CellPosition { current, remaining: Some(self.cells.len() as u16 - 1) }
    }
}

#[async_trait]
impl Intents for Cells {
    async fn enqueue_intent(
        &self,
        intent: &Intent,
        due_at: DateTime<Utc>,
    ) -> Result<i64, StoreError> {
        self.of_topic(intent.request.topic.as_str()).enqueue_intent(intent, due_at).await
    }

    async fn enqueue_claimed_intent(
        &self,
        intent: &Intent,
        now: DateTime<Utc>,
        until: DateTime<Utc>,
    ) -> Result<DueIntent, StoreError> {
        let cell = self.of_topic(intent.request.topic.as_str());
        cell.enqueue_claimed_intent(intent, now, until).await
    }

    async fn claim_intents(
        &self,
        now: DateTime<Utc>,
        until: DateTime<Utc>,
        room: &ClaimLimits,
    ) -> Result<Vec<DueIntent>, StoreError> {
        let host = |due: &DueIntent| due.intent.request.callback.host_name().to_owned();
        let (mut claims, mut room) = (CellClaims::new(room.limit), room.clone());
        for cell in self.in_turn() {
            if claims.left() == 0 {
                break;
            }
            claims.add(cell.claim_intents(now, until, &room).await);
            room.limit = claims.left();
            fill(&mut room, claims.claimed().iter().map(host));
        }
        claims.finish()
    }

    async fn retry_intent(&self, due: &DueIntent, at: DateTime<Utc>) -> Result<(), StoreError> {
        self.of_number(due.id).retry_intent(due, at).await
    }

    async fn release_intent(&self, due: &DueIntent, at: DateTime<Utc>) -> Result<(), StoreError> {
        self.of_number(due.id).release_intent(due, at).await
    }

    async fn complete_intent(
        &self,
        due: &DueIntent,
        now: DateTime<Utc>,
    ) -> Result<Option<EventArrival>, StoreError> {
        self.of_number(due.id).complete_intent(due, now).await
    }

    async fn end_intent(&self, due: &DueIntent) -> Result<(), StoreError> {
        self.of_number(due.id).end_intent(due).await
    }

    async fn supersede(&self, request: &SubscriptionRequest) -> Result<(), StoreError> {
        self.of_topic(request.topic.as_str()).supersede(request).await
    }
}

/// Adds to the busy hosts those that have reached their limit with the jobs claimed so far, so
/// that the limit holds for all cells together.
pub(super) fn fill(room: &mut ClaimLimits, hosts: impl Iterator<Item = String>) {
    let mut counts = std::collections::HashMap::new();
    for host in hosts {
        *counts.entry(host).or_insert(0_usize) += 1;
    }
    let full = counts.into_iter().filter(|(_, count)| *count >= room.per_host);
    let full: Vec<String> = full.map(|(host, _)| host).collect();
    let new = full.into_iter().filter(|host| !room.busy.contains(host)).collect::<Vec<_>>();
    room.busy.extend(new);
}

#[async_trait]
impl PingTargets for Cells {
    async fn forward_ping(&self, weblog: &WeblogChange) -> Result<(), StoreError> {
        let feed_url = weblog.feed_url.as_deref().unwrap_or(&weblog.url);
        self.of_topic(feed_url).forward_ping(weblog).await
    }

    async fn claim_forwarded_pings(
        &self,
        target: &str,
        now: DateTime<Utc>,
        until: DateTime<Utc>,
        limit: usize,
    ) -> Result<Vec<DuePing>, StoreError> {
        let mut claims = CellClaims::new(limit);
        for cell in self.in_turn() {
            if claims.left() == 0 {
                break;
            }
            let left = claims.left();
            claims.add(cell.claim_forwarded_pings(target, now, until, left).await);
        }
        claims.finish()
    }

    async fn finish_forwarded_ping(
        &self,
        due: &DuePing,
        retry_at: Option<DateTime<Utc>>,
        now: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        self.of_number(due.id).finish_forwarded_ping(due, retry_at, now).await
    }

    async fn forget_other_targets(&self, known: &[String]) -> Result<u64, StoreError> {
        let forgotten = self.cells.iter().map(|cell| cell.forget_other_targets(known));
        Ok(try_join_all(forgotten).await?.into_iter().sum())
    }
}
