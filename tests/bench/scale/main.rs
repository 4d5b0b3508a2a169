//! Whether the cost of an operation grows with what is stored: `cargo bench --bench scale`.
//!
//! Fills a database with 10,000, 100,000 and 1,000,000 resources of 10 subscriptions each, and runs
//! each hot operation of the store some hundred times on random resources: on SQLite in a temporary
//! folder, and on the PostgreSQL database that `FEEDGATE_BENCH_POSTGRES` names, if it is set. The
//! schema `scale` of that database is dropped and created. `FEEDGATE_BENCH_RESOURCES` is the
//! numbers of resources instead, separated by commas. `docs/benchmarks.md` shows the results.
#![expect(clippy::print_stdout, reason = "a benchmark prints what it measured")]

mod fill;
mod operations;
mod rows;
mod table;

use std::env;

use feedgate_core::host_groups::HostGroups;
use feedgate_core::page::PageLimits;
use feedgate_store::{self as store, StoreSettings};

use self::operations::Operations;
use self::rows::RowCounter;
use self::table::Table;

/// A failure that stops the measurement.
pub(crate) type Failure = Box<dyn std::error::Error + Send + Sync>;

/// The numbers of resources.
const SIZES: &str = "10000,100000,1000000";

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let sizes = env::var_os("FEEDGATE_BENCH_RESOURCES");
    let sizes = sizes.map_or(SIZES.to_owned(), |sizes| sizes.to_string_lossy().into_owned());
    let sizes = sizes.split(',').map(|size| size.trim().parse());
    let sizes = sizes.collect::<Result<Vec<i64>, _>>()?;
    let folder = tempfile::tempdir()?;
    let mut table = Table::new("SQLite", "kB read");
    for size in &sizes {
        let url = format!("sqlite:{}", folder.path().join(format!("{size}.db")).display());
        measure(&url, *size, &mut table).await?;
    }
    table.print();
    if let Some(server) = env::var_os("FEEDGATE_BENCH_POSTGRES") {
        let server = server.into_string().map_err(|_| "FEEDGATE_BENCH_POSTGRES is no text")?;
        let sign = if server.contains('?') { '&' } else { '?' };
        let url = format!("{server}{sign}options=-c%20search_path%3Dscale");
        let mut table = Table::new("PostgreSQL", "rows read");
        for size in &sizes {
            fill::empty(&server).await?;
            measure(&url, *size, &mut table).await?;
        }
        table.print();
    }
    Ok(())
}

/// Fills a new database with `size` resources, and measures each operation.
async fn measure(url: &str, size: i64, table: &mut Table) -> Result<(), Failure> {
    let settings = StoreSettings {
        url: url.to_owned(),
        // One connection, so that its counters of rows are complete.
        connections: 1,
        groups: HostGroups::new(std::time::Duration::ZERO),
        page_limits: PageLimits::default(),
        listed: Default::default(),
        forwarding: Default::default(),
        anonymous_bytes_per_day: 256 << 20,
        account_bytes_per_day: 32 << 30,
        cells: 1,
        secret_keys: Default::default(),
    };
    store::open(&settings).await?.close().await;
    let begun = std::time::Instant::now();
    fill::fill(url, size).await?;
    println!("{size} resources, filled in {:.0} s", begun.elapsed().as_secs_f64());
    let store = store::open(&settings).await?;
    let counter = RowCounter::new(url, store.clone()).await?;
    Operations::new(store.clone(), counter, size).measure(table).await?;
    store.close().await;
    Ok(())
}
