//! Documents of the gateway that nobody can subscribe to, and which name no hub.

use http::StatusCode;

use crate::support::feeds::link;
use crate::support::gateway::{LOGIN, TOKEN};
use crate::support::server::client;
use crate::support::world::World;

/// The login and token of the tests' account, as a parameter.
const AUTHORIZATION: &str = "authorization=Basic%20dGVzdGVyOnMzY3JldA";

#[tokio::test]
async fn a04_what_is_no_log_is_refused_and_what_can_be_subscribed_to_is_named() {
    let world = World::with_tides(2, &[]).await;
    let gateway = &world.gateway;
    gateway.subscribe_superfeedr(&world.topic, &world.subscriber.url("/own"), "atom").await;
    gateway.open_to_anonymous(&world.topic).await;
    let of_topic = format!("of {}: subscribe to that", world.topic);
    let track = "subscribe to the track http".to_owned();
    let cases = [
        (format!("/?hub.mode=retrieve&hub.topic={}", world.topic), of_topic.clone()),
        ("/?hub.mode=search&query=tides".to_owned(), track),
        (format!("/feeds?topic={}", world.topic), of_topic),
        ("/accounts/tester/recent".to_owned(), "which is private".to_owned()),
        ("/all/recent".to_owned(), "no such archive".to_owned()),
        ("/feeds/999999/recent".to_owned(), "no such archive".to_owned()),
        ("/changes.xml".to_owned(), "subscribe to the feeds in it".to_owned()),
        ("/feeds.opml".to_owned(), "subscribe to the feeds in it".to_owned()),
    ];
    for (path, words) in cases {
        let (topic, callback) = (gateway.url(&path), world.subscriber.url("/cb"));
        let form = [
            ("hub.mode", "subscribe"),
            ("hub.topic", topic.as_str()),
            ("hub.callback", callback.as_str()),
        ];
        let (status, text) = gateway.post("/hub", &form).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{path}: {text}");
        assert!(text.contains(&words), "{path}: {text}");
        let (status, text) = gateway.superfeedr(&form).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{path}: {text}");
        assert!(text.contains(&words), "{path}: {text}");
    }
    assert!(world.subscriber.requests_to("/cb").is_empty(), "and nobody is asked");
    let found = client().get(gateway.url(&format!("/feeds?topic={}", world.topic)));
    let archive = found.send().await.unwrap().url().to_string();
    gateway.subscribe_websub(&archive, &world.subscriber.url("/cb"), &[]).await;
}

#[tokio::test]
async fn a04_a_private_document_names_no_hub_and_no_address_that_fails() {
    let world = World::with_tides(2, &[]).await;
    let gateway = &world.gateway;
    gateway.subscribe_superfeedr(&world.topic, &world.subscriber.url("/own"), "atom").await;
    let topic = url::form_urlencoded::byte_serialize(world.topic.as_bytes()).collect::<String>();
    for mode in [format!("retrieve&hub.topic={topic}"), "search&query=tides".to_owned()] {
        let path = format!("/?hub.mode={mode}");
        let get = |url: String| client().get(url).basic_auth(LOGIN, Some(TOKEN)).send();
        let text = get(gateway.url(&path)).await.unwrap().text().await.unwrap();
        assert_eq!(link(&text, "hub"), None, "{text}");
        let again = get(link(&text, "self").unwrap()).await.unwrap();
        assert_eq!(again.status(), StatusCode::OK, "its own address works");

        let (status, text) = gateway.get(&format!("{path}&{AUTHORIZATION}")).await;
        assert_eq!(status, StatusCode::OK, "{text}");
        assert_eq!((link(&text, "hub"), link(&text, "self")), (None, None), "{text}");
    }
}
