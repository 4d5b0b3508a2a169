//! How fast one change reaches its subscribers: `cargo bench --bench fanout`.
//!
//! For each store, each way the subscribers are spread and each number of them, a fresh gateway:
//! the real program in a process of its own, on SQLite in a temporary folder and on the
//! PostgreSQL database that `FEEDGATE_BENCH_POSTGRES` names, if it is set. `spread` gives every
//! subscriber an address of its own, so that every notification needs a new connection; `one
//! host` puts all of them on one address, as subscribers on a platform are. All of them, and the
//! publisher, are one thread of this program. They register as rssCloud clients do. Then the feed
//! changes, and is pinged once. Beside it, a bare reqwest client posts as many requests to the
//! same subscribers.
//!
//! `FEEDGATE_BENCH_SUBSCRIBERS` is how many there are instead, separated by commas, and
//! `FEEDGATE_BENCH_PROGRAM` another build of feedgate to measure.
//! `docs/benchmarks.md` shows the results.
#![expect(clippy::print_stdout, reason = "a benchmark prints what it measured")]

mod bare;
mod callbacks;
mod gateway;
#[path = "../program.rs"]
mod program;
#[path = "../responder.rs"]
mod responder;

use std::env;
use std::sync::Arc;
use std::time::{Duration, Instant};

use self::callbacks::{CallbackServer, Spread};
use self::gateway::Gateway;

/// What goes wrong stops the measurement.
pub(crate) type AnyError = Box<dyn std::error::Error + Send + Sync>;

const MANY: &str = "1,100,1000,5000,20000";
/// The longest that a fan-out is waited for.
const PATIENCE: Duration = Duration::from_secs(300);

#[tokio::main]
async fn main() -> Result<(), AnyError> {
    let many = env::var_os("FEEDGATE_BENCH_SUBSCRIBERS");
    let many = many.map_or(MANY.to_owned(), |many| many.to_string_lossy().into_owned());
    println!(
        "| store | subscribers | registrations/s | first ms | last ms | settled ms | a second \
         | CPU ms each | times bare POST | peak MiB | told | twice |"
    );
    println!("|{}", " ---: |".repeat(12));
    for many in many.split(',') {
        for spread in [Spread::OwnAddresses, Spread::OneHost] {
            let folder = tempfile::tempdir()?;
            let sqlite = format!("sqlite:{}", folder.path().join("feedgate.db").display());
            measure("SQLite", &sqlite, spread, many.trim().parse()?).await?;
            if let Some(url) = env::var_os("FEEDGATE_BENCH_POSTGRES") {
                let url = url.into_string().map_err(|_| "FEEDGATE_BENCH_POSTGRES is no text")?;
                empty(&url).await?;
                measure("PostgreSQL", &url, spread, many.trim().parse()?).await?;
            }
        }
    }
    Ok(())
}

/// Drops what an earlier measurement left in the database.
async fn empty(url: &str) -> Result<(), AnyError> {
    let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await?;
    let connection = tokio::spawn(connection);
    client.batch_execute("drop schema public cascade; create schema public").await?;
    drop(client);
    connection.await??;
    Ok(())
}

async fn measure(store: &str, database: &str, spread: Spread, many: usize) -> Result<(), AnyError> {
    let callbacks = Arc::new(CallbackServer::start(many, spread)?);
    let gateway = Gateway::start(database).await?;
    let begun = Instant::now();
    gateway.register_all(&callbacks, many).await?;
    let registering = begun.elapsed();
    gateway.rested().await?;
    callbacks.begin();

    let (cpu, begun) = (gateway.cpu()?, Instant::now());
    gateway.ping(&callbacks.topic()).await?;
    while callbacks.told() < many && begun.elapsed() < PATIENCE {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    gateway.rested().await?;
    let (settled, cpu) = (begun.elapsed(), gateway.cpu()? - cpu);
    let (first, last) = callbacks.course(begun);
    let (told, twice) = (callbacks.told(), callbacks.twice());
    let bare = bare::post_to_all(&callbacks, many).await?;
    println!(
        "| {store}, {spread} | {many} | {:.0} | {} | {} | {} | {:.0} | {:.2} | {:.1} | {:.0} | {told} | {twice} |",
        many as f64 / registering.as_secs_f64(),
        first.as_millis(),
        last.as_millis(),
        settled.as_millis(),
        many as f64 / last.as_secs_f64(),
        cpu * 1_000.0 / many as f64,
        last.as_secs_f64() / bare.as_secs_f64(),
        gateway.peak_mib()?,
    );
    Ok(())
}
