//! PostgreSQL: a pool of connections, one more that listens, and one while the schema is migrated.
//!
//! Rules of this module:
//!
//! * An operation is one transaction at the level "read committed". A transaction that changes rows
//!   that others may change too locks the resource's row first, and several resources in the order
//!   of their numbers, so that no transactions wait in a ring.
//! * A transaction that the server ends because of another one (a deadlock, a serialization
//!   failure), or that loses its connection before it commits, is repeated here, a bounded number
//!   of times, and nowhere else.
//! * Statements are prepared once per connection.
//! * The connection uses TLS, and the server's certificate is checked, if the URL contains
//!   `sslmode=require`.

mod listen;
mod migration;
mod retry;
pub(crate) mod row;
mod schema_lock;
mod tls;

use crate::engine::error::store_error;
use std::any::Any;
use std::error::Error;
use std::time::Duration;

use deadpool_postgres::{
    Client, Hook, HookError, Manager, ManagerConfig, Pool, QueueMode, RecyclingMethod, Runtime,
};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres::{Config, NoTls};

use self::retry::FailedTransaction;
use crate::OpenPurpose;
use crate::clock::known_clock;
use crate::engine::operation::{AnyResult, Operation};
use crate::engine::tx::{Conn, Tx, Wake};
use feedgate_core::store::{StoreError, WakeSignals};

pub(crate) use self::migration::Migrating;
pub(crate) use self::schema_lock::SchemaLock;

/// How long an operation waits for a connection, free or new.
const WAIT: Duration = Duration::from_secs(10);
/// How long a server that sends nothing is assumed to be alive.
const SILENCE: Duration = Duration::from_secs(30);
/// The limits of a session: no statement of this program takes a minute, and a node that is cut off
/// must not keep its locks for longer.
const SESSION: &str = "
    set statement_timeout = '60s';
    set idle_in_transaction_session_timeout = '60s'";

/// A session in which every time limit that this server knows is turned off.
const NO_TIME_LIMITS: &str = "
    select set_config(name, '0', false)
      from pg_settings
     where name in ('statement_timeout', 'lock_timeout', 'transaction_timeout',
                    'idle_in_transaction_session_timeout', 'idle_session_timeout')";

/// The connection pool of a server, and the signals that its transactions send.
pub(crate) struct Postgres {
    connector: Connector,
    pool: Pool,
    /// The schema that its connections work in.
    schema: String,
    wake_signals: WakeSignals,
    listening: Option<JoinHandle<()>>,
}

/// The settings that are needed to connect to the server.
#[derive(Clone)]
pub(crate) struct Connector {
    config: Config,
    tls: Option<tls::Tls>,
    /// What the connections of a pool run first.
    session: &'static str,
}

impl Connector {
    /// Reads the settings from a URL.
    pub(crate) fn new(url: &str) -> Result<Connector, StoreError> {
        let mut config: Config = url.parse().map_err(store_error)?;
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(WAIT);
        }
        if config.get_application_name().is_none() {
            config.application_name("feedgate");
        }
        config.keepalives_idle(SILENCE).tcp_user_timeout(SILENCE);
        let tls = match config.get_ssl_mode() {
            SslMode::Require => Some(tls::trusting()?),
            _ => None,
        };
        Ok(Connector { config, tls, session: SESSION })
    }

    /// Returns the settings of connections that work in `schema`.
    pub(crate) fn in_schema(&self, schema: &str) -> Connector {
        let mut connector = self.clone();
        let options = self.config.get_options().unwrap_or_default();
        // The last setting of the search path counts.
        connector.config.options(format!("{options} -c search_path={schema}"));
        connector
    }

    /// Returns the settings of connections for this purpose: counting the rows of a large table
    /// for a copy takes longer than any statement of a gateway.
    pub(crate) fn for_purpose(self, purpose: OpenPurpose) -> Connector {
        let session = match purpose {
            OpenPurpose::Gateway => SESSION,
            OpenPurpose::Copy => NO_TIME_LIMITS,
        };
        Connector { session, ..self }
    }

    /// Returns a pool of up to `connections`, each of which runs `session` first.
    fn pool(&self, connections: usize, session: &'static str) -> Result<Pool, StoreError> {
        let recycling = ManagerConfig { recycling_method: RecyclingMethod::Fast };
        let manager = match self.tls.clone() {
            Some(tls) => Manager::from_config(self.config.clone(), tls, recycling),
            None => Manager::from_config(self.config.clone(), NoTls, recycling),
        };
        let pool = Pool::builder(manager).max_size(connections).runtime(Runtime::Tokio1);
        // The connection that was used last has the plans of the statements that are used now.
        let pool = pool.queue_mode(QueueMode::Lifo);
        let pool = pool.wait_timeout(Some(WAIT)).create_timeout(Some(WAIT));
        let begin = Hook::async_fn(move |client: &mut deadpool_postgres::ClientWrapper, _| {
            Box::pin(async move { client.batch_execute(session).await.map_err(HookError::Backend) })
        });
        let pool = pool.post_create(begin).build();
        pool.map_err(|err| StoreError::Database(Box::new(err)))
    }
}

impl Postgres {
    /// Connects to the server, with up to `connections` at once.
    pub(crate) async fn open(
        connector: Connector,
        connections: usize,
        wake_signals: WakeSignals,
    ) -> Result<Postgres, StoreError> {
        const SCHEMA: &str = "select coalesce(current_schema()::text, '')";
        let pool = connector.pool(connections, connector.session)?;
        // A missing server is reported now and not by the first operation.
        let client = pool.get().await.map_err(store_error)?;
        let schema = client.query_one(SCHEMA, &[]).await.map_err(store_error)?.get(0);
        drop(client);
        Ok(Postgres { connector, pool, schema, wake_signals, listening: None })
    }

    /// Returns the schema that the connections work in.
    pub(crate) fn schema(&self) -> &str {
        &self.schema
    }

    /// Wakes the workers of this node from now on when a node commits work in one of `schemas`.
    /// Fails if the database is being copied.
    pub(crate) async fn listen(&mut self, schemas: Vec<String>) -> Result<(), StoreError> {
        let (config, tls) = (self.connector.config.clone(), self.connector.tls.clone());
        let (joined, is_joined) = oneshot::channel();
        let listening = listen::listen(config, tls, schemas, self.wake_signals.clone(), joined);
        self.listening = Some(tokio::spawn(listening));
        is_joined.await.unwrap_or(Ok(()))
    }

    /// Opens the connection that migrates the schema, once no other node does.
    pub(crate) async fn begin_migrating(&self) -> Result<Migrating, StoreError> {
        Migrating::begin(&self.connector).await
    }

    /// Runs `op` in a transaction, all or nothing. A copy of it runs again if the transaction
    /// ended in a deadlock, a serialization failure, or with its connection, or if the clock of this
    /// node was set meanwhile, or was to be set.
    pub(crate) async fn write(&self, op: Operation) -> AnyResult {
        let mut attempt = 1;
        loop {
            match self.try_write(op.clone()).await {
                Ok(done) => return Ok(done),
                Err(failed) => failed.wait_for_retry(attempt).await?,
            }
            attempt += 1;
        }
    }

    /// Runs `op` in a transaction, once.
    async fn try_write(&self, op: Operation) -> Result<Box<dyn Any + Send>, FailedTransaction> {
        let known_clock = op.known_clock();
        let mut client = self.pool.get().await.map_err(store_error)?;
        let transaction = client.transaction().await.map_err(store_error)?;
        let (done, woken) = {
            let tx = Tx::new(Conn::Transaction(&transaction));
            let done = op.run(&tx).await?;
            let doubted = known_clock.and_then(|known| known.doubted_generation());
            let is_of_another_time = match doubted {
                None => false,
                Some(generation) => known_clock::was_set_since(&tx, generation).await?,
            };
            if tx.was_clock_set_meanwhile() || is_of_another_time {
                return Err(FailedTransaction::of_another_time());
            }
            (done, tx.woken())
        };
        transaction.commit().await.map_err(|err| FailedTransaction::at_commit(store_error(err)))?;
        let woken: Vec<Wake> = woken.collect();
        if !woken.is_empty() {
            woken.iter().for_each(|whom| whom.notify(&self.wake_signals));
            signal_nodes(&client, &woken).await;
        }
        Ok(done)
    }

    /// Runs `op`, which only reads. A copy of it runs again if its connection was lost. If it takes longer
    /// than `limit`, it fails, and its connection is closed.
    pub(crate) async fn read(&self, op: Operation, limit: Option<Duration>) -> AnyResult {
        let mut attempt = 1;
        loop {
            match self.try_read(op.clone(), limit).await {
                Ok(done) => return Ok(done),
                Err(err) => FailedTransaction::from(err).wait_for_retry(attempt).await?,
            }
            attempt += 1;
        }
    }

    /// Runs `op`, which only reads, once.
    async fn try_read(&self, op: Operation, limit: Option<Duration>) -> AnyResult {
        let client = self.pool.get().await.map_err(store_error)?;
        let done = {
            let tx = Tx::new(Conn::Client(&client));
            let Some(limit) = limit else { return op.run(&tx).await };
            timeout(limit, op.run(&tx)).await
        };
        done.unwrap_or_else(|_| {
            drop(Client::take(client));
            Err(StoreError::Database("the database took too long to answer".into()))
        })
    }

    /// Closes the pool; connections in use end with their operations.
    pub(crate) fn close(&self) {
        self.pool.close();
        if let Some(listening) = &self.listening {
            listening.abort();
        }
    }
}

/// Sends signals to all nodes. A transaction with a notification holds a lock of the whole database
/// until its commit is on the disk, and others with one wait for it; so signals are sent
/// in a transaction of their own, which writes nothing and does not wait for the disk. If one is lost,
/// the other nodes find the work at their next check.
async fn signal_nodes(client: &deadpool_postgres::Client, woken: &[Wake]) {
    // Channels belong to the database; the name of the schema distinguishes gateways in it.
    const SIGNAL: &str = "
        select pg_notify('feedgate', current_schema() || ' ' || word)
          from unnest(cast($1 as text[])) as word";
    let words: Vec<&str> = woken.iter().map(|whom| whom.as_str()).collect();
    let sent = async {
        let statement = client.prepare_cached(SIGNAL).await?;
        client.execute(&statement, &[&words]).await
    };
    if let Err(err) = sent.await {
        tracing::warn!(
            error = &err as &dyn Error,
            "waking other nodes failed; they find the new work at their next check"
        );
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.close();
    }
}

/// Returns where the server of this URL is: host and port, without secrets.
pub(crate) fn place(url: &str) -> String {
    let Ok(config) = url.parse::<Config>() else { return "of PostgreSQL".to_owned() };
    let hosts = config.get_hosts().iter().map(|host| match host {
        Host::Tcp(name) => name.clone(),
        Host::Unix(path) => path.display().to_string(),
    });
    let ports = config.get_ports();
    // A single port is for all hosts; without a port the default of PostgreSQL applies.
    let port = |n: usize| ports.get(n).or(ports.first()).copied().unwrap_or(5432);
    let places = hosts.enumerate().map(|(n, host)| format!("{host}:{}", port(n)));
    format!("at {}", places.collect::<Vec<_>>().join(", "))
}
