//! What happened lately.

use std::sync::Arc;
use std::time::Duration;

use feedgate_core::account::AccountId;
use feedgate_core::event::{
    AnswerExcerpt, Event, EventFilter, EventKind, EventOutcome, EventViewer,
};
use feedgate_store::Store;

use super::{at, on_both_stores};
use crate::support::postgres::Database;

on_both_stores!(
    events_are_read_back_in_the_order_in_which_they_were_kept,
    a_filter_finds_what_the_viewer_may_see,
    t07_a_search_examines_a_bounded_number_of_events,
    each_kind_has_its_own_room,
    h01_events_of_strangers_leave_room_for_those_of_accounts,
);

fn event(seconds: i64, kind: EventKind, feed: &str) -> Event {
    Event::new(kind, at(seconds)).via("websub").about_feed(feed)
}

/// The numbers of the oldest and the newest event.
async fn numbers(store: &Arc<Store>) -> (i64, i64) {
    let numbers = store.event_numbers().await.unwrap();
    (numbers.oldest, numbers.newest)
}

async fn events_are_read_back_in_the_order_in_which_they_were_kept(database: Database) {
    let nodes = [database.open().await, database.open().await];
    assert_eq!(numbers(&nodes[0]).await, (1, 0));
    let whole = event(1, EventKind::Notify, "https://a.test/feed")
        .to("https://reader.test/cb")
        .owned_by(Some(AccountId(7)))
        .lasting(Duration::from_millis(12))
        .ended(EventOutcome::Failed, "http_5xx", "HTTP 500\0")
        .answered(&AnswerExcerpt::new(b"oops", false));
    let keeping = (0..20).map(|n| {
        let batch = vec![whole.clone(), event(n, EventKind::Ping, "https://b.test/")];
        nodes[n as usize % 2].append_events(batch)
    });
    let last = futures_util::future::join_all(keeping).await;
    assert_eq!(last.into_iter().map(Result::unwrap).max(), Some(40));

    let wanted = EventFilter { after: Some(0), limit: 30, ..EventFilter::default() };
    let first = nodes[0].events(&wanted).await.unwrap().events;
    let ids: Vec<i64> = first.iter().map(|kept| kept.id).collect();
    assert_eq!(ids, (1..=30).collect::<Vec<_>>(), "without gaps, the oldest first");
    let want = Event { detail: "HTTP 500".to_owned(), ..whole };
    assert_eq!(first[0].event, want, "all of it");

    let wanted = EventFilter { before: Some(31), limit: 2, ..EventFilter::default() };
    let page = nodes[1].events(&wanted).await.unwrap().events;
    assert_eq!(page.iter().map(|kept| kept.id).collect::<Vec<_>>(), [30, 29], "the newest first");
}

async fn a_filter_finds_what_the_viewer_may_see(database: Database) {
    let store = database.open().await;
    let own = |account| {
        event(1, EventKind::Notify, "https://a.test/100%_feed")
            .to("https://Reader.test/s3cret")
            .owned_by(account)
    };
    let others = event(2, EventKind::Ping, "https://b.test/");
    let refused = others.clone().ended(EventOutcome::Refused, "bad_url", "no");
    let batch = vec![own(Some(AccountId(7))), own(None), others, refused];
    store.append_events(batch).await.unwrap();
    let zero = EventFilter { callback: "a\0b".to_owned(), ..EventFilter::default() };
    assert!(store.events(&zero).await.unwrap().events.is_empty());

    let owner = EventViewer::Account(AccountId(7));
    let base = EventFilter::default;
    let text = str::to_owned;
    #[rustfmt::skip]
    let cases = [
        ("all",                         base(),                                                   4),
        ("a kind",                      EventFilter { kind: Some(EventKind::Ping), ..base() },              2),
        ("an outcome",                  EventFilter { outcome: Some(EventOutcome::Refused), ..base() },     1),
        ("a part of a feed",            EventFilter { feed: text("A.TEST/100%_f"), ..base() },         2),
        ("what looks like a pattern",   EventFilter { feed: text("a%test"), ..base() },                0),
        ("a host",                      EventFilter { callback: text("reader.test"), ..base() },       2),
        ("a guess at a path",           EventFilter { callback: text("s3cr"), ..base() },              0),
        ("all of it, which is known",   EventFilter { callback: text("https://Reader.test/s3cret"), ..base() }, 2),
        ("its owner finds the path",    EventFilter { callback: text("S3cr"), viewer: owner, ..base() }, 1),
        ("another does not",            EventFilter { callback: text("s3cr"), viewer: EventViewer::Account(AccountId(8)), ..base() }, 0),
        ("the operator finds all",      EventFilter { callback: text("s3cr"), viewer: EventViewer::Admin, ..base() }, 2),
        ("after",                       EventFilter { after: Some(3), ..base() },                      1),
        ("before",                      EventFilter { before: Some(2), ..base() },                     1),
    ];
    for (why, wanted, want) in cases {
        assert_eq!(store.events(&wanted).await.unwrap().events.len(), want, "{why}");
    }
}

async fn t07_a_search_examines_a_bounded_number_of_events(database: Database) {
    let store = database.open().await;
    let batch = |from: i64, count: i64| {
        let feed = |n: i64| if n == 0 { "https://rare.test/" } else { "https://b.test/" };
        (from..from + count).map(|n| event(n, EventKind::Ping, feed(n))).collect::<Vec<_>>()
    };
    for from in (0..3 * EventFilter::EXAMINED / 2).step_by(1_000) {
        store.append_events(batch(from, 1_000)).await.unwrap();
    }
    let total = 3 * EventFilter::EXAMINED / 2;
    let rare = EventFilter { feed: "rare.test".to_owned(), ..EventFilter::default() };
    let first = store.events(&rare).await.unwrap();
    assert_eq!((first.events.len(), first.next), (0, Some(total - EventFilter::EXAMINED + 1)));
    let second = store.events(&EventFilter { before: first.next, ..rare.clone() }).await.unwrap();
    assert_eq!((second.events.len(), second.next), (1, None));

    let newest = EventFilter { feed: "b.test".to_owned(), after: Some(1), ..rare };
    let mut seen = 1;
    let mut filter = newest;
    loop {
        let page = store.events(&EventFilter { limit: 7_000, ..filter.clone() }).await.unwrap();
        seen += page.events.len() as i64;
        let Some(next) = page.next else { break };
        filter.after = Some(next);
    }
    assert_eq!(seen, total, "each is found once");

    let all = store.events(&EventFilter { limit: 5, ..EventFilter::default() }).await.unwrap();
    assert_eq!((all.events.len(), all.next), (5, Some(total - 4)));
}

async fn each_kind_has_its_own_room(database: Database) {
    let store = database.open().await;
    let pings = (0..1_200).map(|n| event(n, EventKind::Ping, "https://b.test/")).collect();
    store.append_events(vec![event(0, EventKind::Drop, "https://a.test/")]).await.unwrap();
    store.append_events(pings).await.unwrap();
    assert_eq!(store.trim_events(at(0), 10).await.unwrap(), 1_190, "a flood of pings");
    let all = store.events(&EventFilter::default()).await.unwrap().events;
    assert_eq!(all.iter().filter(|kept| kept.event.kind == EventKind::Drop).count(), 1);
    assert_eq!(all[0].id, 1_201, "the newest stay");
    assert_eq!(store.trim_events(at(1_195), 10).await.unwrap(), 6, "and what is old goes");
    store.trim_events(at(9_999), 10).await.unwrap();
    assert_eq!(numbers(&store).await, (1_202, 1_201), "the next would be the oldest");
    let last = store.append_events(vec![event(1, EventKind::Ping, "x")]).await.unwrap();
    assert_eq!(last, 1_202, "no number is given twice");
    assert_eq!(numbers(&store).await, (1_202, 1_202));
}

async fn h01_events_of_strangers_leave_room_for_those_of_accounts(database: Database) {
    const MOST: usize = 10;
    let store = database.open().await;
    let told = |n: i64, owner| event(n, EventKind::Notify, "https://a.test/").owned_by(owner);
    let counts = async || {
        let filter = EventFilter { limit: 1_000, ..EventFilter::default() };
        let all = store.events(&filter).await.unwrap().events;
        let owned = all.iter().filter(|kept| kept.event.account.is_some()).count();
        (owned, all.len() - owned)
    };
    store.append_events((0..20).map(|n| told(n, None)).collect()).await.unwrap();
    store.trim_events(at(0), MOST).await.unwrap();
    assert_eq!(counts().await, (0, 10), "strangers have what nobody else uses");
    store.append_events((0..3).map(|n| told(n, Some(AccountId(7)))).collect()).await.unwrap();
    store.append_events((0..2_000).map(|n| told(n, None)).collect()).await.unwrap();
    store.trim_events(at(0), MOST).await.unwrap();
    assert_eq!(counts().await, (3, 7), "a flood leaves what is others'");
    store.append_events((0..20).map(|n| told(n, Some(AccountId(7)))).collect()).await.unwrap();
    store.trim_events(at(0), MOST).await.unwrap();
    assert_eq!(counts().await, (5, 5), "and both have a half");
}
