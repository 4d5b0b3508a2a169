//! Whoever registered is shown its own subscriptions in clear, and at once.

use serde_json::Value;
use sha2::{Digest, Sha256};

use super::json_at;
use crate::support::feeds::rss;
use crate::support::world::World;

/// The callbacks that are listed for the topic of `world`.
fn callbacks<'a>(world: &World, listing: &'a Value) -> Vec<&'a str> {
    let listed = listing["feeds"][&world.topic]["subscriptions"].as_array();
    listed.into_iter().flatten().filter_map(|one| one["url"].as_str()).collect()
}

#[tokio::test]
async fn f23_who_registered_sees_its_subscriptions_at_once_and_in_clear() {
    let proxies = [("FEEDGATE_TRUSTED_PROXIES", "127.0.0.0/8")];
    let world = World::with_tides(2, &proxies).await;
    let (gateway, subscriber) = (&world.gateway, &world.subscriber);
    let mut want = Vec::new();
    for path in ["/one/token", "/two/token"] {
        gateway.subscribe_rsscloud("http-post", &world.topic, subscriber, path).await;
        want.push(subscriber.url(path));
        let listing = json_at(gateway, "/subscriptions.json").await;
        assert_eq!(callbacks(&world, &listing), want);
    }
    let listing = json_at(gateway, "/subscriptions.json").await;
    let resource = &listing["feeds"][&world.topic]["resource"];
    let body = rss("tides", 1..3);
    assert_eq!(resource["lastHash"], hex::encode(Sha256::digest(&body)));
    assert_eq!(resource["lastSize"], body.len());

    // An account sees what is its own, and of the others no more than anybody.
    let own = subscriber.url("/account/token");
    gateway.subscribe_superfeedr(&world.topic, &own, "json").await;
    let listing = gateway.own("/subscriptions.json").await;
    let displayed = callbacks(&world, &listing);
    assert_eq!(displayed.len(), 3, "{displayed:?}");
    assert_eq!(displayed[2], own);
    assert!(displayed[..2].iter().all(|url| url.contains('…')), "{displayed:?}");
}
