//! The one place where state lives: the ports, and the two stores behind them.
//!
//! The ports speak the domain's language and say what happens when things go
//! wrong. SQLite (`sqlite`) and PostgreSQL (`postgres`) both stand behind all of
//! them and pass one contract suite, `tests/it/store/`.
//!
//! What holds in every port:
//!
//! * What must stand or fall together is one transaction. When a call has returned
//!   `Ok`, what it did survives `kill -9`.
//! * `now` is an argument. Times are kept in microseconds.
//! * An error is never read as "no such row".

mod ports;

pub use ports::{
    Accounts, Appended, DueResource, Filter, Gauges, Hosts, Intents, Listed, Log, News, Pings,
    Resources, Room, Settled, Store, StoreError, Subscriptions, Upkeep,
};
