//! Brings the schema up to date when the store is opened.
//!
//! A migration is a file in `migrations/`, listed in [`MIGRATIONS`]. A file is never changed once
//! released: a later change of a table is a file of its own, with the next number. How these files
//! are written is explained at the top of `migrations/0001_resources.sql`. Guarantees:
//!
//! * Each migration is one transaction, with the row that records it. A start that fails leaves the
//!   schema at the last complete version, and the next start continues from there.
//! * Every step reads the version in its own transaction, so a migration is never applied twice.
//! * On PostgreSQL, one node migrates at a time. Its lock and its statements have a connection of
//!   their own that no time limit applies to (`postgres/migration.rs`), because rewriting a large
//!   table takes longer than any other statement may.
//! * Statements are sent to PostgreSQL one by one and without being prepared ([`Tx::script`]).

use std::sync::Arc;

use futures_util::future::BoxFuture;

use crate::engine::sql::params;
use crate::engine::tx::Tx;
use feedgate_core::store::StoreError;

/// One step of the schema. The version is the step's place in the list, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Migration {
    /// The subject of the migration, in one word.
    pub name: &'static str,
    /// The statements, in the form that both databases accept.
    pub sql: &'static str,
}

macro_rules! migration {
    ($number:literal, $name:literal) => {
        Migration {
            name: $name,
            sql: include_str!(concat!("../../../../migrations/", $number, "_", $name, ".sql")),
        }
    };
}

/// All migrations, in order.
pub const MIGRATIONS: &[Migration] = &[
    migration!("0001", "resources"),
    migration!("0002", "log"),
    migration!("0003", "delivery"),
    migration!("0004", "hosts"),
    migration!("0005", "changes"),
    migration!("0006", "collections"),
    migration!("0007", "backfill"),
    migration!("0008", "accounts"),
    migration!("0009", "events"),
    migration!("0010", "maintenance"),
    migration!("0011", "search"),
    migration!("0012", "nodes"),
    migration!("0013", "begun_after"),
    migration!("0014", "signing_keys"),
    migration!("0015", "politeness"),
    migration!("0016", "token_parents"),
    migration!("0017", "visibility"),
    migration!("0018", "generations"),
    migration!("0019", "registrants"),
    migration!("0020", "filters"),
    migration!("0021", "clock"),
    migration!("0022", "backlogs"),
    migration!("0023", "callback_slots"),
    migration!("0024", "track_registrants"),
    migration!("0025", "event_owners"),
    migration!("0026", "waiting_intents"),
    migration!("0027", "backfill_shares"),
    migration!("0028", "clock_total"),
    migration!("0029", "answered_at"),
    migration!("0030", "followed_pages"),
    migration!("0031", "rest"),
    migration!("0032", "callback_headers"),
    migration!("0033", "alerts"),
    migration!("0034", "reading_lists"),
    migration!("0035", "token_ends"),
    migration!("0036", "feed_headers"),
    migration!("0037", "reading_list_turns"),
    migration!("0038", "lists"),
    migration!("0039", "baseline_known"),
    migration!("0040", "traffic"),
    migration!("0041", "alert_index"),
    migration!("0042", "event_kinds"),
];

/// Returns the version of the schema once all of these migrations are applied.
pub(crate) fn newest(migrations: &[Migration]) -> i64 {
    migrations.len() as i64
}

/// Applies the first migration that is missing. Returns whether there was one.
pub(crate) fn apply_next(
    migrations: &Arc<[Migration]>,
) -> impl for<'t> FnOnce(&'t Tx<'t>) -> BoxFuture<'t, Result<bool, StoreError>> + Clone + Send + 'static
{
    let migrations = Arc::clone(migrations);
    move |tx| Box::pin(async move { apply(tx, &migrations).await })
}

async fn apply(tx: &Tx<'_>, migrations: &[Migration]) -> Result<bool, StoreError> {
    const RECORD: &str = "insert into migrations (version, name) values ($1, $2)";
    let found = version(tx, newest(migrations)).await?;
    let next = usize::try_from(found).ok().and_then(|applied| migrations.get(applied));
    let Some(migration) = next else { return Ok(false) };
    let (version, of) = (found + 1, newest(migrations));
    if found > 0 && has_content(tx).await? {
        tracing::info!(version, of, name = migration.name, "migrating the database schema");
    }
    tx.script(migration.sql).await?;
    tx.execute(RECORD, params![version, migration.name]).await?;
    Ok(true)
}

/// Returns whether a gateway has used the database, so that a migration can take long.
async fn has_content(tx: &Tx<'_>) -> Result<bool, StoreError> {
    const CONTENT: &str = "select 1 from resources limit 1";
    Ok(tx.first(CONTENT, &[]).await?.is_some())
}

/// Creates the table that records which migrations were applied, if there is none.
pub(crate) fn prepare<'t>(tx: &'t Tx<'t>) -> BoxFuture<'t, Result<(), StoreError>> {
    const TABLE: &str =
        "create table if not exists migrations (version bigint primary key, name text)";
    Box::pin(tx.script(TABLE))
}

/// Fails unless the store accepts writes and its schema is no newer than `known`.
pub(crate) async fn check(tx: &Tx<'_>, known: i64) -> Result<(), StoreError> {
    // The check is a write, because a full disk and a standby server can still be read. It stores
    // another value each time: SQLite does not write a row that stays as it is.
    const PROBE: &str = "
        insert into counters (name, count) values ('write_probes', 1)
            on conflict (name) do update set count = counters.count + 1";
    tx.execute(PROBE, &[]).await?;
    version(tx, known).await.map(drop)
}

/// Returns the schema's version, 0 while it is empty; an error if it is newer than `known`.
async fn version(tx: &Tx<'_>, known: i64) -> Result<i64, StoreError> {
    const NEWEST: &str = "select coalesce(max(version), 0) from migrations";
    let found = tx.first(NEWEST, &[]).await?.map_or(Ok(0), |mut row| row.int())?;
    if found > known { Err(StoreError::Newer { found, known }) } else { Ok(found) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_table_and_index_says_what_it_is_for() {
        for migration in MIGRATIONS {
            let mut above = "";
            for line in migration.sql.lines() {
                let is_made = line.contains("create table ") || line.contains("create index ");
                let name = migration.name;
                assert!(!is_made || above.starts_with("-- "), "{name}: {line} needs a comment");
                above = line;
            }
        }
    }
}
