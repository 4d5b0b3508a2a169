//! What a poll costs that is answered "not modified": the processor time of this process,
//! beside that of a bare loop of reqwest over the same URLs with the same headers.
//!
//! The contenders take turns, so that whatever else the machine does meets them all. The
//! server is another process, whose time does not count.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use chrono::TimeDelta;
use feedgate::net::{FetchRequest, HttpClient};
use feedgate_core::poll::Validators;
use futures_util::StreamExt;
use rustix::time::{ClockId, clock_gettime};

use super::crowd::{self, AnyError, Crowd};

/// Resources, each on a host of its own.
const MANY: usize = 400;
/// How often each contender polls them all; the first time does not count.
const ROUNDS: i32 = 13;
/// Requests at once.
const CONCURRENCY: usize = 64;
/// From one round to the next in simulated time: longer than any period, and all of them
/// within a day, so that no `robots.txt` is read again.
const ROUND_LATER: TimeDelta = TimeDelta::minutes(100);

/// Measures with resources at `path` and prints a table.
pub(crate) async fn compare(path: &str, database: String, port: u16) -> Result<(), AnyError> {
    let crowd = Crowd::gather(database, port).await?;
    crowd.watch(path, (MANY, MANY), Duration::ZERO).await?;
    crowd.poll_all(crowd::start()).await?;
    let urls: Vec<String> =
        (0..MANY).map(|n| format!("http://h{n}.test:{port}{path}/{n}")).collect();
    let urls = Arc::new(urls);
    let (bare, fetch) = (bare(port)?, crowd::client());
    let mut costs: [Vec<Duration>; 3] = Default::default();
    for round in 1..=ROUNDS {
        let begun = used();
        each(&urls, |url| ask_bare(bare.clone(), url)).await?;
        let then = used();
        each(&urls, |url| ask_guarded(fetch.clone(), url)).await?;
        let later = used();
        let polled = crowd.poll_all(crowd::start() + ROUND_LATER * round).await?;
        if polled != MANY {
            return Err(format!("{polled} were polled, not {MANY}").into());
        }
        if round > 1 {
            for (cost, took) in costs.iter_mut().zip([then - begun, later - then, used() - later]) {
                cost.push(took / u32::try_from(MANY)?);
            }
        }
    }
    print(&mut costs);
    Ok(())
}

fn print(costs: &mut [Vec<Duration>; 3]) {
    println!("| | µs a poll, best | median | of the bare loop, best | median |");
    println!("| --- | ---: | ---: | ---: | ---: |");
    let micros = |took: Duration| took.as_secs_f64() * 1e6;
    let mut bare = None;
    for (name, cost) in ["reqwest alone", "our guarded fetch", "a poll, recorded"].iter().zip(costs)
    {
        cost.sort();
        let (best, median) = (micros(cost[0]), micros(cost[cost.len() / 2]));
        let (bare_best, bare_median) = *bare.get_or_insert((best, median));
        let (to_best, to_median) = (best / bare_best, median / bare_median);
        println!("| {name} | {best:.0} | {median:.0} | {to_best:.2}x | {to_median:.2}x |");
    }
}

/// Asks for all `urls`, some at once.
async fn each<F, A>(urls: &[String], ask: F) -> Result<(), AnyError>
where
    F: Fn(String) -> A,
    A: Future<Output = Result<(), AnyError>> + Send + 'static,
{
    let request = urls.iter().map(|url| tokio::spawn(ask(url.clone())));
    let mut request = futures_util::stream::iter(request).buffer_unordered(CONCURRENCY);
    while let Some(answered) = request.next().await {
        answered??;
    }
    Ok(())
}

/// A client of reqwest as it comes, but for where names lead.
#[expect(clippy::disallowed_methods, reason = "it is what we are compared with")]
fn bare(port: u16) -> Result<reqwest::Client, AnyError> {
    // There may be one already; it is the same.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut builder = reqwest::Client::builder().no_proxy();
    for n in 0..MANY {
        builder = builder.resolve(&format!("h{n}.test"), SocketAddr::from(([127, 0, 0, 1], port)));
    }
    Ok(builder.build()?)
}

async fn ask_bare(client: reqwest::Client, url: String) -> Result<(), AnyError> {
    let request = client.get(url).header("If-None-Match", "\"1\"");
    let request = request
        .header("User-Agent", "feedgate/0.0 (+https://gateway.test/bot; 1 subscribers; feed-id=1)")
        .header("Accept", "application/atom+xml, application/rss+xml;q=0.9, */*;q=0.1")
        .header("Accept-Encoding", "gzip, br, zstd, deflate");
    let answer = request.send().await?;
    if answer.status() != 304 {
        return Err(format!("answered {}", answer.status()).into());
    }
    answer.bytes().await?;
    Ok(())
}

async fn ask_guarded(fetch: HttpClient, url: String) -> Result<(), AnyError> {
    let etag = Some(b"\"1\"".to_vec());
    let validators = Validators { url: url.clone(), etag, last_modified: None };
    let ask = FetchRequest { url: &url, validators: &validators, subscribers: 1, feed_id: Some(1) };
    fetch.get(ask).await.result?;
    Ok(())
}

/// The processor time this process has used, all of its threads.
fn used() -> Duration {
    clock_gettime(ClockId::ProcessCPUTime).try_into().unwrap_or_default()
}
