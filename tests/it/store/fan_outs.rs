//! Fan-outs that are too large for one transaction.

use std::collections::HashSet;
use std::time::Duration;

use feedgate_core::host_groups::HostGroups;
use feedgate_core::page::{ArchiveRetention, PageLimits};
use feedgate_core::record::Seq;
use feedgate_core::store::DeliveryOutcome;
use feedgate_core::subscription::{DueSubscription, SubscriptionId};

use super::claims::crowd;
use super::{at, few, on_both_stores, poll, room, subscribe};
use crate::support::claiming_store::ClaimingStore;
use crate::support::postgres::Database;

on_both_stores!(
    an_append_marks_some_and_a_job_the_rest,
    another_append_is_followed_by_another_pass,
    e07_a_pass_ends_before_the_next_begins,
    e09_what_a_pass_has_yet_to_mark_is_not_dropped,
    who_is_sent_nothing_of_an_append_is_found_up_to_date,
);

/// More than two transactions mark.
const SUBSCRIBERS: usize = 12_000;

/// Claims everything that is due at `seconds`.
async fn claim_all(store: &ClaimingStore, seconds: i64) -> HashSet<SubscriptionId> {
    let mut all = HashSet::new();
    loop {
        let due = store.claim_subscriptions(at(seconds), at(seconds + 999), &few(2_000)).await;
        let due = due.unwrap();
        if due.is_empty() {
            return all;
        }
        for due in due {
            assert!(all.insert(due.subscription.id), "claimed once");
        }
    }
}

/// Does what the job does, until nothing is left.
async fn complete(store: &ClaimingStore, seconds: i64) -> usize {
    let mut chunks = 0;
    while let Some(resource) = store.pending_fan_outs(1).await.unwrap().pop() {
        store.continue_fan_out(resource, at(seconds)).await.unwrap();
        chunks += 1;
    }
    chunks
}

async fn an_append_marks_some_and_a_job_the_rest(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    crowd(&database, &store, SUBSCRIBERS, "https://callback.test/").await;
    let move_others = "
        update subscriptions set host = 'other.test:443'
         where id > (select id from subscriptions order by id limit 1 offset 600)";
    database.run(move_others).await;
    let id = store.find("https://feeds.test/crowd").await.unwrap().unwrap().id;
    store.record(id, &poll(at(1), &["1"])).await.unwrap();
    let first = claim_all(&store, 2).await;
    assert_eq!(first.len(), 601, "those at the host of the first chunk");

    // The node dies; another one finds what is left.
    let other = ClaimingStore::new(database.open().await);
    assert_eq!(other.pending_fan_outs(9).await.unwrap(), [id]);
    assert!(complete(&other, 3).await >= 2, "in more than one transaction");
    let rest = claim_all(&other, 4).await;
    assert_eq!(first.len() + rest.len(), SUBSCRIBERS, "all, and each once");
    assert_eq!(other.pending_fan_outs(9).await.unwrap(), []);
    other.continue_fan_out(id, at(5)).await.unwrap(); // two nodes may complete it
}

async fn another_append_is_followed_by_another_pass(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    crowd(&database, &store, SUBSCRIBERS, "https://callback.test/").await;
    let id = store.find("https://feeds.test/crowd").await.unwrap().unwrap().id;
    store.record(id, &poll(at(1), &["1"])).await.unwrap();
    store.continue_fan_out(id, at(2)).await.unwrap();
    // Some have been delivered the first entry when the second one comes.
    let early = store.claim_subscriptions(at(2), at(60), &few(100)).await.unwrap();
    let delivered: Vec<_> = early
        .iter()
        .map(|due| {
            let outcome = DeliveryOutcome::Delivered { cursor: Seq(1), status: 0 };
            (due.subscription.id, outcome)
        })
        .collect();
    store.record_deliveries(&delivered, at(3)).await.unwrap();
    store.record(id, &poll(at(4), &["1", "2"])).await.unwrap();
    complete(&store, 5).await;
    let due = claim_all(&store, 6).await;
    assert_eq!(due.len(), SUBSCRIBERS, "everybody is owed the second entry");
}

async fn who_is_sent_nothing_of_an_append_is_found_up_to_date(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    crowd(&database, &store, SUBSCRIBERS, "https://callback.test/").await;
    let id = store.find("https://feeds.test/crowd").await.unwrap().unwrap().id;
    store.record(id, &poll(at(1), &["1"])).await.unwrap();
    complete(&store, 1).await;
    assert_eq!(claim_all(&store, 2).await.len(), SUBSCRIBERS);
    let late = subscribe(&store, "crowd", "https://late.test/").await;
    assert_eq!(late.cursor, Seq(1), "who comes later begins at the head");
    assert_eq!(store.claim_subscriptions(at(3), at(9), &room()).await.unwrap(), []);
}

/// With changes faster than a pass, everybody is notified once before anybody is notified again.
async fn e07_a_pass_ends_before_the_next_begins(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    crowd(&database, &store, SUBSCRIBERS, "https://callback.test/").await;
    let id = store.find("https://feeds.test/crowd").await.unwrap().unwrap().id;
    let mut notified = HashSet::new();
    let mut last = 1;
    store.record(id, &poll(at(1), &["1"])).await.unwrap();
    for round in 0.. {
        let seconds = 2 + 2 * round;
        let due = store.claim_subscriptions(at(seconds), at(seconds + 999), &few(1_500)).await;
        let ended: Vec<_> = due.unwrap().iter().map(delivered).collect();
        for (subscription, _) in &ended {
            let is_first = notified.insert(*subscription);
            assert!(is_first || notified.len() == SUBSCRIBERS, "again after {}", notified.len());
        }
        last += 1;
        let entry = last.to_string();
        store.record(id, &poll(at(seconds), &[entry.as_str()])).await.unwrap();
        store.record_deliveries(&ended, at(seconds + 1)).await.unwrap();
        if notified.len() == SUBSCRIBERS {
            break;
        }
        assert!(store.continue_fan_out(id, at(seconds + 1)).await.is_ok());
    }
    complete(&store, 900).await;
    assert_eq!(claim_all(&store, 901).await.len(), SUBSCRIBERS, "another pass follows");
}

fn delivered(due: &DueSubscription) -> (SubscriptionId, DeliveryOutcome) {
    (due.subscription.id, DeliveryOutcome::Delivered { cursor: due.owed, status: 0 })
}

async fn e09_what_a_pass_has_yet_to_mark_is_not_dropped(database: Database) {
    let one_record = PageLimits { records: 1, bytes: 1_000_000 };
    let store = database.open_cut(HostGroups::new(Duration::ZERO), one_record).await;
    let store = ClaimingStore::new(store);
    crowd(&database, &store, SUBSCRIBERS, "https://callback.test/").await;
    let id = store.find("https://feeds.test/crowd").await.unwrap().unwrap().id;
    store.record(id, &poll(at(1), &["1"])).await.unwrap();
    // The first ones are notified, and the queue is empty.
    let first = store.claim_subscriptions(at(2), at(99), &few(SUBSCRIBERS)).await.unwrap();
    store.record_deliveries(&first.iter().map(delivered).collect::<Vec<_>>(), at(3)).await.unwrap();
    for entry in ["2", "3"] {
        store.record(id, &poll(at(4), &[entry])).await.unwrap();
    }
    let one_page = ArchiveRetention { pages: Some(1), ..ArchiveRetention::default() };
    assert_eq!(store.drop_pages(&one_page, at(5)).await.unwrap(), 0, "the others are owed all");
    complete(&store, 6).await;
    assert_eq!(claim_all(&store, 7).await.len(), SUBSCRIBERS);
}
