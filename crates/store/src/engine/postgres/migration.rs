//! The connection that migrates the schema, and keeps other nodes from doing so meanwhile.
//!
//! The connection is not one of the pool: migrations may take hours, so no time limit applies to
//! it, neither the pool's nor one that the server or the URL sets. The lock belongs to the
//! connection and not to a transaction, and the migrations run on the same connection: the lock can
//! neither outlive the node that took it nor be lost while that node still migrates.

use std::time::Duration;

use deadpool_postgres::{ClientWrapper, Object};
use futures_util::future::BoxFuture;

use super::{Connector, NO_TIME_LIMITS};
use crate::engine::error::store_error;
use crate::engine::tx::{Conn, Tx};
use feedgate_core::store::StoreError;

/// A number that no other program sharing the database uses: "feedgate" in ASCII.
const LOCK: i64 = 0x6665_6564_6761_7465;
/// Takes the lock if it is free. Waiting inside the server would keep a snapshot open, which keeps
/// deleted rows from being cleaned up and some ways of creating an index from ending.
const TRY_LOCK: &str = "select pg_try_advisory_lock($1)";
/// The interval at which a waiting node tries again, and thus the longest delay that it adds to the
/// start of that node.
const LOCK_RETRY: Duration = Duration::from_millis(200);

/// A connection that owns the lock. Both end when it is dropped.
pub(crate) struct Migrating {
    client: ClientWrapper,
}

impl Migrating {
    /// Connects, and waits until no other node migrates.
    pub(crate) async fn begin(connector: &Connector) -> Result<Migrating, StoreError> {
        let pool = connector.pool(1, NO_TIME_LIMITS)?;
        let client = Object::take(pool.get().await.map_err(store_error)?);
        let mut is_waiting = false;
        while !try_lock(&client).await.map_err(store_error)? {
            if !is_waiting {
                tracing::info!("waiting for another node to finish migrating the database schema");
            }
            is_waiting = true;
            tokio::time::sleep(LOCK_RETRY).await;
        }
        Ok(Migrating { client })
    }

    /// Works in `schema` from now on, which is created if it does not exist.
    pub(crate) async fn enter(&self, schema: &str) -> Result<(), StoreError> {
        let enter = [
            // With Citus, each such schema lies on one server as a whole. Without it, this setting
            // has no meaning.
            "set citus.enable_schema_based_sharding to on".to_owned(),
            format!("create schema if not exists {schema}"),
            "reset citus.enable_schema_based_sharding".to_owned(),
            format!("set search_path to {schema}"),
        ];
        for statement in enter {
            self.client.batch_execute(&statement).await.map_err(store_error)?;
        }
        Ok(())
    }

    /// Runs `op` in a transaction, which changes nothing if it fails.
    pub(crate) async fn write<T, F>(&mut self, op: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: for<'t> FnOnce(&'t Tx<'t>) -> BoxFuture<'t, Result<T, StoreError>> + Send + 'static,
    {
        let transaction = self.client.transaction().await.map_err(store_error)?;
        let done = op(&Tx::new(Conn::Transaction(&transaction))).await?;
        transaction.commit().await.map_err(store_error)?;
        Ok(done)
    }
}

async fn try_lock(client: &ClientWrapper) -> Result<bool, tokio_postgres::Error> {
    client.query_one(TRY_LOCK, &[&LOCK]).await?.try_get(0)
}
