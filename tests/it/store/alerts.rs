//! Alerts are the difference between what an account was told and what is so now.

use std::sync::Arc;

use feedgate_core::account::{AccountId, NewToken, Scopes, TokenHash};
use feedgate_core::alert::{
    Alert, AlertAddress, AlertAddressState, AlertAttempt, AlertKind, OwedAlerts,
};
use feedgate_core::claim::QueuePosition;
use feedgate_core::delivery_health::AttemptResponse;
use feedgate_core::poll::{NewContent, Poll};
use feedgate_core::record::Seq;
use feedgate_core::signing::Secret;
use feedgate_core::status::Status;
use feedgate_core::store::{DeliveryOutcome, DeliveryResult};
use feedgate_core::subscription::{Lease, Subscription};
use feedgate_core::topic::Callback;
use feedgate_store::{Store, rotate_secrets};

use super::secrets::keys;
use super::{at, on_both_stores, poll, request, room};
use crate::support::postgres::Database;

on_both_stores!(
    a_callback_is_told_of_at_its_fifth_failure_and_when_it_accepts_again,
    feeds_are_told_of_from_the_address_on_and_a_quota_until_much_of_it_is_free,
    an_address_belongs_to_one_claim_and_what_is_told_to_a_former_one_does_not_count,
    s36_the_secret_of_an_alert_address_is_encrypted_and_rotated,
);

const NO_QUOTA: u64 = u64::MAX;

/// Returns the number of the account with this token, which is created if there is none.
pub(crate) async fn account(store: &Store, login: &str, token: &str) -> AccountId {
    let hash = TokenHash::from_token(token);
    let (login, name, scopes) = (login.to_owned(), String::new(), Scopes::all());
    if let Some(access) = store.authenticate(&login, &hash, at(0)).await.unwrap() {
        return access.account;
    }
    let new = NewToken { login: login.clone(), name, scopes, hash: hash.clone(), expires_at: None };
    store.create_token(&new, at(0)).await.unwrap();
    store.authenticate(&login, &hash, at(0)).await.unwrap().unwrap().account
}

pub(super) fn address(account: AccountId, url: &str) -> AlertAddress {
    let secret = Some(Secret::new("opensesame".to_owned()).unwrap());
    let (callback, kinds) = (Callback::parse(url).unwrap(), AlertKind::ALL.to_vec());
    AlertAddress { account, callback, secret, kinds }
}

/// A store with an account that has an alert address since the second 0.
pub(super) async fn with_address(database: &Database) -> (Arc<Store>, AccountId) {
    let store = database.open().await;
    let account = account(&store, "ann", "secret-of-ann").await;
    let address = address(account, "https://alerts.test/");
    store.set_alert_address(&address, at(0)).await.unwrap();
    (store, account)
}

async fn subscribe(store: &Store, account: AccountId, topic: &str) -> Subscription {
    let mut wanted = request(topic, &format!("https://{topic}.test/"));
    (wanted.account, wanted.lease) = (Some(account), Lease::ACCOUNT);
    store.subscribe(&wanted, at(0)).await.unwrap()
}

/// Claims what is due, and records how it ended.
async fn deliver(store: &Store, seconds: i64, outcome: DeliveryOutcome, status: u16) {
    let now = at(seconds);
    let (limits, start) = (room(), QueuePosition::START);
    let claimed = store.claim_subscriptions(now, at(seconds + 5), &limits, start);
    let due = claimed.await.unwrap().due;
    assert!(!due.is_empty(), "nothing is due at {seconds}");
    let results = due.iter().map(|due| {
        let outcome = match outcome {
            DeliveryOutcome::Delivered { status, .. } => {
                DeliveryOutcome::Delivered { cursor: due.owed, status }
            }
            other => other,
        };
        let response = AttemptResponse { status: Some(status), excerpt: "as it is".to_owned() };
        DeliveryResult::new(due, outcome, Some(response))
    });
    store.record_deliveries(&results.collect::<Vec<_>>(), now).await.unwrap();
}

async fn fail(store: &Store, seconds: i64) {
    deliver(store, seconds, DeliveryOutcome::Failed { retry_at: Some(at(seconds + 1)) }, 503).await;
}

const ACCEPTED: DeliveryOutcome = DeliveryOutcome::Delivered { cursor: Seq(0), status: 0 };

/// Claims the only address, which is due.
async fn claim(store: &Store, seconds: i64) -> AlertAddressState {
    let claimed = store.claim_alert_addresses(at(seconds), at(seconds + 5), 9).await.unwrap();
    let [state] = claimed.as_slice() else { panic!("{claimed:?}") };
    state.clone()
}

/// Tells what is owed, and makes the address due again at once.
async fn tell_all(store: &Store, seconds: i64, quota: u64) -> OwedAlerts {
    let state = claim(store, seconds).await;
    let owed = store.owed_alerts(&state, quota, at(seconds)).await.unwrap();
    let attempt = AlertAttempt { at: at(seconds), code: "ok".to_owned() };
    let told = owed.told.clone();
    store.record_alerts_told(&state, told, Some(attempt), at(seconds)).await.unwrap();
    let again = claim(store, seconds).await;
    let rest = store.owed_alerts(&again, quota, at(seconds)).await.unwrap();
    assert_eq!((rest.count(), rest.has_more), (0, false), "told once: {rest:?}");
    store.release_alert_address(&again, at(seconds)).await.unwrap();
    owed
}

async fn a_callback_is_told_of_at_its_fifth_failure_and_when_it_accepts_again(database: Database) {
    use AlertKind::{Failing, Recovered, Suspended};
    let (store, account) = with_address(&database).await;
    let id = subscribe(&store, account, "a").await.id;
    let other = self::account(&store, "bob", "secret-of-bob").await;
    subscribe(&store, other, "a").await;
    store.record(id.resource, &poll(at(1), &["1"])).await.unwrap();
    for second in 10..14 {
        fail(&store, second).await;
        assert_eq!(tell_all(&store, second, NO_QUOTA).await.counts, [], "few failures");
    }
    fail(&store, 14).await;
    let owed = tell_all(&store, 14, NO_QUOTA).await;
    assert_eq!(owed.counts, [(Failing, 1)], "those of others are theirs");
    let [Alert::Callback(alert)] = owed.listed.as_slice() else { panic!("{owed:?}") };
    assert_eq!((alert.subscription, alert.failures), (id, 5));
    assert_eq!(
        (alert.topic.as_str(), &*alert.callback),
        ("https://feeds.test/a", "https://a.test/")
    );
    assert_eq!(alert.failing_since, Some(at(10)));
    let last = alert.last_attempt.as_ref().unwrap();
    assert_eq!((last.at, last.response.status), (at(14), Some(503)));
    assert_eq!(last.response.excerpt, "as it is");
    fail(&store, 15).await;
    assert_eq!(tell_all(&store, 15, NO_QUOTA).await.counts, []);
    subscribe(&store, account, "a").await;
    assert_eq!(tell_all(&store, 16, NO_QUOTA).await.counts, [], "a renewal is no success");
    deliver(&store, 17, ACCEPTED, 204).await;
    assert_eq!(tell_all(&store, 17, NO_QUOTA).await.counts, [(Recovered, 1)]);

    store.record(id.resource, &poll(at(20), &["2"])).await.unwrap();
    for second in 21..26 {
        fail(&store, second).await;
    }
    deliver(&store, 30, DeliveryOutcome::Suspended, 500).await;
    assert_eq!(
        tell_all(&store, 30, NO_QUOTA).await.counts,
        [(Suspended, 1)],
        "the state, not the way"
    );
    store.resume(id, at(31)).await.unwrap();
    assert_eq!(tell_all(&store, 31, NO_QUOTA).await.counts, []);
    deliver(&store, 32, ACCEPTED, 200).await;
    assert_eq!(tell_all(&store, 32, NO_QUOTA).await.counts, [(Recovered, 1)]);
}

async fn feeds_are_told_of_from_the_address_on_and_a_quota_until_much_of_it_is_free(
    database: Database,
) {
    use AlertKind::{FeedGone, FeedMoved, QuotaNear};
    let (store, account) = with_address(&database).await;
    let mut resources = Vec::new();
    for topic in ["early", "gone", "moved"] {
        resources.push(subscribe(&store, account, topic).await.id.resource);
    }
    let is_gone = |seconds: i64| {
        let status = Status { error: "gone".to_owned(), ..Status::default() };
        Poll { found: NewContent::Nothing, status, answered_well: false, ..poll(at(seconds), &[]) }
    };
    store.record(resources[0], &is_gone(-10)).await.unwrap();
    for seconds in [10, 20] {
        store.record(resources[1], &is_gone(seconds)).await.unwrap();
    }
    let fetch_url = Some("https://new.test/feed".to_owned());
    store.record(resources[2], &Poll { fetch_url, ..poll(at(11), &[]) }).await.unwrap();
    assert_eq!(tell_all(&store, 69, NO_QUOTA).await.counts, [], "a poll may not be stored yet");
    let owed = tell_all(&store, 100, 3).await;
    assert_eq!(owed.counts, [(FeedGone, 1), (FeedMoved, 1), (QuotaNear, 1)]);
    let [quota, Alert::Feed(gone), Alert::Feed(moved)] = owed.listed.as_slice() else {
        panic!("{owed:?}")
    };
    assert_eq!(*quota, Alert::Quota { used: 3, limit: 3 });
    assert_eq!(
        (gone.feed, &*gone.topic, gone.at),
        (resources[1], "https://feeds.test/gone", at(10))
    );
    assert_eq!((moved.feed, &*moved.fetch_url), (resources[2], "https://new.test/feed"));

    assert_eq!(tell_all(&store, 101, 3).await.counts, []);
    assert_eq!(tell_all(&store, 102, 10).await.counts, [], "there is room again");
    assert_eq!(tell_all(&store, 103, 3).await.counts, [(QuotaNear, 1)]);
    // A feed that comes back may be gone once more.
    store.record(resources[1], &poll(at(110), &["1"])).await.unwrap();
    store.record(resources[1], &is_gone(120)).await.unwrap();
    assert_eq!(tell_all(&store, 181, 3).await.counts, [(FeedGone, 1)]);
}

async fn an_address_belongs_to_one_claim_and_what_is_told_to_a_former_one_does_not_count(
    database: Database,
) {
    let (store, account) = with_address(&database).await;
    let state = claim(&store, 1).await;
    assert_eq!(state.login.as_deref(), Some("ann"));
    assert_eq!(store.claim_alert_addresses(at(2), at(9), 9).await.unwrap(), [], "it is claimed");
    let claims = [(account, state.claim)];
    assert_eq!(store.renew_alert_claims(&claims, at(20)).await.unwrap(), [account]);
    let failed = AlertAttempt { at: at(3), code: "http_5xx".to_owned() };
    store.record_alerts_failed(&state, failed.clone(), at(50)).await.unwrap();
    let stored = store.alert_address(account).await.unwrap().unwrap();
    assert_eq!(
        (stored.failures, stored.last_attempt, stored.due_at),
        (1, Some(failed.clone()), at(50))
    );

    // The claim of a node that has stopped expires; its result comes too late.
    let late = claim(&store, 50).await;
    let state = claim(&store, 55).await;
    assert_eq!(store.renew_alert_claims(&[(account, late.claim)], at(99)).await.unwrap(), []);
    store.record_alerts_failed(&late, failed.clone(), at(999)).await.unwrap();
    let elsewhere = address(account, "https://elsewhere.test/");
    store.set_alert_address(&elsewhere, at(56)).await.unwrap();
    store.record_alerts_failed(&state, failed, at(999)).await.unwrap();
    let stored = store.alert_address(account).await.unwrap().unwrap();
    assert_eq!((&stored.address, stored.failures), (&elsewhere, 0));
    assert_eq!(stored.due_at, at(66), "no two requests within ten seconds");

    store.deactivate_account("ann", at(60)).await.unwrap();
    assert_eq!(claim(&store, 66).await.login, None);
    assert!(store.delete_alert_address(account).await.unwrap());
    assert!(!store.delete_alert_address(account).await.unwrap());
    store.set_alert_address(&elsewhere, at(70)).await.unwrap();
    store.remove_account("ann", at(70)).await.unwrap();
    assert_eq!(store.alert_address(account).await.unwrap(), None);
}

async fn s36_the_secret_of_an_alert_address_is_encrypted_and_rotated(mut database: Database) {
    const SECRETS: &str = "select secret from alert_addresses";
    let (store, account) = with_address(&database).await;
    assert_eq!(database.texts(SECRETS).await, ["opensesame"], "there is no key");
    store.close().await;
    database.secret_keys = keys(1, &[]);
    let rotated = rotate_secrets(&database.settings(), &mut |_| {}).await.unwrap().unwrap();
    assert!(rotated.is_complete() && rotated.rewritten == 1, "{rotated:?}");
    assert!(database.texts(SECRETS).await[0].starts_with("sealed:1:"));
    let store = database.open().await;
    let stored = store.alert_address(account).await.unwrap().unwrap();
    assert_eq!(stored.address, address(account, "https://alerts.test/"));
}
