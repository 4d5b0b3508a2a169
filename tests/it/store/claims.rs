//! Handing out work.

use feedgate::domain::record::Seq;
use feedgate::store::{Room, Settled};

use super::{at, on_both_stores, poll, room, subscribe};
use crate::support::postgres::Database;

on_both_stores!(a_subscription_that_lags_is_handed_out, a_claim_whose_holder_vanished_ends,);

async fn a_subscription_that_lags_is_handed_out(database: Database) {
    let store = database.open().await;
    let sub = subscribe(&store, "a", "https://callback.test/").await;
    let id = sub.id.resource;
    assert_eq!(store.claim_subscriptions(at(1), at(30), &room()).await.unwrap(), []);
    store.record(id, &poll(at(2), &["one"])).await.unwrap();
    let due = store.claim_subscriptions(at(3), at(30), &room()).await.unwrap();
    assert_eq!((due.len(), due[0].owed), (1, Seq(1)));
    assert_eq!(due[0].subscription, sub);
    let done = Settled::Delivered { id: sub.id, cursor: Seq(1) };
    store.settle(&[done], at(4)).await.unwrap();
    assert_eq!(store.claim_subscriptions(at(99), at(100), &room()).await.unwrap(), []);
}

async fn a_claim_whose_holder_vanished_ends(database: Database) {
    let store = database.open().await;
    let sub = subscribe(&store, "a", "https://callback.test/").await;
    let due = store.claim_resources(at(1), at(30), &room()).await.unwrap();
    assert_eq!(due.len(), 1);
    assert_eq!(store.claim_resources(at(29), at(60), &room()).await.unwrap(), []);
    assert_eq!(store.claim_resources(at(30), at(60), &room()).await.unwrap().len(), 1);
    assert_eq!(store.claim_resource(sub.id.resource, at(31), at(60)).await.unwrap(), None);
    let none = Room { limit: 0, ..room() };
    assert_eq!(store.claim_resources(at(99), at(100), &none).await.unwrap(), []);
}
