//! Libraries for server-sent events: `eventsource` of npm, and `httpx-sse` of PyPI.

use url::form_urlencoded::Serializer;

use super::Client;
use crate::support::feeds::entry_id;
use crate::support::world::World;

/// The login of the tests, as browsers send it that cannot set headers.
const AUTHORIZATION: &str = "dGVzdGVyOnMzY3JldA==";

/// Rows.
#[tokio::test]
async fn the_library_of_npm_receives_each_entry_once_over_a_restart() {
    receives_each_entry_once(|address| Client::node("sse_client.js", &[address])).await;
}

/// Rows.
#[tokio::test]
async fn the_library_of_pypi_receives_each_entry_once_over_a_restart() {
    receives_each_entry_once(|address| Client::python("sse_client.py", &[address])).await;
}

async fn receives_each_entry_once(start: impl Fn(&str) -> Client) {
    let mut world = World::with_tides(2, &[]).await;
    let callback = world.subscriber.url("/cb");
    world.gateway.subscribe_superfeedr(&world.topic, &callback, "json").await;
    let query = Serializer::new(String::new())
        .append_pair("hub.mode", "retrieve")
        .append_pair("hub.topic", &world.topic)
        .append_pair("wait", "stream")
        .append_pair("format", "json")
        .append_pair("authorization", AUTHORIZATION)
        .finish();
    let mut client = start(&world.gateway.url(&format!("/?{query}")));
    let entry = |n| Some(format!("entry {}", entry_id("tides", n)));
    for n in [2, 1] {
        assert_eq!(client.next_line().await, entry(n), "the newest first");
    }
    world.publish_tides(3).await;
    assert_eq!(client.next_line().await, entry(3));

    world.gateway.kill();
    world.gateway.restart().await;
    world.publish_tides(4).await;
    assert_eq!(client.next_line().await, entry(4), "the client goes on where it was");
    world.publish_tides(5).await;
    assert_eq!(client.next_line().await, entry(5));
}
