//! Attacks by mass: disk, connections, and the list of changes.

use std::path::Path;
use std::time::{Duration, Instant};

use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::program::Program;
use super::publisher::Publisher;
use super::{AnyError, Finding};

/// Pings of the flooding feed, one a second.
const FLOODING_PINGS: usize = 30;
/// What a resource may store at once is 64 MiB; the rest is what a database needs for that.
const MOST_DISK_MIB: u64 = 192;
const SLOW_BODIES: usize = 2_000;
const SLOWEST_HEALTH: Duration = Duration::from_secs(1);
const SITES: usize = 5_000;
const MOST_CHANGES_MIB: f64 = 4.0;
const MIB: u64 = 1_024 * 1_024;

pub(crate) async fn start(folder: &Path, settings: &[(&str, &str)]) -> Result<Program, AnyError> {
    Program::start(&format!("sqlite:{}", folder.join("feedgate.db").display()), settings).await
}

/// A feed with 4,900 new entries in each fetch, pinged each second.
pub(crate) async fn disk(publisher: &Publisher) -> Result<Vec<Finding>, AnyError> {
    let folder = tempfile::tempdir()?;
    let gateway = start(folder.path(), &[]).await?;
    let (topic, callback) = (publisher.url(3, 0, "/flood"), publisher.url(2, 0, "/callback"));
    let form = [("hub.mode", "subscribe"), ("hub.topic", &topic), ("hub.callback", &callback)];
    gateway.post("/hub", &form).await?;
    let mut seconds = tokio::time::interval(Duration::from_secs(1));
    for _ in 0..FLOODING_PINGS {
        seconds.tick().await;
        gateway.post("/rsscloud/ping", &[("url", &topic)]).await?;
    }
    let mut bytes = 0;
    for file in std::fs::read_dir(folder.path())? {
        bytes += file?.metadata()?.len();
    }
    Ok(vec![Finding {
        attack: format!("a feed with 4,900 new entries per fetch, {FLOODING_PINGS} pings"),
        measured: format!("{} MiB on the disk", bytes / MIB),
        bound: format!("{MOST_DISK_MIB} MiB"),
        is_held: bytes < MOST_DISK_MIB * MIB,
    }])
}

/// Connections whose requests never end.
pub(crate) async fn slow_bodies() -> Result<Vec<Finding>, AnyError> {
    let folder = tempfile::tempdir()?;
    let gateway = start(folder.path(), &[]).await?;
    let address = gateway.url().trim_start_matches("http://").to_owned();
    let mut connections = Vec::with_capacity(SLOW_BODIES);
    for _ in 0..SLOW_BODIES {
        let mut connection = TcpStream::connect(&address).await?;
        // The gateway may have closed it already.
        let head = b"POST /hub HTTP/1.1\r\nHost: a.test\r\nContent-Length: 900000\r\n\r\nhub";
        let _ = connection.write_all(head).await;
        connections.push(connection);
    }
    // Another client: the limit is for each address.
    let begun = Instant::now();
    let socket = tokio::net::TcpSocket::new_v4()?;
    socket.bind("127.9.9.9:0".parse()?)?;
    let mut health = socket.connect(address.parse()?).await?;
    health.write_all(b"GET /livez HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n").await?;
    health.readable().await?;
    let took = begun.elapsed();
    Ok(vec![Finding {
        attack: format!("{SLOW_BODIES} bodies that never end, of one client"),
        measured: format!("/livez responds after {} ms", took.as_millis()),
        bound: format!("{} ms", SLOWEST_HEALTH.as_millis()),
        is_held: took < SLOWEST_HEALTH,
    }])
}

/// Sites with long names and URLs in changes.xml.
pub(crate) async fn pings(publisher: &Publisher) -> Result<Vec<Finding>, AnyError> {
    let folder = tempfile::tempdir()?;
    let gateway = start(folder.path(), &[]).await?;
    for number in 0..SITES {
        let name = "n".repeat(1_000);
        let site = publisher.url(5, number, &format!("/{}", "u".repeat(1_500)));
        let answer = gateway.post("/pingSiteForm", &[("name", &name), ("url", &site)]).await?;
        if !answer.contains("accepted") {
            return Err(answer.into());
        }
    }
    let url = format!("{}/changes.xml", gateway.url());
    let changes = gateway.client().get(url).send().await?.bytes().await?;
    let mib = changes.len() as f64 / MIB as f64;
    Ok(vec![Finding {
        attack: format!("{SITES} pings with long names"),
        measured: format!("changes.xml has {mib:.2} MiB"),
        bound: format!("{MOST_CHANGES_MIB} MiB"),
        is_held: mib < MOST_CHANGES_MIB,
    }])
}
