//! The job that keeps the subscriptions of an account in step with a reading list: an OPML document that it
//! follows.
//!
//! The document is a resource that is polled like any other. When it has changed, its feeds are subscribed to
//! with the callback and the options of the subscription to the document, and subscriptions that were made for
//! feeds which it does not state any more are ended. Invariants:
//!
//! * What the account subscribed to by itself is never changed or ended, and what it has ended is not
//!   subscribed to again.
//! * Subscriptions end only if the document is well-formed and states feeds, or if the account ends the
//!   subscription to the document.
//! * Reading a list twice changes nothing, so a reading that breaks off is repeated.
//! * What a reading may make is counted before, so that a list has no more subscriptions made in an hour
//!   because it changes while it is read, or because a reading breaks off.
//! * The lists of a deactivated account are not read.

mod reading;
mod stated_feeds;
mod turns;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use tokio::sync::Notify;

use super::held_subscriptions::filter_for;
use super::{QuotaExceeded, SubscriptionService, events};
use crate::jobs::claim_renewal::{ClaimRenewal, HeldClaim};
use crate::jobs::runner::{self, HostPermit, Job};
use feedgate_core::intent::{Intent, IntentMode};
use feedgate_core::reading_list::{DueReadingList, ReadingListReport};
use feedgate_core::store::{EventArrival, ListedSubscription, StoreError};
use feedgate_core::subscription::{Subscription, SubscriptionId};

use reading::Reading;
use stated_feeds::StatedFeeds;
use turns::ReadingListTurns;

/// Lists that are read at the same time, without those that take long: each subscribes to several feeds at once.
pub const CONCURRENCY: usize = 2;
/// The maximum number of feeds of a list that are subscribed to: as many as in one import of the console.
const MAX_LISTED_FEEDS: usize = 2_000;
/// How long reading a list waits for memory.
const ADMISSION_WAIT: Duration = Duration::from_secs(5);
/// The code of a feed that is not subscribed to because the list has had too many others in this hour.
const TOO_MANY_CHANGES: &str = "too_many_changes";
/// After how long a list is read again that has not changed.
const REPEAT: Duration = Duration::from_secs(24 * 3_600);
/// After how long it is read again if not all of its feeds could be subscribed to, or if its account was
/// deactivated: that may be over then.
const REPEAT_HINDERED: Duration = Duration::from_secs(3_600);

/// Reads the lists that are due.
pub struct ReadingListJob {
    subscribe: Arc<SubscriptionService>,
    claims: ClaimRenewal<SubscriptionId>,
    turns: ReadingListTurns,
}

/// A list that was claimed.
pub struct ClaimedReadingList {
    due: DueReadingList,
    claim: HeldClaim<SubscriptionId>,
    _turn: HostPermit,
}

/// The subscriptions that were made for a list, by the address that it states, and whether they are sent a
/// digest.
type ListedSubscriptions = HashMap<String, (Subscription, bool)>;

impl ReadingListJob {
    /// Creates the job. `freed` is notified when an account may have another list read. Must be called within a
    /// runtime: claims are renewed by a task.
    pub fn new(subscribe: Arc<SubscriptionService>, freed: Arc<Notify>) -> ReadingListJob {
        let (renewing, lease) = (Arc::clone(&subscribe.store), subscribe.ingest.job_lease());
        let claims = ClaimRenewal::start(ReadingListJob::NAME, lease, move |claims, _, until| {
            let store = Arc::clone(&renewing);
            async move { store.renew_reading_list_claims(&claims, until).await }
        });
        ReadingListJob { subscribe, claims, turns: ReadingListTurns::new(freed) }
    }

    /// Brings the subscriptions that were made for a list into step with it.
    async fn read(&self, claimed: &ClaimedReadingList) -> Result<(), StoreError> {
        let (store, due) = (&self.subscribe.store, &claimed.due);
        let listed = self.subscribe.subscribed_by_list(due).await?;
        let Some(list) = self.subscribe.followed_list(due).await? else {
            self.end_all(&listed).await?;
            return store.forget_reading_list(due).await;
        };
        if list.subscription.id != due.id {
            return store.forget_reading_list(due).await; // it was subscribed to anew
        }
        // All subscriptions of a deactivated account are paused. Its lists are due once they are resumed.
        if list.delivery.paused_at.is_some() && store.is_account_deactivated(due.account).await? {
            return store.release_reading_list(due, next_at(REPEAT_HINDERED)).await;
        }
        let Some((_, body)) = store.body(due.id.resource).await? else {
            return store.release_reading_list(due, next_at(REPEAT)).await;
        };
        let documents = self.subscribe.fetch.documents();
        let memory = match documents.admit(&body.bytes, ADMISSION_WAIT).await {
            Ok(memory) => memory,
            Err(busy) => return store.release_reading_list(due, next_at(busy.retry_in)).await,
        };
        let url = due.topic.as_str().to_owned();
        let stated = memory.run_blocking(move || StatedFeeds::read(&body.bytes, &url)).await;
        let stated = stated.unwrap_or_else(StatedFeeds::unreadable);
        if !claimed.claim.is_valid() {
            return Ok(()); // another node reads it
        }
        let reading = Reading::begin(&self.subscribe, (due, &list), &stated, listed).await?;
        let report = reading.carry_out(stated).await;
        reading.end(due).await?;
        let report = report?;
        let next_at = next_at(repeat(&report));
        let is_stored = store.store_reading_list_report(due, &report, next_at).await?;
        // The account may have ended the list meanwhile, and with it what had been made until then.
        if !is_stored && self.subscribe.followed_list(due).await?.is_none() {
            let listed = self.subscribe.subscribed_by_list(due).await?;
            self.end_all(&listed).await?;
        }
        Ok(())
    }

    async fn end_all(&self, listed: &ListedSubscriptions) -> Result<(), StoreError> {
        for (subscription, _) in listed.values() {
            self.subscribe.end_listed(subscription).await?;
        }
        Ok(())
    }
}

fn repeat(report: &ReadingListReport) -> Duration {
    let passing = [QuotaExceeded::Account(0).code(), TOO_MANY_CHANGES];
    let is_full = report.feeds.iter().any(|feed| passing.contains(&feed.code.as_str()));
    if is_full { REPEAT_HINDERED } else { REPEAT }
}

/// Returns a time about so long from now, so that lists are not all read at once.
fn next_at(wait: Duration) -> DateTime<Utc> {
    runner::now() + wait.mul_f64(0.9 + 0.2 * runner::jitter())
}

impl SubscriptionService {
    /// Returns the subscription to the document of a list, if it is still followed.
    async fn followed_list(
        &self,
        due: &DueReadingList,
    ) -> Result<Option<ListedSubscription>, StoreError> {
        let filter = filter_for(Some(due.account), &due.topic, &due.callback);
        let (found, _) = self.store.list(&filter).await?;
        Ok(found.into_iter().find(|held| held.subscription.follows_list()))
    }

    async fn subscribed_by_list(
        &self,
        due: &DueReadingList,
    ) -> Result<ListedSubscriptions, StoreError> {
        let DueReadingList { account, topic, callback, .. } = due;
        // Two readings at the same time may make twice as many.
        let most = 2 * MAX_LISTED_FEEDS;
        let found = self.store.subscribed_by_list(*account, topic, callback, most).await?;
        let address = |made: &Subscription| made.topic.subscribed_as().to_owned();
        Ok(found.into_iter().map(|made| (address(&made.0), made)).collect())
    }

    /// Ends a subscription that was made for a list.
    async fn end_listed(&self, made: &Subscription) -> Result<(), StoreError> {
        if self.store.end_listed(made).await? {
            let intent = Intent::new(IntentMode::Unsubscribe, made.to_request());
            self.event_log.record(events::settled(
                &intent,
                Some(EventArrival::Ended),
                runner::now(),
            ));
        }
        Ok(())
    }

    /// Returns the report on the reading list that a subscription follows.
    pub async fn reading_list_report(
        &self,
        list: &Subscription,
    ) -> Result<Option<ReadingListReport>, StoreError> {
        match list.follows_list() {
            true => self.store.reading_list_report(list.id).await,
            false => Ok(None),
        }
    }
}

impl Job for ReadingListJob {
    type Item = ClaimedReadingList;

    const NAME: &'static str = "reading_lists";
    /// A list of thousands of feeds, some of whose publishers are asked first, delays no other.
    const SLOW_LANE: usize = 4;

    async fn claim(&self, limit: usize) -> Result<Vec<Self::Item>, StoreError> {
        let now = runner::now();
        let until = self.claims.end_of_claim(now);
        let claim = async || {
            let limits = self.turns.claim_limits(limit);
            self.subscribe.store.claim_reading_lists(now, until, &limits).await
        };
        let mut due = claim().await?;
        if due.is_empty() && self.turns.begin_round() {
            due = claim().await?;
        }
        let claimed = due.into_iter().map(|due| {
            let _turn = self.turns.begin_turn(&due);
            let claim = self.claims.hold_claim(due.id, due.claim, until);
            ClaimedReadingList { due, claim, _turn }
        });
        Ok(claimed.collect())
    }

    async fn perform(&self, claimed: ClaimedReadingList) -> Result<(), StoreError> {
        self.read(&claimed).await
    }

    fn number(claimed: &ClaimedReadingList) -> Option<i64> {
        Some(claimed.due.id.resource.0)
    }
}
