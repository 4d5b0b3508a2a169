//! Digests: the newest entries, once more each day (row S-14).

use feedgate_core::intent::{Intent, IntentMode};
use feedgate_core::record::Seq;
use feedgate_core::store::DeliveryOutcome;
use feedgate_core::subscription::{Format, SubscriptionId, SubscriptionRequest};
use feedgate_core::topic::Callback;

use super::{at, on_both_stores, poll, request, room};
use crate::support::claiming_store::ClaimingStore;
use crate::support::postgres::Database;

on_both_stores!(
    the_newest_entries_are_sent_again_once_a_day,
    a_digest_is_for_who_is_up_to_date,
    a_digest_is_requested_and_given_up_by_renewal,
    a_digest_survives_the_verification,
);

const DAY: i64 = 24 * 3_600;
const TWELVE: [&str; 12] = ["1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12"];

fn daily() -> SubscriptionRequest {
    let lease = std::time::Duration::from_secs(30 * DAY as u64).into();
    SubscriptionRequest { digest: true, lease, ..request("a", "https://callback.test/") }
}

async fn subscribe(store: &ClaimingStore, request: &SubscriptionRequest) -> SubscriptionId {
    store.subscribe(request, at(0)).await.unwrap().id
}

async fn start_digests(store: &ClaimingStore, seconds: i64) -> u64 {
    store.start_digests(at(seconds)).await.unwrap()
}

/// What is due at `seconds`: the cursor, the newest number, and whether it is a digest. It is
/// acknowledged.
async fn deliver(store: &ClaimingStore, seconds: i64) -> Vec<(i64, i64, bool)> {
    let due = store.claim_subscriptions(at(seconds), at(seconds + 10), &room()).await.unwrap();
    for due in &due {
        let outcome = DeliveryOutcome::Delivered { cursor: due.owed, status: 0 };
        store.record_deliveries(&[(due.subscription.id, outcome)], at(seconds)).await.unwrap();
    }
    due.iter().map(|due| (due.subscription.cursor.0, due.owed.0, due.is_digest)).collect()
}

async fn the_newest_entries_are_sent_again_once_a_day(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let id = subscribe(&store, &daily()).await;
    let callback = Callback::parse("https://other.test/").unwrap();
    let other = SubscriptionRequest { callback, digest: false, ..daily() };
    subscribe(&store, &other).await;
    store.record(id.resource, &poll(at(1), &TWELVE)).await.unwrap();
    assert_eq!(deliver(&store, 1).await, [(0, 12, false), (0, 12, false)]);
    assert_eq!(start_digests(&store, DAY - 1).await, 0, "the first one is sent after a day");
    assert_eq!(start_digests(&store, DAY).await, 1);
    assert_eq!(start_digests(&store, DAY).await, 0);
    assert_eq!(deliver(&store, DAY).await, [(2, 12, true)], "ten entries");

    // What is new is sent at once, and belongs to no digest.
    store.record(id.resource, &poll(at(DAY + 1), &["13"])).await.unwrap();
    let due = deliver(&store, DAY + 1).await;
    assert_eq!(due, [(12, 13, false), (12, 13, false)]);
    assert_eq!(start_digests(&store, 2 * DAY).await, 1);
    store.record(id.resource, &poll(at(2 * DAY), &["14"])).await.unwrap();
    assert_eq!(deliver(&store, 2 * DAY).await, [(3, 13, true), (13, 14, false)]);
    assert_eq!(deliver(&store, 2 * DAY + 1).await, [(13, 14, false)], "it follows");
    // A replay that is requested later is none.
    assert!(store.replay(id, Seq(13), at(2 * DAY + 5)).await.unwrap());
    assert_eq!(deliver(&store, 2 * DAY + 5).await, [(13, 14, false)]);
    store.close().await;
}

async fn a_digest_is_for_who_is_up_to_date(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let id = subscribe(&store, &daily()).await;
    assert_eq!(start_digests(&store, DAY).await, 1);
    assert_eq!(deliver(&store, DAY).await, [], "there are no entries");
    store.record(id.resource, &poll(at(DAY + 1), &["1"])).await.unwrap();
    assert_eq!(start_digests(&store, 2 * DAY).await, 1);
    assert_eq!(deliver(&store, 2 * DAY).await, [(0, 1, false)], "they are owed anyway");
    store.pause(id, at(2 * DAY + 1)).await.unwrap();
    assert_eq!(start_digests(&store, 3 * DAY).await, 1);
    store.resume(id, at(3 * DAY + 1)).await.unwrap();
    assert_eq!(deliver(&store, 3 * DAY + 1).await, []);
    assert_eq!(start_digests(&store, 4 * DAY).await, 1);
    assert_eq!(deliver(&store, 4 * DAY).await, [(0, 1, true)]);
    store.close().await;
}

async fn a_digest_is_requested_and_given_up_by_renewal(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let plain = SubscriptionRequest { digest: false, ..daily() };
    let id = subscribe(&store, &plain).await;
    store.record(id.resource, &poll(at(1), &["1"])).await.unwrap();
    deliver(&store, 1).await;
    assert_eq!(start_digests(&store, DAY).await, 0);
    store.subscribe(&daily(), at(DAY)).await.unwrap();
    store.subscribe(&daily(), at(DAY + 50)).await.unwrap();
    assert_eq!(start_digests(&store, 2 * DAY).await, 1, "a renewal does not put it off");
    assert_eq!(deliver(&store, 2 * DAY).await, [(0, 1, true)]);
    store.subscribe(&plain, at(2 * DAY)).await.unwrap();
    assert_eq!(start_digests(&store, 9 * DAY).await, 0);

    // A body has no entries.
    let raw = SubscriptionRequest { format: Format::Raw, ..daily() };
    store.subscribe(&raw, at(9 * DAY)).await.unwrap();
    assert_eq!(start_digests(&store, 10 * DAY).await, 1);
    assert_eq!(deliver(&store, 10 * DAY).await, []);
    store.close().await;
}

async fn a_digest_survives_the_verification(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let mode = IntentMode::Subscribe;
    let intent = Intent::new(mode, daily());
    let due = store.enqueue_claimed_intent(&intent, at(0), at(60)).await.unwrap();
    assert!(due.intent.request.digest);
    store.release_intent(&due, at(0)).await.unwrap();
    let due = store.claim_intents(at(1), at(60), &room()).await.unwrap().remove(0);
    store.complete_intent(&due, at(1)).await.unwrap();
    assert_eq!(start_digests(&store, DAY + 1).await, 1);
    store.close().await;
}
