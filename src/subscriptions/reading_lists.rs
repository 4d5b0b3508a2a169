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

mod reading;
mod stated_feeds;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};

use super::held_subscriptions::filter_for;
use super::{QuotaExceeded, SubscriptionService, events};
use crate::jobs::claim_renewal::{ClaimRenewal, HeldClaim};
use crate::jobs::runner::{self, Job};
use feedgate_core::intent::{Intent, IntentMode};
use feedgate_core::reading_list::{DueReadingList, ReadingListReport};
use feedgate_core::store::{EventArrival, ListedSubscription, StoreError};
use feedgate_core::subscription::{Subscription, SubscriptionId};

use reading::Reading;
use stated_feeds::StatedFeeds;

/// Lists that are read at the same time: each subscribes to several feeds at once.
pub const CONCURRENCY: usize = 2;
/// The maximum number of feeds of a list that are subscribed to: as many as in one import of the console.
const MAX_LISTED_FEEDS: usize = 2_000;
/// How long reading a list waits for memory.
const ADMISSION_WAIT: Duration = Duration::from_secs(5);
/// The code of a feed that is not subscribed to because the list has had too many others in this hour.
const TOO_MANY_CHANGES: &str = "too_many_changes";
/// After how long a list is read again that has not changed.
const REPEAT: Duration = Duration::from_secs(24 * 3_600);
/// After how long it is read again if not all of its feeds could be subscribed to: there may be room then.
const REPEAT_FULL: Duration = Duration::from_secs(3_600);

/// Reads the lists that are due.
pub struct ReadingListJob {
    subscribe: Arc<SubscriptionService>,
    claims: ClaimRenewal<SubscriptionId>,
}

/// A list that was claimed.
pub struct ClaimedReadingList {
    due: DueReadingList,
    claim: HeldClaim<SubscriptionId>,
}

/// The subscriptions that were made for a list, by the address that it states, and whether they are sent a
/// digest.
type ListedSubscriptions = HashMap<String, (Subscription, bool)>;

impl ReadingListJob {
    /// Creates the job. Must be called within a runtime: claims are renewed by a task.
    pub fn new(subscribe: Arc<SubscriptionService>) -> ReadingListJob {
        let (renewing, lease) = (Arc::clone(&subscribe.store), subscribe.ingest.job_lease());
        let claims = ClaimRenewal::start(ReadingListJob::NAME, lease, move |claims, _, until| {
            let store = Arc::clone(&renewing);
            async move { store.renew_reading_list_claims(&claims, until).await }
        });
        ReadingListJob { subscribe, claims }
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
        let report = Reading::new(&self.subscribe, &list, &due.report, listed);
        let report = report.carry_out(stated).await?;
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
    if is_full { REPEAT_FULL } else { REPEAT }
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

    async fn claim(&self, limit: usize) -> Result<Vec<Self::Item>, StoreError> {
        let now = runner::now();
        let until = self.claims.end_of_claim(now);
        let due = self.subscribe.store.claim_reading_lists(now, until, limit).await?;
        let claimed = due.into_iter().map(|due| {
            let claim = self.claims.hold_claim(due.id, due.claim, until);
            ClaimedReadingList { due, claim }
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
