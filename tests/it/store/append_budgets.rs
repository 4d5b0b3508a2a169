//! How much is stored of what only subscribers without an account watch.

use std::time::Duration;

use chrono::{DateTime, Utc};
use feedgate_core::account::AccountId;
use feedgate_core::resource::ResourceId;
use feedgate_store::{self as store, StoreSettings};

use super::pings::ping;
use super::{at, on_both_stores, poll, resource, subscribe, wish};
use crate::support::claiming_store::ClaimingStore;
use crate::support::postgres::Database;

on_both_stores!(
    t02_a_flood_that_only_anonymous_subscribers_watch_is_fetched_later,
    t02_what_an_account_watches_is_not_limited,
    s44_a_flood_that_an_account_watches_is_fetched_on_the_next_day,
    s44_a_resource_waits_only_if_all_its_accounts_have_used_up_their_budgets,
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
    let mut own = wish(topic, &format!("https://{s}.test/"));
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
    let mut own = wish("busy", "https://other.test/");
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
