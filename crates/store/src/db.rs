//! The database of one cell: its engine, and what this node knows of it in memory.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::changes::ping_batcher::PingBatcher;
use crate::clock::clock_moves::ClockMoves;
use crate::clock::known_clock::KnownClock;
use crate::copy::copy_state;
use crate::delivery::account_turns::AccountTurns;
use crate::delivery::held_backlogs::HeldBacklogs;
use crate::delivery::subscription_batcher::SubscriptionBatcher;
use crate::delivery::{intents, reading_lists};
use crate::engine::claims::searched_queue::SearchedQueue;
use crate::engine::envelope::SecretKeys;
use crate::engine::lease::Leases;
use crate::engine::migrate::{self, Migration};
use crate::engine::operation::{self, AnyResult, Operation, OperationContext};
use crate::engine::postgres::{Connector, Postgres};
use crate::engine::sqlite::{Sqlite, WriteSize};
use crate::engine::tx::Tx;
use crate::log::anonymous_documents::AnonymousDocuments;
use crate::log::append_budget::AppendBudget;
use crate::resources::poll_result_batcher::PollResultBatcher;
use crate::resources::upstreams;
use crate::secrets::registered_keys;
use crate::write_health::WriteHealth;
use crate::{OpenPurpose, StoreSettings, sqlite_path};
use crate::{cells, hosts};
use feedgate_core::host_groups::HostGroups;
use feedgate_core::intent::DueIntent;
use feedgate_core::page::PageLimits;
use feedgate_core::ping_forwarding::PingForwarding;
use feedgate_core::reading_list::DueReadingList;
use feedgate_core::served_hosts::ServedHosts;
use feedgate_core::store::{
    DueUpstream, EndedTransaction, StoreError, TransactionObserver, WakeSignals,
};
use feedgate_core::visibility::ListedTopics;

/// The database of one cell.
pub(crate) struct Db {
    pub(crate) engine: Engine,
    pub(crate) wake_signals: WakeSignals,
    pub(crate) poll_results: PollResultBatcher,
    pub(crate) subscriptions: SubscriptionBatcher,
    pub(crate) pings: PingBatcher,
    /// The number of batches of pings so far.
    pub(crate) ping_batches: AtomicU64,
    /// The version of the schema that this program works with.
    pub(crate) schema_version: i64,
    /// By how much the clock of this node was set.
    pub(crate) clock_moves: ClockMoves,
    /// What this node knows of the clock of the database, once it compares its own with it.
    pub(crate) known_clock: OnceLock<Arc<KnownClock>>,
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
    pub(crate) upstream_queue: SearchedQueue<DueUpstream>,
    /// The queue of reading lists, by the account.
    pub(crate) reading_list_queue: SearchedQueue<DueReadingList>,
    /// The keys that secrets are encrypted with.
    pub(crate) secret_keys: Arc<SecretKeys>,
    /// The servers that share a rate limit.
    pub(crate) groups: HostGroups,
    /// The size limits of a page.
    pub(crate) page_limits: PageLimits,
    /// How much may be appended for subscribers.
    pub(crate) append_budget: AppendBudget,
    /// The resources that lists contain.
    pub(crate) listed: ListedTopics,
    /// Limits concurrent appends. On PostgreSQL they use at most half of the connections, so that
    /// claims and results of deliveries do not wait behind them.
    pub(crate) append_permits: Semaphore,
    /// The large documents that are being stored for subscribers without an account.
    pub(crate) anonymous_documents: AnonymousDocuments,
    /// The changes that are forwarded to ping targets.
    pub(crate) forwarding: Arc<PingForwarding>,
    /// Whether the database accepts writes.
    pub(crate) write_health: WriteHealth,
    /// Is called with each transaction that ends.
    pub(crate) transaction_observer: OnceLock<TransactionObserver>,
}

pub(crate) enum Engine {
    Sqlite(Sqlite),
    Postgres(Box<Postgres>),
}

impl Db {
    /// Opens the database that `settings` name, and applies the missing ones of `migrations`.
    pub(crate) async fn open(
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
    pub(crate) fn new(
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
        let clock_moves = ClockMoves::default();
        Arc::new_cyclic(|db| Db {
            engine,
            wake_signals,
            poll_results: PollResultBatcher::start(Weak::clone(db)),
            subscriptions: SubscriptionBatcher::start(Weak::clone(db)),
            pings: PingBatcher::start(Weak::clone(db)),
            ping_batches: AtomicU64::new(0),
            schema_version,
            claims: Leases::new(&clock_moves),
            clock_moves,
            known_clock: OnceLock::new(),
            account_turns: Arc::default(),
            held_backlogs: Arc::default(),
            served_hosts,
            intent_queue: SearchedQueue::new(intents::INTENTS, "host", intents::due_intent),
            upstream_queue: SearchedQueue::new(
                upstreams::UPSTREAMS,
                "host",
                upstreams::due_upstream,
            ),
            reading_list_queue: SearchedQueue::new(
                reading_lists::LISTS,
                reading_lists::OWNER,
                reading_lists::due_list,
            ),
            secret_keys: Arc::new(settings.secret_keys.clone()),
            groups: settings.groups.clone(),
            page_limits: settings.page_limits,
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
    pub(crate) async fn regroup(&self) -> Result<(), StoreError> {
        let groups = self.groups.clone();
        self.write(move |tx| Box::pin(async move { hosts::regroup(tx, &groups).await })).await
    }

    async fn migrate(&self, migrations: Arc<[Migration]>) -> Result<(), StoreError> {
        match &self.engine {
            Engine::Sqlite(sqlite) => {
                let write = |op| sqlite.write(WriteSize::Large, op).boxed();
                operation::run(migrate::prepare, write).await?;
                while operation::run(migrate::apply_next(&migrations), write).await? {}
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
    pub(crate) fn write<T, F>(&self, op: F) -> impl Future<Output = Result<T, StoreError>> + Send
    where
        T: Send + 'static,
        F: for<'t> FnOnce(&'t Tx<'t>) -> BoxFuture<'t, Result<T, StoreError>>,
        F: Clone + Send + 'static,
    {
        self.write_sized(WriteSize::Small, op)
    }

    /// Runs `op` as [`Db::write`] does. On SQLite, a large operation does not share its transaction
    /// with others, which get their turn before the next large one.
    pub(crate) fn write_sized<T, F>(
        &self,
        size: WriteSize,
        op: F,
    ) -> impl Future<Output = Result<T, StoreError>> + Send
    where
        T: Send + 'static,
        F: for<'t> FnOnce(&'t Tx<'t>) -> BoxFuture<'t, Result<T, StoreError>>,
        F: Clone + Send + 'static,
    {
        operation::run(op, move |op| self.run_write(size, op.in_context(self.context())))
    }

    /// Runs `op`, which moves due times or records that they are to be moved, as [`Db::write_sized`] does, whatever
    /// this node knows of the clock.
    pub(crate) fn write_clock<T, F>(
        &self,
        size: WriteSize,
        op: F,
    ) -> impl Future<Output = Result<T, StoreError>> + Send
    where
        T: Send + 'static,
        F: for<'t> FnOnce(&'t Tx<'t>) -> BoxFuture<'t, Result<T, StoreError>>,
        F: Clone + Send + 'static,
    {
        let context = OperationContext { known_clock: None, ..self.context() };
        operation::run(op, move |op| self.run_write(size, op.in_context(context)))
    }

    /// Runs `op`, which writes nothing. Two of its statements may see different states.
    pub(crate) fn read<T, F>(&self, op: F) -> impl Future<Output = Result<T, StoreError>> + Send
    where
        T: Send + 'static,
        F: for<'t> FnOnce(&'t Tx<'t>) -> BoxFuture<'t, Result<T, StoreError>>,
        F: Clone + Send + 'static,
    {
        operation::run(op, move |op| self.run_read(op.in_context(self.context()), None))
    }

    /// Runs `op` as [`Db::read`] does. If it takes longer than `limit` on PostgreSQL, it fails, and its
    /// connection is closed, which may hang.
    pub(crate) fn read_within<T, F>(
        &self,
        limit: Duration,
        op: F,
    ) -> impl Future<Output = Result<T, StoreError>> + Send
    where
        T: Send + 'static,
        F: for<'t> FnOnce(&'t Tx<'t>) -> BoxFuture<'t, Result<T, StoreError>>,
        F: Clone + Send + 'static,
    {
        operation::run(op, move |op| self.run_read(op.in_context(self.context()), Some(limit)))
    }

    fn run_write(&self, size: WriteSize, op: Operation) -> BoxFuture<'_, AnyResult> {
        Box::pin(async move {
            let started = Instant::now();
            let result = match &self.engine {
                Engine::Sqlite(sqlite) => sqlite.write(size, op).await,
                Engine::Postgres(postgres) => postgres.write(op).await,
            };
            self.report_transaction("write", started);
            result.inspect_err(|err| self.write_health.note_failure(err, Instant::now()))
        })
    }

    fn run_read(&self, op: Operation, limit: Option<Duration>) -> BoxFuture<'_, AnyResult> {
        Box::pin(async move {
            let started = Instant::now();
            let result = match &self.engine {
                Engine::Sqlite(sqlite) => sqlite.read(op).await,
                Engine::Postgres(postgres) => postgres.read(op, limit).await,
            };
            self.report_transaction("read", started);
            result
        })
    }

    /// Returns what the statements of an operation are run with that begins now.
    fn context(&self) -> OperationContext {
        let keys = (!self.secret_keys.is_empty()).then(|| Arc::clone(&self.secret_keys));
        let clock = (self.clock_moves.clone(), self.clock_moves.stamp());
        OperationContext { keys, clock, known_clock: self.known_clock.get().cloned() }
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
