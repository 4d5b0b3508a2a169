//! Whom a change of a resource's status makes due (rule P33).

use feedgate_core::poll::{NewContent, Poll};
use feedgate_core::record::Seq;
use feedgate_core::status::{AnnouncedHealth, Status};
use feedgate_core::store::DeliveryOutcome;
use feedgate_core::subscription::{Format, Statuses, Subscription};

use super::{at, listed, on_both_stores, poll, request, room};
use crate::support::claiming_store::ClaimingStore;
use crate::support::postgres::Database;

on_both_stores!(
    p33_a_change_of_status_makes_due_whom_it_concerns,
    p33_a_status_waits_for_its_retry_and_goes_with_entries,
    p33_who_subscribes_begins_with_the_status_there_is,
    n05_the_first_document_is_no_news_to_who_is_owed_a_status,
);

async fn subscribe(store: &ClaimingStore, statuses: Statuses, seconds: i64) -> Subscription {
    let mut request = request("a", &format!("https://{}.test/", statuses.as_str()));
    request.statuses = statuses;
    store.subscribe(&request, at(seconds)).await.unwrap()
}

/// A poll after which the status has these versions: of every change, and of those that
/// last.
fn changed(seconds: i64, version: i64, lasting: i64) -> Poll {
    let announced = AnnouncedHealth { version: lasting, ..AnnouncedHealth::default() };
    let error = "http_status".to_owned();
    let status = Status { http_code: 500, error, version, announced, ..Status::default() };
    Poll { found: NewContent::Nothing, status, answered_well: false, ..poll(at(seconds), &[]) }
}

/// Takes what is due, with a claim of ten seconds: the options of whom, and the versions
/// of the status they are owed.
async fn take(store: &ClaimingStore, seconds: i64) -> Vec<(Statuses, i64)> {
    let due = store.claim_subscriptions(at(seconds), at(seconds + 10), &room()).await.unwrap();
    due.iter().map(|due| (due.subscription.statuses, due.status)).collect()
}

async fn told(store: &ClaimingStore, subscription: &Subscription, seconds: i64, status: i64) {
    let (id, cursor) = (subscription.id, subscription.cursor);
    store
        .record_deliveries(&[(id, DeliveryOutcome::Delivered { cursor, status })], at(seconds))
        .await
        .unwrap();
}

async fn p33_a_change_of_status_makes_due_whom_it_concerns(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    subscribe(&store, Statuses::Never, 0).await;
    let lasting = subscribe(&store, Statuses::Transitions, 0).await;
    let every = subscribe(&store, Statuses::Always, 0).await;
    let id = lasting.id.resource;
    store.record(id, &changed(1, 1, 0)).await.unwrap();
    assert_eq!(take(&store, 1).await, [(Statuses::Always, 1)], "a hiccup");
    told(&store, &every, 2, 1).await;
    store.record(id, &changed(3, 1, 0)).await.unwrap();
    assert_eq!(take(&store, 3).await, [], "nothing has changed");
    store.record(id, &changed(4, 1, 1)).await.unwrap();
    assert_eq!(take(&store, 4).await, [(Statuses::Transitions, 1)], "it lasts");
    // It changes once more while the callback is being told.
    store.record(id, &changed(5, 2, 2)).await.unwrap();
    told(&store, &lasting, 6, 1).await;
    let mut due = take(&store, 6).await;
    due.sort_by_key(|(statuses, _)| statuses.as_str());
    assert_eq!(due, [(Statuses::Always, 2), (Statuses::Transitions, 2)]);
}

async fn p33_a_status_waits_for_its_retry_and_goes_with_entries(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let lasting = subscribe(&store, Statuses::Transitions, 0).await;
    let id = lasting.id;
    store.record(id.resource, &changed(1, 1, 1)).await.unwrap();
    assert_eq!(take(&store, 1).await.len(), 1);
    let failed = (id, DeliveryOutcome::Failed { retry_at: Some(at(60)) });
    store.record_deliveries(&[failed], at(2)).await.unwrap();
    assert_eq!(take(&store, 59).await, [], "not before its time");
    assert_eq!(take(&store, 60).await.len(), 1);
    // The claim ends with nobody having said how the delivery ended.
    assert_eq!(take(&store, 70).await.len(), 1, "at least once");

    let status = changed(0, 1, 1).status;
    let with_entries = Poll { status, ..poll(at(71), &["1", "2"]) };
    store.record(id.resource, &with_entries).await.unwrap();
    let cursor = Seq(2);
    store
        .record_deliveries(&[(id, DeliveryOutcome::Delivered { cursor, status: 1 })], at(72))
        .await
        .unwrap();
    assert_eq!(take(&store, 99).await, [], "both were told at once");
}

async fn p33_who_subscribes_begins_with_the_status_there_is(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let first = subscribe(&store, Statuses::Never, 0).await;
    store.record(first.id.resource, &changed(1, 3, 2)).await.unwrap();
    for (statuses, want) in [(Statuses::Transitions, 2), (Statuses::Always, 3)] {
        assert_eq!(subscribe(&store, statuses, 2).await.status_told, want);
    }
    assert_eq!(take(&store, 3).await, []);
    let mut renewed = request("a", "https://never.test/");
    renewed.statuses = Statuses::Always;
    let renewed = store.subscribe(&renewed, at(4)).await.unwrap();
    assert_eq!((renewed.id, renewed.status_told), (first.id, 3), "who changes their mind too");
    assert_eq!(renewed.format, Format::Atom);
    assert_eq!(take(&store, 5).await, []);
}

async fn n05_the_first_document_is_no_news_to_who_is_owed_a_status(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let wished = |name: &str| {
        let mut request = request(name, &format!("https://{name}.test/"));
        request.statuses = Statuses::Always;
        request
    };
    for (name, is_failing_before, is_in_hand) in
        [("told-by-the-same-poll", false, false), ("due", true, false), ("in-hand", true, true)]
    {
        let held = store.subscribe(&wished(name), at(0)).await.unwrap();
        let id = held.id;
        if is_failing_before {
            store.record(id.resource, &changed(1, 1, 0)).await.unwrap();
        }
        if is_in_hand {
            assert_eq!(take(&store, 1).await, [(Statuses::Always, 1)]);
        }
        let status = Status { version: 2, ..Status::default() };
        let first = Poll { status, silent: true, ..poll(at(2), &["1", "2"]) };
        store.record(id.resource, &first).await.unwrap();
        if is_in_hand {
            told(&store, &held, 3, 1).await;
        }
        let due = store.claim_subscriptions(at(4), at(60), &room()).await.unwrap();
        let due: Vec<_> = due.iter().map(|due| (due.subscription.cursor, due.owed)).collect();
        assert_eq!(due, [(Seq(2), Seq(2))], "{name}: the status, and no entry");
        store
            .record_deliveries(
                &[(id, DeliveryOutcome::Delivered { cursor: Seq(2), status: 2 })],
                at(5),
            )
            .await
            .unwrap();
    }
    assert!(listed(&store).await.iter().all(|held| held.cursor == Seq(2)));
}
