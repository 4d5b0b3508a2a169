//! What goes over the wire, in each protocol.

use feedgate_core::account::AccountId;
use feedgate_core::subscription::Format;
use feedgate_protocol::Protocol;
use http::Method;

use super::{Node, TOPIC, secret, told};
use crate::store::{on_both_stores, on_one_store};
use crate::support::postgres::Database;
use crate::support::server::ReceivedRequest;
use crate::support::subscriber::{Behavior, Subscriber, is_signed, named};

on_both_stores!(a_raw_body_arrives_byte_for_byte);

on_one_store!(
    websub_carries_what_its_clients_read,
    json_is_a_view_of_the_same_entries,
    n04_credits_fall_by_one_with_each_notification,
    rsscloud_names_the_topic_in_three_ways,
    the_null_device_is_never_called,
);

/// The only notification of this callback.
async fn only(subscriber: &Subscriber, path: &str) -> ReceivedRequest {
    subscriber.until(path, |told| told.len() == 1).await;
    subscriber.notified(path).remove(0)
}

/// Rows N-1, N-2, N-3, N-7 and N-8.
async fn websub_carries_what_its_clients_read(database: Database) {
    let node = Node::start(&database).await;
    let subscriber = Subscriber::start().await;
    let callback = subscriber.url("/a?token=1");
    let subscription = node.subscribe(&callback, |request| request.signing.secret = secret()).await;
    node.subscribe(&subscriber.url("/unsigned"), |_| {}).await;
    node.append(subscription.id.resource, 1..=2).await;

    let got = only(&subscriber, "/a").await;
    assert_eq!((got.method.clone(), got.query("token")), (Method::POST, Some("1")), "N-1");
    let id = format!("{}-{}-1-2", subscription.id.resource, subscription.id.number);
    let link = format!("<https://gateway.test/hub>; rel=\"hub\", <{TOPIC}>; rel=\"self\"");
    for (header, want) in [
        ("content-type", "application/atom+xml"),
        ("link", link.as_str()),
        ("x-pubsubhubbub-topic", TOPIC),
        ("x-pubsubhubbub-callback", callback.as_str()),
        ("x-feedgate-seq", "1-2"),
        ("webhook-id", id.as_str()),
    ] {
        assert_eq!(got.header(header), Some(want), "{header}");
    }
    assert!(is_signed(&got, "opensesame"), "{:?}", got.headers);
    let text = got.text();
    let status = text.find("<status").unwrap();
    assert!(status < text.find("<entry").unwrap(), "the status comes first:\n{text}");
    assert_eq!(only(&subscriber, "/unsigned").await.header("x-hub-signature"), None);
    node.stop().await;
}

/// Row N-4.
async fn n04_credits_fall_by_one_with_each_notification(database: Database) {
    let node = Node::start(&database).await;
    let subscriber = Subscriber::start().await;
    let callback = subscriber.url("/mine");
    subscriber.set("/mine", Behavior::Failing(503));
    let subscribe = || node.subscribe(&callback, |request| request.account = Some(AccountId(1)));
    let resource = subscribe().await.id.resource;
    node.subscribe(&subscriber.url("/open"), |_| {}).await;
    node.append(resource, 1..=1).await;
    node.until(&callback, |held| held.is_some_and(|held| held.failures == 1)).await;
    subscriber.set("/mine", Behavior::Accepting);
    subscribe().await; // a renewal tries at once what waits for its retry
    node.until(&callback, told(1)).await;
    node.append(resource, 2..=2).await;
    node.until(&callback, told(2)).await;
    let credits: Vec<i64> = subscriber
        .notified("/mine")
        .iter()
        .map(|request| request.header("x-superfeedr-credits").unwrap().parse().unwrap())
        .collect();
    let (last, retried) = credits.split_last().unwrap();
    assert_eq!(*last, 999_999_998);
    assert!(retried.len() >= 2 && retried.iter().all(|credits| *credits == 999_999_999));
    subscriber.until("/open", |told| told.len() == 2).await;
    assert_eq!(subscriber.notified("/open")[0].header("x-superfeedr-credits"), None);
    node.stop().await;
}

/// Rows N-2 and N-16.
async fn json_is_a_view_of_the_same_entries(database: Database) {
    let node = Node::start(&database).await;
    let subscriber = Subscriber::start().await;
    let request =
        node.subscribe(&subscriber.url("/"), |request| request.format = Format::Json).await;
    node.append(request.id.resource, 1..=2).await;
    let got = only(&subscriber, "/").await;
    assert_eq!(got.header("content-type"), Some("application/json"));
    let json: serde_json::Value = serde_json::from_slice(&got.body).unwrap();
    assert_eq!(json["status"]["feed"], TOPIC);
    assert_eq!(json["items"][0]["id"], "tag:tides.test,2026:2");
    assert_eq!(json["items"][1]["title"], "1");
    node.stop().await;
}

/// Row N-2.
async fn a_raw_body_arrives_byte_for_byte(database: Database) {
    let node = Node::start(&database).await;
    let subscriber = Subscriber::start().await;
    let raw = subscriber.url("/raw");
    let resource = node.subscribe(&raw, |request| request.format = Format::Raw).await.id.resource;
    // What is no feed is sent as it is to whoever asked for nothing.
    node.subscribe(&subscriber.url("/any"), |request| request.format = Format::Fitting).await;
    let latin1 = b"<?xml version='1.0' encoding='iso-8859-1'?><t>caf\xe9</t>\r\n";
    let content_type = "application/xml;charset=ISO-8859-1; x=\"y\"";
    node.change_body(resource, Some(content_type), latin1).await;
    for path in ["/raw", "/any"] {
        let got = only(&subscriber, path).await;
        assert_eq!(got.header("content-type"), Some(content_type), "{path}");
        assert_eq!(got.body.as_ref(), latin1, "{path}: not decoded and encoded again (B8)");
    }
    node.until(&raw, told(1)).await;
    node.stop().await;
}

async fn rsscloud_names_the_topic_in_three_ways(database: Database) {
    let node = Node::start(&database).await;
    let subscriber = Subscriber::start().await;
    let procedure = || "river.changed".to_owned();
    let protocols = [
        ("/post", Protocol::HttpPost, "application/x-www-form-urlencoded"),
        ("/rpc", Protocol::XmlRpc { procedure: procedure() }, "text/xml; charset=utf-8"),
        ("/soap", Protocol::Soap { procedure: procedure() }, "text/xml; charset=utf-8"),
    ];
    let mut resource = None;
    for (path, protocol, _) in &protocols {
        let request = |request: &mut feedgate_core::subscription::SubscriptionRequest| {
            request.protocol = protocol.clone();
        };
        resource = Some(node.subscribe(&subscriber.url(path), request).await.id.resource);
    }
    node.append(resource.unwrap(), 1..=2).await;
    for (path, _, content_type) in &protocols {
        let got = only(&subscriber, path).await;
        assert_eq!(got.header("content-type"), Some(*content_type), "{path}");
        assert_eq!(named(&got).as_deref(), Some(TOPIC), "{path}: {}", got.text());
        assert_eq!(got.text().contains("river.changed"), *path != "/post", "{}", got.text());
        node.until(&subscriber.url(path), told(2)).await;
    }
    let soap = only(&subscriber, "/soap").await;
    assert_eq!(soap.header("soapaction"), Some("\"/soap\""));
    node.stop().await;
}

/// Row S-12.
async fn the_null_device_is_never_called(database: Database) {
    let node = Node::start(&database).await;
    let subscriber = Subscriber::start().await;
    let callback = subscriber.url("/dev/null");
    let resource = node.subscribe(&callback, |_| {}).await.id.resource;
    node.append(resource, 1..=2).await;
    node.until(&callback, told(2)).await;
    assert_eq!(subscriber.notified("/dev/null").len(), 0, "row S-12");
    node.stop().await;
}
