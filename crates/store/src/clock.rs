//! The clock of the database, by which everything is due on all nodes, and the one repair after it was set:
//! all due times move by as much (`clock/due_times.rs`, and those of claimed backlogs in memory).
//!
//! They move in portions, each in a transaction that also stores how far the move has come. So any node can go
//! on where another has stopped, and nothing moves twice.

pub(crate) mod clock_moves;
mod due_times;
pub(crate) mod known_clock;

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use futures_util::try_join;
use tokio::time::{Instant, sleep};

use crate::db::Engine;
use crate::engine::sql::{Value, params};
use crate::engine::sqlite::WriteSize;
use crate::engine::tx::{Tx, Wake};
use crate::{Db, Store};
use due_times::{DueTimes, TABLES};
use feedgate_core::store::{ClockMark, ClockReading, StoreError};
use known_clock::KnownClock;

/// The most rows that one transaction moves: few enough that no other transaction waits long.
const PORTION: i64 = 2_000;

/// How long the clock may be read, once there is a connection.
const READ_LIMIT: Duration = Duration::from_secs(2);

/// How long due times wait at most for transactions that are in progress.
const OPEN_TRANSACTIONS_WAIT: Duration = Duration::from_secs(5);
/// The time between two looks at them.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// The key before that of every row.
const START: [i64; 2] = [i64::MIN; 2];

/// The clock of the database, and the due times that are moved with it when it was set.
impl Store {
    /// From now on, stores nothing by a time that is not that of the database any more (`clock/known_clock.rs`). Has
    /// an effect only where other nodes may use the database.
    pub fn go_by_clock(&self, known: &Arc<KnownClock>) {
        self.databases().for_each(|db| {
            db.known_clock.get_or_init(|| Arc::clone(known));
        });
    }

    /// Reads the clock. That of SQLite is the clock of this machine, which shows `machine_time`.
    pub async fn read_clock(
        &self,
        machine_time: DateTime<Utc>,
    ) -> Result<ClockReading, StoreError> {
        self.shared.read_within(READ_LIMIT, move |tx| Box::pin(read(tx, machine_time))).await
    }

    /// Records that a node works, unless it has not noticed yet that the clock was set after `generation`, or
    /// another node is recording something.
    pub async fn record_clock(&self, generation: i64, mark: &ClockMark) -> Result<(), StoreError> {
        const MARK: &str = "
            update clocks set seen_at = $1, boot = $2, since_boot = $3
             where id in (select id from clocks where id = 1 and generation = $4
                          {postgres for update skip locked})";
        let ClockMark { seen_at, boot, since_boot } = mark.clone();
        let since_boot = since_boot.as_micros() as i64;
        let marked = self.shared.write_clock(WriteSize::Small, move |tx| {
            let params = [Value::from(seen_at), boot.into(), since_boot.into(), generation.into()];
            Box::pin(async move { tx.execute(MARK, &params).await })
        });
        marked.await.map(drop)
    }

    /// Records that the clock was set by `by`, unless it was set again since `generation`. Due times are
    /// moved by [`move_due_times`](Self::move_due_times).
    pub async fn record_clock_set(&self, generation: i64, by: TimeDelta) -> Result<(), StoreError> {
        self.shared.record_clock_set(generation, by).await
    }

    /// Moves all due times by `by`, because the clock was set for the time `generation`. Several nodes may
    /// do this together, and go on where another has stopped. Returns once all are moved.
    pub async fn move_due_times(&self, generation: i64, by: TimeDelta) -> Result<(), StoreError> {
        if self.only_cell().is_none() {
            self.each(|db| db.move_due_times(generation, by)).await?;
        }
        self.shared.move_due_times(generation, by).await
    }

    /// Moves the due times that this node has in memory, when it goes by the new time.
    pub fn move_times_in_memory(&self, by: TimeDelta) {
        self.databases().for_each(|db| db.clock_moves.note(by));
        self.cells.iter().for_each(|cell| cell.held_backlogs.move_times(by));
    }
}

impl Db {
    async fn record_clock_set(&self, generation: i64, by: TimeDelta) -> Result<(), StoreError> {
        const SET: &str = "
            update clocks
               set generation = generation + 1, moved_by = $2, moved_in_all = moved_in_all + $2,
                   is_moving = 1, step = 0, first_key = $3, second_key = $4,
                   seen_at = case when seen_at = 0 then 0 else seen_at + $2 end
             where id = 1 and generation = $1 and is_moving = 0";
        let by = by.num_microseconds().unwrap_or(0);
        let [first, second] = START;
        let set = self.write_clock(WriteSize::Small, move |tx| {
            Box::pin(async move { tx.execute(SET, params![generation, by, first, second]).await })
        });
        set.await.map(drop)
    }

    async fn move_due_times(&self, generation: i64, by: TimeDelta) -> Result<(), StoreError> {
        self.record_clock_set(generation - 1, by).await?;
        self.await_open_transactions().await?;
        let by = by.num_microseconds().unwrap_or(0);
        loop {
            let moved = self.write_clock(WriteSize::Large, move |tx| {
                Box::pin(move_portion(tx, generation, by))
            });
            if !moved.await? {
                return Ok(());
            }
        }
    }

    /// Waits until the transactions have ended that have written something and are in progress on PostgreSQL. What they
    /// insert cannot be seen yet, and would stay where it is when due times move.
    async fn await_open_transactions(&self) -> Result<(), StoreError> {
        const NEXT: &str =
            "select cast(cast(pg_snapshot_xmax(pg_current_snapshot()) as text) as bigint)";
        const OLDEST: &str =
            "select cast(cast(pg_snapshot_xmin(pg_current_snapshot()) as text) as bigint)";
        if let Engine::Sqlite(_) = self.engine {
            return Ok(());
        }
        let number = async |sql| {
            let row = self.rows(sql, &[]).await?.into_iter().next();
            row.map_or(Ok(0), |mut row| row.int())
        };
        let (next, began) = (number(NEXT).await?, Instant::now());
        while number(OLDEST).await? < next && began.elapsed() < OPEN_TRANSACTIONS_WAIT {
            sleep(LOOK_AGAIN).await;
        }
        Ok(())
    }
}

async fn read(tx: &Tx<'_>, machine_time: DateTime<Utc>) -> Result<ClockReading, StoreError> {
    const STATE: &str = "
        select generation, is_moving, moved_by, moved_in_all, seen_at, boot, since_boot
          from clocks
         where id = 1";
    let (now, state) = try_join!(database_time(tx, machine_time), tx.first(STATE, &[]))?;
    let missing = || StoreError::Corrupt("the row of the clock is missing".to_owned());
    let mut row = state.ok_or_else(missing)?;
    let (generation, is_moving) = (row.int()?, row.int()? == 1);
    let (by, in_all) = (row.int()?, row.int()?);
    let (seen_at, boot, since_boot) = (row.time()?, row.text()?, row.count()?);
    let mark = ClockMark { seen_at, boot, since_boot: Duration::from_micros(since_boot) };
    Ok(ClockReading {
        now,
        is_shared: tx.is_shared(),
        generation,
        moved_in_all: TimeDelta::microseconds(in_all),
        moving_by: is_moving.then(|| TimeDelta::microseconds(by)),
        mark: (seen_at > DateTime::UNIX_EPOCH).then_some(mark),
    })
}

/// Reads the clock of the database alone. That of SQLite is the clock of this machine, which shows `machine_time`.
pub(crate) async fn database_time(
    tx: &Tx<'_>,
    machine_time: DateTime<Utc>,
) -> Result<DateTime<Utc>, StoreError> {
    const CLOCK: &str = "
        select cast(extract(epoch from statement_timestamp()) * 1000000 as bigint)";
    if !tx.is_shared() {
        return Ok(machine_time);
    }
    tx.first(CLOCK, &[]).await?.map_or(Ok(machine_time), |mut row| row.time())
}

/// Moves the next portion of due times. Returns whether there may be more.
async fn move_portion(tx: &Tx<'_>, generation: i64, by: i64) -> Result<bool, StoreError> {
    const POSITION: &str = "
        select step, first_key, second_key from clocks
         where id = 1 and generation = $1 and moved_by = $2 and is_moving = 1";
    const ADVANCE: &str = "
        update clocks set step = $5, first_key = $6, second_key = $7, is_moving = $8
         where id = 1 and generation = $1 and step = $2 and first_key = $3 and second_key = $4
           and is_moving = 1";
    // Whatever the planner expects between two keys, the rows are looked up by their keys.
    tx.join_by_keys().await?;
    let Some(mut row) = tx.first(POSITION, params![generation, by]).await? else {
        return Ok(false);
    };
    let (step, after) = (row.int()?, [row.int()?, row.int()?]);
    let table = usize::try_from(step).ok().and_then(|step| TABLES.get(step));
    let upto = match table {
        Some(table) => end_of_portion(tx, table, after).await?,
        None => None,
    };
    let (next, [first, second]) = upto.map_or((step + 1, START), |key| (step, key));
    let is_moving = next < TABLES.len() as i64;
    let moved = params![generation, step, after[0], after[1], next, first, second, is_moving];
    if tx.execute(ADVANCE, moved).await? == 0 {
        return Ok(true); // another node has moved this portion
    }
    if let Some(table) = table {
        let upto = upto.unwrap_or([i64::MAX; 2]);
        move_rows(tx, table, by, (after, upto)).await?;
        move_rows_with(tx, table, by, (after[0], upto[0])).await?;
    }
    if !is_moving {
        Wake::ALL.into_iter().for_each(|whom| tx.wake(whom));
    }
    Ok(is_moving)
}

/// Returns the key of the last row of the portion that begins after a key; `None` if all that are left are one
/// portion.
async fn end_of_portion(
    tx: &Tx<'_>,
    table: &DueTimes,
    after: [i64; 2],
) -> Result<Option<[i64; 2]>, StoreError> {
    let DueTimes { table, key, .. } = table;
    let most = PORTION - 1;
    let found = match key {
        [] => None,
        [key] => {
            let end = format!(
                "select {key}, {key} from {table} where {key} > $1 order by {key} limit 1 offset $2"
            );
            tx.first(&end, params![after[0], most]).await?
        }
        _ => {
            let key = key.join(", ");
            let end = format!(
                "select {key} from {table} where ({key}) > ($1, $2) order by {key} limit 1 offset $3"
            );
            tx.first(&end, params![after[0], after[1], most]).await?
        }
    };
    found.map(|mut row| Ok([row.int()?, row.int()?])).transpose()
}

/// Moves the times of the rows of the resources from the first on, and before the second, that move together with
/// those of a table.
async fn move_rows_with(
    tx: &Tx<'_>,
    table: &DueTimes,
    by: i64,
    (first, before): (i64, i64),
) -> Result<(), StoreError> {
    let Some((table, columns)) = table.with else { return Ok(()) };
    let moved = moved(columns);
    let rows = format!("update {table} set {moved} where resource_id >= $2 and resource_id < $3");
    tx.execute(&rows, params![by, first, before]).await.map(drop)
}

/// Returns the assignments that move these columns.
fn moved(columns: &[&str]) -> String {
    let moved = |column: &&str| {
        format!("{column} = case when {column} = 0 then 0 else {column} + cast($1 as bigint) end")
    };
    columns.iter().map(moved).collect::<Vec<_>>().join(", ")
}

/// Moves the times of the rows whose keys are after the first of two keys, up to the second.
async fn move_rows(
    tx: &Tx<'_>,
    table: &DueTimes,
    by: i64,
    (after, upto): ([i64; 2], [i64; 2]),
) -> Result<(), StoreError> {
    let DueTimes { table, key, columns, .. } = table;
    let moved = moved(columns);
    match key {
        [] => {
            let all = format!("update {table} set {moved}");
            tx.execute(&all, params![by]).await
        }
        [key] => {
            let rows = format!("update {table} set {moved} where {key} > $2 and {key} <= $3");
            tx.execute(&rows, params![by, after[0], upto[0]]).await
        }
        _ => {
            let key = key.join(", ");
            let rows = format!(
                "update {table} set {moved} where ({key}) > ($2, $3) and ({key}) <= ($4, $5)"
            );
            tx.execute(&rows, params![by, after[0], after[1], upto[0], upto[1]]).await
        }
    }
    .map(drop)
}
