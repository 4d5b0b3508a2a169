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

mod ports;

// How a statement gets to a database and back.
mod sql;
mod tx;

mod migrate;
mod postgres;
mod sqlite;

mod db;

// The ports' implementations.
mod accounts;
mod append;
mod backfills;
mod changes;
mod claims;
mod collecting;
mod collections;
mod deliveries;
mod details;
mod endings;
mod entries;
mod events;
mod forget;
mod hosts;
mod hours;
mod intents;
mod log;
mod moves;
mod onward;
mod pages;
mod past;
mod pings;
mod queue;
mod recorder;
mod records;
mod resources;
mod schedule;
mod storage;
mod subscriptions;
mod survey;
mod tell;
mod upkeep;
mod upstreams;

use std::sync::Arc;

use crate::domain::limit::Groups;
use crate::domain::page::Cut;
use crate::domain::sink::Onward;

pub use collecting::COLLECTED_AT_ONCE;
pub use ports::{
    Accounts, Appended, Archives, Backfills, Came, Changes, Collections, Counted, Dropped,
    DueBackfill, DueResource, Events, Filter, Gauges, Group, Hosts, Hour, Intents, Line, Listed,
    Log, Moves, News, Numbers, Open, OpenPage, Owed, Pings, Queue, Resources, Room, Schedule,
    Settled, Sinks, Span, Storage, Store, StoreError, Subscriptions, Survey, Telling, Upkeep,
    Upstreams, Watched, Window,
};

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
    pub groups: Groups,
    /// How much a page of a log takes. All nodes should be given the same.
    pub cut: Cut,
    /// Which changes are pinged onward, and to whom.
    pub onward: Onward,
}

/// Opens the store, makes it if it is new, and brings its schema up to date.
pub async fn open(settings: &Settings) -> Result<Arc<dyn Store>, StoreError> {
    let db = db::Db::open(settings).await?;
    Ok(db)
}
