//! Tracks: what matches a query arrives in the log of its track, once.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::Duration;

use chrono::{DateTime, Utc};
use feedgate_core::account::AccountId;
use feedgate_core::collection::PendingCollection;
use feedgate_core::record::Seq;
use feedgate_core::registrant::RegistrantNetwork;
use feedgate_core::resource::ResourceId;
use feedgate_core::subscription::SubscriptionRequest;
use feedgate_core::topic::Topic;
use feedgate_core::track::{ComparedRange, TRACKER, Track, TrackChange, TrackPosition};
use feedgate_store::{self as store, StoreSettings};
use url::Url;

use super::collections::{log, publish};
use super::large_documents::observe;
use super::{at, on_both_stores, poll, request, resource, room};
use crate::support::claiming_store::ClaimingStore;
use crate::support::postgres::Database;

on_both_stores!(
    q02_a_track_receives_what_is_stored_after_it_was_opened,
    q02_two_nodes_that_compare_the_same_range_append_it_once,
    q02_a_range_that_matches_many_tracks_is_appended_once,
    q02_private_resources_are_not_tracked,
    q02_equal_queries_have_one_track,
    q02_every_node_learns_what_was_opened_and_closed,
    t02_a_track_takes_in_as_much_as_its_subscribers_may_have_stored,
    q02_a_track_lives_as_long_as_it_has_subscriptions,
    h01_open_tracks_are_counted_by_the_network_that_opened_them,
    h01_a_track_without_subscriptions_takes_in_nothing,
    h01_a_large_track_is_forgotten_in_short_transactions,
);

fn track(query: &str) -> Track {
    let mut topic = Url::parse("https://gate.test/track").unwrap();
    topic.query_pairs_mut().append_pair("query", query);
    let public_url = Url::parse("https://gate.test/").unwrap();
    Track::from_topic(&public_url, &Topic::parse(topic.as_str()).unwrap()).unwrap().unwrap()
}

/// Opens the track of a query.
pub(super) async fn open(store: &ClaimingStore, query: &str, second: i64) -> ResourceId {
    let registrant = RegistrantNetwork::UNKNOWN;
    store.open_track(&track(query), registrant, at(second)).await.unwrap().id
}

/// Opens the track of a query, to which an account subscribes.
async fn followed(store: &ClaimingStore, query: &str) -> ResourceId {
    let id = open(store, query, 0).await;
    let (topic, account) = (resource(store, id).await.topic, Some(AccountId(7)));
    let follow = SubscriptionRequest { topic, account, ..request("a", "https://me.test/cb") };
    store.subscribe(&follow, at(0)).await.unwrap();
    id
}

async fn claim(store: &ClaimingStore, now: DateTime<Utc>) -> Vec<PendingCollection> {
    let claimed = store.claim_collecting(now, now + Duration::from_secs(60), 20).await.unwrap();
    assert!(claimed.iter().all(|pending| pending.collection == TRACKER));
    claimed
}

/// Lets all these tracks match all records of the ranges.
fn matched(ranges: Vec<PendingCollection>, tracks: &[ResourceId]) -> Vec<ComparedRange> {
    let compare = |pending: PendingCollection| {
        let seqs: Vec<Seq> = pending.records.iter().map(|(record, _)| record.seq).collect();
        let matches: BTreeMap<_, _> = tracks.iter().map(|log| (*log, seqs.clone())).collect();
        ComparedRange { pending, matches }
    };
    ranges.into_iter().map(compare).collect()
}

/// Appends all there is to these tracks.
async fn settle(store: &ClaimingStore, second: i64, tracks: &[ResourceId]) {
    loop {
        let claimed = claim(store, at(second)).await;
        if claimed.is_empty() {
            return;
        }
        store.append_tracked(matched(claimed, tracks), at(second)).await.unwrap();
    }
}

async fn q02_a_track_receives_what_is_stored_after_it_was_opened(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    publish(&store, "a", 0, &["a1"]).await;
    assert_eq!(claim(&store, at(0)).await, [], "nobody tracks anything");
    let apple = open(&store, "apple", 1).await;
    let topic = resource(&store, apple).await.topic;
    let follow = SubscriptionRequest { topic, ..request("a", "https://you.test/cb") };
    let followed = store.subscribe(&follow, at(1)).await.unwrap();
    publish(&store, "a", 2, &["a1", "a2"]).await;
    publish(&store, "b", 3, &["b1"]).await;
    settle(&store, 4, &[apple]).await;
    publish(&store, "a", 5, &["a1", "a2", "a3"]).await;
    settle(&store, 6, &[apple]).await;
    let mut received = log(&store, apple).await;
    assert_eq!(received.pop().as_deref(), Some("a3"));
    received.sort_unstable();
    assert_eq!(received, ["a2", "b1"]);
    let due = store.claim_subscriptions(at(7), at(60), &room()).await.unwrap();
    let due: Vec<_> = due.iter().map(|due| (due.subscription.id, due.owed)).collect();
    assert_eq!(due, [(followed.id, Seq(3))]);
    // Collections that the operator closes at a start are others.
    store.close_collections(&[], at(8)).await.unwrap();
    publish(&store, "b", 9, &["b1", "b2"]).await;
    settle(&store, 10, &[apple]).await;
    assert_eq!(log(&store, apple).await.len(), 4);
}

async fn q02_two_nodes_that_compare_the_same_range_append_it_once(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let tracks = [followed(&store, "apple").await, followed(&store, "pear").await];
    publish(&store, "a", 1, &["a1"]).await;
    let slow = matched(claim(&store, at(2)).await, &tracks);
    publish(&store, "a", 3, &["a1", "a2"]).await;
    let quick = matched(claim(&store, at(62)).await, &tracks);
    assert_eq!(quick[0].pending.upto, Seq(2), "the claim has expired");
    let (one, other) = tokio::join!(
        store.append_tracked(slow.clone(), at(63)),
        store.append_tracked(quick, at(63))
    );
    one.and(other).unwrap();
    store.append_tracked(slow, at(64)).await.unwrap();
    settle(&store, 130, &tracks).await;
    for track in tracks {
        assert_eq!(log(&store, track).await, ["a1", "a2"]);
    }
}

async fn q02_a_range_that_matches_many_tracks_is_appended_once(database: Database) {
    const MANY: usize = 230;
    let store = ClaimingStore::new(database.open().await);
    let mut tracks = Vec::new();
    for n in 0..MANY {
        tracks.push(followed(&store, &format!("w{n}")).await);
    }
    publish(&store, "a", 1, &["a1"]).await;
    // A node fails after it has appended to some of the tracks.
    let claimed = claim(&store, at(2)).await;
    let mut failed = matched(claimed.clone(), &tracks[..MANY - 20]);
    failed[0].pending.upto = Seq(1);
    store.append_tracked(failed, at(3)).await.unwrap();
    store.append_tracked(matched(claimed, &tracks), at(4)).await.unwrap();
    for track in tracks {
        assert_eq!(log(&store, track).await, ["a1"]);
    }
    assert_eq!(claim(&store, at(90)).await, []);
}

async fn t02_a_track_takes_in_as_much_as_its_subscribers_may_have_stored(database: Database) {
    // A quarter of it is enough for some eight small entries.
    let settings = StoreSettings { anonymous_bytes_per_day: 40 << 10, ..database.settings() };
    let store = ClaimingStore::new(store::open(&settings).await.unwrap());
    let tracks = [open(&store, "apple", 0).await, open(&store, "pear", 0).await];
    for (track, account) in tracks.into_iter().zip([None, Some(AccountId(7))]) {
        let topic = resource(&store, track).await.topic;
        let follow = SubscriptionRequest { topic, account, ..request("a", "https://you.test/cb") };
        store.subscribe(&follow, at(0)).await.unwrap();
    }
    let ids: Vec<String> = (0..60).map(|n| format!("a{n}")).collect();
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    for (second, count) in [(1, 20), (3, 40), (5, 60)] {
        publish(&store, "a", second, &ids[..count]).await;
        settle(&store, second + 1, &tracks).await;
    }
    assert_eq!(log(&store, tracks[0]).await.len(), 20, "the rest is left out");
    assert_eq!(log(&store, tracks[1]).await.len(), 60, "an account may have more");

    let day_s = 24 * 3_600;
    publish(&store, "a", day_s, &["a61"]).await;
    settle(&store, day_s + 1, &tracks).await;
    assert_eq!(log(&store, tracks[0]).await.len(), 21, "what was taken in is paid for");
}

async fn q02_private_resources_are_not_tracked(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let apple = followed(&store, "apple").await;
    let secret = Topic::parse("https://me:opensesame@feeds.test/secret").unwrap();
    let secret = store.ensure(&secret, at(0)).await.unwrap();
    store.record(secret.id, &poll(at(1), &["s1"])).await.unwrap();
    publish(&store, "a", 2, &["a1"]).await;
    settle(&store, 3, &[apple]).await;
    assert_eq!(log(&store, apple).await, ["a1"]);
}

async fn q02_equal_queries_have_one_track(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let one = open(&store, "laurel hardy", 0).await;
    assert_eq!(open(&store, "Hardy +laurel", 1).await, one);
    assert_ne!(open(&store, "laurel | hardy", 1).await, one);
    let found = store.find_track("hardy laurel").await.unwrap().unwrap();
    assert_eq!((found.id, found.status.title.as_str()), (one, "Entries that match hardy laurel"));
    assert_eq!(store.find_track("laurel").await.unwrap(), None);
}

async fn changes(store: &ClaimingStore, after: TrackPosition) -> Vec<TrackChange> {
    store.track_changes(after, 2).await.unwrap()
}

async fn q02_every_node_learns_what_was_opened_and_closed(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    assert_eq!(changes(&store, TrackPosition::START).await, []);
    let (apple, pear) = (open(&store, "apple", 0).await, open(&store, "pear", 0).await);
    let fig = open(&store, "fig", 0).await;
    let known = |changes: &[TrackChange]| -> Vec<_> {
        changes.iter().map(|change| (change.position.log, change.key.clone())).collect()
    };
    let first = changes(&store, TrackPosition::START).await;
    assert_eq!(known(&first), [(apple, Some("apple".into())), (pear, Some("pear".into()))]);
    let rest = changes(&store, first[1].position).await;
    assert_eq!(known(&rest), [(fig, Some("fig".into()))]);
    open(&store, "apple", 9).await;
    assert_eq!(changes(&store, rest[0].position).await, [], "the track was open");

    // Those that were opened at 0 have no subscriptions, and are closed together.
    assert_eq!(store.close_unused_tracks(at(5), at(10)).await.unwrap(), 2);
    let mut closed = changes(&store, rest[0].position).await;
    assert_eq!(changes(&store, closed[1].position).await, []);
    assert_eq!(closed[0].position.version, closed[1].position.version);
    closed.remove(0);
    let (second, other) =
        (closed[0].position.log, if closed[0].position.log == fig { pear } else { fig });
    let between = TrackPosition { log: other, ..closed[0].position };
    assert_eq!(known(&changes(&store, between).await), [(second, None)]);
    open(&store, "pear", 11).await;
    let reopened = changes(&store, closed[0].position).await;
    assert_eq!(known(&reopened), [(pear, Some("pear".into()))]);
}

async fn q02_a_track_lives_as_long_as_it_has_subscriptions(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let (apple, pear) = (open(&store, "apple", 0).await, open(&store, "pear", 0).await);
    let topic = resource(&store, apple).await.topic;
    let follow =
        SubscriptionRequest { topic: topic.clone(), ..request("a", "https://you.test/cb") };
    store.subscribe(&follow, at(0)).await.unwrap();
    publish(&store, "a", 1, &["a1"]).await;
    settle(&store, 2, &[apple, pear]).await;
    assert_eq!(store.close_unused_tracks(at(0), at(3)).await.unwrap(), 0, "not yet");
    assert_eq!(store.close_unused_tracks(at(3), at(4)).await.unwrap(), 1);
    assert_eq!(store.forget_tracks(at(4)).await.unwrap(), 0, "not yet");
    assert_eq!(store.forget_tracks(at(9)).await.unwrap(), 1);
    assert_eq!(store.find_track("pear").await.unwrap(), None);
    assert_eq!(store.get(pear).await.unwrap(), None);
    assert_eq!(log(&store, apple).await, ["a1"]);

    assert!(store.unsubscribe(None, &topic, &follow.callback, None).await.unwrap());
    assert_eq!(store.close_unused_tracks(at(10), at(11)).await.unwrap(), 1);
    // Somebody who subscribes again finds the log as it was.
    assert_eq!(open(&store, "apple", 12).await, apple);
    assert_eq!(store.forget_tracks(at(13)).await.unwrap(), 0);
    assert_eq!(log(&store, apple).await, ["a1"]);
    let again = open(&store, "pear", 13).await;
    assert_eq!(log(&store, again).await, [""; 0]);
}

async fn h01_open_tracks_are_counted_by_the_network_that_opened_them(database: Database) {
    let store = database.open().await;
    let network = |n: u8| RegistrantNetwork::from_client(Some([192, 0, 2, n].into()));
    let counts = async || {
        let each = [1, 2].map(|n| store.count_open_tracks(network(n), 3));
        futures_util::future::try_join_all(each).await.unwrap()
    };
    for (n, query) in [(1, "a"), (1, "b"), (2, "c"), (2, "a")] {
        store.open_track(&track(query), network(n), at(0)).await.unwrap();
    }
    assert_eq!(counts().await, [2, 1], "who subscribes to what is open opens nothing");
    assert!(store.is_track_open("a").await.unwrap());
    assert_eq!(store.close_unused_tracks(at(1), at(1)).await.unwrap(), 3);
    assert_eq!(counts().await, [0, 0]);
    assert!(!store.is_track_open("a").await.unwrap());
    for query in ["a", "b", "c", "d", "e"] {
        store.open_track(&track(query), network(2), at(2)).await.unwrap();
    }
    assert_eq!(counts().await, [0, 3], "no more are counted than decide");
}

async fn h01_a_track_without_subscriptions_takes_in_nothing(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let apple = open(&store, "apple", 0).await;
    publish(&store, "a", 1, &["a1"]).await;
    settle(&store, 2, &[apple]).await;
    assert_eq!(log(&store, apple).await, [""; 0], "nobody is charged for it");
    let topic = resource(&store, apple).await.topic;
    let follow = SubscriptionRequest { topic, ..request("a", "https://you.test/cb") };
    store.subscribe(&follow, at(3)).await.unwrap();
    publish(&store, "a", 4, &["a1", "a2"]).await;
    settle(&store, 5, &[apple]).await;
    assert_eq!(log(&store, apple).await, ["a2"]);

    // Who renews the lease late is owed what came since.
    store.drop_expired(at(4_000)).await.unwrap();
    publish(&store, "a", 4_001, &["a1", "a2", "a3"]).await;
    settle(&store, 4_002, &[apple]).await;
    assert_eq!(store.close_unused_tracks(at(4_003), at(4_003)).await.unwrap(), 0);
    store.subscribe(&follow, at(4_004)).await.unwrap();
    let due = store.claim_subscriptions(at(4_005), at(4_060), &room()).await.unwrap();
    assert_eq!(due.iter().map(|due| due.owed).collect::<Vec<_>>(), [Seq(2)]);
    assert!(store.unsubscribe(None, &follow.topic, &follow.callback, None).await.unwrap());
    assert_eq!(store.close_unused_tracks(at(4_006), at(4_007)).await.unwrap(), 1);
}

async fn h01_a_large_track_is_forgotten_in_short_transactions(database: Database) {
    const ENTRIES: usize = 1_050;
    const MOST_DELETED: usize = 250;
    let store = ClaimingStore::new(database.open().await);
    let apple = open(&store, "apple", 0).await;
    let topic = resource(&store, apple).await.topic;
    let account = Some(AccountId(7));
    let follow = SubscriptionRequest { topic, account, ..request("a", "https://you.test/cb") };
    store.subscribe(&follow, at(0)).await.unwrap();
    let ids: Vec<String> = (0..ENTRIES).map(|n| format!("a{n}")).collect();
    publish(&store, "a", 1, &ids.iter().map(String::as_str).collect::<Vec<_>>()).await;
    settle(&store, 2, &[apple]).await;
    assert_eq!(log(&store, apple).await.len(), ENTRIES);
    assert!(store.unsubscribe(account, &follow.topic, &follow.callback, None).await.unwrap());
    assert_eq!(store.close_unused_tracks(at(3), at(4)).await.unwrap(), 1);
    let transactions = observe(&store);
    assert_eq!(store.forget_tracks(at(9)).await.unwrap(), 1);
    let count = transactions.count.load(Ordering::Relaxed);
    assert!(count > ENTRIES / MOST_DELETED, "{count} transactions");
    assert_eq!(store.get(apple).await.unwrap(), None);
}
