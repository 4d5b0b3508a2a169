//! One transaction in either database, as the statements see it.
//!
//! An operation is written once against [`Tx`]. On SQLite it runs on the writer's thread (or a
//! reader's) and none of its awaits ever waits; on PostgreSQL it runs on a connection of the pool.
//! Joined futures send their statements together. PostgreSQL may run them in any order, so a statement
//! that others depend on is awaited first.

use crate::clock::clock_moves::{ClockMoves, ClockStamp};
use crate::engine::envelope::{RowIdentity, SecretKeys};
use crate::engine::error::store_error;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use chrono::{DateTime, Utc};
use futures_util::TryStreamExt;
use tokio_postgres::types::ToSql;

use crate::engine::lease::ClaimLease;
use crate::engine::postgres::row::PostgresRow;
use crate::engine::row::Row;
use crate::engine::sql::{self, Columns, Value};
use crate::engine::sqlite::statement as sqlite;
use feedgate_core::store::{StoreError, WakeSignals};

/// The target under which every statement is logged at the level `trace`, with the fields `template`
/// (the text in the source), `sqlite` and `postgres`.
pub const STATEMENT_TARGET: &str = "feedgate_store::statements";

/// A transaction, or a connection without one.
pub(crate) struct Tx<'a> {
    conn: Conn<'a>,
    woken: AtomicU8,
    /// The keys of encrypted columns; unset if there are none.
    keys: OnceLock<Arc<SecretKeys>>,
    clock: OnceLock<TxClock>,
    /// How many more statements may change rows.
    statements_left: AtomicU32,
    has_too_many_statements: AtomicBool,
}

/// The clock of this node, as a transaction knows it.
struct TxClock {
    /// How it is set.
    moves: ClockMoves,
    /// The clock by which the caller of the operation read its times.
    of_caller: ClockStamp,
    /// The clock when the transaction began.
    at_begin: ClockStamp,
}

/// A connection of either database.
pub(crate) enum Conn<'a> {
    /// A connection of SQLite. The lock is never contended, because the operation owns the
    /// connection; it makes the connection usable in a future that is `Send`.
    Sqlite(&'a Mutex<rusqlite::Connection>),
    /// A connection of PostgreSQL, on which each statement is a transaction of its own.
    Client(&'a deadpool_postgres::Client),
    /// A transaction of PostgreSQL.
    Transaction(&'a deadpool_postgres::Transaction<'a>),
}

/// The workers that a transaction wakes once it is committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wake {
    /// The workers that poll.
    Resources = 1,
    /// The workers that deliver.
    Subscriptions = 2,
    /// The workers that verify.
    Intents = 4,
    /// The workers that collect.
    Collections = 8,
    /// The worker that completes fan-outs.
    FanOuts = 16,
}

impl Wake {
    /// All kinds of workers.
    pub(crate) const ALL: [Wake; 5] =
        [Wake::Resources, Wake::Subscriptions, Wake::Intents, Wake::Collections, Wake::FanOuts];

    /// Returns the word that nodes send to each other.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Wake::Resources => "resources",
            Wake::Subscriptions => "subscriptions",
            Wake::Intents => "intents",
            Wake::Collections => "collections",
            Wake::FanOuts => "fan_outs",
        }
    }

    /// Wakes the waiting workers of this node.
    pub(crate) fn notify(self, wake_signals: &WakeSignals) {
        match self {
            Wake::Resources => wake_signals.resources.notify_waiters(),
            Wake::Subscriptions => {
                wake_signals.subscription_signals.fetch_add(1, Ordering::Release);
                wake_signals.subscriptions.notify_waiters();
                wake_signals.logs.notify_waiters();
            }
            Wake::Intents => wake_signals.intents.notify_waiters(),
            Wake::Collections => wake_signals.collections.notify_waiters(),
            Wake::FanOuts => wake_signals.fan_outs.notify_waiters(),
        }
    }
}

impl<'a> Tx<'a> {
    pub(crate) fn new(conn: Conn<'a>) -> Tx<'a> {
        Tx {
            conn,
            woken: AtomicU8::new(0),
            keys: OnceLock::new(),
            clock: OnceLock::new(),
            statements_left: AtomicU32::new(u32::MAX),
            has_too_many_statements: AtomicBool::new(false),
        }
    }

    /// Limits how many statements may change rows; further ones fail. On SQLite, one for all
    /// `{rows}` counts once for each row.
    pub(crate) fn with_most_statements(mut self, most: Option<u32>) -> Tx<'a> {
        self.statements_left = AtomicU32::new(most.unwrap_or(u32::MAX));
        self
    }

    /// Returns whether a statement failed because there were too many.
    pub(crate) fn has_too_many_statements(&self) -> bool {
        self.has_too_many_statements.load(Ordering::Relaxed)
    }

    fn count_statements(&self, columns: &Columns<'_>) -> Result<(), StoreError> {
        let count = columns.first().map_or(1, |(_, list)| list.len());
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        let left = self.statements_left.load(Ordering::Relaxed);
        if left == u32::MAX {
            return Ok(());
        }
        self.statements_left.store(left.saturating_sub(count), Ordering::Relaxed);
        if count > left {
            self.has_too_many_statements.store(true, Ordering::Relaxed);
            return Err(StoreError::Database("too many statements in a shared transaction".into()));
        }
        Ok(())
    }

    /// Encrypts the secrets that the transaction stores, and opens those that it reads.
    pub(crate) fn use_keys(&self, keys: &Arc<SecretKeys>) {
        self.keys.get_or_init(|| Arc::clone(keys));
    }

    /// Sets the clock by which the caller of the operation has read its times.
    pub(crate) fn use_clock(&self, moves: &ClockMoves, stamp: ClockStamp) {
        let at_begin = moves.stamp();
        self.clock.get_or_init(|| TxClock { moves: moves.clone(), of_caller: stamp, at_begin });
    }

    /// Returns a due time that the caller of the operation has computed, by the clock of now. It is called
    /// once for each, where the time is stored or compared with stored ones, after the rows are locked.
    pub(crate) fn at(&self, at: DateTime<Utc>) -> DateTime<Utc> {
        self.clock.get().map_or(at, |clock| at + clock.moves.since(clock.of_caller))
    }

    /// Returns whether the clock was set since this lease began. Then nothing is claimed: a claim that ends by the
    /// time before would last for hours if its node dies.
    pub(crate) fn has_clock_moved(&self, lease: &ClaimLease) -> bool {
        self.clock.get().is_some_and(|clock| clock.moves.stamp() != lease.clock)
    }

    /// Returns whether the clock was set since the transaction began. What it wrote while it waited for a lock
    /// may be by the time before, in rows that have been moved already.
    pub(crate) fn was_clock_set_meanwhile(&self) -> bool {
        self.clock.get().is_some_and(|clock| clock.moves.stamp() != clock.at_begin)
    }

    /// Returns the text that is stored for a secret. `column` is `TABLE.COLUMN`, and `row` identifies
    /// the row.
    pub(crate) fn seal(
        &self,
        column: &'static str,
        row: &RowIdentity,
        secret: Option<&str>,
    ) -> Result<Option<String>, StoreError> {
        let Some(secret) = secret else { return Ok(None) };
        let sealed = match self.keys.get() {
            Some(keys) => keys.seal(column, row, secret),
            None => SecretKeys::default().seal(column, row, secret),
        };
        sealed.map(Some)
    }

    /// Returns the rows of a statement.
    pub(crate) async fn query(&self, sql: &str, params: &[Value]) -> Result<Vec<Row>, StoreError> {
        self.query_rows(sql, params, &[]).await
    }

    /// Returns the first row of a statement.
    pub(crate) async fn first(
        &self,
        sql: &str,
        params: &[Value],
    ) -> Result<Option<Row>, StoreError> {
        Ok(self.query(sql, params).await?.into_iter().next())
    }

    /// Runs a statement. Returns how many rows it changed.
    pub(crate) async fn execute(&self, sql: &str, params: &[Value]) -> Result<u64, StoreError> {
        self.execute_rows(sql, params, &[]).await
    }

    /// Returns the rows of a statement for all `{rows}`; `columns` take the numbers after `params`.
    pub(crate) async fn query_rows(
        &self,
        sql: &str,
        params: &[Value],
        columns: &Columns<'_>,
    ) -> Result<Vec<Row>, StoreError> {
        let mut rows = Vec::new();
        self.visit_rows(sql, params, columns, |row| rows.push(row)).await?;
        Ok(rows)
    }

    /// Passes the rows of a statement for all `{rows}` to `visit`, each as it arrives, so that the caller
    /// need not hold all of them in memory.
    pub(crate) async fn visit_rows(
        &self,
        sql: &str,
        params: &[Value],
        columns: &Columns<'_>,
        mut visit: impl FnMut(Row) + Send,
    ) -> Result<(), StoreError> {
        trace_statement(sql, params, columns);
        if columns.first().is_some_and(|(_, list)| list.len() == 0) {
            return Ok(());
        }
        let text = || sql::postgres(sql, params.len() + 1, columns);
        let found = match self.conn {
            Conn::Sqlite(conn) => {
                let visit = |row| visit(self.with_keys(row));
                return sqlite::query(&lock(conn), sql, params, columns, visit);
            }
            Conn::Client(client) => {
                let statement = client.prepare_cached(&text()).await.map_err(store_error)?;
                client.query_raw(&statement, bind(params, columns)).await
            }
            Conn::Transaction(transaction) => {
                let statement = transaction.prepare_cached(&text()).await.map_err(store_error)?;
                transaction.query_raw(&statement, bind(params, columns)).await
            }
        };
        let mut found = pin!(found.map_err(store_error)?);
        while let Some(row) = found.try_next().await.map_err(store_error)? {
            visit(self.with_keys(PostgresRow::from(row).into()));
        }
        Ok(())
    }

    fn with_keys(&self, row: Row) -> Row {
        row.with_keys(self.keys.get().cloned())
    }

    /// Runs a statement for all `{rows}`. Returns how many rows it changed.
    pub(crate) async fn execute_rows(
        &self,
        sql: &str,
        params: &[Value],
        columns: &Columns<'_>,
    ) -> Result<u64, StoreError> {
        trace_statement(sql, params, columns);
        if columns.first().is_some_and(|(_, list)| list.len() == 0) {
            return Ok(0);
        }
        let text = || sql::postgres(sql, params.len() + 1, columns);
        Ok(match self.conn {
            Conn::Sqlite(conn) => {
                self.count_statements(columns)?;
                sqlite::execute(&lock(conn), sql, params, columns)?
            }
            Conn::Client(client) => {
                let statement = client.prepare_cached(&text()).await.map_err(store_error)?;
                client.execute(&statement, &bind(params, columns)).await.map_err(store_error)?
            }
            Conn::Transaction(transaction) => {
                let statement = transaction.prepare_cached(&text()).await.map_err(store_error)?;
                transaction
                    .execute(&statement, &bind(params, columns))
                    .await
                    .map_err(store_error)?
            }
        })
    }

    /// Runs statements that take no parameters. PostgreSQL gets them one by one by its simple
    /// protocol: servers that pass statements on to others, such as Citus, refuse to prepare
    /// several at once.
    pub(crate) async fn script(&self, sql: &str) -> Result<(), StoreError> {
        match self.conn {
            Conn::Sqlite(conn) => {
                lock(conn).execute_batch(&sql::sqlite(sql, 1, &[])).map_err(store_error)?;
            }
            Conn::Client(client) => {
                for statement in sql::statements(&sql::postgres(sql, 1, &[])) {
                    client.batch_execute(&statement).await.map_err(store_error)?;
                }
            }
            Conn::Transaction(transaction) => {
                for statement in sql::statements(&sql::postgres(sql, 1, &[])) {
                    transaction.batch_execute(&statement).await.map_err(store_error)?;
                }
            }
        }
        Ok(())
    }

    /// Makes PostgreSQL look up joined rows by their keys, until the end of this transaction or
    /// [`Tx::plan_as_usual`]. A prepared statement keeps its plan, and a plan that was made while the
    /// queue was empty would read the whole table when the queue is full. Generic plans also save the
    /// five times that each connection would plan a statement first; Citus refuses them. Has no effect on
    /// SQLite.
    ///
    /// A statement that joins `{rows}` to several tables must not filter one of them by another
    /// condition: PostgreSQL may take it for selective and begin there. Such conditions are checked after
    /// reading, or hidden from the planner in a sum.
    pub(crate) async fn join_by_keys(&self) -> Result<(), StoreError> {
        // A single prepared statement takes a fifth of the time of six `set local` statements.
        const JOIN_BY_KEYS: &str = "
            select set_config('enable_hashjoin', 'off', true),
                   set_config('enable_mergejoin', 'off', true),
                   set_config('enable_seqscan', 'off', true),
                   set_config('enable_bitmapscan', 'off', true),
                   set_config('jit', 'off', true),
                   case when current_setting('citus.shard_count', true) is null
                        then set_config('plan_cache_mode', 'force_generic_plan', true) end";
        match self.conn {
            Conn::Transaction(transaction) => {
                let statement = transaction.prepare_cached(JOIN_BY_KEYS).await;
                let statement = statement.map_err(store_error)?;
                transaction.query(&statement, &[]).await.map(drop).map_err(store_error)
            }
            Conn::Sqlite(_) | Conn::Client(_) => Ok(()),
        }
    }

    /// Ends what [`Tx::join_by_keys`] began.
    pub(crate) async fn plan_as_usual(&self) -> Result<(), StoreError> {
        const PLAN_AS_USUAL: &str = "
            set local enable_hashjoin to default;
            set local enable_mergejoin to default;
            set local enable_seqscan to default;
            set local enable_bitmapscan to default;
            set local jit to default;
            set local plan_cache_mode to default";
        match self.conn {
            Conn::Transaction(transaction) => {
                transaction.batch_execute(PLAN_AS_USUAL).await.map_err(store_error)
            }
            Conn::Sqlite(_) | Conn::Client(_) => Ok(()),
        }
    }

    /// Returns whether other nodes may use the same database.
    pub(crate) fn is_shared(&self) -> bool {
        !matches!(self.conn, Conn::Sqlite(_))
    }

    /// Wakes workers, on every node, once this transaction is committed.
    pub(crate) fn wake(&self, whom: Wake) {
        self.woken.fetch_or(whom as u8, Ordering::Relaxed);
    }

    /// Returns the workers that the transaction wakes.
    pub(crate) fn woken(&self) -> impl Iterator<Item = Wake> + use<> {
        let woken = self.woken.load(Ordering::Relaxed);
        Wake::ALL.into_iter().filter(move |whom| woken & *whom as u8 != 0)
    }
}

/// Logs the text of a statement for both databases, without its parameters. Costs nothing unless the
/// level of [`STATEMENT_TARGET`] is `trace`.
fn trace_statement(sql: &str, params: &[Value], columns: &Columns<'_>) {
    let first = params.len() + 1;
    tracing::trace!(
        target: STATEMENT_TARGET,
        template = sql,
        sqlite = sql::sqlite(sql, first, columns),
        postgres = sql::postgres(sql, first, columns),
    );
}

fn bind<'v>(params: &'v [Value], columns: &'v Columns<'_>) -> Vec<&'v (dyn ToSql + Sync)> {
    let columns = columns.iter().map(|(_, list)| list);
    params.iter().chain(columns).map(|value| value as &(dyn ToSql + Sync)).collect()
}

/// Locks a mutex and ignores poisoning: a panic leaves a connection intact, and the transaction in
/// which it happened is rolled back.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
