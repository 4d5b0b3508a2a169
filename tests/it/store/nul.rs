//! Texts that no type has checked, such as those of a document: both databases store the same in
//! place of U+0000, and no text is read as SQL.

use feedgate_core::poll::Poll;
use feedgate_core::store::SubscriptionFilter;

use super::{at, on_both_stores, poll, resource, subscribe};
use crate::support::postgres::Database;

on_both_stores!(
    a_text_is_stored_with_a_replacement,
    a_filter_with_u0000_finds_nothing,
    s43_values_are_never_read_as_sql,
);

async fn a_text_is_stored_with_a_replacement(database: Database) {
    let store = database.open().await;
    let id = subscribe(&store, "a", "https://callback.test/").await.id.resource;
    let found = Poll { site_url: Some("https://a.test/\0".to_owned()), ..poll(at(1), &["1"]) };
    store.record(id, &found).await.unwrap();
    assert_eq!(resource(&store, id).await.head.0, 1);
    let sites = database.texts("select site_url from resources").await;
    assert_eq!(sites, ["https://a.test/\u{fffd}"]);
}

async fn a_filter_with_u0000_finds_nothing(database: Database) {
    let store = database.open().await;
    subscribe(&store, "a", "https://callback.test/").await;
    for topic in ["https://feeds.test/a", "https://feeds.test/a\0"] {
        let filter = SubscriptionFilter {
            topic: Some(topic.to_owned()),
            limit: 10,
            ..SubscriptionFilter::default()
        };
        let want = usize::from(!topic.contains('\0'));
        assert_eq!(store.list(&filter).await.unwrap().0.len(), want, "{topic:?}");
        assert_eq!(store.find(topic).await.unwrap().is_some(), want == 1, "{topic:?}");
    }
}

async fn s43_values_are_never_read_as_sql(database: Database) {
    let store = database.open().await;
    let id = subscribe(&store, "a", "https://callback.test/").await.id.resource;
    let values = [
        "' or '1'='1",
        "x'; drop table resources; --",
        "\\' or 1=1 --",
        "$1",
        "{number}",
        "\" or \"\"=\"",
        "%",
        "_",
    ];
    for value in values {
        let by_topic = SubscriptionFilter { topic: Some(value.to_owned()), ..filter() };
        let by_callback = SubscriptionFilter { callback: Some(value.to_owned()), ..filter() };
        for filter in [by_topic, by_callback] {
            assert_eq!(store.list(&filter).await.unwrap().0, [], "{value}");
        }
        assert_eq!(store.find(value).await.unwrap(), None, "{value}");
        let found = Poll { site_url: Some(value.to_owned()), ..poll(at(1), &["1"]) };
        store.record(id, &found).await.unwrap();
        assert_eq!(database.texts("select site_url from resources").await, [value]);
    }
    assert_eq!(store.list(&filter()).await.unwrap().0.len(), 1);
}

fn filter() -> SubscriptionFilter {
    SubscriptionFilter { limit: 10, ..SubscriptionFilter::default() }
}
