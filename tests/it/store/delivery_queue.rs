//! The queue of deliveries: what enters it, and what leaves it without a result.

use std::time::Duration;

use feedgate_core::record::Seq;
use feedgate_core::store::DeliveryOutcome;
use feedgate_core::subscription::{Lease, SubscriptionId};

use super::{at, on_both_stores, poll, request, room, subscribe};
use crate::support::claiming_store::ClaimingStore;
use crate::support::postgres::Database;

on_both_stores!(
    a_replay_outlives_the_node_that_delivered,
    a_replay_outlives_a_retry_and_a_renewal,
    a_replay_outlives_a_pause_and_a_release,
    a_replay_while_paused_leaves_no_older_one,
    whoever_has_ended_is_not_in_the_queue,
    an_expired_subscription_leaves_the_queue_until_it_is_renewed,
);

/// Takes what is due at `seconds`, with a claim of ten seconds.
async fn take(store: &ClaimingStore, seconds: i64) -> Vec<(SubscriptionId, i64, i64)> {
    let due = store.claim_subscriptions(at(seconds), at(seconds + 10), &room()).await.unwrap();
    due.iter().map(|due| (due.subscription.id, due.subscription.cursor.0, due.owed.0)).collect()
}

/// Subscribes, appends two entries, and takes the delivery.
async fn in_progress(store: &ClaimingStore) -> SubscriptionId {
    let id = subscribe(store, "a", "https://callback.test/").await.id;
    store.record(id.resource, &poll(at(1), &["1", "2"])).await.unwrap();
    assert_eq!(take(store, 2).await, [(id, 0, 2)]);
    id
}

async fn settle_delivered(store: &ClaimingStore, id: SubscriptionId, seconds: i64) {
    let delivered = DeliveryOutcome::Delivered { cursor: Seq(2), status: 0 };
    store.record_deliveries(&[(id, delivered)], at(seconds)).await.unwrap();
}

async fn queued(store: &ClaimingStore) -> u64 {
    store.gauges(at(0)).await.unwrap().due
}

async fn a_replay_outlives_the_node_that_delivered(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let id = in_progress(&store).await;
    settle_delivered(&store, id, 3).await;
    store.record(id.resource, &poll(at(4), &["3"])).await.unwrap();
    assert_eq!(take(&store, 5).await, [(id, 2, 3)]);
    assert!(store.replay(id, Seq(1), at(6)).await.unwrap());
    assert_eq!(take(&store, 14).await, []);
    assert_eq!(take(&store, 15).await, [(id, 1, 3)], "the claim has ended without a result");
}

async fn a_replay_outlives_a_retry_and_a_renewal(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let id = in_progress(&store).await;
    assert!(store.replay(id, Seq(0), at(3)).await.unwrap());
    settle_delivered(&store, id, 4).await;
    assert_eq!(take(&store, 5).await, [(id, 0, 2)]);
    settle_delivered(&store, id, 6).await;
    for (seconds, is_renewed) in [(100, false), (200, true)] {
        let entry = seconds.to_string();
        store.record(id.resource, &poll(at(seconds), &[&entry])).await.unwrap();
        let [(_, _, head)] = take(&store, seconds + 1).await[..] else { panic!("it is due") };
        assert!(store.replay(id, Seq(0), at(seconds + 2)).await.unwrap());
        // The claim ends without a result.
        if is_renewed {
            let request = request("a", "https://callback.test/");
            assert_eq!(store.subscribe(&request, at(seconds + 20)).await.unwrap().id, id);
        } else {
            assert!(store.retry_delivery(id, at(seconds + 20)).await.unwrap());
        }
        assert_eq!(take(&store, seconds + 20).await, [(id, 0, head)]);
        let delivered = DeliveryOutcome::Delivered { cursor: Seq(head), status: 0 };
        store.record_deliveries(&[(id, delivered)], at(seconds + 21)).await.unwrap();
    }
}

async fn a_replay_outlives_a_pause_and_a_release(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let id = in_progress(&store).await;
    settle_delivered(&store, id, 3).await;
    store.record(id.resource, &poll(at(4), &["3"])).await.unwrap();
    let due = store.claim_subscriptions(at(5), at(15), &room()).await.unwrap();
    assert!(store.replay(id, Seq(0), at(6)).await.unwrap());
    store.pause(id, at(7)).await.unwrap();
    store.release_subscription_claims(&[(id, due[0].claim)], at(8)).await.unwrap();
    store.pause(id, at(9)).await.unwrap();
    assert_eq!(take(&store, 99).await, []);
    store.resume(id, at(100)).await.unwrap();
    assert_eq!(take(&store, 100).await, [(id, 0, 3)]);
}

async fn a_replay_while_paused_leaves_no_older_one(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let id = in_progress(&store).await;
    assert!(store.replay(id, Seq(0), at(3)).await.unwrap());
    store.pause(id, at(4)).await.unwrap();
    assert!(store.replay(id, Seq(0), at(20)).await.unwrap(), "the claim has ended");
    store.resume(id, at(21)).await.unwrap();
    assert_eq!(take(&store, 21).await, [(id, 0, 2)]);
    settle_delivered(&store, id, 22).await;
    assert_eq!(take(&store, 99).await, [], "it is sent once more, not twice");
}

async fn whoever_has_ended_is_not_in_the_queue(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let id = in_progress(&store).await;
    assert_eq!(queued(&store).await, 1);
    let request = request("a", "https://callback.test/");
    assert!(store.unsubscribe(None, &request.topic, &request.callback, None).await.unwrap());
    settle_delivered(&store, id, 3).await;
    assert_eq!(queued(&store).await, 0);
    assert_eq!(take(&store, 99).await, []);
}

async fn an_expired_subscription_leaves_the_queue_until_it_is_renewed(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let mut short = request("a", "https://callback.test/");
    short.lease = Lease::from(Duration::from_secs(10));
    let id = store.subscribe(&short, at(0)).await.unwrap().id;
    store.record(id.resource, &poll(at(1), &["1"])).await.unwrap();
    assert_eq!(queued(&store).await, 1);
    assert_eq!(take(&store, 11).await, [], "its lease has ended");
    assert_eq!(queued(&store).await, 0);
    store.subscribe(&short, at(12)).await.unwrap();
    assert_eq!(take(&store, 12).await, [(id, 0, 1)], "it is told what it missed");
    assert_eq!(store.drop_expired(at(30)).await.unwrap().len(), 1);
    assert_eq!(take(&store, 99).await, []);
    assert_eq!(queued(&store).await, 0);
}
