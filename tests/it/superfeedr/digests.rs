//! Digests of the newest entries (row S-14).

use chrono::TimeDelta;
use http::StatusCode;

use crate::support::world::World;

/// Row S-14.
#[tokio::test]
async fn a_digest_is_requested_with_the_subscription() {
    let world = World::with_tides(2, &[]).await;
    let callback = world.subscriber.url("/cb");
    let gateway = &world.gateway;
    let subscribe = |further: &'static [(&'static str, &'static str)]| {
        let own = [
            ("hub.mode", "subscribe"),
            ("hub.topic", world.topic.as_str()),
            ("hub.callback", callback.as_str()),
            ("superfeedr.digest", "true"),
        ];
        let form = [&own, further].concat();
        async move { gateway.superfeedr(&form).await }
    };
    let (status, reason) = subscribe(&[("format", "raw")]).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(reason.contains("superfeedr.digest"), "{reason}");
    assert_eq!(subscribe(&[("hub.verify", "async")]).await.0, StatusCode::ACCEPTED);
    world.subscriber.verified("/cb", 1).await;
    gateway.comes_to_rest().await;
    assert_eq!(subscribe(&[("format", "json")]).await.0, StatusCode::NO_CONTENT);

    let store = world.database.open().await;
    let now = feedgate::jobs::runner::now();
    let started = store.start_digests(now + TimeDelta::hours(25)).await.unwrap();
    assert_eq!(started, 1, "of one subscription");
    store.close().await;
}
