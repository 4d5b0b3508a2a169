//! What is due after a standstill, or an outage of our own.

use std::time::Duration;

use feedgate_core::resource::ResourceId;
use feedgate_core::store::ClaimLimits;

use super::{at, in_one_cell, on_both_stores, poll, resource, room, subscribe};
use crate::support::claiming_store::ClaimingStore;
use crate::support::postgres::Database;

on_both_stores! {
    p46_a_few_that_are_late_are_no_herd,
    p48_what_is_due_is_handed_out_at_its_very_second_and_every_period,
    p32_what_failed_for_no_fault_of_its_own_is_asked_again_soon,
}

in_one_cell! {
    p46_a_herd_is_spread_and_the_pinged_are_asked_first,
}

/// A resource with a period of ten minutes that was polled at 0.
async fn polled(store: &ClaimingStore, name: &str) -> ResourceId {
    let id = subscribe(store, name, "https://callback.test/").await.id.resource;
    store.claim_resource(id, at(0), at(60)).await.unwrap();
    let mut found = poll(at(0), &[]);
    found.status.period_s = 600;
    store.record(id, &found).await.unwrap();
    id
}

async fn claimed(store: &ClaimingStore, seconds: i64) -> Vec<ResourceId> {
    let due = store.claim_resources(at(seconds), at(seconds), &room()).await.unwrap();
    due.iter().map(|due| due.resource.id).collect()
}

async fn p46_a_herd_is_spread_and_the_pinged_are_asked_first(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let mut all = Vec::new();
    for n in 0..300 {
        all.push(polled(&store, &n.to_string()).await);
    }
    let popular = format!("update resources set subscribers = 9000 where id = {}", all[7].0);
    database.run(&popular).await;
    database.run(&format!("update resources set pinged = 1 where id = {}", all[200].0)).await;
    // The gateway was away for an hour: six polls of each were missed.
    assert_eq!(store.release_backlog(at(4_200)).await.unwrap(), 300);
    let few = ClaimLimits { limit: 2, ..room() };
    let first = store.claim_resources(at(4_201), at(4_300), &few).await.unwrap();
    let first: Vec<_> = first.iter().map(|due| due.resource.id).collect();
    assert_eq!(first, [all[200], all[7]]);
    assert_eq!(claimed(&store, 4_201).await.len(), 9, "ten a second");
    assert_eq!(claimed(&store, 4_240).await.len(), 300 - 2, "and each of them once");
    assert_eq!(store.release_backlog(at(4_200)).await.unwrap(), 0, "those in hand are left there");
}

async fn p46_a_few_that_are_late_are_no_herd(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    for n in 0..20 {
        polled(&store, &n.to_string()).await;
    }
    assert_eq!(store.release_backlog(at(9_999)).await.unwrap(), 0);
    assert_eq!(claimed(&store, 9_999).await.len(), 20);
}

async fn p48_what_is_due_is_handed_out_at_its_very_second_and_every_period(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let id = polled(&store, "a").await;
    for n in 1..5 {
        let due = n * 600;
        assert_eq!(claimed(&store, due - 1).await, []);
        assert_eq!(claimed(&store, due).await, [id], "no period is waited out twice");
        store.record(id, &poll(at(due), &[])).await.unwrap();
    }
}

async fn p32_what_failed_for_no_fault_of_its_own_is_asked_again_soon(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let (failed, in_hand) = (polled(&store, "a").await, polled(&store, "b").await);
    let soon = at(120);
    store.claim_resource(in_hand, at(0), at(0) + Duration::from_secs(300)).await.unwrap();
    assert_eq!(store.poll_soon(&[failed, in_hand], soon).await.unwrap(), 1);
    assert_eq!(resource(&store, failed).await.next_fetch, soon);
}
