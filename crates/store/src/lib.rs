//! The one place where state is stored: the ports, and the two databases behind them.
//!
//! The ports use the language of the domain and define what happens on failure. Each is implemented
//! once, in the file named for it, with its SQL beside it; `tx` and `sql` make one text serve
//! SQLite (`sqlite/`) and PostgreSQL (`postgres/`). Both pass one contract suite,
//! `tests/it/store/`.
//!
//! Rules of every port:
//!
//! * Changes that belong together are one transaction. When a call has returned `Ok`, its changes
//!   survive `kill -9`.
//! * `now` is an argument. Times are stored in microseconds.
//! * An error is never read as "no such row".
//! * Work is claimed by moving its due time: a claim expires without a cleanup job.

mod accounts;
mod backfill;
mod backup;
mod cells;
mod changes;
mod clock;
mod collections;
mod copy;
mod delivery;
mod engine;
mod events;
mod hosts;
mod log;
mod maintenance;
mod nodes;
mod resources;
mod search;
mod secrets;
mod signing_keys;
mod tracks;
mod transfer;
mod write_health;

use crate::cells::Cells;
use crate::changes::ping_batcher::PingBatcher;
use crate::copy::copy_state;
use crate::delivery::account_turns::AccountTurns;
use crate::delivery::held_backlogs::HeldBacklogs;
use crate::delivery::intents;
use crate::delivery::subscription_batcher::SubscriptionBatcher;
use crate::engine::claims::SearchedQueue;
use crate::engine::migrate;
use crate::engine::postgres::{self, Connector, Postgres};
use crate::engine::sqlite::{self, Sqlite, WriteSize};
use crate::engine::tx::Tx;
use crate::log::anonymous_documents::AnonymousDocuments;
use crate::log::append_budget::AppendBudget;
use crate::resources::poll_result_batcher::PollResultBatcher;
use crate::resources::upstreams;
use crate::secrets::registered_keys;
use crate::write_health::WriteHealth;
use futures_util::future::BoxFuture;
use std::error::Error;
use std::path::Path;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Instant;

use tokio::sync::{Semaphore, SemaphorePermit};

use feedgate_core::host_groups::HostGroups;
use feedgate_core::intent::DueIntent;
use feedgate_core::page::PageLimits;
use feedgate_core::ping_forwarding::PingForwarding;

pub use crate::backup::error::BackupError;
pub use crate::backup::{BackupCounts, LARGEST_CHECKED_BYTES, back_up, check_pages, restore};
pub use crate::collections::collecting::COLLECT_BATCH;
pub use crate::copy::error::CopyError;
pub use crate::copy::{COPY_BATCH_ROWS, CopyProgress, CopySettings, CopySummary, copy};
pub use crate::engine::batcher::{BatchLimits, Batcher, PendingResult};
pub use crate::engine::envelope::{SecretKey, SecretKeys};
use crate::engine::lease::Leases;
pub use crate::engine::migrate::{MIGRATIONS, Migration};
pub use crate::engine::tx::STATEMENT_TARGET;
pub use crate::search::filling::INDEX_BATCH;
pub use crate::secrets::rotation::{RotatedSecrets, RotationProgress, rotate_secrets};
pub use crate::transfer::error::TransferError;
pub use crate::transfer::export::{ExportSummary, export};
pub use crate::transfer::import::Importer;
pub use crate::transfer::report::{ImportReport, KindReport};
use feedgate_core::ports::{EndedTransaction, Store, StoreError, TransactionObserver, WakeSignals};
use feedgate_core::served_hosts::ServedHosts;
use feedgate_core::{upstream::Upstream, visibility::ListedTopics};

/// The location of the store, and the rules that it applies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreSettings {
    /// `sqlite:PATH` or a path, or `postgres://USER@HOST/DATABASE`. A search path is
    /// given as `?options=-c%20search_path%3DNAME`, TLS as `?sslmode=require`.
    pub url: String,
    /// The most connections to PostgreSQL, or readers of SQLite.
    pub connections: usize,
    /// The servers that share a rate limit, and the interval between fetches from them. The value
    /// must be the same on all nodes.
    pub groups: HostGroups,
    /// The size limits of a page of a log. The value should be the same on all nodes.
    pub cut: PageLimits,
    /// How many bytes a resource that only subscribers without an account watch may append in a day.
    pub anonymous_bytes_per_day: u64,
    /// How many bytes may be appended in a day to the resources that an account watches.
    pub account_bytes_per_day: u64,
    /// The resources that changes.xml, the collection of all resources and tracks may contain.
    pub listed: ListedTopics,
    /// The changes that are forwarded, and the ping targets that receive them.
    pub forwarding: PingForwarding,
    /// The number of cells, which is fixed when the store is created. SQLite has one.
    pub cells: usize,
    /// The keys that secrets are encrypted with. The value must be the same on all nodes, except
    /// while the keys are changed.
    pub secret_keys: SecretKeys,
}

/// Opens the store, creates it if it is new, and brings its schema up to date.
pub async fn open(settings: &StoreSettings) -> Result<Arc<dyn Store>, StoreError> {
    open_with(settings, MIGRATIONS).await
}

/// Opens the store like [`open`], if a gateway has used it before.
pub async fn open_existing(settings: &StoreSettings) -> Result<Arc<dyn Store>, StoreError> {
    check_exists(settings).await?;
    open(settings).await
}

/// Fails unless a gateway has used the store before.
pub(crate) async fn check_exists(settings: &StoreSettings) -> Result<(), StoreError> {
    let exists = match sqlite_path(&settings.url) {
        Some(path) => backup::check_exists(path),
        None => match Connector::new(&settings.url) {
            Ok(connector) => copy::count_cells(connector).await.and_then(|cells| {
                let missing = || StoreError::NoDatabase { place: postgres::place(&settings.url) };
                cells.map(drop).ok_or_else(missing)
            }),
            Err(err) => Err(err),
        },
    };
    exists.map_err(|err| name_place(err, &settings.url))
}

/// Returns where the database at `url` is, without secrets: the absolute path of the file, or the
/// host and port of the server.
pub fn database_place(url: &str) -> String {
    match sqlite_path(url) {
        Some(path) => std::path::absolute(path).unwrap_or(path.to_owned()).display().to_string(),
        None => postgres::place(url),
    }
}

/// Fails if the folder of a SQLite database does not exist and opening the store would not create it.
/// Nothing is changed.
pub fn check_folder(url: &str) -> Result<(), StoreError> {
    let Some(path) = sqlite_path(url) else { return Ok(()) };
    match path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        Some(folder) => sqlite::check_folder(folder, path).map_err(|err| name_place(err, url)),
        None => Ok(()),
    }
}

/// Opens the store with other migrations, which begin with all of [`MIGRATIONS`], as a later
/// version of this program would.
pub async fn open_with(
    settings: &StoreSettings,
    migrations: &[Migration],
) -> Result<Arc<dyn Store>, StoreError> {
    if settings.cells > 1 {
        let cells = Cells::open(settings, migrations, OpenPurpose::Gateway).await;
        return Ok(Arc::new(cells.map_err(|err| name_place(err, &settings.url))?));
    }
    let db = Db::open(settings, migrations, OpenPurpose::Gateway).await;
    Ok(db.map_err(|err| name_place(err, &settings.url))?)
}

/// Adds to an error of the database where the database is.
fn name_place(err: StoreError, url: &str) -> StoreError {
    match err {
        StoreError::Database(err) => {
            let place = match sqlite_path(url) {
                Some(path) => path.display().to_string(),
                None => postgres::place(url),
            };
            StoreError::Open { place, reason: reason(&*err) }
        }
        other => other,
    }
}

/// What a store is opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OpenPurpose {
    /// To work as a gateway, or as one of its commands.
    Gateway,
    /// To be copied, or to receive a copy, while no gateway uses it.
    Copy,
}

/// The open store.
pub(crate) struct Db {
    engine: Engine,
    pub(crate) wake_signals: WakeSignals,
    pub(crate) poll_results: PollResultBatcher,
    pub(crate) subscriptions: SubscriptionBatcher,
    pub(crate) pings: PingBatcher,
    /// The number of batches of pings so far.
    pub(crate) ping_batches: AtomicU64,
    /// The version of the schema that this program works with.
    pub(crate) schema_version: i64,
    /// The source of the leases of claims.
    pub(crate) claims: Leases,
    /// Which accounts are next when deliveries are claimed.
    pub(crate) account_turns: Arc<AccountTurns>,
    /// The backlogs that this node delivers.
    pub(crate) held_backlogs: Arc<HeldBacklogs>,
    /// The hosts of callbacks that this node serves, in all cells.
    pub(crate) served_hosts: Arc<ServedHosts>,
    /// The queue of intents, by the host of the callback.
    pub(crate) intent_queue: SearchedQueue<DueIntent>,
    /// The queue of upstreams that are due, by the host of the hub or cloud.
    pub(crate) upstream_queue: SearchedQueue<Upstream>,
    /// The keys that secrets are encrypted with.
    pub(crate) secret_keys: Arc<SecretKeys>,
    /// The servers that share a rate limit.
    pub(crate) groups: HostGroups,
    /// The size limits of a page.
    pub(crate) cut: PageLimits,
    /// How much may be appended for subscribers.
    pub(crate) append_budget: AppendBudget,
    /// The resources that lists contain.
    pub(crate) listed: ListedTopics,
    /// Limits concurrent appends. On PostgreSQL they use at most half of the connections, so that
    /// claims and results of deliveries do not wait behind them.
    append_permits: Semaphore,
    /// The large documents that are being stored for subscribers without an account.
    anonymous_documents: AnonymousDocuments,
    /// The changes that are forwarded to ping targets.
    pub(crate) forwarding: Arc<PingForwarding>,
    /// Whether the database accepts writes.
    pub(crate) write_health: WriteHealth,
    /// Is called with each transaction that ends.
    pub(crate) transaction_observer: OnceLock<TransactionObserver>,
}

enum Engine {
    Sqlite(Sqlite),
    Postgres(Box<Postgres>),
}

impl Db {
    /// Opens the database that `settings` name, and applies the missing ones of `migrations`.
    async fn open(
        settings: &StoreSettings,
        migrations: &[Migration],
        purpose: OpenPurpose,
    ) -> Result<Arc<Db>, StoreError> {
        let wake_signals = WakeSignals::default();
        let connections = settings.connections.max(1);
        let engine = match sqlite_path(&settings.url) {
            Some(path) => Engine::Sqlite(Sqlite::open(path, connections, wake_signals.clone())?),
            None => {
                let connector = Connector::new(&settings.url)?.for_purpose(purpose);
                let mut opened =
                    Postgres::open(connector, connections, wake_signals.clone()).await?;
                if purpose == OpenPurpose::Gateway {
                    opened.listen(vec![opened.schema().to_owned()]).await?;
                }
                Engine::Postgres(Box::new(opened))
            }
        };
        let (version, served_hosts) = (migrate::newest(migrations), Arc::default());
        let db = Db::new(engine, settings, (wake_signals, served_hosts), version);
        db.migrate(migrations.into()).await?;
        cells::check_count(&db, 1).await?;
        if purpose == OpenPurpose::Gateway {
            copy_state::admit_gateway(&db).await?;
            registered_keys::check(&db).await?;
            db.regroup().await?;
        }
        Ok(db)
    }

    /// Returns the store in this database, whose schema is or will be up to date.
    fn new(
        engine: Engine,
        settings: &StoreSettings,
        (wake_signals, served_hosts): (WakeSignals, Arc<ServedHosts>),
        schema_version: i64,
    ) -> Arc<Db> {
        let append_permits = Semaphore::new(match engine {
            Engine::Sqlite(_) => Semaphore::MAX_PERMITS,
            Engine::Postgres(_) => {
                (settings.connections.div_ceil(settings.cells.max(1)) / 2).max(1)
            }
        });
        Arc::new_cyclic(|db| Db {
            engine,
            wake_signals,
            poll_results: PollResultBatcher::start(Weak::clone(db)),
            subscriptions: SubscriptionBatcher::start(Weak::clone(db)),
            pings: PingBatcher::start(Weak::clone(db)),
            ping_batches: AtomicU64::new(0),
            schema_version,
            claims: Leases::new(),
            account_turns: Arc::default(),
            held_backlogs: Arc::default(),
            served_hosts,
            intent_queue: SearchedQueue::new(&intents::QUEUE),
            upstream_queue: SearchedQueue::new(&upstreams::QUEUE),
            secret_keys: Arc::new(settings.secret_keys.clone()),
            groups: settings.groups.clone(),
            cut: settings.cut,
            append_budget: AppendBudget::from_settings(settings),
            listed: settings.listed,
            append_permits,
            anonymous_documents: AnonymousDocuments::default(),
            forwarding: Arc::new(settings.forwarding.clone()),
            write_health: WriteHealth::default(),
            transaction_observer: OnceLock::new(),
        })
    }

    /// Assigns the resources to their host groups again, if the table of groups has changed.
    async fn regroup(&self) -> Result<(), StoreError> {
        let groups = self.groups.clone();
        self.write(move |tx| Box::pin(async move { hosts::regroup(tx, &groups).await })).await
    }

    async fn migrate(&self, migrations: Arc<[Migration]>) -> Result<(), StoreError> {
        match &self.engine {
            Engine::Sqlite(sqlite) => {
                sqlite.write(WriteSize::Large, migrate::prepare).await?;
                while sqlite.write(WriteSize::Large, migrate::apply_next(&migrations)).await? {}
            }
            Engine::Postgres(postgres) => {
                let mut migrating = postgres.begin_migrating().await?;
                migrating.write(migrate::prepare).await?;
                while migrating.write(migrate::apply_next(&migrations)).await? {}
            }
        }
        Ok(())
    }

    /// Waits until an append may begin.
    pub(crate) async fn append_permit(&self) -> Result<SemaphorePermit<'_>, StoreError> {
        // Waiting fails only if the semaphore is closed, which nothing does.
        self.append_permits.acquire().await.map_err(|_| StoreError::Closed)
    }

    /// Runs `op` in one transaction, which changes nothing if it fails. PostgreSQL may end a
    /// transaction because of another one; then a copy of `op` runs in a new transaction.
    pub(crate) async fn write<T, F>(&self, op: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: for<'t> FnOnce(&'t Tx<'t>) -> BoxFuture<'t, Result<T, StoreError>>,
        F: Clone + Send + 'static,
    {
        self.write_sized(WriteSize::Small, op).await
    }

    /// Runs `op` as [`Db::write`] does. On SQLite, a large operation does not share its transaction
    /// with others, which get their turn before the next large one.
    pub(crate) async fn write_sized<T, F>(&self, size: WriteSize, op: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: for<'t> FnOnce(&'t Tx<'t>) -> BoxFuture<'t, Result<T, StoreError>>,
        F: Clone + Send + 'static,
    {
        let started = Instant::now();
        let op = with_keys(&self.secret_keys, op);
        let result = match &self.engine {
            Engine::Sqlite(sqlite) => sqlite.write(size, op).await,
            Engine::Postgres(postgres) => postgres.write(op).await,
        };
        self.report_transaction("write", started);
        result.inspect_err(|err| self.write_health.note_failure(err, Instant::now()))
    }

    /// Runs `op`, which writes nothing. Two of its statements may see different states.
    pub(crate) async fn read<T, F>(&self, op: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: for<'t> FnOnce(&'t Tx<'t>) -> BoxFuture<'t, Result<T, StoreError>>,
        F: Clone + Send + 'static,
    {
        let started = Instant::now();
        let op = with_keys(&self.secret_keys, op);
        let result = match &self.engine {
            Engine::Sqlite(sqlite) => sqlite.read(op).await,
            Engine::Postgres(postgres) => postgres.read(op).await,
        };
        self.report_transaction("read", started);
        result
    }

    /// Reports the end of a transaction to the observer, if there is one.
    fn report_transaction(&self, kind: &'static str, started: Instant) {
        let Some(observer) = self.transaction_observer.get() else { return };
        let engine = match &self.engine {
            Engine::Sqlite(_) => "sqlite",
            Engine::Postgres(_) => "postgresql",
        };
        observer(&EndedTransaction { engine, kind, took: started.elapsed() });
    }

    /// Completes pending operations and closes the database.
    pub(crate) async fn shut(&self) {
        self.poll_results.stop().await;
        match &self.engine {
            Engine::Sqlite(sqlite) => sqlite.close().await,
            Engine::Postgres(postgres) => postgres.close(),
        }
    }
}

/// Returns `op` with the keys of encrypted columns, if there are any.
fn with_keys<T, F>(
    keys: &Arc<SecretKeys>,
    op: F,
) -> impl for<'t> FnOnce(&'t Tx<'t>) -> BoxFuture<'t, Result<T, StoreError>> + Clone + Send + 'static
where
    T: Send + 'static,
    F: for<'t> FnOnce(&'t Tx<'t>) -> BoxFuture<'t, Result<T, StoreError>>,
    F: Clone + Send + 'static,
{
    let keys = (!keys.is_empty()).then(|| Arc::clone(keys));
    move |tx| {
        if let Some(keys) = &keys {
            tx.use_keys(keys);
        }
        op(tx)
    }
}

/// Returns an error with its causes, without the cause that an error already prints.
fn reason(err: &(dyn Error + 'static)) -> String {
    let mut text = err.to_string().trim_end().to_owned();
    let mut cause = err.source();
    while let Some(err) = cause {
        let told = err.to_string();
        if !text.ends_with(told.trim_end()) {
            text = format!("{text}: {}", told.trim_end());
        }
        cause = err.source();
    }
    text
}

/// Returns the file that a database URL names: `sqlite:PATH` or just a path; `None` for PostgreSQL.
pub fn sqlite_path(url: &str) -> Option<&Path> {
    if url.starts_with("postgres://") || url.starts_with("postgresql://") {
        return None;
    }
    let path = url.strip_prefix("sqlite:").unwrap_or(url);
    Some(Path::new(path.strip_prefix("//").unwrap_or(path)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_name_a_file_or_a_server() {
        let cases = [
            ("sqlite:feedgate-data/feedgate.db", Some("feedgate-data/feedgate.db")),
            ("sqlite:/var/lib/feedgate.db", Some("/var/lib/feedgate.db")),
            ("sqlite:///var/lib/feedgate.db", Some("/var/lib/feedgate.db")),
            ("feedgate.db", Some("feedgate.db")),
            ("postgres://db/feedgate", None),
            ("postgresql://db/feedgate", None),
        ];
        for (url, want) in cases {
            assert_eq!(sqlite_path(url), want.map(Path::new), "{url}");
        }
    }
}
