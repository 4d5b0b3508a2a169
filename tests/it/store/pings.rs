//! Pings, and the changes that are listed.

use std::time::Duration;

use feedgate_core::ping::{Ping, PingSource};
use feedgate_core::poll::Trigger;
use feedgate_core::resource::ResourceId;
use feedgate_core::topic::Topic;
use futures_util::future::join_all;

use super::changes::listed;
use super::{at, on_both_stores, poll, resource, room, subscribe};
use crate::support::claiming_store::ClaimingStore;
use crate::support::postgres::Database;

on_both_stores!(
    a_ping_makes_due_what_it_names,
    a_ping_keeps_the_spacing,
    a_ping_during_a_poll_is_answered_by_the_next,
    changes_are_pings_and_what_was_seen_without_one,
    an_address_with_a_password_is_listed_for_nobody,
    pings_that_arrive_together_are_each_listed_and_counted,
);

const SPACING: Duration = Duration::from_secs(5);

pub(super) fn ping(seconds: i64, url: &str) -> Ping {
    Ping {
        at: at(seconds),
        source: PingSource::Weblogs,
        name: "Tides".to_owned(),
        url: url.to_owned(),
        feed_url: None,
    }
}

/// A watched feed that was polled at 0 and belongs to `https://site.test/`.
async fn watched(store: &ClaimingStore) -> ResourceId {
    let id = subscribe(store, "a", "https://callback.test/").await.id.resource;
    let mut found = poll(at(0), &["1"]);
    found.site_url = Some("https://site.test/".to_owned());
    found.fetch_url = Some("https://moved.test/feed".to_owned());
    found.status.title = "A".to_owned();
    found.silent = true;
    store.record(id, &found).await.unwrap();
    id
}

async fn due(store: &ClaimingStore, seconds: i64) -> Vec<Trigger> {
    let due = store.claim_resources(at(seconds), at(seconds + 10), &room()).await.unwrap();
    due.iter().map(|due| due.trigger).collect()
}

async fn a_ping_makes_due_what_it_names(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let id = watched(&store).await;
    #[rustfmt::skip]
    let cases = [
        ("its topic",              ping(10, "https://feeds.test/a"),    1),
        ("where it is polled",     ping(20, "https://moved.test/feed"), 1),
        ("its web site",           ping(30, "http://site.test"),        1),
        ("something else",         ping(40, "https://else.test/"),      0),
        ("no address at all",      ping(50, "tides"),                   0),
        ("its feed, named apart",  Ping { feed_url: Some("https://feeds.test/a".to_owned()),
                                          ..ping(60, "https://else.test/") }, 1),
    ];
    for (why, ping, named) in cases {
        assert_eq!(store.receive(&ping, SPACING).await.unwrap(), named, "{why}");
        let seconds = (ping.at - at(0)).num_seconds();
        assert_eq!(due(&store, seconds).await, vec![Trigger::Ping; named], "{why}");
        store.record(id, &poll(at(seconds + 1), &[])).await.unwrap();
    }
    assert_eq!(store.newest_change().await.unwrap().1, 6, "every one is counted");
    assert_eq!(due(&store, 999).await, [Trigger::Schedule], "and answered once");
}

async fn a_ping_keeps_the_spacing(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let id = watched(&store).await;
    assert_eq!(store.receive(&ping(2, "https://site.test/"), SPACING).await.unwrap(), 1);
    assert_eq!(resource(&store, id).await.next_fetch, at(5));
    assert_eq!(due(&store, 4).await, []);
    assert_eq!(due(&store, 5).await, [Trigger::Ping]);
    // A ping never puts off what is due sooner.
    let mut soon = poll(at(6), &[]);
    soon.next_fetch = at(7);
    store.record(id, &soon).await.unwrap();
    store.receive(&ping(6, "https://site.test/"), SPACING).await.unwrap();
    assert_eq!(due(&store, 7).await, [Trigger::Ping]);
}

async fn a_ping_during_a_poll_is_answered_by_the_next(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let id = watched(&store).await;
    store.receive(&ping(10, "https://site.test/"), SPACING).await.unwrap();
    assert_eq!(due(&store, 10).await, [Trigger::Ping]);
    store.receive(&ping(11, "https://site.test/"), SPACING).await.unwrap();
    assert_eq!(due(&store, 12).await, [], "one poll at a time");
    store.record(id, &poll(at(13), &[])).await.unwrap();
    assert_eq!(due(&store, 17).await, []);
    assert_eq!(due(&store, 18).await, [Trigger::Ping]);
    store.record(id, &poll(at(19), &[])).await.unwrap();
    assert_eq!(due(&store, 618).await, []);

    // The taker of a pinged resource dies: its successor knows of the ping.
    store.receive(&ping(30, "https://site.test/"), SPACING).await.unwrap();
    assert_eq!(due(&store, 30).await, [Trigger::Ping]);
    assert_eq!(due(&store, 40).await, [Trigger::Ping]);
}

async fn changes_are_pings_and_what_was_seen_without_one(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let id = watched(&store).await;
    let changes = |since| {
        let store = store.clone();
        async move {
            let lines = listed(&store, at(since), at(9_999)).await.into_iter().map(|change| {
                let seconds = (change.at - at(0)).num_seconds();
                format!("{seconds} {} {} {:?}", change.name, change.url, change.feed_url)
            });
            lines.collect::<Vec<_>>()
        }
    };
    let [feed, site] = [r#"Some("https://feeds.test/a")"#, "https://site.test/"];
    let first = format!("0 A {site} {feed}");
    assert_eq!(changes(0).await.join("; "), first, "seen by a poll");

    // A ping, and the poll that it led to: one line.
    store.receive(&ping(400, site), SPACING).await.unwrap();
    due(&store, 400).await;
    let found = |seconds, entries: &[&str]| {
        let mut found = poll(at(seconds), entries);
        found.status.title = "A".to_owned();
        found
    };
    store.record(id, &found(401, &["2"])).await.unwrap();
    let second = format!("400 Tides {site} {feed}");
    assert_eq!(changes(0).await, [second.clone(), first.clone()], "newest first");

    // A poll that was quicker than the ping: one line.
    store.record(id, &found(800, &["3"])).await.unwrap();
    assert_eq!(changes(0).await.len(), 3);
    let nameless = Ping { name: String::new(), source: PingSource::RssCloud, ..ping(802, "") };
    let nameless = Ping { url: "https://feeds.test/a".to_owned(), ..nameless };
    store.receive(&nameless, SPACING).await.unwrap();
    let third = format!("802 A {site} {feed}");
    assert_eq!(changes(0).await, [third.clone(), second, first]);

    // Polls without news are no change; strangers' pings are.
    store.record(id, &found(900, &["3"])).await.unwrap();
    store.receive(&ping(901, "https://else.test/"), SPACING).await.unwrap();
    let anonymous = "901 Tides https://else.test/ None".to_owned();
    assert_eq!(changes(500).await, [anonymous.clone(), third]);
    assert_eq!(store.newest_change().await.unwrap().1, 3, "pings, not changes, are counted");
}

async fn an_address_with_a_password_is_listed_for_nobody(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let mut secret = super::request("a", "https://callback.test/");
    secret.topic = Topic::parse("https://ada:pass@feeds.test/a").unwrap();
    let id = store.subscribe(&secret, at(0)).await.unwrap().id.resource;
    let mut found = poll(at(0), &["1"]);
    found.site_url = Some("https://site.test/".to_owned());
    store.record(id, &found).await.unwrap();
    assert_eq!(listed(&store, at(0), at(999)).await, [], "what a poll saw");

    store.receive(&ping(400, "https://site.test/"), SPACING).await.unwrap();
    store.receive(&ping(401, "https://ada:pass@feeds.test/a"), SPACING).await.unwrap();
    let changes = listed(&store, at(0), at(999)).await;
    let lines: Vec<_> = changes.iter().map(|change| (&*change.url, &change.feed_url)).collect();
    assert_eq!(lines, [("https://site.test/", &None)], "only what the pinger may know");
}

async fn pings_that_arrive_together_are_each_listed_and_counted(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    watched(&store).await;
    for n in 0..40 {
        subscribe(&store, &n.to_string(), "https://callback.test/").await;
    }
    let topics = (0..40).map(|n| (ping(10, &format!("https://feeds.test/{n}")), 1));
    let unknown = (0..40).map(|n| (ping(10, &format!("https://else.test/{n}")), 0));
    let same = (0..40).map(|_| (ping(10, "https://site.test/"), 1));
    let pings: Vec<(Ping, usize)> = topics.chain(unknown).chain(same).collect();
    let received = join_all(pings.iter().map(|(ping, _)| store.receive(ping, SPACING))).await;
    for ((ping, named), received) in pings.iter().zip(received) {
        assert_eq!(received.unwrap(), *named, "{}", ping.url);
    }
    assert_eq!(store.newest_change().await.unwrap().1, 120);
    assert_eq!(listed(&store, at(0), at(99)).await.len(), 120);
    let due = due(&store, 11).await;
    assert_eq!(due.iter().filter(|trigger| **trigger == Trigger::Ping).count(), 41);
}
