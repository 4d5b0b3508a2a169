//! A library for WebSub subscribers: `pubsubhubbub` of npm.

use super::Client;
use crate::support::world::World;

/// Row N-8, and WebSub 7.1.
#[tokio::test]
async fn the_library_of_npm_subscribes_and_verifies_a_notification() {
    let world = World::with_tides(2, &[]).await;
    let hub = world.gateway.url("/hub");
    let mut client = Client::node("websub_subscriber.js", &[&hub, &world.topic]);
    assert_eq!(client.next_line().await, Some(format!("subscribed {}", world.topic)));
    world.gateway.comes_to_rest().await;
    world.put_tides(3);
    let form = [("hub.mode", "publish"), ("hub.url", world.topic.as_str())];
    assert!(world.gateway.post("/hub", &form).await.0.is_success());
    assert_eq!(client.next_line().await, Some(format!("notified {}", world.topic)));
}
