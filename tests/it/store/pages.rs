//! Pages of logs: where they are cut, what their records go by, and how they are dropped.

use std::sync::Arc;
use std::time::Duration;

use feedgate_core::change_detection::Candidate;
use feedgate_core::host_groups::HostGroups;
use feedgate_core::page::{ArchiveRetention, ArchivedId, LocatedPage, Page, PageLimits};
use feedgate_core::poll::{NewContent, Poll};
use feedgate_core::record::{Digest, RecordKind, Seq};
use feedgate_core::resource::{ResourceId, ResourceKind};
use feedgate_core::store::{DeliveryOutcome, StoreError};
use feedgate_feed::Body;
use feedgate_store::Store;

use super::{at, document, on_both_stores, poll, request, resource, room, subscribe, topic};
use crate::support::claiming_store::ClaimingStore;
use crate::support::postgres::Database;

on_both_stores!(
    logs_are_cut_when_records_are_appended_and_never_again,
    no_two_records_go_by_one_id_in_an_archive,
    old_pages_are_dropped_whole_and_what_was_in_them_is_no_news,
    what_somebody_is_owed_is_not_dropped,
    h17_what_a_lease_that_is_renewed_late_is_owed_is_not_dropped,
);

const DAY: i64 = 86_400;

/// Opens `database` with pages of so many records and bytes.
async fn open(database: &Database, records: i64, bytes: i64) -> Arc<Store> {
    database.open_cut(HostGroups::new(Duration::ZERO), PageLimits { records, bytes }).await
}

/// A poll that finds entries of these lengths.
fn of_lengths(second: i64, lengths: &[usize]) -> Poll {
    let mut poll = poll(at(second), &[]);
    let candidate = |(n, length): (usize, &usize)| {
        // Half of the characters take two bytes.
        let text = "é".repeat(length / 2) + &"x".repeat(length % 2);
        Candidate::of_id(&format!("urn:{second}:{n}"), text)
    };
    poll.found = document(poll.at, lengths.iter().enumerate().map(candidate).collect());
    poll
}

/// The pages that are kept, oldest first.
async fn pages(store: &Arc<Store>, id: ResourceId) -> Vec<Page> {
    let newest = store.page(id, None).await.unwrap().unwrap();
    let mut pages = Vec::new();
    for number in newest.oldest..=newest.newest {
        let held = store.page(id, Some(number)).await.unwrap().unwrap();
        assert_eq!((held.oldest, held.newest), (newest.oldest, newest.newest));
        assert_eq!(held.is_archived(), number < newest.newest);
        let records = store.read_page(id, &held.page).await.unwrap();
        let seqs: Vec<_> = records.iter().map(|archived| archived.record.seq.0).collect();
        assert_eq!(seqs, (held.page.first.0..=held.page.last.0).collect::<Vec<_>>());
        let bytes: usize = records.iter().map(|archived| archived.record.atom.len()).sum();
        assert_eq!(held.page.bytes, bytes as i64);
        assert_eq!(records.first().map(|archived| archived.record.at), Some(held.page.begun_at));
        assert_eq!(records.last().map(|archived| archived.record.at), Some(held.page.ended_at));
        pages.push(held.page);
    }
    pages
}

async fn logs_are_cut_when_records_are_appended_and_never_again(database: Database) {
    let store = open(&database, 3, 100).await;
    let id = store.ensure(&topic("a"), at(0)).await.unwrap().id;
    assert_eq!(store.page(id, None).await.unwrap(), Some(LocatedPage::EMPTY));
    assert_eq!(store.page(id, Some(1)).await.unwrap(), Some(LocatedPage::EMPTY));
    assert_eq!(store.page(id, Some(2)).await.unwrap(), None);
    assert_eq!(store.read_page(id, &Page::EMPTY).await.unwrap(), []);

    // By records, by bytes, and one that is longer than a page.
    store.record(id, &of_lengths(1, &[10, 10])).await.unwrap();
    store.record(id, &of_lengths(2, &[10, 60, 40, 1, 101, 1])).await.unwrap();
    store.record(id, &of_lengths(3, &[])).await.unwrap();
    let cut = |pages: &[Page]| pages.iter().map(|p| (p.first.0, p.last.0)).collect::<Vec<_>>();
    let before = pages(&store, id).await;
    assert_eq!(cut(&before), [(1, 3), (4, 5), (6, 6), (7, 7), (8, 8)]);

    // Other settings hold for what comes.
    let store = open(&database, 2, 1_000).await;
    store.record(id, &of_lengths(4, &[500, 1, 1, 1])).await.unwrap();
    let after = pages(&store, id).await;
    assert_eq!(cut(&after)[4..], [(8, 9), (10, 11), (12, 12)]);
    assert_eq!(after[..4], before[..4]);
    for number in [0, -1, 8, i64::MAX] {
        assert_eq!(store.page(id, Some(number)).await.unwrap(), None, "{number}");
    }
}

/// Entry `n` with a text.
fn entry(n: u32, text: &str) -> Candidate {
    let id = format!("urn:x:{n}");
    let atom = format!("<entry><id>{id}</id>{text}</entry>");
    Candidate { digest: Digest::from_parts(&[text]), ..Candidate::of_id(&id, atom) }
}

fn found(second: i64, candidates: Vec<Candidate>) -> Poll {
    let mut poll = poll(at(second), &[]);
    poll.kind = Some(ResourceKind::Feed);
    poll.found = document(at(second), candidates);
    poll
}

/// A resource that is no feed says something.
fn says(second: i64, text: &str) -> Poll {
    let mut poll = poll(at(second), &[]);
    poll.body = Some(Body { content_type: None, bytes: text.as_bytes().to_vec() });
    let atom = format!("<entry><id>urn:{text}</id></entry>");
    poll.found = NewContent::Revision { entry_id: format!("urn:{text}"), atom };
    poll
}

async fn no_two_records_go_by_one_id_in_an_archive(database: Database) {
    let store = open(&database, 2, 1_000).await;
    let id = store.ensure(&topic("a"), at(0)).await.unwrap().id;
    store.record(id, &found(0, vec![entry(1, "a"), entry(2, "a")])).await.unwrap();
    store.record(id, &found(DAY, vec![entry(1, "b"), entry(2, "a"), entry(3, "a")])).await.unwrap();
    store.record(id, &found(2 * DAY, vec![entry(1, "c"), entry(2, "a")])).await.unwrap();
    let source = |n: u32| Some(ArchivedId::Source(format!("urn:x:{n}")));
    let mut got = Vec::new();
    for page in pages(&store, id).await {
        let records = store.read_page(id, &page).await.unwrap();
        // Records that were read without their archive ids have the same.
        let plain: Vec<_> = records.iter().rev().map(|archived| archived.record.clone()).collect();
        let again = store.archived(id, plain).await.unwrap();
        assert!(again.iter().eq(records.iter().rev()), "{again:?}");
        for archived in records {
            let of = archived.record.entry_id.clone();
            got.push((of, archived.record.kind, archived.is_again, archived.replaces));
        }
    }
    let (new, update) = (RecordKind::New, RecordKind::Update);
    let entry_id = |n: u32| format!("urn:x:{n}");
    let want = [
        (entry_id(1), new, false, None),
        (entry_id(2), new, false, None),
        (entry_id(1), update, true, source(1)),
        (entry_id(3), new, false, None),
        (entry_id(1), update, true, Some(ArchivedId::Own(Seq(3)))),
    ];
    assert_eq!(got, want);

    let page = store.ensure(&topic("b"), at(0)).await.unwrap().id;
    for (second, text) in (1..).zip(["x", "y", "x", "y"]) {
        store.record(page, &says(second, text)).await.unwrap();
    }
    let mut again = Vec::new();
    for number in [1, 2] {
        let held = store.page(page, Some(number)).await.unwrap().unwrap();
        let records = store.read_page(page, &held.page).await.unwrap();
        again.extend(records.into_iter().map(|archived| archived.is_again));
    }
    assert_eq!(again, [false, false, true, true], "rule N12");
}

async fn old_pages_are_dropped_whole_and_what_was_in_them_is_no_news(database: Database) {
    let store = open(&database, 2, 1_000).await;
    let id = store.ensure(&topic("a"), at(0)).await.unwrap().id;
    for day in 0..4 {
        let entries = (1..=2 * day + 2).map(|n| entry(n, "a")).collect();
        store.record(id, &found(i64::from(day) * DAY, entries)).await.unwrap();
    }
    store.record(id, &found(4 * DAY, vec![entry(9, "a")])).await.unwrap();
    let all = ArchiveRetention::default();
    assert_eq!(store.drop_pages(&all, at(100 * DAY)).await.unwrap(), 0);

    let two_days = ArchiveRetention { days: Some(2), pages: None };
    let first = store.page(id, Some(1)).await.unwrap().unwrap().page;
    assert_eq!(store.drop_pages(&two_days, at(2 * DAY + 1)).await.unwrap(), 1);
    // Who found it before must not publish it for ever without its records.
    let dropped = store.read_page(id, &first).await;
    assert!(matches!(dropped, Err(StoreError::Corrupt(_))), "{dropped:?}");
    assert_eq!(store.drop_pages(&two_days, at(2 * DAY + 1)).await.unwrap(), 0);
    let kept = pages(&store, id).await;
    assert_eq!((kept[0].number, kept[0].first), (2, Seq(3)));
    assert_eq!(store.page(id, Some(1)).await.unwrap(), None);
    assert_eq!(store.oldest_page(id).await.unwrap(), 2);

    let newest = ArchiveRetention { days: None, pages: Some(1) };
    assert_eq!(store.drop_pages(&newest, at(0)).await.unwrap(), 3);
    assert_eq!(store.drop_pages(&two_days, at(100 * DAY)).await.unwrap(), 0, "the newest stays");
    let records = store.read_after(id, Seq::NONE, 100).await.unwrap();
    assert_eq!(records.iter().map(|record| record.seq).collect::<Vec<_>>(), [Seq(9)]);

    // What was dropped is known still; an update of it has nothing to name (rule N6).
    let entries = vec![entry(1, "a"), entry(2, "b"), entry(10, "a")];
    let appended = store.record(id, &found(5 * DAY, entries)).await.unwrap().unwrap();
    assert_eq!((appended.head, appended.new), (Seq(11), 2));
    let held = store.page(id, None).await.unwrap().unwrap();
    assert_eq!((held.page.number, held.page.first, held.page.last), (6, Seq(11), Seq(11)));
    let held = store.page(id, Some(5)).await.unwrap().unwrap();
    let update = &store.read_page(id, &held.page).await.unwrap()[1];
    assert_eq!(update.record.predecessor, Some(Seq(2)));
    assert_eq!((update.is_again, &update.replaces), (true, &None));
    assert_eq!(resource(&store, id).await.head, Seq(11));
}

async fn what_somebody_is_owed_is_not_dropped(database: Database) {
    let store = open(&database, 1, 1_000).await;
    let id = store.ensure(&topic("a"), at(0)).await.unwrap().id;
    let held = subscribe(&store, "a", "https://callback.test/").await;
    let other = subscribe(&store, "a", "https://callback.test/other").await;
    store.record(id, &poll(at(1), &["one", "two"])).await.unwrap();
    store.record(id, &poll(at(2), &["one", "two", "three"])).await.unwrap();
    let newest = ArchiveRetention { days: None, pages: Some(1) };
    assert_eq!(store.drop_pages(&newest, at(9)).await.unwrap(), 0, "all is owed to both");
    let request = request("a", "https://callback.test/other");
    store.unsubscribe(None, &request.topic, &request.callback, None).await.unwrap();
    assert_eq!(store.drop_pages(&newest, at(9)).await.unwrap(), 0, "{other:?} has ended");
    store.pause(held.id, at(9)).await.unwrap();
    assert_eq!(store.drop_pages(&newest, at(9)).await.unwrap(), 0, "a pause ends some time");
    store.resume(held.id, at(9)).await.unwrap();

    let claiming = ClaimingStore::new(store.clone());
    claiming.claim_subscriptions(at(9), at(60), &room()).await.unwrap();
    let told = (held.id, DeliveryOutcome::Delivered { cursor: Seq(1), status: 0 });
    claiming.record_deliveries(&[told], at(10)).await.unwrap();
    assert_eq!(store.drop_pages(&newest, at(10)).await.unwrap(), 1, "the first was brought");

    claiming.claim_subscriptions(at(60), at(120), &room()).await.unwrap();
    claiming
        .record_deliveries(&[(held.id, DeliveryOutcome::Failed { retry_at: None })], at(61))
        .await
        .unwrap();
    assert_eq!(store.drop_pages(&newest, at(61)).await.unwrap(), 0, "it waits to be tried again");
}

/// Rule D9: a subscription that is renewed after its end continues where it stopped.
async fn h17_what_a_lease_that_is_renewed_late_is_owed_is_not_dropped(database: Database) {
    let store = open(&database, 1, 1_000).await;
    let id = store.ensure(&topic("a"), at(0)).await.unwrap().id;
    subscribe(&store, "a", "https://callback.test/").await;
    store.record(id, &poll(at(1), &["one", "two"])).await.unwrap();
    store.record(id, &poll(at(2), &["one", "two", "three"])).await.unwrap();
    assert_eq!(store.drop_expired(at(4_000)).await.unwrap().len(), 1);
    let newest = ArchiveRetention { days: None, pages: Some(1) };
    assert_eq!(store.drop_pages(&newest, at(4_001)).await.unwrap(), 0, "it may come back");
    assert_eq!(store.oldest_seq(id).await.unwrap(), Seq(1));
    let renewed = request("a", "https://callback.test/");
    let renewed = store.subscribe(&renewed, at(4_002)).await.unwrap();
    assert!(renewed.cursor < Seq(3), "{renewed:?}");
    let listed = store.listed(renewed.id).await.unwrap().unwrap();
    assert_eq!(listed.begun_after, renewed.cursor, "so does a stream");
    store.drop_expired(at(9_000)).await.unwrap();
    assert_eq!(store.drop_pages(&newest, at(9_000 + 8 * DAY)).await.unwrap(), 2);
    assert_eq!(store.oldest_seq(id).await.unwrap(), Seq(3));
}
