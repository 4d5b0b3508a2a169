//! The store: a list of cells, one by default.
//!
//! A cell is a whole set of tables, and its database (`Db`) works on it alone. Each resource lies in
//! the cell that a hash of its topic chooses, together with everything about it: its log, its
//! subscriptions, its intents. What belongs to no resource lies in the shared database: accounts,
//! tokens, stored files, the event log, the settings that all nodes share, and the pacing of
//! publishers' hosts (`pacing.rs`). If there is one cell, it is the shared database too, and is
//! called directly.
//!
//! If there are several, each is a schema of a PostgreSQL database, and so is the shared one, which
//! the URL names. The numbers of rows contain the number of their cell ([`number_at`]). Every
//! transaction stays within one schema. An operation that concerns several runs one transaction in
//! each, in an order in which a failure in between is repaired by the next run. What lists across
//! cells merges their pages.
//!
//! Which server a cell lies on is decided by the database: with Citus, each schema is a shard.

pub(crate) mod claiming;
pub(crate) mod list_pages;
pub(crate) mod merge;
pub(crate) mod numbers;
pub(crate) mod pacing;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use chrono::{DateTime, Utc};
use futures_util::FutureExt;
use futures_util::future::{join_all, try_join_all};

use crate::changes::change_marks::ChangeMarks;
use crate::copy::copy_state;
use crate::engine::claims::{ClaimedKey, ClaimedTable};
use crate::engine::migrate::{self, Migration};
use crate::engine::postgres::{Connector, Migrating, Postgres};
use crate::engine::sql::params;
use crate::engine::tx::Tx;
use crate::secrets::registered_keys;
use crate::{Db, Engine, OpenPurpose, StoreSettings, sqlite_path};
use claiming::{CellClaims, fill};
use feedgate_core::store::{ClaimLimits, StoreError, WakeSignals};
use numbers::{cell_of_number, cell_of_topic, number_at};

/// The least number of connections to each cell.
const LEAST_CONNECTIONS: usize = 2;

/// The open store: everything that the program can do with a database. Each subject has its methods,
/// with their SQL, in the file named for it.
pub struct Store {
    /// The database of what lies in no cell.
    pub(crate) shared: Arc<Db>,
    pub(crate) cells: Vec<Arc<Db>>,
    /// The cell at which the next search for work begins.
    turn: AtomicUsize,
    pub(crate) change_marks: ChangeMarks,
}

impl Store {
    /// Opens the store, and creates what is missing of it.
    pub(crate) async fn open(
        settings: &StoreSettings,
        migrations: &[Migration],
        purpose: OpenPurpose,
    ) -> Result<Store, StoreError> {
        if settings.cells > 1 {
            return Store::open_cells(settings, migrations, purpose).await;
        }
        let db = Db::open(settings, migrations, purpose).await?;
        Ok(Store::new(Arc::clone(&db), vec![db]))
    }

    fn new(shared: Arc<Db>, cells: Vec<Arc<Db>>) -> Store {
        let (turn, change_marks) = (AtomicUsize::new(0), ChangeMarks::default());
        Store { shared, cells, turn, change_marks }
    }

    /// Opens the cells of a PostgreSQL database, and creates those that are missing.
    async fn open_cells(
        settings: &StoreSettings,
        migrations: &[Migration],
        purpose: OpenPurpose,
    ) -> Result<Store, StoreError> {
        if sqlite_path(&settings.url).is_some() {
            return Err(StoreError::Cells { found: 1, configured: settings.cells });
        }
        let connector = Connector::new(&settings.url)?.for_purpose(purpose);
        let wake_signals = WakeSignals::default();
        let (connections, version) = (settings.connections.max(1), migrate::newest(migrations));
        let opened = Postgres::open(connector.clone(), connections, wake_signals.clone());
        let mut shared = opened.await?;
        let names: Vec<String> =
            (0..settings.cells).map(|cell| format!("{}_cell_{cell}", shared.schema())).collect();
        if purpose == OpenPurpose::Gateway {
            shared.listen(names.clone()).await?;
        }
        let mut migrating = Migrating::begin(&connector).await?;
        migrate_schema(&mut migrating, migrations).await?;
        let engine = Engine::Postgres(Box::new(shared));
        let in_memory = (wake_signals, Arc::default());
        let shared = Db::new(engine, settings, in_memory.clone(), version);
        check_count(&shared, settings.cells).await?;
        if purpose == OpenPurpose::Gateway {
            copy_state::admit_gateway(&shared).await?;
            registered_keys::check(&shared).await?;
        }

        let each = connections.div_ceil(settings.cells).max(LEAST_CONNECTIONS);
        // The pacing of hosts is shared: within a cell, resources of one host need not wait.
        let groups = settings.groups.without_intervals();
        let cell_settings = StoreSettings { groups, ..settings.clone() };
        let mut cells = Vec::new();
        for (cell, name) in names.iter().enumerate() {
            migrating.enter(name).await?;
            migrate_schema(&mut migrating, migrations).await?;
            migrating.write(move |tx| Box::pin(number_rows(tx, cell))).await?;
            let opened = Postgres::open(connector.in_schema(name), each, in_memory.0.clone());
            let engine = Engine::Postgres(Box::new(opened.await?));
            cells.push(Db::new(engine, &cell_settings, in_memory.clone(), version));
        }
        drop(migrating);
        if purpose == OpenPurpose::Gateway {
            try_join_all(cells.iter().map(|cell| cell.regroup())).await?;
        }
        Ok(Store::new(shared, cells))
    }

    /// Returns the shared database and the cells.
    pub(crate) fn into_schemas(self) -> (Arc<Db>, Vec<Arc<Db>>) {
        (self.shared, self.cells)
    }

    /// Returns the only cell; `None` if there are several.
    pub(crate) fn only_cell(&self) -> Option<&Db> {
        match self.cells.as_slice() {
            [cell] => Some(cell),
            _ => None,
        }
    }

    /// Returns all databases, each once.
    pub(crate) fn databases(&self) -> impl Iterator<Item = &Db> {
        let shared = self.only_cell().is_none().then_some(&self.shared);
        self.cells.iter().chain(shared).map(|db| &**db)
    }

    /// Returns the cell of a topic, or of another text that decides where something lies.
    pub(crate) fn of_topic(&self, topic: &str) -> &Db {
        self.only_cell().unwrap_or_else(|| &self.cells[cell_of_topic(topic, self.cells.len())])
    }

    /// Returns the cell of the row with this number.
    pub(crate) fn of_number(&self, number: i64) -> &Db {
        &self.cells[self.place_of(number)]
    }

    /// Returns which cell has the row with this number. A number that no cell has assigned is looked
    /// for in the first, where it is not found either.
    pub(crate) fn place_of(&self, number: i64) -> usize {
        Some(cell_of_number(number)).filter(|cell| *cell < self.cells.len()).unwrap_or(0)
    }

    /// Returns all cells, beginning with another one each time, so that none is always last.
    fn in_turn(&self) -> impl Iterator<Item = &Arc<Db>> {
        let (later, first) = self.cells.split_at(self.next_turn());
        first.iter().chain(later)
    }

    /// Returns the cell at which a search for work begins: another one each time.
    pub(crate) fn next_turn(&self) -> usize {
        self.turn.fetch_add(1, Ordering::Relaxed) % self.cells.len()
    }

    /// Returns all cells, each with those of the items whose numbers are in it.
    pub(crate) fn by_every_cell<T>(
        &self,
        items: Vec<T>,
        number: impl Fn(&T) -> i64,
    ) -> Vec<(&Db, Vec<T>)> {
        if let Some(cell) = self.only_cell() {
            return vec![(cell, items)];
        }
        let mut by_cell: Vec<_> = self.cells.iter().map(|cell| (&**cell, Vec::new())).collect();
        for item in items {
            by_cell[self.place_of(number(&item))].1.push(item);
        }
        by_cell
    }

    /// Returns the cells of the items, as [`by_every_cell`](Self::by_every_cell) does.
    pub(crate) fn by_cell<T>(
        &self,
        items: Vec<T>,
        number: impl Fn(&T) -> i64,
    ) -> Vec<(&Db, Vec<T>)> {
        let mut by_cell = self.by_every_cell(items, number);
        by_cell.retain(|(_, items)| !items.is_empty());
        by_cell
    }

    /// Returns what `work` returns for the items of each cell, together. A cell that fails keeps no other from
    /// its work.
    pub(crate) async fn gather<'a, I: Clone, T, F>(
        &'a self,
        items: &[I],
        number: impl Fn(&I) -> i64,
        work: impl Fn(&'a Db, Vec<I>) -> F,
    ) -> Result<Vec<T>, StoreError>
    where
        F: Future<Output = Result<Vec<T>, StoreError>> + Send + 'a,
    {
        let by_cell = self.by_cell(items.to_vec(), number).into_iter();
        let gathered = join_all(by_cell.map(|(cell, items)| work(cell, items).boxed())).await;
        let gathered = gathered.into_iter().collect::<Result<Vec<_>, _>>()?;
        Ok(gathered.into_iter().flatten().collect())
    }

    /// Returns what `work` returns for each cell, in the order of the cells.
    pub(crate) async fn each<'a, T, F>(
        &'a self,
        work: impl Fn(&'a Db) -> F,
    ) -> Result<Vec<T>, StoreError>
    where
        F: Future<Output = Result<T, StoreError>> + Send + 'a,
    {
        if let Some(cell) = self.only_cell() {
            return Ok(vec![work(cell).await?]);
        }
        try_join_all(self.cells.iter().map(|cell| work(cell).boxed())).await
    }

    /// Returns the sum of the counts of all cells.
    pub(crate) async fn sum<'a, F>(&'a self, count: impl Fn(&'a Db) -> F) -> Result<u64, StoreError>
    where
        F: Future<Output = Result<u64, StoreError>> + Send + 'a,
    {
        Ok(self.each(count).await?.into_iter().sum())
    }

    /// Returns what the first cell returns that has anything.
    pub(crate) async fn first_some<'a, T, F>(
        &'a self,
        work: impl Fn(&'a Db) -> F,
    ) -> Result<Vec<T>, StoreError>
    where
        F: Future<Output = Result<Vec<T>, StoreError>>,
    {
        for cell in &self.cells {
            let some = work(cell).await?;
            if !some.is_empty() {
                return Ok(some);
            }
        }
        Ok(Vec::new())
    }

    /// Claims up to `limit` jobs: `claim` claims up to so many from one cell.
    pub(crate) async fn claim_in_turn<'a, T, F>(
        &'a self,
        limit: usize,
        claim: impl Fn(&'a Db, usize) -> F,
    ) -> Result<Vec<T>, StoreError>
    where
        F: Future<Output = Result<Vec<T>, StoreError>>,
    {
        let mut claims = CellClaims::new(limit);
        for cell in self.in_turn() {
            if claims.left() == 0 && self.cells.len() > 1 {
                break;
            }
            claims.add(claim(cell, claims.left()).await);
        }
        claims.finish()
    }

    /// Claims jobs within limits that hold for all cells together. `host` returns the host of a job.
    pub(crate) async fn claim_within<'a, T, F>(
        &'a self,
        limits: &ClaimLimits,
        host: impl Fn(&T) -> String,
        claim: impl Fn(&'a Db, ClaimLimits) -> F,
    ) -> Result<Vec<T>, StoreError>
    where
        F: Future<Output = Result<Vec<T>, StoreError>>,
    {
        if let Some(cell) = self.only_cell() {
            return claim(cell, limits.clone()).await;
        }
        let (mut claims, mut limits) = (CellClaims::new(limits.limit), limits.clone());
        for cell in self.in_turn() {
            if claims.left() == 0 {
                break;
            }
            claims.add(claim(cell, limits.clone()).await);
            limits.limit = claims.left();
            fill(&mut limits, claims.claimed().iter().map(&host));
        }
        claims.finish()
    }

    /// Extends those of the claims that were not lost to `until`. Returns the keys of their rows.
    pub(crate) async fn renew_claims<const KEYS: usize>(
        &self,
        table: ClaimedTable<KEYS>,
        claims: &[ClaimedKey<KEYS>],
        until: DateTime<Utc>,
    ) -> Result<Vec<[i64; KEYS]>, StoreError> {
        let renewed = self.gather(
            claims,
            |(key, _)| key[0],
            |db, claims| {
                db.write(move |tx| Box::pin(async move { table.renew(tx, claims, until).await }))
            },
        );
        renewed.await
    }
}

async fn migrate_schema(
    migrating: &mut Migrating,
    migrations: &[Migration],
) -> Result<(), StoreError> {
    let migrations: Arc<[Migration]> = migrations.into();
    migrating.write(migrate::prepare).await?;
    while migrating.write(migrate::apply_next(&migrations)).await? {}
    Ok(())
}

/// Makes a new cell count its rows from its own first number.
async fn number_rows(tx: &Tx<'_>, cell: usize) -> Result<(), StoreError> {
    const MARK: &str = "
        insert into database_properties (name, value) values ('cell', $1)
            on conflict (name) do nothing";
    const START: &str = "
        select setval(pg_get_serial_sequence(t.name, 'id'), $1)
          from (values ('resources'), ('subscriptions'), ('delivery_attempts'), ('intents'),
                       ('changes'), ('forwarded_pings')) t (name)";
    if tx.execute(MARK, params![cell.to_string()]).await? > 0 && cell > 0 {
        tx.query(START, params![number_at(cell)]).await?;
    }
    Ok(())
}

/// Fails if the database was created with another number of cells than `configured`.
pub(crate) async fn check_count(db: &Db, configured: usize) -> Result<(), StoreError> {
    const SAVE: &str = "
        insert into database_properties (name, value) values ('cells', $1)
            on conflict (name) do nothing";
    const FIND: &str = "select value from database_properties where name = 'cells'";
    let found = db.write(move |tx| {
        Box::pin(async move {
            tx.execute(SAVE, params![configured.to_string()]).await?;
            tx.first(FIND, &[]).await?.map_or(Ok(String::new()), |mut row| row.text())
        })
    });
    let found = found.await?;
    match found.parse() {
        Ok(found) if found == configured => Ok(()),
        Ok(found) => Err(StoreError::Cells { found, configured }),
        Err(_) => Err(StoreError::Corrupt(format!("{found:?} is not a number of cells"))),
    }
}
