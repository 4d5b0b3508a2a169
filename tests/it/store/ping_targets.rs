//! Ping targets that have to be notified of changes.

use std::sync::Arc;

use feedgate_core::ping_forwarding::{DuePing, PingForwarding, PingTarget};
use feedgate_store::Store;
use url::Url;

use super::{at, on_both_stores, poll, subscribe};
use crate::support::postgres::Database;

on_both_stores!(
    a_change_is_owed_to_every_sink_until_it_is_told,
    a_change_during_a_ping_is_told_of_again,
    a_first_poll_and_one_without_news_are_no_change,
);

const TARGETS: [&str; 2] = ["xml-rpc=https://one.test/RPC2", "get=https://two.test/"];

async fn open(database: &Database) -> Arc<Store> {
    let targets = TARGETS.iter().map(|name| PingTarget::parse(name).unwrap()).collect();
    let prefixes = vec![Url::parse("https://feeds.test/a").unwrap()];
    database.open_telling(PingForwarding { targets, prefixes }).await
}

async fn due(store: &Arc<Store>, target: &str, seconds: i64) -> Vec<DuePing> {
    store.claim_forwarded_pings(target, at(seconds), at(seconds + 100), 9).await.unwrap()
}

async fn a_change_is_owed_to_every_sink_until_it_is_told(database: Database) {
    let store = open(&database).await;
    for (topic, seconds) in [("a", 1), ("b", 2)] {
        let id = subscribe(&store, topic, "https://callback.test/").await.id.resource;
        let mut found = poll(at(seconds), &["1"]);
        found.status.title = "Tides".to_owned();
        found.site_url = Some("https://site.test/".to_owned());
        store.record(id, &found).await.unwrap();
    }
    assert_eq!(store.gauges(at(10)).await.unwrap().oldest_due.forwarded_pings_s, 9);
    for target in TARGETS {
        let owed = due(&store, target, 10).await;
        let [owed] = owed.as_slice() else { panic!("{target}: {owed:?}") };
        let told = (owed.target.as_str(), owed.name.as_str(), owed.url.as_str());
        assert_eq!(told, (target, "Tides", "https://site.test/"));
        assert_eq!(owed.feed_url, "https://feeds.test/a", "nobody prefixes for the other");
        assert_eq!(due(&store, target, 20).await, [], "one at a time");

        // In vain, twice; whoever had it last may have died.
        store.finish_forwarded_ping(owed, Some(at(60)), at(21)).await.unwrap();
        assert_eq!(due(&store, target, 59).await, []);
        assert_eq!(due(&store, target, 60).await[0].attempts, 1);
        let again = due(&store, target, 160).await;
        store.finish_forwarded_ping(&again[0], None, at(161)).await.unwrap();
        assert_eq!(due(&store, target, 9_999).await, []);
    }
}

async fn a_change_during_a_ping_is_told_of_again(database: Database) {
    let store = open(&database).await;
    let id = subscribe(&store, "a", "https://callback.test/").await.id.resource;
    store.record(id, &poll(at(1), &["1"])).await.unwrap();
    let told = due(&store, TARGETS[0], 2).await.remove(0);
    let mut found = poll(at(3), &["2"]);
    found.status.title = "Waves".to_owned();
    store.record(id, &found).await.unwrap();
    assert_eq!(due(&store, TARGETS[0], 4).await, [], "somebody is on it");
    store.finish_forwarded_ping(&told, None, at(5)).await.unwrap();
    let again = due(&store, TARGETS[0], 6).await.remove(0);
    assert_eq!((again.name.as_str(), again.attempts), ("Waves", 0));
    store.finish_forwarded_ping(&again, None, at(7)).await.unwrap();
    assert_eq!(due(&store, TARGETS[0], 9_999).await, []);

    // A target nobody names any more is owed nothing.
    let known: Vec<String> = TARGETS[..1].iter().map(|name| (*name).to_owned()).collect();
    assert_eq!(store.forget_other_targets(&known).await.unwrap(), 1);
    assert_eq!(due(&store, TARGETS[1], 9_999).await, []);
}

async fn a_first_poll_and_one_without_news_are_no_change(database: Database) {
    let store = open(&database).await;
    let id = subscribe(&store, "a", "https://callback.test/").await.id.resource;
    let mut first = poll(at(1), &["1"]);
    first.silent = true;
    store.record(id, &first).await.unwrap();
    store.record(id, &poll(at(2), &["1"])).await.unwrap();
    assert_eq!(due(&store, TARGETS[0], 3).await, []);
    store.record(id, &poll(at(4), &["1", "2"])).await.unwrap();
    assert_eq!(due(&store, TARGETS[0], 5).await.len(), 1);
}
