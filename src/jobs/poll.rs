//! One poll of one resource, from the request to its log.
//!
//! ```text
//! fetch ──► parse ──► detect changes ──► record
//!   │ 304     │ not a feed                 ▲
//!   └─────────┴────────────────────────────┘
//! ```
//!
//! Invariants:
//!
//! * A poll ends in exactly one [`Store::record`], so a resource that fails is scheduled again
//!   like any other; or it is put off, because its host is busy, and changes nothing. A result whose
//!   claim was lost changes nothing either: another poll holds the resource.
//! * Nothing is sent from here. New entries get their numbers in the log, and the subscriptions
//!   become due, in one transaction; a crash loses both or neither.
//! * No wire format, SQL or status code is decided here, but in `feedgate-feed`, `feedgate-store`
//!   and `net`; [`Poller::poll`] only puts the steps in order.
//!
//! [`Store::record`]: feedgate_store::Store::record

mod advertised_upstream;
mod discovered_feeds;
mod disk_watch;
mod events;
mod feed_headers;
mod fetch_and_parse;
mod first_plan;
mod former_document;
mod group_turn;
mod host_backoff;
mod known_as;
mod node_health;
mod observation;
mod poll_now;
mod push;
mod put_off;
mod read_document;
mod records;
mod redirects;
mod rendered_length;
mod report;
mod robots;
mod semantic_digest;
mod shared_documents;
mod sitemap_index;
mod trace;
mod unmarked_page;
mod watcher_networks;
mod worker;

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use chrono::{DateTime, Utc};
use tracing::{debug, warn};
use url::Url;

use crate::document_budget::{GatewayBusy, SMALL_BODY_BYTES};
use crate::event_log::EventLog;
use crate::fetch_traces::FetchTraces;
use crate::jobs::claim_renewal::ClaimRenewal;
use crate::jobs::runner::{self, HostPermits, Stopwatch};
use crate::metrics::Metrics;
use crate::net::{HttpClient, Patience};
use feedgate_core::poll::Poll;
use feedgate_core::poll_times;
use feedgate_core::resource::{Resource, ResourceId};
use feedgate_core::schedule::{K_LEAST, ScheduleBounds};
use feedgate_core::store::{DueResource, StoreError};
use feedgate_core::upstream::UpstreamFinding;
use feedgate_store::Store;

use group_turn::GroupTurn;
use observation::{Failure, Found, Observation};
use put_off::{Busy, PollStop, PutOff};
use records::PollRecords;
use report::{PollReport, ReportInputs};
use robots::RobotsVerdict;
use worker::{PollPlace, WaitsFor};

pub use discovered_feeds::discovered_feeds;
pub use first_plan::first_plan;
pub use known_as::KnownAs;
pub use observation::links;
pub use poll_now::{PolledNow, StartedPoll};
pub use push::PushedDocument;
pub use read_document::{ParsedDocument, read_document};
pub use records::{candidates, render_entry};
pub use worker::ClaimedPoll;

/// The operator's settings for polling.
#[derive(Clone, Debug)]
pub struct PollSettings {
    /// How long this node owns a claimed resource. The claim is renewed while the poll runs.
    pub claim: Duration,
    /// The shortest poll period of any resource, in seconds.
    pub min_period_s: u32,
    /// Whether to estimate the porn rank.
    pub porn_rank: bool,
    /// The address for notifications from hubs and clouds; `None` subscribes to no upstream.
    pub upstream_url: Option<Url>,
}

/// Polls resources. Clones share all state.
#[derive(Clone)]
pub struct Poller {
    store: Arc<Store>,
    client: HttpClient,
    permits: HostPermits,
    shared_documents: shared_documents::SharedDocuments,
    robots_cache: robots::RobotsCache,
    claims: Arc<ClaimRenewal<ResourceId>>,
    metrics: Metrics,
    event_log: EventLog,
    fetch_traces: FetchTraces,
    settings: PollSettings,
    cached_k: Arc<CachedK>,
    health: Arc<node_health::NodeHealth>,
    disk: Arc<disk_watch::DiskWatch>,
    /// Whether the caller requested the polls for an account, whose subscription may not be stored yet.
    is_for_account: bool,
}

/// How a poll ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PollEnd {
    /// The result of the poll was recorded, unless its claim was lost.
    Recorded,
    /// The poll was put off. Holds the time after which this gateway can take the document, if the
    /// gateway was the reason.
    PutOff(Option<GatewayBusy>),
}

/// The factor `k` of the schedule, as this node last read it from the store.
#[derive(Debug, Default)]
struct CachedK {
    k_bits: AtomicU64,
    read_at_s: AtomicI64,
}

/// The number of polls of one host at the same time (rule P41).
const PER_HOST: usize = 1;
/// The outcome of a poll whose claim was lost, in the metrics.
const CLAIM_LOST: &str = "claim_lost";
/// How old the cached `k` may be, in seconds; a maintenance task adjusts `k` once a minute.
const K_MAX_AGE_S: i64 = 30;

impl Poller {
    /// Creates a poller of the resources in `store`. Must be called within a runtime: claims are
    /// renewed by a task.
    pub fn new(
        store: Arc<Store>,
        client: HttpClient,
        metrics: Metrics,
        event_log: EventLog,
        settings: PollSettings,
    ) -> Poller {
        Poller {
            permits: HostPermits::new(PER_HOST, store.wake_signals().resources),
            claims: Arc::new(worker::renewal(Arc::clone(&store), settings.claim)),
            store,
            client,
            shared_documents: shared_documents::SharedDocuments::default(),
            robots_cache: robots::RobotsCache::default(),
            metrics,
            event_log,
            fetch_traces: FetchTraces::default(),
            settings,
            cached_k: Arc::default(),
            health: Arc::new(node_health::NodeHealth::new()),
            disk: Arc::default(),
            is_for_account: false,
        }
    }

    /// Returns how long this node owns a job that it has claimed, unless it renews the claim.
    pub(crate) fn job_lease(&self) -> Duration {
        self.settings.claim
    }

    /// Returns the traces of the last fetches.
    pub fn fetch_traces(&self) -> &FetchTraces {
        &self.fetch_traces
    }

    /// Polls a claimed resource once and records the result.
    ///
    /// A resource that cannot be fetched or read is a finding, not an error: the failure is
    /// recorded and shown in the resource's status. An error of this function means that the store
    /// failed.
    ///
    /// `patience` is how long the poll may wait for a busy host. If that is not long enough, the
    /// poll is put off: the resource is released, to be polled again soon.
    pub async fn poll(
        &self,
        due: &DueResource,
        now: DateTime<Utc>,
        patience: Patience,
    ) -> Result<PollEnd, StoreError> {
        self.poll_in(PollPlace::default(), due, now, patience).await
    }

    /// Polls as [`poll`](Self::poll) does, in a place of its own.
    async fn poll_in(
        &self,
        place: PollPlace<'_>,
        due: &DueResource,
        now: DateTime<Utc>,
        patience: Patience,
    ) -> Result<PollEnd, StoreError> {
        let begun = Stopwatch::start();
        let group = self.store.group(&due.resource.fetch_url);
        let turn = GroupTurn::new(Arc::clone(&self.store), place.permit, group);
        // Pinned here, or each future that awaits one of these would contain it twice.
        let observe = pin!(self.observe(due, now, (patience, &turn)));
        let observed = worker::in_slot(place.slot, WaitsFor::Others, observe).await;
        let waits_for = match &observed {
            Ok(observation) if observation.found.body_len() > SMALL_BODY_BYTES => WaitsFor::Others,
            _ => WaitsFor::Store,
        };
        let conclude = pin!(self.conclude(due, observed, now, begun));
        worker::in_slot(place.slot, waits_for, conclude).await
    }

    /// Records what was observed, or puts the poll off.
    async fn conclude(
        &self,
        due: &DueResource,
        observed: Result<Observation, PollStop>,
        now: DateTime<Utc>,
        begun: Stopwatch,
    ) -> Result<PollEnd, StoreError> {
        let set_by = begun.clock_set_by();
        let now = now + set_by;
        match observed {
            Ok(mut observation) => {
                observation.move_times(set_by);
                match self.evaluate(due, observation, now).await {
                    Err(StoreError::Postponed { until, reason }) => {
                        let busy = Busy::Store { until, reason };
                        let why = PutOff { busy, has_begun: true };
                        self.put_off(due, why, now + begun.elapsed()).await
                    }
                    evaluated => evaluated.map(|()| PollEnd::Recorded),
                }
            }
            Err(PollStop::PutOff(why)) => self.put_off(due, why, now + begun.elapsed()).await,
            Err(PollStop::Store(err)) => Err(err),
        }
    }

    /// Fetches and parses a resource, if `robots.txt` allows it.
    async fn observe(
        &self,
        due: &DueResource,
        now: DateTime<Utc>,
        (patience, turn): (Patience, &GroupTurn),
    ) -> Result<Observation, PollStop> {
        if let Some(until) = due.resource.polling.left_alone_after(now) {
            return Err(PollStop::PutOff(PutOff {
                busy: Busy::LeftAlone(until),
                has_begun: false,
            }));
        }
        self.check_disk_space(due.resource.id).await?;
        let client = self.client_for_poll(&due.resource, patience).await?;
        Poller::admit_first_fetch(&client, due, patience).await?;
        let (resource, at) = (&due.resource, (now, patience));
        let verdict = match self.check_robots(&client, (resource, &resource.fetch_url), at).await? {
            RobotsVerdict::Disallowed(failure) => return Ok(Observation::skipped(now, failure)),
            verdict => verdict,
        };
        let source = fetch_and_parse::Source {
            client: &client,
            shared_documents: &self.shared_documents,
            patience,
            turn,
        };
        let observation = source.fetch_and_parse(due, now).await.map_err(PollStop::PutOff)?;
        let last = observation.visits.last().map(|visit| visit.url.clone());
        let mut observation = self.follow_index(source.continued(), due, observation).await?;
        self.check_unmarked_page(due, &mut observation).await?;
        verdict.reject_page(&mut observation);
        self.check_redirected_robots(&client, (resource, &mut observation), last, at).await?;
        Ok(observation)
    }

    /// Records the consequences of an observation for a resource.
    async fn evaluate(
        &self,
        due: &DueResource,
        mut observation: Observation,
        now: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        let (resource, mut clock) = (&due.resource, Stopwatch::start());
        let memory = observation.found.memory(); // until everything is recorded
        let records = self.detect_changes(due, &mut observation, now).await?;
        let upstream = self.advertised_upstream(resource, &observation);
        let is_network_outage = self.is_network_outage(due, &observation).await?;
        observation.move_times(clock.restart());
        let refusal = self.report_refusal(due, &observation).await?;
        let answered_well = self.credit_servers(resource, &observation).await?;
        let is_redirected =
            self.answering_group(resource, &observation) != self.store.group(&resource.fetch_url);
        let location = redirects::observe_redirect(resource, &observation, records.new);

        let inputs = self.report_inputs(now).await?;
        let mut report = report::report(due, observation, records, &inputs);
        observation::free_feed(report.feed.take(), memory.as_ref()).await;
        (report.poll.upstream, report.poll.answered_well) = (upstream, answered_well);
        if let Some(backoff) = &refusal {
            let jitter = runner::jitter();
            let backoff = (backoff, is_redirected);
            host_backoff::apply_host_backoff(&mut report.poll, resource, backoff, jitter);
        }
        if is_network_outage {
            node_health::ignore_failure(&mut report, resource, runner::jitter());
        } else {
            redirects::apply_redirect(&mut report.poll, resource, &location);
        }
        report.poll.move_times(clock.restart());
        self.record(due, report).await
    }

    /// Returns the records that the observation adds to the log. A document that made the parser
    /// panic adds none, and becomes a failure of the resource.
    async fn detect_changes(
        &self,
        due: &DueResource,
        observation: &mut Observation,
        now: DateTime<Utc>,
    ) -> Result<PollRecords, StoreError> {
        let records = records::records(&self.store, due, &mut observation.found, now).await?;
        Ok(records.unwrap_or_else(|| {
            observation.found = Found::Failure(Failure::parser_panicked());
            PollRecords::default()
        }))
    }

    fn advertised_upstream(
        &self,
        resource: &Resource,
        observation: &Observation,
    ) -> UpstreamFinding {
        self.settings.upstream_url.as_ref().map_or(UpstreamFinding::Unknown, |own| {
            advertised_upstream::advertised_upstream(&observation.found, resource, own)
        })
    }

    async fn report_inputs(&self, now: DateTime<Utc>) -> Result<ReportInputs, StoreError> {
        let bounds = self.bounds(now).await?;
        let porn_rank = self.settings.porn_rank;
        Ok(ReportInputs { bounds, jitter: runner::jitter(), porn_rank })
    }

    /// Records a poll in the store, the event log and the metrics.
    async fn record(&self, due: &DueResource, mut report: PollReport) -> Result<(), StoreError> {
        let resource = &due.resource;
        let Poll { status, polling, leaves_details, .. } = &mut report.poll;
        let before = (&resource.status, &resource.polling);
        *leaves_details = poll_times::is_all_that_differs(before, (status, polling));
        let Some(appended) = self.store.record(resource.id, &report.poll).await? else {
            warn!(
                resource = resource.id.0,
                "poll result dropped: another poll claimed the resource"
            );
            self.metrics.polled(CLAIM_LOST, due.trigger.as_str(), report.took);
            return Ok(());
        };
        if let Some(event) = events::fetched(due, &report, appended.new) {
            self.event_log.record(event);
        }
        self.metrics.polled(report.outcome, due.trigger.as_str(), report.took);
        self.metrics.fetched(report.wire_bytes, appended.new);
        self.metrics.traffic().polled(resource.id, report.outcome, appended.new);
        let (outcome, head) = (report.outcome, appended.head.0);
        debug!(resource = resource.id.0, outcome, new = appended.new, head, "resource polled");
        self.fetch_traces.record(resource.id, trace::trace(report, appended.new));
        Ok(())
    }

    /// Returns the bounds of poll periods now.
    pub async fn bounds(&self, now: DateTime<Utc>) -> Result<ScheduleBounds, StoreError> {
        let CachedK { k_bits, read_at_s } = &*self.cached_k;
        let now_s = now.timestamp();
        if (now_s - read_at_s.load(Ordering::Relaxed)).abs() >= K_MAX_AGE_S {
            read_at_s.store(now_s, Ordering::Relaxed);
            k_bits.store(self.store.poll_factor().await?.to_bits(), Ordering::Relaxed);
        }
        let k = f64::from_bits(k_bits.load(Ordering::Relaxed)).max(K_LEAST);
        Ok(ScheduleBounds { min_period_s: self.settings.min_period_s, k })
    }
}

impl std::fmt::Debug for Poller {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Poller").field("settings", &self.settings).finish_non_exhaustive()
    }
}
