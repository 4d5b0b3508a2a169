//! What polling costs: `cargo bench --bench polling`.
//!
//! First the processor time of a poll that is answered "not modified", beside a bare loop
//! of reqwest; then an hour in which 100,000 resources become due, and the next, in
//! simulated time. On SQLite in a temporary folder, and on the PostgreSQL of
//! `FEEDGATE_BENCH_POSTGRES`, an empty database, if that is set. `FEEDGATE_BENCH_RESOURCES`
//! is how many there are instead (0 leaves that part out), `FEEDGATE_BENCH_MINUTES` within
//! how many minutes of each hour they become due instead of 60. `docs/benchmarks.md` says what came of it.
//!
//! As `origin` this program is the server that is polled.
#![expect(clippy::print_stdout, reason = "a benchmark prints what it measured")]

mod cost;
mod crowd;
mod origin;

use std::env;
use std::io::{BufRead, BufReader, Write};
use std::num::ParseIntError;
use std::process::{Child, Command, Stdio};
use std::str::FromStr;

use chrono::TimeDelta;
use tokio::net::TcpListener;

use self::crowd::{AnyError, Course, Crowd, WorkTime};

/// Resources that become due in an hour.
const MANY: usize = 100_000;
/// Resources on one host.
const ON_A_HOST: usize = 4;

#[tokio::main]
async fn main() -> Result<(), AnyError> {
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
    let many = number("FEEDGATE_BENCH_RESOURCES", MANY)?;
    if many == 0 {
        return Ok(());
    }
    let within = TimeDelta::minutes(number("FEEDGATE_BENCH_MINUTES", 60)?);
    println!("## {many} resources due within {} minutes\n", within.num_minutes());
    for (name, database) in databases("hour")? {
        let folder = tempfile::tempdir()?;
        let crowd = Crowd::gather(database.at(&folder), port).await?;
        two_rounds(name, &crowd, many, within).await?;
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
fn databases(schema: &str) -> Result<Vec<(&'static str, Database)>, AnyError> {
    let mut databases = vec![("SQLite", Database::File)];
    if let Some(url) = env::var_os("FEEDGATE_BENCH_POSTGRES") {
        let url = url.into_string().map_err(|_| "FEEDGATE_BENCH_POSTGRES is no text")?;
        let sign = if url.contains('?') { '&' } else { '?' };
        let url = format!("{url}{sign}options=-c%20search_path%3D{schema}");
        databases.push(("PostgreSQL", Database::Server(url)));
    }
    Ok(databases)
}

/// The number in this variable, if it is set.
fn number<T: FromStr<Err = ParseIntError>>(name: &str, otherwise: T) -> Result<T, AnyError> {
    env::var_os(name).map_or(Ok(otherwise), |text| Ok(text.to_string_lossy().parse()?))
}

/// The first hour, in which everything is new, and the second, in which nothing is. All
/// become due `within` the beginning of each.
async fn two_rounds(
    name: &str,
    crowd: &Crowd,
    many: usize,
    within: TimeDelta,
) -> Result<(), AnyError> {
    let hour = TimeDelta::hours(1);
    let apart = within.to_std()? / u32::try_from(many)?;
    crowd.watch("", (many, many.div_ceil(ON_A_HOST)), apart).await?;
    let begin = crowd::start();
    tell(name, "documents", &crowd.pass(begin, begin + hour, WorkTime::Counted).await?);
    // Each asked to be left alone for an hour, and is spread over a tenth more.
    let end = begin + hour + within + TimeDelta::minutes(7);
    tell(name, "\"not modified\"", &crowd.pass(begin + hour, end, WorkTime::Counted).await?);
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
    fn start() -> Result<Origin, AnyError> {
        let mut command = Command::new(env::current_exe()?);
        Ok(Origin(command.arg("origin").stdout(Stdio::piped()).spawn()?))
    }

    fn port(&mut self) -> Result<u16, AnyError> {
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

async fn be_origin() -> Result<(), AnyError> {
    let listener = TcpListener::bind("0.0.0.0:0").await?;
    println!("{}", listener.local_addr()?.port());
    std::io::stdout().flush()?;
    Ok(origin::serve(listener).await?)
}
