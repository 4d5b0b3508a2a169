//! Pings that go on to sinks.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use feedgate_protocol::xmlrpc::{self, XmlRpcValue};
use http::StatusCode;
use tokio::time::{Duration, sleep, timeout};

use crate::storage;
use crate::support::PATIENCE;
use crate::support::feeds::{entry_id, rss};
use crate::support::gateway::Gateway;
use crate::support::postgres::{Database, Kind};
use crate::support::publisher::Publisher;
use crate::support::server::{Server, client, say};

/// A sink that takes pings at `/RPC2` and at `/ping`, or is out of order.
struct PingTarget {
    server: Server,
    told: Arc<Mutex<Vec<String>>>,
    is_broken: Arc<AtomicBool>,
}

impl PingTarget {
    async fn start() -> PingTarget {
        let told: Arc<Mutex<Vec<String>>> = Arc::default();
        let is_broken: Arc<AtomicBool> = Arc::default();
        let (received, broken) = (Arc::clone(&told), Arc::clone(&is_broken));
        let server = Server::start(move |request| {
            let (received, broken) = (Arc::clone(&received), Arc::clone(&broken));
            async move {
                let call = xmlrpc::read_call(&request.body);
                let (line, answer) = match call {
                    Ok(call) => {
                        let params: Vec<String> =
                            call.params.iter().filter_map(XmlRpcValue::text).collect();
                        let line = format!("{} {}", call.method, params.join(" "));
                        (line, answer_to(&call.method, &params[0]))
                    }
                    Err(_) => {
                        let query =
                            request.query.iter().map(|(name, value)| format!("{name}={value}"));
                        (query.collect::<Vec<_>>().join(" "), "Thanks for the ping".to_owned())
                    }
                };
                received.lock().unwrap().push(line);
                match broken.load(Ordering::SeqCst) {
                    true => say(StatusCode::SERVICE_UNAVAILABLE, "out of order"),
                    false => say(StatusCode::OK, answer),
                }
            }
        });
        PingTarget { server: server.await, told, is_broken }
    }

    /// Waits until it was told so often, and says of what.
    async fn told(&self, times: usize) -> Vec<String> {
        let wait = async {
            loop {
                let told = self.told.lock().unwrap().clone();
                if told.len() >= times {
                    return told;
                }
                sleep(Duration::from_millis(20)).await;
            }
        };
        let told = timeout(PATIENCE, wait).await;
        told.unwrap_or_else(|_| panic!("told in vain: {:?}", self.told.lock().unwrap()))
    }
}

/// Weblogs called "plain" are refused where the ping is an extended one.
fn answer_to(method: &str, name: &str) -> String {
    if method == "weblogUpdates.extendedPing" && name == "plain" {
        return xmlrpc::fault(1, "no such procedure");
    }
    let member = |name: &str, value| (name.to_owned(), value);
    xmlrpc::response(&XmlRpcValue::Struct(vec![
        member("flerror", XmlRpcValue::Boolean(false)),
        member("message", XmlRpcValue::Text("Thanks for the ping.".to_owned())),
    ]))
}

/// A gateway that tells these sinks of what is below the publisher's `/mine/`, and two
/// feeds that it watches, one of them there.
async fn watching(
    database: &Database,
    publisher: &Publisher,
    targets: &str,
    titles: [&str; 2],
) -> Gateway {
    let request = publisher.url("/mine/");
    let settings = [("FEEDGATE_PING_TARGETS", targets), ("FEEDGATE_PING_FORWARDING", &request)];
    let gateway = Gateway::start(database, &settings).await;
    for (path, title) in ["/others/feed", "/mine/feed"].into_iter().zip(titles) {
        publisher.put_rss(path, rss(title, 1..2));
        let topic = publisher.url(path);
        gateway.subscribe_superfeedr(&topic, "http://127.0.0.1:1/dev/null", "atom").await;
        gateway.archive_holds(&topic, &entry_id(title, 1)).await;
    }
    gateway
}

/// Publishes so many entries, and tells the gateway.
async fn publish(
    gateway: &Gateway,
    publisher: &Publisher,
    path: &str,
    title: &str,
    entries: usize,
) {
    publisher.put_rss(path, rss(title, 1..entries + 1));
    let topic = publisher.url(path);
    let form = [("hub.mode", "publish"), ("hub.url", topic.as_str())];
    assert_eq!(gateway.post("/hub", &form).await.0, StatusCode::NO_CONTENT);
    gateway.archive_holds(&topic, &entry_id(title, entries)).await;
}

#[tokio::test]
async fn sinks_are_told_of_changes_whose_owner_asked_for_it_and_of_no_others() {
    let publisher = Publisher::start().await;
    let database = Database::new(Kind::Sqlite).await;
    let (rpc, get) = (PingTarget::start().await, PingTarget::start().await);
    let targets = format!("{},get={}", rpc.server.url("/RPC2"), get.server.url("/ping"));
    let gateway = watching(&database, &publisher, &targets, ["others", "mine"]).await;

    publish(&gateway, &publisher, "/others/feed", "others", 2).await;
    publish(&gateway, &publisher, "/mine/feed", "mine", 2).await;
    let feed = publisher.url("/mine/feed");
    let home = "https://mine.test/";
    let want = format!("weblogUpdates.extendedPing mine {home} {home} {feed}");
    assert_eq!(rpc.told(1).await, [want]);
    assert_eq!(get.told(1).await, [format!("name=mine url={home} rssUrl={feed}")]);

    publish(&gateway, &publisher, "/mine/feed", "mine", 3).await;
    assert_eq!((rpc.told(2).await.len(), get.told(2).await.len()), (2, 2), "once a change");
}

#[tokio::test]
async fn a_sink_that_knows_no_extended_pings_is_sent_a_plain_one() {
    let publisher = Publisher::start().await;
    let database = Database::new(Kind::Sqlite).await;
    let callbacks = PingTarget::start().await;
    let url = callbacks.server.url("/RPC2");
    let gateway = watching(&database, &publisher, &url, ["others", "plain"]).await;
    publish(&gateway, &publisher, "/mine/feed", "plain", 2).await;
    let told = callbacks.told(2).await;
    assert!(told[0].starts_with("weblogUpdates.extendedPing plain"), "{told:?}");
    assert_eq!(told[1], "weblogUpdates.ping plain https://plain.test/");
}

#[tokio::test]
async fn why_a_sink_did_not_take_a_ping_is_told_by_what_it_answered() {
    let publisher = Publisher::start().await;
    let no = xmlrpc::fault(1, "no");
    #[rustfmt::skip]
    let cases = [
        (StatusCode::OK,                    "<html>Welcome</html>".to_owned(), "target_protocol"),
        (StatusCode::OK,                    String::new(),                     "target_protocol"),
        (StatusCode::NOT_FOUND,             "<html>Nothing</html>".to_owned(), "target_status"),
        (StatusCode::INTERNAL_SERVER_ERROR, no,                                "target_refused"),
    ];
    for (status, body, result) in cases {
        let database = Database::new(Kind::Sqlite).await;
        let server = Server::start(move |_| {
            let answer = say(status, body.clone());
            async move { answer }
        });
        let url = server.await;
        let gateway = watching(&database, &publisher, &url.url("/RPC2"), ["others", "mine"]).await;
        publish(&gateway, &publisher, "/mine/feed", "mine", 2).await;
        let told =
            format!("feedgate_forwarded_pings_total{{method=\"xml-rpc\",result=\"{result}\"}} 1");
        gateway.measures(&told).await;
    }
}

#[tokio::test]
async fn what_a_sink_did_not_take_outlives_a_restart_and_is_sent_again() {
    let publisher = Publisher::start().await;
    let database = Database::new(Kind::Sqlite).await;
    let callbacks = PingTarget::start().await;
    callbacks.is_broken.store(true, Ordering::SeqCst);
    let url = callbacks.server.url("/RPC2");
    let mut gateway = watching(&database, &publisher, &url, ["others", "mine"]).await;
    publish(&gateway, &publisher, "/mine/feed", "mine", 2).await;
    callbacks.told(1).await;
    gateway
        .measures("feedgate_forwarded_pings_total{method=\"xml-rpc\",result=\"target_status\"} 1")
        .await;
    publish(&gateway, &publisher, "/mine/feed", "mine", 3).await;

    gateway.kill();
    let before = callbacks.told(1).await.len();
    callbacks.is_broken.store(false, Ordering::SeqCst);
    database.run("update forwarded_pings set due_at = 1").await; // the retry is a minute away
    gateway.restart().await;
    let told = callbacks.told(before + 1).await;
    assert!(told[before].starts_with("weblogUpdates.extendedPing mine"), "{told:?}");
    gateway.measures("feedgate_forwarded_pings_total{method=\"xml-rpc\",result=\"ok\"} 1").await;
}

#[tokio::test]
async fn a_sink_that_is_no_longer_named_is_forgotten() {
    let publisher = Publisher::start().await;
    let database = Database::new(Kind::Sqlite).await;
    let (old, new) = (PingTarget::start().await, PingTarget::start().await);
    old.is_broken.store(true, Ordering::SeqCst);
    let url = old.server.url("/RPC2");
    let gateway = watching(&database, &publisher, &url, ["others", "mine"]).await;
    publish(&gateway, &publisher, "/mine/feed", "mine", 2).await;
    old.told(1).await;
    drop(gateway);
    let url = new.server.url("/RPC2");
    let gateway = watching(&database, &publisher, &url, ["others", "mine"]).await;
    publish(&gateway, &publisher, "/mine/feed", "mine", 3).await;
    assert_eq!(new.told(1).await.len(), 1);
    let store = database.open().await;
    let now = feedgate::jobs::runner::now() + chrono::TimeDelta::days(1);
    let due = store
        .claim_forwarded_pings(&format!("xml-rpc={}", old.server.url("/RPC2")), now, now, 9)
        .await;
    assert_eq!(due.unwrap(), []);
}

#[tokio::test]
async fn who_saves_a_feed_here_has_sinks_told_of_it_though_nobody_watches() {
    let callbacks = PingTarget::start().await;
    let url = callbacks.server.url("/RPC2");
    let (gateway, _database) = storage::start(&[("FEEDGATE_PING_TARGETS", &url)]).await;
    let path = "/storage/ada/tides.xml";
    for entries in [2, 2, 3] {
        let feed = rss("tides", 1..entries);
        let saved = client().put(gateway.url(path)).basic_auth("ada", Some(storage::PASSWORD));
        assert!(saved.body(feed).send().await.unwrap().status().is_success());
        callbacks.told(entries - 1).await;
    }
    let (home, feed) = ("https://tides.test/", gateway.url(path));
    let want = format!("weblogUpdates.extendedPing tides {home} {home} {feed}");
    assert_eq!(callbacks.told(2).await, [want.clone(), want], "once a change");
}
