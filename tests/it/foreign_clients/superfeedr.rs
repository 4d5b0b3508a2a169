//! A library for Superfeedr and other hubs with accounts: `django-push` of PyPI.

use tokio::io::AsyncWriteExt;

use super::Client;
use crate::support::gateway::{LOGIN, TOKEN};
use crate::support::world::World;

/// Rows A-1, S-1 and U-1: the gateway's address is all that differs from Superfeedr.
#[tokio::test]
async fn the_library_of_pypi_subscribes_with_credentials_and_is_notified() {
    let world = World::with_tides(2, &[]).await;
    let hub = world.gateway.url("/");
    let mut client = Client::python("superfeedr_django.py", &[&hub, &world.topic, LOGIN, TOKEN]);
    assert_eq!(client.next_line().await, Some(format!("subscribed {}", world.topic)));
    world.gateway.comes_to_rest().await;
    world.put_tides(3);
    let form = [("hub.mode", "publish"), ("hub.url", world.topic.as_str())];
    assert!(world.gateway.post("/hub", &form).await.0.is_success());
    assert_eq!(client.next_line().await, Some("notified Item 3".to_owned()));
    client.program.stdin.take().unwrap().write_all(b"\n").await.unwrap();
    assert_eq!(client.next_line().await, Some(format!("unsubscribed {}", world.topic)));
}
