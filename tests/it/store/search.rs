//! The search index: what is stored is found, by what it says now.

use std::sync::Arc;
use std::time::Duration;

use feedgate_core::change_detection::{Candidate, Deletion};
use feedgate_core::host_groups::HostGroups;
use feedgate_core::page::{ArchiveRetention, PageLimits};
use feedgate_core::poll::{NewContent, Poll};
use feedgate_core::query::{EntryText, Query};
use feedgate_core::record::EntryKey;
use feedgate_core::resource::ResourceKind;
use feedgate_core::search::{IndexSearch, IndexedRange, SearchPosition, UnindexedRange};
use feedgate_core::status::Status;
use feedgate_core::topic::Topic;
use feedgate_feed::Context;
use feedgate_feed::model::Element;
use feedgate_feed::render::atom;
use feedgate_store::INDEX_BATCH;
use feedgate_store::Store;
use serde_json::Value;

use super::{at, document, on_both_stores, poll, topic};
use crate::support::claiming_store::ClaimingStore;
use crate::support::postgres::{Database, Kind, connect};
use crate::support::until;

on_both_stores! {
    q03_a_search_finds_the_entries_that_its_query_describes,
    q01_entries_are_found_newest_first_and_page_by_page,
    q01_frequent_words_are_searched_for_in_bounded_steps,
    q01_an_entry_is_found_by_what_it_says_now,
    q01_private_resources_are_not_searched,
    q01_two_nodes_that_index_the_same_range_add_it_once,
    q01_an_index_that_is_opened_later_has_what_was_stored_before,
    q01_the_index_ends_with_the_records,
}

const CASES: &str = include_str!("../../../fixtures/query/cases.json");

/// A poll that found entries with these ids and titles.
fn found(second: i64, entries: &[(&str, &str)]) -> Poll {
    let candidate = |(id, title): &(&str, &str)| {
        Candidate::of_id(id, format!("<entry><id>{id}</id><title>{title}</title></entry>"))
    };
    Poll {
        kind: Some(ResourceKind::Feed),
        found: document(at(second), entries.iter().map(candidate).collect()),
        ..poll(at(second), &[])
    }
}

async fn publish(store: &ClaimingStore, name: &str, poll: &Poll) {
    let resource = store.ensure(&topic(name), at(0)).await.unwrap();
    store.record(resource.id, poll).await.unwrap();
}

async fn claim(store: &ClaimingStore, second: i64) -> Vec<UnindexedRange> {
    store.claim_unindexed(at(second), at(second + 60), 20).await.unwrap()
}

fn indexed(ranges: &[UnindexedRange]) -> Vec<IndexedRange> {
    ranges.iter().map(UnindexedRange::to_indexed).collect()
}

/// Indexes all that is queued.
pub(super) async fn settle(store: &ClaimingStore, second: i64) {
    while store.queue_unindexed(at(second)).await.unwrap() {}
    loop {
        let claimed = claim(store, second).await;
        if claimed.is_empty() {
            return;
        }
        store.add_to_search_index(indexed(&claimed), at(second)).await.unwrap();
    }
}

/// The ids of all entries that match, in the order in which they are found, `limit` at a time.
async fn search(store: &Arc<Store>, query: &str, limit: usize) -> Vec<String> {
    let query = Query::parse(query).unwrap();
    let (mut ids, mut before) = (Vec::new(), None);
    loop {
        let search = IndexSearch { keys: query.search_keys(), before, after: None, limit };
        let found = store.find_possible_matches(&search).await.unwrap();
        assert!(found.entries.len() <= limit);
        let matches = found.entries.iter().filter(|entry| {
            let text = EntryText::read(&entry.resource, &entry.record.atom).unwrap();
            query.matches(&text)
        });
        ids.extend(matches.map(|entry| entry.record.entry_id.clone()));
        match found.continues_before {
            Some(position) => {
                assert!(before.is_none_or(|before| position < before), "it gets on");
                before = Some(position);
            }
            None => return ids,
        }
    }
}

/// The number of rows in the index.
pub(super) async fn indexed_rows(database: &Database) -> usize {
    let entries = database.texts("select cast(position as text) from search_entries").await;
    let keys = database.texts("select cast(rowid as text) from search_index").await;
    assert_eq!(entries.len(), keys.len());
    entries.len()
}

async fn q03_a_search_finds_the_entries_that_its_query_describes(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    store.open_search_index().await.unwrap();
    let cases: Value = serde_json::from_str(CASES).unwrap();
    for (name, entry) in cases["entries"].as_object().unwrap() {
        let topic = Topic::parse(entry["feed"].as_str().unwrap()).unwrap();
        let item = entry["item"].as_str().unwrap();
        let rss = format!("<rss version='2.0'><channel><title>f</title>{item}</channel></rss>");
        let read = feedgate_feed::normalize(rss.as_bytes(), &Context::new(topic.fetch_url()));
        let mut read = read.unwrap().feed().entries[0].clone();
        read.lang = entry["language"].as_str().map(str::to_owned);
        let status = Status {
            http_code: 200,
            popularity: entry["popularity"].as_f64().unwrap_or_default(),
            porn_rank: entry["porn_rank"].as_f64(),
            bozo_rank: entry["bozo_rank"].as_f64().unwrap_or_default(),
            ..Status::default()
        };
        let candidates = vec![Candidate::of_id(name, atom::entry(&read))];
        let found = document(at(1), candidates);
        let resource = store.ensure(&topic, at(0)).await.unwrap();
        let kind = Some(ResourceKind::Feed);
        let poll = Poll { kind, found, status, ..poll(at(1), &[]) };
        store.record(resource.id, &poll).await.unwrap();
    }
    settle(&store, 2).await;
    for case in cases["matches"].as_array().unwrap() {
        let query = case["query"].as_str().unwrap();
        let mut found = search(&store, query, 10).await;
        found.sort_unstable();
        let want = case["entries"].as_array().unwrap().iter();
        let want: Vec<&str> = want.map(|name| name.as_str().unwrap()).collect();
        assert_eq!(found, want, "{query}");
    }
}

async fn q01_entries_are_found_newest_first_and_page_by_page(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    store.open_search_index().await.unwrap();
    publish(&store, "a", &found(1, &[("a1", "apple"), ("a2", "pear"), ("a3", "apple")])).await;
    publish(&store, "b", &found(1, &[("b1", "apple")])).await;
    publish(&store, "c", &found(3, &[("c1", "apple")])).await;
    publish(&store, "b", &found(2, &[("b1", "apple"), ("b2", "an apple")])).await;
    settle(&store, 4).await;
    let all = search(&store, "apple", 10).await;
    assert_eq!(all[..2], ["c1", "b2"]);
    let mut oldest = all[2..].to_vec();
    oldest.sort_unstable();
    assert_eq!(oldest, ["a1", "a3", "b1"], "they arrived at the same time");
    for limit in 1..5 {
        assert_eq!(search(&store, "apple", limit).await, all, "{limit} at a time");
    }
    let keys = Query::parse("apple").unwrap().search_keys();
    let mut range = IndexSearch { keys, before: None, after: None, limit: 10 };
    let positions: Vec<SearchPosition> = {
        let found = store.find_possible_matches(&range).await.unwrap();
        found.entries.iter().map(|entry| entry.position).collect()
    };
    (range.before, range.after) = (Some(positions[1]), Some(positions[4]));
    let between = store.find_possible_matches(&range).await.unwrap();
    let between: Vec<_> = between.entries.iter().map(|entry| entry.position).collect();
    assert_eq!(between, positions[2..4], "neither end is included");
}

async fn q01_frequent_words_are_searched_for_in_bounded_steps(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    store.open_search_index().await.unwrap();
    let ids: Vec<String> = (1..=450).map(|n| format!("e{n}")).collect();
    let title = |n: usize| if n < 42 { "an apple" } else { "a pear" };
    let entries: Vec<(&str, &str)> =
        ids.iter().enumerate().map(|(n, id)| (id.as_str(), title(n))).collect();
    publish(&store, "a", &found(1, &entries)).await;
    let claimed = claim(&store, 2).await;
    assert_eq!(claimed[0].records.len() as i64, INDEX_BATCH);
    store.add_to_search_index(indexed(&claimed), at(2)).await.unwrap();
    settle(&store, 3).await;
    let want: Vec<&str> = ids[..42].iter().rev().map(String::as_str).collect();
    for limit in [1, 7, 100] {
        assert_eq!(search(&store, "apple", limit).await, want, "{limit} at a time");
    }
    assert_eq!(search(&store, "apple pear", 1).await, [""; 0]);
}

async fn q01_an_entry_is_found_by_what_it_says_now(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    store.open_search_index().await.unwrap();
    publish(&store, "a", &found(1, &[("a1", "apple"), ("a2", "apple")])).await;
    settle(&store, 2).await;
    publish(&store, "a", &found(100, &[("a1", "pear"), ("a2", "apple")])).await;
    assert_eq!(search(&store, "apple", 10).await, ["a2"], "before the update is indexed");
    settle(&store, 101).await;
    assert_eq!(search(&store, "apple", 10).await, ["a2"]);
    assert_eq!(search(&store, "pear", 10).await, ["a1"]);
    assert_eq!(indexed_rows(&database).await, 2);

    let mut deletion = found(200, &[]);
    if let NewContent::Feed(document) = &mut deletion.found {
        document.deletions = vec![Deletion {
            id: EntryKey::from_id("a2"),
            entry_id: "a2".to_owned(),
            element: Element::default(),
            atom: Some("<deleted-entry ref=\"a2\"/>".to_owned()),
        }];
    }
    publish(&store, "a", &deletion).await;
    settle(&store, 201).await;
    assert_eq!(search(&store, "apple", 10).await, [""; 0]);
    assert_eq!(indexed_rows(&database).await, 1);
}

async fn q01_private_resources_are_not_searched(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    store.open_search_index().await.unwrap();
    let secret = Topic::parse("https://me:opensesame@feeds.test/secret").unwrap();
    let secret = store.ensure(&secret, at(0)).await.unwrap();
    store.record(secret.id, &found(1, &[("s1", "apple")])).await.unwrap();
    publish(&store, "a", &found(2, &[("a1", "apple")])).await;
    settle(&store, 3).await;
    assert_eq!(search(&store, "apple", 10).await, ["a1"]);
}

async fn q01_two_nodes_that_index_the_same_range_add_it_once(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    store.open_search_index().await.unwrap();
    publish(&store, "a", &found(1, &[("a1", "apple")])).await;
    let slow = indexed(&claim(&store, 2).await);
    assert_eq!(claim(&store, 3).await, [], "another node has claimed it");
    publish(&store, "a", &found(4, &[("a1", "apple"), ("a2", "apple")])).await;
    let quick = indexed(&claim(&store, 62).await);
    assert_eq!(quick[0].entries.len(), 2, "the claim has expired");
    let (one, other) = tokio::join!(
        store.add_to_search_index(slow.clone(), at(63)),
        store.add_to_search_index(quick, at(63))
    );
    one.and(other).unwrap();
    store.add_to_search_index(slow, at(64)).await.unwrap();
    settle(&store, 130).await;
    assert_eq!(search(&store, "apple", 10).await, ["a2", "a1"]);
    assert_eq!(indexed_rows(&database).await, 2);
}

async fn q01_an_index_that_is_opened_later_has_what_was_stored_before(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    publish(&store, "a", &found(1, &[("a1", "apple")])).await;
    settle(&store, 2).await;
    assert_eq!(search(&store, "apple", 10).await, [""; 0], "it is closed");
    store.open_search_index().await.unwrap();
    publish(&store, "b", &found(3, &[("b1", "apple")])).await;
    settle(&store, 4).await;
    assert_eq!(search(&store, "apple", 10).await, ["b1", "a1"]);
    assert_eq!(store.clear_search_index().await.unwrap(), 0, "it is open");
    // The next start of a node finds everything queued.
    store.open_search_index().await.unwrap();
    assert!(!store.queue_unindexed(at(5)).await.unwrap());

    publish(&store, "b", &found(6, &[("b1", "apple"), ("b2", "apple")])).await;
    store.close_search_index().await.unwrap();
    publish(&store, "c", &found(7, &[("c1", "apple")])).await;
    // A node has emptied a part of it when another opens it again.
    store.open_search_index().await.unwrap();
    settle(&store, 8).await;
    let all = ["c1", "b2", "b1", "a1"];
    assert_eq!(search(&store, "apple", 10).await, all);
    assert_eq!(indexed_rows(&database).await, all.len());

    publish(&store, "c", &found(9, &[("c1", "apple"), ("c2", "apple")])).await;
    store.close_search_index().await.unwrap();
    assert_eq!(store.clear_search_index().await.unwrap(), 5, "four entries, and a cursor");
    assert_eq!(store.clear_search_index().await.unwrap(), 0);
    assert_eq!(indexed_rows(&database).await, 0);
    assert_eq!(search(&store, "apple", 10).await, [""; 0]);
}

async fn q01_the_index_ends_with_the_records(database: Database) {
    const DAY: i64 = 86_400;
    let cut = PageLimits { records: 2, bytes: 10_000 };
    let groups = HostGroups::new(Duration::ZERO);
    let store = ClaimingStore::new(database.open_cut(groups, cut).await);
    store.open_search_index().await.unwrap();
    let entries =
        [("a1", "apple"), ("a2", "apple"), ("a3", "apple"), ("a4", "apple"), ("a5", "apple")];
    publish(&store, "a", &found(1, &entries)).await;
    publish(&store, "b", &found(2, &[("b1", "apple")])).await;
    settle(&store, 3).await;
    let newest = ArchiveRetention { days: None, pages: Some(1) };
    assert_eq!(store.drop_pages(&newest, at(4)).await.unwrap(), 2);
    assert_eq!(search(&store, "apple", 10).await, ["b1", "a5"]);
    assert_eq!(indexed_rows(&database).await, 2);

    publish(&store, "b", &found(5, &[("b1", "apple"), ("b2", "apple")])).await;
    assert_eq!(store.forget_never_watched(at(DAY), at(DAY)).await.unwrap(), 2);
    assert_eq!(indexed_rows(&database).await, 0);
    assert_eq!(claim(&store, DAY).await, []);
}

/// A worker that adds entries of a resource to the index is in the middle of its transaction when the
/// resource is deleted.
#[tokio::test(flavor = "multi_thread")]
async fn s44_a_resource_that_is_indexed_at_the_same_time_is_deleted_with_its_entries() {
    let database = Database::with_cells(Kind::Postgres, 1).await;
    let store = ClaimingStore::new(database.open().await);
    store.open_search_index().await.unwrap();
    publish(&store, "a", &found(1, &[("1", "tide")])).await;
    let worker = connect(&database.url).await;
    let add = "begin;
               update search_cursors set cursor = upto;
               insert into search_entries (position, resource_id, seq)
               select 1, resource_id, 1 from search_cursors;
               delete from search_cursors";
    worker.batch_execute(add).await.unwrap();
    let forgetting = {
        let store = store.clone();
        tokio::spawn(async move { store.forget_unwatched(at(9), at(9)).await })
    };
    let waiting = "select count(*) from pg_stat_activity
                    where wait_event_type = 'Lock' and datname = current_database()";
    let observer = connect(&database.url).await;
    until("the deletion waits for the worker", async || {
        observer.query_one(waiting, &[]).await.unwrap().get::<_, i64>(0) > 0
    })
    .await;
    worker.batch_execute("commit").await.unwrap();
    assert_eq!(forgetting.await.unwrap().unwrap(), 1);
    assert_eq!(database.texts("select position::text from search_entries").await, [""; 0]);
}
