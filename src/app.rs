//! A running node: creates its services, starts their workers, and stops them in order.
//!
//! `serve`, `demo` and the tests all start a node here. Nothing is global: two nodes can run in
//! one process.

mod first_token;
mod keyring;
mod outgoing;
mod start_error;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use tokio::select;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{error, info};
use url::Url;

use crate::authoring::AuthoringService;
use crate::config::Config;
use crate::disk_space::DiskSpace;
use crate::event_log::{self, EventLog};
use crate::head_watch::HeadWatch;
use crate::http::kit::slots::Slots;
use crate::http::serve::listener::Listener;
use crate::http::{
    AccountRateLimit, AnonymousRateLimit, ArchiveDocumentCache, CachedGauges, Gateway,
    HttpSettings, Imports, RecentRegistrants, Router, VerificationRateLimit,
};
use crate::jobs::alerts::{self, AlertNotifier, AlertSender};
use crate::jobs::backfill::{self, Backfiller};
use crate::jobs::clock_sync::{ClockSync, RunningClockSync};
use crate::jobs::collect::Collector;
use crate::jobs::deliver::Deliverer;
use crate::jobs::fan_out::FanOutJob;
use crate::jobs::forward_pings::{self, PingForwarder};
use crate::jobs::heartbeat::Heartbeat;
use crate::jobs::maintenance;
use crate::jobs::poll::Poller;
use crate::jobs::runner::{self, Job, WorkerConfig};
use crate::jobs::search_index::SearchIndexer;
use crate::jobs::traffic_writer::TrafficWriter;
use crate::jobs::upstream::{self, UpstreamClient};
use crate::metrics::Metrics;
use crate::net::HttpClient;
use crate::site_icons::SiteIcons;
use crate::subscriptions::{SubscriptionService, reading_lists, verification_job};
use feedgate_core::node::{NodeId, NodeInfo};
use feedgate_core::store::StoreError;
use feedgate_store as store;
use feedgate_store::Store;

pub use start_error::StartError;

/// How long a worker sleeps when nothing is due. A wake signal ends the sleep; the interval is
/// for items that become due by the clock alone, and for signals that were lost.
const IDLE: Duration = Duration::from_millis(500);
/// Requests to ping targets that run at the same time.
const FORWARDING_CONCURRENCY: usize = 8;
/// Chunks of fan-outs that run at the same time: they would wait for each other's locks.
const FAN_OUT_CONCURRENCY: usize = 1;
/// Collection steps that run at the same time: more than one would append records out of their
/// order of arrival.
const COLLECTION_CONCURRENCY: usize = 1;
/// Steps of the search index that run at the same time: one is enough, and it is not urgent.
const SEARCH_INDEX_CONCURRENCY: usize = 1;
/// Requests to hubs and clouds that run at the same time: few are due, and most go to the same
/// few hubs.
const UPSTREAM_CONCURRENCY: usize = 8;

/// A running feedgate.
pub struct Running {
    addr: SocketAddr,
    public_url: Url,
    admin_token: Option<String>,
    store: Arc<Store>,
    tasks: JoinSet<()>,
    event_log_writer: event_log::Writer,
    traffic: TrafficWriter,
    clock_sync: RunningClockSync,
    stop: CancellationToken,
}

impl Running {
    /// Starts all services. When this returns, requests are accepted.
    pub async fn start(config: Config) -> Result<Running, StartError> {
        let listener = Listener::bind(config.listen, config.listener()).await?;
        let health_listener = match config.health_listen {
            Some(addr) => Some(Listener::bind(addr, config.health_listener()).await?),
            None => None,
        };
        let addr = listener.local_addr();
        let public_url = config.public_url_at(addr);
        let forwarding = config.forwarding(&public_url);
        let store = store::open(&store::StoreSettings { forwarding, ..config.store() }).await?;
        check_pages(config.store().url).await?;
        let clock_sync = ClockSync::start(Arc::clone(&store)).await?.spawn();
        forward_pings::forget_other_targets(&store, &config.ping_targets).await?;
        let admin_token = first_token::create(&store, runner::now()).await?;

        let metrics = Metrics::new();
        let observed = metrics.clone();
        store.observe_transactions(Arc::new(move |ended| observed.transaction_ended(ended)));

        let (event_log, event_log_writer) = EventLog::start(Arc::clone(&store));
        let shared = Shared {
            listen: addr,
            node: new_node(&config),
            store: Arc::clone(&store),
            client: outgoing::new_client(&config, &public_url, &store),
            disk_space: config.disk_space(),
            metrics,
            event_log,
            stop: CancellationToken::new(),
        };
        let keyring = keyring::keyring(&shared, &config).await;
        let services = Services::new(&shared, &config, &public_url).await?;
        let (reports_to, node) = (Arc::clone(&shared.store), shared.node.clone());
        let mut heartbeat = Heartbeat::new(reports_to, node, config.slot_terms());
        heartbeat.report().await; // before the first claim
        let gateway = Arc::new(services.gateway(&shared, config.http(&public_url)));
        let stop = shared.stop.clone();
        let traffic = TrafficWriter::new(Arc::clone(&store), shared.metrics.clone());
        let mut tasks = services.spawn_workers(shared, &config);
        tasks.spawn(traffic.clone().run(stop.clone()).boxed());
        tasks.spawn(heartbeat.run(config.shutdown_grace, stop.clone()).boxed());
        if let Some(listener) = health_listener {
            tasks.spawn(listener.serve(Router::health(&gateway), stop.clone()).boxed());
        }
        tasks.spawn(listener.serve(Router::new(gateway), stop.clone()).boxed());
        if let Some(keyring) = keyring {
            tasks.spawn(keyring.run(stop.clone()).boxed());
        }
        info!(%addr, %public_url, "feedgate {} is running", env!("CARGO_PKG_VERSION"));
        Ok(Running {
            addr,
            public_url,
            admin_token,
            store,
            tasks,
            event_log_writer,
            traffic,
            clock_sync,
            stop,
        })
    }

    /// The address that the listener is bound to.
    pub fn local_addr(&self) -> SocketAddr {
        self.addr
    }

    /// The URL of this gateway as others know it.
    pub fn public_url(&self) -> &Url {
        &self.public_url
    }

    /// The token of the account `admin`, if this start created it. It is stored nowhere.
    pub fn admin_token(&self) -> Option<&str> {
        self.admin_token.as_deref()
    }

    /// The store of this node.
    pub fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// Waits for a task that ends before shutdown, which only a panic makes it do.
    pub async fn broken(&mut self) {
        let ended = select! {
            ended = self.tasks.join_next() => ended,
            ended = self.clock_sync.ended() => Some(ended),
        };
        if let Some(Err(err)) = ended {
            error!(error = &err as &dyn std::error::Error, "a task panicked");
        }
    }

    /// Stops all workers, waits for running jobs as long as the shutdown grace period allows, and
    /// closes the store. Another node, or the next start, takes up what was not finished.
    pub async fn stop(mut self) {
        self.stop.cancel();
        while let Some(ended) = self.tasks.join_next().await {
            if let Err(err) = ended {
                error!(error = &err as &dyn std::error::Error, "a task panicked");
            }
        }
        self.event_log_writer.close().await; // all tasks that could record an event have ended
        self.traffic.close().await;
        self.clock_sync.stop().await; // the last that stores
        self.store.close().await;
        info!("feedgate has stopped");
    }
}

async fn check_pages(url: String) -> Result<(), StoreError> {
    let checked = tokio::task::spawn_blocking(move || store::check_pages(&url)).await;
    checked.unwrap_or_else(|err| Err(StoreError::Database(Box::new(err))))
}

/// What all services share.
struct Shared {
    /// The address that the listener is bound to.
    listen: SocketAddr,
    node: NodeInfo,
    store: Arc<Store>,
    client: HttpClient,
    disk_space: DiskSpace,
    metrics: Metrics,
    event_log: EventLog,
    stop: CancellationToken,
}

/// The services of a node, before any of them runs.
struct Services {
    poller: Poller,
    deliverer: Deliverer,
    heads: Arc<HeadWatch>,
    subscribe: Arc<SubscriptionService>,
    publish: Arc<AuthoringService>,
    collector: Collector,
    search_indexer: SearchIndexer,
    upstreams: Option<Arc<UpstreamClient>>,
    backfiller: Backfiller,
    alert_notifier: AlertNotifier,
}

impl Services {
    async fn new(
        shared: &Shared,
        config: &Config,
        public_url: &Url,
    ) -> Result<Services, StartError> {
        let (store, client) = (|| Arc::clone(&shared.store), || shared.client.clone());
        let (metrics, event_log) = (|| shared.metrics.clone(), || shared.event_log.clone());
        let poller = Poller::new(store(), client(), metrics(), event_log(), config.poll());
        let poller = poller.with_disk_space(shared.disk_space.clone());
        let settings = config.deliver(public_url);
        let deliverer = Deliverer::new(store(), client(), metrics(), event_log(), settings);
        let heads = Arc::new(HeadWatch::new(store()));
        let subscribe =
            SubscriptionService::new(store(), client(), poller.clone(), metrics(), event_log());
        let subscribe = subscribe.with_public_url(public_url.clone());
        let subscribe = subscribe.with_listen_address(shared.listen);
        let subscribe = Arc::new(subscribe.with_quotas(config.subscription_quotas()));
        let settings = config.authoring(public_url);
        let publish = AuthoringService::new(store(), Arc::clone(&subscribe), client(), settings);
        let (documents, settings) = (shared.client.documents().clone(), config.collect(public_url));
        let collector = Collector::prepare(store(), documents, &settings, runner::now()).await?;
        let search_indexer = SearchIndexer::prepare(store(), config.search_index()).await?;
        let upstreams = config.upstream().map(|settings| {
            let client = UpstreamClient::new(upstream::Parts {
                store: store(),
                client: client(),
                poller: poller.clone(),
                metrics: metrics(),
                event_log: event_log(),
                settings,
            });
            Arc::new(client.with_limits(subscribe.verification_limits()))
        });
        let backfiller = Backfiller::new(store(), poller.clone(), event_log(), config.backfill());
        let publish = Arc::new(publish);
        Ok(Services {
            poller,
            deliverer,
            heads,
            subscribe,
            publish,
            collector,
            search_indexer,
            upstreams,
            backfiller,
            alert_notifier: AlertNotifier::new(client()),
        })
    }

    /// What the HTTP endpoints work with.
    fn gateway(&self, shared: &Shared, settings: HttpSettings) -> Gateway {
        let now = Instant::now();
        Gateway {
            node: shared.node.id.clone(),
            store: Arc::clone(&shared.store),
            subscribe: Arc::clone(&self.subscribe),
            publish: Arc::clone(&self.publish),
            upstreams: self.upstreams.clone(),
            recent_registrants: RecentRegistrants::new(),
            verification_rate_limit: VerificationRateLimit::new(now),
            anonymous_rate_limit: AnonymousRateLimit::new(settings.anonymous_requests_per_min, now),
            account_rate_limit: AccountRateLimit::new(settings.account_requests_per_min, now),
            archive_documents: ArchiveDocumentCache::new(settings.archive_cache_bytes),
            imports: Imports::default(),
            documents: shared.client.documents().clone(),
            disk_space: shared.disk_space.clone(),
            gauges: CachedGauges::new(settings.gauges_max_age),
            composer: self.deliverer.composer(),
            test_notifier: self.deliverer.test_notifier(),
            alert_notifier: self.alert_notifier.clone(),
            heads: Arc::clone(&self.heads),
            request_signer: shared.client.request_signer().clone(),
            streams: Arc::new(Slots::new(settings.max_streams, settings.max_streams_per_account)),
            settings,
            metrics: shared.metrics.clone(),
            event_log: shared.event_log.clone(),
            fetch_traces: self.poller.fetch_traces().clone(),
            site_icons: SiteIcons::new(Arc::clone(&shared.store), shared.client.clone()),
            stop: shared.stop.clone(),
        }
    }

    /// Starts a worker for each kind of job. They run until `shared.stop` is cancelled.
    fn spawn_workers(self, shared: Shared, config: &Config) -> JoinSet<()> {
        let wake = shared.store.wake_signals();
        let freed = Arc::new(Notify::new());
        let subscribe = Arc::clone(&self.subscribe);
        let list_reader = reading_lists::ReadingListJob::new(subscribe, Arc::clone(&freed));
        let verifier = verification_job::VerificationJob::new(self.subscribe);
        let mut workers = Workers {
            tasks: JoinSet::new(),
            shutdown_grace: config.shutdown_grace,
            stop: shared.stop.clone(),
        };
        workers.spawn(Arc::new(self.poller), config.fetch_concurrency, wake.resources);
        workers.spawn(Arc::new(self.deliverer), config.delivery_concurrency, wake.subscriptions);
        let fan_out = FanOutJob::new(Arc::clone(&shared.store));
        workers.spawn(Arc::new(fan_out), FAN_OUT_CONCURRENCY, wake.fan_outs);
        workers.spawn(Arc::new(verifier), verification_job::CONCURRENCY, wake.intents);
        workers.spawn(Arc::new(list_reader), reading_lists::CONCURRENCY, freed);
        workers.spawn(Arc::new(self.collector), COLLECTION_CONCURRENCY, wake.collections);
        let indexer = Arc::new(self.search_indexer);
        workers.spawn(indexer, SEARCH_INDEX_CONCURRENCY, Arc::default());
        if let Some(upstreams) = self.upstreams {
            workers.spawn(upstreams, UPSTREAM_CONCURRENCY, Arc::default());
        }
        let quota = config.subscription_quotas().per_account;
        let (store, metrics) = (Arc::clone(&shared.store), shared.metrics.clone());
        let lease = config.job_lease;
        let alerts = AlertSender::new(store, self.alert_notifier, metrics, quota, lease);
        workers.spawn(Arc::new(alerts), alerts::CONCURRENCY, Arc::default());
        if !config.ping_targets.is_empty() {
            let (store, targets) = (Arc::clone(&shared.store), config.ping_targets.clone());
            let (client, metrics) = (shared.client, shared.metrics);
            let forwarder = PingForwarder::new(store, client, targets, metrics, config.job_lease);
            workers.spawn(Arc::new(forwarder), FORWARDING_CONCURRENCY, Arc::default());
        }
        let wake = self.backfiller.wake();
        workers.spawn(Arc::new(self.backfiller), backfill::CONCURRENCY, wake);
        workers.tasks.spawn(self.heads.run(shared.stop.clone()).boxed());
        let (settings, stop) = (config.maintenance(), shared.stop);
        let maintenance = maintenance::run(shared.store, shared.event_log, settings, stop);
        workers.tasks.spawn(maintenance.boxed());
        workers.tasks
    }
}

/// The workers that have been started.
struct Workers {
    tasks: JoinSet<()>,
    shutdown_grace: Duration,
    stop: CancellationToken,
}

impl Workers {
    /// Starts a worker that runs `concurrency` jobs at a time, and checks for more after `wake`.
    fn spawn<J: Job>(&mut self, job: Arc<J>, concurrency: usize, wake: Arc<Notify>) {
        let shutdown_grace = self.shutdown_grace;
        let config = WorkerConfig { concurrency, idle: IDLE, shutdown_grace };
        self.tasks.spawn(runner::run(job, config, wake, self.stop.clone()).boxed());
    }
}

/// Returns this node, which starts now.
fn new_node(config: &Config) -> NodeInfo {
    NodeInfo {
        id: NodeId(runner::nonce()),
        name: config.node_name(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        started_at: runner::now(),
    }
}

/// Opens the store that `config` names, and creates it if it is new.
pub async fn open_store(config: &Config) -> Result<Arc<Store>, StartError> {
    Ok(store::open(&config.store()).await?)
}

/// Opens the store that `config` names, which a gateway must have used before.
pub async fn open_existing_store(config: &Config) -> Result<Arc<Store>, StartError> {
    Ok(store::open_existing(&config.store()).await?)
}

impl std::fmt::Debug for Running {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Running").field("addr", &self.addr).finish_non_exhaustive()
    }
}
