//! Backlogs: where to look for subscriptions that are owed something.

use std::sync::Arc;
use std::time::Duration;

use feedgate_core::account::AccountId;
use feedgate_core::claim::QueuePosition;
use feedgate_core::record::Seq;
use feedgate_core::resource::ResourceId;
use feedgate_core::store::{ClaimLimits, DeliveryOutcome, DeliveryResult};
use feedgate_core::subscription::{DueSubscription, Lease, SubscriptionId};

use super::{at, few, in_one_cell, on_both_stores, poll, request, room, subscribe};
use crate::support::claiming_store::ClaimingStore;
use crate::support::postgres::Database;

on_both_stores!(
    one_claim_has_all_subscriptions_of_a_host,
    a_host_with_little_room_gets_a_part_of_a_backlog,
    a_backlog_whose_node_died_is_claimed_again_without_those_that_were_notified,
    claims_are_renewed_and_released,
    what_the_worker_has_lost_is_claimed_again,
    a_subscription_that_is_paused_or_replayed_while_it_is_claimed,
    a_backlog_without_valid_subscriptions_is_removed,
    a_result_of_a_lost_claim_moves_only_the_cursor,
    e07_a_pass_over_a_backlog_ends_before_the_next_begins,
    a_pass_goes_on_where_another_node_stopped,
    after_a_node_died_a_pass_begins,
    retries_make_a_backlog_due,
    a_subscription_that_waits_for_the_next_change_is_claimed_with_it,
    one_that_cannot_be_read_stops_no_other,
);

in_one_cell!(d16_a_backlog_is_not_one_turn_of_an_account, resources_at_one_host_get_equal_parts,);

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
    Arc::clone(store).record_deliveries(&results.collect::<Vec<_>>(), at(seconds)).await.unwrap();
}

/// Returns whether there is a backlog.
async fn has_backlog(store: &ClaimingStore) -> bool {
    store.gauges(at(0)).await.unwrap().due > 0
}

async fn fail(store: &ClaimingStore, due: &[DueSubscription], retry_at: Option<i64>, seconds: i64) {
    let outcome = DeliveryOutcome::Failed { retry_at: retry_at.map(at) };
    let results = due.iter().map(|due| DeliveryResult::new(due, outcome, None));
    Arc::clone(store).record_deliveries(&results.collect::<Vec<_>>(), at(seconds)).await.unwrap();
}

async fn one_claim_has_all_subscriptions_of_a_host(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let (_, ids) = subscribe_and_append(&store, 300).await;
    assert_eq!(store.gauges(at(0)).await.unwrap().due, 300);
    let due = claim(&store, 2).await;
    assert_eq!(sorted(&due), ids);
    assert_eq!(claim(&store, 3).await, [], "they are claimed");
    settle(&store, &due[..200], 4).await;
    assert!(has_backlog(&store).await);
    settle(&store, &due[200..], 4).await;
    assert!(!has_backlog(&store).await);
    assert_eq!(claim(&store, 99).await, []);
}

async fn a_host_with_little_room_gets_a_part_of_a_backlog(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let (_, ids) = subscribe_and_append(&store, 20).await;
    let limits = ClaimLimits { limit: 100, per_host: 3, busy: Vec::new() };
    let start = QueuePosition::START;
    let plain = Arc::clone(&store);
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

async fn a_backlog_whose_node_died_is_claimed_again_without_those_that_were_notified(
    database: Database,
) {
    let store = ClaimingStore::new(database.open().await);
    subscribe_and_append(&store, 10).await;
    let due = claim(&store, 2).await;
    settle(&store, &due[..4], 3).await;
    assert_eq!(claim(&store, 11).await, []);
    let again = claim(&store, 12).await;
    assert_eq!(sorted(&again), sorted(&due[4..]));
    fail(&store, &due[4..], Some(99), 13).await; // the claims of these results were lost
    assert!(has_backlog(&store).await);
    settle(&store, &again, 14).await;
    assert_eq!(claim(&store, 99).await, []);
    assert!(!has_backlog(&store).await);
}

async fn claims_are_renewed_and_released(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let (_, ids) = subscribe_and_append(&store, 6).await;
    let due = claim(&store, 2).await;
    let claims: Vec<_> = due.iter().map(|due| (due.subscription.id, due.claim)).collect();
    let mut renewed = store.renew_subscription_claims(&claims, at(3), at(30)).await.unwrap();
    renewed.sort_unstable_by_key(|id| id.number);
    assert_eq!(renewed, ids);
    assert_eq!(claim(&store, 29).await, []);
    store.release_subscription_claims(&claims[..2], at(20)).await.unwrap();
    assert_eq!(claim(&store, 19).await, [], "they are given back for a while");
    assert_eq!(sorted(&claim(&store, 20).await), sorted(&due[..2]), "the others are delivered");
    store.release_subscription_claims(&claims, at(20)).await.unwrap();
    assert_eq!(sorted(&claim(&store, 20).await), ids, "nothing was in progress any more");
    settle(&store, &due, 21).await;
    let renewed = store.renew_subscription_claims(&claims, at(22), at(50)).await.unwrap();
    assert_eq!(renewed, [], "all these claims have ended");
}

async fn what_the_worker_has_lost_is_claimed_again(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    subscribe_and_append(&store, 4).await;
    let due = claim(&store, 2).await;
    let claims: Vec<_> = due.iter().map(|due| (due.subscription.id, due.claim)).collect();
    for now in [3, 4] {
        assert_eq!(claim(&store, now).await, []);
        store.renew_subscription_claims(&claims[1..], at(now), at(60)).await.unwrap();
    }
    assert_eq!(sorted(&claim(&store, 5).await), sorted(&due[..1]));
}

async fn a_subscription_that_is_paused_or_replayed_while_it_is_claimed(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let (resource, ids) = subscribe_and_append(&store, 5).await;
    store.pause(ids[0], at(2)).await.unwrap();
    assert!(store.retry_delivery(ids[1], at(2)).await.unwrap());
    let due = claim(&store, 3).await;
    assert_eq!(sorted(&due), ids[1..]);
    store.pause(ids[2], at(4)).await.unwrap();
    assert!(store.replay(ids[3], Seq(0), at(4)).await.unwrap());
    let request = request("a", "https://callback.test/4");
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

async fn a_backlog_without_valid_subscriptions_is_removed(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let mut ids = Vec::new();
    for (n, lease_s) in [10, 1_000, 10].into_iter().enumerate() {
        let mut request = request("a", &format!("https://callback.test/{n}"));
        request.lease = Lease::from(Duration::from_secs(lease_s));
        ids.push(store.subscribe(&request, at(0)).await.unwrap().id);
    }
    store.record(ids[0].resource, &poll(at(1), &["1"])).await.unwrap();
    assert_eq!(sorted(&claim(&store, 11).await), [ids[1]]);
    assert_eq!(claim(&store, 1_001).await, [], "its lease has ended, too");
    assert!(!has_backlog(&store).await);
    assert_eq!(store.gauges(at(2_000)).await.unwrap().oldest_due.deliveries_s, 0);
}

async fn a_result_of_a_lost_claim_moves_only_the_cursor(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    subscribe_and_append(&store, 10).await;
    let lost = claim(&store, 2).await;
    let again = claim(&store, 12).await;
    assert_eq!(sorted(&again), sorted(&lost));
    fail(&store, &lost[..5], None, 13).await;
    settle(&store, &lost[5..], 13).await;
    for due in &lost {
        let listed = store.listed(due.subscription.id).await.unwrap().unwrap();
        assert_eq!(listed.subscription.failures, 0);
    }
    let third = claim(&store, 22).await;
    assert_eq!(sorted(&third), sorted(&lost[..5]), "the others have acknowledged it");
    settle(&store, &third, 23).await;
    assert!(!has_backlog(&store).await);
}

async fn e07_a_pass_over_a_backlog_ends_before_the_next_begins(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let (resource, ids) = subscribe_and_append(&store, 9).await;
    let mut sent = Vec::new();
    for n in 2..8 {
        let due = store.claim_subscriptions_of_host(HOST, at(n), at(60), 3).await.unwrap();
        store.record(resource, &poll(at(n), &[&n.to_string()])).await.unwrap();
        settle(&store, &due, n).await;
        sent.extend(sorted(&due));
    }
    assert_eq!(sent, [ids.clone(), ids].concat());
}

async fn a_pass_goes_on_where_another_node_stopped(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let (resource, ids) = subscribe_and_append(&store, 9).await;
    let first = store.claim_subscriptions_of_host(HOST, at(2), at(12), 3).await.unwrap();
    store.record(resource, &poll(at(3), &["2"])).await.unwrap();
    settle(&store, &first, 4).await;
    let other = ClaimingStore::new(database.open().await);
    let second = other.claim_subscriptions_of_host(HOST, at(5), at(15), 100).await.unwrap();
    assert_eq!(sorted(&second), ids[3..]);
    settle(&other, &second, 6).await;
    assert_eq!(sorted(&claim(&store, 7).await), ids[..3], "the pass after it");
}

async fn after_a_node_died_a_pass_begins(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let (resource, ids) = subscribe_and_append(&store, 3).await;
    let due = claim(&store, 2).await;
    fail(&store, &due[..1], Some(40), 3).await;
    settle(&store, &due[1..], 3).await;
    assert_eq!(sorted(&claim(&store, 40).await), sorted(&due[..1]), "only a retry was due");
    store.record(resource, &poll(at(41), &["2"])).await.unwrap();
    assert_eq!(claim(&store, 42).await.len(), 2);
    // The node dies with what it knew of its passes.
    let other = ClaimingStore::new(database.open().await);
    assert_eq!(sorted(&claim(&other, 60).await), ids);
}

async fn retries_make_a_backlog_due(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let (resource, ids) = subscribe_and_append(&store, 3).await;
    let due = claim(&store, 2).await;
    fail(&store, &due[..1], Some(50), 3).await;
    fail(&store, &due[1..2], Some(40), 3).await;
    settle(&store, &due[2..], 3).await;
    assert_eq!(claim(&store, 39).await, []);
    let one = claim(&store, 40).await;
    assert_eq!(sorted(&one), sorted(&due[1..2]));
    store.record(resource, &poll(at(41), &["2"])).await.unwrap();
    let others = claim(&store, 42).await;
    assert_eq!(sorted(&others), ids[2..], "one that is slow holds up nobody");
    settle(&store, &[one, others].concat(), 42).await;
    let again = claim(&store, 43).await;
    assert_eq!(sorted(&again), ids[1..2]);
    settle(&store, &again, 44).await;
    assert_eq!(sorted(&claim(&store, 50).await), ids[..1], "it was not tried sooner");
}

async fn a_subscription_that_waits_for_the_next_change_is_claimed_with_it(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let (resource, ids) = subscribe_and_append(&store, 2).await;
    let due = claim(&store, 2).await;
    fail(&store, &due, None, 3).await;
    assert!(!has_backlog(&store).await);
    let listed = store.listed(ids[0]).await.unwrap().unwrap();
    assert_eq!(listed.delivery.due_at, None);
    store.record(resource, &poll(at(4), &["2"])).await.unwrap();
    assert_eq!(sorted(&claim(&store, 5).await), ids);
}

async fn one_that_cannot_be_read_stops_no_other(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let (_, ids) = subscribe_and_append(&store, 3).await;
    let damaged = ids[1].number;
    database.run(&format!("update subscriptions set format = 'x' where id = {damaged}")).await;
    let due = claim(&store, 2).await;
    assert_eq!(sorted(&due), [ids[0], ids[2]]);
    settle(&store, &due, 3).await;
    assert!(!has_backlog(&store).await);
}

async fn resources_at_one_host_get_equal_parts(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    subscribe_and_append(&store, 40).await;
    let mut few = Vec::new();
    for n in 0..3 {
        few.push(subscribe(&store, "b", &format!("https://callback.test/{n}")).await.id);
    }
    let first = store.claim_subscriptions_of_host(HOST, at(2), at(60), 10).await.unwrap();
    assert_eq!(first.len(), 10);
    store.record(few[0].resource, &poll(at(3), &["1"])).await.unwrap();
    let second = store.claim_subscriptions_of_host(HOST, at(4), at(60), 10).await.unwrap();
    assert_eq!(second.len(), 10);
    let of_few = second.iter().filter(|due| due.subscription.id.resource == few[0].resource);
    assert_eq!(of_few.count(), 3);
}

async fn d16_a_backlog_is_not_one_turn_of_an_account(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let subscribe = async |name: &str, account: i64, callback: &str| {
        let mut own = request(name, callback);
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
