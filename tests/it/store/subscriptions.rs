//! Making, renewing, ending and listing subscriptions.

use std::time::Duration;

use feedgate_core::account::{AccountId, NewToken, Scopes, TokenHash};
use feedgate_core::record::Seq;
use feedgate_core::signing::{PreviousSecret, Secret, SecretOverlap, Signing, SigningRequest};
use feedgate_core::store::{DeliveryOutcome, SubscriptionFilter};
use feedgate_core::subscription::{Format, Lease, SubscriptionRequest};
use feedgate_feed::Body;
use feedgate_protocol::Protocol;
use feedgate_protocol::signature::SignatureMethod;

use super::claims::crowd;
use super::{at, listed, on_both_stores, poll, request, resource, room, subscribe, topic};
use crate::support::claiming_store::ClaimingStore;
use crate::support::postgres::Database;

on_both_stores!(
    a_subscription_keeps_what_was_wished,
    a_renewal_keeps_the_cursor_and_forgets_failures,
    a_secret_that_is_replaced_is_kept_for_the_overlap,
    h06_a_renewal_by_a_stranger_ends_no_secret_and_no_lease,
    a_renewal_leaves_a_delivery_in_hand_alone,
    a_change_of_format_owes_the_latest_of_the_other,
    a_change_of_format_during_a_delivery_starts_its_own_count,
    a_hundred_registrations_at_once_are_all_stored,
    account_callback_and_protocol_tell_subscriptions_apart,
    p52_a_subscription_is_found_under_the_address_of_the_page_that_it_follows,
    p52_what_a_request_replaces_ends_in_its_transaction,
    lists_come_in_pages,
    a_list_counts_only_so_many_after_its_page,
);

async fn a_list_counts_only_so_many_after_its_page(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    crowd(&database, &store, 10_501, "https://callback.test/").await;
    for (offset, want) in [(0, 10_000), (300, 10_300), (501, 10_501), (9_999, 10_501)] {
        let account = Some(AccountId::NOBODY);
        let filter = SubscriptionFilter { account, offset, limit: 2, ..Default::default() };
        let (page, total) = store.list(&filter).await.unwrap();
        assert_eq!((page.len(), total), (2, want), "from {offset} on");
    }
}

async fn a_subscription_keeps_what_was_wished(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let mut request = request("a", "https://callback.test/in?x=1");
    request.protocol = Protocol::XmlRpc { procedure: "river.notify".to_owned() };
    request.signing.secret = Secret::new("opensesame".to_owned()).ok();
    request.format = Format::Json;
    let made = store.subscribe(&request, at(5)).await.unwrap();
    assert_eq!(made.topic, request.topic);
    assert_eq!(made.callback, request.callback);
    assert_eq!(made.protocol, request.protocol);
    assert_eq!(made.signing.secret, request.signing.secret);
    assert_eq!(made.format, request.format);
    assert_eq!((made.created_at, made.lease_until), (at(5), at(5 + 3_600)));
    assert_eq!((made.account, made.cursor, made.failures), (None, Seq::NONE, 0));
    assert_eq!(resource(&store, made.id.resource).await.subscribers, 1);
    assert_eq!(listed(&store).await, [made]);
    let gauges = store.gauges(at(6)).await.unwrap();
    assert_eq!((gauges.resources, gauges.subscriptions, gauges.due), (1, 1, 0));
}

async fn a_renewal_keeps_the_cursor_and_forgets_failures(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let mut wished = request("a", "https://callback.test/");
    wished.account = Some(AccountId(7));
    let made = store.subscribe(&wished, at(0)).await.unwrap();
    store.record(made.id.resource, &poll(at(1), &["1"])).await.unwrap();
    store.claim_subscriptions(at(2), at(9), &room()).await.unwrap();
    let failed = (made.id, DeliveryOutcome::Failed { retry_at: Some(at(9_000)) });
    store.record_deliveries(&[failed], at(3)).await.unwrap();

    let mut again = wished.clone();
    again.signing.secret = Secret::new("new".to_owned()).ok();
    again.lease = Lease::from(Duration::from_secs(60));
    let renewed = store.subscribe(&again, at(10)).await.unwrap();
    assert_eq!((renewed.id, renewed.created_at), (made.id, made.created_at));
    assert_eq!((renewed.cursor, renewed.failures, renewed.failing_since), (Seq(0), 0, None));
    assert_eq!(
        (renewed.signing.secret.clone(), renewed.lease_until),
        (again.signing.secret, at(70))
    );
    let due = store.claim_subscriptions(at(10), at(20), &room()).await.unwrap();
    assert_eq!(due.len(), 1, "whoever renews is there again, so it is tried at once");

    // Rule D12: a renewal that names no secret keeps it, unless it ends it.
    let kept = store.subscribe(&wished, at(0)).await.unwrap();
    assert_eq!(kept.signing, renewed.signing);
    wished.signing.ends_secret = true;
    let bare = store.subscribe(&wished, at(0)).await.unwrap();
    assert_eq!(bare.signing.secret, None);
    assert_eq!(resource(&store, made.id.resource).await.subscribers, 1, "counted once");
}

async fn a_secret_that_is_replaced_is_kept_for_the_overlap(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let mut request = request("a", "https://callback.test/");
    request.account = Some(AccountId(7));
    request.signing.secret = Secret::new("old".to_owned()).ok();
    request.signing.method = Some(SignatureMethod::Sha256);
    let made = store.subscribe(&request, at(0)).await.unwrap();
    assert_eq!(made.signing, request.signing.begin());
    let old = made.signing.secret.unwrap();

    request.signing = SigningRequest {
        secret: Secret::new("new".to_owned()).ok(),
        method: Some(SignatureMethod::Sha512),
        overlap: SecretOverlap::from_secs(60),
        ..SigningRequest::default()
    };
    let renewed = store.subscribe(&request, at(10)).await.unwrap();
    let previous = Some(PreviousSecret { secret: old, until: at(70) });
    assert_eq!(renewed.signing, Signing { previous, ..request.signing.begin() });
    assert_eq!(listed(&store).await, std::slice::from_ref(&renewed));
    request.signing.overlap = None;
    let again = store.subscribe(&request, at(20)).await.unwrap();
    assert_eq!(again.signing, renewed.signing, "a renewal with the same secret changes nothing");
    let later = store.subscribe(&request, at(70)).await.unwrap();
    assert_eq!(later.signing, request.signing.begin());
}

async fn h06_a_renewal_by_a_stranger_ends_no_secret_and_no_lease(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let renewed = async |secret: Option<&str>, lease_s: u64, now: i64| {
        let mut request = request("a", "https://callback.test/");
        request.signing.secret = secret.and_then(|text| Secret::new(text.to_owned()).ok());
        request.lease = Lease::from(Duration::from_secs(lease_s));
        let renewed = store.subscribe(&request, at(now)).await.unwrap();
        let secrets = renewed.signing.secrets(at(now)).map(|secret| secret.expose().to_owned());
        (secrets.collect::<Vec<_>>().join(" "), renewed.lease_until)
    };
    let told = |secrets: &str, until: i64| (secrets.to_owned(), at(until));
    assert_eq!(renewed(Some("own"), 864_000, 0).await, told("own", 864_000));
    assert_eq!(renewed(Some("b"), 300, 10).await, told("b own", 864_000));
    assert_eq!(renewed(None, 300, 20).await, told("b own", 864_000));
    assert_eq!(renewed(Some("c"), 300, 30).await, told("c own", 864_000));
    assert_eq!(renewed(Some("d"), 864_000, 40).await, told("d own", 864_040), "it may be longer");
    assert_eq!(
        renewed(Some("d"), 300, 864_001).await,
        told("d", 864_301),
        "the first lease is over"
    );

    assert_eq!(renewed(Some("d"), 864_000, 864_002).await, told("d", 1_728_002));
    assert_eq!(renewed(Some("e"), 300, 864_003).await, told("e d", 1_728_002));
    assert_eq!(renewed(Some("d"), 300, 864_004).await, told("d", 864_304), "who knows it decides");
}

async fn a_renewal_leaves_a_delivery_in_hand_alone(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let made = subscribe(&store, "a", "https://callback.test/").await;
    store.record(made.id.resource, &poll(at(1), &["1"])).await.unwrap();
    store.claim_subscriptions(at(2), at(9), &room()).await.unwrap();
    store.subscribe(&request("a", "https://callback.test/"), at(3)).await.unwrap();
    assert_eq!(store.claim_subscriptions(at(3), at(9), &room()).await.unwrap(), []);
    assert_eq!(store.claim_subscriptions(at(9), at(19), &room()).await.unwrap().len(), 1);
}

async fn a_change_of_format_owes_the_latest_of_the_other(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let told = subscribe(&store, "a", "https://told.test/").await;
    let mut found = poll(at(1), &["1", "2", "3"]);
    found.body = Some(Body { content_type: None, bytes: b"x".to_vec() });
    store.record(told.id.resource, &found).await.unwrap();
    let behind = subscribe(&store, "a", "https://behind.test/").await;
    assert_eq!(behind.cursor, Seq(3));
    assert_eq!(store.claim_subscriptions(at(2), at(9), &room()).await.unwrap().len(), 1);
    store
        .record_deliveries(
            &[(told.id, DeliveryOutcome::Delivered { cursor: Seq(3), status: 0 })],
            at(2),
        )
        .await
        .unwrap();
    assert!(store.replay(behind.id, Seq(0), at(2)).await.unwrap());

    let mut raw = request("a", "https://told.test/");
    raw.format = Format::Raw;
    assert_eq!(store.subscribe(&raw, at(3)).await.unwrap().cursor, Seq(1), "told everything");
    raw.callback = behind.callback;
    assert_eq!(store.subscribe(&raw, at(3)).await.unwrap().cursor, Seq(0), "owed the body");
    let due = store.claim_subscriptions(at(4), at(9), &room()).await.unwrap();
    assert_eq!((due.len(), due[0].subscription.id, due[0].owed), (1, behind.id, Seq(1)));
}

async fn a_change_of_format_during_a_delivery_starts_its_own_count(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let id = subscribe(&store, "a", "https://callback.test/").await.id;
    let with_body = |seconds, ids: &[&str], bytes: &[u8]| {
        let mut found = poll(at(seconds), ids);
        found.body = Some(Body { content_type: None, bytes: bytes.to_vec() });
        found
    };
    store.record(id.resource, &with_body(1, &["1", "2", "3"], b"x")).await.unwrap();
    assert_eq!(store.claim_subscriptions(at(2), at(9), &room()).await.unwrap().len(), 1);
    let mut raw = request("a", "https://callback.test/");
    raw.format = Format::Raw;
    store.subscribe(&raw, at(3)).await.unwrap();
    store
        .record_deliveries(&[(id, DeliveryOutcome::Delivered { cursor: Seq(3), status: 0 })], at(4))
        .await
        .unwrap();

    let due = store.claim_subscriptions(at(5), at(9), &room()).await.unwrap();
    assert_eq!((due.len(), due[0].owed), (1, Seq(1)), "records tell nothing of bodies");
    store
        .record_deliveries(&[(id, DeliveryOutcome::Delivered { cursor: Seq(1), status: 0 })], at(6))
        .await
        .unwrap();
    store.record(id.resource, &with_body(7, &[], b"y")).await.unwrap();
    let due = store.claim_subscriptions(at(8), at(9), &room()).await.unwrap();
    assert_eq!((due.len(), due[0].owed), (1, Seq(2)));
}

/// The fault B1 of the deployed rssCloud hub: a hundred accepted, two stored.
async fn a_hundred_registrations_at_once_are_all_stored(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let registering = (0..100).map(|n| {
        let store = store.clone();
        let mut request = request("a", &format!("https://callback.test/{n}"));
        request.protocol = Protocol::HttpPost;
        tokio::spawn(async move { store.subscribe(&request, at(0)).await.unwrap().id })
    });
    let made = futures_util::future::join_all(registering).await;
    let mut made: Vec<_> = made.into_iter().map(Result::unwrap).collect();
    made.sort_unstable();
    made.dedup();
    assert_eq!(made.len(), 100);
    let kept: Vec<_> = listed(&store).await.iter().map(|sub| sub.id).collect();
    assert_eq!(kept, made);
    assert_eq!(resource(&store, made[0].resource).await.subscribers, 100);
}

async fn account_callback_and_protocol_tell_subscriptions_apart(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let open = request("a", "https://callback.test/");
    let account = Some(AccountId(7));
    let mut owned = open.clone();
    owned.account = account;
    let mut posted = open.clone();
    posted.protocol = Protocol::HttpPost;
    let mut soap = open.clone();
    soap.protocol = Protocol::Soap { procedure: "notify".to_owned() };
    for (n, request) in (1..).zip([&open, &owned, &posted, &soap]) {
        store.subscribe(request, at(n)).await.unwrap();
        store.subscribe(request, at(n)).await.unwrap();
        assert_eq!(listed(&store).await.len() as i64, n);
    }
    let (topic, callback) = (&open.topic, &open.callback);
    let http_post = Some("http-post");
    assert!(store.unsubscribe(None, topic, callback, http_post).await.unwrap());
    assert!(!store.unsubscribe(None, topic, callback, http_post).await.unwrap());
    assert!(!store.unsubscribe(None, &super::topic("b"), callback, None).await.unwrap());
    assert_eq!(listed(&store).await.len(), 3);
    assert!(store.unsubscribe(None, topic, callback, None).await.unwrap(), "in all protocols");
    let left = listed(&store).await;
    assert_eq!((left.len(), left[0].account), (1, account));
    assert_eq!(resource(&store, left[0].id.resource).await.subscribers, 1);
}

async fn lists_come_in_pages(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let token = NewToken {
        login: "ada".to_owned(),
        name: String::new(),
        scopes: Scopes::all(),
        hash: TokenHash::from_token("x"),
        expires_at: None,
    };
    store.create_token(&token, at(0)).await.unwrap();
    let ada = store.authenticate("ada", &token.hash, at(0)).await.unwrap().unwrap().account;
    for n in 0..10 {
        let mut request = request(&format!("{}", n % 2), &format!("https://callback.test/{n}"));
        request.account = (n >= 4).then_some(ada);
        store.subscribe(&request, at(n)).await.unwrap();
    }
    let all = SubscriptionFilter { limit: 100, ..SubscriptionFilter::default() };
    let owned = SubscriptionFilter { account: Some(ada), ..all.clone() };
    let of_topic = SubscriptionFilter { topic: Some(topic("1").to_string()), ..all.clone() };
    let callback = Some("https://callback.test/5".to_owned());
    let of_callback = SubscriptionFilter { callback, ..owned.clone() };
    #[rustfmt::skip]
    let cases = [
        ("everybody's",       all.clone(),                                10, vec![0, 1, 2, 3, 4, 5, 6, 7, 8, 9]),
        ("the first page",    SubscriptionFilter { limit: 3, ..all.clone() },            10, vec![0, 1, 2]),
        ("the second page",   SubscriptionFilter { limit: 3, offset: 3, ..all.clone() }, 10, vec![3, 4, 5]),
        ("past the end",      SubscriptionFilter { offset: 10, ..all },                  10, vec![]),
        ("an account's",      owned,                                       6, vec![4, 5, 6, 7, 8, 9]),
        ("a topic's",         of_topic,                                    5, vec![1, 3, 5, 7, 9]),
        ("a callback's",      of_callback,                                 1, vec![5]),
    ];
    for (why, filter, total, want) in cases {
        let (page, counted) = store.list(&filter).await.unwrap();
        let found = page.iter().map(|one| (one.subscription.created_at - at(0)).num_seconds());
        assert_eq!((counted, found.collect::<Vec<_>>()), (total, want), "{why}");
        assert!(page.iter().all(|one| one.resource.topic == one.subscription.topic));
    }
}

async fn p52_a_subscription_is_found_under_the_address_of_the_page_that_it_follows(
    database: Database,
) {
    let store = database.open().await;
    let page = "https://page.test/";
    let follow = |feed: &str, callback: &str, account| {
        let mut request = request(feed, callback);
        request.topic = request.topic.with_alias(Some(page.to_owned()));
        request.account = account;
        request
    };
    let ada = AccountId(7);
    let (one, two) = ("https://callback.test/1", "https://callback.test/2");
    let requests = [
        follow("a", one, Some(ada)),
        follow("b", two, Some(ada)),
        follow("c", one, None),
        request("d", one),
    ];
    for made in &requests {
        store.subscribe(made, at(1)).await.unwrap();
    }
    let [a, b, c, _] = requests.map(|request| (request.topic, request.callback));
    let found = async |account, alias, callback| {
        store.subscribed_under(account, alias, callback).await.unwrap()
    };
    assert_eq!(found(Some(ada), page, None).await, [a.0.clone(), b.0]);
    assert_eq!(found(Some(ada), page, Some(&b.1)).await.len(), 1);
    assert_eq!(found(None, page, Some(&c.1)).await, [c.0]);
    assert_eq!(found(None, "", None).await, [], "a topic is no alias");
    assert!(store.unsubscribe(Some(ada), &a.0, &a.1, None).await.unwrap());
    assert_eq!(found(Some(ada), page, Some(&a.1)).await, []);
}

async fn p52_what_a_request_replaces_ends_in_its_transaction(database: Database) {
    let store = database.open().await;
    let page = store.subscribe(&request("page", "https://callback.test/"), at(0)).await.unwrap();
    let feed = page.topic.clone().with_alias(Some("https://page.test/".to_owned()));
    let replaces = vec![page.topic.clone()];
    let of_page = request("page", "https://callback.test/");
    let followed = SubscriptionRequest { topic: feed, replaces, ..of_page };
    let made = store.subscribe(&followed, at(1)).await.unwrap();
    let listed = listed(&store).await;
    assert_eq!(listed.iter().map(|one| one.id).collect::<Vec<_>>(), [made.id]);
}
