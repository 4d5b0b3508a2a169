//! The number of subscriptions of an account, and of the callbacks of a host.

use feedgate_core::account::AccountId;
use feedgate_core::subscription::SubscriptionOwner;

use super::{at, on_both_stores, request};
use crate::support::postgres::Database;

on_both_stores!(
    s30_open_subscriptions_are_counted_by_the_host_of_their_callback,
    s44_subscriptions_of_an_account_are_counted,
);

fn host(name: &str) -> SubscriptionOwner {
    SubscriptionOwner::CallbackHost(name.to_owned())
}

async fn s30_open_subscriptions_are_counted_by_the_host_of_their_callback(database: Database) {
    let store = database.open().await;
    let own = host("callback.test");
    assert_eq!(store.count_owned(&own).await.unwrap(), 0);
    for n in 0..20 {
        let request = request(&n.to_string(), "https://callback.test/");
        store.subscribe(&request, at(0)).await.unwrap();
    }
    let other_port = request("1", "https://callback.test:8443/");
    let renewed = request("2", "https://callback.test/");
    let other_host = request("3", "https://a.callback.test/");
    for request in [&other_port, &renewed, &other_host] {
        store.subscribe(request, at(1)).await.unwrap();
    }
    assert_eq!(store.count_owned(&own).await.unwrap(), 21);
    assert_eq!(store.count_owned(&host("a.callback.test")).await.unwrap(), 1);

    for request in [&other_port, &other_port, &other_host] {
        let protocol = Some(request.protocol.as_str());
        store.unsubscribe(None, &request.topic, &request.callback, protocol).await.unwrap();
    }
    assert_eq!(store.count_owned(&own).await.unwrap(), 20);
    assert_eq!(store.count_owned(&host("a.callback.test")).await.unwrap(), 0);
    let mut dropped = Vec::new();
    // Each call ends those of one cell.
    while let ended @ [_, ..] = &*store.drop_expired(at(3_600)).await.unwrap() {
        dropped.extend_from_slice(ended);
    }
    assert_eq!(dropped.len(), 19, "one was renewed");
    assert_eq!(store.count_owned(&own).await.unwrap(), 1);
}

async fn s44_subscriptions_of_an_account_are_counted(database: Database) {
    let store = database.open().await;
    let account = SubscriptionOwner::Account(AccountId(7));
    for n in 0..20 {
        let mut request = request(&n.to_string(), &format!("https://{n}.test/"));
        request.account = Some(AccountId(7));
        store.subscribe(&request, at(0)).await.unwrap();
    }
    store.subscribe(&request("1", "https://1.test/"), at(0)).await.unwrap();
    assert_eq!(store.count_owned(&account).await.unwrap(), 20);
    assert_eq!(store.count_owned(&host("1.test")).await.unwrap(), 1);
    assert_eq!(store.count_owned(&SubscriptionOwner::Account(AccountId(8))).await.unwrap(), 0);
}
