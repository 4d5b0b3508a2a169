//! The one place where state is stored: [`Store`], and the two databases behind it.
//!
//! Its methods use the language of the domain and define what happens on failure. Those of a subject are
//! in the file named for it, each with its SQL; `tx` and `sql` make one text serve SQLite (`sqlite/`)
//! and PostgreSQL (`postgres/`). Both pass one suite of tests, `tests/it/store/`. To add an operation, add
//! a method in the file of its subject, and a test there.
//!
//! Rules of every method:
//!
//! * Changes that belong together are one transaction. When a call has returned `Ok`, its changes
//!   survive `kill -9`.
//! * `now` is an argument. Times are stored in microseconds.
//! * An error is never read as "no such row".
//! * Work is claimed by moving its due time: a claim expires without a cleanup job.

mod accounts;
mod alerts;
mod backfill;
mod backup;
mod cells;
mod changes;
mod clock;
mod collections;
mod copy;
mod db;
mod delivery;
mod engine;
mod events;
mod health;
mod hosts;
mod idempotency;
mod log;
mod maintenance;
mod nodes;
mod resources;
mod search;
mod secrets;
mod signing_keys;
mod tracks;
mod traffic;
mod transfer;
mod write_health;

use std::error::Error;
use std::path::Path;
use std::sync::Arc;

use crate::db::{Db, Engine};
use crate::engine::postgres::{self, Connector};
use crate::engine::sqlite;
use feedgate_core::host_groups::HostGroups;
use feedgate_core::page::PageLimits;
use feedgate_core::ping_forwarding::PingForwarding;
use feedgate_core::store::StoreError;
use feedgate_core::visibility::ListedTopics;

pub use crate::backup::error::BackupError;
pub use crate::backup::{
    BackupCounts, LARGEST_CHECKED_BYTES, ReportWritten, back_up, check_pages, restore,
};
pub use crate::cells::Store;
pub use crate::clock::known_clock::{KnownClock, MOVE_NOTICE};
pub use crate::collections::collecting::{COLLECT_BATCH, COLLECT_BYTES};
pub use crate::copy::error::CopyError;
pub use crate::copy::{COPY_BATCH_ROWS, CopyProgress, CopySettings, CopySummary, copy};
pub use crate::engine::batcher::{BatchLimits, Batcher, PendingResult};
pub use crate::engine::envelope::{SecretKey, SecretKeys};
pub use crate::engine::migrate::{MIGRATIONS, Migration};
pub use crate::engine::tx::STATEMENT_TARGET;
pub use crate::search::filling::INDEX_BATCH;
pub use crate::secrets::rotation::{RotatedSecrets, RotationProgress, rotate_secrets};
pub use crate::transfer::error::TransferError;
pub use crate::transfer::export::{ExportSummary, export};
pub use crate::transfer::import::Importer;
pub use crate::transfer::report::{ImportReport, KindReport};

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
    pub page_limits: PageLimits,
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
pub async fn open(settings: &StoreSettings) -> Result<Arc<Store>, StoreError> {
    open_with(settings, MIGRATIONS).await
}

/// Opens the store like [`open`], if a gateway has used it before.
pub async fn open_existing(settings: &StoreSettings) -> Result<Arc<Store>, StoreError> {
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
) -> Result<Arc<Store>, StoreError> {
    let store = Store::open(settings, migrations, OpenPurpose::Gateway).await;
    store.map(Arc::new).map_err(|err| name_place(err, &settings.url))
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
