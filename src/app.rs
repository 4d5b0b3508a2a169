//! A running feedgate: its parts put together, and taken apart in order.
//!
//! `serve`, `demo` and the tests all start it here, so that there is one way in which
//! the parts fit. Nothing is global: two of them can run in one process.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{error, info};
use url::Url;

use crate::authoring::AuthoringService;
use crate::config::Config;
use crate::event_log::{self, EventLog};
use crate::http::serve::listener::{ListenError, Listener};
use crate::http::{AnonymousRateLimit, ArchiveDocumentCache, Gateway, Router};
use crate::jobs::backfill::Backfiller;
use crate::jobs::collect::Collector;
use crate::jobs::deliver::Deliverer;
use crate::jobs::forward_pings::{self, PingForwarder};
use crate::jobs::maintenance;
use crate::jobs::poll::Poller;
use crate::jobs::runner::{self, Job, WorkerConfig};
use crate::jobs::upstream::{self, UpstreamClient};
use crate::metrics::Metrics;
use crate::net::HttpClient;
use crate::subscriptions::SubscriptionService;
use crate::subscriptions::verification_job::VerificationJob;
use feedgate_core::account::{NewToken, Scopes, TokenHash};
use feedgate_core::ports::{Store, StoreError};
use feedgate_store as store;

/// How long a worker sleeps when nothing is due. A wake signal ends the sleep; the interval is
/// for items that become due by the clock alone, and for signals that were lost.
const IDLE: Duration = Duration::from_millis(500);
/// Verifications of intent that run at the same time.
const VERIFICATION_CONCURRENCY: usize = 64;
/// Requests to ping targets that run at the same time.
const FORWARDING_CONCURRENCY: usize = 8;
/// Collection steps that run at the same time: more than one would append records out of their
/// order of arrival.
const COLLECTION_CONCURRENCY: usize = 1;
/// Requests to hubs and clouds that run at the same time: few are due, and most go to the same
/// few hubs.
const UPSTREAM_CONCURRENCY: usize = 8;
/// Backfills that run at the same time: each reads one page at a time, and none is urgent.
const BACKFILL_CONCURRENCY: usize = 4;

/// A running feedgate.
pub struct Running {
    addr: SocketAddr,
    public_url: Url,
    admin_token: Option<String>,
    store: Arc<dyn Store>,
    parts: JoinSet<()>,
    event_log: event_log::Writer,
    stop: CancellationToken,
}

/// Why feedgate did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Nobody can come in.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// There is nowhere to keep anything.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The system gives no random numbers, so no token can be made.
    #[error("the system gives no random numbers: {0}")]
    Random(getrandom::Error),
}

impl StartError {
    /// A word for logs, listed in `docs/errors.md`.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Listen(err) => err.code(),
            Self::Store(err) => err.code(),
            Self::Random(_) => "no_randomness",
        }
    }
}

impl Running {
    /// Starts everything. When this returns, requests are taken.
    pub async fn start(config: Config) -> Result<Running, StartError> {
        let listener = Listener::bind(config.listen, config.listener()).await?;
        let addr = listener.local_addr();
        let public_url = config.public_url_at(addr);
        let onward = config.forwarding(&public_url);
        let store = store::open(&store::Settings { onward, ..config.store() }).await?;
        forward_pings::forget_others(&*store, &config.ping_targets).await?;
        let admin_token = first_token(&*store, runner::now()).await?;

        let metrics = Metrics::new();
        let fetch = HttpClient::new(config.net(&public_url));
        let (kept, out) = (|| Arc::clone(&store), || fetch.clone());
        let (event_log, writer) = EventLog::start(kept());
        let (counts, tells) = (|| metrics.clone(), || event_log.clone());
        let poller = Poller::new(kept(), out(), counts(), tells(), config.poll());
        let settings = config.deliver(&public_url);
        let deliverer = Deliverer::new(kept(), out(), counts(), tells(), settings);
        let subscribe = SubscriptionService::new(kept(), out(), poller.clone(), counts(), tells());
        let subscribe = Arc::new(subscribe);
        let intents = VerificationJob::new(Arc::clone(&subscribe));
        let settings = config.authoring(&public_url);
        let publish =
            Arc::new(AuthoringService::new(kept(), Arc::clone(&subscribe), out(), settings));
        let collector =
            Collector::prepare(kept(), &config.collect(&public_url), runner::now()).await?;
        let settings = config.http(&public_url);
        let requests_per_min = settings.anonymous_requests_per_min;
        let stop = CancellationToken::new();
        let upstreams = config.upstream().map(|settings| {
            Arc::new(UpstreamClient::new(upstream::Parts {
                store: kept(),
                client: out(),
                poller: poller.clone(),
                metrics: counts(),
                event_log: tells(),
                settings,
            }))
        });
        let backfiller = Backfiller::new(kept(), out(), poller.clone(), tells(), config.backfill());
        let gateway = Gateway {
            store: kept(),
            subscribe,
            publish,
            upstreams: upstreams.clone(),
            anonymous_rate_limit: AnonymousRateLimit::new(requests_per_min, Instant::now()),
            archive_documents: ArchiveDocumentCache::new(settings.archive_cache_bytes),
            settings,
            metrics: counts(),
            event_log: tells(),
            stop: stop.clone(),
        };

        let news = store.news();
        let worker = |concurrency| WorkerConfig {
            concurrency,
            idle: IDLE,
            shutdown_grace: config.shutdown_grace,
        };
        let mut parts = JoinSet::new();
        parts.spawn(listener.serve(Router::new(Arc::new(gateway)), stop.clone()));
        let concurrency = config.fetch_concurrency;
        spawn(&mut parts, Arc::new(poller), worker(concurrency), news.resources, &stop);
        let concurrency = config.delivery_concurrency;
        spawn(&mut parts, Arc::new(deliverer), worker(concurrency), news.subscriptions, &stop);
        let concurrency = VERIFICATION_CONCURRENCY;
        spawn(&mut parts, Arc::new(intents), worker(concurrency), news.intents, &stop);
        let concurrency = COLLECTION_CONCURRENCY;
        spawn(&mut parts, Arc::new(collector), worker(concurrency), news.collections, &stop);
        if let Some(upstreams) = upstreams {
            let limits = worker(UPSTREAM_CONCURRENCY);
            spawn(&mut parts, upstreams, limits, Arc::default(), &stop);
        }
        if !config.ping_targets.is_empty() {
            let forwarder =
                PingForwarder::new(kept(), out(), config.ping_targets.clone(), metrics.clone());
            let limits = worker(FORWARDING_CONCURRENCY);
            spawn(&mut parts, Arc::new(forwarder), limits, Arc::default(), &stop);
        }
        let (limits, wake) = (worker(BACKFILL_CONCURRENCY), backfiller.wake());
        spawn(&mut parts, Arc::new(backfiller), limits, wake, &stop);
        parts.spawn(maintenance::run(kept(), tells(), config.maintenance(), stop.clone()));
        info!(%addr, %public_url, "feedgate {} is running", env!("CARGO_PKG_VERSION"));
        Ok(Running { addr, public_url, admin_token, store, parts, event_log: writer, stop })
    }

    /// Where it listens.
    pub fn local_addr(&self) -> SocketAddr {
        self.addr
    }

    /// The address others know it by.
    pub fn public_url(&self) -> &Url {
        &self.public_url
    }

    /// The token of the account `admin`, if this start made it. It is kept nowhere.
    pub fn admin_token(&self) -> Option<&str> {
        self.admin_token.as_deref()
    }

    /// Where it keeps everything.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// Waits for what should not happen: a part that ends without being told to.
    pub async fn broken(&mut self) {
        if let Some(Err(err)) = self.parts.join_next().await {
            error!(error = &err as &dyn std::error::Error, "a part of feedgate panicked");
        }
    }

    /// Takes no new work, finishes what is in hand as far as the drain time allows, and
    /// closes the store. What is not finished is found again by whoever starts next.
    pub async fn stop(mut self) {
        self.stop.cancel();
        while let Some(ended) = self.parts.join_next().await {
            if let Err(err) = ended {
                error!(error = &err as &dyn std::error::Error, "a part of feedgate panicked");
            }
        }
        self.event_log.close().await; // all who could tell it anything have ended
        self.store.close().await;
        info!("feedgate has stopped");
    }
}

fn spawn<J: Job>(
    parts: &mut JoinSet<()>,
    job: Arc<J>,
    config: WorkerConfig,
    wake: Arc<Notify>,
    stop: &CancellationToken,
) {
    parts.spawn(runner::run(job, config, wake, stop.clone()));
}

/// Opens the store that `config` names.
pub async fn open_store(config: &Config) -> Result<Arc<dyn Store>, StartError> {
    Ok(store::open(&config.store()).await?)
}

/// A new token for `login`: what its owner keeps, and its number in the store.
pub async fn create_token(
    store: &dyn Store,
    (login, name): (&str, &str),
    rights: Scopes,
    now: DateTime<Utc>,
) -> Result<(String, i64), StartError> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(StartError::Random)?;
    let token = hex::encode(bytes);
    let (login, name) = (login.to_owned(), name.to_owned());
    let new = NewToken { login, name, rights, hash: TokenHash::from_token(&token) };
    let id = store.create_token(&new, now).await?;
    Ok((token, id))
}

/// A token for the operator, if there is none for anybody yet.
async fn first_token(store: &dyn Store, now: DateTime<Utc>) -> Result<Option<String>, StartError> {
    if !store.list_tokens().await?.is_empty() {
        return Ok(None);
    }
    let (token, _) = create_token(store, ("admin", "first start"), Scopes::all(), now).await?;
    Ok(Some(token))
}

impl std::fmt::Debug for Running {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Running").field("addr", &self.addr).finish_non_exhaustive()
    }
}
