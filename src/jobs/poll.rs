//! One poll of one resource, from the wire to its log.
//!
//! ```text
//! fetch ──► parse ──► normalize ──► record
//!   │ 304     │ no feed               ▲
//!   └─────────┴───────────────────────┘
//! ```
//!
//! What holds here, whatever happens on the way:
//!
//! * A poll ends in exactly one [`Resources::record`], so a resource that gives
//!   trouble is scheduled again like any other.
//! * Nothing is sent from here. New entries get their numbers in the log, and the
//!   subscriptions become due, in one transaction; a crash loses both or neither.
//! * No wire format, SQL or status code is decided here. Those live in `parse`,
//!   `store` and `fetch`; this file only puts them in order.
//!
//! [`Resources::record`]: feedgate_core::ports::Resources::record

mod advertised_upstream;
mod discovered_feeds;
mod events;
mod found;
mod host_backoff;
mod moves;
mod node_health;
mod observe;
mod outcome;
mod push;
mod read_document;
mod records;
mod robots;
mod semantic_digest;
mod shared_documents;

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use chrono::{DateTime, Utc};
use tokio::time::{Instant, sleep};
use tracing::{debug, error, warn};
use url::Url;

use crate::event_log::Journal;
use crate::jobs::runner::{self, Hosts, Place, Work};
use crate::metrics::Metrics;
use crate::net::Fetch;
use feedgate_core::poll::{Poll, Trigger};
use feedgate_core::poll_times;
use feedgate_core::ports::{DueResource, Store, StoreError};
use feedgate_core::resource::Resource;
use feedgate_core::schedule::{K_LEAST, ScheduleBounds};
use feedgate_core::upstream::UpstreamFinding;

use shared_documents::SharedDocuments;

pub use found::links;
pub use push::Pushed;
pub(crate) use read_document::aside;
pub use read_document::{Reading, read_document};
pub use records::candidates;

/// What the operator decides about polling.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How long a claimed resource belongs to this node; longer than any fetch.
    pub claim: Duration,
    /// The shortest period of any resource, in seconds.
    pub min_period_s: u32,
    /// Whether to estimate the porn rank.
    pub porn_rank: bool,
    /// The address under which hubs and clouds can tell us of changes; `None` asks none.
    pub upstream_url: Option<Url>,
}

/// Polls resources. Clones are the same poller.
#[derive(Clone)]
pub struct Ingest {
    store: Arc<dyn Store>,
    fetch: Fetch,
    hosts: Hosts,
    shared_documents: SharedDocuments,
    unruled: robots::Unruled,
    metrics: Metrics,
    journal: Journal,
    settings: Settings,
    dial: Arc<Dial>,
    sense: Arc<node_health::Sense>,
}

/// `k` of the schedule as this node last read it.
#[derive(Debug, Default)]
struct Dial {
    k: AtomicU64,
    read_at_s: AtomicI64,
}

/// Polls of one host at once (rule P41).
const PER_HOST: usize = 1;
/// How old what is known of the dial may be; it is turned once a minute.
const DIAL_S: i64 = 30;
/// How long to wait before looking again whether somebody else's poll has ended.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

impl Ingest {
    /// A poller of what is in `store`.
    pub fn new(
        store: Arc<dyn Store>,
        fetch: Fetch,
        metrics: Metrics,
        journal: Journal,
        settings: Settings,
    ) -> Ingest {
        let hosts = Hosts::new(PER_HOST, store.news().resources);
        let (shared_documents, dial) = (SharedDocuments::default(), Arc::default());
        let unruled = robots::Unruled::default();
        let sense = Arc::new(node_health::Sense::new());
        Ingest {
            store,
            fetch,
            hosts,
            shared_documents,
            unruled,
            metrics,
            journal,
            settings,
            dial,
            sense,
        }
    }

    /// Polls a claimed resource once and records what came of it.
    ///
    /// Trouble with the resource is a finding, not an error: it is recorded and
    /// shown in the resource's status. An error here means the store failed.
    pub async fn poll(&self, due: &DueResource, now: DateTime<Utc>) -> Result<(), StoreError> {
        let resource = &due.resource;
        let mut seen = match self.forbidden(due, now).await? {
            Some(forbidden) => forbidden,
            None => observe::look(&self.fetch, &self.shared_documents, due, now).await,
        };
        let records = records::records(&*self.store, resource, &mut seen.found, now).await?;
        let records = records.unwrap_or_else(|| {
            seen.found = observe::Found::Trouble(observe::Trouble::ours());
            records::Records::default()
        });
        let own = self.settings.upstream_url.as_ref();
        let upstream = own.map_or(UpstreamFinding::Unknown, |own| {
            advertised_upstream::offered(&seen.found, resource, own)
        });
        let is_our_fault = self.is_our_fault(due, &seen).await?;
        let verdict = self.heed(due, &seen).await?;
        let sighted = moves::sighted(resource, &seen, records.new);
        let bounds = self.bounds(now).await?;
        let terms =
            outcome::Terms { bounds, dice: runner::dice(), porn_rank: self.settings.porn_rank };
        let mut poll = outcome::report(due, seen, records, &terms);
        poll.poll.upstream = upstream;
        if let Some(verdict) = &verdict {
            host_backoff::wait_with_all(&mut poll.poll, resource, verdict, runner::dice());
        }
        if is_our_fault {
            node_health::hold_harmless(&mut poll.poll, resource, runner::dice());
            poll.outcome = node_health::OWN_OUTAGE;
        } else {
            moves::follow(&mut poll.poll, resource, &sighted);
        }
        let Poll { status, polling, leaves_details, .. } = &mut poll.poll;
        let before = (&resource.status, &resource.polling);
        *leaves_details = poll_times::is_all_that_differs(before, (status, polling));
        let appended = self.store.record(resource.id, &poll.poll).await?;
        if let Some(event) = events::fetched(due, &poll, appended.new) {
            self.journal.tell(event);
        }
        self.metrics.polled(poll.outcome, due.trigger.as_str(), poll.took);
        self.metrics.fetched(poll.poll.wire_bytes, appended.new);
        debug!(
            resource = resource.id.0,
            outcome = poll.outcome,
            new = appended.new,
            head = appended.head.0,
            "polled"
        );
        Ok(())
    }

    /// What bounds periods now.
    async fn bounds(&self, now: DateTime<Utc>) -> Result<ScheduleBounds, StoreError> {
        let Dial { k, read_at_s } = &*self.dial;
        let now_s = now.timestamp();
        if (now_s - read_at_s.load(Ordering::Relaxed)).abs() >= DIAL_S {
            read_at_s.store(now_s, Ordering::Relaxed);
            k.store(self.store.k().await?.to_bits(), Ordering::Relaxed);
        }
        let k = f64::from_bits(k.load(Ordering::Relaxed)).max(K_LEAST);
        Ok(ScheduleBounds { min_period_s: self.settings.min_period_s, k })
    }

    /// Polls a resource now, due or not, and returns it as it is afterwards. What
    /// somebody else finds serves as well, if they are at it, or have recorded it since
    /// the caller looked.
    ///
    /// Once begun, the poll ends even if the caller stops waiting.
    pub async fn poll_now(&self, resource: &Resource) -> Result<Resource, StoreError> {
        let held = self.held(resource).await?;
        if held.status.last_fetch != resource.status.last_fetch {
            return Ok(held);
        }
        let now = runner::now();
        if let Some(until) = self.is_left_alone(&held, now).await? {
            debug!(resource = held.id.0, %until, "not polled: its server is left alone");
            return Ok(held);
        }
        let until = now + self.settings.claim;
        match self.store.claim_resource(resource.id, now, until).await? {
            Some(claimed) => {
                let due = DueResource { resource: claimed, trigger: Trigger::Ping };
                let this = self.clone();
                let place = self.hosts.enter(self.store.group(&due.resource.fetch_url));
                let poll = tokio::spawn(async move {
                    let polled = this.poll(&due, now).await;
                    drop(place);
                    polled
                });
                poll.await.unwrap_or_else(|err| {
                    warn!(resource = resource.id.0, error = %err, "a poll did not end");
                    Ok(())
                })?;
            }
            None => self.wait_for_poll(resource).await?,
        }
        self.held(resource).await
    }

    /// Until when the server of a resource asked everyone to stay away, if it did.
    pub async fn is_left_alone(
        &self,
        resource: &Resource,
        now: DateTime<Utc>,
    ) -> Result<Option<DateTime<Utc>>, StoreError> {
        let host = self.store.host(&self.store.group(&resource.fetch_url)).await?;
        Ok(host.cool_until.filter(|until| *until > now))
    }

    /// The resource as it is now.
    async fn held(&self, resource: &Resource) -> Result<Resource, StoreError> {
        let held = self.store.get(resource.id).await?;
        held.ok_or_else(|| StoreError::Corrupt(format!("resource {} vanished", resource.id)))
    }

    /// Waits until somebody else's poll has been recorded, or their claim has ended.
    async fn wait_for_poll(&self, resource: &Resource) -> Result<(), StoreError> {
        let until = Instant::now() + self.settings.claim;
        while Instant::now() < until {
            if self.held(resource).await?.status.last_fetch != resource.status.last_fetch {
                break;
            }
            sleep(LOOK_AGAIN).await;
        }
        Ok(())
    }
}

impl Work for Ingest {
    type Job = (DueResource, Place);

    const NAME: &'static str = "poll";

    async fn claim(&self, limit: usize) -> Result<Vec<Self::Job>, StoreError> {
        let now = runner::now();
        self.mind_the_clock(now).await?;
        let room = self.hosts.room(limit);
        let due = self.store.claim_resources(now, now + self.settings.claim, &room).await?;
        let taken = due.into_iter().map(|due| {
            let place = self.hosts.enter(self.store.group(&due.resource.fetch_url));
            (due, place)
        });
        Ok(taken.collect())
    }

    async fn perform(&self, (due, place): Self::Job) {
        if let Err(err) = self.poll(&due, runner::now()).await {
            let resource = due.resource.id.0;
            error!(resource, error = &err as &dyn Error, "what a poll found could not be kept");
        }
        drop(place);
    }
}

impl std::fmt::Debug for Ingest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ingest").field("settings", &self.settings).finish_non_exhaustive()
    }
}
