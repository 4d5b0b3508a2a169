//! Fetches the history of a source from before its first subscription, for subscribers that request
//! it with `backfill=true` (RFC 5005; seed 004, "Consumers who wish to read the entire history").
//!
//! ```text
//! the resource ──prev-archive──► page ──► page ──► the first    each page is staged
//!                                                    │
//! the log ◄──────── oldest first, as old records ────┘
//! ```
//!
//! Invariants:
//!
//! * All progress is in the store, page by page: after a restart, or on another node, a backfill
//!   continues where it was, and a page that is read twice counts once.
//! * A source is read one document at a time, with the pauses, the guard and the `robots.txt` of
//!   any other fetch, and up to a limit. The credentials of a topic are sent only to its own server
//!   (rule S49).
//! * What is staged is charged to those for whom it is stored, as what is appended, and waits for disk
//!   space like it. Strangers have half of the workers.
//! * Old entries are not new: subscribers are not notified of them. A failure of the source ends
//!   the backfill, and what was fetched so far is kept.

mod events;
mod page;

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tracing::{debug, info, warn};
use url::Url;

use crate::event_log::EventLog;
use crate::jobs::claim_renewal::{ClaimRenewal, HeldClaim};
use crate::jobs::poll::Poller;
use crate::jobs::runner::{self, Job};
use feedgate_core::backfill::{Backfill, BackfillEnd, BackfillLimits, BackfillShare};
use feedgate_core::claim::ClaimToken;
use feedgate_core::host::HostRefusal;
use feedgate_core::resource::{Resource, ResourceId};
use feedgate_core::store::{CommitProgress, DueBackfill, StagedPage, StoreError};
use feedgate_core::visibility::SourceNetwork;
use feedgate_store::Store;

use page::PageFailure;

/// How long to wait before each retry of a document. There are few retries, because subscribers
/// wait for the documents after it.
const WAITS: [Duration; 3] =
    [Duration::from_secs(10), Duration::from_secs(60), Duration::from_secs(5 * 60)];
/// The longest `Retry-After` that is honoured before a document is retried.
const LONGEST_WAIT: Duration = Duration::from_secs(3_600);

/// After how many documents of a backfill the log says how far it is.
const LOGGED_PAGES: u32 = 50;

/// After how long the disk space is checked again for a backfill that waits: each check is a write.
const DISK_CHECK_AGAIN: TimeDelta = TimeDelta::minutes(10);

/// How many backfills of this node read or append at the same time: each reads one page at a time, and
/// none is urgent.
pub const CONCURRENCY: usize = 4;
/// How many of these are strangers'. Their sources may take as long as they like.
const ANONYMOUS_CONCURRENCY: usize = CONCURRENCY / 2;

/// The operator's settings for backfills.
#[derive(Clone, Copy, Debug)]
pub struct BackfillSettings {
    /// How long this node owns a claimed step. The claim is renewed while the step runs.
    pub claim: Duration,
    /// The limits of one backfill.
    pub limits: BackfillLimits,
}

/// Runs backfills.
pub struct Backfiller {
    store: Arc<Store>,
    poller: Poller,
    event_log: EventLog,
    settings: BackfillSettings,
    claims: ClaimRenewal<ResourceId>,
    anonymous_places: Arc<Semaphore>,
    wake: Arc<Notify>,
}

impl Backfiller {
    /// Creates a backfiller with these parts. Must be called within a runtime: claims are renewed
    /// by a task.
    pub fn new(
        store: Arc<Store>,
        poller: Poller,
        event_log: EventLog,
        settings: BackfillSettings,
    ) -> Backfiller {
        let (renewing, lease) = (Arc::clone(&store), settings.claim);
        let claims = ClaimRenewal::start(Backfiller::NAME, lease, move |claims, _, until| {
            let store = Arc::clone(&renewing);
            async move { store.renew_backfill_claims(&claims, until).await }
        });
        let anonymous_places = Arc::new(Semaphore::new(ANONYMOUS_CONCURRENCY));
        Backfiller {
            store,
            poller,
            event_log,
            settings,
            claims,
            anonymous_places,
            wake: Arc::default(),
        }
    }

    /// Returns the signal that the next step of a backfill may be due.
    pub fn wake(&self) -> Arc<Notify> {
        Arc::clone(&self.wake)
    }

    /// Performs one step: reads a document, or moves staged entries into the log.
    async fn step(&self, due: DueBackfill) -> Result<(), StoreError> {
        let id = due.resource.id;
        if due.resource.subscribers == 0 {
            self.store.drop_backfill(id, due.claim, runner::now()).await?;
            self.event_log.record(events::dropped(&due.resource, runner::now()));
            return Ok(());
        }
        if self.poller.waits_for_disk_space(id).await? {
            let now = runner::now();
            return self.postpone(id, due.claim, (now + DISK_CHECK_AGAIN, now)).await;
        }
        if due.backfill.ending.is_none() {
            return self.read(due).await;
        }
        loop {
            match self.store.commit_staged(id, due.claim, runner::now()).await? {
                CommitProgress::More => {}
                CommitProgress::Complete => break,
                CommitProgress::ClaimLost => {
                    report_lost_claim(id);
                    return Ok(());
                }
            }
        }
        let done = self.store.backfills(&[id]).await?.pop().unwrap_or(due.backfill);
        info!(
            resource = id.0,
            pages = done.pages,
            entries = done.appended,
            ending = done.ending.as_ref().map(BackfillEnd::as_str),
            "backfill finished"
        );
        self.event_log.record(events::ended(&due.resource, &done, runner::now()));
        Ok(())
    }

    /// Reads the next document and stages its entries.
    async fn read(&self, due: DueBackfill) -> Result<(), StoreError> {
        let now = runner::now();
        let DueBackfill { backfill, claim, resource } = due;
        if backfill.pages == 0 && backfill.attempts == 0 {
            self.event_log.record(events::begun(&resource, now));
        }
        if !backfill.has_room(&self.settings.limits) {
            return self.end(backfill, claim, BackfillEnd::Limited, now).await;
        }
        let Some(url) = page::address(&backfill, &resource) else {
            let ending = BackfillEnd::Broken("bad_url".to_owned());
            return self.end(backfill, claim, ending, now).await;
        };
        let earliest = self.store.earliest_fetch(resource.id).await?;
        if earliest > now {
            return self.postpone(resource.id, claim, (earliest, now)).await;
        }
        let host = self.store.host(&self.store.group(url.as_str())).await?;
        let paused = host.cool_until.filter(|until| *until > now);
        if let Some(until) = paused.max(resource.polling.left_alone_after(now)) {
            return self.save(&backfill, claim, until).await;
        }
        let client = self.poller.client_for(&resource).await?;
        if !self.poller.is_allowed(&client, &url, now).await? {
            let ending = BackfillEnd::Broken("robots_disallowed".to_owned());
            return self.end(backfill, claim, ending, now).await;
        }
        let fetched = page::fetch(&client, &resource, &url).await;
        if fetched.source_network() == SourceNetwork::Inner
            && resource.exposure.source_network != SourceNetwork::Inner
        {
            self.store.note_inner(resource.id).await?; // before anything is stored of it
        }
        match page::read(fetched, &backfill, &resource, &url, now).await {
            Ok(page) => {
                let entries = page.entries.len();
                debug!(resource = resource.id.0, entries, "backfill page read");
                let now = runner::now();
                match self.store.stage_backfill(&backfill, claim, page, now).await? {
                    StagedPage::Staged => {
                        self.log_progress(resource.id, backfill.pages + 1);
                        Ok(())
                    }
                    StagedPage::Postponed(until) => {
                        self.postpone(resource.id, claim, (until, now)).await
                    }
                    StagedPage::ClaimLost => {
                        report_lost_claim(resource.id);
                        Ok(())
                    }
                }
            }
            Err(failure) => {
                self.report_refusal(&resource, &url, &failure).await?;
                self.retry_or_end(DueBackfill { backfill, claim, resource }, failure).await
            }
        }
    }

    /// Logs from time to time how many documents of a history are read.
    fn log_progress(&self, id: ResourceId, pages: u32) {
        if pages.is_multiple_of(LOGGED_PAGES) {
            let at_most = self.settings.limits.pages;
            info!(resource = id.0, pages, at_most, "backfill in progress");
        }
    }

    /// Reports to the store that the server requested fewer requests, if it did: the backoff then
    /// applies to its other resources too, as after a poll (rules P26 to P28).
    async fn report_refusal(
        &self,
        resource: &Resource,
        url: &Url,
        failure: &PageFailure,
    ) -> Result<(), StoreError> {
        let Some(http_code @ (429 | 503)) = failure.http_code else { return Ok(()) };
        let answered_by = failure.answered_by.as_ref().unwrap_or(url);
        let group = self.store.group(answered_by.as_str());
        let refused = HostRefusal {
            was_read: self.poller.was_read_from(resource, &group),
            group,
            resource: resource.id,
            at: runner::now(),
            http_code,
            retry_after_s: failure.retry_after_s,
        };
        self.store.record_refusal(&refused).await.map(drop)
    }

    /// Retries later, or ends the backfill.
    async fn retry_or_end(&self, due: DueBackfill, failure: PageFailure) -> Result<(), StoreError> {
        let now = runner::now();
        let DueBackfill { mut backfill, claim, resource } = due;
        if let Some(until) = failure.paused_until {
            return self.save(&backfill, claim, until).await;
        }
        let wait = WAITS.get(backfill.attempts as usize).filter(|_| failure.is_passing);
        debug!(
            resource = backfill.resource.0,
            code = failure.code,
            "reading a backfill page failed"
        );
        match wait {
            Some(wait) => {
                backfill.attempts += 1;
                let retry_after =
                    Duration::from_secs(failure.retry_after_s.unwrap_or_default().into());
                let due_at = now + retry_after.min(LONGEST_WAIT).max(*wait);
                self.event_log.record(events::postponed(&resource, failure.code, due_at, now));
                self.save(&backfill, claim, due_at).await
            }
            None => {
                let ending = BackfillEnd::Broken(failure.code.to_owned());
                self.end(backfill, claim, ending, now).await
            }
        }
    }

    async fn postpone(
        &self,
        id: ResourceId,
        claim: ClaimToken,
        (until, now): (DateTime<Utc>, DateTime<Utc>),
    ) -> Result<(), StoreError> {
        debug!(resource = id.0, %until, "a backfill waits for its budget or for disk space");
        if !self.store.postpone_backfill(id, claim, (until, now)).await? {
            report_lost_claim(id);
        }
        Ok(())
    }

    async fn end(
        &self,
        mut backfill: Backfill,
        claim: ClaimToken,
        ending: BackfillEnd,
        now: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        backfill.end(ending);
        self.save(&backfill, claim, now).await
    }

    async fn save(
        &self,
        backfill: &Backfill,
        claim: ClaimToken,
        due_at: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        if !self.store.save_backfill(backfill, claim, due_at).await? {
            report_lost_claim(backfill.resource);
        }
        Ok(())
    }
}

fn report_lost_claim(id: ResourceId) {
    warn!(resource = id.0, "the result of a backfill step was dropped: its claim was lost");
}

impl Job for Backfiller {
    /// A step, its claim, and its place among those of strangers.
    type Item = (DueBackfill, HeldClaim<ResourceId>, Option<OwnedSemaphorePermit>);

    const NAME: &'static str = "backfill";

    async fn claim(&self, limit: usize) -> Result<Vec<Self::Item>, StoreError> {
        let now = runner::now();
        let until = self.claims.end_of_claim(now);
        let claim = |share, limit| self.store.claim_backfills(share, now, until, limit);
        let of_accounts = claim(BackfillShare::Accounts, limit).await?;
        let places = limit.saturating_sub(of_accounts.len());
        let places: Vec<_> = (0..places)
            .map_while(|_| Arc::clone(&self.anonymous_places).try_acquire_owned().ok())
            .collect();
        let anonymous = match places.len() {
            0 => Ok(Vec::new()),
            limit => claim(BackfillShare::Anonymous, limit).await,
        };
        let anonymous = anonymous.unwrap_or_else(|err| {
            let error = &err as &dyn Error;
            warn!(error, "no backfills of strangers were claimed");
            Vec::new()
        });
        let of_accounts = of_accounts.into_iter().map(|due| (due, None));
        let anonymous = anonymous.into_iter().zip(places.into_iter().map(Some));
        let claimed = of_accounts.chain(anonymous).map(|(due, place)| {
            let claim = self.claims.hold_claim(due.resource.id, due.claim, until);
            (due, claim, place)
        });
        Ok(claimed.collect())
    }

    async fn perform(&self, (due, claim, place): Self::Item) -> Result<(), StoreError> {
        let ended = self.step(due).await;
        drop((claim, place));
        self.wake.notify_one();
        ended
    }

    fn number((due, ..): &Self::Item) -> Option<i64> {
        Some(due.resource.id.0)
    }
}

/// Returns the URL with the credentials of `topic` if it has the same origin, without any
/// otherwise.
fn with_credentials(mut url: Url, topic: &Url) -> Option<Url> {
    let is_own = url.origin() == topic.origin();
    let name = if is_own { topic.username() } else { "" };
    url.set_username(name).ok()?;
    url.set_password(topic.password().filter(|_| is_own)).ok()?;
    Some(url)
}

impl std::fmt::Debug for Backfiller {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Backfiller").field("settings", &self.settings).finish_non_exhaustive()
    }
}
