//! Brings the schema up to date when the store is opened.
//!
//! A migration is a file in `migrations/`, never changed once released. All that are
//! missing are applied in one transaction, by one process at a time.

use crate::engine::sql::params;
use crate::engine::tx::Tx;
use feedgate_core::ports::StoreError;

/// All migrations, in order; the first has number 1.
pub(crate) const MIGRATIONS: &[(&str, &str)] = &[
    ("log", include_str!("../../../../migrations/0001_log.sql")),
    ("hosts", include_str!("../../../../migrations/0002_hosts.sql")),
    ("schedule", include_str!("../../../../migrations/0003_schedule.sql")),
    ("upstream", include_str!("../../../../migrations/0004_upstream.sql")),
    ("entries", include_str!("../../../../migrations/0005_entries.sql")),
    ("statuses", include_str!("../../../../migrations/0006_statuses.sql")),
    ("herd", include_str!("../../../../migrations/0007_herd.sql")),
    ("replays", include_str!("../../../../migrations/0008_replays.sql")),
    ("unwatched", include_str!("../../../../migrations/0009_unwatched.sql")),
    ("errors", include_str!("../../../../migrations/0010_errors.sql")),
    ("pages", include_str!("../../../../migrations/0011_pages.sql")),
    ("storage", include_str!("../../../../migrations/0012_storage.sql")),
    ("changes", include_str!("../../../../migrations/0013_changes.sql")),
    ("onward", include_str!("../../../../migrations/0014_onward.sql")),
    ("events", include_str!("../../../../migrations/0015_events.sql")),
    ("backfills", include_str!("../../../../migrations/0016_backfills.sql")),
    ("collections", include_str!("../../../../migrations/0017_collections.sql")),
    ("called_hosts", include_str!("../../../../migrations/0018_called_hosts.sql")),
    ("narrow", include_str!("../../../../migrations/0019_narrow.sql")),
];

/// The newest schema this program knows.
pub(crate) const KNOWN: i64 = MIGRATIONS.len() as i64;

/// Any number that no other program sharing the database uses: "feedgate" in ASCII.
const LOCK: i64 = 0x6665_6564_6761_7465;

/// Applies what is missing. `page_records` is by what logs were cut before they had pages.
pub(crate) async fn migrate(tx: &Tx<'_>, page_records: i64) -> Result<(), StoreError> {
    if tx.is_shared() {
        tx.query("select pg_advisory_xact_lock($1)", params![LOCK]).await?;
    }
    tx.script("create table if not exists migrations (version bigint primary key, name text)")
        .await?;
    let found = version(tx).await?;
    if found > KNOWN {
        return Err(StoreError::Newer { found, known: KNOWN });
    }
    for (version, (name, text)) in (1..).zip(MIGRATIONS) {
        if version > found {
            tx.script(&text.replace("{page_records}", &page_records.to_string())).await?;
            let keep = "insert into migrations (version, name) values ($1, $2)";
            tx.execute(keep, params![version, *name]).await?;
        }
    }
    Ok(())
}

/// The schema's version; 0 while there is none.
async fn version(tx: &Tx<'_>) -> Result<i64, StoreError> {
    let newest = "select coalesce(max(version), 0) from migrations";
    tx.first(newest, &[]).await?.map_or(Ok(0), |mut row| row.int())
}

/// Fails unless the store takes writes and its schema is this program's.
pub(crate) async fn check(tx: &Tx<'_>) -> Result<(), StoreError> {
    // A write, because a full disk and a standby server both still read.
    tx.execute("update migrations set name = name where version = $1", params![KNOWN]).await?;
    let found = version(tx).await?;
    if found > KNOWN { Err(StoreError::Newer { found, known: KNOWN }) } else { Ok(()) }
}
