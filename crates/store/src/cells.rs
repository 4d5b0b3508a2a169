//! Cells: a store that is spread over several sets of tables.
//!
//! A cell is a whole set of tables in a schema of its own, and works as a store of one database
//! does. Each resource lies in the cell that a hash of its topic chooses, together with everything
//! about it: its log, its subscriptions, its intents. The numbers of its rows contain the number
//! of the cell ([`number_at`]). The schema that the URL names is the shared one: it holds accounts,
//! tokens, stored files, the event log, the settings that all nodes share, and the pacing of
//! publishers' hosts (`pacing.rs`).
//!
//! Every transaction stays within one schema. An operation that concerns several runs one
//! transaction in each, in an order in which a failure in between is repaired by the next run.
//! What lists across cells merges their pages.
//!
//! Which server a cell lies on is decided by the database: with Citus, each schema is a shard.

mod accounts;
mod attempts;
mod changes;
mod claiming;
mod clock;
mod collections;
mod delivery;
mod hosts;
mod log;
mod maintenance;
mod merge;
mod nodes;
pub(crate) mod numbers;
mod pacing;
mod resources;
mod search;
mod survey;
mod tracks;
mod upstreams;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::future::try_join_all;

use crate::copy::copy_state;
use crate::engine::migrate::{self, Migration};
use crate::engine::postgres::{Connector, Migrating, Postgres};
use crate::engine::sql::params;
use crate::engine::tx::Tx;
use crate::secrets::registered_keys;
use crate::{Db, Engine, OpenPurpose, StoreSettings, sqlite_path};
use changes::ChangeMarks;
use feedgate_core::ports::{StoreError, WakeSignals};
use numbers::{cell_of_number, cell_of_topic, number_at};

/// The least number of connections to each cell.
const LEAST_CONNECTIONS: usize = 2;

/// A store of several cells.
pub(crate) struct Cells {
    shared: Arc<Db>,
    cells: Vec<Arc<Db>>,
    /// The cell at which the next search for work begins.
    turn: AtomicUsize,
    change_marks: ChangeMarks,
}

impl Cells {
    /// Opens the cells of a PostgreSQL database, and creates those that are missing.
    pub(crate) async fn open(
        settings: &StoreSettings,
        migrations: &[Migration],
        purpose: OpenPurpose,
    ) -> Result<Cells, StoreError> {
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
        let (turn, change_marks) = (AtomicUsize::new(0), ChangeMarks::default());
        Ok(Cells { shared, cells, turn, change_marks })
    }

    /// Returns the shared schema and the cells.
    pub(crate) fn into_schemas(self) -> (Arc<Db>, Vec<Arc<Db>>) {
        (self.shared, self.cells)
    }

    /// Returns the cell of a topic, or of another text that decides where something lies.
    fn of_topic(&self, topic: &str) -> &Arc<Db> {
        &self.cells[cell_of_topic(topic, self.cells.len())]
    }

    /// Returns the cell of the row with this number. A number that no cell has assigned is looked
    /// for in the first, where it is not found either.
    fn of_number(&self, number: i64) -> &Arc<Db> {
        self.cells.get(cell_of_number(number)).unwrap_or(&self.cells[0])
    }

    /// Returns all cells, beginning with another one each time, so that none is always last.
    fn in_turn(&self) -> impl Iterator<Item = &Arc<Db>> {
        let first = self.turn.fetch_add(1, Ordering::Relaxed) % self.cells.len();
        self.cells[first..].iter().chain(&self.cells[..first])
    }

    /// Returns the items by the cell that `number` names, with the number of each cell.
    fn by_cell<T>(&self, items: impl IntoIterator<Item = T>, number: fn(&T) -> i64) -> Vec<Vec<T>> {
        let mut by_cell: Vec<Vec<T>> = self.cells.iter().map(|_| Vec::new()).collect();
        for item in items {
            let cell = cell_of_number(number(&item));
            by_cell[if cell < self.cells.len() { cell } else { 0 }].push(item);
        }
        by_cell
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
