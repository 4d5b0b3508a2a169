//! What concerns several cells of a store at once. That one cell does what a store does is tested
//! by the rest of the suite, with `FEEDGATE_TEST_CELLS`.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use feedgate_core::account::AccountId;
use feedgate_core::claim::ClaimToken;
use feedgate_core::host::HostRefusal;
use feedgate_core::host_groups::HostGroups;
use feedgate_core::intent::{Intent, IntentMode};
use feedgate_core::poll::Poll;
use feedgate_core::resource::ResourceId;
use feedgate_core::store::{CellQueues, ClaimLimits, SubscriptionFilter};
use feedgate_core::subscription::{DueSubscription, SubscriptionId, SubscriptionRequest};
use feedgate_core::topic::Topic;
use feedgate_core::visibility::SourceNetwork;
use feedgate_store::{self as store, StoreSettings};

use super::changes::listed;
use super::collections::{log, named, publish, settle};
use super::pings::ping;
use super::{at, poll, request, resource, room, subscribe, topic};
use crate::support::claiming_store::ClaimingStore;
use crate::support::postgres::{Database, Kind, connect};

const CELLS: usize = 4;
/// Enough resources for each cell to have some.
const RESOURCES: usize = 40;

/// A store of several cells, with a second between two visits of a host.
async fn several() -> (Database, ClaimingStore) {
    let database = Database::with_cells(Kind::Postgres, CELLS).await;
    let groups = HostGroups::new(Duration::from_secs(1));
    let store = ClaimingStore::new(database.open_with(groups).await);
    (database, store)
}

/// Watched resources of one host, with the cell of each.
async fn watch(store: &ClaimingStore, host: &str) -> Vec<ResourceId> {
    let mut ids = Vec::new();
    for n in 0..RESOURCES {
        let mut request = request("", "https://callback.test/");
        request.topic = Topic::parse(format!("https://{host}/{n}")).unwrap();
        ids.push(store.subscribe(&request, at(0)).await.unwrap().id.resource);
    }
    ids
}

fn cells(ids: &[ResourceId]) -> BTreeSet<i64> {
    ids.iter().map(|id| id.0 >> 40).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn resources_are_spread_and_found_again() {
    let (_database, store) = several().await;
    let ids = watch(&store, "a.test").await;
    assert_eq!(cells(&ids), BTreeSet::from([0, 1, 2, 3]));
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), RESOURCES, "no number twice");
    for (n, id) in ids.iter().enumerate() {
        let topic = format!("https://a.test/{n}");
        assert_eq!(store.find(&topic).await.unwrap().unwrap().id, *id);
        assert_eq!(resource(&store, *id).await.topic.as_str(), topic);
    }
    for unknown in [0, -1, i64::MAX, 99 << 40] {
        assert_eq!(store.get(ResourceId(unknown)).await.unwrap(), None);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn p52_an_intent_is_replaced_under_its_address_in_whatever_cell() {
    let (_database, store) = several().await;
    let page = request("page", "https://callback.test/");
    let address = page.topic.as_str().to_owned();
    for n in 0..RESOURCES {
        let topic = topic(&format!("{n}")).with_alias(Some(address.clone()));
        let feed = SubscriptionRequest { topic, ..page.clone() };
        let feed = Intent::new(IntentMode::Subscribe, feed);
        store.enqueue_intent(&feed, at(0)).await.unwrap();
        assert_eq!(store.gauges(at(1)).await.unwrap().pending_verifications, 1);
    }
    store.supersede(&page).await.unwrap();
    assert_eq!(store.gauges(at(1)).await.unwrap().pending_verifications, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_queues_of_each_cell_are_counted_apart() {
    let (_database, store) = several().await;
    let id = subscribe(&store, "a", "https://callback.test/").await.id.resource;
    store.record(id, &poll(at(1), &["1"])).await.unwrap();
    let gauges = store.gauges(at(10)).await.unwrap();
    let cell = usize::try_from(id.0 >> 40).unwrap();
    let mut want = vec![CellQueues::default(); CELLS];
    want[cell] = CellQueues { due: gauges.due, oldest_due: gauges.oldest_due };
    assert_eq!((gauges.due, gauges.oldest_due.deliveries_s), (1, 9));
    assert_eq!(gauges.cells, want);
}

#[tokio::test(flavor = "multi_thread")]
async fn another_number_of_cells_is_refused() {
    let (database, _store) = several().await;
    let file = Database::new(Kind::Sqlite).await;
    let one = Database::with_cells(Kind::Postgres, 1).await;
    for (database, cells) in [(&database, 1), (&database, 5), (&one, 2), (&file, 2)] {
        let settings = StoreSettings { cells, ..database.settings() };
        let Err(refused) = store::open(&settings).await else { panic!("it was opened") };
        assert_eq!(refused.code(), "cells", "{refused}");
    }
    database.open().await.ready().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn p41_a_host_has_one_visitor_in_all_cells_together() {
    let (database, store) = several().await;
    let other = store.beside(database.open_with(HostGroups::new(Duration::from_secs(1))).await);
    let all = watch(&store, "a.test").await;
    let elsewhere = watch(&store, "b.test").await[0];
    let room = ClaimLimits { per_host: 1, ..room() };
    let mut polled = BTreeSet::new();
    let mut visits: BTreeMap<i64, usize> = BTreeMap::new();
    // Every half second each of two nodes takes what is due. What is polled takes no time.
    for half in 0..4 * RESOURCES as i64 {
        let now = at(0) + Duration::from_millis(half as u64 * 500);
        for node in [&store, &other] {
            let due =
                node.claim_resources(now, now + Duration::from_secs(60), &room).await.unwrap();
            for due in due {
                let id = due.resource.id;
                if all.contains(&id) {
                    *visits.entry(half / 2).or_default() += 1;
                    polled.insert(id);
                }
                let mut quiet = poll(now, &[]);
                quiet.next_fetch = at(99_999);
                node.record(id, &quiet).await.unwrap();
            }
        }
    }
    assert!(visits.values().all(|count| *count == 1), "one a second: {visits:?}");
    assert_eq!(polled, all.iter().copied().collect(), "none is forgotten");
    assert!(resource(&store, elsewhere).await.next_fetch > at(0), "nor is another host's");
}

#[tokio::test(flavor = "multi_thread")]
async fn p27_a_pause_of_a_host_reaches_all_cells() {
    let (_database, store) = several().await;
    let all = watch(&store, "a.tumblr.com").await;
    let group = store.group("https://a.tumblr.com/");
    let refused = HostRefusal {
        group,
        resource: all[0],
        was_read: true,
        at: at(0),
        http_code: 429,
        retry_after_s: Some(600),
    };
    let backoff = store.record_refusal(&refused).await.unwrap().unwrap();
    let mut times = BTreeSet::new();
    for id in &all {
        let waits = resource(&store, *id).await;
        assert!(waits.next_fetch > backoff.leave_alone.0, "{waits:?}");
        times.insert(waits.next_fetch);
    }
    assert_eq!(times.len(), RESOURCES, "each has a time of its own");
    let room = ClaimLimits { per_host: 1, ..room() };
    assert_eq!(store.claim_resources(at(599), at(659), &room).await.unwrap(), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collection_takes_from_every_cell_once() {
    let (database, store) = several().await;
    let names: Vec<String> = (0..RESOURCES).map(|n| format!("member{n}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let named_log = named(&store, &names).await;
    for name in &names {
        publish(&store, name, 1, &[&format!("{name} 1"), &format!("{name} 2")]).await;
    }
    // Another node takes in what this one has claimed too.
    let claimed = store.claim_collecting(at(2), at(62), RESOURCES).await.unwrap();
    store.collect(claimed.clone(), at(2)).await.unwrap();
    store.collect(claimed, at(3)).await.unwrap();
    settle(&store, 4).await;
    let taken = log(&store, named_log).await;
    assert_eq!(taken.len(), 2 * RESOURCES, "{taken:?}");
    // As if the gateway had died before a cursor moved: all is handed out again, and more.
    database
        .run(&format!(
            "insert into collection_cursors (resource_id, collection_id, cursor, upto, due_at)
             select id, {}, 0, head, 0 from resources where kind = 'feed'",
            named_log.0
        ))
        .await;
    for name in &names {
        publish(&store, name, 5, &[&format!("{name} 3")]).await;
    }
    settle(&store, 6).await;
    let taken = log(&store, named_log).await;
    let own_cell = names.len() - elsewhere(&store, named_log, &names).await;
    // In the cell of the collection there is one transaction, and so no such death.
    assert_eq!(taken.len(), 3 * RESOURCES + 2 * own_cell);
    for name in names {
        let of_it: Vec<_> = taken.iter().filter(|id| id.starts_with(&format!("{name} "))).collect();
        assert_eq!(of_it[of_it.len() - 1], &format!("{name} 3"), "in order");
    }
}

/// How many of these resources are in another cell than the collection.
async fn elsewhere(store: &ClaimingStore, collection: ResourceId, names: &[&str]) -> usize {
    let mut count = 0;
    for name in names {
        let id = store.find(topic(name).as_str()).await.unwrap().unwrap().id;
        count += usize::from(id.0 >> 40 != collection.0 >> 40);
    }
    count
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cell_that_fails_stops_only_its_own_work() {
    let (database, store) = several().await;
    let all = watch(&store, "a.test").await;
    for id in &all {
        store.record(*id, &poll(at(1), &["1"])).await.unwrap();
    }
    let broken = 2;
    let client = connect(&database.url).await;
    let schema = database.schemas().iter().find(|name| name.ends_with(&format!("_cell_{broken}")));
    let tables = ["backlogs", "resources"];
    for table in tables {
        let rename = format!("alter table {}.{table} rename to moved_{table}", schema.unwrap());
        client.batch_execute(&rename).await.unwrap();
    }
    let others = all.iter().filter(|id| id.0 >> 40 != broken).count();
    assert!(others < all.len() && others > 0);

    let (now, room) = (at(2), ClaimLimits { per_host: RESOURCES, ..room() });
    let until = now + Duration::from_secs(60);
    let due = store.claim_subscriptions(now, until, &room).await.unwrap();
    assert_eq!(due.len(), others, "the deliveries of the other cells");
    store.release_subscription_claims(&claims(&due), now).await.unwrap();
    let host = due[0].subscription.callback.host();
    let due = store.claim_subscriptions_of_host(&host, now, until, RESOURCES).await.unwrap();
    assert_eq!(due.len(), others, "a host has the deliveries of the other cells");
    assert_eq!(store.claim_subscriptions(now, until, &room).await.unwrap_err().code(), "database");
    let later = at(100_000);
    let until = later + Duration::from_secs(60);
    let polled = store.claim_resources(later, until, &room).await.unwrap();
    assert!(!polled.is_empty(), "feeds of the other cells are polled");
}

fn claims(due: &[DueSubscription]) -> Vec<(SubscriptionId, ClaimToken)> {
    due.iter().map(|due| (due.subscription.id, due.claim)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_are_in_the_order_of_time_whatever_the_cells() {
    let (_database, store) = several().await;
    let account = Some(AccountId(7));
    let mut topics = Vec::new();
    for n in 0..RESOURCES {
        let mut request = request(&format!("{n}"), "https://callback.test/");
        request.account = account;
        let id = store.subscribe(&request, at(n as i64)).await.unwrap().id.resource;
        // Lists contain what is known to come from a public address.
        let read = Poll { source_network: Some(SourceNetwork::Public), ..poll(at(n as i64), &[]) };
        store.record(id, &read).await.unwrap();
        topics.push(request.topic.as_str().to_owned());
    }
    let mut read = Vec::new();
    for offset in (0..RESOURCES + 7).step_by(7) {
        let filter = SubscriptionFilter { account, offset, limit: 7, ..Default::default() };
        let (page, total) = store.list(&filter).await.unwrap();
        assert_eq!(total, RESOURCES as u64);
        read.extend(page.into_iter().map(|listed| listed.resource.topic.as_str().to_owned()));
    }
    assert_eq!(read, topics);

    for (n, topic) in topics.iter().enumerate() {
        let named = store.receive(&ping(n as i64, topic), Duration::ZERO).await.unwrap();
        assert_eq!(named, 1, "a ping finds its resource in any cell");
    }
    let lines = listed(&store, at(0), at(RESOURCES as i64)).await;
    let newest_first: Vec<_> = lines.iter().map(|line| line.url.clone()).collect();
    topics.reverse();
    assert_eq!(newest_first, topics);
    assert_eq!(store.newest_change().await.unwrap(), (RESOURCES as i64, RESOURCES as u64));
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_wake_each_other_whatever_cell_has_work() {
    let (database, store) = several().await;
    let other = database.open().await;
    for n in 0..RESOURCES {
        let signals = other.wake_signals();
        let woken = signals.resources.notified();
        subscribe(&store, &format!("{n}"), "https://callback.test/").await;
        woken.await;
    }
}
