//! The page of a host of callbacks.

use feedgate::jobs::runner;
use feedgate_core::subscription::SubscriptionRequest;
use feedgate_core::topic::{Callback, Topic};
use feedgate_protocol::Protocol;

use super::{Visitor, world_of_two};

#[tokio::test]
async fn subscriptions_at_hosts_with_longer_names_hide_none_of_a_host() {
    let world = world_of_two().await;
    let store = world.database.open().await;
    let longer = (0..30).map(|n| format!("https://a.test.host{n}.test/"));
    for callback in longer.chain(["https://a.test/its-own".to_owned()]) {
        let topic = Topic::parse(&world.topic).unwrap();
        let callback = Callback::parse(&callback).unwrap();
        let request = SubscriptionRequest::new(topic, callback, Protocol::WebSub);
        store.subscribe(&request, runner::now()).await.unwrap();
    }
    store.close().await;
    let root = Visitor::sign_in(&world, "root", "root").await;
    let page = root.page("/console/hosts/a.test%3A443").await;
    assert!(page.contains("/its-own") && !page.contains("a.test.host"), "{page}");
}
