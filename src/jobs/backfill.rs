//! Bringing in what a source published before it was watched, for subscribers who ask for
//! it with `backfill=true` (RFC 5005; seed 004, "Consumers who wish to read the entire
//! history").
//!
//! ```text
//! the resource ──prev-archive──► page ──► page ──► the first    each is laid aside
//!                                                    │
//! the log ◄──────── oldest first, as old records ────┘
//! ```
//!
//! What holds here:
//!
//! * All that is known stands in the store, page by page: a restart or another node goes
//!   on where this one was, and a page that is read twice counts once.
//! * A source is read one document at a time, with the pauses, the guard and the
//!   `robots.txt` of any other fetch, and up to a limit. Credentials of a topic go to its
//!   own server only (rule S49).
//! * History is no news: its records reach nobody. PageFailure with the source ends the way
//!   back, and what was got so far is kept.

mod events;
mod page;

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use tokio::sync::Notify;
use tracing::{debug, error, info};
use url::Url;

use crate::event_log::EventLog;
use crate::jobs::poll::Poller;
use crate::jobs::runner::{self, Job};
use crate::net::HttpClient;
use feedgate_core::backfill::{Backfill, BackfillEnd, BackfillLimits};
use feedgate_core::host::HostRefusal;
use feedgate_core::ports::{DueBackfill, Store, StoreError};
use feedgate_core::resource::Resource;

use page::PageFailure;

/// How long to wait before each further attempt at a document. Who asked waits for what
/// comes after it, so there are few.
const WAITS: [Duration; 3] =
    [Duration::from_secs(10), Duration::from_secs(60), Duration::from_secs(5 * 60)];
/// The longest that a server may ask us to wait, and be asked again.
const LONGEST_WAIT: Duration = Duration::from_secs(3_600);

/// What the operator decides about histories.
#[derive(Clone, Copy, Debug)]
pub struct BackfillSettings {
    /// How long a claimed step belongs to this node; longer than any fetch.
    pub claim: Duration,
    /// How much is brought in.
    pub limits: BackfillLimits,
}

/// Brings in histories.
pub struct Backfiller {
    store: Arc<dyn Store>,
    fetch: HttpClient,
    ingest: Poller,
    event_log: EventLog,
    settings: BackfillSettings,
    wake: Arc<Notify>,
}

impl Backfiller {
    /// Puts the parts together.
    pub fn new(
        store: Arc<dyn Store>,
        fetch: HttpClient,
        ingest: Poller,
        event_log: EventLog,
        settings: BackfillSettings,
    ) -> Backfiller {
        Backfiller { store, fetch, ingest, event_log, settings, wake: Arc::default() }
    }

    /// Notified when the next step of a backfill may be due.
    pub fn wake(&self) -> Arc<Notify> {
        Arc::clone(&self.wake)
    }

    /// Does one step: reads a document, or moves some of what was laid aside into the log.
    async fn step(&self, due: DueBackfill) -> Result<(), StoreError> {
        let id = due.resource.id;
        if due.resource.subscribers == 0 {
            self.store.drop_backfill(id, runner::now()).await?;
            self.event_log.record(events::dropped(&due.resource, runner::now()));
            return Ok(());
        }
        if due.backfill.ending.is_none() {
            return self.read(due).await;
        }
        while self.store.commit_staged(id, runner::now()).await? {}
        let done = self.store.backfills(&[id]).await?.pop().unwrap_or(due.backfill);
        info!(
            resource = id.0,
            pages = done.pages,
            entries = done.appended,
            ending = done.ending.as_ref().map(BackfillEnd::as_str),
            "the history of a resource is in its log"
        );
        self.event_log.record(events::ended(&due.resource, &done, runner::now()));
        Ok(())
    }

    /// Reads the next document and lays aside what it holds.
    async fn read(&self, due: DueBackfill) -> Result<(), StoreError> {
        let now = runner::now();
        let DueBackfill { backfill, resource } = due;
        if backfill.pages == 0 && backfill.attempts == 0 {
            self.event_log.record(events::begun(&resource, now));
        }
        if !backfill.has_room(&self.settings.limits) {
            return self.end(backfill, BackfillEnd::Limited, now).await;
        }
        let Some(url) = page::address(&backfill, &resource) else {
            return self.end(backfill, BackfillEnd::Broken("bad_url".to_owned()), now).await;
        };
        let host = self.store.host(&self.store.group(url.as_str())).await?;
        if let Some(until) = host.cool_until.filter(|until| *until > now) {
            return self.store.save_backfill(&backfill, until).await.map(drop);
        }
        if !self.ingest.is_allowed(&url, now).await? {
            let ending = BackfillEnd::Broken("robots_disallowed".to_owned());
            return self.end(backfill, ending, now).await;
        }
        match page::read(&self.fetch, (&backfill, &resource), &url, now).await {
            Ok(page) => {
                debug!(resource = resource.id.0, entries = page.entries.len(), "read a page");
                self.store.stage_backfill(&backfill, page, runner::now()).await.map(drop)
            }
            Err(trouble) => {
                self.report_refusal(&resource, &url, &trouble).await?;
                self.stumble(backfill, &resource, trouble).await
            }
        }
    }

    /// Keeps that the server asked us to slow down, if it did: its other resources are left
    /// alone as well, as after a poll (rules P26 to P28).
    async fn report_refusal(
        &self,
        resource: &Resource,
        url: &Url,
        trouble: &PageFailure,
    ) -> Result<(), StoreError> {
        let Some(http_code @ (429 | 503)) = trouble.http_code else { return Ok(()) };
        let refused = HostRefusal {
            group: self.store.group(url.as_str()),
            resource: resource.id,
            at: runner::now(),
            http_code,
            retry_after_s: trouble.retry_after_s,
        };
        self.store.refuse(&refused).await.map(drop)
    }

    /// Tries again later, or ends the way back.
    async fn stumble(
        &self,
        mut backfill: Backfill,
        resource: &Resource,
        trouble: PageFailure,
    ) -> Result<(), StoreError> {
        let now = runner::now();
        let wait = WAITS.get(backfill.attempts as usize).filter(|_| trouble.is_passing);
        debug!(resource = backfill.resource.0, code = trouble.code, "a page could not be read");
        match wait {
            Some(wait) => {
                backfill.attempts += 1;
                let asked = Duration::from_secs(trouble.retry_after_s.unwrap_or_default().into());
                let due_at = now + asked.min(LONGEST_WAIT).max(*wait);
                self.event_log.record(events::put_off(resource, (trouble.code, due_at), now));
                self.store.save_backfill(&backfill, due_at).await.map(drop)
            }
            None => self.end(backfill, BackfillEnd::Broken(trouble.code.to_owned()), now).await,
        }
    }

    async fn end(
        &self,
        mut backfill: Backfill,
        ending: BackfillEnd,
        now: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        backfill.end(ending);
        self.store.save_backfill(&backfill, now).await.map(drop)
    }
}

impl Job for Backfiller {
    type Item = DueBackfill;

    const NAME: &'static str = "backfill";

    async fn claim(&self, limit: usize) -> Result<Vec<DueBackfill>, StoreError> {
        let now = runner::now();
        self.store.claim_backfills(now, now + self.settings.claim, limit).await
    }

    async fn perform(&self, due: DueBackfill) {
        let resource = due.resource.id.0;
        if let Err(err) = self.step(due).await {
            let cause: &dyn Error = &err;
            error!(resource, error = cause, "a step of a backfill could not be kept");
        }
        self.wake.notify_one();
    }
}

/// The address with the credentials of `topic`, if it is its server's; with none otherwise.
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
