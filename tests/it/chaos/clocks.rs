//! The clock of a database on PostgreSQL, which can be set. That of SQLite is the clock of its node.

use std::cell::Cell;

use tokio_postgres::NoTls;

use crate::support::postgres::{Database, Kind};
use crate::support::random::Random;
use crate::support::until;

/// The longest step of a clock, in hours.
const MOST_HOURS: u64 = 6;
/// The longest short step, in seconds.
const MOST_SECONDS: u64 = 120;

/// The clock of the database.
pub(super) struct DatabaseClock {
    /// Leads to the server that takes writes.
    pub(super) url: String,
    seconds: Cell<i64>,
}

impl DatabaseClock {
    /// Makes the clock one that can be set; `None` on SQLite, and where the database has several cells, which
    /// are not found by the path that is changed here.
    pub(super) async fn new(
        database: &mut Database,
        replica: Option<u16>,
    ) -> Option<DatabaseClock> {
        if database.kind() == Kind::Sqlite || database.cells > 1 {
            return None;
        }
        // This function is found before that of the system.
        database.url.push_str("%2Cpg_catalog");
        let set = "create table set_by (seconds bigint not null);
             insert into set_by values (0);
             create function statement_timestamp() returns timestamptz language sql stable as
             'select pg_catalog.statement_timestamp() + seconds * interval ''1 second'' from set_by'";
        database.run(set).await;
        let mut url = database.url.clone();
        if let Some(replica) = replica {
            let parsed = url::Url::parse(&url).unwrap();
            let (host, port) = (parsed.host_str().unwrap(), parsed.port().unwrap());
            let (first, both) =
                (format!("@{host}:{port}/"), format!("@{host}:{port},{host}:{replica}/"));
            url = format!("{}&target_session_attrs=read-write", url.replace(&first, &both));
        }
        Some(DatabaseClock { url, seconds: Cell::new(0) })
    }

    /// Sets it so many seconds before or behind the right time. The database takes writes.
    pub(super) async fn set(&self, seconds: i64) {
        if self.seconds.replace(seconds) != seconds {
            let set = async || self.try_set(seconds).await.is_ok();
            until("the clock of the database is set", set).await;
        }
    }

    /// Fails while it has not noticed yet that it takes writes again.
    async fn try_set(&self, seconds: i64) -> Result<(), tokio_postgres::Error> {
        let (client, connection) = tokio_postgres::connect(&self.url, NoTls).await?;
        tokio::spawn(connection);
        client.batch_execute(&format!("update set_by set seconds = {seconds}")).await
    }
}

/// By how many seconds a clock is off, and what that is called.
pub(super) fn draw_offset(random: &mut Random) -> (&'static str, i64) {
    let seconds = 1 + random.below(MOST_SECONDS) as i64;
    let hours = (1 + random.below(MOST_HOURS) as i64) * 3_600;
    *random.one_of(&[
        ("clocks set forward by hours", hours),
        ("clocks set forward by hours", hours),
        ("clocks set back by hours", -hours),
        ("clocks set back by hours", -hours),
        ("clocks set forward by seconds", seconds),
        ("clocks set back by seconds", -seconds),
        ("clocks set right", 0),
    ])
}
