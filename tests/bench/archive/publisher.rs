//! A publisher of feeds that change all the time.

use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval};

use super::AnyError;
use super::servers::client;

/// How many feeds there are.
const FEEDS: usize = 20;
/// Entries that come with each change of one.
const ENTRIES: usize = 50;
/// Entries a second, of all feeds together.
const PER_S: usize = 1_000;

/// Serves the feeds from a task of its own.
pub(crate) struct Publisher {
    url: String,
    published: Arc<[AtomicUsize; FEEDS]>,
}

impl Publisher {
    pub(crate) async fn start() -> Result<Publisher, AnyError> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}", listener.local_addr()?);
        let published: Arc<[AtomicUsize; FEEDS]> = Arc::default();
        let served = Arc::clone(&published);
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let served = Arc::clone(&served);
                tokio::spawn(async move {
                    let mut request = vec![0; 4_096];
                    let read = stream.read(&mut request).await.unwrap_or_default();
                    let request = String::from_utf8_lossy(&request[..read]);
                    let path = request.split(' ').nth(1).unwrap_or_default();
                    let n: usize = path.trim_start_matches('/').parse().unwrap_or_default();
                    let body = feed(n, served[n % FEEDS].load(Ordering::Relaxed));
                    let head = format!(
                        "HTTP/1.1 200 OK\r\nContent-Type: application/rss+xml\r\n\
                         Content-Length: {}\r\nConnection: close\r\n\r\n",
                        body.len()
                    );
                    // Who hangs up does not want it.
                    let _ = stream.write_all((head + &body).as_bytes()).await;
                });
            }
        });
        Ok(Publisher { url, published })
    }

    /// The addresses of the feeds.
    pub(crate) fn topics(&self) -> Vec<String> {
        (0..FEEDS).map(|n| format!("{}/{n}", self.url)).collect()
    }

    /// Publishes, and says so to the gateway at `url`, until it is told to end.
    pub(crate) fn publish(&self, url: &str) -> Publishing {
        let (ping, topics) = (format!("{url}/ping"), self.topics());
        let published = Arc::clone(&self.published);
        let before = sum(&published);
        let counted = Arc::clone(&published);
        let task = tokio::spawn(async move {
            let mut ticks =
                interval(Duration::from_secs(1) / u32::try_from(PER_S / ENTRIES).unwrap_or(1));
            ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
            for n in (0..FEEDS).cycle() {
                ticks.tick().await;
                counted[n].fetch_add(ENTRIES, Ordering::Relaxed);
                let form = url::form_urlencoded::Serializer::new(String::new())
                    .append_pair("url", &topics[n])
                    .finish();
                let ping = client().post(&ping).body(form);
                tokio::spawn(async move { ping.send().await });
            }
        });
        Publishing { task, published, before, begun: Instant::now() }
    }
}

fn sum(published: &[AtomicUsize; FEEDS]) -> usize {
    published.iter().map(|count| count.load(Ordering::Relaxed)).sum()
}

/// Publishing, under way.
pub(crate) struct Publishing {
    task: JoinHandle<()>,
    published: Arc<[AtomicUsize; FEEDS]>,
    before: usize,
    begun: Instant,
}

impl Publishing {
    /// Ends it. Returns how many entries were published in a second.
    pub(crate) async fn end(self) -> usize {
        let took = self.begun.elapsed().as_secs_f64();
        self.task.abort();
        let _ = self.task.await;
        ((sum(&self.published) - self.before) as f64 / took) as usize
    }
}

/// Feed `n` when it has had so many entries: the newest of them.
fn feed(n: usize, published: usize) -> String {
    let mut feed = format!(
        "<rss version=\"2.0\"><channel><title>Feed {n}</title><link>https://{n}.test/</link>\
         <description>Made to be measured</description>"
    );
    for item in (published.saturating_sub(2 * ENTRIES)..published).rev() {
        let _ = write!(
            feed,
            "<item><title>Item {item}</title><guid isPermaLink=\"false\">tag:{n}.test,2026:{item}\
             </guid><description>The text of {item}, which is not long.</description></item>"
        );
    }
    feed + "</channel></rss>"
}
