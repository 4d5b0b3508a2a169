//! The lines of changes.xml, and the hours that are over.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use feedgate_core::ping::{HOUR, Ping, PingSource, TimeUnit, WeblogChange, start_of_hour};
use feedgate_core::store::{ChangeLine, ChangesWindow};
use feedgate_store::Store;

use super::{at, in_one_cell, on_both_stores, poll, subscribe};
use crate::support::postgres::Database;

on_both_stores! {
    what_came_while_somebody_reads_is_not_read,
    a_ping_with_a_zero_in_it_is_kept_without,
    s48_a_topic_with_a_token_in_it_is_not_listed,
    a_change_of_an_hour_that_is_over_stays_listed,
    hours_are_kept_without_a_gap,
}

in_one_cell! {
    an_hour_that_is_over_stays_as_it_was,
    lines_are_forgotten_once_their_hour_is_kept,
    lines_are_read_a_page_at_a_time_and_none_twice,
}

/// All lines of a stretch of time, newest first.
pub(super) async fn listed(
    store: &Arc<Store>,
    from: DateTime<Utc>,
    until: DateTime<Utc>,
) -> Vec<WeblogChange> {
    let window = ChangesWindow { from, until, newest: i64::MAX };
    let pages = pages(store, &window).await.into_iter().flatten();
    pages.map(|line| line.change).collect()
}

async fn pages(store: &Arc<Store>, window: &ChangesWindow) -> Vec<Vec<ChangeLine>> {
    let mut pages: Vec<Vec<ChangeLine>> = Vec::new();
    loop {
        let last = pages.last().and_then(|page| page.last());
        let page = store.changes(window, last).await.unwrap();
        if page.is_empty() {
            return pages;
        }
        pages.push(page);
    }
}

/// So many lines, three in each second from `at(0)` on.
async fn fill(database: &Database, lines: usize) {
    let first = at(0).timestamp_micros();
    database
        .run(&format!(
            "with recursive n (n) as (select 0 union all select n + 1 from n where n + 1 < {lines})
             insert into changes (at, source, name, url)
             select {first} + n / 3 * 1000000, 'weblogs', 'Weblog ' || n,
                    'https://site.test/' || n
               from n order by n"
        ))
        .await;
}

async fn ping(store: &Arc<Store>, seconds: i64, url: &str) {
    let (name, url) = ("Tides".to_owned(), url.to_owned());
    let ping = Ping { at: at(seconds), source: PingSource::Weblogs, name, url, feed_url: None };
    store.receive(&ping, Duration::ZERO).await.unwrap();
}

/// When the hour of `at(0)` is over, in seconds after it.
fn turn() -> i64 {
    (start_of_hour(at(0)) + HOUR - at(0)).num_seconds() + 1
}

async fn lines_are_read_a_page_at_a_time_and_none_twice(database: Database) {
    let store = database.open().await;
    fill(&database, 2_500).await;
    let window = ChangesWindow { from: at(0), until: at(10_000), newest: i64::MAX };
    let pages = pages(&store, &window).await;
    let sizes: Vec<usize> = pages.iter().map(Vec::len).collect();
    assert_eq!(sizes, [1_000, 1_000, 500], "no read asks for more");
    let read = pages.iter().flatten().map(|line| line.change.name.clone());
    let want: Vec<String> = (0..2_500).rev().map(|n| format!("Weblog {n}")).collect();
    assert!(read.eq(want), "each once, newest first");

    let some = listed(&store, at(10), at(12)).await;
    let some: Vec<&str> = some.iter().map(|change| change.name.as_str()).collect();
    assert_eq!(
        some,
        ["Weblog 35", "Weblog 34", "Weblog 33", "Weblog 32", "Weblog 31", "Weblog 30"]
    );
}

async fn a_ping_with_a_zero_in_it_is_kept_without(database: Database) {
    let store = database.open().await;
    let (name, url) = ("Ti\0des".to_owned(), "https://a.test/\0".to_owned());
    let feed_url = Some("https://a.test/\0rss".to_owned());
    let ping = Ping { at: at(1), source: PingSource::Weblogs, name, url, feed_url };
    store.receive(&ping, Duration::ZERO).await.unwrap();
    let listed = listed(&store, at(0), at(2)).await;
    let kept = listed.iter().map(|line| (line.name.as_str(), line.url.as_str()));
    assert_eq!(kept.collect::<Vec<_>>(), [("Tides", "https://a.test/")]);
    assert_eq!(listed[0].feed_url.as_deref(), Some("https://a.test/rss"));
}

async fn s48_a_topic_with_a_token_in_it_is_not_listed(database: Database) {
    let store = database.open().await;
    let secret = "a?access_token=s3cret";
    let id = subscribe(&store, secret, "https://callback.test/").await.id.resource;
    store.record(id, &poll(at(1), &["1"])).await.unwrap();
    ping(&store, 2, &format!("https://feeds.test/{secret}")).await;
    assert!(listed(&store, at(0), at(10)).await.is_empty(), "neither seen nor pinged");
    ping(&store, 3, "https://unwatched.test/?author=1").await;
    assert_eq!(listed(&store, at(0), at(10)).await.len(), 1, "what a publisher says is listed");
}

async fn what_came_while_somebody_reads_is_not_read(database: Database) {
    let store = database.open().await;
    ping(&store, 1, "https://a.test/").await;
    let (newest, count) = store.newest_change().await.unwrap();
    ping(&store, 2, "https://b.test/").await;
    let window = ChangesWindow { from: at(0), until: at(9), newest };
    let lines = store.changes(&window, None).await.unwrap();
    assert_eq!((lines.len(), count), (1, 1));
    assert_eq!(lines[0].change.url, "https://a.test/");
}

async fn an_hour_that_is_over_stays_as_it_was(database: Database) {
    let store = database.open().await;
    let hour = start_of_hour(at(0));
    fill(&database, 1_500).await;
    let id = subscribe(&store, "a", "https://callback.test/").await.id.resource;
    let mut found = poll(at(5), &["1"]);
    found.status.title = "Before".to_owned();
    store.record(id, &found).await.unwrap();
    let stood = listed(&store, hour, hour + HOUR).await;

    assert_eq!(
        store.save_hours(at(turn()), TimeUnit::Minutes).await.unwrap(),
        0,
        "not settled yet"
    );
    assert_eq!(store.hour(hour).await.unwrap(), None);
    assert_eq!(store.save_hours(at(turn() + 120), TimeUnit::Minutes).await.unwrap(), 1);
    let kept = store.hour(hour).await.unwrap().unwrap();
    assert_eq!((kept.unit, kept.parts), (TimeUnit::Minutes, 2));
    let read = async || {
        let mut lines = Vec::new();
        for part in 0..kept.parts {
            lines.extend(store.hour_part(hour, part).await.unwrap());
        }
        lines
    };
    assert_eq!(read().await, stood);

    // The resource is called otherwise, a line comes late, the setting is another.
    let mut found = poll(at(turn() + 200), &["2"]);
    found.status.title = "After".to_owned();
    store.record(id, &found).await.unwrap();
    ping(&store, 7, "https://late.test/").await;
    store.save_hours(at(turn() + 7_200), TimeUnit::Seconds).await.unwrap();
    store.prune_changes(at(turn()), None).await.unwrap();
    assert_eq!(store.hour(hour).await.unwrap(), Some(kept));
    assert_eq!(read().await, stood);
}

async fn a_change_of_an_hour_that_is_over_stays_listed(database: Database) {
    let store = database.open().await;
    let id = subscribe(&store, "a", "https://callback.test/").await.id.resource;
    store.record(id, &poll(at(turn() - 60), &["1"])).await.unwrap();
    let hour = start_of_hour(at(0));
    let before = listed(&store, hour, hour + HOUR).await;
    assert_eq!(before.len(), 1);
    ping(&store, turn() + 60, "https://feeds.test/a").await;
    assert_eq!(listed(&store, hour, hour + HOUR).await, before);
}

async fn hours_are_kept_without_a_gap(database: Database) {
    let store = database.open().await;
    assert_eq!(store.open_hour().await.unwrap(), None);
    let hour = start_of_hour(at(0));
    assert_eq!(
        store.save_hours(at(0), TimeUnit::Minutes).await.unwrap(),
        1,
        "an empty one to begin with"
    );
    assert_eq!(store.open_hour().await.unwrap(), Some(hour), "but from now on there is");
    ping(&store, 1, "https://a.test/").await;
    assert_eq!(store.save_hours(at(turn() + 3 * 3_600), TimeUnit::Minutes).await.unwrap(), 3);
    assert_eq!(store.open_hour().await.unwrap(), Some(hour + HOUR * 3));
    let parts = async |begins| store.hour(begins).await.unwrap().map(|hour| hour.parts);
    assert_eq!(parts(hour).await, Some(1));
    assert_eq!(parts(hour + HOUR).await, Some(0), "an hour in which nothing was told");
    assert_eq!(parts(hour + HOUR * 3).await, None);

    // Old ones may be forgotten; the last tells where to go on.
    store.prune_changes(at(0), Some(hour + HOUR * 9)).await.unwrap();
    assert_eq!(parts(hour).await, None);
    assert_eq!(store.open_hour().await.unwrap(), Some(hour + HOUR * 3));
}

async fn lines_are_forgotten_once_their_hour_is_kept(database: Database) {
    let store = database.open().await;
    fill(&database, 1_200).await;
    let later = at(0) + TimeDelta::days(30);
    assert_eq!(store.prune_changes(later, None).await.unwrap(), 0, "no hour of theirs is kept");
    let hour = start_of_hour(at(0));
    store.save_hours(at(turn() + 120), TimeUnit::Minutes).await.unwrap();
    ping(&store, turn() + 1, "https://a.test/").await;
    assert_eq!(store.prune_changes(later, None).await.unwrap(), 1_200);
    assert_eq!(listed(&store, hour, later).await.len(), 1, "the hour is not over");
    assert_eq!(store.hour(hour).await.unwrap().unwrap().parts, 2);
    assert_eq!(store.newest_change().await.unwrap().1, 1, "the count outlives what is counted");
}
