//! The connections that read: each is borrowed by one operation at a time.

use std::sync::{Arc, Mutex};

use rusqlite::Connection;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::engine::tx::lock;
use feedgate_core::ports::StoreError;

/// The reading connections.
pub(super) struct SqliteReaders {
    idle: Arc<Mutex<Vec<Arc<Mutex<Connection>>>>>,
    /// One permit for each idle connection.
    free: Arc<Semaphore>,
    number: u32,
}

/// A borrowed connection, which is returned when this is dropped, even by a panic.
pub(super) struct SqliteReader {
    pub(super) conn: Arc<Mutex<Connection>>,
    home: Arc<Mutex<Vec<Arc<Mutex<Connection>>>>>,
    /// The permit is released after the connection is back.
    _permit: OwnedSemaphorePermit,
}

impl SqliteReaders {
    pub(super) fn new(conns: Vec<Connection>) -> SqliteReaders {
        let idle: Vec<_> = conns.into_iter().map(|conn| Arc::new(Mutex::new(conn))).collect();
        let number = idle.len() as u32;
        let free = Arc::new(Semaphore::new(idle.len()));
        SqliteReaders { idle: Arc::new(Mutex::new(idle)), free, number }
    }

    /// Waits for an idle connection.
    pub(super) async fn borrow(&self) -> Result<SqliteReader, StoreError> {
        let permit = Arc::clone(&self.free).acquire_owned().await;
        let permit = permit.map_err(|_| StoreError::Closed)?;
        let conn = lock(&self.idle).pop().ok_or(StoreError::Closed)?;
        Ok(SqliteReader { conn, home: Arc::clone(&self.idle), _permit: permit })
    }

    /// Waits until all connections are idle and closes them.
    pub(super) async fn stop(&self) {
        // An error means that the connections are closed already.
        let all = self.free.acquire_many(self.number).await;
        self.free.close();
        lock(&self.idle).clear();
        drop(all);
    }
}

impl Drop for SqliteReader {
    fn drop(&mut self) {
        lock(&self.home).push(Arc::clone(&self.conn));
    }
}
