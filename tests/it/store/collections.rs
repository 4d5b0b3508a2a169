//! Collections: what is appended to one log arrives in another, once and in order.

use std::time::Duration;

use chrono::{DateTime, Utc};
use feedgate_core::account::{AccountId, NewToken, Scopes, TokenHash};
use feedgate_core::change_detection::{Candidate, Deletion};
use feedgate_core::collection::{Collection, CollectionKind, CollectionName, PendingCollection};
use feedgate_core::page::ArchivedId;
use feedgate_core::poll::{NewContent, Poll};
use feedgate_core::record::{Digest, EntryKey, RecordKind, Seq};
use feedgate_core::resource::{ResourceId, ResourceKind};
use feedgate_core::subscription::{Lease, SubscriptionRequest};
use feedgate_core::topic::Topic;
use feedgate_core::visibility::SourceNetwork;
use feedgate_feed::model::Element;
use feedgate_store::COLLECT_BATCH;
use futures_util::stream::{self, StreamExt};

use super::{at, document, entry, in_one_cell, on_both_stores, poll};
use super::{request, resource, room, topic};
use crate::support::claiming_store::ClaimingStore;
use crate::support::postgres::Database;

on_both_stores! {
    what_is_claimed_and_not_taken_in_is_handed_out_again,
    two_nodes_that_hold_the_same_claim_take_it_in_once,
    a_first_document_is_no_news_for_a_collection_either,
    who_follows_a_collection_is_due_when_it_grows,
    a_collection_is_never_polled_nor_forgotten,
    members_count_as_subscribers_until_they_leave,
    a_thousand_members_are_taken_in_by_small_steps,
}

in_one_cell! {
    everything_is_what_is_public_while_the_collection_is_open,
    n7_an_update_takes_the_place_of_the_entry_of_its_own_member,
    what_members_publish_is_collected_once_and_in_order,
    an_account_collects_what_it_subscribes_to_while_it_does,
    what_is_taken_back_is_taken_back_where_it_is_held,
}

/// Cursors in one step.
const STEP: usize = 20;

async fn open(store: &ClaimingStore, scope: CollectionKind) -> ResourceId {
    let topic = topic(&format!("collected/{}/recent", scope.kept().replace(' ', "-")));
    let collection = Collection { scope, topic, title: "A collection".to_owned() };
    store.open_collection(&collection, at(0)).await.unwrap().id
}

/// A named collection of these topics, none of which has published anything yet.
pub(super) async fn named(store: &ClaimingStore, topics: &[&str]) -> ResourceId {
    let id = open(store, CollectionKind::Named(CollectionName::parse("news").unwrap())).await;
    let topics: Vec<Topic> = topics.iter().map(|name| topic(name)).collect();
    store.set_members(id, &topics, at(0)).await.unwrap();
    id
}

/// Lets the resource of this topic publish entries.
pub(super) async fn publish(store: &ClaimingStore, name: &str, second: i64, ids: &[&str]) {
    publish_found(store, name, found(second, ids.iter().map(|id| entry(id)).collect())).await;
}

pub(super) async fn publish_found(store: &ClaimingStore, name: &str, poll: Poll) {
    let resource = store.ensure(&topic(name), at(0)).await.unwrap();
    store.record(resource.id, &poll).await.unwrap();
}

pub(super) fn found(second: i64, candidates: Vec<Candidate>) -> Poll {
    let mut poll = poll(at(second), &[]);
    poll.kind = Some(ResourceKind::Feed);
    poll.status.last_fetch = Some(at(second));
    (poll.found, poll.source_network) =
        (document(at(second), candidates), Some(SourceNetwork::Public));
    poll
}

async fn claim(store: &ClaimingStore, now: DateTime<Utc>) -> Vec<PendingCollection> {
    store.claim_collecting(now, now + Duration::from_secs(60), STEP).await.unwrap()
}

/// Takes in all there is. Returns how many steps that took.
pub(super) async fn settle(store: &ClaimingStore, second: i64) -> usize {
    for steps in 0.. {
        let claimed = claim(store, at(second)).await;
        assert!(claimed.len() <= STEP);
        if claimed.is_empty() {
            return steps;
        }
        for owing in &claimed {
            assert!(owing.records.len() <= COLLECT_BATCH as usize);
        }
        store.collect(claimed, at(second)).await.unwrap();
    }
    unreachable!("the steps end")
}

/// The ids of the entries in a log.
pub(super) async fn log(store: &ClaimingStore, id: ResourceId) -> Vec<String> {
    let records = store.read_after(id, Seq::NONE, 1_000_000).await.unwrap();
    let seqs: Vec<_> = records.iter().map(|record| record.seq.0).collect();
    assert_eq!(seqs, (1..=records.len() as i64).collect::<Vec<_>>(), "no gaps");
    assert_eq!(resource(store, id).await.head.0, records.len() as i64);
    records.into_iter().map(|record| record.entry_id).collect()
}

async fn what_members_publish_is_collected_once_and_in_order(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let feed = named(&store, &["a", "b"]).await;
    publish(&store, "a", 1, &["a1", "a2"]).await;
    publish(&store, "b", 2, &["b1"]).await;
    publish(&store, "c", 2, &["c1"]).await;
    assert_eq!(settle(&store, 3).await, 1);
    publish(&store, "b", 4, &["b1", "b2"]).await;
    publish(&store, "a", 5, &["a1", "a2", "a3"]).await;
    publish(&store, "b", 6, &["b1", "b2", "b3"]).await;
    settle(&store, 7).await;
    assert_eq!(log(&store, feed).await, ["a1", "a2", "b1", "b2", "b3", "a3"]);
    assert_eq!(settle(&store, 8).await, 0, "nothing is left");

    // What is more than one step takes is taken in by several.
    let many: Vec<String> = (0..COLLECT_BATCH + 10).map(|n| format!("many{n}")).collect();
    for some in many.chunks(10) {
        publish(&store, "a", 9, &some.iter().map(String::as_str).collect::<Vec<_>>()).await;
    }
    assert_eq!(settle(&store, 10).await, 2);
    assert_eq!(log(&store, feed).await[6..], many);
}

async fn what_is_claimed_and_not_taken_in_is_handed_out_again(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let feed = named(&store, &["a"]).await;
    publish(&store, "a", 1, &["a1"]).await;
    assert_eq!(claim(&store, at(2)).await.len(), 1);
    assert_eq!(claim(&store, at(3)).await, [], "it is claimed");
    publish(&store, "a", 4, &["a1", "a2"]).await;
    drop(store);

    let store = ClaimingStore::new(database.open().await);
    assert_eq!(claim(&store, at(61)).await, []);
    settle(&store, 62).await;
    assert_eq!(log(&store, feed).await, ["a1", "a2"]);
}

async fn two_nodes_that_hold_the_same_claim_take_it_in_once(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let feed = named(&store, &["a"]).await;
    publish(&store, "a", 1, &["a1"]).await;
    let slow = claim(&store, at(2)).await;
    let quick = claim(&store, at(62)).await;
    publish(&store, "a", 63, &["a1", "a2"]).await;
    let (one, other) =
        tokio::join!(store.collect(slow.clone(), at(64)), store.collect(quick.clone(), at(64)));
    one.and(other).unwrap();
    store.collect(slow, at(65)).await.unwrap();
    assert_eq!(log(&store, feed).await, ["a1"]);
    settle(&store, 66).await;
    assert_eq!(log(&store, feed).await, ["a1", "a2"]);
}

async fn a_first_document_is_no_news_for_a_collection_either(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let feed = named(&store, &["a"]).await;
    let mut first = found(1, vec![entry("a1"), entry("a2")]);
    first.silent = true;
    publish_found(&store, "a", first).await;
    assert_eq!(settle(&store, 2).await, 0);
    publish(&store, "a", 3, &["a1", "a2", "a3"]).await;
    settle(&store, 4).await;
    assert_eq!(log(&store, feed).await, ["a3"]);
}

async fn account(store: &ClaimingStore, login: &str) -> AccountId {
    let hash = TokenHash::from_token(login);
    let (login, name) = (login.to_owned(), "test".to_owned());
    let token = NewToken {
        login: login.clone(),
        name,
        scopes: Scopes::all(),
        hash: hash.clone(),
        expires_at: None,
    };
    store.create_token(&token, at(0)).await.unwrap();
    store.authenticate(&login, &hash, at(0)).await.unwrap().unwrap().account
}

fn mine(account: AccountId, name: &str, callback: &str) -> SubscriptionRequest {
    SubscriptionRequest {
        account: Some(account),
        ..request(name, &format!("https://me.test/{callback}"))
    }
}

async fn an_account_collects_what_it_subscribes_to_while_it_does(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let (me, other) = (account(&store, "me").await, account(&store, "other").await);
    store.subscribe(&mine(me, "a", "1"), at(0)).await.unwrap();
    let collected = open(&store, CollectionKind::Account(me)).await;
    publish(&store, "a", 1, &["a1"]).await;
    // Two subscriptions to one resource are no reason to collect it twice.
    store.subscribe(&mine(me, "a", "2"), at(2)).await.unwrap();
    publish(&store, "b", 3, &["b1"]).await;
    store.subscribe(&mine(me, "b", "1"), at(4)).await.unwrap();
    store.subscribe(&mine(other, "c", "1"), at(4)).await.unwrap();
    for (second, name, ids) in
        [(5, "a", &["a1", "a2"][..]), (6, "b", &["b1", "b2"]), (7, "c", &["c1"])]
    {
        publish(&store, name, second, ids).await;
    }
    // It still belongs there when the subscription ends before it is taken in.
    let (topic, callback) = (topic("b"), mine(me, "b", "1").callback);
    assert!(store.unsubscribe(Some(me), &topic, &callback, None).await.unwrap());
    settle(&store, 8).await;
    assert_eq!(log(&store, collected).await, ["a1", "a2", "b2"]);

    publish(&store, "b", 9, &["b1", "b2", "b3"]).await;
    store.subscribe(&mine(me, "b", "1"), at(10)).await.unwrap();
    publish(&store, "b", 11, &["b1", "b2", "b3", "b4"]).await;
    let short =
        SubscriptionRequest { lease: Lease::from(Duration::from_secs(60)), ..mine(me, "d", "1") };
    store.subscribe(&short, at(11)).await.unwrap();
    publish(&store, "d", 70, &["d1"]).await;
    publish(&store, "d", 72, &["d1", "d2"]).await;
    settle(&store, 73).await;
    assert_eq!(log(&store, collected).await[3..], ["b4", "d1"], "what came between is not");
}

async fn everything_is_what_is_public_while_the_collection_is_open(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    publish(&store, "a", 0, &["a1"]).await;
    let all = open(&store, CollectionKind::All).await;
    publish(&store, "a", 1, &["a1", "a2"]).await;
    publish(&store, "b", 2, &["b1"]).await;
    let secret = Topic::parse("https://me:opensesame@feeds.test/secret").unwrap();
    let secret = store.ensure(&secret, at(0)).await.unwrap();
    store.record(secret.id, &found(3, vec![entry("s1")])).await.unwrap();
    settle(&store, 4).await;
    assert_eq!(log(&store, all).await, ["a2", "b1"]);

    assert_eq!(store.close_collections(&[all], at(4)).await.unwrap(), 0);
    assert_eq!(store.close_collections(&[], at(5)).await.unwrap(), 1);
    publish(&store, "b", 6, &["b1", "b2"]).await;
    assert_eq!(
        open(&store, CollectionKind::All).await,
        all,
        "it is the same when it is opened again"
    );
    publish(&store, "b", 7, &["b1", "b2", "b3"]).await;
    settle(&store, 8).await;
    assert_eq!(log(&store, all).await, ["a2", "b1", "b3"]);
}

fn saying(id: &str, text: &str) -> Candidate {
    let atom = format!("<entry><id>{id}</id>{text}</entry>");
    Candidate {
        digest: Digest::from_parts(&[text]),
        published: Some(at(0)),
        ..Candidate::of_id(id, atom)
    }
}

async fn n7_an_update_takes_the_place_of_the_entry_of_its_own_member(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let feed = named(&store, &["a", "b"]).await;
    publish_found(&store, "a", found(1, vec![saying("x", "a")])).await;
    publish_found(&store, "b", found(2, vec![saying("x", "b")])).await;
    settle(&store, 3).await;
    publish_found(&store, "b", found(1_000, vec![saying("x", "b, more")])).await;
    publish_found(&store, "a", found(1_001, vec![saying("x", "a, more")])).await;
    settle(&store, 1_002).await;
    let held = store.page(feed, None).await.unwrap().unwrap();
    let records = store.read_page(feed, &held.page).await.unwrap();
    let got: Vec<_> = records
        .into_iter()
        .map(|one| (one.record.kind, one.record.predecessor, one.is_again, one.replaces))
        .collect();
    let (new, update) = (RecordKind::New, RecordKind::Update);
    let source = Some(ArchivedId::Source("x".to_owned()));
    let want = [
        (new, None, false, None),
        (new, None, true, None),
        (update, Some(Seq(2)), true, Some(ArchivedId::Own(Seq(2)))),
        (update, Some(Seq(1)), true, source),
    ];
    assert_eq!(got, want);
}

async fn what_is_taken_back_is_taken_back_where_it_is_held(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    publish(&store, "a", 0, &["early", "x"]).await;
    publish(&store, "b", 0, &["one"]).await;
    let feed = named(&store, &["a", "b"]).await;
    publish(&store, "b", 1, &["one", "x"]).await;
    publish(&store, "a", 2, &["early", "x", "late"]).await;
    let delete = |second, name: &'static str, ids: &'static [&'static str]| {
        let mut poll = found(second, Vec::new());
        let deletion = |id: &&str| Deletion {
            id: EntryKey::from_id(id),
            entry_id: (*id).to_owned(),
            element: Element::default(),
            atom: Some(format!("<deleted-entry ref=\"{id}\"/>")),
        };
        if let NewContent::Feed(document) = &mut poll.found {
            document.deletions = ids.iter().map(deletion).collect();
        }
        (name, poll)
    };
    // What of it the collection never had, or had from another, is not its to take back.
    let (name, poll) = delete(3, "a", &["early", "x", "late"]);
    publish_found(&store, name, poll).await;
    settle(&store, 4).await;
    let records = store.read_after(feed, Seq::NONE, 10).await.unwrap();
    let got: Vec<_> = records
        .iter()
        .map(|record| (record.kind, record.entry_id.as_str(), record.predecessor))
        .collect();
    let want = [
        (RecordKind::New, "x", None),
        (RecordKind::New, "late", None),
        (RecordKind::Deleted, "late", Some(Seq(2))),
    ];
    assert_eq!(got, want);
}

async fn who_follows_a_collection_is_due_when_it_grows(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let feed = named(&store, &["a"]).await;
    let topic = resource(&store, feed).await.topic;
    let follow = SubscriptionRequest { topic, ..request("a", "https://you.test/cb") };
    let followed = store.subscribe(&follow, at(0)).await.unwrap();
    assert_eq!(followed.id.resource, feed);
    publish(&store, "a", 1, &["a1"]).await;
    assert_eq!(store.claim_subscriptions(at(2), at(60), &room()).await.unwrap(), []);
    settle(&store, 3).await;
    let due = store.claim_subscriptions(at(4), at(60), &room()).await.unwrap();
    let due: Vec<_> = due.iter().map(|due| (due.subscription.id, due.owed)).collect();
    assert_eq!(due, [(followed.id, Seq(1))]);
}

async fn a_collection_is_never_polled_nor_forgotten(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let feed = open(&store, CollectionKind::Named(CollectionName::parse("news").unwrap())).await;
    let topic = resource(&store, feed).await.topic;
    let follow =
        SubscriptionRequest { topic: topic.clone(), ..request("a", "https://you.test/cb") };
    let followed = store.subscribe(&follow, at(0)).await.unwrap();
    assert_eq!(store.claim_resources(at(9), at(60), &room()).await.unwrap(), []);
    assert_eq!(store.claim_resource(feed, at(9), at(60)).await.unwrap(), None);
    assert!(store.unsubscribe(None, &topic, &followed.callback, None).await.unwrap());
    assert_eq!(resource(&store, feed).await.subscribers, 0);
    for second in [10, 20] {
        assert_eq!(store.forget_unwatched(at(second), at(second)).await.unwrap(), 0);
    }
    assert_eq!(resource(&store, feed).await.kind, ResourceKind::Collection);
}

async fn members_count_as_subscribers_until_they_leave(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let feed = named(&store, &["a", "b"]).await;
    named(&store, &["a", "b"]).await;
    let subscribers = |name: &'static str| {
        let store = &store;
        async move { store.ensure(&topic(name), at(0)).await.unwrap().subscribers }
    };
    assert_eq!((subscribers("a").await, subscribers("b").await), (1, 1));
    assert_eq!(store.claim_resources(at(1), at(60), &room()).await.unwrap().len(), 2);
    assert_eq!(named(&store, &["b", "c"]).await, feed);
    assert_eq!((subscribers("a").await, subscribers("b").await), (0, 1));
    publish(&store, "a", 1, &["a1"]).await;
    publish(&store, "c", 2, &["c1"]).await;
    settle(&store, 3).await;
    assert_eq!(log(&store, feed).await, ["c1"]);
    store.close_collections(&[], at(4)).await.unwrap();
    assert_eq!((subscribers("b").await, subscribers("c").await), (0, 0));
}

async fn a_thousand_members_are_taken_in_by_small_steps(database: Database) {
    const MEMBERS: usize = 1_000;
    let store = ClaimingStore::new(database.open().await);
    let all = open(&store, CollectionKind::All).await;
    let publish = |n: usize| {
        let store = &store;
        async move { publish(store, &format!("{n}"), 1, &[&format!("e{n}")]).await }
    };
    stream::iter(0..MEMBERS).for_each_concurrent(8, publish).await;
    assert_eq!(settle(&store, 2).await, MEMBERS.div_ceil(STEP));
    let mut got = log(&store, all).await;
    got.sort_unstable();
    let mut want: Vec<String> = (0..MEMBERS).map(|n| format!("e{n}")).collect();
    want.sort_unstable();
    assert_eq!(got, want);
}
