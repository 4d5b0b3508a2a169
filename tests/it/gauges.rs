//! The gauges of `/metrics` are counted in the database at most once in a while.

use crate::support::world::World;

#[tokio::test]
async fn gauges_are_counted_again_only_when_they_are_old() {
    let world = World::with_tides(2, &[("FEEDGATE_GAUGES_MAX_AGE_S", "3600")]).await;
    world.gateway.measures("feedgate_subscriptions 0").await;
    let callback = world.subscriber.url("/cb");
    world.gateway.subscribe_superfeedr(&world.topic, &callback, "atom").await;
    let (_, metrics) = world.gateway.get("/metrics").await;
    assert!(metrics.contains("\nfeedgate_subscriptions 0\n"), "{metrics}");
    assert!(metrics.contains("endpoint=\"account\""), "counters are never old: {metrics}");
}
