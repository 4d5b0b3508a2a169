//! What the database reads: rows and entries of indices on PostgreSQL, by its own statistics; on
//! SQLite, which does not count rows, the bytes that this process reads from files.

use std::sync::Arc;
use std::time::Duration;

use feedgate_store::Store;
use tokio_postgres::{Client, NoTls};

use super::Failure;

/// The server collects the counters of a connection once a second, when a transaction ends.
const COLLECTED_AFTER: Duration = Duration::from_millis(1_100);

/// Counts what is read.
pub(crate) struct RowCounter {
    store: Arc<Store>,
    /// A connection beside that of the store; `None` on SQLite.
    client: Option<Client>,
}

impl RowCounter {
    pub(crate) async fn new(url: &str, store: Arc<Store>) -> Result<RowCounter, Failure> {
        let mut client = None;
        if !url.starts_with("sqlite:") {
            let (connected, connection) = tokio_postgres::connect(url, NoTls).await?;
            tokio::spawn(connection);
            client = Some(connected);
        }
        Ok(RowCounter { store, client })
    }

    /// The number of rows, or of kilobytes, that have been read so far.
    pub(crate) async fn count(&self) -> Result<f64, Failure> {
        const COUNT: &str = "
            select (select coalesce(sum(seq_tup_read), 0) from pg_stat_user_tables
                     where schemaname = current_schema())::bigint
                 + (select coalesce(sum(idx_tup_read), 0) from pg_stat_user_indexes
                     where schemaname = current_schema())::bigint";
        let Some(client) = &self.client else { return read_kb() };
        tokio::time::sleep(COLLECTED_AFTER).await;
        self.store.poll_factor().await?; // reads one row of a table that is not counted on
        let count: i64 = client.query_one(COUNT, &[]).await?.get(0);
        Ok(count as f64)
    }
}

fn read_kb() -> Result<f64, Failure> {
    let io = std::fs::read_to_string("/proc/self/io")?;
    let line = io.lines().find_map(|line| line.strip_prefix("rchar:"));
    let bytes: f64 = line.ok_or("the system does not count")?.trim().parse()?;
    Ok(bytes / 1_024.0)
}
