//! The deliveries of this node: what it claims, renews, gives back and stores, and what it knows of it.
//!
//! What the node holds in memory changes after the transactions that it depends on are committed. Nothing is
//! claimed for hosts that other nodes serve; if their slots are given up during a claim, it is given back.

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use chrono::{DateTime, TimeDelta, Utc};
use foldhash::HashSet;
use futures_util::future::{join_all, try_join_all};
use tracing::warn;

use crate::cells::claiming::CellClaims;
use crate::clock::clock_moves::ClockStamp;
use crate::delivery::backlogs::{self, EndedClaim};
use crate::delivery::claim::{self, ClaimSearch, ClaimedPortions, SearchEnd};
use crate::delivery::held_backlogs::{ContinuedPortions, StoredResults};
use crate::delivery::portions::ReadPortion;
use crate::delivery::{deliveries, generations};
use crate::engine::tx::{Tx, Wake};
use crate::resources::row;
use crate::{Db, Store};
use feedgate_core::claim::{CellPosition, ClaimToken, QueuePosition};
use feedgate_core::resource::ResourceId;
use feedgate_core::store::{
    ClaimLimits, ClaimedSubscriptions, DeliveryOutcome, DeliveryResult, HeldDelivery, StoreError,
};
use feedgate_core::subscription::{DueSubscription, SubscriptionId};

/// How long a resource that is being written is not looked at again, if nothing is signalled.
const LOCKED_PAUSE: Duration = Duration::from_millis(20);

/// Deliveries.
impl Store {
    /// Claims subscriptions whose cursor lags, longest due first, and hides them from other
    /// takers until `until`. The search begins behind `from` and looks at a bounded number of
    /// rows.
    ///
    /// Nothing stays locked in between. If the taker dies, its claim expires and the
    /// subscription is handed out again: a callback may be notified twice, but it is notified.
    pub async fn claim_subscriptions(
        &self,
        now: DateTime<Utc>,
        until: DateTime<Utc>,
        limits: &ClaimLimits,
        from: QueuePosition,
    ) -> Result<ClaimedSubscriptions, StoreError> {
        if let Some(db) = self.only_cell() {
            return claim(db, (now, until), limits, from).await;
        }
        let mut position = match from.cell.remaining {
            Some(_) => from,
            None => QueuePosition {
                cell: CellPosition {
                    current: self.next_turn() as u16,
                    remaining: Some(self.cells.len() as u16 - 1),
                },
                ..from
            },
        };
        let (mut claims, mut skipped) = (CellClaims::new(limits.limit), 0);
        loop {
            let limits = ClaimLimits { limit: claims.left(), ..limits.clone() };
            let cell = &self.cells[usize::from(position.cell.current) % self.cells.len()];
            let claimed = claim(cell, (now, until), &limits, position).await;
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

    /// Claims up to `limit` due subscriptions whose callbacks are at `host`, of each resource and account
    /// about as many: so a change with thousands of subscribers there does not hold up the next change of
    /// another resource.
    pub async fn claim_subscriptions_of_host(
        &self,
        host: &str,
        now: DateTime<Utc>,
        until: DateTime<Utc>,
        limit: usize,
    ) -> Result<Vec<DueSubscription>, StoreError> {
        let claim = |db, limit| claim_of_host(db, (now, until), host, limit);
        self.claim_in_turn(limit, claim).await
    }

    /// Extends the claims of this node to `until`, and returns whose of `claims`, which are all those in
    /// progress, are still held.
    pub async fn renew_subscription_claims(
        &self,
        claims: &[(SubscriptionId, ClaimToken)],
        now: DateTime<Utc>,
        until: DateTime<Utc>,
    ) -> Result<Vec<SubscriptionId>, StoreError> {
        let by_cell = self.by_every_cell(claims.to_vec(), |(id, _)| id.resource.0);
        let renewed = by_cell.iter().map(|(db, claims)| renew(db, claims, now, until));
        Ok(try_join_all(renewed).await?.into_iter().flatten().collect())
    }

    /// Gives back claims under which nothing was sent: what they held is due at `now`.
    pub async fn release_subscription_claims(
        &self,
        claims: &[(SubscriptionId, ClaimToken)],
        now: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        let by_cell = self.by_cell(claims.to_vec(), |(id, _)| id.resource.0);
        let released = by_cell.iter().map(|(db, claims)| release(db, claims, now));
        join_all(released).await.into_iter().collect()
    }

    /// Gives back claims under which nothing was sent, and makes due at `now` what was given back for later:
    /// other nodes serve some of the hosts.
    pub async fn hand_over_subscription_claims(
        &self,
        claims: &[(SubscriptionId, ClaimToken)],
        now: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        self.cells.iter().for_each(|cell| cell.held_backlogs.end_given_back_pauses(now));
        self.release_subscription_claims(claims, now).await
    }

    /// Returns those of `held` that may still be sent: their claims are held, and their subscriptions have
    /// neither ended nor begun a new generation.
    pub async fn still_current(
        &self,
        held: &[HeldDelivery],
        now: DateTime<Utc>,
    ) -> Result<Vec<SubscriptionId>, StoreError> {
        let by_cell = self.by_cell(held.to_vec(), |held| held.id.resource.0);
        let current = by_cell.into_iter().map(|(db, held)| {
            db.read(move |tx| {
                Box::pin(async move { generations::still_current(tx, &held, now).await })
            })
        });
        Ok(try_join_all(current).await?.into_iter().flatten().collect())
    }

    /// Records how deliveries ended and ends their claims. One whose log has grown
    /// meanwhile is due again once all that was due with it has been sent. A cursor never moves back. A
    /// result whose claim was lost, or of an earlier generation of its subscription, moves the cursor at
    /// most, and not if a replay was requested since.
    pub async fn record_deliveries(
        &self,
        settled: &[DeliveryResult],
        now: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        let by_cell = self.by_cell(settled.to_vec(), |result| result.id.resource.0);
        let stored = by_cell.iter().map(|(db, results)| store_results(db, results, now));
        join_all(stored).await.into_iter().collect() // a cell that fails does not keep the others from it
    }
}

/// Claims due subscriptions within the limits, from `now` to `until`.
async fn claim(
    db: &Db,
    (now, until): (DateTime<Utc>, DateTime<Utc>),
    limits: &ClaimLimits,
    from: QueuePosition,
) -> Result<ClaimedSubscriptions, StoreError> {
    let clock = db.clock_moves.stamp();
    begin_marked_passes(db, now).await?;
    let (begun, served) = (Instant::now(), db.served_hosts.at(now));
    let busy: HashSet<&str> = limits.busy.iter().map(String::as_str).collect();
    let is_excluded = |host: &str| busy.contains(host) || !served.serves(host);
    let most = |host: &str| if is_excluded(host) { 0 } else { limits.per_host };
    let continued = db.held_backlogs.continue_passes(limits.limit, now, most);
    let portions = continued.portions.clone();
    let search = ClaimSearch { limits: limits.clone(), from, continued: portions, served };
    let (lease, turns) = (db.claims.lease(now, until), Arc::clone(&db.account_turns));
    let claimed = db.write(move |tx| {
        Box::pin(async move {
            tx.join_by_keys().await?;
            claim::claim(tx, lease, search, &turns).await
        })
    });
    let (claimed, SearchEnd { position, skipped, is_end }) = claimed.await?;
    let due = hold_claimed(db, claimed, continued, (now, until, begun), clock).await;
    Ok(ClaimedSubscriptions { due, position, skipped, is_end })
}

/// Notes what was claimed in the place of the portions that continue passes, and returns it. The claim began
/// at `now` and `begun`, by `clock`. What is at hosts that this node does not serve any more is given back.
async fn hold_claimed(
    db: &Db,
    claimed: ClaimedPortions,
    continued: ContinuedPortions,
    (now, until, begun): (DateTime<Utc>, DateTime<Utc>, Instant),
    clock: ClockStamp,
) -> Vec<DueSubscription> {
    let by = db.clock_moves.since(clock);
    let (now, until) = (now + by, until + by);
    let ClaimedPortions { mut due, portions, are_some_locked } = claimed;
    let served = db.served_hosts.at(now + begun.elapsed());
    let is_left = |portion: &&ReadPortion| !served.serves(&portion.host);
    let left = portions.iter().filter(is_left).flat_map(|portion| {
        let resource = ResourceId(portion.id.resource);
        portion.claimed.iter().map(move |number| SubscriptionId { resource, number: *number })
    });
    let left: HashSet<_> = left.collect();
    db.held_backlogs.add(portions, (now, until));
    drop(continued);
    if !left.is_empty() {
        let given_back = due.iter().filter(|due| left.contains(&due.subscription.id));
        let claims: Vec<_> = given_back.map(|due| (due.subscription.id, due.claim)).collect();
        db.held_backlogs.release(&claims, now);
        due.retain(|due| !left.contains(&due.subscription.id));
    }
    end_idle_claims(db, db.held_backlogs.take_ended(), now).await;
    if are_some_locked {
        wake_after_pause(db);
    }
    due
}

/// Wakes the worker after [`LOCKED_PAUSE`], once however often this is called meanwhile.
fn wake_after_pause(db: &Db) {
    if db.held_backlogs.is_pausing.swap(true, Ordering::AcqRel) {
        return;
    }
    let (held, signals) = (Arc::clone(&db.held_backlogs), db.wake_signals.clone());
    tokio::spawn(async move {
        tokio::time::sleep(LOCKED_PAUSE).await;
        held.is_pausing.store(false, Ordering::Release);
        Wake::Subscriptions.notify(&signals);
    });
}

/// Begins another pass of the claimed backlogs that were marked, if all subscriptions of this pass are
/// claimed: what a slow callback has not responded to does not hold up the others.
async fn begin_marked_passes(db: &Db, now: DateTime<Utc>) -> Result<(), StoreError> {
    let at_end = db.held_backlogs.at_end(now);
    if at_end.claims.is_empty() {
        return Ok(());
    }
    let read = at_end.claims.clone();
    let are_marked =
        db.read(move |tx| Box::pin(async move { backlogs::are_marked(tx, &read).await }));
    if are_marked.await? {
        let claims = at_end.claims.clone();
        let begun = db.write(move |tx| {
            Box::pin(async move {
                row::lock_shared(tx, claims.iter().map(|(id, _)| id.resource).collect()).await?;
                backlogs::begin_passes(tx, &claims).await
            })
        });
        match begun.await {
            Ok(begun) => db.held_backlogs.begin_passes(begun),
            Err(err) => {
                // The marks may be taken although that failed, and a pass too many does no harm.
                db.held_backlogs.begin_passes(at_end.claims.iter().map(|(id, _)| *id));
                return Err(err);
            }
        }
    }
    Ok(())
}

/// Claims up to `limit` due subscriptions with callbacks at `host`.
async fn claim_of_host(
    db: &Db,
    (now, until): (DateTime<Utc>, DateTime<Utc>),
    host: &str,
    limit: usize,
) -> Result<Vec<DueSubscription>, StoreError> {
    let (begun, clock) = (Instant::now(), db.clock_moves.stamp());
    if !db.served_hosts.at(now).serves(host) {
        return Ok(Vec::new());
    }
    let most = |held: &str| if held == host { limit } else { 0 };
    let continued = db.held_backlogs.continue_passes(usize::MAX, now, most);
    let (portions, host) = (continued.portions.clone(), host.to_owned());
    let lease = db.claims.lease(now, until);
    let claimed = db.write(move |tx| {
        Box::pin(async move {
            tx.join_by_keys().await?;
            claim::claim_of_host(tx, lease, (&host, limit), portions).await
        })
    });
    let claimed = claimed.await?;
    Ok(hold_claimed(db, claimed, continued, (now, until, begun), clock).await)
}

/// Renews all claims of this node. Returns which of `known` are still held.
async fn renew(
    db: &Db,
    known: &[(SubscriptionId, ClaimToken)],
    now: DateTime<Utc>,
    until: DateTime<Utc>,
) -> Result<Vec<SubscriptionId>, StoreError> {
    let claims = db.held_backlogs.claims(known, now);
    end_idle_claims(db, db.held_backlogs.take_ended(), now).await;
    if claims.is_empty() {
        return Ok(Vec::new());
    }
    let renewing = claims.clone();
    let renewed = db.write(move |tx| {
        Box::pin(async move {
            let resources = renewing.iter().map(|(id, _)| id.resource).collect();
            row::lock_shared(tx, resources).await?;
            backlogs::renew_claims(tx, &renewing, until).await
        })
    });
    Ok(db.held_backlogs.renewed(&claims, (&renewed.await?, until), known))
}

/// Gives back what was not sent, which is due at `again_at`.
async fn release(
    db: &Db,
    claims: &[(SubscriptionId, ClaimToken)],
    again_at: DateTime<Utc>,
) -> Result<(), StoreError> {
    db.held_backlogs.release(claims, again_at);
    end_idle_claims(db, db.held_backlogs.take_given_back(), again_at).await;
    Ok(())
}

/// Stores results, and ends claims under which nothing is in hand any more.
async fn store_results(
    db: &Db,
    settled: &[DeliveryResult],
    now: DateTime<Utc>,
) -> Result<(), StoreError> {
    let clock = db.clock_moves.stamp();
    let claims: Vec<_> = settled.iter().map(|result| (result.id, result.claim)).collect();
    let ended = db.held_backlogs.begin_storing(&claims);
    let backlogs = db.held_backlogs.backlogs_of(settled.iter().map(|result| result.id));
    let results: Vec<_> = settled.iter().cloned().zip(backlogs).collect();
    let ends = ended.clone();
    let stored = db.write(move |tx| {
        Box::pin(async move { deliveries::store_results(tx, &results, &ends, now).await })
    });
    let owed_more = match stored.await {
        Ok(owed_more) => owed_more,
        Err(err) => {
            let ended = moved(ended, db.clock_moves.since(clock));
            db.held_backlogs.end_storing(&claims, Err(ended));
            return Err(err);
        }
    };
    let retries = settled.iter().filter_map(|result| match result.outcome {
        DeliveryOutcome::Failed { retry_at: Some(at) } => {
            Some((result.id, at + db.clock_moves.since(clock)))
        }
        _ => None,
    });
    let retries: Vec<_> = retries.collect();
    let stored = StoredResults { owed_more: &owed_more, retries: &retries };
    let are_others_storing = db.held_backlogs.end_storing(&claims, Ok(stored));
    if !are_others_storing {
        let now = now + db.clock_moves.since(clock);
        end_idle_claims(db, db.held_backlogs.take_ended(), now).await;
    }
    Ok(())
}

/// Ends claims under which nothing is in hand any more. Those whose end cannot be stored end later.
async fn end_idle_claims(db: &Db, ended: Vec<EndedClaim>, now: DateTime<Utc>) {
    if ended.is_empty() {
        return;
    }
    let (ends, clock) = (ended.clone(), db.clock_moves.stamp());
    let stored = db.write(move |tx| Box::pin(async move { end_claims(tx, &ends, now).await }));
    if let Err(err) = stored.await {
        warn!(error = &err as &dyn Error, "the end of claims of deliveries was not stored");
        db.held_backlogs.put_back(moved(ended, db.clock_moves.since(clock)));
    }
}

/// Moves the times of ended claims that are kept, because the clock was set meanwhile.
fn moved(mut ended: Vec<EndedClaim>, by: TimeDelta) -> Vec<EndedClaim> {
    ended.iter_mut().for_each(|ended| ended.move_times(by));
    ended
}

async fn end_claims(
    tx: &Tx<'_>,
    ended: &[EndedClaim],
    now: DateTime<Utc>,
) -> Result<(), StoreError> {
    let resources = ended.iter().map(|ended| ended.id.resource).collect();
    row::lock_shared(tx, resources).await?;
    backlogs::end_claims(tx, ended, now).await
}
