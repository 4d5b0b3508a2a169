//! Appending and reading.

use feedgate_core::record::{Audience, EntryKey, Seq};
use feedgate_core::resource::ResourceId;
use feedgate_core::status::Status;
use feedgate_core::store::{Appended, EntryRange, OwedRange};
use feedgate_feed::Body;

use super::{at, entry, on_both_stores, poll, resource, subscribe, topic};
use crate::support::postgres::Database;

on_both_stores!(
    what_a_poll_found_is_kept,
    known_entries_are_not_appended_again,
    two_appends_of_one_change_append_it_once,
    a_body_grows_a_version_when_its_bytes_change,
    what_is_owed_ends_at_the_head_of_the_claim,
    s16_what_is_read_together_is_bounded_in_bytes,
    heads_of_several_logs_are_read_at_once,
);

async fn what_a_poll_found_is_kept(database: Database) {
    let store = database.open().await;
    let made = store.ensure(&topic("a"), at(0)).await.unwrap();
    assert_eq!(store.ensure(&topic("a"), at(9)).await.unwrap(), made, "made once");
    assert_eq!((made.head, made.next_fetch, made.subscribers), (Seq::NONE, at(0), 0));

    let appended = store.record(made.id, &poll(at(1), &["one", "two"])).await.unwrap().unwrap();
    assert_eq!(appended, Appended { head: Seq(2), new: 2 });
    let records = store.read_after(made.id, Seq::NONE, 10).await.unwrap();
    let kept: Vec<_> = records.iter().map(|r| (r.seq.0, r.at, r.entry_id.as_str())).collect();
    assert_eq!(kept, [(1, at(1), "one"), (2, at(1), "two")]);
    assert_eq!(Some(&records[0].atom), entry("one").atom.as_ref());

    let span = EntryRange { limit: 10, ..EntryRange::default() };
    let back = store.read_current(made.id, &span).await.unwrap();
    assert_eq!(back.iter().map(|r| r.seq.0).collect::<Vec<_>>(), [2, 1], "newest first");
    let before = EntryRange { before: Some(Seq(2)), ..span };
    assert_eq!(store.read_current(made.id, &before).await.unwrap(), records[..1]);
    assert_eq!(store.read_after(made.id, Seq(1), 10).await.unwrap(), records[1..]);
    assert_eq!(store.find_seq(made.id, "two").await.unwrap(), Some(Seq(2)));
    assert_eq!(store.find_seq(made.id, "three").await.unwrap(), None);
    let keys = ["three", "one", "four"].map(EntryKey::from_id);
    let known = store.known(made.id, &keys).await.unwrap();
    let first = keys.map(|key| known.get(key).map(|entry| entry.first));
    assert_eq!(first, [None, Some(Seq(1)), None]);

    let mut second = poll(at(5), &["three"]);
    second.feed_head = Some("<title>A</title>".to_owned());
    second.fetch_url = Some("https://moved.test/a".to_owned());
    second.status = Status { title: "A".to_owned(), error: "timed_out".into(), ..second.status };
    store.record(made.id, &second).await.unwrap();
    let after = resource(&store, made.id).await;
    assert_eq!((after.head, after.next_fetch), (Seq(3), second.next_fetch));
    assert_eq!(after.fetch_url, "https://moved.test/a");
    assert_eq!(after.feed_head, "<title>A</title>");
    assert_eq!(after.status.title, "A");
    assert_eq!(after.status.entries_count_since_last_maintenance, 3, "counted by the store");
    assert_eq!(store.find("https://feeds.test/a").await.unwrap(), Some(after));
}

async fn heads_of_several_logs_are_read_at_once(database: Database) {
    let store = database.open().await;
    let mut want = Vec::new();
    for (name, entries) in [("a", &["one", "two"][..]), ("b", &["one"]), ("c", &[])] {
        let id = store.ensure(&topic(name), at(0)).await.unwrap().id;
        store.record(id, &poll(at(1), entries)).await.unwrap();
        want.push((id, Seq(entries.len() as i64)));
    }
    let ids: Vec<ResourceId> = want.iter().map(|(id, _)| *id).chain([ResourceId(999)]).collect();
    let mut heads = store.heads(&ids).await.unwrap();
    heads.sort_by_key(|(id, _)| ids.iter().position(|held| held == id));
    assert_eq!(heads, want, "a log that does not exist has none");
    assert_eq!(store.heads(&[]).await.unwrap(), []);
}

async fn known_entries_are_not_appended_again(database: Database) {
    let store = database.open().await;
    let id = store.ensure(&topic("a"), at(0)).await.unwrap().id;
    store.record(id, &poll(at(1), &["one", "two"])).await.unwrap();
    let appended =
        store.record(id, &poll(at(2), &["two", "three", "one", "three"])).await.unwrap().unwrap();
    assert_eq!(appended, Appended { head: Seq(3), new: 1 }, "rule N11");
    assert_eq!(store.find_seq(id, "three").await.unwrap(), Some(Seq(3)));

    let other = store.ensure(&topic("b"), at(0)).await.unwrap().id;
    let appended = store.record(other, &poll(at(3), &["one"])).await.unwrap().unwrap();
    assert_eq!(appended, Appended { head: Seq(1), new: 1 }, "a log of its own");
}

async fn two_appends_of_one_change_append_it_once(database: Database) {
    let one_node = database.open().await;
    let other_node = database.open().await;
    let id = one_node.ensure(&topic("a"), at(0)).await.unwrap().id;
    subscribe(&one_node, "a", "https://callback.test/").await;
    for round in 1..20 {
        let name = format!("entry {round}");
        let found = poll(at(round), &[&name]);
        let (one, other) = tokio::join!(one_node.record(id, &found), other_node.record(id, &found));
        let (one, other) = (one.unwrap().unwrap(), other.unwrap().unwrap());
        assert_eq!(one.new + other.new, 1);
        assert_eq!((one.head, other.head), (Seq(round), Seq(round)));
    }
}

async fn a_body_grows_a_version_when_its_bytes_change(database: Database) {
    let store = database.open().await;
    let id = store.ensure(&topic("a"), at(0)).await.unwrap().id;
    assert_eq!(store.body(id).await.unwrap(), None);
    let mut found = poll(at(1), &[]);
    for (bytes, version) in [(b"x".to_vec(), 1), (b"x".to_vec(), 1), (vec![0, 255], 2)] {
        let body = Body { content_type: Some("text/plain".to_owned()), bytes };
        found.body = Some(body.clone());
        store.record(id, &found).await.unwrap();
        assert_eq!(store.body(id).await.unwrap(), Some((version, body)));
        assert_eq!(resource(&store, id).await.body_version, version);
    }
}

async fn what_is_owed_ends_at_the_head_of_the_claim(database: Database) {
    let store = database.open().await;
    let id = store.ensure(&topic("a"), at(0)).await.unwrap().id;
    store.record(id, &poll(at(1), &["1", "2", "3", "4"])).await.unwrap();
    let owed = OwedRange {
        after: Seq(1),
        upto: Seq(3),
        least: Audience::Everybody,
        limit: 9,
        max_bytes: 1 << 20,
    };
    let numbers = |records: Vec<feedgate_core::record::Record>| {
        records.iter().map(|record| record.seq.0).collect::<Vec<_>>()
    };
    assert_eq!(numbers(store.owed(id, &owed).await.unwrap()), [2, 3]);
    let first = OwedRange { limit: 1, ..owed };
    assert_eq!(numbers(store.owed(id, &first).await.unwrap()), [2]);
    let nothing = OwedRange { after: Seq(3), ..owed };
    assert!(numbers(store.owed(id, &nothing).await.unwrap()).is_empty());
}

async fn s16_what_is_read_together_is_bounded_in_bytes(database: Database) {
    let store = database.open().await;
    let id = store.ensure(&topic("a"), at(0)).await.unwrap().id;
    store.record(id, &poll(at(1), &["1", "2", "3", "4"])).await.unwrap();
    let all = store.read_after(id, Seq::NONE, 9).await.unwrap();
    let two = all[0].atom.len() + all[1].atom.len();
    let numbers = |records: Vec<feedgate_core::record::Record>| {
        records.iter().map(|record| record.seq.0).collect::<Vec<_>>()
    };
    for (max_bytes, count) in [(0, 0), (1, 1), (two, 2), (two + 1, 3), (1 << 20, 4)] {
        let least = Audience::Everybody;
        let owed = OwedRange { after: Seq(0), upto: Seq(4), least, limit: 9, max_bytes };
        let want: Vec<i64> = (1..=count).collect();
        assert_eq!(numbers(store.owed(id, &owed).await.unwrap()), want, "{max_bytes}");
        let newest = EntryRange { limit: 9, max_bytes: Some(max_bytes), ..EntryRange::default() };
        let want: Vec<i64> = (5 - count..=4).rev().collect();
        assert_eq!(numbers(store.read_current(id, &newest).await.unwrap()), want, "{max_bytes}");
        let oldest = EntryRange { after: Some(Seq(0)), ..newest };
        let want: Vec<i64> = (1..=count).rev().collect();
        assert_eq!(numbers(store.read_current(id, &oldest).await.unwrap()), want, "{max_bytes}");
    }
}
