//! The store behind all ports: an operation goes in, and comes out of the database
//! that was configured.

use std::error::Error;
use std::path::Path;
use std::sync::{Arc, Weak};

use futures_util::future::BoxFuture;

use crate::engine::migrate::{self, Migration};
use crate::engine::postgres::{self, Postgres};
use crate::engine::sqlite::Sqlite;
use crate::engine::tx::Tx;
use crate::hosts;
use crate::resources::poll_result_batcher::PollResultBatcher;
use feedgate_core::host_groups::HostGroups;
use feedgate_core::page::PageLimits;
use feedgate_core::ping_forwarding::PingForwarding;
use feedgate_core::ports::{StoreError, WakeSignals};

/// What [`crate::open`] opens.
pub(crate) struct Db {
    engine: Engine,
    pub(crate) news: WakeSignals,
    pub(crate) recorder: PollResultBatcher,
    /// The version of the schema that this program works with.
    pub(crate) schema_version: i64,
    /// Which servers are limited together.
    pub(crate) groups: HostGroups,
    /// How much a page takes.
    pub(crate) cut: PageLimits,
    /// Which changes are forwarded to ping targets.
    pub(crate) forwarding: Arc<PingForwarding>,
}

enum Engine {
    Sqlite(Sqlite),
    Postgres(Box<Postgres>),
}

impl Db {
    /// Opens the database that `settings` name, and applies those `migrations` that it lacks.
    pub(crate) async fn open(
        settings: &crate::Settings,
        migrations: &[Migration],
    ) -> Result<Arc<Db>, StoreError> {
        Db::begin(settings, migrations).await.map_err(|err| match err {
            StoreError::Database(err) => {
                let place = match sqlite_path(&settings.url) {
                    Some(path) => path.display().to_string(),
                    None => postgres::place(&settings.url),
                };
                StoreError::Open { place, reason: reason(&*err) }
            }
            other => other,
        })
    }

    async fn begin(
        settings: &crate::Settings,
        migrations: &[Migration],
    ) -> Result<Arc<Db>, StoreError> {
        let news = WakeSignals::default();
        let connections = settings.connections.max(1);
        let engine = match sqlite_path(&settings.url) {
            Some(path) => Engine::Sqlite(Sqlite::open(path, connections, news.clone())?),
            None => {
                let opened = Postgres::open(&settings.url, connections, news.clone()).await?;
                Engine::Postgres(Box::new(opened))
            }
        };
        let (groups, cut) = (settings.groups.clone(), settings.cut);
        let forwarding = Arc::new(settings.forwarding.clone());
        let db = Arc::new_cyclic(|db| {
            let recorder = PollResultBatcher::start(Weak::clone(db));
            let schema_version = migrate::newest(migrations);
            let groups = groups.clone();
            Db { engine, news, recorder, schema_version, groups, cut, forwarding }
        });
        db.migrate(migrations.into()).await?;
        db.write(move |tx| Box::pin(async move { hosts::regroup(tx, &groups).await })).await?;
        Ok(db)
    }

    async fn migrate(&self, migrations: Arc<[Migration]>) -> Result<(), StoreError> {
        match &self.engine {
            Engine::Sqlite(sqlite) => {
                sqlite.write(migrate::prepare).await?;
                while sqlite.write(migrate::apply_next(&migrations)).await? {}
            }
            Engine::Postgres(postgres) => {
                let mut migrating = postgres.begin_migrating().await?;
                migrating.write(migrate::prepare).await?;
                while migrating.write(migrate::apply_next(&migrations)).await? {}
            }
        }
        Ok(())
    }

    /// Runs `op` in one transaction: all of it or, if it fails, nothing.
    pub(crate) async fn write<T, F>(&self, op: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: for<'t> FnOnce(&'t Tx<'t>) -> BoxFuture<'t, Result<T, StoreError>> + Send + 'static,
    {
        match &self.engine {
            Engine::Sqlite(sqlite) => sqlite.write(op).await,
            Engine::Postgres(postgres) => postgres.write(op).await,
        }
    }

    /// Runs `op`, which writes nothing. Two of its statements may see two moments.
    pub(crate) async fn read<T, F>(&self, op: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: for<'t> FnOnce(&'t Tx<'t>) -> BoxFuture<'t, Result<T, StoreError>> + Send + 'static,
    {
        match &self.engine {
            Engine::Sqlite(sqlite) => sqlite.read(op).await,
            Engine::Postgres(postgres) => postgres.read(op).await,
        }
    }

    /// Finishes what was begun and closes the database.
    pub(crate) async fn shut(&self) {
        self.recorder.stop().await;
        match &self.engine {
            Engine::Sqlite(sqlite) => sqlite.close().await,
            Engine::Postgres(postgres) => postgres.close(),
        }
    }
}

/// An error with its causes. Some errors tell their cause themselves, which is not told
/// twice.
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

/// The file that a database URL names: `sqlite:PATH` or just a path.
fn sqlite_path(url: &str) -> Option<&Path> {
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
