//! Deliveries that a subscriber pauses, resumes, or does not wait for.

use feedgate_core::delivery_health::DeliveryHealth;
use feedgate_core::record::Seq;
use feedgate_core::store::{DeliveryOutcome, SubscriptionFilter};
use feedgate_core::subscription::{Lease, SubscriptionId};

use super::{at, on_both_stores, poll, request, room, subscribe};
use crate::support::claiming_store::ClaimingStore;
use crate::support::postgres::Database;

on_both_stores!(
    what_is_paused_is_due_once_it_is_resumed,
    a_delivery_in_progress_ends_before_the_pause,
    a_claim_that_is_renewed_or_released_ends_no_pause,
    a_retry_can_be_made_at_once,
    d07_what_is_suspended_continues_once_it_is_resumed_or_renewed,
);

/// The ranges that are due at `seconds`, claimed for ten seconds.
async fn claim_due(store: &ClaimingStore, seconds: i64) -> Vec<(i64, i64)> {
    let due = store.claim_subscriptions(at(seconds), at(seconds + 10), &room()).await.unwrap();
    due.iter().map(|due| (due.subscription.cursor.0, due.owed.0)).collect()
}

async fn settle(store: &ClaimingStore, seconds: i64, id: SubscriptionId, outcome: DeliveryOutcome) {
    store.record_deliveries(&[(id, outcome)], at(seconds)).await.unwrap();
}

async fn health(store: &ClaimingStore) -> DeliveryHealth {
    let all = SubscriptionFilter { limit: 1, ..SubscriptionFilter::default() };
    let first = store.list(&all).await.unwrap().0.remove(0);
    assert_eq!(store.listed(first.subscription.id).await.unwrap().as_ref(), Some(&first));
    first.delivery
}

async fn append(store: &ClaimingStore, seconds: i64, id: SubscriptionId, entry: &str) {
    store.record(id.resource, &poll(at(seconds), &[entry])).await.unwrap();
}

async fn what_is_paused_is_due_once_it_is_resumed(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let id = subscribe(&store, "a", "https://callback.test/").await.id;
    append(&store, 1, id, "1").await;
    store.pause(id, at(2)).await.unwrap();
    store.pause(id, at(3)).await.unwrap();
    let paused = health(&store).await;
    assert_eq!((paused.paused_at, paused.due_at), (Some(at(2)), None), "since the first time");
    append(&store, 4, id, "2").await;
    subscribe(&store, "a", "https://callback.test/").await;
    assert!(store.replay(id, Seq(0), at(5)).await.unwrap());
    assert_eq!(claim_due(&store, 99).await, [], "nothing of it ends the pause");

    store.resume(id, at(100)).await.unwrap();
    assert_eq!(claim_due(&store, 100).await, [(0, 2)], "at once, and everything");
    settle(&store, 101, id, DeliveryOutcome::Delivered { cursor: Seq(2), status: 0 }).await;
    store.pause(id, at(102)).await.unwrap();
    store.resume(id, at(103)).await.unwrap();
    assert_eq!(claim_due(&store, 103).await, [], "nothing was held back");
    append(&store, 104, id, "3").await;
    assert_eq!(claim_due(&store, 104).await, [(2, 3)]);
}

async fn a_delivery_in_progress_ends_before_the_pause(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let id = subscribe(&store, "a", "https://callback.test/").await.id;
    append(&store, 1, id, "1").await;
    assert_eq!(claim_due(&store, 2).await, [(0, 1)]);
    store.pause(id, at(3)).await.unwrap();
    append(&store, 4, id, "2").await;
    settle(&store, 5, id, DeliveryOutcome::Delivered { cursor: Seq(1), status: 0 }).await;
    assert_eq!(claim_due(&store, 99).await, [], "what came since waits");
    store.resume(id, at(100)).await.unwrap();
    assert_eq!(claim_due(&store, 100).await, [(1, 2)]);

    store.pause(id, at(101)).await.unwrap();
    settle(&store, 102, id, DeliveryOutcome::Failed { retry_at: Some(at(110)) }).await;
    assert_eq!(claim_due(&store, 199).await, [], "and so does a retry");
    store.resume(id, at(200)).await.unwrap();
    assert_eq!(claim_due(&store, 200).await, [(1, 2)]);
    // The subscription is resumed while a delivery is in progress.
    store.pause(id, at(201)).await.unwrap();
    store.resume(id, at(202)).await.unwrap();
    assert_eq!(claim_due(&store, 203).await, [], "one delivery at a time (rule D2)");
    assert_eq!(claim_due(&store, 210).await, [(1, 2)], "its node stopped");
}

async fn a_claim_that_is_renewed_or_released_ends_no_pause(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let id = subscribe(&store, "a", "https://callback.test/").await.id;
    append(&store, 1, id, "1").await;
    let due = store.claim_subscriptions(at(2), at(12), &room()).await.unwrap();
    let claims = [(id, due[0].claim)];
    store.pause(id, at(3)).await.unwrap();
    let renewed = store.renew_subscription_claims(&claims, at(4), at(14)).await.unwrap();
    assert_eq!(renewed, [id], "its delivery goes on");
    assert_eq!(claim_due(&store, 20).await, [], "nobody else delivers it when the claim has ended");
    store.release_subscription_claims(&claims, at(21)).await.unwrap();
    assert_eq!(claim_due(&store, 22).await, []);
    store.resume(id, at(23)).await.unwrap();
    assert_eq!(claim_due(&store, 23).await, [(0, 1)]);
}

async fn a_retry_can_be_made_at_once(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let id = subscribe(&store, "a", "https://callback.test/").await.id;
    assert!(!store.retry_delivery(id, at(0)).await.unwrap(), "nothing is owed");
    append(&store, 1, id, "1").await;
    claim_due(&store, 2).await;
    assert!(store.retry_delivery(id, at(3)).await.unwrap());
    assert_eq!(claim_due(&store, 3).await, [], "it is in progress");
    settle(&store, 4, id, DeliveryOutcome::Failed { retry_at: Some(at(9_000)) }).await;
    assert_eq!(claim_due(&store, 5).await, [(0, 1)], "once that has ended");
    settle(&store, 5, id, DeliveryOutcome::Failed { retry_at: Some(at(9_000)) }).await;
    assert!(store.retry_delivery(id, at(5)).await.unwrap());
    assert_eq!(claim_due(&store, 5).await, [(0, 1)]);
    settle(&store, 6, id, DeliveryOutcome::Failed { retry_at: Some(at(9_000)) }).await;
    store.pause(id, at(7)).await.unwrap();
    assert!(!store.retry_delivery(id, at(8)).await.unwrap(), "a pause is ended by resuming");
    assert_eq!(claim_due(&store, 9).await, []);
}

async fn d07_what_is_suspended_continues_once_it_is_resumed_or_renewed(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    for (topic, is_renewed) in [("resumed", false), ("renewed", true)] {
        let mut lasting = request(topic, "https://callback.test/");
        lasting.lease = Lease::ACCOUNT;
        let id = store.subscribe(&lasting, at(0)).await.unwrap().id;
        append(&store, 1, id, "1").await;
        assert_eq!(claim_due(&store, 2).await, [(0, 1)]);
        settle(&store, 3, id, DeliveryOutcome::Suspended).await;
        append(&store, 100_000, id, "2").await;
        assert_eq!(claim_due(&store, 100_001).await, [], "nothing is sent");
        let suspended = health(&store).await;
        assert!(suspended.is_suspended && suspended.paused_at.is_some());

        match is_renewed {
            true => drop(store.subscribe(&lasting, at(100_002)).await.unwrap()),
            false => store.resume(id, at(100_002)).await.unwrap(),
        }
        let resumed = health(&store).await;
        assert!(!resumed.is_suspended && resumed.paused_at.is_none());
        let due = store.claim_subscriptions(at(100_003), at(100_013), &room()).await.unwrap();
        let subscription = &due[0].subscription;
        assert_eq!((subscription.failures, subscription.failing_since), (0, None));
        assert_eq!((subscription.cursor, due[0].owed), (Seq(0), Seq(2)), "all that it has missed");
        store.unsubscribe(None, &lasting.topic, &lasting.callback, None).await.unwrap();
    }
    // What its subscriber has paused stays paused when it is renewed.
    let id = subscribe(&store, "a", "https://callback.test/").await.id;
    store.pause(id, at(1)).await.unwrap();
    subscribe(&store, "a", "https://callback.test/").await;
    assert!(health(&store).await.paused_at.is_some());
}
