//! Whether what is registered for can be read is found out when it is registered.

use feedgate_protocol::xmlrpc::{XmlRpcValue, call_with, read_response};
use http::StatusCode;

use super::{unreadable, worked};
use crate::store::on_one_store;
use crate::support::feeds::rss;
use crate::support::gateway::Gateway;
use crate::support::postgres::Database;
use crate::support::publisher::Publisher;
use crate::support::server::client;
use crate::support::subscriber::Subscriber;
use crate::support::world::World;

on_one_store!(where_the_store_fails_for_one_feed_nothing_is_said_to_have_worked);

impl World {
    /// One in which somebody watches a feed whose last poll failed.
    async fn failing(code: StatusCode) -> World {
        let world = World::with_tides(2, &[]).await;
        assert!(worked(&world.register("http-post", "/first", &[]).await));
        world.publisher.fail("/feed", code);
        let (_, text) = world.gateway.post("/ping", &[("url", &world.topic)]).await;
        assert!(text.contains(&unreadable("ping", &world.topic)), "{text}");
        world
    }
}

#[tokio::test]
async fn s29_a_feed_that_failed_is_read_anew_for_who_registers() {
    let world = World::failing(StatusCode::INTERNAL_SERVER_ERROR).await;
    let refused = world.register("http-post", "/second", &[]).await;
    assert!(refused.contains(&unreadable("subscription", &world.topic)), "{refused}");
    world.put_tides(3);
    let answer = world.register("http-post", "/second", &[]).await;
    assert!(worked(&answer), "{answer}");
    // What was read then is told to who was there before.
    world.subscriber.until("/first", |told| told.len() == 2).await;
    world.publish_and_ping(4).await;
    world.subscriber.until("/second", |told| told.len() == 2).await;
}

#[tokio::test]
async fn who_renews_while_a_feed_fails_stays_registered() {
    let world = World::failing(StatusCode::INTERNAL_SERVER_ERROR).await;
    let answer = world.register("http-post", "/first", &[]).await;
    assert!(worked(&answer), "{answer}");
    // By another protocol it would be somebody new.
    assert!(!worked(&world.register("xml-rpc", "/first", &[]).await));
}

#[tokio::test]
async fn p26_a_server_that_wants_to_be_left_alone_is_not_asked_for_who_registers() {
    let world = World::failing(StatusCode::TOO_MANY_REQUESTS).await;
    let fetches = world.publisher.fetches("/feed").len();
    let answer = world.register("http-post", "/second", &[]).await;
    assert!(worked(&answer), "{answer}");
    assert_eq!(world.publisher.fetches("/feed").len(), fetches);
}

#[tokio::test]
async fn a_registration_for_several_feeds_works_if_one_can_be_read() {
    let world = World::with_tides(2, &[]).await;
    let (nowhere, never) = (world.publisher.url("/nowhere"), world.publisher.url("/never"));
    let answer = world.register("http-post", "/cb", &[("url2", &nowhere)]).await;
    assert!(worked(&answer), "{answer}");
    let port = world.subscriber.port().to_string();
    let form = [("port", port.as_str()), ("path", "/cb"), ("protocol", "http-post")];
    let urls = [("url1", nowhere.as_str()), ("url2", never.as_str())];
    let (_, answer) = world.gateway.post("/pleaseNotify", &[&form[..], &urls].concat()).await;
    assert!(answer.contains(&unreadable("subscription", &nowhere)), "{answer}");
    // The one that can be read is kept: the first call was a test of the handler.
    let tests = world.subscriber.notified("/cb").len();
    world.publish_and_ping(3).await;
    world.subscriber.until("/cb", |told| told.len() == tests + 1).await;
}

async fn where_the_store_fails_for_one_feed_nothing_is_said_to_have_worked(database: Database) {
    let gateway = Gateway::start(&database, &[]).await;
    let (publisher, subscriber) = (Publisher::start().await, Subscriber::start().await);
    let topics = ["/one", "/other"].map(|path| publisher.url(path));
    for path in ["/one", "/other"] {
        publisher.put_rss(path, rss("tides", 1..2));
    }
    let port = subscriber.port().to_string();
    let mut form = vec![("port", port.as_str()), ("path", "/cb"), ("protocol", "http-post")];
    form.extend([("url1", topics[0].as_str()), ("url2", topics[1].as_str())]);
    let (status, text) = gateway.post("/pleaseNotify", &form).await;
    assert!(status == StatusCode::OK && worked(&text), "{status}: {text}");

    // Nothing can be done any more with one of them.
    let spoil = format!("update resources set kind = 'none' where topic = '{}'", topics[1]);
    database.run(&spoil).await;
    let (status, text) = gateway.post("/pleaseNotify", &form).await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE, "{text}");
    let call = call_with(
        "rssCloud.pleaseNotify",
        &[
            XmlRpcValue::Text(String::new()),
            XmlRpcValue::Text(port.clone()),
            XmlRpcValue::Text("/cb".to_owned()),
            XmlRpcValue::Text("http-post".to_owned()),
            XmlRpcValue::Array(topics.map(XmlRpcValue::Text).to_vec()),
        ],
    );
    let answer = client().post(gateway.url("/RPC2")).body(call).send().await.unwrap();
    let answer = read_response(answer.text().await.unwrap().as_bytes()).unwrap();
    assert!(answer.unwrap_err().message.contains("temporarily unavailable"));
}
