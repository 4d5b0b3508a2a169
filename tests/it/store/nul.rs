//! U+0000 in texts that no type has checked, such as those of a document: both databases store
//! the same in its place.

use feedgate_core::poll::Poll;
use feedgate_core::ports::SubscriptionFilter;

use super::{at, on_both_stores, poll, resource, subscribe};
use crate::support::postgres::Database;

on_both_stores!(a_text_is_stored_with_a_replacement, a_filter_with_u0000_finds_nothing);

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
