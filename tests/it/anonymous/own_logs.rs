//! Strangers who subscribe to the logs of the gateway itself: tracks and archives.

use feedgate::jobs::runner;
use feedgate_core::query::Query;
use feedgate_core::registrant::RegistrantNetwork;
use feedgate_core::track::Track;
use url::Url;

use super::{ANONYMOUS, Caller, PROXIED, SYNC, call, post, send};
use crate::support::feeds::rss;
use crate::support::gateway::Gateway;
use crate::support::postgres::{Database, Kind};
use crate::support::publisher::Publisher;
use crate::support::subscriber::{Behavior, Subscriber};

/// Strangers may do everything, and name callbacks of these tests.
const OPEN: (&str, &str) =
    ("FEEDGATE_ANONYMOUS", "hub,rsscloud,pings,storage,views,inner-addresses");
/// What is open to strangers, except the views.
const VIEWS_CLOSED: (&str, &str) =
    ("FEEDGATE_ANONYMOUS", "hub,rsscloud,pings,storage,inner-addresses");

async fn subscribe(gateway: &Gateway, caller: Caller, topic: &str, callback: &str) -> String {
    let form = [("hub.mode", "subscribe"), ("hub.topic", topic), ("hub.callback", callback), SYNC];
    post(gateway, caller, "/hub", &form).await
}

async fn is_known(database: &Database, query: &str) -> bool {
    let store = database.open().await;
    let found = store.find_track(query).await.unwrap();
    store.close().await;
    found.is_some()
}

async fn confirmed_tracks(database: Database) {
    let subscriber = Subscriber::start().await;
    subscriber.set("/no", Behavior::Refusing);
    let gateway = Gateway::start(&database, &[PROXIED, OPEN]).await;
    let topic = gateway.url("/track?query=apple");
    let refused = subscribe(&gateway, Caller::Anonymous, &topic, &subscriber.url("/no")).await;
    assert!(refused.starts_with("409 "), "{refused}");
    assert!(!is_known(&database, "apple").await, "nobody has confirmed anything");
    let agreed = subscribe(&gateway, Caller::Anonymous, &topic, &subscriber.url("/yes")).await;
    assert_eq!(agreed, "204 ");
    assert!(is_known(&database, "apple").await);

    // Whoever asks in other words is sent the same.
    let other = gateway.url("/track?query=%2BPear+apple");
    let form = [("hub.topic", other.as_str()), ("hub.callback", &subscriber.url("/later"))];
    let later = [("hub.mode", "subscribe")];
    let accepted = post(&gateway, Caller::Anonymous, "/hub", &[&later[..], &form].concat()).await;
    assert_eq!(accepted, "202 ");
    gateway.comes_to_rest().await;
    assert!(is_known(&database, "apple pear").await);
    let form = [&[("hub.mode", "unsubscribe"), SYNC][..], &form].concat();
    assert_eq!(post(&gateway, Caller::Anonymous, "/hub", &form).await, "204 ");
}

#[tokio::test]
async fn h01_a_track_is_opened_for_a_callback_that_confirmed() {
    confirmed_tracks(Database::new(Kind::Sqlite).await).await;
}

#[tokio::test]
async fn h01_a_track_is_opened_for_a_callback_that_confirmed_on_postgres() {
    confirmed_tracks(Database::new(Kind::Postgres).await).await;
}

#[tokio::test]
async fn h01_a_network_has_so_many_tracks_open_and_no_more() {
    let database = Database::new(Kind::Sqlite).await;
    let subscriber = Subscriber::start().await;
    let gateway = Gateway::start(&database, &[PROXIED, OPEN]).await;
    let public_url = Url::parse(&gateway.url("/")).unwrap();
    let track =
        |n: usize| Track::new(&public_url, Query::parse(&format!("w{n}")).unwrap()).unwrap();
    let store = database.open().await;
    let registrant = RegistrantNetwork::from_client(ANONYMOUS.parse().ok());
    for n in 0..100 {
        store.open_track(&track(n), registrant, runner::now()).await.unwrap();
    }
    store.close().await;
    let (known, further) = (track(0).topic, track(100).topic);
    let (known, further) = (known.as_str(), further.as_str());
    let refused = subscribe(&gateway, Caller::Anonymous, further, &subscriber.url("/a")).await;
    assert_eq!(
        refused,
        "403 The request was not carried out: 100 tracks are open for your network, the most \
         without an account.\n"
    );
    let shared = subscribe(&gateway, Caller::Anonymous, known, &subscriber.url("/b")).await;
    assert_eq!(shared, "204 ", "that of somebody else");
    let elsewhere = subscribe(&gateway, Caller::Local, further, &subscriber.url("/c")).await;
    assert_eq!(elsewhere, "204 ", "another network");
}

#[tokio::test]
async fn h05_what_strangers_may_not_read_they_may_not_subscribe_to() {
    let database = Database::new(Kind::Sqlite).await;
    let (publisher, subscriber) = (Publisher::start().await, Subscriber::start().await);
    publisher.put_rss("/feed", rss("tides", 1..2));
    let settings = [PROXIED, VIEWS_CLOSED, ("FEEDGATE_COLLECT_ALL", "on")];
    let gateway = Gateway::start(&database, &settings).await;
    let callback = subscriber.url("/cb");
    let feed = publisher.url("/feed");
    assert_eq!(subscribe(&gateway, Caller::Account, &feed, &callback).await, "204 ");
    for path in ["/all/recent", "/feeds/1/recent", "/feeds/99", "/track?query=apple"] {
        let topic = gateway.url(path);
        let hub = subscribe(&gateway, Caller::Anonymous, &topic, &callback).await;
        assert!(hub.starts_with("403 ") && hub.contains("from accounts only"), "{path}: {hub}");
        let port = subscriber.port().to_string();
        let form = [
            ("port", port.as_str()),
            ("path", "/cb"),
            ("protocol", "http-post"),
            ("domain", "127.0.0.1"),
            ("url1", &topic),
        ];
        let cloud = post(&gateway, Caller::Anonymous, "/pleaseNotify", &form).await;
        assert!(cloud.contains("from accounts only"), "{path}: {cloud}");
        let body =
            call("rssCloud.pleaseNotify", &["", &port, "/cb", "http-post", &topic, "127.0.0.1"]);
        let target = (http::Method::POST, "/RPC2");
        let rpc = send(&gateway, Caller::Anonymous, target, ("text/xml", &body)).await;
        let rpc = rpc.text().await.unwrap();
        assert!(rpc.contains("from accounts only"), "{path}: {rpc}");
    }
    let target = (http::Method::GET, &*format!("/feeds?topic={feed}"));
    let found = send(&gateway, Caller::Account, target, ("text/plain", "")).await;
    let topic = found.url().to_string();
    let own = subscribe(&gateway, Caller::Account, &topic, &callback).await;
    assert_eq!(own, "204 ", "an account may");
    let alias = "http://track.superfeedr.com/?query=apple";
    let hub = subscribe(&gateway, Caller::Anonymous, alias, &callback).await;
    assert!(hub.contains("from accounts only"), "{hub}");
    let open = subscribe(&gateway, Caller::Anonymous, &feed, &callback).await;
    assert_eq!(open, "204 ", "what others publish is no view");
}
