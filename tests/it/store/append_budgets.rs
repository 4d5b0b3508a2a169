//! How much is stored of what only subscribers without an account watch.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use feedgate_core::account::AccountId;
use feedgate_core::poll::Poll;
use feedgate_core::registrant::RegistrantNetwork;
use feedgate_core::resource::ResourceId;
use feedgate_core::store::StoreError;
use feedgate_core::subscription::SubscriptionRequest;
use feedgate_feed::Body;
use feedgate_store::Store;
use feedgate_store::{self as store, StoreSettings};

use super::pings::ping;
use super::{at, in_one_cell, on_both_stores, poll, request, resource, room, subscribe};
use crate::support::claiming_store::ClaimingStore;
use crate::support::postgres::Database;

on_both_stores!(
    t02_a_flood_that_only_anonymous_subscribers_watch_is_fetched_later,
    t02_what_an_account_watches_is_not_limited,
    s44_a_flood_that_an_account_watches_is_fetched_on_the_next_day,
    h01_bodies_that_are_kept_are_charged_to_subscribers_without_an_account,
    s44_a_resource_waits_only_if_all_its_accounts_have_used_up_their_budgets,
);

in_one_cell!(
    h01_what_many_topics_of_a_stranger_cost_is_charged_to_its_network,
    h01_a_feed_waits_only_for_the_networks_that_subscribed_to_it,
    h01_a_renewal_leaves_the_cost_with_the_first_registrant,
);

/// A quarter of it, which may be used at once, is enough for some eight small entries.
const BYTES_PER_DAY: u64 = 40 << 10;
const SPACING: Duration = Duration::from_secs(5);

async fn open(database: &Database) -> ClaimingStore {
    let settings = StoreSettings { anonymous_bytes_per_day: BYTES_PER_DAY, ..database.settings() };
    ClaimingStore::new(store::open(&settings).await.unwrap())
}

/// Opens a store in which an account may have some 40 small entries appended in a day.
async fn open_for_accounts(database: &Database) -> ClaimingStore {
    let settings = database.settings();
    let account_bytes_per_day = BYTES_PER_DAY * settings.cells as u64;
    let settings = StoreSettings { account_bytes_per_day, ..settings };
    ClaimingStore::new(store::open(&settings).await.unwrap())
}

/// Subscribes an account to a topic.
async fn subscribe_account(store: &ClaimingStore, topic: &str, account: i64, s: i64) -> ResourceId {
    let mut own = request(topic, &format!("https://{s}.test/"));
    own.account = Some(AccountId(account));
    store.subscribe(&own, at(s)).await.unwrap().id.resource
}

/// The first moment of the next day.
fn midnight() -> DateTime<Utc> {
    let next_day = at(0).date_naive().succ_opt().unwrap();
    next_day.and_hms_opt(0, 0, 0).unwrap().and_utc()
}

/// Records a poll that finds these entries. Returns the time of the next fetch.
async fn record(store: &ClaimingStore, id: ResourceId, s: i64, ids: &[i64]) -> DateTime<Utc> {
    let ids: Vec<String> = ids.iter().map(i64::to_string).collect();
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    store.record(id, &poll(at(s), &ids)).await.unwrap();
    resource(store, id).await.next_fetch
}

fn numbers(from: i64, count: i64) -> Vec<i64> {
    (from..from + count).collect()
}

async fn t02_a_flood_that_only_anonymous_subscribers_watch_is_fetched_later(database: Database) {
    let store = open(&database).await;
    let id = subscribe(&store, "flood", "https://callback.test/").await.id.resource;
    let next = record(&store, id, 0, &numbers(0, 50)).await;
    assert_eq!(next, at(600), "the first document is free");
    let next = record(&store, id, 1_000, &numbers(50, 3)).await;
    assert_eq!(next, at(1_600), "so is what the budget suffices for");

    let next = record(&store, id, 2_000, &numbers(60, 30)).await;
    assert!(next > at(2_000 + 3 * 3_600), "{next}");
    assert!(next < at(2_000 + 24 * 3_600), "{next}");
    let status = resource(&store, id).await.status;
    assert!(status.http_message.contains("without an account"), "{}", status.http_message);
    let earliest = store.earliest_fetch(id).await.unwrap();
    assert!(earliest > at(2_000 + 3 * 3_600), "whoever asks for a poll: {earliest}");

    store.receive(&ping(2_100, "https://feeds.test/flood"), SPACING).await.unwrap();
    assert_eq!(resource(&store, id).await.next_fetch, next, "a ping does not fetch it earlier");
    let again = record(&store, id, 2_200, &[]).await;
    assert_eq!(again, next, "nor does a poll that finds nothing");
}

async fn t02_what_an_account_watches_is_not_limited(database: Database) {
    let store = open(&database).await;
    let id = subscribe(&store, "busy", "https://callback.test/").await.id.resource;
    record(&store, id, 0, &numbers(0, 1)).await;
    let next = record(&store, id, 1_000, &numbers(1, 50)).await;
    assert!(next > at(3_600), "{next}");

    assert!(!store.has_trusted_watcher(id).await.unwrap());
    let mut own = request("busy", "https://other.test/");
    own.account = Some(AccountId(7));
    store.subscribe(&own, at(1_001)).await.unwrap();
    assert!(store.has_trusted_watcher(id).await.unwrap());
    store.receive(&ping(1_100, "https://feeds.test/busy"), SPACING).await.unwrap();
    assert_eq!(resource(&store, id).await.next_fetch, at(1_100));
    let next = record(&store, id, 1_200, &numbers(100, 50)).await;
    assert_eq!(next, at(1_205), "the ping is still to be answered");
}

async fn s44_a_flood_that_an_account_watches_is_fetched_on_the_next_day(database: Database) {
    let store = open_for_accounts(&database).await;
    let id = subscribe_account(&store, "flood", 7, 0).await;
    let next = record(&store, id, 0, &numbers(0, 50)).await;
    assert_eq!(next, at(600), "the first document is free");
    let next = record(&store, id, 1_000, &numbers(50, 10)).await;
    assert_eq!(next, at(1_600), "so is what the budget suffices for");

    let next = record(&store, id, 2_000, &numbers(60, 40)).await;
    assert!(next >= midnight() && next < midnight() + Duration::from_secs(3_600), "{next}");
    let status = resource(&store, id).await.status;
    assert!(status.http_message.contains("until tomorrow"), "{}", status.http_message);

    subscribe_account(&store, "flood", 7, 2_050).await;
    store.receive(&ping(2_100, "https://feeds.test/flood"), SPACING).await.unwrap();
    let waits = resource(&store, id).await.next_fetch;
    assert_eq!(waits, next, "neither a ping nor another subscription fetches it earlier");

    // On the next day the budget is a new one.
    let day_s = 24 * 3_600;
    let next = record(&store, id, day_s, &numbers(100, 10)).await;
    assert_eq!(next, at(day_s + 5), "the ping is still to be answered");
}

async fn s44_a_resource_waits_only_if_all_its_accounts_have_used_up_their_budgets(
    database: Database,
) {
    let store = open_for_accounts(&database).await;
    let id = subscribe_account(&store, "busy", 7, 0).await;
    subscribe_account(&store, "busy", 8, 1).await;
    record(&store, id, 0, &numbers(0, 1)).await;
    let next = record(&store, id, 1_000, &numbers(1, 50)).await;
    assert_eq!(next, at(1_600), "the second account has its budget left");
    let next = record(&store, id, 2_000, &numbers(60, 50)).await;
    assert!(next >= midnight(), "{next}");

    // A subscriber that has used nothing ends the wait.
    subscribe_account(&store, "busy", 9, 2_050).await;
    store.receive(&ping(2_100, "https://feeds.test/busy"), SPACING).await.unwrap();
    assert_eq!(resource(&store, id).await.next_fetch, at(2_100));
}

/// Records a poll that finds a body of this length, and no entries. Returns the time of the next fetch.
async fn record_body(
    store: &ClaimingStore,
    id: ResourceId,
    s: i64,
    length: usize,
) -> DateTime<Utc> {
    let mut bytes = vec![b'a'; length];
    bytes[..8].copy_from_slice(&s.to_be_bytes());
    let poll = Poll { body: Some(Body { content_type: None, bytes }), ..poll(at(s), &[]) };
    store.record(id, &poll).await.unwrap();
    resource(store, id).await.next_fetch
}

async fn h01_bodies_that_are_kept_are_charged_to_subscribers_without_an_account(
    database: Database,
) {
    let store = open(&database).await;
    let id = subscribe(&store, "page", "https://callback.test/").await.id.resource;
    let next = record_body(&store, id, 0, 8 << 10).await;
    assert_eq!(next, at(600), "the first document is free");
    for s in 1..20 {
        let next = record_body(&store, id, s * 1_000, 8 << 10).await;
        assert_eq!(next, at(s * 1_000 + 600), "so is what takes no more than before");
    }
    let next = record_body(&store, id, 30_000, 60 << 10).await;
    assert!(next > at(30_000 + 3 * 3_600), "{next}");
    let status = resource(&store, id).await.status;
    assert!(status.http_message.contains("without an account"), "{}", status.http_message);

    let large = subscribe(&store, "large", "https://callback.test/").await.id.resource;
    record_body(&store, large, 0, 300 << 10).await;
    let next = record_body(&store, large, 1_000, 300 << 10).await;
    assert!(next > at(3 * 3_600), "a large body is stored anew whenever it changes: {next}");

    let own = subscribe_account(&store, "own", 7, 0).await;
    record_body(&store, own, 0, 8 << 10).await;
    let next = record_body(&store, own, 1_000, 300 << 10).await;
    assert_eq!(next, at(1_600), "an account pays for entries");
}

/// Opens a store in which a network may have some 600 small entries appended in a day.
async fn open_for_networks(database: &Database) -> ClaimingStore {
    let settings = database.settings();
    let anonymous_bytes_per_day = BYTES_PER_DAY * settings.cells as u64;
    let settings = StoreSettings { anonymous_bytes_per_day, ..settings };
    ClaimingStore::new(store::open(&settings).await.unwrap())
}

/// Subscribes from an address.
async fn subscribe_from(store: &ClaimingStore, topic: &str, last: u8, s: i64) -> ResourceId {
    let registrant = RegistrantNetwork::from_client(Some([192, 0, 2, last].into()));
    let callback = format!("https://{last}.test/");
    let request = SubscriptionRequest { registrant, ..request(topic, &callback) };
    store.subscribe(&request, at(s)).await.unwrap().id.resource
}

/// A document that is stored in two parts.
const IN_TWO_PARTS: i64 = 300;

/// Records a silent first poll that finds a document in two parts. Returns how many entries are stored, and
/// until when the rest waits.
async fn record_first(
    store: &ClaimingStore,
    id: ResourceId,
    s: i64,
) -> (i64, Option<DateTime<Utc>>) {
    let ids: Vec<String> = numbers(0, IN_TWO_PARTS).iter().map(i64::to_string).collect();
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    let inner: &Arc<Store> = store;
    let claim = inner.claim_resource(id, at(s), at(s + 1)).await.unwrap().unwrap().claim;
    let poll = Poll { claim, silent: true, ..poll(at(s), &ids) };
    let until = match inner.record(id, &poll).await {
        Ok(appended) => {
            appended.unwrap();
            None
        }
        Err(StoreError::Postponed { until, .. }) => Some(until),
        Err(err) => panic!("{err}"),
    };
    (resource(store, id).await.head.0, until)
}

async fn h01_what_many_topics_of_a_stranger_cost_is_charged_to_its_network(database: Database) {
    let store = open_for_networks(&database).await;
    let mut stored = Vec::new();
    for (s, topic) in (0..).step_by(10).zip(["a", "b", "c"]) {
        let id = subscribe_from(&store, topic, 1, s).await;
        stored.push((id, record_first(&store, id, s + 1).await));
    }
    let heads: Vec<i64> = stored.iter().map(|(_, (head, _))| *head).collect();
    assert_eq!(heads, [IN_TWO_PARTS, IN_TWO_PARTS, 200], "the rest of the third waits");
    let (third, (_, until)) = stored[2];
    let until = until.unwrap();
    assert!(until >= midnight() && until < midnight() + Duration::from_secs(3_600), "{until}");
    assert_eq!(store.earliest_fetch(third).await.unwrap(), until, "whoever asks for a poll");

    let other = subscribe_from(&store, "d", 2, 100).await;
    let whole = (IN_TWO_PARTS, None);
    assert_eq!(
        record_first(&store, other, 101).await,
        whole,
        "another stranger pays nothing of it"
    );
    let own = subscribe_account(&store, "e", 7, 110).await;
    assert_eq!(record_first(&store, own, 111).await, whole, "nor does an account");

    // Feeds of the same stranger that were not large wait as well once they grow.
    let small = subscribe_from(&store, "f", 1, 120).await;
    let next = record(&store, small, 121, &[1, 2]).await;
    assert!(next >= midnight(), "{next}");
    let status = resource(&store, small).await.status;
    assert!(status.http_message.contains("the same network"), "{}", status.http_message);

    // On the next day nothing is missing.
    let day_s = 24 * 3_600;
    assert_eq!(record_first(&store, third, day_s).await, whole);
    let due = store.claim_subscriptions(at(day_s), at(day_s + 60), &room()).await.unwrap();
    assert!(due.iter().all(|due| due.subscription.id.resource == small), "baselines are not sent");
}

async fn h01_a_feed_waits_only_for_the_networks_that_subscribed_to_it(database: Database) {
    let store = open_for_networks(&database).await;
    for (s, topic) in (0..).step_by(10).zip(["a", "b", "c"]) {
        let id = subscribe_from(&store, topic, 1, s).await;
        record_first(&store, id, s + 1).await;
    }
    let shared = subscribe_from(&store, "shared", 1, 100).await;
    let next = record(&store, shared, 101, &[1]).await;
    assert!(next >= midnight(), "{next}");
    subscribe_from(&store, "shared", 1, 110).await;
    let waits = store.earliest_fetch(shared).await.unwrap();
    assert!(waits >= midnight(), "a renewal changes nothing: {waits}");
    subscribe_from(&store, "shared", 2, 120).await;
    let waits = store.earliest_fetch(shared).await.unwrap();
    assert!(waits <= at(121), "another stranger does not wait for the first: {waits}");
    let next = record(&store, shared, 130, &[1, 2]).await;
    assert_eq!(next, at(730));
}

async fn h01_a_renewal_leaves_the_cost_with_the_first_registrant(database: Database) {
    let store = open_for_networks(&database).await;
    let id = subscribe_from(&store, "a", 1, 0).await;
    record_first(&store, id, 1).await;
    // The same callback, named from another network.
    let registrant = RegistrantNetwork::from_client(Some([192, 0, 2, 9].into()));
    let renewal = SubscriptionRequest { registrant, ..request("a", "https://1.test/") };
    store.subscribe(&renewal, at(10)).await.unwrap();
    for (s, topic) in (20..).step_by(10).zip(["b", "c"]) {
        let id = subscribe_from(&store, topic, 1, s).await;
        record_first(&store, id, s + 1).await;
    }
    let next = record(&store, id, 50, &[1_000]).await;
    assert!(next >= midnight(), "the first network is charged: {next}");
    let victim = subscribe_from(&store, "d", 9, 60).await;
    assert_eq!(record_first(&store, victim, 61).await, (IN_TWO_PARTS, None));
}
