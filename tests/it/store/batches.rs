//! Batches: deliveries that share a row of the queue.

use std::sync::Arc;
use std::time::Duration;

use feedgate_core::account::AccountId;
use feedgate_core::claim::QueuePosition;
use feedgate_core::ports::{ClaimLimits, DeliveryOutcome, DeliveryResult};
use feedgate_core::record::Seq;
use feedgate_core::resource::ResourceId;
use feedgate_core::subscription::{DueSubscription, Lease, Statuses, SubscriptionId};

use super::{at, few, in_one_cell, on_both_stores, poll, room, subscribe, wish};
use crate::support::claiming_store::ClaimingStore;
use crate::support::postgres::Database;

on_both_stores!(
    one_claim_has_all_members,
    a_host_with_little_room_gets_a_part_of_a_batch,
    a_batch_whose_node_died_is_claimed_again_without_those_that_ended,
    members_are_renewed_and_released_with_their_claim,
    a_member_that_is_paused_or_replayed_leaves_its_batch,
    a_result_of_a_lost_claim_is_ignored_beside_one_of_the_new_claim,
    a_batch_without_members_is_removed,
    a_batch_that_its_members_leave_is_removed,
    a_batch_gets_another_number_if_an_older_batch_has_its_first,
    members_that_have_expired_leave_their_batch,
    a_member_is_not_queued_again_by_a_change_of_the_status,
    a_batch_that_cannot_be_read_stops_no_other,
    a_batch_is_not_split_for_a_few_deliveries,
    members_of_a_batch_are_near_each_other,
    who_is_in_the_queue_is_not_queued_again,
);

in_one_cell!(
    a_search_returns_to_a_batch_of_which_a_part_was_picked,
    d16_a_batch_is_not_one_turn_of_an_account,
);

const HOST: &str = "callback.test:443";

/// Subscribes `count` callbacks at one host, and appends an entry.
async fn subscribe_and_append(
    store: &ClaimingStore,
    count: i64,
) -> (ResourceId, Vec<SubscriptionId>) {
    let mut ids = Vec::new();
    for n in 0..count {
        ids.push(subscribe(store, "a", &format!("https://callback.test/{n}")).await.id);
    }
    store.record(ids[0].resource, &poll(at(1), &["1"])).await.unwrap();
    (ids[0].resource, ids)
}

fn sorted(due: &[DueSubscription]) -> Vec<SubscriptionId> {
    let mut ids: Vec<_> = due.iter().map(|due| due.subscription.id).collect();
    ids.sort_unstable_by_key(|id| id.number);
    ids
}

/// Claims what is due at `seconds`, for ten seconds.
async fn claim(store: &ClaimingStore, seconds: i64) -> Vec<DueSubscription> {
    store.claim_subscriptions(at(seconds), at(seconds + 10), &room()).await.unwrap()
}

async fn settle(store: &ClaimingStore, due: &[DueSubscription], seconds: i64) {
    let results = due.iter().map(|due| {
        let outcome = DeliveryOutcome::Delivered { cursor: due.owed, status: 0 };
        DeliveryResult::new(due, outcome, None)
    });
    Arc::clone(store).settle(&results.collect::<Vec<_>>(), at(seconds)).await.unwrap();
}

/// Returns the number of deliveries in the queue.
async fn queued(store: &ClaimingStore) -> u64 {
    store.gauges(at(0)).await.unwrap().due
}

async fn one_claim_has_all_members(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let (_, ids) = subscribe_and_append(&store, 300).await; // three batches
    assert_eq!(queued(&store).await, 300);
    let due = claim(&store, 2).await;
    assert_eq!(sorted(&due), ids);
    assert_eq!(claim(&store, 3).await, [], "they are claimed");
    settle(&store, &due[..200], 4).await;
    assert_eq!(queued(&store).await, 100);
    settle(&store, &due[200..], 4).await;
    assert_eq!(queued(&store).await, 0);
    assert_eq!(claim(&store, 99).await, []);
}

async fn a_host_with_little_room_gets_a_part_of_a_batch(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let (_, ids) = subscribe_and_append(&store, 20).await;
    let limits = ClaimLimits { limit: 100, per_host: 3, busy: Vec::new() };
    let start = QueuePosition::START;
    let plain = Arc::clone(&*store);
    let first = plain.claim_subscriptions(at(2), at(12), &limits, start).await.unwrap();
    assert_eq!(first.due.len(), 3);
    assert_eq!(first.skipped, 17);
    let second = store.claim_subscriptions_of_host(HOST, at(2), at(12), 5).await.unwrap();
    assert_eq!(second.len(), 5);
    let rest = store.claim_subscriptions_of_host(HOST, at(2), at(12), 100).await.unwrap();
    assert_eq!(rest.len(), 12);
    let all: Vec<_> = first.due.into_iter().chain(second).chain(rest).collect();
    assert_eq!(sorted(&all), ids, "none is claimed twice");
    settle(&store, &all, 3).await;
    assert_eq!(claim(&store, 99).await, []);
}

async fn a_batch_whose_node_died_is_claimed_again_without_those_that_ended(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    subscribe_and_append(&store, 10).await;
    let due = claim(&store, 2).await;
    settle(&store, &due[..4], 3).await;
    assert_eq!(claim(&store, 11).await, []);
    let again = claim(&store, 12).await;
    assert_eq!(sorted(&again), sorted(&due[4..]));
    settle(&store, &due[4..], 13).await;
    assert_eq!(queued(&store).await, 6, "the claims of these results were lost");
    settle(&store, &again, 14).await;
    assert_eq!(queued(&store).await, 0);
}

async fn members_are_renewed_and_released_with_their_claim(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let (_, ids) = subscribe_and_append(&store, 6).await;
    let due = claim(&store, 2).await;
    let claims: Vec<_> = due.iter().map(|due| (due.subscription.id, due.claim)).collect();
    let mut renewed = store.renew_subscription_claims(&claims, at(3), at(30)).await.unwrap();
    renewed.sort_unstable_by_key(|id| id.number);
    assert_eq!(renewed, ids);
    assert_eq!(claim(&store, 29).await, []);
    store.release_subscription_claims(&claims[..2], at(20)).await.unwrap();
    assert_eq!(sorted(&claim(&store, 20).await), sorted(&due[..2]), "the others are delivered");
    settle(&store, &due[2..], 21).await;
    assert_eq!(queued(&store).await, 2);
    let renewed = store.renew_subscription_claims(&claims, at(22), at(50)).await.unwrap();
    assert_eq!(renewed, [], "all these claims have ended");
}

async fn a_member_that_is_paused_or_replayed_leaves_its_batch(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let (resource, ids) = subscribe_and_append(&store, 5).await;
    store.pause(ids[0], at(2)).await.unwrap();
    assert!(store.retry_delivery(ids[1], at(2)).await.unwrap());
    let due = claim(&store, 3).await;
    assert_eq!(sorted(&due), ids[1..]);
    store.pause(ids[2], at(4)).await.unwrap();
    assert!(store.replay(ids[3], Seq(0), at(4)).await.unwrap());
    let request = wish("a", "https://callback.test/4");
    store.subscribe(&request, at(4)).await.unwrap();
    let listed = store.listed(ids[4]).await.unwrap().unwrap();
    assert_eq!(listed.delivery.claimed_until, Some(at(13)), "its delivery goes on");
    settle(&store, &due, 5).await;
    assert_eq!(sorted(&claim(&store, 6).await), [ids[3]], "it is sent once more");
    store.resume(ids[0], at(7)).await.unwrap();
    store.record(resource, &poll(at(8), &["2"])).await.unwrap();
    store.resume(ids[2], at(9)).await.unwrap();
    let mut others = ids.clone();
    others.remove(3);
    assert_eq!(sorted(&claim(&store, 9).await), others);
}

async fn a_batch_without_members_is_removed(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let mut ids = Vec::new();
    for n in 0..3 {
        let mut short = wish("a", &format!("https://callback.test/{n}"));
        short.lease = Lease::from(Duration::from_secs(10));
        ids.push(store.subscribe(&short, at(0)).await.unwrap().id);
    }
    store.record(ids[0].resource, &poll(at(1), &["1"])).await.unwrap();
    assert_eq!(queued(&store).await, 3);
    assert_eq!(claim(&store, 11).await, [], "their leases have ended");
    assert_eq!(queued(&store).await, 0);
    assert_eq!(store.gauges(at(99)).await.unwrap().oldest_due.deliveries_s, 0);
}

async fn members_that_have_expired_leave_their_batch(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let mut ids = Vec::new();
    for (n, lease_s) in [10, 1_000, 10].into_iter().enumerate() {
        let mut request = wish("a", &format!("https://callback.test/{n}"));
        request.lease = Lease::from(Duration::from_secs(lease_s));
        ids.push(store.subscribe(&request, at(0)).await.unwrap().id);
    }
    store.record(ids[0].resource, &poll(at(1), &["1"])).await.unwrap();
    assert_eq!(sorted(&claim(&store, 11).await), [ids[1]]);
    assert_eq!(queued(&store).await, 1);
}

async fn a_member_is_not_queued_again_by_a_change_of_the_status(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let mut ids = Vec::new();
    for n in 0..3 {
        let mut request = wish("a", &format!("https://callback.test/{n}"));
        request.statuses = Statuses::Always;
        ids.push(store.subscribe(&request, at(0)).await.unwrap().id);
    }
    store.record(ids[0].resource, &poll(at(1), &["1"])).await.unwrap();
    let mut failed = poll(at(2), &["1"]);
    failed.status.version = 1;
    store.record(ids[0].resource, &failed).await.unwrap();
    assert_eq!(queued(&store).await, 3);
    let due = claim(&store, 3).await;
    assert_eq!(sorted(&due), ids);
    assert!(due.iter().all(|due| due.batch.is_some()), "they have stayed in their batch");
}

async fn a_batch_that_cannot_be_read_stops_no_other(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let (_, ids) = subscribe_and_append(&store, 3).await;
    let damage = format!("update deliveries set members = ',seven,' where host = '{HOST}'");
    database.run(&damage).await;
    let other = subscribe(&store, "b", "https://other.test/").await;
    store.record(other.id.resource, &poll(at(1), &["1"])).await.unwrap();
    assert_eq!(sorted(&claim(&store, 2).await), [other.id]);
    store.record(ids[0].resource, &poll(at(3), &["2"])).await.unwrap();
    store.pause(ids[0], at(3)).await.unwrap();
}

async fn a_batch_is_not_split_for_a_few_deliveries(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let (_, ids) = subscribe_and_append(&store, 512).await; // four batches
    let most = store.claim_subscriptions_of_host(HOST, at(2), at(60), 400).await.unwrap();
    assert_eq!(most.len(), 384);
    let rest = store.claim_subscriptions_of_host(HOST, at(2), at(60), 400).await.unwrap();
    assert!(most.iter().chain(&rest).all(|due| due.batch.is_some()));
    assert_eq!(sorted(&[most, rest].concat()), ids);
}

async fn members_of_a_batch_are_near_each_other(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let mut ids = Vec::new();
    for n in 0..4 {
        ids.push(subscribe(&store, "a", &format!("https://callback.test/{n}")).await.id);
    }
    // The first two are as far apart as members of a batch may be, and so are the others.
    for (n, distance) in [(1, 8_192), (2, 8_193), (3, 16_385)] {
        let (old, new) = (ids[n].number, ids[0].number + distance);
        database.run(&format!("update subscriptions set id = {new} where id = {old}")).await;
        ids[n].number = new;
    }
    store.record(ids[0].resource, &poll(at(1), &["1"])).await.unwrap();
    assert_eq!(queued(&store).await, 4);
    store.pause(ids[0], at(2)).await.unwrap();
    store.pause(ids[3], at(2)).await.unwrap();
    let due = claim(&store, 3).await;
    assert_eq!(sorted(&due), ids[1..3]);
    assert!(due.iter().all(|due| due.batch.is_some()));
}

async fn who_is_in_the_queue_is_not_queued_again(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let (resource, ids) = subscribe_and_append(&store, 8).await;
    store.pause(ids[7], at(2)).await.unwrap();
    store.resume(ids[7], at(2)).await.unwrap();
    let part = store.claim_subscriptions_of_host(HOST, at(2), at(60), 3).await.unwrap();
    assert_eq!(part.len(), 3);
    store.record(resource, &poll(at(3), &["2"])).await.unwrap();
    assert_eq!(
        queued(&store).await,
        8,
        "some in a batch, some with rows of their own, some claimed"
    );
    let rest = claim(&store, 4).await;
    assert_eq!(sorted(&[part.clone(), rest.clone()].concat()), ids);
    settle(&store, &part, 5).await;
    settle(&store, &rest, 5).await;
    assert_eq!(sorted(&claim(&store, 6).await), sorted(&part), "they were claimed before it");
}

async fn a_result_of_a_lost_claim_is_ignored_beside_one_of_the_new_claim(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    subscribe_and_append(&store, 10).await;
    let lost = claim(&store, 2).await;
    let again = claim(&store, 12).await;
    assert_eq!(sorted(&again), sorted(&lost));
    settle(&store, &[&lost[..5], &again[5..]].concat(), 13).await;
    assert_eq!(queued(&store).await, 5, "these are still delivered");
    settle(&store, &again[..5], 14).await;
    assert_eq!(queued(&store).await, 0);
}

async fn a_batch_that_its_members_leave_is_removed(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let (_, ids) = subscribe_and_append(&store, 4).await;
    for id in ids {
        store.pause(id, at(2)).await.unwrap();
    }
    let oldest_s = async || store.gauges(at(99)).await.unwrap().oldest_due.deliveries_s;
    assert_eq!(oldest_s().await, 0);
    let ended: Vec<_> = (4..8).map(|n| format!("https://callback.test/{n}")).collect();
    for callback in &ended {
        subscribe(&store, "b", callback).await;
    }
    let id = store.find("https://feeds.test/b").await.unwrap().unwrap().id;
    store.record(id, &poll(at(1), &["1"])).await.unwrap();
    assert_ne!(oldest_s().await, 0);
    for callback in &ended {
        let request = wish("b", callback);
        store.unsubscribe(None, &request.topic, &request.callback, None).await.unwrap();
    }
    assert_eq!(oldest_s().await, 0);
}

async fn a_batch_gets_another_number_if_an_older_batch_has_its_first(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let (resource, ids) = subscribe_and_append(&store, 4).await;
    let due = claim(&store, 2).await;
    let (ended, delivering): (Vec<_>, Vec<_>) =
        due.into_iter().partition(|due| due.subscription.id.number <= ids[1].number);
    settle(&store, &ended, 3).await;
    store.record(resource, &poll(at(4), &["2"])).await.unwrap();
    let next = claim(&store, 5).await;
    assert_eq!(sorted(&next), ids[..2]);
    settle(&store, &delivering, 6).await;
    assert_eq!(sorted(&claim(&store, 7).await), ids[2..], "the newer entry is owed to them too");
    settle(&store, &next, 8).await;
    assert_eq!(queued(&store).await, 2);
}

async fn a_search_returns_to_a_batch_of_which_a_part_was_picked(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let (_, ids) = subscribe_and_append(&store, 20).await;
    let plain = Arc::clone(&*store);
    let claim = async |limit, from| {
        plain.claim_subscriptions(at(2), at(12), &few(limit), from).await.unwrap()
    };
    let first = claim(8, QueuePosition::START).await;
    assert!(!first.is_end);
    let second = claim(100, first.position).await;
    let all: Vec<_> = first.due.into_iter().chain(second.due).collect();
    assert_eq!(sorted(&all), ids);
}

async fn d16_a_batch_is_not_one_turn_of_an_account(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let subscribe = async |name: &str, account: i64, callback: &str| {
        let mut own = wish(name, callback);
        own.account = Some(AccountId(account));
        store.subscribe(&own, at(0)).await.unwrap().id
    };
    for n in 0..300 {
        subscribe("a", 7, &format!("https://{}.test/{n}", n % 3)).await;
    }
    let much = store.find("https://feeds.test/a").await.unwrap().unwrap().id;
    store.record(much, &poll(at(1), &["1"])).await.unwrap();
    let little = subscribe("b", 8, "https://little.test/").await;
    store.record(little.resource, &poll(at(2), &["1"])).await.unwrap();

    store.claim_subscriptions(at(3), at(60), &few(64)).await.unwrap();
    let second = store.claim_subscriptions(at(3), at(60), &few(64)).await.unwrap();
    assert_eq!(second.len(), 64);
    assert!(second.iter().any(|due| due.subscription.id == little), "it has its turn");
}
