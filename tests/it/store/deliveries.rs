//! Cursors: who is owed what, and how deliveries end.

use std::sync::Arc;

use feedgate_core::claim::ClaimToken;
use feedgate_core::delivery_health::AttemptResponse;
use feedgate_core::record::Seq;
use feedgate_core::store::{DeliveryOutcome, DeliveryProgress, DeliveryResult, LogNumbers};
use feedgate_core::subscription::{DueSubscription, Format, Subscription, SubscriptionId};
use feedgate_feed::Body;

use super::{at, listed, on_both_stores, poll, request, resource, room, subscribe};
use crate::support::claiming_store::ClaimingStore;
use crate::support::postgres::Database;

on_both_stores!(
    a_cursor_never_moves_back,
    what_was_appended_meanwhile_is_due_at_once,
    a_retry_waits_for_its_time_and_then_brings_everything,
    without_a_retry_the_next_change_is_waited_for,
    a_callback_that_is_gone_ends_its_subscription,
    a_result_whose_claim_was_lost_changes_nothing,
    a_claim_that_is_renewed_or_released_is_due_then,
    a_host_is_claimed_for_from_both_ends_of_its_queue,
    many_are_settled_at_once,
    results_that_are_alike_are_stored_for_each_subscription,
    raw_cursors_run_over_body_versions,
    what_was_there_before_is_not_told,
    a_body_that_turns_out_to_be_a_feed_is_told_as_it_is,
    a_replay_sets_the_cursor_back,
    a_replay_during_a_delivery_waits_for_its_end,
    no_wake_up_is_lost_between_append_and_settle,
    the_progress_of_a_change_is_counted,
);

/// Takes what is due at `seconds`, with a claim of ten seconds.
async fn take(store: &ClaimingStore, seconds: i64) -> Vec<(SubscriptionId, i64, i64)> {
    let due = store.claim_subscriptions(at(seconds), at(seconds + 10), &room()).await.unwrap();
    due.iter().map(|due| (due.subscription.id, due.subscription.cursor.0, due.owed.0)).collect()
}

async fn settle(store: &ClaimingStore, seconds: i64, settled: (SubscriptionId, DeliveryOutcome)) {
    store.record_deliveries(&[settled], at(seconds)).await.unwrap();
}

fn delivered(id: SubscriptionId, cursor: i64) -> (SubscriptionId, DeliveryOutcome) {
    (id, DeliveryOutcome::Delivered { cursor: Seq(cursor), status: 0 })
}

/// The subscription as it stands, if it stands.
async fn now(store: &ClaimingStore, id: SubscriptionId) -> Option<Subscription> {
    listed(store).await.into_iter().find(|sub| sub.id == id)
}

async fn a_cursor_never_moves_back(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let id = subscribe(&store, "a", "https://callback.test/").await.id;
    store.record(id.resource, &poll(at(1), &["1", "2", "3"])).await.unwrap();
    assert_eq!(take(&store, 2).await, [(id, 0, 3)]);
    for (told, stands_at) in [(2, 2), (1, 2), (3, 3), (0, 3)] {
        settle(&store, 3, delivered(id, told)).await;
        assert_eq!(now(&store, id).await.unwrap().cursor, Seq(stands_at), "told {told}");
        take(&store, 3).await;
    }
    assert_eq!(take(&store, 99).await, [], "all is told");
}

async fn what_was_appended_meanwhile_is_due_at_once(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let id = subscribe(&store, "a", "https://callback.test/").await.id;
    store.record(id.resource, &poll(at(1), &["1"])).await.unwrap();
    assert_eq!(take(&store, 2).await, [(id, 0, 1)]);
    store.record(id.resource, &poll(at(3), &["2"])).await.unwrap();
    assert_eq!(take(&store, 4).await, [], "one delivery at a time (rule D2)");
    settle(&store, 5, delivered(id, 1)).await;
    assert_eq!(take(&store, 5).await, [(id, 1, 2)]);
}

async fn a_retry_waits_for_its_time_and_then_brings_everything(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let id = subscribe(&store, "a", "https://callback.test/").await.id;
    store.record(id.resource, &poll(at(1), &["1"])).await.unwrap();
    take(&store, 2).await;
    settle(&store, 3, (id, DeliveryOutcome::Failed { retry_at: Some(at(60)) })).await;
    store.record(id.resource, &poll(at(30), &["2"])).await.unwrap();
    let failing = now(&store, id).await.unwrap();
    assert_eq!((failing.failures, failing.failing_since), (1, Some(at(3))));
    assert_eq!(take(&store, 59).await, [], "a change does not bring a retry forward");
    assert_eq!(take(&store, 60).await, [(id, 0, 2)]);
    settle(&store, 61, (id, DeliveryOutcome::Failed { retry_at: Some(at(90)) })).await;
    let failing = now(&store, id).await.unwrap();
    assert_eq!((failing.failures, failing.failing_since), (2, Some(at(3))), "since the first");
    assert_eq!(take(&store, 90).await, [(id, 0, 2)]);
    settle(&store, 91, delivered(id, 2)).await;
    let well = now(&store, id).await.unwrap();
    assert_eq!((well.failures, well.failing_since, well.cursor), (0, None, Seq(2)));
}

async fn without_a_retry_the_next_change_is_waited_for(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let id = subscribe(&store, "a", "https://callback.test/").await.id;
    store.record(id.resource, &poll(at(1), &["1"])).await.unwrap();
    take(&store, 2).await;
    settle(&store, 3, (id, DeliveryOutcome::Failed { retry_at: None })).await;
    assert_eq!(take(&store, 9_999).await, []);
    store.record(id.resource, &poll(at(10), &["2"])).await.unwrap();
    assert_eq!(take(&store, 10).await, [(id, 0, 2)]);
    store.record(id.resource, &poll(at(11), &["3"])).await.unwrap();
    settle(&store, 12, (id, DeliveryOutcome::Failed { retry_at: None })).await;
    assert_eq!(take(&store, 12).await, [(id, 0, 3)], "the next change came meanwhile");
}

async fn a_callback_that_is_gone_ends_its_subscription(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let gone = subscribe(&store, "a", "https://gone.test/").await.id;
    let stays = subscribe(&store, "a", "https://stays.test/").await.id;
    store.record(gone.resource, &poll(at(1), &["1"])).await.unwrap();
    take(&store, 2).await;
    let ends =
        [(gone, DeliveryOutcome::Ended), delivered(stays, 1), (gone, DeliveryOutcome::Ended)];
    store.record_deliveries(&ends, at(3)).await.unwrap();
    assert_eq!(now(&store, gone).await, None);
    assert_eq!(now(&store, stays).await.unwrap().cursor, Seq(1));
    assert_eq!(resource(&store, gone.resource).await.subscribers, 1);
    settle(&store, 4, delivered(gone, 1)).await; // a late word about it does no harm
}

/// A node that was cut off for longer than its claim, and then says how its delivery ended.
async fn a_result_whose_claim_was_lost_changes_nothing(database: Database) {
    let (store, other) =
        (ClaimingStore::new(database.open().await), ClaimingStore::new(database.open().await));
    let id = subscribe(&store, "a", "https://callback.test/").await.id;
    store.record(id.resource, &poll(at(1), &["1"])).await.unwrap();
    assert_eq!(take(&store, 2).await, [(id, 0, 1)]);
    assert_eq!(take(&other, 12).await, [(id, 0, 1)], "the claim has expired");
    for outcome in [delivered(id, 1).1, DeliveryOutcome::Failed { retry_at: Some(at(13)) }] {
        settle(&store, 13, (id, outcome)).await;
    }
    settle(&store, 13, (id, DeliveryOutcome::Ended)).await;
    assert_eq!(take(&store, 14).await, [], "it belongs to the other node");
    settle(&other, 15, delivered(id, 1)).await;
    assert_eq!(now(&store, id).await.unwrap().cursor, Seq(1));
}

async fn a_claim_that_is_renewed_or_released_is_due_then(database: Database) {
    let (store, other) =
        (ClaimingStore::new(database.open().await), ClaimingStore::new(database.open().await));
    let id = subscribe(&store, "a", "https://callback.test/").await.id;
    store.record(id.resource, &poll(at(1), &["1"])).await.unwrap();
    let due = store.claim_subscriptions(at(2), at(12), &room()).await.unwrap();
    let claim = [(id, due[0].claim)];
    let renewed = store.renew_subscription_claims(&claim, at(8), at(18)).await.unwrap();
    assert_eq!(renewed, [id]);
    assert_eq!(take(&other, 17).await, []);
    store.release_subscription_claims(&claim, at(17)).await.unwrap();
    assert_eq!(take(&other, 17).await, [(id, 0, 1)]);
    assert_eq!(store.renew_subscription_claims(&claim, at(18), at(28)).await.unwrap(), []);
    store.release_subscription_claims(&claim, at(18)).await.unwrap();
    assert_eq!(take(&store, 26).await, [], "the claim of another is not released");
}

/// A change with many subscribers on a host, and then one of another resource there.
async fn a_host_is_claimed_for_from_both_ends_of_its_queue(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    for n in 0..20 {
        subscribe(&store, "large", &format!("https://callback.test/{n}")).await;
    }
    let large = store.find("https://feeds.test/large").await.unwrap().unwrap().id;
    store.record(large, &poll(at(1), &["1"])).await.unwrap();
    let small = subscribe(&store, "small", "https://callback.test/small").await.id;
    store.record(small.resource, &poll(at(2), &["1"])).await.unwrap();
    let host = "callback.test:443";
    let claimed = store.claim_subscriptions_of_host(host, at(3), at(13), 4).await.unwrap();
    let resources: Vec<_> = claimed.iter().map(|due| due.subscription.id.resource).collect();
    assert_eq!(resources.len(), 4);
    assert!(resources.contains(&small.resource), "{resources:?}");
    let rest = store.claim_subscriptions_of_host(host, at(3), at(13), 100).await.unwrap();
    assert_eq!(rest.len(), 17, "and none is claimed twice");
    let none = store.claim_subscriptions_of_host("other.test:443", at(3), at(13), 4).await;
    assert_eq!(none.unwrap(), []);
}

async fn many_are_settled_at_once(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let mut settled = Vec::new();
    for n in 0..30 {
        let id = subscribe(&store, &format!("{}", n % 3), &format!("https://{n}.test/")).await.id;
        settled.push(match n % 2 {
            0 => delivered(id, 1),
            _ => (id, DeliveryOutcome::Failed { retry_at: Some(at(50)) }),
        });
    }
    for topic in ["0", "1", "2"] {
        let id = store.find(&super::topic(topic).to_string()).await.unwrap().unwrap().id;
        store.record(id, &poll(at(1), &["1"])).await.unwrap();
    }
    assert_eq!(take(&store, 2).await.len(), 30);
    store.record_deliveries(&settled, at(3)).await.unwrap();
    assert_eq!(take(&store, 49).await, []);
    assert_eq!(take(&store, 50).await.len(), 15);
    store.record_deliveries(&[], at(51)).await.unwrap();
}

async fn results_that_are_alike_are_stored_for_each_subscription(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let mut ids = Vec::new();
    for n in 0..12 {
        ids.push(subscribe(&store, "a", &format!("https://{n}.test/")).await.id);
    }
    store.record(ids[0].resource, &poll(at(1), &["1"])).await.unwrap();
    let due = store.claim_subscriptions(at(2), at(12), &room()).await.unwrap();
    assert_eq!(due.len(), 12);
    let response = || Some(AttemptResponse { status: Some(204), excerpt: String::new() });
    let result = |due: &DueSubscription| {
        let outcome = DeliveryOutcome::Delivered { cursor: due.owed, status: 0 };
        DeliveryResult::new(due, outcome, response())
    };
    let mut results: Vec<_> = due.iter().map(result).collect();
    results[0].claim = ClaimToken(1); // lost
    store.pause(results[1].id, at(3)).await.unwrap();
    assert!(store.replay(results[2].id, Seq(0), at(3)).await.unwrap());
    store.record(ids[0].resource, &poll(at(4), &["2"])).await.unwrap();
    Arc::clone(&store).record_deliveries(&results, at(5)).await.unwrap();

    let mut due_again = take(&store, 5).await;
    due_again.sort_unstable_by_key(|(id, ..)| id.number);
    let mut owed: Vec<_> = results[2..].iter().map(|result| (result.id, 1, 2)).collect();
    owed[0].1 = 0;
    owed.sort_unstable_by_key(|(id, ..)| id.number);
    assert_eq!(due_again, owed, "all but the lost and the paused one");
    for (n, result) in results.iter().enumerate() {
        let listed = store.listed(result.id).await.unwrap().unwrap();
        let (is_lost, is_outdated) = (n == 0, n == 1 || n == 2);
        assert_eq!(listed.delivery.last_attempt.is_none(), is_lost || is_outdated);
        assert_eq!(listed.subscription.cursor, Seq(i64::from(n != 2)));
    }
}

async fn raw_cursors_run_over_body_versions(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let topic = store.ensure(&super::topic("a"), at(0)).await.unwrap().id;
    let with_body = |seconds, bytes: &str, entries: &[&str]| {
        let bytes = bytes.as_bytes().to_vec();
        let mut found = poll(at(seconds), entries);
        found.body = Some(Body { content_type: None, bytes });
        found
    };
    store.record(topic, &with_body(1, "x", &["1", "2"])).await.unwrap();
    let mut raw = request("a", "https://raw.test/");
    raw.format = Format::Raw;
    let raw = store.subscribe(&raw, at(2)).await.unwrap();
    assert_eq!(raw.cursor, Seq(1), "it starts at the newest body");
    let atom = subscribe(&store, "a", "https://atom.test/").await;
    assert_eq!(atom.cursor, Seq(2), "it starts at the head");

    store.record(topic, &with_body(3, "y", &["1"])).await.unwrap();
    assert_eq!(take(&store, 4).await, [(raw.id, 1, 2)], "new bytes, no new entry");
    settle(&store, 5, delivered(raw.id, 2)).await;
    store.record(topic, &poll(at(6), &["3"])).await.unwrap();
    assert_eq!(take(&store, 7).await, [(atom.id, 2, 3)], "a new entry, no new bytes");
    settle(&store, 8, delivered(atom.id, 3)).await;
    assert_eq!(take(&store, 99).await, []);
}

async fn what_was_there_before_is_not_told(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let id = subscribe(&store, "a", "https://callback.test/").await.id;
    let mut first = poll(at(1), &["1", "2"]);
    first.silent = true;
    assert_eq!(store.record(id.resource, &first).await.unwrap().head, Seq(2));
    assert_eq!(now(&store, id).await.unwrap().cursor, Seq(2), "rule N5");
    assert_eq!(take(&store, 2).await, []);
    store.record(id.resource, &poll(at(3), &["3"])).await.unwrap();
    assert_eq!(take(&store, 4).await, [(id, 2, 3)]);
}

async fn a_body_that_turns_out_to_be_a_feed_is_told_as_it_is(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let mut raw = request("a", "https://callback.test/");
    raw.format = Format::Raw;
    let id = store.subscribe(&raw, at(0)).await.unwrap().id;
    let silent = |seconds, ids: &[&str], bytes: &[u8]| {
        let mut found = poll(at(seconds), ids);
        found.body = Some(Body { content_type: None, bytes: bytes.to_vec() });
        found.silent = true;
        found
    };
    store.record(id.resource, &silent(1, &["1"], b"a page")).await.unwrap();
    assert_eq!(take(&store, 2).await, [], "the first body was there before");
    store.record(id.resource, &silent(3, &["2", "3"], b"a feed")).await.unwrap();
    assert_eq!(take(&store, 4).await, [(id, 1, 2)], "the second is a change of the first");
}

async fn a_replay_sets_the_cursor_back(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let id = subscribe(&store, "a", "https://callback.test/").await.id;
    store.record(id.resource, &poll(at(1), &["1", "2", "3"])).await.unwrap();
    take(&store, 2).await;
    settle(&store, 3, delivered(id, 3)).await;
    assert!(store.replay(id, Seq(1), at(4)).await.unwrap());
    let due = store.claim_subscriptions(at(4), at(14), &room()).await.unwrap();
    let [due] = due.as_slice() else { panic!("{due:?}") };
    assert_eq!((due.subscription.cursor, due.owed, due.told_before), (Seq(1), Seq(3), Seq(3)));
    settle(&store, 5, delivered(id, 3)).await;
    assert_eq!(take(&store, 99).await, []);
    let nobody = SubscriptionId { number: 1, ..id };
    assert!(!store.replay(nobody, Seq(1), at(6)).await.unwrap());
}

async fn a_replay_during_a_delivery_waits_for_its_end(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let id = subscribe(&store, "a", "https://callback.test/").await.id;
    store.record(id.resource, &poll(at(1), &["1", "2"])).await.unwrap();
    take(&store, 2).await;
    assert!(store.replay(id, Seq(0), at(3)).await.unwrap());
    assert_eq!(take(&store, 4).await, [], "one delivery at a time");
    settle(&store, 5, delivered(id, 2)).await;
    assert_eq!(take(&store, 5).await, [(id, 0, 2)], "told again from the start");
    // Now the taker dies.
    store.record(id.resource, &poll(at(6), &["3"])).await.unwrap();
    assert_eq!(take(&store, 15).await, [(id, 0, 3)]);
}

/// A settle that reads the head just before an append moves it, and writes just after,
/// would leave a subscription behind with nothing to wake it.
async fn no_wake_up_is_lost_between_append_and_settle(database: Database) {
    const ROUNDS: i64 = 100;
    let (appender, deliverer) = (database.open().await, ClaimingStore::new(database.open().await));
    for n in 0..4 {
        subscribe(&deliverer, "a", &format!("https://{n}.test/")).await;
    }
    let id = appender.find("https://feeds.test/a").await.unwrap().unwrap().id;
    let append = |n: i64| {
        let appender = appender.clone();
        tokio::spawn(async move {
            appender.record(id, &poll(at(1), &[&format!("{n}")])).await.unwrap();
        })
    };
    append(1).await.unwrap();
    for n in 1..=ROUNDS {
        let due = take(&deliverer, 2).await;
        assert_eq!(due.len(), 4, "left behind after {n} appends");
        let settling = due.into_iter().map(|(id, _, owed)| {
            let deliverer = deliverer.clone();
            tokio::spawn(async move { settle(&deliverer, 2, delivered(id, owed)).await })
        });
        let settling: Vec<_> = settling.collect();
        append(n + 1).await.unwrap();
        for settled in settling {
            settled.await.unwrap();
        }
    }
}

async fn the_progress_of_a_change_is_counted(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let first = subscribe(&store, "a", "https://one.test/").await.id;
    subscribe(&store, "a", "https://two.test/").await;
    let before = LogNumbers { head: Seq(0), body_version: 0 };
    store.record(first.resource, &poll(at(1), &["1"])).await.unwrap();
    take(&store, 2).await;
    settle(&store, 3, delivered(first, 1)).await;
    let progress = store.delivery_progress(first.resource, before, at(3)).await.unwrap();
    assert_eq!(progress, DeliveryProgress { told: 1, waiting: 1 });
}
