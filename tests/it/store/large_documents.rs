//! Documents with many new entries: no document decides how long a transaction is.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use feedgate_core::change_detection::FeedDocument;
use feedgate_core::poll::Poll;
use feedgate_core::record::Seq;
use feedgate_core::registrant::RegistrantNetwork;
use feedgate_core::resource::{ResourceId, ResourceKind};
use feedgate_core::store::StoreError;
use feedgate_core::subscription::SubscriptionRequest;
use feedgate_store::Store;
use futures_util::future::join_all;
use tokio::sync::Notify;

use super::{at, entry, in_one_cell, on_both_stores, poll, request, resource, room, subscribe};
use crate::support::claiming_store::ClaimingStore;
use crate::support::postgres::Database;

on_both_stores!(
    h01_a_large_document_is_stored_in_short_transactions,
    h01_other_writes_get_in_between_the_parts_of_a_document,
    h01_what_an_interrupted_poll_has_not_stored_is_found_by_the_next,
    h01_a_poll_that_loses_its_claim_between_two_parts_stores_no_more,
    h01_entries_that_are_pushed_between_two_parts_are_stored_once,
    h01_a_large_push_is_stored_in_parts,
    h01_a_large_log_is_forgotten_in_short_transactions,
);

in_one_cell!(h01_a_third_large_document_of_a_network_waits_for_the_first_two);

/// The entries of a large document, and the most of them that a transaction may store.
const ENTRIES: usize = 1_050;
const MOST_IN_A_PART: usize = 200;
/// So many that another write certainly comes before the last part.
const MANY: usize = 10_000;

fn ids(count: usize) -> Vec<String> {
    (0..count).map(|n| format!("urn:e:{n}")).collect()
}

/// A poll of a known feed that finds this many new entries.
fn flood(second: i64, count: usize) -> Poll {
    let ids = ids(count);
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    Poll { kind: Some(ResourceKind::Feed), ..poll(at(second), &ids) }
}

fn document(second: i64, count: usize) -> FeedDocument {
    let candidates = ids(count).iter().map(|id| entry(id)).collect();
    FeedDocument { at: at(second), candidates, ..FeedDocument::default() }
}

/// Counts the writing transactions of a store, and notifies of each.
#[derive(Default)]
pub(super) struct Transactions {
    pub(super) count: AtomicUsize,
    ended: Notify,
}

pub(super) fn observe(store: &Store) -> Arc<Transactions> {
    let transactions = Arc::new(Transactions::default());
    let seen = Arc::clone(&transactions);
    store.observe_transactions(Arc::new(move |ended| {
        if ended.kind == "write" {
            seen.count.fetch_add(1, Ordering::Relaxed);
            seen.ended.notify_one();
        }
    }));
    transactions
}

/// The log has the entries in the order of the document, without gaps, each once.
async fn assert_stored_once(store: &Arc<Store>, id: ResourceId, count: usize) {
    let records = store.read_after(id, Seq::NONE, usize::MAX).await.unwrap();
    let seqs: Vec<i64> = records.iter().map(|record| record.seq.0).collect();
    assert_eq!(seqs, (1..=count as i64).collect::<Vec<_>>());
    let stored: Vec<&String> = records.iter().map(|record| &record.entry_id).collect();
    assert_eq!(stored, ids(count).iter().collect::<Vec<_>>());
    assert_eq!(resource(store, id).await.head.0, count as i64);
}

async fn h01_a_large_document_is_stored_in_short_transactions(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let id = subscribe(&store, "a", "https://callback.test/").await.id.resource;
    let transactions = observe(&store);
    let appended = store.record(id, &flood(1, ENTRIES)).await.unwrap();
    assert_eq!((appended.head.0, appended.new), (ENTRIES as i64, ENTRIES));
    let count = transactions.count.load(Ordering::Relaxed);
    assert!(count >= ENTRIES.div_ceil(MOST_IN_A_PART), "{count} transactions");
    assert_stored_once(&store, id, ENTRIES).await;
    let status = resource(&store, id).await.status;
    assert_eq!(status.entries_count_since_last_maintenance, ENTRIES as u64);
    let due = store.claim_subscriptions(at(2), at(60), &room()).await.unwrap();
    assert_eq!(due.len(), 1, "one delivery has all of it");
}

async fn h01_other_writes_get_in_between_the_parts_of_a_document(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let id = subscribe(&store, "a", "https://callback.test/").await.id.resource;
    let transactions = observe(&store);
    let poll = flood(1, ENTRIES);
    let mut recording = std::pin::pin!(store.record(id, &poll));
    tokio::select! {
        biased;
        () = transactions.ended.notified() => {}
        _ = &mut recording => panic!("everything was stored at once"),
    }
    // Nothing continues the recording while the other write is awaited.
    subscribe(&store, "b", "https://other.test/").await;
    let head = store.heads(&[id]).await.unwrap()[0].1.0;
    assert!(head < ENTRIES as i64, "the subscription waited for {head} entries");
    recording.await.unwrap();
    assert_stored_once(&store, id, ENTRIES).await;
}

/// Records a poll, and stops when the first of its transactions has ended, as a crash would.
async fn record_a_part(store: &ClaimingStore, id: ResourceId, poll: &Poll) {
    let transactions = observe(store);
    tokio::select! {
        biased;
        () = transactions.ended.notified() => {}
        _ = store.record(id, poll) => panic!("everything was stored at once"),
    }
    // What the database had begun when the caller stopped waiting is done.
    let mut before = Seq(-1);
    while before != resource(store, id).await.head {
        before = resource(store, id).await.head;
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

async fn h01_what_an_interrupted_poll_has_not_stored_is_found_by_the_next(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let id = subscribe(&store, "a", "https://callback.test/").await.id.resource;
    record_a_part(&store, id, &flood(1, ENTRIES)).await;
    let after = resource(&store, id).await;
    assert!(after.head.0 > 0 && after.head.0 < ENTRIES as i64, "{}", after.head);
    assert_eq!(after.status.http_code, 0, "the status is that of the last poll that was recorded");
    assert_ne!(after.kind, ResourceKind::Feed);
    let due = store.claim_subscriptions(at(2), at(60), &room()).await.unwrap();
    assert_eq!(due.len(), 1, "what is stored is sent");

    store.record(id, &flood(3, ENTRIES)).await.unwrap();
    assert_stored_once(&store, id, ENTRIES).await;
    assert_eq!(resource(&store, id).await.status.http_code, 200);
}

async fn h01_a_poll_that_loses_its_claim_between_two_parts_stores_no_more(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let id = subscribe(&store, "a", "https://callback.test/").await.id.resource;
    let claim = store.claim_resource(id, at(1), at(2)).await.unwrap().unwrap().claim;
    let transactions = observe(&store);
    let poll = Poll { claim, ..flood(1, MANY) };
    let inner: &Arc<Store> = &store;
    let recording = inner.record(id, &poll);
    let other = async {
        transactions.ended.notified().await;
        inner.claim_resource(id, at(3), at(60)).await.unwrap()
    };
    let (recorded, again) = tokio::join!(recording, other);
    // The clock of the tests decides: the first claim has expired.
    let again = again.unwrap();
    assert_eq!(recorded.unwrap(), None);
    assert!(resource(&store, id).await.head.0 < MANY as i64);
    let poll = Poll { claim: again.claim, ..flood(3, MANY) };
    inner.record(id, &poll).await.unwrap().unwrap();
    assert_stored_once(&store, id, MANY).await;
}

async fn h01_entries_that_are_pushed_between_two_parts_are_stored_once(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let id = subscribe(&store, "a", "https://callback.test/").await.id.resource;
    let transactions = observe(&store);
    let poll = flood(1, ENTRIES);
    let recording = store.record(id, &poll);
    let other = async {
        transactions.ended.notified().await;
        let mut pushed = document(2, ENTRIES);
        pushed.candidates = pushed.candidates.split_off(ENTRIES - 10);
        store.push(id, pushed, at(2)).await.unwrap()
    };
    let (recorded, pushed) = tokio::join!(recording, other);
    assert_eq!(recorded.unwrap().new + pushed.new, ENTRIES);
    let records = store.read_after(id, Seq::NONE, usize::MAX).await.unwrap();
    let seqs: Vec<i64> = records.iter().map(|record| record.seq.0).collect();
    assert_eq!(seqs, (1..=ENTRIES as i64).collect::<Vec<_>>());
    let mut stored: Vec<String> = records.into_iter().map(|record| record.entry_id).collect();
    let mut all = ids(ENTRIES);
    stored.sort_unstable();
    all.sort_unstable();
    assert_eq!(stored, all);
}

async fn h01_a_large_push_is_stored_in_parts(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let id = subscribe(&store, "a", "https://callback.test/").await.id.resource;
    let transactions = observe(&store);
    let appended = store.push(id, document(1, ENTRIES), at(1)).await.unwrap();
    assert_eq!((appended.head.0, appended.new), (ENTRIES as i64, ENTRIES));
    let count = transactions.count.load(Ordering::Relaxed);
    assert!(count >= ENTRIES.div_ceil(MOST_IN_A_PART), "{count} transactions");
    assert_stored_once(&store, id, ENTRIES).await;
}

async fn h01_a_large_log_is_forgotten_in_short_transactions(database: Database) {
    const DAY: i64 = 86_400;
    const MOST_DELETED: usize = 250;
    let store = ClaimingStore::new(database.open().await);
    let id = subscribe(&store, "a", "https://callback.test/").await.id.resource;
    store.record(id, &flood(1, ENTRIES)).await.unwrap();
    let one = request("a", "https://callback.test/");
    assert!(store.unsubscribe(None, &one.topic, &one.callback, None).await.unwrap());
    assert_eq!(store.forget_unwatched(at(0), at(DAY)).await.unwrap(), 0, "now it is noted");
    let transactions = observe(&store);
    let forgotten = store.forget_unwatched(at(2 * DAY), at(32 * DAY)).await.unwrap();
    assert_eq!(forgotten, 1, "the parts of one resource count once");
    let count = transactions.count.load(Ordering::Relaxed);
    assert!(count > 2 * ENTRIES / MOST_DELETED, "records and entries in {count} transactions");
    assert_eq!(store.get(id).await.unwrap(), None);
}

async fn h01_a_third_large_document_of_a_network_waits_for_the_first_two(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let mut resources = Vec::new();
    for topic in ["a", "b", "c"] {
        let registrant = RegistrantNetwork::from_client(Some([192, 0, 2, 1].into()));
        let request =
            SubscriptionRequest { registrant, ..request(topic, "https://callback.test/") };
        resources.push(store.subscribe(&request, at(0)).await.unwrap().id.resource);
    }
    let plain = Arc::clone(&store);
    let found = flood(1, ENTRIES);
    let stored = join_all(resources.iter().map(|id| plain.record(*id, &found))).await;
    let waiting = stored.iter().filter(
        |stored| matches!(stored, Err(StoreError::Postponed { until, .. }) if *until > at(1)),
    );
    assert_eq!(waiting.count(), 1, "{stored:?}");
    for (id, stored) in resources.iter().zip(&stored) {
        match stored {
            Ok(appended) => assert_eq!(appended.unwrap().new, ENTRIES),
            Err(_) => assert!(store.earliest_fetch(*id).await.unwrap() > at(1), "for pings too"),
        }
    }
}
