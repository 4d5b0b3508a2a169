//! What is news, where the store is the classify of it: in the transaction that appends.

use chrono::TimeDelta;
use feedgate_core::change_detection::Deletion;
use feedgate_core::change_detection::{Candidate, FeedDocument};
use feedgate_core::poll::{NewContent, Poll};
use feedgate_core::record::{Digest, EntryKey, RecordKind, Seq};
use feedgate_core::resource::{ResourceId, ResourceKind};
use feedgate_core::store::EntryRange;
use feedgate_core::subscription::{Format, Updates};
use feedgate_feed::Body;
use feedgate_feed::model::Element;

use super::{at, document, listed, on_both_stores, poll, request, resource, room, topic};
use crate::support::claiming_store::ClaimingStore;
use crate::support::postgres::Database;

on_both_stores!(
    n03_an_entry_under_another_id_is_known_by_both_from_then_on,
    n03_an_id_that_is_random_each_time_leaves_no_trail,
    n05_what_is_old_is_kept_and_sent_to_nobody,
    n06_what_left_long_ago_is_forgotten_and_what_is_there_is_not,
    n06_what_is_in_the_document_is_noted_once_a_week,
    n07_an_update_is_due_for_whom_it_concerns,
    n07_an_update_that_comes_too_soon_is_looked_for_again,
    p07_what_was_not_rendered_is_looked_for_again,
    n08_what_is_taken_back_is_no_longer_shown,
    n11_nodes_that_find_the_same_update_append_it_once,
    n12_a_revision_is_news_if_the_body_is_another,
    p11_a_body_that_says_the_same_is_no_other,
);

const DAY: i64 = 86_400;

/// Entry `n`, with a text, as seen by the classify: published before anybody subscribed.
fn entry(n: u32, text: &str) -> Candidate {
    let id = format!("urn:x:{n}");
    let atom = format!("<entry><id>{id}</id>{text}</entry>");
    Candidate {
        digest: Digest::from_parts(&[text]),
        title: Digest::from_parts(&[&id]),
        link: Some(EntryKey::from_id(&format!("link {n}"))),
        text: Some(EntryKey::from_id(&format!("text {n} {text}"))),
        published: Some(at(-60)),
        ..Candidate::of_id(&id, atom)
    }
}

/// The same entry under another id.
fn renamed(candidate: Candidate, id: &str) -> Candidate {
    Candidate { id: EntryKey::from_id(id), bare: None, entry_id: id.to_owned(), ..candidate }
}

/// A poll of a known feed that found these entries.
fn found(seconds: i64, candidates: Vec<Candidate>) -> Poll {
    let mut poll = poll(at(seconds), &[]);
    poll.kind = Some(ResourceKind::Feed);
    poll.status.last_fetch = Some(at(seconds));
    poll.found = document(at(seconds), candidates);
    poll
}

/// The kinds of all records, oldest first.
async fn kinds(store: &ClaimingStore, id: ResourceId) -> Vec<RecordKind> {
    let records = store.read_after(id, Seq::NONE, 10_000).await.unwrap();
    records.into_iter().map(|record| record.kind).collect()
}

/// The numbers of what is shown, newest first.
async fn displayed(store: &ClaimingStore, id: ResourceId) -> Vec<i64> {
    let span = EntryRange { limit: 100, ..EntryRange::default() };
    let records = store.read_current(id, &span).await.unwrap();
    records.into_iter().map(|record| record.seq.0).collect()
}

/// The callbacks of what is due, and from where to where; nothing of it is told.
async fn due(store: &ClaimingStore, seconds: i64) -> Vec<(String, i64, i64)> {
    let due = store.claim_subscriptions(at(seconds), at(seconds), &room()).await.unwrap();
    let mut due: Vec<_> = due
        .iter()
        .map(|due| {
            let held = &due.subscription;
            (held.callback.host(), held.cursor.0, due.owed.0)
        })
        .collect();
    due.sort();
    due
}

async fn subscribe(store: &ClaimingStore, host: &str, updates: Updates, format: Format) {
    let request = feedgate_core::subscription::SubscriptionRequest {
        updates,
        format,
        lease: std::time::Duration::from_secs(9_999_999).into(),
        ..request("a", &format!("https://{host}/"))
    };
    store.subscribe(&request, at(0)).await.unwrap();
}

async fn n03_an_entry_under_another_id_is_known_by_both_from_then_on(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let id = store.ensure(&topic("a"), at(0)).await.unwrap().id;
    store.record(id, &found(1, vec![entry(1, "a"), entry(2, "b")])).await.unwrap();
    let after = vec![renamed(entry(1, "a"), "urn:y:1"), entry(2, "b")];
    let appended = store.record(id, &found(2, after)).await.unwrap();
    assert_eq!((appended.new, appended.head), (0, Seq(2)));
    let status = resource(&store, id).await.status;
    assert!(status.http_message.contains("1 entry has another id"), "{}", status.http_message);
    assert_eq!(status.bozo_rank, 0.3, "half of the ids cannot be relied on");
    let keys = ["urn:x:1", "urn:y:1", "urn:z:1"].map(EntryKey::from_id);
    let known = store.known(id, &keys).await.unwrap();
    let first = keys.map(|key| known.get(key).map(|entry| entry.first));
    assert_eq!(first, [Some(Seq(1)), Some(Seq(1)), None]);
}

async fn n03_an_id_that_is_random_each_time_leaves_no_trail(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let id = store.ensure(&topic("a"), at(0)).await.unwrap().id;
    store.record(id, &found(1, vec![entry(1, "a")])).await.unwrap();
    for n in 0..20 {
        let random = renamed(entry(1, "a"), &format!("urn:random:{n}"));
        assert_eq!(store.record(id, &found(2 + n, vec![random])).await.unwrap().new, 0);
    }
    let keys: Vec<_> = (0..20).map(|n| EntryKey::from_id(&format!("urn:random:{n}"))).collect();
    let known = store.known(id, &keys).await.unwrap();
    let kept = keys.iter().filter(|key| known.get(**key).is_some()).count();
    assert_eq!(kept, 1, "the last of them, and not one for each poll");
}

async fn n05_what_is_old_is_kept_and_sent_to_nobody(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let id = store.ensure(&topic("a"), at(0)).await.unwrap().id;
    subscribe(&store, "always.test", Updates::Always, Format::Atom).await;
    let mut first = found(1, vec![entry(1, "a")]);
    first.silent = true;
    store.record(id, &first).await.unwrap();

    let old = |n| Candidate { published: Some(at(-30 * DAY)), ..entry(n, "old") };
    let mut many: Vec<_> = (100..130).map(old).collect();
    many.push(Candidate { published: Some(at(2)), ..entry(2, "new") });
    let appended = store.record(id, &found(3, many)).await.unwrap();
    assert_eq!((appended.new, appended.head), (1, Seq(32)), "all are kept");
    assert_eq!(due(&store, 4).await, [("always.test:443".to_owned(), 1, 32)]);
    assert_eq!(kinds(&store, id).await.iter().filter(|k| **k == RecordKind::Old).count(), 30);
    let status = resource(&store, id).await.status;
    assert!(status.http_message.contains("30 old entries were not sent"), "{status:?}");
    assert_eq!(status.entries_count_since_last_maintenance, 2, "what is old is no velocity");

    let more = (200..230).map(old).collect();
    store.record(id, &found(5, more)).await.unwrap();
    assert_eq!(resource(&store, id).await.head, Seq(62));
}

async fn n06_what_left_long_ago_is_forgotten_and_what_is_there_is_not(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let id = store.ensure(&topic("a"), at(0)).await.unwrap().id;
    store.record(id, &found(1, (0..30).map(|n| entry(n, "a")).collect())).await.unwrap();
    let days = |days: i64, entries: Vec<Candidate>| found(days * DAY, entries);
    // Nine tenths of what is known is more than ten windows of one entry.
    for day in [1, 60, 89, 96, 103] {
        assert_eq!(store.record(id, &days(day, vec![entry(0, "a")])).await.unwrap().new, 0);
    }
    let keys: Vec<_> = (0..30).map(|n| EntryKey::from_id(&format!("urn:x:{n}"))).collect();
    let known = store.known(id, &keys).await.unwrap();
    let kept: Vec<_> = (0..30).filter(|n| known.get(keys[*n]).is_some()).collect();
    assert_eq!(kept, [0, 21, 22, 23, 24, 25, 26, 27, 28, 29], "ten windows, newest first");

    // Unwatched for a year: nothing was there to be seen, so nothing is forgotten.
    store.record(id, &days(458, vec![entry(0, "a")])).await.unwrap();
    assert_eq!(store.known(id, &keys).await.unwrap().get(keys[29]).map(|e| e.first), Some(Seq(30)));
    let back = store.record(id, &days(459, vec![entry(0, "a"), entry(29, "a")])).await.unwrap();
    assert_eq!(back.new, 0, "what slides back is not news");
}

/// A note rewrites the row of each entry in the document.
async fn n06_what_is_in_the_document_is_noted_once_a_week(database: Database) {
    let store = database.open().await;
    let id = store.ensure(&topic("a"), at(0)).await.unwrap().id;
    for (day, noted) in [(0, 0), (1, 0), (6, 0), (7, 7), (8, 7), (13, 7), (14, 14)] {
        store.record(id, &found(day * DAY, vec![entry(0, "a")])).await.unwrap();
        let seen_at = database.texts("select cast(seen_at as text) from entries").await;
        assert_eq!(seen_at, [at(noted * DAY).timestamp_micros().to_string()], "day {day}");
    }
}

async fn n07_an_update_is_due_for_whom_it_concerns(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let id = store.ensure(&topic("a"), at(0)).await.unwrap().id;
    for updates in [Updates::Never, Updates::Fresh, Updates::Always] {
        let host = format!("{}.test", updates.as_str());
        subscribe(&store, &host, updates, Format::Atom).await;
    }
    subscribe(&store, "raw.test", Updates::Never, Format::Raw).await;
    let mut first = found(1, vec![entry(1, "a")]);
    first.silent = true;
    store.record(id, &first).await.unwrap();

    let told = |host: &str, cursor| (format!("{host}.test:443"), cursor, cursor + 1);
    let appended = store.record(id, &found(100, vec![entry(1, "edited")])).await.unwrap();
    assert_eq!((appended.new, appended.head), (1, Seq(2)));
    assert_eq!(due(&store, 101).await, [told("always", 1)], "others are moved past it");
    let cursors: Vec<_> = listed(&store).await.iter().map(|held| held.cursor.0).collect();
    assert_eq!(cursors, [2, 2, 1, 0]);

    let fresh = Candidate { updated: Some(at(198)), ..entry(1, "edited again") };
    store.record(id, &found(200, vec![fresh])).await.unwrap();
    let always = ("always.test:443".to_owned(), 1, 3);
    assert_eq!(due(&store, 201).await, [always, told("fresh", 2)]);
    let records = store.read_after(id, Seq::NONE, 10).await.unwrap();
    let chain: Vec<_> = records.iter().map(|r| (r.kind, r.predecessor.map(|seq| seq.0))).collect();
    let update = RecordKind::Update;
    assert_eq!(chain, [(RecordKind::New, None), (update, Some(1)), (update, Some(2))]);
    assert_eq!(displayed(&store, id).await, [3], "an entry is shown as it is now");
    let revisions = store.revisions(id, "urn:x:1", 2).await.unwrap();
    let numbers: Vec<_> = revisions.iter().map(|place| (place.seq.0, place.kind)).collect();
    assert_eq!(numbers, [(3, update), (2, update)]);
    assert_eq!(store.newest_records(id, 2).await.unwrap(), revisions);
}

async fn n07_an_update_that_comes_too_soon_is_looked_for_again(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let id = store.ensure(&topic("a"), at(0)).await.unwrap().id;
    let with_hash = |seconds, text: &str| {
        let mut found = found(seconds, vec![entry(1, text)]);
        found.polling.body_hash = text.to_owned();
        found
    };
    store.record(id, &with_hash(1, "a")).await.unwrap();
    store.record(id, &with_hash(100, "b")).await.unwrap();
    assert_eq!(store.record(id, &with_hash(159, "c")).await.unwrap().new, 0);
    let held = resource(&store, id).await;
    assert_eq!(held.polling.body_hash, "b", "what was not kept is not known (rule P7)");
    assert_eq!(held.next_fetch, at(159) + TimeDelta::seconds(61));
    assert_eq!(store.record(id, &with_hash(220, "c")).await.unwrap().new, 1);
}

async fn p07_what_was_not_rendered_is_looked_for_again(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let id = store.ensure(&topic("a"), at(0)).await.unwrap().id;
    let with_hash = |seconds, candidates: Vec<Candidate>, hash: &str| {
        let mut found = found(seconds, candidates);
        found.polling.body_hash = hash.to_owned();
        found
    };
    store.record(id, &with_hash(1, vec![entry(1, "a")], "a")).await.unwrap();
    // Both were thought to be known as they are when records were made.
    let unrendered = |n, text| Candidate { atom: None, ..entry(n, text) };
    for (seconds, unrendered) in [(100, unrendered(2, "b")), (300, unrendered(1, "edited"))] {
        let both = vec![entry(1, "a"), unrendered];
        let document = if seconds == 100 { both } else { both[1..].to_vec() };
        assert_eq!(store.record(id, &with_hash(seconds, document, "b")).await.unwrap().new, 0);
        let held = resource(&store, id).await;
        assert_eq!(held.polling.body_hash, "a", "what was not kept is not known");
        assert_eq!(held.next_fetch, at(seconds) + TimeDelta::seconds(61));
    }
    let rendered = vec![entry(1, "edited"), entry(2, "b")];
    let appended = store.record(id, &with_hash(400, rendered, "b")).await.unwrap();
    assert_eq!((appended.new, appended.head), (2, Seq(3)));
    assert_eq!(resource(&store, id).await.polling.body_hash, "b");
}

async fn n08_what_is_taken_back_is_no_longer_shown(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let id = store.ensure(&topic("a"), at(0)).await.unwrap().id;
    subscribe(&store, "always.test", Updates::Always, Format::Atom).await;
    subscribe(&store, "fresh.test", Updates::Fresh, Format::Atom).await;
    let mut first = found(1, vec![entry(1, "a"), entry(2, "b")]);
    first.silent = true;
    store.record(id, &first).await.unwrap();
    let deletions = |seconds, candidates| {
        let deletion = Deletion {
            id: EntryKey::from_id("urn:x:1"),
            entry_id: "urn:x:1".to_owned(),
            element: Element::default(),
            atom: Some("<at:deleted-entry/>".to_owned()),
        };
        let mut poll = found(seconds, Vec::new());
        let deletions = vec![deletion];
        let document =
            FeedDocument { at: at(seconds), candidates, deletions, ..FeedDocument::default() };
        poll.found = NewContent::Feed(document);
        poll
    };
    for seconds in [100, 200] {
        let taken_back = deletions(seconds, vec![entry(2, "b")]);
        let appended = store.record(id, &taken_back).await.unwrap();
        assert_eq!((appended.new, appended.head), (0, Seq(3)), "once");
    }
    assert_eq!(displayed(&store, id).await, [2]);
    assert_eq!(due(&store, 201).await, [("always.test:443".to_owned(), 2, 3)]);
    store.record(id, &found(300, vec![entry(1, "a"), entry(2, "b")])).await.unwrap();
    assert_eq!(displayed(&store, id).await, [4, 2], "it is back");
}

async fn n11_nodes_that_find_the_same_update_append_it_once(database: Database) {
    let (one_node, other_node) = (database.open().await, database.open().await);
    let id = one_node.ensure(&topic("a"), at(0)).await.unwrap().id;
    one_node.record(id, &found(1, vec![entry(1, "a")])).await.unwrap();
    for round in 1..10 {
        let change = found(round * 100, vec![entry(1, &format!("{round}"))]);
        let (one, other) =
            tokio::join!(one_node.record(id, &change), other_node.record(id, &change));
        assert_eq!(one.unwrap().unwrap().new + other.unwrap().unwrap().new, 1);
    }
    assert_eq!(resource(&one_node, id).await.head, Seq(10));
}

async fn n12_a_revision_is_news_if_the_body_is_another(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let id = store.ensure(&topic("a"), at(0)).await.unwrap().id;
    for (seconds, (bytes, semantics, head)) in
        (1..).zip([("A", "a", 1), ("B", "b", 2), ("A", "a", 3), ("A", "a", 3), ("A ", "a", 3)])
    {
        let mut poll = poll(at(seconds), &[]);
        poll.body = Some(Body { content_type: None, bytes: bytes.as_bytes().to_vec() });
        poll.semantic_digest = Some(Digest::from_parts(&[semantics]));
        let (entry_id, atom) = (format!("urn:sha:{semantics}"), "<entry/>".to_owned());
        poll.found = NewContent::Revision { entry_id, atom };
        assert_eq!(store.record(id, &poll).await.unwrap().head, Seq(head), "{seconds}");
    }
}

async fn p11_a_body_that_says_the_same_is_no_other(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let id = store.ensure(&topic("a"), at(0)).await.unwrap().id;
    for (seconds, (bytes, semantics, version)) in
        (1..).zip([("x", "a", 1), ("x y", "a", 1), ("x z", "b", 2), ("x z", "c", 2)])
    {
        let mut poll = poll(at(seconds), &[]);
        let body = Body { content_type: None, bytes: bytes.as_bytes().to_vec() };
        poll.body = Some(body.clone());
        poll.semantic_digest = Some(Digest::from_parts(&[semantics]));
        store.record(id, &poll).await.unwrap();
        assert_eq!(store.body(id).await.unwrap(), Some((version, body)), "the newest bytes");
        assert_eq!(resource(&store, id).await.body_version, version);
    }
}
