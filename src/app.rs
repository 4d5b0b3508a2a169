//! A running feedgate: its parts put together, and taken apart in order.
//!
//! `serve`, `demo` and the tests all start it here, so that there is one way in which
//! the parts fit. Nothing is global: two of them can run in one process.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{error, info};
use url::Url;

use crate::authoring::Publish;
use crate::config::Config;
use crate::event_log::{self, Journal};
use crate::http::serve::listener::{ListenError, Listener};
use crate::http::{self, ArchiveDocumentCache, Gateway, Strangers};
use crate::jobs::backfill::Backfills;
use crate::jobs::collect::Collect;
use crate::jobs::deliver::Deliver;
use crate::jobs::forward_pings::{self, Onwards};
use crate::jobs::maintenance;
use crate::jobs::poll::Ingest;
use crate::jobs::runner::{self, Pace, Work};
use crate::jobs::upstream::Upstreams;
use crate::metrics::Metrics;
use crate::net::Fetch;
use crate::subscriptions::Subscribe;
use crate::subscriptions::verification_job::Intents;
use feedgate_core::account::{NewToken, Scopes, TokenHash};
use feedgate_core::ports::{Store, StoreError};
use feedgate_store as store;

/// How long a worker sleeps when nothing is due. Work that arrives wakes it; this is
/// for what becomes due by the clock alone, and for news that got lost.
const IDLE: Duration = Duration::from_millis(500);
/// Verifications at once.
const INTENTS_AT_ONCE: usize = 64;
/// Requests to ping sinks at once.
const ONWARD_AT_ONCE: usize = 8;
/// Steps of collecting at once: more would bring records out of their order of arrival.
const COLLECT_AT_ONCE: usize = 1;
/// Requests to hubs and clouds at once: few are due, and many hubs are one.
const UPSTREAMS_AT_ONCE: usize = 8;
/// Histories brought in at once: each is read a page at a time, and none is urgent.
const BACKFILLS_AT_ONCE: usize = 4;

/// A running feedgate.
pub struct Running {
    addr: SocketAddr,
    public_url: Url,
    admin_token: Option<String>,
    store: Arc<dyn Store>,
    parts: JoinSet<()>,
    journal: event_log::Writer,
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
        let fetch = Fetch::new(config.net(&public_url));
        let (kept, out) = (|| Arc::clone(&store), || fetch.clone());
        let (journal, writer) = Journal::start(kept());
        let (counts, tells) = (|| metrics.clone(), || journal.clone());
        let ingest = Ingest::new(kept(), out(), counts(), tells(), config.poll());
        let settings = config.deliver(&public_url);
        let deliver = Deliver::new(kept(), out(), counts(), tells(), settings);
        let subscribe = Subscribe::new(kept(), out(), ingest.clone(), counts(), tells());
        let subscribe = Arc::new(subscribe);
        let intents = Intents::new(Arc::clone(&subscribe));
        let settings = config.authoring(&public_url);
        let publish = Arc::new(Publish::new(kept(), Arc::clone(&subscribe), out(), settings));
        let collect = Collect::prepare(kept(), &config.collect(&public_url), runner::now()).await?;
        let settings = config.http(&public_url);
        let stop = CancellationToken::new();
        let upstreams = config.upstream().map(|settings| (counts(), tells(), settings));
        let upstreams =
            upstreams.map(|parts| Arc::new(Upstreams::new(kept(), out(), ingest.clone(), parts)));
        let backfills = Backfills::new(kept(), out(), ingest.clone(), tells(), config.backfill());
        let gateway = Gateway {
            store: kept(),
            subscribe,
            publish,
            upstreams: upstreams.clone(),
            strangers: Strangers::new(settings.stranger_calls_per_min, Instant::now()),
            archive_documents: ArchiveDocumentCache::new(settings.archive_cache_bytes),
            settings,
            metrics: counts(),
            journal: tells(),
            stop: stop.clone(),
        };

        let news = store.news();
        let pace = |at_once| Pace { at_once, idle: IDLE, drain: config.shutdown_grace };
        let mut parts = JoinSet::new();
        parts.spawn(listener.serve(http::doors(Arc::new(gateway)), stop.clone()));
        spawn(&mut parts, ingest, pace(config.fetch_concurrency), (news.resources, &stop));
        spawn(&mut parts, deliver, pace(config.delivery_concurrency), (news.subscriptions, &stop));
        spawn(&mut parts, intents, pace(INTENTS_AT_ONCE), (news.intents, &stop));
        spawn(&mut parts, collect, pace(COLLECT_AT_ONCE), (news.collections, &stop));
        if let Some(upstreams) = upstreams {
            spawn_shared(&mut parts, upstreams, pace(UPSTREAMS_AT_ONCE), (Arc::default(), &stop));
        }
        if !config.ping_targets.is_empty() {
            let onwards = Onwards::new(kept(), out(), config.ping_targets.clone(), metrics.clone());
            spawn(&mut parts, onwards, pace(ONWARD_AT_ONCE), (Arc::default(), &stop));
        }
        spawn_backfills(&mut parts, backfills, pace(BACKFILLS_AT_ONCE), &stop);
        parts.spawn(maintenance::run(kept(), tells(), config.maintenance(), stop.clone()));
        info!(%addr, %public_url, "feedgate {} is running", env!("CARGO_PKG_VERSION"));
        Ok(Running { addr, public_url, admin_token, store, parts, journal: writer, stop })
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
        self.journal.close().await; // all who could tell it anything have ended
        self.store.close().await;
        info!("feedgate has stopped");
    }
}

fn spawn<W: Work>(
    parts: &mut JoinSet<()>,
    work: W,
    pace: Pace,
    (news, stop): (Arc<tokio::sync::Notify>, &CancellationToken),
) {
    spawn_shared(parts, Arc::new(work), pace, (news, stop));
}

fn spawn_backfills(
    parts: &mut JoinSet<()>,
    backfills: Backfills,
    pace: Pace,
    stop: &CancellationToken,
) {
    let again = backfills.again();
    spawn(parts, backfills, pace, (again, stop));
}

fn spawn_shared<W: Work>(
    parts: &mut JoinSet<()>,
    work: Arc<W>,
    pace: Pace,
    (news, stop): (Arc<tokio::sync::Notify>, &CancellationToken),
) {
    parts.spawn(runner::run(work, pace, news, stop.clone()));
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
    let new = NewToken { login, name, rights, hash: TokenHash::of(&token) };
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
