//! What a stranger makes of a server that fails or refuses: of the feed that fails, and of feeds on other
//! servers.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::program::{LOOK_AGAIN, Program};
use super::responder::{self, Respond};
use super::{AnyError, Finding};

/// Pings within a short outage.
const PINGS: usize = 8;
/// Pings of a feed after an attack on its server.
const PINGS_AFTER: usize = 5;
/// How much later a failing feed may be polled because of pings, in hours: what jitter and the least time
/// between two polls make.
const UNCLEAR_HOURS: f64 = 0.2;
/// The longest that a fetch is waited for.
const PATIENCE: Duration = Duration::from_secs(5);

/// A server with one feed, and with redirects to another server.
struct Site {
    fetches: AtomicU64,
    /// The status line with headers that is sent in place of the feed from the second fetch on.
    failure: Option<&'static str>,
    /// Where `/out` leads to.
    target: String,
}

impl Site {
    fn start(
        failure: Option<&'static str>,
        target: String,
    ) -> Result<(Arc<Site>, String), AnyError> {
        let site = Arc::new(Site { fetches: AtomicU64::new(0), failure, target });
        let port = responder::start(Arc::clone(&site))?;
        Ok((site, format!("http://127.0.0.1:{port}")))
    }

    /// Waits until the feed was fetched so often, unless that takes too long.
    async fn fetched(&self, times: u64) {
        let enough = async {
            while self.fetches.load(Ordering::Relaxed) < times {
                tokio::time::sleep(LOOK_AGAIN).await;
            }
        };
        let _ = tokio::time::timeout(PATIENCE, enough).await;
    }
}

impl Respond for Site {
    fn respond(&self, request: &str) -> String {
        let target = request.split_whitespace().nth(1).unwrap_or_default();
        if let Some(challenge) = target.split("challenge=").nth(1) {
            return challenge.split('&').next().unwrap_or_default().to_owned();
        }
        let number = self.fetches.load(Ordering::Relaxed);
        format!(
            "<rss version='2.0'><channel><title>Tides</title><link>http://tides.test/</link>\
             <description>Every tide</description><item><title>Tide {number}</title>\
             <guid isPermaLink='false'>{number}</guid></item></channel></rss>"
        )
    }

    fn refuse(&self, request: &str) -> Option<String> {
        let path = request.split_whitespace().nth(1).unwrap_or_default();
        match path {
            "/out" => Some(format!("HTTP/1.1 302 Found\r\nLocation: {}", self.target)),
            "/feed" => {
                let before = self.fetches.fetch_add(1, Ordering::Relaxed);
                self.failure.filter(|_| before > 0).map(str::to_owned)
            }
            "/refusing" => Some("HTTP/1.1 429 Too Many Requests\r\nRetry-After: 86400".to_owned()),
            "/robots.txt" => Some("HTTP/1.1 404 Not Found".to_owned()),
            _ => None,
        }
    }
}

async fn start(folder: &Path) -> Result<(Program, PathBuf), AnyError> {
    let file = folder.join("feedgate.db");
    let gateway = Program::start(&format!("sqlite:{}", file.display()), &[]).await?;
    Ok((gateway, file))
}

async fn subscribe(gateway: &Program, topic: &str, callback: &str) -> Result<(), AnyError> {
    let form = [("hub.mode", "subscribe"), ("hub.topic", topic), ("hub.callback", callback)];
    gateway.post("/hub", &form).await.map(drop)
}

/// The hours from now to the next poll of a topic.
fn hours_to_next_poll(file: &Path, topic: &str) -> Result<f64, AnyError> {
    const NEXT: &str = "
        select (next_fetch / 1e6 - unixepoch()) / 3600.0 from resources where topic = ?1";
    let database = rusqlite::Connection::open(file)?;
    database.busy_timeout(Duration::from_secs(10))?;
    Ok(database.query_row(NEXT, [topic], |row| row.get(0))?)
}

/// Pings a feed while its server fails for ten seconds.
pub(crate) async fn pings() -> Result<Vec<Finding>, AnyError> {
    let mut findings = Vec::new();
    for (name, failure) in [
        ("503", "HTTP/1.1 503 Service Unavailable"),
        ("404", "HTTP/1.1 404 Not Found"),
        ("500", "HTTP/1.1 500 Internal Server Error"),
    ] {
        let folder = tempfile::tempdir()?;
        let (gateway, file) = start(folder.path()).await?;
        let (site, url) = Site::start(Some(failure), String::new())?;
        let topic = format!("{url}/feed");
        subscribe(&gateway, &topic, &format!("{url}/callback")).await?;
        site.fetched(1).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        let planned = hours_to_next_poll(&file, &topic)?;
        for _ in 0..PINGS {
            gateway.post("/rsscloud/ping", &[("url", &topic)]).await?;
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        let after = hours_to_next_poll(&file, &topic)?;
        findings.push(Finding {
            attack: format!("H2: {PINGS} pings while a server answers {name}"),
            measured: format!("next poll in {after:.1} h; {planned:.1} h before them"),
            bound: "no later than before".to_owned(),
            is_held: after <= planned + UNCLEAR_HOURS,
        });
    }
    Ok(findings)
}

/// Subscribes to an address of a victim's server that redirects to one that refuses everything for a day.
pub(crate) async fn redirects() -> Result<Vec<Finding>, AnyError> {
    let folder = tempfile::tempdir()?;
    let (gateway, _) = start(folder.path()).await?;
    let (_, anonymous) = Site::start(None, String::new())?;
    let (site, victim) = Site::start(None, format!("{anonymous}/refusing"))?;
    let (topic, callback) = (format!("{victim}/feed"), format!("{victim}/callback"));
    subscribe(&gateway, &topic, &callback).await?;
    site.fetched(1).await;
    subscribe(&gateway, &format!("{victim}/out"), &format!("{anonymous}/callback")).await?;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let before = site.fetches.load(Ordering::Relaxed);
    for _ in 0..PINGS_AFTER {
        gateway.post("/rsscloud/ping", &[("url", &topic)]).await?;
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    let fetches = site.fetches.load(Ordering::Relaxed) - before;
    Ok(vec![Finding {
        attack: "H3: a subscription to an address of a victim that redirects to a 429 for a day"
            .to_owned(),
        measured: format!("{fetches} fetches of the victim's feed after {PINGS_AFTER} pings"),
        bound: format!("{PINGS_AFTER}"),
        is_held: fetches >= PINGS_AFTER as u64,
    }])
}
