//! The one place where state lives: the ports, and the two databases behind them.
//!
//! The ports speak the domain's language and say what happens when things go wrong.
//! Each is implemented once, in the file named for it, with its SQL beside it; `tx`
//! and `sql` make one text serve SQLite (`sqlite/`) and PostgreSQL (`postgres/`).
//! Both pass one contract suite, `tests/it/store/`.
//!
//! What holds in every port:
//!
//! * What must stand or fall together is one transaction. When a call has returned
//!   `Ok`, what it did survives `kill -9`.
//! * `now` is an argument. Times are kept in microseconds.
//! * An error is never read as "no such row".
//! * Work is claimed by putting off when it is due: a claim needs no sweeper to expire.

mod accounts;
mod backfill;
mod changes;
mod collections;
mod delivery;
mod engine;
mod events;
mod hosts;
mod log;
mod maintenance;
mod resources;

use crate::engine::db;
use std::sync::Arc;

use feedgate_core::host_groups::HostGroups;
use feedgate_core::page::PageLimits;
use feedgate_core::ping_forwarding::PingForwarding;

pub use crate::collections::collecting::COLLECTED_AT_ONCE;
pub use crate::engine::migrate::{MIGRATIONS, Migration};
use feedgate_core::ports::{Store, StoreError};

/// Where the store is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// `sqlite:PATH` or a path, or `postgres://USER@HOST/DATABASE`. A search path is
    /// given as `?options=-c%20search_path%3DNAME`, TLS as `?sslmode=require`.
    pub url: String,
    /// Connections to PostgreSQL, or readers of SQLite, at most.
    pub connections: usize,
    /// Which servers are limited together, and how far apart the fetches from them are.
    /// All nodes must be given the same.
    pub groups: HostGroups,
    /// How much a page of a log takes. All nodes should be given the same.
    pub cut: PageLimits,
    /// Which changes are forwarded to ping targets, and to whom.
    pub forwarding: PingForwarding,
}

/// Opens the store, makes it if it is new, and brings its schema up to date.
pub async fn open(settings: &Settings) -> Result<Arc<dyn Store>, StoreError> {
    open_with(settings, MIGRATIONS).await
}

/// The same with other migrations, which begin with all of [`MIGRATIONS`]: what a later version
/// of this program does to a database.
pub async fn open_with(
    settings: &Settings,
    migrations: &[Migration],
) -> Result<Arc<dyn Store>, StoreError> {
    let db = db::Db::open(settings, migrations).await?;
    Ok(db)
}
