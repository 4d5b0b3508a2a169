//! The lock of a schema: shared by the nodes that use the gateway in it, exclusive for a copy of it.
//!
//! The lock belongs to a connection, so that it ends with the process that holds it, however that
//! process ends. Several gateways in one database have schemas, and therefore locks, of their own.

use std::time::Duration;

use deadpool_postgres::{ClientWrapper, Object};
use tokio::time::Instant;
use tokio_postgres::Client;

use super::{Connector, NO_TIME_LIMITS};
use crate::engine::error::store_error;
use feedgate_core::store::StoreError;

/// The class of these locks: "feed" in ASCII. The lock within it is a hash of the schema.
const CLASS: i32 = 0x6665_6564;
const TRY_SHARE: &str = "select pg_try_advisory_lock_shared($1, hashtext(current_schema()::text))";
const UNLOCK: &str = "select pg_advisory_unlock($1, hashtext(current_schema()::text))";
const TRY_LOCK: &str = "select pg_try_advisory_lock($1, hashtext(current_schema()::text))";
/// How long to wait for a node that was stopped a moment ago: the server ends its session only
/// after it has noticed that the connection is closed.
const PATIENCE: Duration = Duration::from_secs(5);
/// The interval between two attempts.
const RETRY: Duration = Duration::from_millis(100);

/// Shares the lock of the client's schema. Returns `false` if somebody has it exclusively.
pub(super) async fn try_share(client: &Client) -> Result<bool, StoreError> {
    let row = client.query_one(TRY_SHARE, &[&CLASS]).await.map_err(store_error)?;
    row.try_get(0).map_err(store_error)
}

/// A connection that has the lock exclusively. Both end when it is dropped.
pub(crate) struct SchemaLock {
    client: ClientWrapper,
}

impl SchemaLock {
    /// Locks the schema that `connector` works in; `None` if a node uses it.
    pub(crate) async fn acquire(connector: &Connector) -> Result<Option<SchemaLock>, StoreError> {
        let pool = connector.pool(1, NO_TIME_LIMITS)?;
        let client = Object::take(pool.get().await.map_err(store_error)?);
        let until = Instant::now() + PATIENCE;
        loop {
            let row = client.query_one(TRY_LOCK, &[&CLASS]).await.map_err(store_error)?;
            if row.try_get(0).map_err(store_error)? {
                return Ok(Some(SchemaLock { client }));
            }
            if Instant::now() >= until {
                return Ok(None);
            }
            tokio::time::sleep(RETRY).await;
        }
    }

    /// Releases the lock now. The server ends the session of a dropped connection a moment later,
    /// when a node may have tried to start.
    pub(crate) async fn release(&self) {
        if let Err(error) = self.client.query_one(UNLOCK, &[&CLASS]).await {
            tracing::debug!(%error, "a lock was not released; it ends with its connection");
        }
    }

    /// Returns whether the connection is still there, and so the lock.
    pub(crate) fn is_held(&self) -> bool {
        !self.client.is_closed()
    }
}
