//! Recorded attempts to deliver.

use std::sync::Arc;
use std::time::Duration;

use feedgate_core::attempt::{
    AttemptVerdict, AttemptedRequest, DeliveryAttempt, HeaderLine, PayloadContent,
    RecordedResponse, StoredAttempt,
};
use feedgate_core::record::Seq;
use feedgate_core::store::{AttemptRange, AttemptRetention, DeliveryOutcome};
use feedgate_core::subscription::{Subscription, SubscriptionId};
use feedgate_store::Store;

use super::{at, on_both_stores, poll, room, subscribe};
use crate::support::claiming_store::ClaimingStore;
use crate::support::postgres::Database;

on_both_stores!(
    an_attempt_is_read_back_as_it_was_recorded,
    attempts_are_read_in_pages_newest_first,
    c08_the_attempts_to_send_a_record_are_found,
    of_each_subscription_the_newest_attempts_are_kept,
    old_attempts_and_those_above_the_bound_are_trimmed,
    attempts_end_with_their_subscription,
    attempts_lock_nothing_that_a_delivery_waits_for,
);

/// The newest attempts, as many as a test has.
const ALL: AttemptRange = AttemptRange { before: None, limit: 10_000 };

/// An attempt of a subscription that was accepted.
pub(super) fn attempt(subscription: SubscriptionId, seconds: i64) -> DeliveryAttempt {
    DeliveryAttempt {
        subscription,
        at: at(seconds),
        took: Duration::from_micros(12_345),
        request: AttemptedRequest {
            content: PayloadContent::Entries,
            first: Seq(3),
            last: Seq(7),
            entries: 4,
            body_bytes: 2_048,
            content_type: "application/atom+xml".to_owned(),
            headers: vec![line("webhook-id", "1-1-3-7"), line("x-hub-signature", "sha256=00")],
        },
        response: Some(RecordedResponse {
            status: 202,
            headers: vec![line("server", "caf\u{e9}\0")],
            body: vec![0, 159, 255],
            is_public: true,
        }),
        error: String::new(),
        verdict: AttemptVerdict::Delivered,
        code: "ok".to_owned(),
        next_attempt_at: None,
    }
}

fn line(name: &str, value: &str) -> HeaderLine {
    HeaderLine { name: name.to_owned(), value: value.to_owned() }
}

async fn all(store: &Arc<Store>, id: SubscriptionId) -> Vec<StoredAttempt> {
    store.attempts(id, ALL).await.unwrap()
}

/// How many attempts of a subscription are stored.
async fn count(store: &Arc<Store>, id: SubscriptionId) -> usize {
    all(store, id).await.len()
}

async fn an_attempt_is_read_back_as_it_was_recorded(database: Database) {
    let store = database.open().await;
    let id = subscribe(&store, "a", "https://callback.test/").await.id;
    let delivered = attempt(id, 2);
    let failed = DeliveryAttempt {
        response: None,
        error: "the callback closed the connection".to_owned(),
        verdict: AttemptVerdict::Failed,
        code: "unreachable".to_owned(),
        next_attempt_at: Some(at(12)),
        ..attempt(id, 1)
    };
    let attempts = vec![failed.clone(), delivered.clone()];
    assert_eq!(store.append_attempts(attempts, 9).await.unwrap(), 2);
    let stored = all(&store, id).await;
    let found: Vec<_> = stored.iter().map(|stored| stored.attempt.clone()).collect();
    assert_eq!(found, [delivered, failed], "the newest first");
    let one = store.attempt(id, stored[1].id).await.unwrap();
    assert_eq!(one.as_ref(), Some(&stored[1]));

    let other = subscribe(&store, "a", "https://other.test/").await.id;
    assert_eq!(store.attempt(other, stored[1].id).await.unwrap(), None, "of another");
    assert_eq!(all(&store, other).await, []);
}

async fn attempts_are_read_in_pages_newest_first(database: Database) {
    let store = database.open().await;
    let id = subscribe(&store, "a", "https://callback.test/").await.id;
    for seconds in 0..5 {
        store.append_attempts(vec![attempt(id, seconds)], 9).await.unwrap();
    }
    let (mut before, mut read) = (None, Vec::new());
    loop {
        let page = store.attempts(id, AttemptRange { before, limit: 2 }).await.unwrap();
        let Some(last) = page.last() else { break };
        before = Some(last.id);
        read.extend(page.iter().map(|stored| stored.attempt.at));
    }
    assert_eq!(read, [4, 3, 2, 1, 0].map(at));
}

async fn c08_the_attempts_to_send_a_record_are_found(database: Database) {
    let store = database.open().await;
    let id = subscribe(&store, "a", "https://callback.test/").await.id;
    let other = subscribe(&store, "a", "https://other.test/").await.id;
    let sent = |id, seconds, (content, first, last)| {
        let attempt = attempt(id, seconds);
        let request =
            AttemptedRequest { content, first: Seq(first), last: Seq(last), ..attempt.request };
        DeliveryAttempt { request, ..attempt }
    };
    let entries = |first, last| (PayloadContent::Entries, first, last);
    let attempts = vec![
        sent(id, 1, entries(1, 4)),
        sent(id, 2, (PayloadContent::Body, 1, 9)),
        sent(other, 3, entries(4, 4)),
        sent(id, 4, entries(5, 5)),
        sent(id, 5, entries(4, 9)),
    ];
    store.append_attempts(attempts, 100).await.unwrap();
    for (seq, limit, want) in [(4, 9, &[5, 1][..]), (4, 1, &[5]), (3, 9, &[1]), (10, 9, &[])] {
        let found = store.attempts_to_send(id, Seq(seq), limit).await.unwrap();
        let times: Vec<_> = found.iter().map(|stored| stored.attempt.at).collect();
        assert_eq!(times, want.iter().map(|second| at(*second)).collect::<Vec<_>>(), "{seq}");
    }
}

async fn of_each_subscription_the_newest_attempts_are_kept(database: Database) {
    let store = database.open().await;
    let mut ids = Vec::new();
    for name in ["a", "b", "c"] {
        ids.push(subscribe(&store, name, "https://callback.test/").await.id);
    }
    for seconds in 0..4 {
        let attempts = ids[..2].iter().map(|id| attempt(*id, seconds)).collect();
        store.append_attempts(attempts, 3).await.unwrap();
    }
    let rush = (10..20).map(|seconds| attempt(ids[0], seconds)).collect();
    assert_eq!(store.append_attempts(rush, 3).await.unwrap(), 10);
    for (id, want) in ids.iter().zip([vec![19, 18, 17], vec![3, 2, 1], vec![]]) {
        let found = all(&store, *id).await.into_iter().map(|stored| stored.attempt.at);
        assert_eq!(found.collect::<Vec<_>>(), want.into_iter().map(at).collect::<Vec<_>>());
    }
}

async fn old_attempts_and_those_above_the_bound_are_trimmed(database: Database) {
    let store = database.open().await;
    let id = subscribe(&store, "a", "https://callback.test/").await.id;
    let attempts = (0..1_500).map(|seconds| attempt(id, seconds)).collect();
    store.append_attempts(attempts, 10_000).await.unwrap();
    // In several cells, each has its part of the bound.
    let most = 10_000 * database.cells;
    let everything = AttemptRetention { since: at(0), most };
    assert_eq!(store.trim_attempts(&everything).await.unwrap(), 0);
    let recent = AttemptRetention { since: at(20), most };
    assert_eq!(store.trim_attempts(&recent).await.unwrap(), 20);
    let few = AttemptRetention { since: at(0), most: 10 * database.cells };
    assert_eq!(store.trim_attempts(&few).await.unwrap(), 1_470, "in several transactions");
    let newest = all(&store, id).await;
    assert_eq!((newest.len(), newest[0].attempt.at), (10, at(1_499)));
}

async fn attempts_end_with_their_subscription(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let mut made: Vec<Subscription> = Vec::new();
    for name in ["ended", "unsubscribed", "expired", "stays"] {
        made.push(subscribe(&store, name, "https://callback.test/").await);
    }
    let attempts: Vec<_> = made.iter().map(|made| attempt(made.id, 1)).collect();
    store.append_attempts(attempts.clone(), 9).await.unwrap();

    store.record(made[0].id.resource, &poll(at(1), &["1"])).await.unwrap();
    assert_eq!(store.claim_subscriptions(at(2), at(9), &room()).await.unwrap().len(), 1);
    store.record_deliveries(&[(made[0].id, DeliveryOutcome::Ended)], at(3)).await.unwrap();
    let Subscription { topic, callback, .. } = &made[1];
    assert!(store.unsubscribe(None, topic, callback, None).await.unwrap());
    for made in &made[3..] {
        let request = super::request("stays", made.callback.as_str());
        store.subscribe(&request, at(9_000)).await.unwrap();
    }
    assert_eq!(store.drop_expired(at(9_000)).await.unwrap().len(), 1);

    // Those that arrive after the end of their subscriptions do not fail the others.
    assert_eq!(store.append_attempts(attempts, 9).await.unwrap(), 1);
    for made in &made[..3] {
        assert_eq!(count(&store, made.id).await, 0, "{}", made.topic.as_str());
    }
    assert_eq!(count(&store, made[3].id).await, 2);
}

async fn attempts_lock_nothing_that_a_delivery_waits_for(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let nodes = [store.clone(), store.beside(database.open().await)];
    let mut ids = Vec::new();
    for n in 0..20 {
        ids.push(subscribe(&store, "a", &format!("https://callback.test/{n}")).await.id);
    }
    for turn in 0..10 {
        store.record(ids[0].resource, &poll(at(turn), &[&turn.to_string()])).await.unwrap();
        let due = store.claim_subscriptions(at(turn), at(turn + 60), &room()).await.unwrap();
        assert_eq!(due.len(), ids.len());
        let cursor = Seq(turn + 1);
        let results: Vec<_> =
            ids.iter().map(|id| (*id, DeliveryOutcome::Delivered { cursor, status: 0 })).collect();
        let attempts: Vec<_> = ids.iter().rev().map(|id| attempt(*id, turn)).collect();
        let (settled, first, second) = tokio::join!(
            nodes[0].record_deliveries(&results, at(turn)),
            nodes[1].append_attempts(attempts.clone(), 5),
            nodes[0].append_attempts(attempts.iter().rev().cloned().collect(), 5),
        );
        settled.unwrap();
        assert_eq!((first.unwrap(), second.unwrap()), (20, 20));
    }
    for id in ids {
        assert!(count(&store, id).await >= 5, "the newest are there");
    }
}
