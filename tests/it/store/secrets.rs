//! Secrets at rest (S36): with a key, no column contains one, and none can be moved.

use std::sync::Arc;
use std::thread;

use feedgate_core::account::AccountId;
use feedgate_core::callback_headers::CallbackHeaders;
use feedgate_core::intent::{Intent, IntentMode, VerifyToken};
use feedgate_core::poll::Poll;
use feedgate_core::signing::Secret;
use feedgate_core::store::{StoreError, SubscriptionFilter};
use feedgate_core::subscription::SubscriptionRequest;
use feedgate_core::topic::Topic;
use feedgate_core::upstream::{AdvertisedUpstream, Proposal, UpstreamFinding};
use feedgate_protocol::Protocol;
use feedgate_store::Store;
use feedgate_store::{
    self as store, RotatedSecrets, SecretKey, SecretKeys, StoreSettings, rotate_secrets,
};
use tokio::runtime::Handle;
use tokio::task::block_in_place;

use super::{at, few, listed, on_both_stores, poll, request, topic};
use crate::support::postgres::Database;

on_both_stores!(
    s36_no_column_contains_a_secret,
    s36_a_secret_that_was_moved_to_another_row_is_refused,
    s36_a_store_is_opened_with_all_of_its_keys_only,
    s36_a_rotation_while_a_gateway_works_leaves_no_other_key,
    s36_a_rotation_notices_a_gateway_with_another_key,
    s36_a_secret_that_cannot_be_read_keeps_its_key,
);

/// Every column with secrets.
const COLUMNS: [&str; 8] = [
    "subscriptions.secret",
    "subscriptions.previous_secret",
    "subscriptions.header_secret",
    "intents.secret",
    "intents.header_secret",
    "intents.verify_token",
    "upstreams.secret",
    "feed_headers.header_secret",
];

/// The key with this number.
fn key(number: u8) -> SecretKey {
    SecretKey::parse(&hex::encode([number; SecretKey::BYTES])).unwrap()
}

/// The present key, and others.
pub(super) fn keys(present: u8, old: &[u8]) -> SecretKeys {
    SecretKeys { present: Some(key(present)), old: old.iter().copied().map(key).collect() }
}

fn settings(database: &Database, secret_keys: SecretKeys) -> StoreSettings {
    StoreSettings { secret_keys, ..database.settings() }
}

async fn open(database: &Database, keys: SecretKeys) -> Arc<Store> {
    store::open(&settings(database, keys)).await.unwrap()
}

async fn refusal(database: &Database, keys: SecretKeys) -> StoreError {
    let Err(refused) = store::open(&settings(database, keys)).await else {
        panic!("it was opened")
    };
    refused
}

/// Rotates the keys. `report` is called after each chunk, with the number of chunks before.
async fn rotate(
    database: &Database,
    keys: SecretKeys,
    mut report: impl FnMut(usize) + Send,
) -> RotatedSecrets {
    let mut chunks = 0..;
    let mut report = |_: &_| report(chunks.next().unwrap());
    rotate_secrets(&settings(database, keys), &mut report).await.unwrap().unwrap()
}

/// A request with this secret for the callback with this number.
fn signed(callback: usize, secret: &str) -> SubscriptionRequest {
    let mut request = request("a", &format!("https://{callback}.test/"));
    request.account = (callback % 2 == 1).then_some(AccountId(7));
    request.signing.secret = Some(Secret::new(secret.to_owned()).unwrap());
    request
}

/// A header for a callback.
fn headers(name: &str) -> Option<CallbackHeaders> {
    Some(CallbackHeaders::parse(&format!("x-{name}: s3cret-{name}"), "").unwrap())
}

/// Stores a secret in each column.
async fn fill(store: &Arc<Store>) {
    let first = SubscriptionRequest { headers: headers("held"), ..signed(1, "s3cret-previous") };
    let made = store.subscribe(&first, at(0)).await.unwrap();
    store.subscribe(&signed(1, "s3cret-present"), at(1)).await.unwrap();
    let requested = signed(2, "s3cret-requested");
    let requested = SubscriptionRequest { headers: headers("requested"), ..requested };
    let mut intent = Intent::new(IntentMode::Subscribe, requested);
    intent.verify_token = Some(VerifyToken::parse("s3cret-token").unwrap());
    store.enqueue_intent(&intent, at(0)).await.unwrap();
    let upstream = UpstreamFinding::Upstream(Proposal {
        offer: AdvertisedUpstream {
            protocol: Protocol::WebSub,
            endpoint: "https://hub.test/".to_owned(),
            topic: "https://feeds.test/a".to_owned(),
        },
        token: "t1".to_owned(),
        secret: Secret::new("s3cret-upstream".to_owned()).unwrap(),
    });
    let offering = Poll { upstream, ..poll(at(2), &[]) };
    store.record(made.id.resource, &offering).await.unwrap();
    let feed = own_feed();
    for name in ["before", "feed"] {
        store.store_feed_headers(&feed, &headers(name).unwrap(), at(3)).await.unwrap();
    }
}

/// A feed with headers of its own.
fn own_feed() -> Topic {
    topic("own").with_own_headers("n0nce").unwrap()
}

/// Checks that each secret is read as it was stored.
async fn assert_readable(store: &Arc<Store>, seconds: i64) {
    let (now, until) = (at(seconds), at(seconds + 1));
    let all = SubscriptionFilter { limit: 1_000, ..SubscriptionFilter::default() };
    let (page, _) = store.list(&all).await.unwrap();
    let signing = &page[0].subscription.signing;
    assert_eq!(signing.secret.as_ref().unwrap().expose(), "s3cret-present");
    assert_eq!(signing.previous.as_ref().unwrap().secret.expose(), "s3cret-previous");
    assert_eq!(Some(&page[0].subscription.headers), headers("held").as_ref());
    let due = store.claim_intents(now, until, &few(5)).await.unwrap().remove(0).intent;
    assert_eq!(due.request.headers, headers("requested"));
    assert_eq!(due.request.signing.secret.unwrap().expose(), "s3cret-requested");
    assert_eq!(due.verify_token.unwrap().as_str(), "s3cret-token");
    let due = store.claim_upstreams(now, until, &few(5)).await.unwrap().remove(0);
    assert_eq!(due.upstream.secret.expose(), "s3cret-upstream");
    let feed = store.find(own_feed().as_str()).await.unwrap().unwrap();
    assert_eq!(store.feed_headers(feed.id, &feed.topic).await.unwrap(), headers("feed"));
    assert_eq!(store.upstream("t1").await.unwrap().unwrap().secret.expose(), "s3cret-upstream");
}

/// The values of all columns with secrets, each after the name of its column.
async fn stored(database: &Database) -> Vec<(&'static str, String)> {
    let mut all = Vec::new();
    for name in COLUMNS {
        let (table, column) = name.split_once('.').unwrap();
        let values = format!("select {column} from {table} where {column} is not null");
        all.extend(database.texts(&values).await.into_iter().map(|value| (name, value)));
    }
    all
}

/// Checks that all secrets are encrypted with this key, and returns how many there are.
async fn assert_sealed(database: &Database, number: u8) -> usize {
    let (stored, id) = (stored(database).await, key(number).id().to_owned());
    for (column, value) in &stored {
        assert!(value.starts_with(&format!("sealed:1:{id}:")), "{column}: {value}");
        assert!(!value.contains("s3cret"), "{column}: {value}");
    }
    stored.len()
}

async fn s36_no_column_contains_a_secret(database: Database) {
    let without = open(&database, SecretKeys::default()).await;
    fill(&without).await;
    let plain = stored(&database).await;
    assert_eq!(plain.len(), COLUMNS.len());
    assert!(plain.iter().all(|(_, value)| value.contains("s3cret-")), "{plain:?}");
    assert_readable(&without, 100).await;

    let with = open(&database, keys(1, &[])).await;
    assert_readable(&with, 200).await;
    let rotated = rotate(&database, keys(1, &[]), |_| {}).await;
    assert_eq!((rotated.rewritten, rotated.is_complete()), (8, true), "{rotated:?}");
    assert_eq!(assert_sealed(&database, 1).await, COLUMNS.len());
    assert_readable(&with, 300).await;
    let again = rotate(&database, keys(1, &[]), |_| {}).await;
    assert_eq!(again.rewritten, 0, "what is encrypted already is left alone");
    with.subscribe(&signed(3, "s3cret-new"), at(4)).await.unwrap();
    with.subscribe(&signed(1, "s3cret-newer"), at(4)).await.unwrap();
    assert_eq!(assert_sealed(&database, 1).await, COLUMNS.len() + 1);
}

async fn s36_a_secret_that_was_moved_to_another_row_is_refused(database: Database) {
    let store = open(&database, keys(1, &[])).await;
    for callback in [2, 4] {
        store.subscribe(&signed(callback, &format!("s3cret-{callback}")), at(0)).await.unwrap();
    }
    assert_eq!(listed(&store).await.len(), 2);
    database
        .run(
            "update subscriptions
                set secret = (select other.secret from subscriptions other
                               where other.callback = 'https://2.test/')
              where callback = 'https://4.test/'",
        )
        .await;
    let all = SubscriptionFilter { limit: 9, ..SubscriptionFilter::default() };
    let refused = store.list(&all).await.unwrap_err().to_string();
    let sentence = "a stored row cannot be read: the secret in subscriptions.secret cannot be \
                    read: it was changed, or belongs to another row";
    assert_eq!(refused, sentence);

    // Nor to another column of its row.
    let renewed = store.subscribe(&signed(2, "s3cret-next"), at(1)).await.unwrap();
    assert_eq!(renewed.signing.previous.unwrap().secret.expose(), "s3cret-2");
    database
        .run("update subscriptions set secret = previous_secret where callback = 'https://2.test/'")
        .await;
    assert_eq!(store.listed(renewed.id).await.unwrap_err().code(), "corrupt_row");
}

async fn s36_a_store_is_opened_with_all_of_its_keys_only(database: Database) {
    let none = SecretKeys::default();
    open(&database, none.clone()).await.close().await;
    let first = open(&database, keys(1, &[])).await;
    fill(&first).await;

    let refused = refusal(&database, none.clone()).await;
    assert_eq!(refused.code(), "no_secrets_key");
    let sentence = format!(
        "the database has secrets that are encrypted with the key {}, but FEEDGATE_SECRETS_KEY is \
         not set: set it to this key",
        key(1).id()
    );
    assert_eq!(refused.to_string(), sentence);
    let refused = refusal(&database, keys(2, &[3])).await;
    assert_eq!(refused.code(), "other_secrets_key");
    assert!(refused.to_string().contains(key(1).id()), "{refused}");

    // Nodes learn the next key first, then it becomes the present one of each.
    for (keys, second) in [
        (keys(1, &[2]), 10),
        (SecretKeys { present: None, old: vec![key(1)] }, 20),
        (keys(2, &[1]), 30),
    ] {
        let store = open(&database, keys).await;
        assert_readable(&store, second).await;
        store.close().await;
    }
    let refused = refusal(&database, keys(1, &[])).await;
    assert!(refused.to_string().contains(key(2).id()), "both are registered: {refused}");
    let nothing = rotate_secrets(&settings(&database, none), &mut |_| {}).await.unwrap();
    assert_eq!(nothing, None, "there is no key to encrypt with");
}

async fn s36_a_rotation_while_a_gateway_works_leaves_no_other_key(database: Database) {
    const SUBSCRIPTIONS: usize = 1_100; // three chunks
    let before = open(&database, keys(1, &[])).await;
    fill(&before).await;
    let subscribing = (4..SUBSCRIPTIONS + 4)
        .map(|callback| (before.clone(), signed(callback, &format!("s3cret-{callback}"))))
        .map(|(store, request)| async move { store.subscribe(&request, at(0)).await.unwrap() });
    futures_util::future::join_all(subscribing).await;
    before.close().await;

    // Between two chunks, subscriptions are renewed with another secret, and all are read.
    let working = open(&database, keys(2, &[1])).await;
    let rotated = rotate(&database, keys(2, &[1]), |chunk| {
        wait_for(async {
            let callback = SUBSCRIPTIONS - chunk;
            let renewed = signed(callback, &format!("s3cret-renewed-{callback}"));
            working.subscribe(&renewed, at(3)).await.unwrap();
            assert_eq!(listed(&working).await.len(), SUBSCRIPTIONS + 1);
        });
    });
    let rotated = rotated.await;
    assert!(rotated.is_complete() && rotated.rewritten > 1_000, "{rotated:?}");
    assert!(assert_sealed(&database, 2).await > SUBSCRIPTIONS);
    working.close().await;

    let after = open(&database, keys(2, &[])).await;
    let mut renewed = 0;
    for subscription in listed(&after).await {
        let callback = subscription.callback.host();
        let number = callback.split('.').next().unwrap();
        if number == "1" {
            continue;
        }
        let secret = subscription.signing.secret.unwrap().expose().to_owned();
        renewed += usize::from(secret == format!("s3cret-renewed-{number}"));
        let expected = [format!("s3cret-{number}"), format!("s3cret-renewed-{number}")];
        assert!(expected.contains(&secret), "{callback}: {secret}");
    }
    assert!(renewed > 3, "no renewal is lost: {renewed}");
    assert_readable(&after, 100).await;
}

async fn s36_a_rotation_notices_a_gateway_with_another_key(database: Database) {
    let old = open(&database, keys(1, &[2])).await;
    fill(&old).await;
    // Behind the last chunk of the first column: one of each schema.
    let last = if database.cells > 1 { database.cells } else { 0 };
    let late = rotate(&database, keys(2, &[1]), |chunk| {
        if chunk == last {
            wait_for(async {
                old.subscribe(&signed(8, "s3cret-late"), at(3)).await.unwrap();
            });
        }
    });
    let late = late.await;
    assert_eq!((late.rewritten, late.late, late.is_complete()), (9, 1, false), "{late:?}");
    assert_eq!(refusal(&database, keys(2, &[])).await.code(), "other_secrets_key");
    let done = rotate(&database, keys(2, &[1]), |_| {}).await;
    assert!(done.is_complete(), "{done:?}");
    open(&database, keys(2, &[])).await.close().await;
}

/// Runs a future to its end, in a callback. On the thread of the callback, it could take a wake-up that
/// was meant for the test around it, or for others that run beside it (`store::plans`).
fn wait_for(work: impl Future<Output = ()> + Send) {
    let runtime = Handle::current();
    block_in_place(|| {
        thread::scope(|threads| {
            threads.spawn(|| runtime.block_on(work)).join().unwrap();
        });
    });
}

async fn s36_a_secret_that_cannot_be_read_keeps_its_key(database: Database) {
    let store = open(&database, keys(1, &[])).await;
    fill(&store).await;
    database.run("update upstreams set secret = secret || 'AAAA'").await;
    let rotated = rotate(&database, keys(2, &[1]), |_| {}).await;
    assert_eq!((rotated.rewritten, rotated.unreadable), (7, 1), "{rotated:?}");
    let reason = &rotated.unreadable_reasons[0];
    assert!(reason.starts_with("upstreams.secret of the row ["), "{reason}");
    assert_eq!(refusal(&database, keys(2, &[])).await.code(), "other_secrets_key");
}
