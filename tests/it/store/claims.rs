//! Handing out work: to whom, how much, and in which order.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use feedgate_core::account::AccountId;
use feedgate_core::record::Seq;
use feedgate_core::resource::ResourceId;
use feedgate_core::store::{ClaimLimits, DeliveryOutcome};
use feedgate_core::subscription::Lease;
use feedgate_core::topic::Topic;

use super::{at, few, in_one_cell, on_both_stores, poll, request, room, subscribe, topic};
use crate::support::claiming_store::ClaimingStore;
use crate::support::postgres::Database;

on_both_stores! {
    a_subscription_that_lags_is_handed_out,
    a_claim_whose_holder_vanished_ends,
    nobody_polls_what_nobody_subscribes_to,
    no_host_gets_more_than_it_can_take,
    takers_share_the_work,
    who_let_the_lease_end_is_told_no_more,
    a_hundred_thousand_subscribers_are_served,
}

in_one_cell!(
    a_crowded_host_hides_no_other,
    a_row_that_cannot_be_read_stops_no_other,
    longest_due_comes_first,
    d16_an_account_with_little_due_does_not_wait_for_one_with_much,
);

async fn a_subscription_that_lags_is_handed_out(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let sub = subscribe(&store, "a", "https://callback.test/").await;
    let id = sub.id.resource;
    assert_eq!(store.claim_subscriptions(at(1), at(30), &room()).await.unwrap(), []);
    store.record(id, &poll(at(2), &["one"])).await.unwrap();
    assert_eq!(store.claim_subscriptions(at(1), at(30), &room()).await.unwrap(), [], "not yet");
    let due = store.claim_subscriptions(at(3), at(30), &room()).await.unwrap();
    assert_eq!((due.len(), due[0].owed), (1, Seq(1)));
    assert_eq!(*due[0].subscription, sub);
    assert_eq!(store.claim_subscriptions(at(4), at(30), &room()).await.unwrap(), [], "claimed");
    let done = (sub.id, DeliveryOutcome::Delivered { cursor: Seq(1), status: 0 });
    store.record_deliveries(&[done], at(4)).await.unwrap();
    assert_eq!(store.claim_subscriptions(at(99), at(100), &room()).await.unwrap(), []);
}

async fn a_claim_whose_holder_vanished_ends(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let sub = subscribe(&store, "a", "https://callback.test/").await;
    let id = sub.id.resource;
    assert_eq!(claimed(&store, 1).await, [id], "it is due as soon as somebody subscribes");
    assert_eq!(claimed(&store, 10).await, []);
    assert_eq!(store.claim_resource(id, at(10), at(40)).await.unwrap(), None);
    // Another node opens the store, as it would after a crash.
    let other = ClaimingStore::new(database.open().await);
    assert_eq!(claimed(&other, 11).await, [id]);
    assert_eq!(store.claim_resource(id, at(21), at(30)).await.unwrap().unwrap().resource.id, id);

    store.record(id, &poll(at(22), &["one"])).await.unwrap();
    let due = store.claim_subscriptions(at(23), at(33), &room()).await.unwrap();
    assert_eq!(other.claim_subscriptions(at(32), at(43), &room()).await.unwrap(), []);
    let again = other.claim_subscriptions(at(33), at(43), &room()).await.unwrap();
    assert_ne!(again[0].claim, due[0].claim, "it is another claim");
    assert_eq!(again[0].subscription, due[0].subscription);
}

async fn nobody_polls_what_nobody_subscribes_to(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let id = store.ensure(&topic("a"), at(0)).await.unwrap().id;
    assert_eq!(claimed(&store, 1).await, []);
    assert!(store.claim_resource(id, at(1), at(2)).await.unwrap().is_some(), "unless told to");
    let sub = subscribe(&store, "a", "https://callback.test/").await;
    assert_eq!(claimed(&store, 3).await, [id]);
    store.record(id, &poll(at(4), &[])).await.unwrap();
    assert_eq!(claimed(&store, 603).await, [], "the next fetch is at 604");
    assert_eq!(claimed(&store, 604).await, [id]);
    store.record(id, &poll(at(605), &[])).await.unwrap();
    store.unsubscribe(None, &sub.topic, &sub.callback, None).await.unwrap();
    assert_eq!(claimed(&store, 9_999).await, []);
}

async fn longest_due_comes_first(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    for (name, seconds) in [("b", 20), ("a", 10), ("c", 30)] {
        let sub = subscribe(&store, name, &format!("https://{name}.test/")).await;
        let mut found = poll(at(seconds), &["1"]);
        found.next_fetch = at(seconds);
        store.record(sub.id.resource, &found).await.unwrap();
    }
    let two = ClaimLimits { limit: 2, ..room() };
    let due = store.claim_resources(at(99), at(100), &two).await.unwrap();
    let topics = due.iter().map(|due| due.resource.topic.as_str());
    assert_eq!(topics.collect::<Vec<_>>(), ["https://feeds.test/a", "https://feeds.test/b"]);
    let due = store.claim_subscriptions(at(99), at(100), &two).await.unwrap();
    let callbacks = due.iter().map(|due| due.subscription.callback.as_str());
    assert_eq!(callbacks.collect::<Vec<_>>(), ["https://a.test/", "https://b.test/"]);
}

async fn no_host_gets_more_than_it_can_take(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    for n in 0..5 {
        subscribe(&store, "a", &format!("https://slow.test/{n}")).await;
        subscribe(&store, "a", &format!("https://slow.test:8443/{n}")).await;
        subscribe(&store, "a", &format!("https://busy.test/{n}")).await;
    }
    let id = store.find("https://feeds.test/a").await.unwrap().unwrap().id;
    store.record(id, &poll(at(1), &["1"])).await.unwrap();
    let room = ClaimLimits { limit: 100, per_host: 2, busy: vec!["busy.test:443".to_owned()] };
    let due = store.claim_subscriptions(at(2), at(9), &room).await.unwrap();
    let mut hosts: Vec<_> = due.iter().map(|due| due.subscription.callback.host()).collect();
    hosts.sort_unstable();
    let [slow, other] = ["slow.test:443", "slow.test:8443"];
    assert_eq!(hosts, [slow, slow, other, other], "rule D3");
    let room = ClaimLimits { limit: 3, per_host: 100, busy: Vec::new() };
    assert_eq!(store.claim_subscriptions(at(2), at(9), &room).await.unwrap().len(), 3);
    let none = ClaimLimits { limit: 0, ..room };
    assert_eq!(store.claim_subscriptions(at(2), at(9), &none).await.unwrap(), []);
}

/// More jobs are due for one host than a claim looks at; others wait behind them.
async fn a_crowded_host_hides_no_other(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    crowd(&database, &store, 2_000, "https://crowded.test/").await;
    let id = store.find("https://feeds.test/crowd").await.unwrap().unwrap().id;
    store.record(id, &poll(at(1), &["1"])).await.unwrap();
    let late = subscribe(&store, "late", "https://free.test/").await.id;
    store.record(late.resource, &poll(at(2), &["1"])).await.unwrap();
    subscribe(&store, "nothing is due here", "https://idle.test/").await;

    let room = ClaimLimits { limit: 8, per_host: 4, busy: Vec::new() };
    let due = store.claim_subscriptions(at(3), at(9), &room).await.unwrap();
    assert_eq!(due.len(), 5, "four of the crowd, and the other");
    assert_eq!(due[4].subscription.id, late);

    for n in 0..300 {
        store.ensure(&topic(&format!("{n}")), at(0)).await.unwrap();
    }
    database.run("update resources set subscribers = 1, due_at = 1").await;
    let mut other = request("a", "https://callback.test/");
    other.topic = Topic::parse("https://other.test/feed").unwrap();
    let other = store.subscribe(&other, at(2)).await.unwrap().id.resource;
    let due = store.claim_resources(at(3), at(9), &room).await.unwrap();
    assert_eq!((due.len(), due[4].resource.id), (5, other));
}

async fn takers_share_the_work(database: Database) {
    const JOBS: usize = 200;
    let nodes = [database.open().await, database.open().await, database.open().await];
    for n in 0..JOBS {
        subscribe(&nodes[0], &format!("{n}"), &format!("https://{n}.test/")).await;
    }
    let takers = nodes.into_iter().map(|store| {
        tokio::spawn(async move {
            let mut taken = Vec::new();
            loop {
                let some = ClaimLimits { limit: 7, ..room() };
                let due = store.claim_resources(at(1), at(9), &some).await.unwrap();
                taken.extend(due.iter().map(|due| due.resource.id));
                if due.is_empty() {
                    return taken;
                }
            }
        })
    });
    let mut all = Vec::new();
    for taken in futures_util::future::join_all(takers).await {
        all.extend(taken.unwrap());
    }
    let different: HashSet<_> = all.iter().collect();
    assert_eq!(different.len(), all.len(), "nothing is handed out twice");
    let left = database.open().await.claim_resources(at(1), at(9), &room()).await.unwrap();
    assert_eq!(all.len() + left.len(), JOBS, "and nothing is forgotten");
}

/// WebSub 5.3.1: no lease is perpetual.
async fn who_let_the_lease_end_is_told_no_more(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let mut short = request("a", "https://short.test/");
    short.lease = Lease::from(Duration::from_secs(10));
    let short = store.subscribe(&short, at(0)).await.unwrap();
    store.record(short.id.resource, &poll(at(9), &["1"])).await.unwrap();
    assert_eq!(store.claim_subscriptions(at(10), at(20), &room()).await.unwrap(), []);
    store.record(short.id.resource, &poll(at(11), &["2"])).await.unwrap();
    assert_eq!(store.gauges(at(11)).await.unwrap().subscriptions, 0);
    // Until upkeep comes by it can still be renewed, and has then missed nothing.
    let renewed = store.subscribe(&request("a", "https://short.test/"), at(12)).await.unwrap();
    assert_eq!((renewed.id, renewed.cursor), (short.id, Seq(0)));
    let due = store.claim_subscriptions(at(12), at(20), &room()).await.unwrap();
    assert_eq!((due.len(), due[0].owed), (1, Seq(2)));
}

async fn a_row_that_cannot_be_read_stops_no_other(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let [ill, well] = ["a", "b"].map(|name| subscribe(&store, name, "https://callback.test/"));
    let (ill, well) = (ill.await.id.resource, well.await.id.resource);
    for id in [ill, well] {
        store.record(id, &poll(at(1), &["1"])).await.unwrap();
    }
    let broken = "update resource_details set status = '{'
                   where resource_id in (select id from resources where topic like '%/a')";
    database.run(broken).await;
    database.run("update subscriptions set format = 'x' where id % 2 = 0").await;
    assert_eq!(claimed(&store, 999).await, [well]);
    assert_eq!(store.get(ill).await.unwrap_err().code(), "corrupt_row");
    let due = store.claim_subscriptions(at(999), at(1_000), &room()).await.unwrap();
    assert_eq!(due.len(), 1);
}

/// Times are for the reader of the log; a machine may be slow.
#[expect(clippy::print_stdout, reason = "the figures are what it is for")]
async fn a_hundred_thousand_subscribers_are_served(database: Database) {
    const MANY: usize = 100_000;
    let store = ClaimingStore::new(database.open().await);
    crowd(&database, &store, MANY, "https://callback.test/").await;
    let id = store.find("https://feeds.test/crowd").await.unwrap().unwrap().id;
    let begun = Instant::now();
    store.record(id, &poll(at(1), &["1"])).await.unwrap();
    let appended = begun.elapsed();
    store.continue_fan_out(id, at(1)).await.unwrap();

    let begun = Instant::now();
    let some = ClaimLimits { limit: 64, ..room() };
    for _ in 0..20 {
        assert_eq!(store.claim_subscriptions(at(2), at(9), &some).await.unwrap().len(), 64);
    }
    let claimed = begun.elapsed() / 20;
    let full = ClaimLimits { busy: vec!["callback.test:443".to_owned()], ..some };
    let begun = Instant::now();
    assert_eq!(store.claim_subscriptions(at(2), at(9), &full).await.unwrap(), []);
    let refused = begun.elapsed();
    println!(
        "{MANY} subscribers: append {appended:?}, claim of 64 {claimed:?}, host full {refused:?}"
    );
}

/// Takes the resources due at `seconds`, with a claim of ten seconds.
async fn claimed(store: &ClaimingStore, seconds: i64) -> Vec<ResourceId> {
    let due = store.claim_resources(at(seconds), at(seconds + 10), &room()).await.unwrap();
    due.iter().map(|due| due.resource.id).collect()
}

/// Subscribes `many` callbacks of one host, by copying the row of one, then both, and so on. The
/// copies have ids that no later subscription gets.
pub(super) async fn crowd(database: &Database, store: &ClaimingStore, many: usize, callback: &str) {
    subscribe(store, "crowd", callback).await;
    let mut count = 1;
    while count < many {
        let copy = format!(
            "insert into subscriptions (id, resource_id, account_id, callback, host, protocol,
                                        procedure, format, cursor, lease_until, created_at)
             select id + {count}000000, resource_id, account_id, callback || '/{count}', host, protocol,
                    procedure, format, cursor, lease_until, created_at
               from subscriptions
              limit {}",
            many - count
        );
        database.run(&copy).await;
        count = many.min(count * 2);
    }
    database.run(&format!("update resources set subscribers = {many}")).await;
}

async fn d16_an_account_with_little_due_does_not_wait_for_one_with_much(database: Database) {
    const MUCH: i64 = 100;
    let store = ClaimingStore::new(database.open().await);
    let subscribe = async |name: &str, account: i64, callback: &str| {
        let mut own = request(name, callback);
        own.account = Some(AccountId(account));
        store.subscribe(&own, at(0)).await.unwrap().id
    };
    let mut much = Vec::new();
    for n in 0..MUCH {
        much.push(subscribe("much", 7, &format!("https://{n}.test/")).await);
    }
    let little = subscribe("little", 8, "https://little.test/").await;
    store.record(much[0].resource, &poll(at(1), &["1"])).await.unwrap();
    store.record(little.resource, &poll(at(2), &["1"])).await.unwrap();

    let first = store.claim_subscriptions(at(3), at(60), &few(16)).await.unwrap();
    assert!(first.iter().all(|due| due.subscription.account == Some(AccountId(7))));
    let second = store.claim_subscriptions(at(3), at(60), &few(16)).await.unwrap();
    assert!(second.iter().any(|due| due.subscription.id == little), "it has its turn");
    let rest = store.claim_subscriptions(at(3), at(60), &room()).await.unwrap();
    let claimed = first.iter().chain(&second).chain(&rest);
    let claimed: HashSet<_> = claimed.map(|due| due.subscription.id).collect();
    assert_eq!(claimed.len() as i64, MUCH + 1, "everything once");
    assert_eq!((first.len() + second.len() + rest.len()) as i64, MUCH + 1);
}
