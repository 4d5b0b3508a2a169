//! How fast one change reaches its subscribers: `cargo bench --bench fanout`.
//!
//! For each number of subscribers a fresh gateway, the real program in a process of its own,
//! on SQLite in a temporary folder. Every subscriber has an address of its own, so that every
//! notification needs a new connection: the hard case, and the usual one. All of them, and
//! the publisher, are one thread of this program. One subscriber registers as any would; the
//! others are put into the database. Then the feed changes, and is pinged once.
//! `FEEDGATE_BENCH_SUBSCRIBERS` is how many there are instead, separated by commas, and
//! `FEEDGATE_BENCH_PROGRAM` another build of feedgate to measure.
//! `docs/benchmarks.md` says what came of it.
#![expect(clippy::print_stdout, reason = "a benchmark prints what it measured")]

mod gateway;
mod sink;

use std::env;
use std::sync::Arc;
use std::time::{Duration, Instant};

use feedgate_core::host_groups::HostGroups;
use feedgate_core::page::PageLimits;
use feedgate_core::subscription::{Format, Lease, Statuses, SubscriptionRequest, Updates};
use feedgate_core::topic::{Callback, Topic};
use feedgate_protocol::Protocol;
use feedgate_store as store;
use futures_util::StreamExt;

use self::gateway::Gateway;
use self::sink::Sink;

/// What goes wrong stops the measurement.
pub(crate) type Trouble = Box<dyn std::error::Error + Send + Sync>;

const MANY: &str = "1,100,1000,5000,10000,100000";
/// Subscriptions made side by side, so that they are committed together.
const SUBSCRIBE_CONCURRENCY: usize = 200;
/// The longest that a fan-out is waited for.
const PATIENCE: Duration = Duration::from_secs(300);

#[tokio::main]
async fn main() -> Result<(), Trouble> {
    let many = env::var_os("FEEDGATE_BENCH_SUBSCRIBERS");
    let many = many.map_or(MANY.to_owned(), |many| many.to_string_lossy().into_owned());
    println!(
        "| subscribers | first ms | last ms | settled ms | a second | CPU s | peak MiB | told | twice |"
    );
    println!("| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |");
    for many in many.split(',') {
        measure(many.trim().parse()?).await?;
    }
    Ok(())
}

async fn measure(many: usize) -> Result<(), Trouble> {
    let folder = tempfile::tempdir()?;
    let database = format!("sqlite:{}", folder.path().join("feedgate.db").display());
    let sink = Arc::new(Sink::start(many)?);
    let gateway = Gateway::start(&database).await?;
    gateway.register(&sink).await?;
    subscribe(&database, &sink, many).await?;
    gateway.rested().await?;
    sink.begin();

    let (cpu, begun) = (gateway.cpu()?, Instant::now());
    gateway.ping(&sink.topic()).await?;
    while sink.told() < many && begun.elapsed() < PATIENCE {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    gateway.rested().await?;
    let (settled, cpu) = (begun.elapsed(), gateway.cpu()? - cpu);
    let (first, last) = sink.course(begun);
    println!(
        "| {many} | {} | {} | {} | {:.0} | {cpu:.2} | {:.0} | {} | {} |",
        first.as_millis(),
        last.as_millis(),
        settled.as_millis(),
        many as f64 / last.as_secs_f64(),
        gateway.peak_mib()?,
        sink.told(),
        sink.twice(),
    );
    Ok(())
}

/// Puts all subscriptions but the first into the database.
async fn subscribe(database: &str, sink: &Sink, many: usize) -> Result<(), Trouble> {
    let groups = HostGroups::new(Duration::ZERO);
    let (url, cut) = (database.to_owned(), PageLimits::default());
    let settings =
        store::StoreSettings { url, connections: 1, groups, cut, forwarding: Default::default() };
    let store = store::open(&settings).await?;
    let now = feedgate::jobs::runner::now();
    let wishes = (1..many).map(|n| async move {
        let wish = SubscriptionRequest {
            account: None,
            topic: Topic::parse(sink.topic())?,
            callback: Callback::parse(sink.callback(n))?,
            protocol: Protocol::HttpPost,
            format: Format::Raw,
            secret: None,
            updates: Updates::default(),
            statuses: Statuses::Never,
            lease: Lease::RSSCLOUD,
        };
        Ok::<_, Trouble>(wish)
    });
    let store = &*store;
    let subscribing = wishes.map(|wish| async move {
        store.subscribe(&wish.await?, now).await?;
        Ok::<_, Trouble>(())
    });
    let mut subscribing =
        futures_util::stream::iter(subscribing).buffer_unordered(SUBSCRIBE_CONCURRENCY);
    while let Some(subscribed) = subscribing.next().await {
        subscribed?;
    }
    store.close().await;
    Ok(())
}
