//! The chores of upkeep: whose turn it is, what is dropped, and what is measured.

use std::time::Duration;

use feedgate::domain::subscription::{Lease, Protocol};
use feedgate::store::{Gauges, Settled};

use super::{at, listed, on_both_stores, poll, resource, room, subscribe, wish};
use crate::support::postgres::Database;

on_both_stores!(
    a_chore_is_done_by_one_node_at_a_time,
    ended_leases_are_dropped,
    rsscloud_callbacks_that_keep_failing_are_dropped,
    velocity_is_what_was_appended_in_a_cycle,
    gauges_count_what_there_is,
    news_wake_who_waits,
);

async fn a_chore_is_done_by_one_node_at_a_time(database: Database) {
    let nodes = [database.open().await, database.open().await];
    let hour = Duration::from_secs(3_600);
    let claims = nodes.each_ref().map(|node| node.claim_chore("leases", at(0), hour));
    let claims = futures_util::future::join_all(claims).await;
    assert_eq!(claims.into_iter().filter(|claim| *claim.as_ref().unwrap()).count(), 1);
    assert!(!nodes[1].claim_chore("leases", at(3_599), hour).await.unwrap());
    assert!(nodes[1].claim_chore("velocity", at(3_599), hour).await.unwrap(), "another chore");
    assert!(nodes[1].claim_chore("leases", at(3_600), hour).await.unwrap());
}

async fn ended_leases_are_dropped(database: Database) {
    let store = database.open().await;
    for n in 0..3 {
        let mut wish = wish("a", &format!("https://callback.test/{n}"));
        wish.lease = Lease::from(Duration::from_secs(10 * (n + 1)));
        store.subscribe(&wish, at(0)).await.unwrap();
    }
    assert_eq!(store.drop_expired(at(9)).await.unwrap(), 0);
    assert_eq!(store.drop_expired(at(20)).await.unwrap(), 2);
    let left = listed(&store).await;
    assert_eq!(left.len(), 1);
    assert_eq!(resource(&store, left[0].id.resource).await.subscribers, 1);
    assert_eq!(store.drop_expired(at(99)).await.unwrap(), 1);
    assert_eq!(store.claim_resources(at(99), at(100), &room()).await.unwrap(), []);
}

/// Seed 000: "after three consecutive errors".
async fn rsscloud_callbacks_that_keep_failing_are_dropped(database: Database) {
    let store = database.open().await;
    let mut ids = Vec::new();
    for protocol in [Protocol::WebSub, Protocol::HttpPost] {
        let mut wish = wish("a", "https://callback.test/");
        wish.protocol = protocol;
        ids.push(store.subscribe(&wish, at(0)).await.unwrap().id);
    }
    for errors in 1..=3 {
        assert_eq!(store.drop_failing(3).await.unwrap(), 0, "after {} errors", errors - 1);
        let failed = ids.iter().map(|id| Settled::Failed { id: *id, retry_at: None });
        store.settle(&failed.collect::<Vec<_>>(), at(errors)).await.unwrap();
    }
    assert_eq!(store.drop_failing(3).await.unwrap(), 1);
    let left = listed(&store).await;
    assert_eq!((left.len(), left[0].id, left[0].failures), (1, ids[0], 3));
    assert_eq!(resource(&store, ids[0].resource).await.subscribers, 1);
}

async fn velocity_is_what_was_appended_in_a_cycle(database: Database) {
    const DAY: i64 = 86_400;
    let store = database.open().await;
    let id = subscribe(&store, "a", "https://callback.test/").await.id.resource;
    store.record(id, &poll(at(10), &["1", "2"])).await.unwrap();
    assert_eq!(store.measure(at(0), at(DAY)).await.unwrap(), 0, "it was made just then");
    assert_eq!(store.measure(at(1), at(DAY)).await.unwrap(), 1);
    let measured = resource(&store, id).await.status;
    assert_eq!((measured.velocity, measured.entries_count_since_last_maintenance), (2, 0));
    assert_eq!(measured.last_maintenance_at, Some(at(DAY)));
    assert_eq!(store.measure(at(DAY), at(DAY + 1)).await.unwrap(), 0, "not twice");

    // A poll that began before the measurement does not undo it.
    store.record(id, &poll(at(DAY + 5), &["3"])).await.unwrap();
    let after = resource(&store, id).await.status;
    assert_eq!((after.velocity, after.entries_count_since_last_maintenance), (2, 1));
    assert_eq!(after.last_maintenance_at, Some(at(DAY)));
}

async fn gauges_count_what_there_is(database: Database) {
    let store = database.open().await;
    assert_eq!(store.gauges(at(0)).await.unwrap(), Gauges::default());
    let well = subscribe(&store, "a", "https://callback.test/").await.id.resource;
    let ill = subscribe(&store, "b", "https://callback.test/").await.id.resource;
    let mut found = poll(at(1), &["1"]);
    store.record(well, &found).await.unwrap();
    found.status.error = "timed_out".to_owned();
    store.record(ill, &found).await.unwrap();
    let want =
        Gauges { resources: 2, failing: 1, subscriptions: 2, due: 2, oldest_due_s: 9, intents: 0 };
    assert_eq!(store.gauges(at(10)).await.unwrap(), want);
    let later = Gauges { subscriptions: 0, oldest_due_s: 9_999, ..want };
    assert_eq!(store.gauges(at(10_000)).await.unwrap(), later, "the leases have ended");
}

async fn news_wake_who_waits(database: Database) {
    let store = database.open().await;
    let news = store.news();
    let woken = news.resources.notified();
    let id = subscribe(&store, "a", "https://callback.test/").await.id.resource;
    woken.await;
    let woken = news.subscriptions.notified();
    store.record(id, &poll(at(1), &["1"])).await.unwrap();
    woken.await;
    let woken = news.intents.notified();
    let intent = feedgate::domain::intent::Intent {
        mode: feedgate::domain::intent::Mode::Subscribe,
        wish: wish("a", "https://callback.test/"),
        verify_token: None,
    };
    store.intend(&intent, at(1)).await.unwrap();
    woken.await;
}
