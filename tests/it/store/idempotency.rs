//! Requests that a client repeats with a key.

use feedgate_core::account::AccountId;
use feedgate_core::idempotency::{IdempotencyClaim, IdempotencyKey, IdempotentAnswer, MOST_KEYS};
use feedgate_core::store::PruneBefore;

use super::{at, on_both_stores};
use crate::support::postgres::Database;

on_both_stores!(
    a02_a_request_is_carried_out_once_and_answered_again,
    a02_a_request_that_was_lost_or_failed_may_be_repeated,
    a02_a_request_that_is_being_carried_out_is_not_lost,
    a02_of_many_at_the_same_time_one_is_carried_out,
    a02_an_account_has_a_bounded_number_of_keys,
);

fn key(account: i64, key: u8, request: u8) -> IdempotencyKey {
    IdempotencyKey { account: AccountId(account), key: [key; 32], request: [request; 32] }
}

fn answer() -> IdempotentAnswer {
    IdempotentAnswer { status: 201, location: "/v1/x".to_owned(), body: "{}".to_owned() }
}

async fn a02_a_request_is_carried_out_once_and_answered_again(database: Database) {
    let store = database.open().await;
    let begin = async |key, now| store.begin_idempotent(&key, at(now)).await.unwrap();
    assert_eq!(begin(key(1, 1, 1), 0).await, IdempotencyClaim::Begun);
    assert_eq!(begin(key(1, 1, 1), 1).await, IdempotencyClaim::InProgress);
    assert_eq!(begin(key(1, 1, 2), 1).await, IdempotencyClaim::OtherRequest);
    store.finish_idempotent(&key(1, 1, 1), at(0), Some(answer())).await.unwrap();
    assert_eq!(begin(key(1, 1, 1), 86_399).await, IdempotencyClaim::Answered(answer()));
    assert_eq!(begin(key(1, 1, 2), 86_399).await, IdempotencyClaim::OtherRequest);
    assert_eq!(begin(key(2, 1, 2), 1).await, IdempotencyClaim::Begun, "another account");
    assert_eq!(begin(key(1, 2, 1), 1).await, IdempotencyClaim::Begun, "another key");
    assert_eq!(begin(key(1, 1, 2), 86_400).await, IdempotencyClaim::Begun, "a day later");
    let before = PruneBefore { idempotency_keys: Some(at(2)), ..PruneBefore::default() };
    assert_eq!(store.prune(&before).await.unwrap(), 2);
}

async fn a02_a_request_that_was_lost_or_failed_may_be_repeated(database: Database) {
    let store = database.open().await;
    let begin = async |key, now| store.begin_idempotent(&key, at(now)).await.unwrap();
    assert_eq!(begin(key(1, 1, 1), 0).await, IdempotencyClaim::Begun);
    assert_eq!(begin(key(1, 1, 1), 59).await, IdempotencyClaim::InProgress);
    assert_eq!(begin(key(1, 1, 1), 60).await, IdempotencyClaim::Begun, "its node was lost");
    let is_kept = store.finish_idempotent(&key(1, 1, 1), at(0), Some(answer())).await.unwrap();
    assert!(!is_kept);
    assert_eq!(begin(key(1, 1, 1), 61).await, IdempotencyClaim::InProgress, "the answer is late");
    assert!(store.finish_idempotent(&key(1, 1, 1), at(60), None).await.unwrap());
    assert_eq!(begin(key(1, 1, 2), 62).await, IdempotencyClaim::Begun, "it failed");
}

async fn a02_a_request_that_is_being_carried_out_is_not_lost(database: Database) {
    let store = database.open().await;
    let key = key(1, 1, 1);
    let begin = async |now| store.begin_idempotent(&key, at(now)).await.unwrap();
    let renew = async |from, now| store.renew_idempotent(&key, at(from), at(now)).await.unwrap();
    assert_eq!(begin(0).await, IdempotencyClaim::Begun);
    assert!(renew(0, 50).await);
    assert_eq!(begin(109).await, IdempotencyClaim::InProgress);
    assert!(!renew(0, 109).await, "this claim has ended");
    store.finish_idempotent(&key, at(50), Some(answer())).await.unwrap();
    assert!(!renew(50, 109).await, "it has an answer");
    assert_eq!(begin(111).await, IdempotencyClaim::Answered(answer()));
}

async fn a02_of_many_at_the_same_time_one_is_carried_out(database: Database) {
    let store = database.open().await;
    let key = key(1, 1, 1);
    let begun = (0..20).map(|_| store.begin_idempotent(&key, at(0)));
    let begun = futures_util::future::try_join_all(begun).await.unwrap();
    let count = begun.iter().filter(|claim| **claim == IdempotencyClaim::Begun).count();
    assert_eq!(count, 1, "{begun:?}");
}

async fn a02_an_account_has_a_bounded_number_of_keys(database: Database) {
    let store = database.open().await;
    let own = |n: usize| {
        let mut key = key(1, 0, 1);
        key.key[..8].copy_from_slice(&(n as u64).to_be_bytes());
        key
    };
    for n in 0..MOST_KEYS + 5 {
        let (key, now) = (own(n), at(0) + chrono::TimeDelta::milliseconds(n as i64));
        let claim = store.begin_idempotent(&key, now);
        assert_eq!(claim.await.unwrap(), IdempotencyClaim::Begun);
        if n > 0 {
            store.finish_idempotent(&key, now, Some(answer())).await.unwrap();
        }
    }
    let begin = async |n, now| store.begin_idempotent(&own(n), at(now)).await.unwrap();
    let answered = IdempotencyClaim::Answered(answer());
    assert_eq!(begin(MOST_KEYS + 4, 10).await, answered, "the newest are kept");
    assert_eq!(begin(5, 10).await, answered);
    assert_eq!(begin(4, 10).await, IdempotencyClaim::Begun, "the oldest have given way");
    assert_eq!(begin(0, 10).await, IdempotencyClaim::InProgress, "but none without an answer");
    assert_eq!(begin(MOST_KEYS + 5, 99).await, IdempotencyClaim::Begun);
    let old = PruneBefore { idempotency_keys: Some(at(9)), ..PruneBefore::default() };
    assert_eq!(store.prune(&old).await.unwrap(), 998, "a lost one gives way as well");
}
