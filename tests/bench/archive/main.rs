//! How fast archived documents are served, beside nginx: `cargo bench --bench archive`.
//!
//! For each number of documents a log is written, a gateway (the real program, in a process
//! of its own) serves it on SQLite in a temporary folder, and nginx serves the same bytes as
//! files. `wrk` asks both, one after the other, for documents at random: first whole, then
//! with the entity tag they have; then for whole ones while a thousand entries a second are
//! published through the gateway. `FEEDGATE_BENCH_PAGES` is how many documents there are
//! instead, separated by commas, `FEEDGATE_BENCH_SECONDS` how long each question is asked.
//!
//! nginx and wrk are Debian's, and installed if they are missing. `docs/benchmarks.md` says
//! what came of it.
#![expect(clippy::print_stdout, reason = "a benchmark prints what it measured")]

mod load;
mod publisher;
mod servers;
mod written;

use std::env;
use std::time::Duration;

use self::load::{Load, Questions, ReceivedRequest};
use self::publisher::Publisher;
use self::servers::{Gateway, Nginx};

/// What goes wrong stops the measurement.
pub(crate) type AnyError = Box<dyn std::error::Error + Send + Sync>;

const MANY: &str = "1,100,100000";
/// What archive documents in memory may take: the default, and what all of them need. nginx
/// has them in the page cache of the system in either case.
const ROOMS: [(&str, &str); 2] = [("64 MiB", "67108864"), ("2 GiB", "2147483648")];

#[tokio::main]
async fn main() -> Result<(), AnyError> {
    servers::install()?;
    let many = env::var_os("FEEDGATE_BENCH_PAGES");
    let many = many.map_or(MANY.to_owned(), |many| many.to_string_lossy().into_owned());
    println!("| documents | memory | asked | feedgate/s | p99 | nginx/s | p99 | share |");
    println!("| ---: | ---: | --- | ---: | ---: | ---: | ---: | ---: |");
    for many in many.split(',') {
        measure(many.trim().parse()?).await?;
    }
    Ok(())
}

async fn measure(many: usize) -> Result<(), AnyError> {
    let folder = tempfile::tempdir()?;
    let publisher = Publisher::start().await?;
    let database = format!("sqlite:{}", folder.path().join("feedgate.db").display());
    let home = written::write(&database, many, &publisher).await?;
    let root = folder.path().join("files");
    for (n, (room, bytes)) in ROOMS.into_iter().enumerate() {
        if n > 0 && many < 1_000 {
            return Ok(()); // all of them have room
        }
        let gateway = Gateway::start(&database, bytes).await?;
        // What is copied first is at hand then, as far as there is room for it.
        let documents = written::copy(&gateway, &home, many, &root).await?;
        let nginx = Nginx::start(folder.path(), &root).await?;
        let questions = Questions { folder: folder.path(), documents: &documents };
        for request in [ReceivedRequest::Whole, ReceivedRequest::Tagged] {
            let ours = questions.ask(gateway.url(), request, |it| &it.ours)?;
            let theirs = questions.ask(nginx.url(), request, |it| &it.theirs)?;
            tell(many, room, request.name(), &ours, &theirs);
        }
        let publishing = publisher.publish(gateway.url());
        let ours = questions.ask(gateway.url(), ReceivedRequest::Whole, |it| &it.ours);
        let published = publishing.end().await;
        let what = format!("whole, {published} entries/s published");
        tell(many, room, &what, &ours?, &Load::NONE);
    }
    Ok(())
}

fn tell(many: usize, room: &str, what: &str, ours: &Load, theirs: &Load) {
    let share = ours.per_s / theirs.per_s;
    let share = if share.is_finite() { format!("{share:.2}") } else { String::new() };
    println!(
        "| {many} | {room} | {what} | {:.0} | {} | {:.0} | {} | {share} |",
        ours.per_s, ours.p99, theirs.per_s, theirs.p99,
    );
}

/// How long each question is asked.
pub(crate) fn seconds() -> Duration {
    let told = env::var_os("FEEDGATE_BENCH_SECONDS");
    let told = told.and_then(|told| told.to_string_lossy().parse().ok());
    Duration::from_secs(told.unwrap_or(10))
}
