//! A connection of a pool, and how statements are sent on it.
//!
//! Preparing a statement takes another round trip, and many statements of an append are used once in
//! minutes. So a statement is sent with the types of its parameters, and not prepared, at its first use on a
//! connection. At its second use it is sent like this again, behind the request that prepares it for
//! the later ones. The statements of workers, which take long to plan and are repeated at once, are
//! prepared at their first use.

use std::collections::HashMap;
use std::sync::Mutex;

use deadpool::managed::{self, Metrics, RecycleResult};
use deadpool_postgres::{ClientWrapper, Manager};
use futures_util::try_join;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Error, RowStream, Statement, Transaction};

use super::row::parameter_type;
use crate::engine::sql::{Columns, Value};
use crate::engine::tx::lock;

/// Opens the connections of a pool.
pub(crate) struct Connections {
    manager: Manager,
    /// The statements that each connection runs first.
    setup: &'static str,
}

/// A pool of connections.
pub(super) type Pool = managed::Pool<Connections>;

/// A connection of a pool.
pub(crate) struct Connection {
    client: ClientWrapper,
    statements: Statements,
}

/// A transaction that is rolled back unless it is committed.
pub(super) struct OpenTransaction<'a> {
    transaction: Transaction<'a>,
    statements: &'a Statements,
}

/// Sends statements on a connection, in the transaction that is open on it, if any.
#[derive(Clone, Copy)]
pub(crate) struct Session<'a> {
    client: &'a Client,
    statements: &'a Statements,
}

/// When a statement that is new to its connection is prepared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PrepareAt {
    /// Before it is used.
    FirstUse,
    /// Together with its second use.
    SecondUse,
}

/// The statements that a connection has sent, by their texts.
#[derive(Default)]
struct Statements {
    known: Mutex<HashMap<Box<str>, StatementState>>,
}

/// What a connection knows of a statement.
enum StatementState {
    Sent,
    Preparing,
    Prepared(Statement),
}

/// How a statement is sent.
enum Use<'a> {
    Unprepared,
    /// Unprepared, behind the request that prepares it.
    PrepareToo(Preparation<'a>),
    /// Prepared, once it is.
    PrepareFirst(Preparation<'a>),
    Prepared(Statement),
}

/// A statement that is being prepared. If this is dropped before it is, the next use prepares it.
struct Preparation<'a> {
    statements: &'a Statements,
    sql: &'a str,
}

impl Connections {
    /// Returns the opener of connections that each run the statements `setup` first.
    pub(super) fn new(manager: Manager, setup: &'static str) -> Connections {
        Connections { manager, setup }
    }
}

impl managed::Manager for Connections {
    type Type = Connection;
    type Error = Error;

    async fn create(&self) -> Result<Connection, Error> {
        let client = self.manager.create().await?;
        client.batch_execute(self.setup).await?;
        Ok(Connection { client, statements: Statements::default() })
    }

    async fn recycle(
        &self,
        connection: &mut Connection,
        metrics: &Metrics,
    ) -> RecycleResult<Error> {
        self.manager.recycle(&mut connection.client, metrics).await
    }

    fn detach(&self, connection: &mut Connection) {
        self.manager.detach(&mut connection.client);
    }
}

impl Connection {
    /// Begins a transaction.
    pub(super) async fn begin(&mut self) -> Result<OpenTransaction<'_>, Error> {
        // The wrapper's own transaction has statements of its own.
        let client: &mut Client = &mut self.client;
        let transaction = client.transaction().await?;
        Ok(OpenTransaction { transaction, statements: &self.statements })
    }

    /// Returns what sends statements, each of which is a transaction of its own.
    pub(super) fn session(&self) -> Session<'_> {
        Session { client: &self.client, statements: &self.statements }
    }

    /// Returns the client, for statements that are sent once.
    pub(super) fn client(&self) -> &Client {
        &self.client
    }
}

impl OpenTransaction<'_> {
    /// Returns what sends the statements of the transaction.
    pub(super) fn session(&self) -> Session<'_> {
        Session { client: self.transaction.client(), statements: self.statements }
    }

    /// Commits the transaction.
    pub(super) async fn commit(self) -> Result<(), Error> {
        self.transaction.commit().await
    }
}

impl Session<'_> {
    /// Returns the rows of a statement, as they arrive.
    pub(crate) async fn query(
        &self,
        sql: &str,
        (params, columns): (&[Value], &Columns<'_>),
        prepare_at: PrepareAt,
    ) -> Result<RowStream, Error> {
        let unprepared = || self.client.query_typed_raw(sql, typed(params, columns));
        let statement = match self.statements.next_use(sql, prepare_at) {
            Use::Unprepared => return unprepared().await,
            Use::PrepareToo(preparation) => {
                // The rows are read only after this has returned, so the answers to the preparation
                // have to arrive before them.
                let (_, rows) = try_join!(preparation.run(self.client), unprepared())?;
                return Ok(rows);
            }
            Use::PrepareFirst(preparation) => preparation.run(self.client).await?,
            Use::Prepared(statement) => statement,
        };
        self.client.query_raw(&statement, values(params, columns).collect::<Vec<_>>()).await
    }

    /// Runs a statement. Returns how many rows it changed.
    pub(crate) async fn execute(
        &self,
        sql: &str,
        (params, columns): (&[Value], &Columns<'_>),
        prepare_at: PrepareAt,
    ) -> Result<u64, Error> {
        let unprepared = async {
            let typed: Vec<_> = typed(params, columns).collect();
            self.client.execute_typed(sql, &typed).await
        };
        let statement = match self.statements.next_use(sql, prepare_at) {
            Use::Unprepared => return unprepared.await,
            Use::PrepareToo(preparation) => {
                let (_, changed) = try_join!(preparation.run(self.client), unprepared)?;
                return Ok(changed);
            }
            Use::PrepareFirst(preparation) => preparation.run(self.client).await?,
            Use::Prepared(statement) => statement,
        };
        self.client.execute_raw(&statement, values(params, columns).collect::<Vec<_>>()).await
    }

    /// Runs statements that take no parameters.
    pub(crate) async fn script(&self, sql: &str) -> Result<(), Error> {
        self.client.batch_execute(sql).await
    }
}

impl Statements {
    /// Records that a statement is used. Returns how it is sent.
    fn next_use<'a>(&'a self, sql: &'a str, prepare_at: PrepareAt) -> Use<'a> {
        let mut known = lock(&self.known);
        let is_first = !known.contains_key(sql);
        let state = match known.get_mut(sql) {
            Some(state) => state,
            None => known.entry(sql.into()).or_insert(StatementState::Sent),
        };
        match state {
            StatementState::Sent if prepare_at == PrepareAt::FirstUse => {
                *state = StatementState::Preparing;
                Use::PrepareFirst(Preparation { statements: self, sql })
            }
            StatementState::Sent if is_first => Use::Unprepared,
            StatementState::Sent => {
                *state = StatementState::Preparing;
                Use::PrepareToo(Preparation { statements: self, sql })
            }
            StatementState::Preparing => Use::Unprepared,
            StatementState::Prepared(statement) => Use::Prepared(statement.clone()),
        }
    }
}

impl Preparation<'_> {
    /// Prepares the statement, and keeps it for later uses.
    async fn run(self, client: &Client) -> Result<Statement, Error> {
        let statement = client.prepare(self.sql).await?;
        if let Some(state) = lock(&self.statements.known).get_mut(self.sql) {
            *state = StatementState::Prepared(statement.clone());
        }
        Ok(statement)
    }
}

impl Drop for Preparation<'_> {
    fn drop(&mut self) {
        if let Some(state @ StatementState::Preparing) =
            lock(&self.statements.known).get_mut(self.sql)
        {
            *state = StatementState::Sent;
        }
    }
}

/// Returns the values of all parameters, in order, with their types.
fn typed<'v>(
    params: &'v [Value],
    columns: &'v Columns<'_>,
) -> impl Iterator<Item = (&'v (dyn ToSql + Sync), Type)> {
    values(params, columns).map(|value| (value as &(dyn ToSql + Sync), parameter_type(value)))
}

/// Returns the values of all parameters, in order.
fn values<'v>(params: &'v [Value], columns: &'v Columns<'_>) -> impl Iterator<Item = &'v Value> {
    params.iter().chain(columns.iter().map(|(_, list)| list))
}
