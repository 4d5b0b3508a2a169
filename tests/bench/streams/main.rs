//! How fast one entry reaches many open streams, and what an open stream costs: `cargo bench --bench
//! streams`.
//!
//! The gateway is the real program in a process of its own, on SQLite in a temporary folder. Its
//! clients open streams of server-sent events (`Accept: text/event-stream`) of one feed and wait.
//! Then the feed gets an entry, and is pinged. Beside it, another process writes as many bytes to as
//! many connections and does nothing else: the physical limit of the measurement.
//!
//! `FEEDGATE_BENCH_STREAMS` is how many there are instead, separated by commas.
//! `docs/benchmarks.md` shows the results.
#![expect(clippy::print_stdout, reason = "a benchmark prints what it measured")]

mod bare;
mod clients;
#[path = "../program.rs"]
mod program;
mod publisher;

use std::env;
use std::time::{Duration, Instant};

use self::clients::Clients;
use self::program::{Program, command};
use self::publisher::Publisher;

/// What goes wrong stops the measurement.
pub(crate) type AnyError = Box<dyn std::error::Error + Send + Sync>;

const MANY: &str = "100,1000,10000";
/// How many entries are published, one after the other. The best and the median count.
const ROUNDS: usize = 5;

fn main() -> Result<(), AnyError> {
    if env::args().nth(1).as_deref() == Some(bare::ARGUMENT) {
        return bare::serve();
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(measure_all())
}

async fn measure_all() -> Result<(), AnyError> {
    let many = env::var_os("FEEDGATE_BENCH_STREAMS");
    let many = many.map_or(MANY.to_owned(), |many| many.to_string_lossy().into_owned());
    println!(
        "| streams | opened/s | kB each | first ms | last ms, best | median | CPU µs each \
         | bare, last ms | times bare |"
    );
    println!("|{}", " ---: |".repeat(9));
    for many in many.split(',') {
        measure(many.trim().parse()?).await?;
    }
    Ok(())
}

async fn measure(many: usize) -> Result<(), AnyError> {
    let folder = tempfile::tempdir()?;
    let database = format!("sqlite:{}", folder.path().join("feedgate.db").display());
    command().args(["migrate", "--database", &database]).output()?;
    let arguments = ["token", "create", "--login", "bench", "--database", &database];
    let token = String::from_utf8(command().args(arguments).output()?.stdout)?;
    let token = token.split_whitespace().last().ok_or("no token was created")?.to_owned();
    let limit = (many + 100).to_string();
    let gateway = Program::start(
        &database,
        &[
            ("FEEDGATE_MAX_STREAMS", &limit),
            ("FEEDGATE_MAX_STREAMS_PER_ACCOUNT", &limit),
            ("FEEDGATE_MAX_CONNECTIONS", &limit),
            ("FEEDGATE_MAX_CONNECTIONS_PER_CLIENT", &limit),
        ],
    )
    .await?;
    let publisher = Publisher::start()?;
    let login = token.split_once(':').ok_or("the token has no login")?;
    let topic = publisher.topic();
    subscribe(&gateway, login, &topic).await?;

    let before = gateway.memory_mib("VmRSS")?;
    let begun = Instant::now();
    let mut clients = Clients::open(many, gateway.url(), &request(login, &topic)).await?;
    let opening = begun.elapsed();
    let each_kb = (gateway.memory_mib("VmRSS")? - before) * 1_024.0 / many as f64;

    let (mut firsts, mut lasts, cpu) = (Vec::new(), Vec::new(), gateway.cpu()?);
    for _ in 0..ROUNDS {
        let marker = publisher.publish();
        let begun = Instant::now();
        gateway.post("/ping", &[("url", &topic)]).await?;
        let (first, last) = clients.receive(&marker, begun).await?;
        firsts.push(first);
        lasts.push(last);
    }
    let cpu_each = (gateway.cpu()? - cpu) / (ROUNDS * many) as f64;
    let event_bytes = clients.event_bytes();
    drop((clients, gateway));
    let bare = bare::measure(many, event_bytes, ROUNDS).await?;
    print_row(many, &mut [firsts, lasts, bare], (opening, each_kb, cpu_each));
    Ok(())
}

fn print_row(many: usize, times: &mut [Vec<Duration>; 3], costs: (Duration, f64, f64)) {
    let ms = |time: Duration| time.as_secs_f64() * 1_000.0;
    times.iter_mut().for_each(|times| times.sort_unstable());
    let [firsts, lasts, bare] = times;
    let (opening, each_kb, cpu_each) = costs;
    println!(
        "| {many} | {:.0} | {each_kb:.1} | {:.0} | {:.0} | {:.0} | {:.0} | {:.0} | {:.1} |",
        many as f64 / opening.as_secs_f64(),
        ms(firsts[ROUNDS / 2]),
        ms(lasts[0]),
        ms(lasts[ROUNDS / 2]),
        cpu_each * 1e6,
        ms(bare[ROUNDS / 2]),
        ms(lasts[ROUNDS / 2]) / ms(bare[ROUNDS / 2]),
    );
}

/// Subscribes the account to the feed; streams are for subscribers only.
async fn subscribe(gateway: &Program, login: (&str, &str), topic: &str) -> Result<(), AnyError> {
    let body = url::form_urlencoded::Serializer::new(String::new())
        .append_pair("hub.mode", "subscribe")
        .append_pair("hub.topic", topic)
        .append_pair("hub.callback", "https://push.superfeedr.com/dev/null")
        .append_pair("retrieve", "true") // the answer waits for the first fetch
        .finish();
    let request = gateway.client().post(gateway.url()).basic_auth(login.0, Some(login.1));
    request.body(body).send().await?.error_for_status()?;
    Ok(())
}

/// The request of each client.
fn request(login: (&str, &str), topic: &str) -> String {
    use base64::Engine;
    let query = url::form_urlencoded::Serializer::new(String::new())
        .append_pair("hub.mode", "retrieve")
        .append_pair("hub.topic", topic)
        .finish();
    let login =
        base64::engine::general_purpose::STANDARD.encode(format!("{}:{}", login.0, login.1));
    format!(
        "GET /?{query} HTTP/1.1\r\nHost: gateway.test\r\nAccept: text/event-stream\r\n\
         Authorization: Basic {login}\r\n\r\n"
    )
}
