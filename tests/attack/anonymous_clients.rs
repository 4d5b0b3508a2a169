//! Attacks on those whom a gateway can reach: hosts in its private network, and its subscribers.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::program::Program;
use super::publisher::Publisher;
use super::responder::{self, Respond};
use super::{AnyError, Finding};

/// The gateway is behind a proxy, so that a stranger is not a program on this machine.
const PROXIED: (&str, &str) = ("FEEDGATE_TRUSTED_PROXIES", "127.0.0.1");
const ANONYMOUS: &str = "8.8.8.8";
/// Subscriptions with callbacks at an inner host, and topics that name it as the one to ask.
const SUBSCRIPTIONS: usize = 1_000;
const VALIDATING_TOPICS: usize = 30;
/// Renewals of the subscription of somebody else, and how long its subscriber counts.
const RENEWALS: usize = 650;
const COUNTED: Duration = Duration::from_secs(8);
/// What one client may cause at one callback in that time: the budget of a minute, and what of it
/// refills meanwhile.
const MOST_VERIFICATIONS: usize = 40;
const LEASE_S: i64 = 864_000;

/// A server that counts requests, and echoes every challenge.
#[derive(Default)]
struct Echo(AtomicUsize);

impl Respond for Echo {
    fn respond(&self, request: &str) -> String {
        self.0.fetch_add(1, Ordering::Relaxed);
        let target = request.split_whitespace().nth(1).unwrap_or_default();
        let challenge = target.split("challenge=").nth(1).unwrap_or_default();
        challenge.split('&').next().unwrap_or_default().to_owned()
    }
}

async fn anonymous_posts(gateway: &Program, form: &[(&str, &str)]) -> Result<(), AnyError> {
    let body = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(form).finish();
    let request = gateway.client().post(format!("{}/hub", gateway.url())).body(body);
    let request = request.header("content-type", "application/x-www-form-urlencoded");
    request.header("x-forwarded-for", ANONYMOUS).send().await?;
    Ok(())
}

/// H5: a stranger names callbacks at a host in the private network of the gateway, and has topics
/// that name it as the one to ask about subscriptions.
pub(crate) async fn inner_hosts(publisher: &Publisher) -> Result<Vec<Finding>, AnyError> {
    let folder = tempfile::tempdir()?;
    let gateway = start(folder.path(), &[PROXIED]).await?;
    let inner = Arc::new(Echo::default());
    let port = responder::start(Arc::clone(&inner))?;
    let topic = publisher.url(3, 0, "/feed/inner");
    for number in 0..SUBSCRIPTIONS {
        let callback = format!("http://127.4.0.1:{port}/{number}");
        let form = [("hub.mode", "subscribe"), ("hub.topic", &topic), ("hub.callback", &callback)];
        anonymous_posts(&gateway, &form).await?;
    }
    tokio::time::sleep(COUNTED).await;
    let by_callback = inner.0.swap(0, Ordering::Relaxed);

    let validating = validating_topics(port).await?;
    for number in 0..VALIDATING_TOPICS {
        let topic = format!("http://127.3.0.9:{validating}/{number}");
        let callback = publisher.url(2, number, "/callback");
        let form = [
            ("hub.mode", "subscribe"),
            ("hub.topic", topic.as_str()),
            ("hub.callback", &callback),
            ("hub.verify", "sync"),
        ];
        // The callback is one that this client may name, so that the topic is what is measured.
        gateway.post("/hub", &form).await?;
    }
    let by_topic = inner.0.load(Ordering::Relaxed);
    let finding = |attack: String, reached: usize| Finding {
        attack,
        measured: format!("{reached} requests reached the inner host"),
        bound: "0".to_owned(),
        is_held: reached == 0,
    };
    Ok(vec![
        finding(format!("H5: {SUBSCRIPTIONS} subscriptions with inner callbacks"), by_callback),
        finding(format!("H5: {VALIDATING_TOPICS} topics that ask an inner host"), by_topic),
    ])
}

/// Starts a server of feeds whose subscriptions are to be validated at an inner host.
async fn validating_topics(inner: u16) -> Result<u16, AnyError> {
    let listener = TcpListener::bind("127.3.0.9:0").await?;
    let port = listener.local_addr()?.port();
    let body = "<rss version='2.0'><channel><title>t</title></channel></rss>";
    let response = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/rss+xml\r\nConnection: close\r\n\
         Link: <http://127.4.0.1:{inner}/admin>; rel=\"validate\"\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = [0; 4_096];
            // A client that closes its connection has had its response.
            let _ = stream.read(&mut request).await;
            let _ = stream.write_all(response.as_bytes()).await;
        }
    });
    Ok(port)
}

/// H6: a stranger renews the subscription of somebody else whose callback echoes every challenge.
pub(crate) async fn renewals(publisher: &Publisher) -> Result<Vec<Finding>, AnyError> {
    let folder = tempfile::tempdir()?;
    let gateway = start(folder.path(), &[]).await?;
    let subscriber = Arc::new(Echo::default());
    let port = responder::start(Arc::clone(&subscriber))?;
    let topic = publisher.url(3, 0, "/feed/renewed");
    let callback = format!("http://127.2.0.1:{port}/callback");
    let named = [("hub.mode", "subscribe"), ("hub.topic", &topic), ("hub.callback", &callback)];
    let own = [("hub.secret", "own"), ("hub.lease_seconds", "864000"), ("hub.verify", "sync")];
    gateway.post("/hub", &[&named[..], &own[..]].concat()).await?;
    let before = subscriber.0.swap(0, Ordering::Relaxed);
    if before == 0 {
        return Err("the subscription was not verified".into());
    }
    let foreign = [("hub.secret", "stolen"), ("hub.lease_seconds", "300")];
    let form = [&named[..], &foreign[..]].concat();
    let begun = tokio::time::Instant::now();
    for _ in 0..RENEWALS {
        gateway.post("/hub", &form).await?;
    }
    gateway.post("/hub", &[&named[..], &[("hub.lease_seconds", "300")]].concat()).await?;
    tokio::time::sleep_until(begun + COUNTED).await;
    let verifications = subscriber.0.load(Ordering::Relaxed);
    let (lease_s, secrets) = state(&folder.path().join("feedgate.db"))?;
    Ok(vec![
        Finding {
            attack: format!("H6: {RENEWALS} renewals of another's subscription"),
            measured: format!("{verifications} requests at its subscriber in 8 s"),
            bound: format!("{MOST_VERIFICATIONS}"),
            is_held: verifications <= MOST_VERIFICATIONS,
        },
        Finding {
            attack: "H6: a foreign secret, then none, and a lease of 300 s".to_owned(),
            measured: format!("a lease of {lease_s} s, signed with {secrets}"),
            bound: format!("{LEASE_S} s, signed with its own"),
            is_held: lease_s > LEASE_S - 60 && secrets.split(' ').any(|held| held == "own"),
        },
    ])
}

/// Returns how long the lease lasts that the only subscription has left, and its secrets.
fn state(file: &Path) -> Result<(i64, String), AnyError> {
    let database = rusqlite::Connection::open(file)?;
    database.busy_timeout(Duration::from_secs(10))?;
    let now = i64::try_from(
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?.as_micros(),
    )?;
    let read = "select lease_until, coalesce(secret, ''), coalesce(previous_secret, '')
                  from subscriptions";
    let (until, secret, previous): (i64, String, String) =
        database.query_row(read, [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    Ok(((until - now) / 1_000_000, format!("{secret} {previous}").trim().to_owned()))
}

async fn start(folder: &Path, settings: &[(&str, &str)]) -> Result<Program, AnyError> {
    Program::start(&format!("sqlite:{}", folder.join("feedgate.db").display()), settings).await
}
