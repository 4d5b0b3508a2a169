//! Generations of subscriptions: what was claimed before a change is not sent, and its result changes
//! nothing but the cursor (faults E1 and E2).

use feedgate_core::record::Seq;
use feedgate_core::store::{DeliveryOutcome, DeliveryResult, HeldDelivery};
use feedgate_core::subscription::{DueSubscription, Subscription, SubscriptionId};
use feedgate_store::Store;

use super::{at, few, listed, on_both_stores, poll, request, room, subscribe};
use crate::support::claiming_store::ClaimingStore;
use crate::support::postgres::Database;

on_both_stores!(
    e01_what_was_claimed_before_a_change_is_not_current,
    e01_what_another_node_has_claimed_since_is_not_current,
    e02_the_result_of_an_earlier_generation_does_not_end_a_renewed_subscription,
    e02_the_failure_of_an_earlier_generation_puts_off_no_retry,
    e02_the_success_of_an_earlier_generation_moves_the_cursor,
    e02_a_replay_of_less_than_is_owed_puts_off_no_retry,
);

async fn claim(store: &ClaimingStore, seconds: i64) -> Vec<DueSubscription> {
    store.claim_subscriptions(at(seconds), at(seconds + 10), &room()).await.unwrap()
}

/// Returns the numbers of those of `due` that may still be sent at `seconds`.
async fn current(store: &ClaimingStore, due: &[DueSubscription], seconds: i64) -> Vec<i64> {
    let held: Vec<_> = due.iter().map(HeldDelivery::from).collect();
    let current = store.still_current(&held, at(seconds)).await.unwrap();
    let mut numbers: Vec<_> = current.iter().map(|id| id.number).collect();
    numbers.sort_unstable();
    numbers
}

/// Subscribes `count` callbacks at one host, appends an entry, and claims.
async fn claimed(store: &ClaimingStore, count: usize) -> Vec<DueSubscription> {
    for n in 0..count {
        subscribe(store, "a", &format!("https://callback.test/{n}")).await;
    }
    let resource = listed(store).await[0].id.resource;
    let entry = format!("of {count}");
    store.record(resource, &poll(at(1), &[entry.as_str()])).await.unwrap();
    let mut due = claim(store, 2).await;
    due.sort_unstable_by_key(|due| due.subscription.id.number);
    assert_eq!(due.len(), count);
    due
}

async fn only(store: &ClaimingStore) -> Subscription {
    listed(store).await.remove(0)
}

async fn settle(
    store: &ClaimingStore,
    due: &DueSubscription,
    outcome: DeliveryOutcome,
    seconds: i64,
) {
    let store: &Store = store;
    store.record_deliveries(&[DeliveryResult::new(due, outcome, None)], at(seconds)).await.unwrap();
}

async fn e01_what_was_claimed_before_a_change_is_not_current(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    // Six at one host are members of a batch, and one alone has a row of its own.
    for count in [6, 1] {
        let due = claimed(&store, count).await;
        let ids: Vec<SubscriptionId> = due.iter().map(|due| due.subscription.id).collect();
        let callback = |n: usize| request("a", &format!("https://callback.test/{n}"));
        assert_eq!(current(&store, &due, 3).await.len(), count);
        for (n, id) in ids.iter().enumerate() {
            match n {
                0 => store.pause(*id, at(3)).await.unwrap(),
                1 => {
                    let ended = callback(n);
                    store
                        .unsubscribe(None, &ended.topic, &ended.callback, None)
                        .await
                        .map(drop)
                        .unwrap();
                }
                2 => store.subscribe(&callback(n), at(3)).await.map(drop).unwrap(),
                3 => assert!(store.replay(*id, Seq(0), at(3)).await.unwrap()),
                4 => assert!(store.retry_delivery(*id, at(3)).await.unwrap()),
                _ => {}
            }
        }
        let unchanged: Vec<i64> = ids.iter().skip(5).map(|id| id.number).collect();
        assert_eq!(current(&store, &due, 4).await, unchanged);
        // What is given back is claimed as it is now.
        let claims: Vec<_> = due.iter().map(|due| (due.subscription.id, due.claim)).collect();
        store.release_subscription_claims(&claims, at(5)).await.unwrap();
        let again = claim(&store, 6).await;
        assert_eq!(again.len(), count.saturating_sub(2), "all but the paused and the ended one");
        assert_eq!(current(&store, &again, 7).await.len(), again.len());
        for subscription in listed(&store).await {
            let (topic, callback) = (&subscription.topic, &subscription.callback);
            store.unsubscribe(None, topic, callback, None).await.unwrap();
        }
    }
}

async fn e01_what_another_node_has_claimed_since_is_not_current(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let due = claimed(&store, 3).await;
    assert_eq!(current(&store, &due, 11).await.len(), 3);
    assert!(current(&store, &due, 12).await.is_empty(), "the claims have ended");
    let again = claim(&store, 12).await;
    assert!(current(&store, &due, 13).await.is_empty());
    assert_eq!(current(&store, &again, 13).await.len(), 3);
}

async fn e02_the_result_of_an_earlier_generation_does_not_end_a_renewed_subscription(
    database: Database,
) {
    let store = ClaimingStore::new(database.open().await);
    let due = claimed(&store, 1).await.remove(0);
    subscribe(&store, "a", "https://callback.test/0").await;
    settle(&store, &due, DeliveryOutcome::Ended, 4).await;
    assert_eq!(only(&store).await.id, due.subscription.id, "it was made anew since");
    let again = claim(&store, 4).await;
    assert_eq!(again.len(), 1, "what it is owed is sent at once");
    settle(&store, &again[0], DeliveryOutcome::Ended, 5).await;
    assert_eq!(listed(&store).await, [], "a later 410 ends it");
}

async fn e02_the_failure_of_an_earlier_generation_puts_off_no_retry(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let mut due = claimed(&store, 1).await.remove(0);
    let id = due.subscription.id;
    for _ in 0..9 {
        settle(&store, &due, DeliveryOutcome::Failed { retry_at: Some(at(3)) }, 3).await;
        due = claim(&store, 3).await.remove(0);
    }
    assert_eq!(due.subscription.failures, 9);
    subscribe(&store, "a", "https://callback.test/0").await;
    assert!(store.retry_delivery(id, at(4)).await.unwrap());
    for outcome in
        [DeliveryOutcome::Failed { retry_at: Some(at(90_000)) }, DeliveryOutcome::Suspended]
    {
        settle(&store, &due, outcome, 5).await;
        assert_eq!(only(&store).await.failures, 0);
        due = claim(&store, 5).await.remove(0);
        assert_eq!(due.subscription.id, id);
        assert!(store.retry_delivery(id, at(5)).await.unwrap(), "not paused");
    }
}

async fn e02_the_success_of_an_earlier_generation_moves_the_cursor(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let due = claimed(&store, 1).await.remove(0);
    let id = due.subscription.id;
    store.pause(id, at(3)).await.unwrap();
    settle(&store, &due, DeliveryOutcome::Delivered { cursor: Seq(1), status: 0 }, 4).await;
    assert_eq!(only(&store).await.cursor, Seq(1));
    store.resume(id, at(5)).await.unwrap();
    assert_eq!(claim(&store, 6).await, [], "nothing is sent twice");
    store.record(id.resource, &poll(at(7), &["of 1", "2"])).await.unwrap();
    let due = store.claim_subscriptions(at(8), at(18), &few(1)).await.unwrap().remove(0);
    assert!(store.replay(id, Seq(0), at(9)).await.unwrap());
    settle(&store, &due, DeliveryOutcome::Delivered { cursor: Seq(2), status: 0 }, 10).await;
    assert_eq!(only(&store).await.cursor, Seq(0), "a replay begins where it was requested");
    let again = claim(&store, 11).await;
    assert_eq!((again[0].owed, again[0].told_before), (Seq(2), Seq(2)));
}

async fn e02_a_replay_of_less_than_is_owed_puts_off_no_retry(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let due = claimed(&store, 1).await.remove(0);
    let id = due.subscription.id;
    store.record(id.resource, &poll(at(2), &["2", "3"])).await.unwrap();
    let failed = || DeliveryOutcome::Failed { retry_at: Some(at(90_000)) };
    // While the first delivery is in flight, and while its retry is waited for.
    assert!(store.replay(id, Seq(2), at(3)).await.unwrap());
    settle(&store, &due, failed(), 4).await;
    let due = claim(&store, 5).await.remove(0);
    assert_eq!((due.subscription.cursor, due.subscription.failures), (Seq(0), 0));
    settle(&store, &due, failed(), 6).await;
    assert_eq!(claim(&store, 7).await, [], "it waits for its retry");
    assert!(store.replay(id, Seq(2), at(8)).await.unwrap());
    assert_eq!(claim(&store, 8).await[0].subscription.cursor, Seq(0), "all of it is sent");
}
