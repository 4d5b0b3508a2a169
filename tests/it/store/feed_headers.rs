//! The headers that an account has sent to the server of a feed.

use feedgate_core::callback_headers::CallbackHeaders;

use super::{at, few, on_both_stores, poll, request, topic};
use crate::support::claiming_store::ClaimingStore;
use crate::support::postgres::Database;

on_both_stores!(a36_headers_are_replaced_at_once_and_end_with_the_last_subscription);

async fn a36_headers_are_replaced_at_once_and_end_with_the_last_subscription(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let own = topic("a").with_own_headers("n0nce").unwrap();
    let headers = |value: &str| CallbackHeaders::parse(&format!("cookie: {value}"), "").unwrap();
    store.store_feed_headers(&own, &headers("one"), at(0)).await.unwrap();
    let mut request = request("a", "https://callback.test/");
    request.topic = own.clone();
    let id = store.subscribe(&request, at(1)).await.unwrap().id.resource;
    let mut fetched = poll(at(2), &["1"]);
    fetched.status.last_fetch = Some(at(2));
    store.record(id, &fetched).await.unwrap();
    assert_eq!(store.claim_resources(at(3), at(4), &few(1)).await.unwrap(), []);

    store.store_feed_headers(&own, &headers("one"), at(5)).await.unwrap();
    assert_eq!(store.claim_resources(at(5), at(6), &few(1)).await.unwrap(), [], "nothing changed");
    store.store_feed_headers(&own, &headers("two"), at(7)).await.unwrap();
    let due = store.claim_resources(at(7), at(8), &few(1)).await.unwrap();
    assert_eq!(due.len(), 1, "the feed is fetched with the new ones");
    assert_eq!(due[0].resource.topic.as_str(), own.as_str());
    let held = || async { store.feed_headers(id, &own).await.unwrap() };
    assert_eq!(held().await, Some(headers("two")));

    store.forget_unwatched(at(0), at(9)).await.unwrap();
    assert!(held().await.is_some(), "somebody watches");
    assert!(store.unsubscribe(None, &own, &request.callback, None).await.unwrap());
    store.forget_unwatched(at(0), at(10)).await.unwrap();
    assert_eq!(held().await, None);
    assert!(store.get(id).await.unwrap().is_some(), "the log is kept for a time");
}
