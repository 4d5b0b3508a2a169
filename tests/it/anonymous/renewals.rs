//! Strangers who renew the subscriptions of others.

use http::StatusCode;

use super::{Caller, PROXIED, SYNC, post};
use crate::support::feeds::rss;
use crate::support::gateway::Gateway;
use crate::support::postgres::{Database, Kind};
use crate::support::publisher::Publisher;
use crate::support::subscriber::{Behavior, Subscriber, is_signed};

async fn anonymous_renewals(database: Database) {
    let (publisher, subscriber) = (Publisher::start().await, Subscriber::start().await);
    publisher.put_rss("/feed", rss("tides", 1..2));
    let gateway = Gateway::start(&database, &[]).await;
    let (topic, callback) = (publisher.url("/feed"), subscriber.url("/cb"));
    let hub = async |mode: &str, further: &[(&str, &str)]| {
        let form = [("hub.mode", mode), ("hub.topic", &topic), ("hub.callback", &callback), SYNC];
        gateway.post("/hub", &[&form, further].concat()).await.0
    };
    let days = [("hub.secret", "own"), ("hub.lease_seconds", "864000")];
    assert_eq!(hub("subscribe", &days).await, StatusCode::NO_CONTENT);
    let lease = async || {
        let listed = database.open().await;
        let filter = feedgate_core::store::SubscriptionFilter {
            limit: 9,
            ..feedgate_core::store::SubscriptionFilter::default()
        };
        let (held, total) = listed.list(&filter).await.unwrap();
        listed.close().await;
        assert_eq!(total, 1);
        held[0].subscription.lease_until
    };
    let before = lease().await;
    for secret in [Some("b"), None, Some("c"), Some("d")] {
        let mut form = vec![("hub.lease_seconds", "300")];
        form.extend(secret.map(|secret| ("hub.secret", secret)));
        assert_eq!(hub("subscribe", &form).await, StatusCode::NO_CONTENT);
    }
    assert_eq!(lease().await, before, "a stranger does not shorten it");

    let told = async |items: usize| {
        publisher.put_rss("/feed", rss("tides", 1..items + 1));
        gateway.post("/ping", &[("url", &topic)]).await;
        subscriber.until("/cb", |told| told.len() == items - 1).await;
        subscriber.notified("/cb").pop().unwrap()
    };
    let contested = told(2).await;
    assert!(is_signed(&contested, "d"), "X-Hub-Signature has room for the newest");
    let signatures = contested.header("webhook-signature").unwrap().to_owned();
    assert_eq!(signatures.split(' ').count(), 2, "and webhook-signature for both");
    let id = contested.header("webhook-id").unwrap().to_owned();
    let at: i64 = contested.header("webhook-timestamp").unwrap().parse().unwrap();
    let own = feedgate_protocol::standard_webhooks::sign(b"own", &id, at, &contested.body);
    assert!(signatures.split(' ').any(|held| held == own), "{signatures}");

    // Who knows the secret ends the others, and decides about the lease.
    let form = [("hub.secret", "own"), ("hub.lease_seconds", "300")];
    assert_eq!(hub("subscribe", &form).await, StatusCode::NO_CONTENT);
    assert!(lease().await < before);
    let own = told(3).await;
    assert!(is_signed(&own, "own"));
    assert_eq!(own.header("webhook-signature").unwrap().split(' ').count(), 1);
}

#[tokio::test]
async fn h06_a_stranger_who_renews_takes_nothing_over() {
    anonymous_renewals(Database::new(Kind::Sqlite).await).await;
}

#[tokio::test]
async fn h06_a_stranger_who_renews_takes_nothing_over_on_postgres() {
    anonymous_renewals(Database::new(Kind::Postgres).await).await;
}

#[tokio::test]
async fn h06_a_stranger_who_registers_a_handler_again_does_not_change_its_procedure() {
    let database = Database::new(Kind::Sqlite).await;
    let (publisher, subscriber) = (Publisher::start().await, Subscriber::start().await);
    publisher.put_rss("/feed", rss("tides", 1..2));
    let gateway = Gateway::start(&database, &[]).await;
    let (topic, port) = (publisher.url("/feed"), subscriber.port().to_string());
    subscriber.set("/rpc", Behavior::Obeying);
    for (procedure, domain) in [("river.changed", None), ("demo.sayHello", Some("127.0.0.1"))] {
        let mut form = vec![
            ("notifyProcedure", procedure),
            ("port", port.as_str()),
            ("path", "/rpc"),
            ("protocol", "xml-rpc"),
            ("url1", &topic),
        ];
        form.extend(domain.map(|domain| ("domain", domain)));
        let (_, answer) = gateway.post("/pleaseNotify", &form).await;
        assert!(answer.contains("success=\"true\""), "{answer}");
    }
    publisher.put_rss("/feed", rss("tides", 1..3));
    gateway.post("/ping", &[("url", &topic)]).await;
    // The first two are the tests of the handler.
    subscriber.until("/rpc", |told| told.len() == 3).await;
    let told = subscriber.notified("/rpc").pop().unwrap().text();
    assert!(told.contains("river.changed"), "{told}");
}

#[tokio::test]
async fn h06_a_callback_that_agrees_to_everything_is_asked_so_often_and_no_more() {
    let database = Database::new(Kind::Sqlite).await;
    let (publisher, subscriber) = (Publisher::start().await, Subscriber::start().await);
    publisher.put_rss("/feed", rss("tides", 1..2));
    let gateway = Gateway::start(&database, &[PROXIED]).await;
    let (topic, callback) = (publisher.url("/feed"), subscriber.url("/cb"));
    let form = |secret| {
        [
            ("hub.mode", "subscribe"),
            ("hub.topic", topic.as_str()),
            ("hub.callback", callback.as_str()),
            ("hub.secret", secret),
            SYNC,
        ]
    };
    assert!(post(&gateway, Caller::Local, "/hub", &form("own")).await.starts_with("204"));
    let mut last = String::new();
    for _ in 0..60 {
        last = post(&gateway, Caller::Local, "/hub", &form("other")).await;
    }
    assert!(last.starts_with("429"), "{last}");
    let request = subscriber.requests_to("/cb").len();
    assert!((20..50).contains(&request), "{request}");
    // The subscriber itself is not kept out, from wherever it calls.
    assert!(post(&gateway, Caller::Local, "/hub", &form("own")).await.starts_with("204"));
    let elsewhere = post(&gateway, Caller::Account, "/hub", &form("other")).await;
    assert!(elsewhere.starts_with("204"), "{elsewhere}");
    assert_eq!(subscriber.requests_to("/cb").len(), request + 2);
}
