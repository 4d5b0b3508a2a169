//! What polling costs: `cargo bench --bench polling`.
//!
//! First the processor time of a poll that is answered "not modified", beside a bare loop
//! of reqwest; then an hour in which 100,000 resources become due, and the next, in
//! simulated time. On SQLite in a temporary folder, and on the PostgreSQL of
//! `FEEDGATE_BENCH_POSTGRES`, an empty database, if that is set. `FEEDGATE_BENCH_RESOURCES`
//! is how many there are instead. `docs/benchmarks.md` says what came of it.
//!
//! As `origin` this program is the server that is polled.
#![expect(clippy::print_stdout, reason = "a benchmark prints what it measured")]

mod cost;
mod crowd;
mod origin;

use std::env;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use chrono::TimeDelta;
use tokio::net::TcpListener;

use self::crowd::{Course, Crowd, Trouble};

/// Resources that become due in an hour.
const MANY: usize = 100_000;
/// Resources on one host.
const ON_A_HOST: usize = 4;

#[tokio::main]
async fn main() -> Result<(), Trouble> {
    if env::args().nth(1).as_deref() == Some("origin") {
        return be_origin().await;
    }
    let mut origin = Origin::start()?;
    let port = origin.port()?;
    println!("## A poll that is answered \"not modified\"\n");
    for (what, path) in [("a connection for each", ""), ("connections kept", origin::KEPT)] {
        for (name, database) in databases(&format!("cost{}", path.len()))? {
            println!("{what}, {name}:\n");
            let folder = tempfile::tempdir()?;
            cost::compare(path, database.at(&folder), port).await?;
            println!();
        }
    }
    println!("## An hour\n");
    for (name, database) in databases("hour")? {
        let folder = tempfile::tempdir()?;
        hours(name, database.at(&folder), port).await?;
    }
    Ok(())
}

/// Where to measure.
enum Database {
    /// In a folder of its own.
    File,
    /// This one.
    Server(String),
}

impl Database {
    fn at(&self, folder: &tempfile::TempDir) -> String {
        match self {
            Database::File => format!("sqlite:{}", folder.path().join("feedgate.db").display()),
            Database::Server(url) => url.clone(),
        }
    }
}

/// The databases there are; on the server a schema called `schema`, which must exist.
fn databases(schema: &str) -> Result<Vec<(&'static str, Database)>, Trouble> {
    let mut databases = vec![("SQLite", Database::File)];
    if let Some(url) = env::var_os("FEEDGATE_BENCH_POSTGRES") {
        let url = url.into_string().map_err(|_| "FEEDGATE_BENCH_POSTGRES is no text")?;
        let sign = if url.contains('?') { '&' } else { '?' };
        let url = format!("{url}{sign}options=-c%20search_path%3D{schema}");
        databases.push(("PostgreSQL", Database::Server(url)));
    }
    Ok(databases)
}

/// The first hour, in which everything is new, and the second, in which nothing is.
async fn hours(name: &str, database: String, port: u16) -> Result<(), Trouble> {
    let many = match env::var_os("FEEDGATE_BENCH_RESOURCES") {
        Some(many) => many.to_string_lossy().parse()?,
        None => MANY,
    };
    let hour = TimeDelta::hours(1);
    let crowd = Crowd::gather(database, port).await?;
    let apart = Duration::from_secs(3_600) / u32::try_from(many)?;
    crowd.watch("", (many, many / ON_A_HOST), apart).await?;
    let begin = crowd::start();
    tell(name, "first hour, documents", &crowd.pass(begin, begin + hour).await?);
    // Each asked to be left alone for an hour, and is spread over a tenth more.
    let end = begin + hour * 2 + TimeDelta::minutes(7);
    tell(name, "second hour, \"not modified\"", &crowd.pass(begin + hour, end).await?);
    Ok(())
}

fn tell(name: &str, what: &str, course: &Course) {
    let late = [0.5, 0.99, 0.999, 1.0].map(|share| course.quantile_ms(share));
    println!(
        "{name}, {what}: {} polls, begun late by {} ms (median), {} ms (p99), {} ms (p99.9), {} ms \
         (most); busy for {:.0} % of the time; memory in MB: {:?}",
        course.late_ms.len(),
        late[0],
        late[1],
        late[2],
        late[3],
        course.busy * 100.0,
        course.memory_kb.iter().map(|kb| kb / 1_024).collect::<Vec<_>>(),
    );
}

/// The server as a process of its own; it ends with this value.
struct Origin(Child);

impl Origin {
    fn start() -> Result<Origin, Trouble> {
        let mut command = Command::new(env::current_exe()?);
        Ok(Origin(command.arg("origin").stdout(Stdio::piped()).spawn()?))
    }

    fn port(&mut self) -> Result<u16, Trouble> {
        let told = self.0.stdout.take().ok_or("a pipe is missing")?;
        let mut line = String::new();
        BufReader::new(told).read_line(&mut line)?;
        Ok(line.trim().parse()?)
    }
}

impl Drop for Origin {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

async fn be_origin() -> Result<(), Trouble> {
    let listener = TcpListener::bind("0.0.0.0:0").await?;
    println!("{}", listener.local_addr()?.port());
    std::io::stdout().flush()?;
    Ok(origin::serve(listener).await?)
}
