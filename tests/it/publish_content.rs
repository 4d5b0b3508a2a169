//! Publish requests that bring the content of their topic.

use http::StatusCode;

use crate::support::feeds::rss;
use crate::support::world::World;
use feedgate_protocol::signature::{SignatureMethod, sign};

const SECRET: &str = "hush publisher";

impl World {
    async fn publish_content(&self, content: &str, signature: &str) -> (StatusCode, String) {
        let form = [
            ("hub.mode", "publish"),
            ("hub.url", &self.topic),
            ("hub.content", content),
            ("hub.signature", signature),
        ];
        self.gateway.post("/hub", &form).await
    }
}

/// Row P-4.
#[tokio::test]
async fn content_is_delivered_if_its_publisher_has_signed_it() {
    let secret = format!("127.0.0.1={SECRET}");
    let world = World::with_tides(2, &[("FEEDGATE_PUBLISHER_SECRETS", &secret)]).await;
    let callback = world.subscriber.url("/cb");
    world.gateway.subscribe_superfeedr(&world.topic, &callback, "atom").await;

    let forged = rss("tides", 1..3).replace("2026:2<", "2026:forged<");
    for signature in ["", "sha1=00", &sign(SignatureMethod::Sha1, "guessed", forged.as_bytes())] {
        let (status, _) = world.publish_content(&forged, signature).await;
        assert_eq!(status, StatusCode::NO_CONTENT, "{signature}");
    }

    // The topic as it is served has no third item yet.
    let signed = rss("tides", 1..4);
    let signature = sign(SignatureMethod::Sha256, SECRET, signed.as_bytes());
    assert_eq!(world.publish_content(&signed, &signature).await.0, StatusCode::NO_CONTENT);
    world.subscriber.until("/cb", |told| !told.is_empty()).await;

    let signed = rss("tides", 1..5);
    let signature = sign(SignatureMethod::Sha1, SECRET, signed.as_bytes());
    let bare = signature.trim_start_matches("sha1=");
    assert_eq!(world.publish_content(&signed, bare).await.0, StatusCode::NO_CONTENT);
    world.subscriber.until("/cb", |told| told.len() > 1).await;

    let bodies: Vec<String> = world.subscriber.notified("/cb").iter().map(|a| a.text()).collect();
    for (body, title) in bodies.iter().zip(["Item 3", "Item 4"]) {
        assert!(body.contains(title) && body.matches("<entry").count() == 1, "{body}");
    }
    assert!(!bodies.concat().contains("forged"), "{bodies:?}");
}

/// Row P-4.
#[tokio::test]
async fn content_without_one_topic_is_refused() {
    let world = World::with_tides(1, &[]).await;
    let two =
        [("hub.url", "https://a.test/"), ("hub.url", "https://b.test/"), ("hub.content", "x")];
    let unsigned = [("hub.url", world.topic.as_str()), ("hub.signature", "sha1=00")];
    for path in ["/hub", "/"] {
        for (form, reason) in [(&two[..], "one topic"), (&unsigned[..], "hub.content")] {
            let form = [&[("hub.mode", "publish")], form].concat();
            let (status, text) = world.gateway.post(path, &form).await;
            assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{text}");
            assert!(text.contains(reason), "{text}");
        }
    }
}
