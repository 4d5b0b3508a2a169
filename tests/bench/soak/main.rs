//! Whether memory and delay stay flat under a steady load: `cargo bench --bench soak`.
//!
//! The gateway is the real program in a process of its own, on SQLite in a temporary folder or on the
//! PostgreSQL database that `FEEDGATE_BENCH_POSTGRES` names, which must be empty. 500 feeds, each at an
//! address of its own, get an entry each second and are pinged; each has ten subscribers on ten
//! platforms, half of them with Atom and half with JSON. So 500 entries a second come in and 5,000
//! notifications a second go out. Publishers and subscribers are one thread of this program. At the
//! end, each subscriber must have each entry, in order; otherwise the program fails.
//!
//! `FEEDGATE_BENCH_SECONDS` is how long it lasts, in seconds (1,800), `FEEDGATE_BENCH_FEEDS` the number of
//! feeds (500), and `FEEDGATE_BENCH_PROGRAM` another build to measure. `docs/benchmarks.md` shows the
//! results.
#![expect(clippy::print_stdout, reason = "a benchmark prints what it measured")]

#[path = "../program.rs"]
mod program;
mod report;
#[path = "../responder.rs"]
mod responder;
mod traffic;

use std::env;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::StreamExt;

use self::program::{Program, command};
use self::report::Report;
use self::traffic::{SUBSCRIBERS_PER_FEED, Traffic};

/// What goes wrong stops the measurement.
pub(crate) type AnyError = Box<dyn std::error::Error + Send + Sync>;

/// Feeds change in turns, so many times a second.
const TURNS_PER_S: u32 = 50;
/// From one line of the table to the next.
const LINE: Duration = Duration::from_secs(60);
/// The longest that the last notifications are waited for.
const PATIENCE: Duration = Duration::from_secs(120);
/// Subscriptions that are requested at the same time.
const TOGETHER: usize = 32;

#[tokio::main]
async fn main() -> Result<(), AnyError> {
    let lasts = Duration::from_secs(number("FEEDGATE_BENCH_SECONDS", 1_800)?);
    let feeds = usize::try_from(number("FEEDGATE_BENCH_FEEDS", 500)?)?;
    let folder = tempfile::tempdir()?;
    let sqlite = format!("sqlite:{}", folder.path().join("feedgate.db").display());
    let database = setting("FEEDGATE_BENCH_POSTGRES").unwrap_or(sqlite);

    let login = login(&database)?;
    let traffic = Traffic::start(feeds)?;
    let polls = (feeds * 4).to_string();
    let gateway = Arc::new(Program::start(&database, &[("FEEDGATE_POLLS_PER_S", &polls)]).await?);
    subscribe_all(&gateway, &login, &traffic).await?;

    let report = Report::new(Arc::clone(&traffic), Arc::clone(&gateway), folder.path());
    run(&gateway, &traffic, report, lasts).await?;
    let waiting = Instant::now();
    while traffic.undelivered() > 0 && waiting.elapsed() < PATIENCE {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let (lost, again) = (traffic.undelivered() + traffic.gaps(), traffic.again());
    println!(
        "{} entries, {} subscribers; after the last one all was delivered within {:.1} s; \
         {lost} lost or out of order, {again} received again",
        traffic.published(),
        feeds * SUBSCRIBERS_PER_FEED,
        waiting.elapsed().as_secs_f64()
    );
    if lost > 0 { Err("notifications are missing".into()) } else { Ok(()) }
}

fn setting(name: &str) -> Option<String> {
    Some(env::var_os(name)?.to_string_lossy().into_owned())
}

fn number(name: &str, default: u64) -> Result<u64, AnyError> {
    Ok(setting(name).map_or(Ok(default), |value| value.parse())?)
}

/// Creates an account, and returns its login and token.
fn login(database: &str) -> Result<(String, String), AnyError> {
    command().args(["migrate", "--database", database]).output()?;
    let arguments = ["token", "create", "--login", "soak", "--database", database];
    let output = command().args(arguments).output()?;
    let printed = String::from_utf8(output.stdout)?;
    let Some((login, token)) = printed.trim().split_once(':') else {
        let why = String::from_utf8_lossy(&output.stderr);
        return Err(format!("no token was created: {}, {why}", output.status).into());
    };
    Ok((login.to_owned(), token.to_owned()))
}

async fn subscribe_all(
    gateway: &Program,
    (login, token): &(String, String),
    traffic: &Traffic,
) -> Result<(), AnyError> {
    let subscribing = traffic.subscriptions().map(|(topic, callback, format)| async move {
        let form = [
            ("hub.mode", "subscribe"),
            ("hub.topic", topic.as_str()),
            ("hub.callback", callback.as_str()),
            ("format", format),
        ];
        let body = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(form).finish();
        let request = gateway.client().post(gateway.url()).basic_auth(login, Some(token));
        let answer = request.body(body).send().await?;
        match answer.status().as_u16() {
            204 => Ok::<(), AnyError>(()),
            status => Err(format!("subscribing: {status} {}", answer.text().await?).into()),
        }
    });
    let mut subscribing = futures_util::stream::iter(subscribing).buffer_unordered(TOGETHER);
    while let Some(subscribed) = subscribing.next().await {
        subscribed?;
    }
    Ok(())
}

/// Publishes and pings at a steady rate, and prints a line for each minute.
async fn run(
    gateway: &Arc<Program>,
    traffic: &Traffic,
    mut report: Report,
    lasts: Duration,
) -> Result<(), AnyError> {
    let begun = Instant::now();
    let mut turns = tokio::time::interval(Duration::from_secs(1) / TURNS_PER_S);
    let mut next_line = LINE.min(lasts);
    while begun.elapsed() < lasts {
        turns.tick().await;
        let topics = traffic.publish_share(TURNS_PER_S as usize);
        let gateway = Arc::clone(gateway);
        // A failed ping is noticed at the end: the entry is missing.
        tokio::spawn(async move {
            let mut form = vec![("hub.mode", "publish")];
            form.extend(topics.iter().map(|topic| ("hub.url", topic.as_str())));
            gateway.post("/hub", &form).await.unwrap_or_default();
        });
        if begun.elapsed() >= next_line {
            report.line()?;
            next_line += LINE;
        }
    }
    Ok(())
}
