//! Changes of the options of subscriptions.

use feedgate_core::account::AccountId;
use feedgate_core::store::ListedSubscription;
use feedgate_core::subscription::{Format, SubscriptionRequest};

use super::{at, on_both_stores, request, resource};
use crate::support::postgres::Database;

on_both_stores!(a02_a_change_renews_what_there_is_and_creates_nothing);

async fn a02_a_change_renews_what_there_is_and_creates_nothing(database: Database) {
    let store = database.open().await;
    let wished = SubscriptionRequest {
        account: Some(AccountId(7)),
        ..request("a", "https://callback.test/")
    };
    let made = store.subscribe(&wished, at(0)).await.unwrap();
    let sanitized = |held: &ListedSubscription| {
        let request = held.subscription.to_request();
        Ok::<_, &str>(SubscriptionRequest { is_sanitized: true, ..request })
    };
    let in_json = |held: &ListedSubscription| {
        let request = held.subscription.to_request();
        Ok::<_, &str>(SubscriptionRequest { format: Format::Json, ..request })
    };
    let (one, other) = tokio::join!(
        store.change_subscription(made.id, sanitized, at(1)),
        store.change_subscription(made.id, in_json, at(1)),
    );
    assert_eq!((one.unwrap(), other.unwrap()), (Ok(true), Ok(true)));
    let held = store.listed(made.id).await.unwrap().unwrap().subscription;
    assert_eq!((held.is_sanitized, held.format), (true, Format::Json), "both changes stay");
    let refused = store.change_subscription(made.id, |_| Err("refused"), at(2)).await.unwrap();
    assert_eq!(refused, Err("refused"));

    let (topic, callback) = (&wished.topic, &wished.callback);
    assert!(store.unsubscribe(wished.account, topic, callback, None).await.unwrap());
    let late = store.change_subscription(made.id, in_json, at(3)).await.unwrap();
    assert_eq!(late, Ok(false));
    assert!(store.listed(made.id).await.unwrap().is_none());
    assert_eq!(resource(&store, made.id.resource).await.subscribers, 0);
}
