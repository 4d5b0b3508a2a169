//! Who is sent updates of entries, and who is not.

use http::StatusCode;

use super::World;
use crate::support::feeds::rss;

/// Row N-14.
#[tokio::test]
async fn n07_updates_go_to_who_asked_for_them() {
    let world = World::subscribed("json").await;
    for (path, updates) in [("/all", "true"), ("/none", "false")] {
        let callback = world.subscriber.url(path);
        let form = [
            ("hub.mode", "subscribe"),
            ("hub.topic", &world.topic),
            ("hub.callback", &callback),
            ("updates", updates),
        ];
        let (status, text) = world.gateway.superfeedr(&form).await;
        assert_eq!(status, StatusCode::NO_CONTENT, "{text}");
    }
    let edited = rss("tides", 1..4).replace("The text of 2<", "The corrected text of 2<");
    world.publisher.put_rss("/feed", edited.clone());
    world.gateway.post("/ping", &[("url", &world.topic)]).await;
    world.subscriber.until("/all", |told| told.len() == 1).await;
    let more = edited.replace(
        "<item><title>Item 3",
        "<item><title>Item 4</title><guid>urn:4</guid></item><item><title>Item 3",
    );
    world.publisher.put_rss("/feed", more);
    world.gateway.post("/ping", &[("url", &world.topic)]).await;
    for path in ["/cb", "/none", "/all"] {
        let want = if path == "/all" { 2 } else { 1 };
        world.subscriber.until(path, |told| told.len() >= want).await;
        world.gateway.comes_to_rest().await;
        let told = world.subscriber.notified(path);
        assert_eq!(told.len(), want, "{path}");
        let last = told.last().unwrap();
        assert!(last.text().contains("Item 4") && !last.text().contains("corrected"), "{path}");
    }
    let covered = world.subscriber.notified("/none").remove(0);
    assert_eq!(covered.header("x-feedgate-seq"), Some("5-5"), "it was moved past the update");
    let displayed = world.retrieve(&[("format", "json")]).await.json();
    assert_eq!(displayed["items"].as_array().unwrap().len(), 4, "each entry once: {displayed}");
    assert!(displayed.to_string().contains("The corrected text of 2"));
    let (status, _) = world
        .gateway
        .superfeedr(&[
            ("hub.mode", "subscribe"),
            ("hub.topic", &world.topic),
            ("hub.callback", &world.subscriber.url("/all")),
            ("updates", "maybe"),
        ])
        .await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
}
