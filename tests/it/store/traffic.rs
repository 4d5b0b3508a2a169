//! What all nodes did is counted by minutes and hours, in few rows.

use std::time::Duration;

use chrono::TimeDelta;
use feedgate_core::account::{AccountId, NewToken, Scopes, TokenHash};
use feedgate_core::resource_id::ResourceId;
use feedgate_core::store::StoreError;
use feedgate_core::traffic::{
    CountedDelivery, DeliveryClass, PollClass, QueueAges, TrafficBatch, TrafficCounts,
    TrafficSubject, TrafficUnit,
};
use feedgate_store::Store;
use futures_util::future::try_join_all;

use super::{at, in_one_cell, on_both_stores, poll, subscribe};
use crate::support::postgres::Database;

on_both_stores! {
    c02_the_minutes_of_two_nodes_add_up_and_become_hours,
    c02_the_hours_of_feeds_hosts_and_accounts_end_with_them,
    c02_the_oldest_items_of_the_queues_are_found,
}

in_one_cell! {
    c02_minutes_and_hours_that_are_too_old_or_too_many_are_deleted,
}

const HOUR: i64 = 3_600;
const DAY: i64 = 24 * HOUR;
const MINUTES: TrafficSubject = TrafficSubject::Gateway(TrafficUnit::Minute);
const HOURS: TrafficSubject = TrafficSubject::Gateway(TrafficUnit::Hour);

/// The times of the periods of a day, and the accepted deliveries in each.
async fn accepted(store: &Store, subject: &TrafficSubject) -> Vec<(i64, u64)> {
    let periods = store.traffic(subject, at(-DAY)..at(DAY)).await.unwrap().into_iter();
    let accepted = periods
        .map(|period| (period.at.timestamp(), period.counts.deliveries(DeliveryClass::Accepted)));
    accepted.collect()
}

/// An accepted delivery that took so many milliseconds.
fn delivery(millis: u64) -> TrafficCounts {
    let mut counts = TrafficCounts::default();
    counts.add_delivery(DeliveryClass::Accepted);
    counts.add_delay(Duration::from_millis(millis));
    counts
}

async fn c02_the_minutes_of_two_nodes_add_up_and_become_hours(database: Database) {
    let (one, other) = (database.open().await, database.open().await);
    // Of three minutes, the last of which is in the next hour.
    let minutes = [at(0), at(60), at(2_800)];
    let counts: Vec<_> = (1..=20).map(delivery).collect();
    let mut adding = Vec::new();
    for (counts, minute) in counts.iter().flat_map(|counts| minutes.map(|minute| (counts, minute)))
    {
        adding.extend([&one, &other].map(|node| node.add_gateway_traffic(counts, minute)));
    }
    try_join_all(adding).await.unwrap();
    let begun = at(0).timestamp() - 20; // the minute that this is in began 20 s ago, the hour 800 s ago
    let want = [(begun, 40), (begun + 60, 40), (begun + 2_820, 40)];
    assert_eq!(accepted(&one, &MINUTES).await, want);
    assert_eq!(accepted(&other, &HOURS).await, [(begun - 780, 80), (begun + 2_820, 40)]);
    let hour = one.traffic(&HOURS, at(-DAY)..at(0)).await.unwrap().remove(0);
    let median = hour.counts.delay(50).unwrap().as_secs_f64() * 1_000.0;
    assert!((9.8..10.2).contains(&median), "{median} ms");

    // A clock that was set back leaves minutes in the future.
    one.add_gateway_traffic(&delivery(1), at(3 * DAY)).await.unwrap();
    assert_eq!(accepted(&one, &MINUTES).await, want);
}

/// What a node has counted of a feed and an account: a delivery, and a poll that found two entries.
fn batch(feed: ResourceId, account: AccountId) -> TrafficBatch {
    let mut batch = TrafficBatch::default();
    let (host, class) = ("callback.test:443", DeliveryClass::Accepted);
    let delivery = CountedDelivery { feed, host, account: Some(account), class, delay: None };
    batch.add_delivery(&delivery);
    batch.add_poll(feed, PollClass::New, 2);
    batch
}

async fn make_account(store: &Store, login: &str) -> Result<AccountId, StoreError> {
    let (hash, login) = (TokenHash::from_token(login), login.to_owned());
    let (name, scopes) = (String::new(), Scopes::all());
    let token = NewToken { login: login.clone(), name, scopes, hash, expires_at: None };
    store.create_token(&token, at(0)).await?;
    Ok(store.account(&login).await?.unwrap().id)
}

async fn c02_the_hours_of_feeds_hosts_and_accounts_end_with_them(database: Database) {
    let (store, other) = (database.open().await, database.open().await);
    let subscription = subscribe(&store, "a", "https://callback.test/").await;
    let (feed, host) = (subscription.id.resource, "callback.test:443".to_owned());
    let account = make_account(&store, "ada").await.unwrap();
    for (node, second) in [(&store, 0), (&other, 60), (&store, HOUR)] {
        // Another feed does not exist.
        for feed in [feed, ResourceId(feed.0 + 1)] {
            node.add_subject_traffic(batch(feed, account), at(second)).await.unwrap();
        }
    }
    let hour = at(0).timestamp() - 800;
    let (of_feed, of_account) = (TrafficSubject::Feed(feed), TrafficSubject::Account(account));
    assert_eq!(accepted(&store, &of_feed).await, [(hour, 2), (hour + HOUR, 1)]);
    let twice = [(hour, 4), (hour + HOUR, 2)];
    assert_eq!(accepted(&store, &of_account).await, twice);
    assert_eq!(accepted(&store, &TrafficSubject::CallbackHost(host)).await, twice);
    let first = store.traffic(&of_feed, at(-DAY)..at(0)).await.unwrap().remove(0).counts;
    assert_eq!((first.entries(), first.polls(PollClass::New)), (4, 2));

    store.remove_account("ada", at(9)).await.unwrap().unwrap();
    other.add_subject_traffic(batch(feed, account), at(10)).await.unwrap();
    assert_eq!(accepted(&store, &of_account).await, []);
    let (topic, callback) = (&subscription.topic, &subscription.callback);
    assert!(store.unsubscribe(None, topic, callback, None).await.unwrap());
    store.forget_unwatched(at(0), at(12)).await.unwrap();
    assert_eq!(store.forget_unwatched(at(13), at(14)).await.unwrap(), 1);
    other.add_subject_traffic(batch(feed, account), at(15)).await.unwrap();
    assert_eq!(accepted(&store, &of_feed).await, []);
}

async fn c02_the_oldest_items_of_the_queues_are_found(database: Database) {
    let store = database.open().await;
    assert_eq!(store.queue_ages(at(0)).await.unwrap(), QueueAges::default());
    for name in ["a", "b"] {
        let id = subscribe(&store, name, "https://callback.test/").await.id.resource;
        store.record(id, &poll(at(1), &["1"])).await.unwrap();
    }
    // The next polls are due after ten minutes.
    let ages = QueueAges { polls_s: 0, deliveries_s: 9 };
    assert_eq!(store.queue_ages(at(10)).await.unwrap(), ages);
    assert_eq!(store.queue_ages(at(611)).await.unwrap().polls_s, 10);
}

async fn c02_minutes_and_hours_that_are_too_old_or_too_many_are_deleted(database: Database) {
    let store = database.open().await;
    let feed = subscribe(&store, "a", "https://callback.test/").await.id.resource;
    let account = make_account(&store, "ada").await.unwrap();
    let now = at(0);
    let hours = [-40 * 24, -9 * 24, -7 * 24, -26, -2, 0, 48];
    for hour in hours {
        let at = now + TimeDelta::hours(hour);
        store.add_gateway_traffic(&delivery(1), at).await.unwrap();
        store.add_subject_traffic(batch(feed, account), at).await.unwrap();
    }
    let kept = async |subject: TrafficSubject| {
        let all = store.traffic(&subject, at(-90 * DAY)..at(90 * DAY)).await.unwrap().into_iter();
        all.map(|period| (period.at - now).num_hours()).collect::<Vec<_>>()
    };
    let subjects = || {
        let host = "callback.test:443".to_owned();
        [
            TrafficSubject::Feed(feed),
            TrafficSubject::CallbackHost(host),
            TrafficSubject::Account(account),
        ]
    };
    // Four minutes, an hour, and two hours of each subject.
    assert_eq!(store.trim_traffic(now, 100).await.unwrap(), 4 + 1 + 3 * 2);
    assert_eq!(kept(MINUTES).await, [-2, 0, 47]);
    assert_eq!(kept(HOURS).await, [-9 * 24, -7 * 24, -26, -2, 0, 47]);
    for subject in subjects() {
        assert_eq!(kept(subject).await, [-7 * 24, -26, -2, 0, 47]);
    }
    assert_eq!(store.trim_traffic(now, 2).await.unwrap(), 3 * 3);
    for subject in subjects() {
        assert_eq!(kept(subject).await, [0, 47]);
    }
}
