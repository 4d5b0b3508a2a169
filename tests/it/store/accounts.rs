//! Accounts and tokens.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

use feedgate_core::account::{
    AccountHoldings, ChildTokenOutcome, MOST_TOKENS, NewToken, Scope, Scopes, TokenHash, TokenId,
};
use feedgate_core::password::{Password, PasswordHash};
use feedgate_core::store::{StoreError, SubscriptionFilter};
use feedgate_core::subscription::SubscriptionRequest;
use futures_util::future::join_all;

use super::large_documents::observe;
use super::{at, on_both_stores, request, resource};
use crate::support::claiming_store::ClaimingStore;
use crate::support::postgres::Database;

on_both_stores!(
    a_token_opens_its_account_until_it_is_revoked,
    a_token_ends_with_the_one_that_created_it,
    a02_an_account_has_a_bounded_number_of_tokens,
    a_token_with_an_end_is_refused_from_then_on,
    t10_a_removed_account_takes_its_subscriptions_with_it,
    h01_an_account_is_removed_in_short_transactions,
    t10_nobody_gets_the_login_of_a_removed_account,
    t10_a_deactivated_account_receives_nothing_until_it_is_activated,
);

fn new_token(login: &str, secret: &str) -> NewToken {
    NewToken {
        login: login.to_owned(),
        name: String::new(),
        scopes: Scopes::all(),
        hash: TokenHash::from_token(secret),
        expires_at: None,
    }
}

async fn a_token_with_an_end_is_refused_from_then_on(database: Database) {
    let store = database.open().await;
    let token = NewToken { expires_at: Some(at(20_000)), ..new_token("ada", "a") };
    let number = store.create_token(&token, at(0)).await.unwrap();
    let is_valid =
        async |now| store.authenticate("ada", &token.hash, at(now)).await.unwrap().is_some();
    let used = async || store.tokens_of("ada").await.unwrap()[0].used_at;
    assert_eq!(used().await, None);
    assert!(is_valid(10).await);
    assert!(is_valid(20).await);
    assert_eq!(used().await, Some(at(10)), "exact to an hour");
    assert!(is_valid(19_999).await);
    assert_eq!(used().await, Some(at(19_999)));
    assert!(!is_valid(20_000).await);
    let bearer = async |now| store.authenticate_bearer(&token.hash, at(now)).await.unwrap();
    assert_eq!(bearer(19_999).await.map(|access| access.login).as_deref(), Some("ada"));
    assert_eq!(bearer(20_000).await, None);
    let listed = store.tokens_of("ada").await.unwrap();
    assert_eq!((listed.len(), listed[0].id, listed[0].expires_at), (1, number, Some(at(20_000))));
    assert!(listed[0].is_valid(at(19_999)) && !listed[0].is_valid(at(20_000)));
    assert!(store.tokens_of("eve").await.unwrap().is_empty());
}

async fn h01_an_account_is_removed_in_short_transactions(database: Database) {
    const SUBSCRIPTIONS: usize = 1_100;
    const MOST_ENDED: usize = 1_000;
    let store = ClaimingStore::new(database.open().await);
    store.create_token(&new_token("ada", "a"), at(0)).await.unwrap();
    let access = store.authenticate("ada", &TokenHash::from_token("a"), at(0)).await.unwrap();
    let account = access.map(|access| access.account);
    let requests: Vec<_> = (0..SUBSCRIPTIONS)
        .map(|n| SubscriptionRequest {
            account,
            ..request("a", &format!("https://callback.test/{n}"))
        })
        .collect();
    join_all(requests.iter().map(|request| store.subscribe(request, at(1)))).await;
    let transactions = observe(&store);
    let held = store.remove_account("ada", at(2)).await.unwrap().unwrap();
    assert_eq!(held.subscriptions, SUBSCRIPTIONS as u64);
    let count = transactions.count.load(Ordering::Relaxed);
    assert!(count > SUBSCRIPTIONS / MOST_ENDED, "{count} transactions");
}

async fn t10_a_removed_account_takes_its_subscriptions_with_it(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    store.create_token(&new_token("ada", "a"), at(0)).await.unwrap();
    store.create_token(&new_token("bob", "b"), at(0)).await.unwrap();
    let account = async |login: &str, secret: &str| {
        let access =
            store.authenticate(login, &TokenHash::from_token(secret), at(0)).await.unwrap();
        access.unwrap().account
    };
    let (ada, bob) = (account("ada", "a").await, account("bob", "b").await);
    for (n, owner) in [Some(ada), Some(ada), Some(bob), None].into_iter().enumerate() {
        let mut request = request(&format!("{}", n % 2), &format!("https://callback.test/{n}"));
        request.account = owner;
        store.subscribe(&request, at(1)).await.unwrap();
    }
    let held = AccountHoldings { subscriptions: 2, tokens: 1, files: 0 };
    assert_eq!(store.account_holdings("ada").await.unwrap(), Some(held));
    assert_eq!(store.remove_account("ada", at(2)).await.unwrap(), Some(held));
    assert_eq!(store.account_holdings("ada").await.unwrap(), None);
    assert_eq!(store.remove_account("ada", at(3)).await.unwrap(), None, "it is removed already");

    let all = SubscriptionFilter { limit: 100, ..SubscriptionFilter::default() };
    let left = store.list(&all).await.unwrap().0;
    // The order of resources in several cells is that of the cells.
    let owners: BTreeSet<_> = left.iter().map(|one| one.subscription.account).collect();
    assert_eq!(owners, BTreeSet::from([Some(bob), None]));
    assert_eq!(left.len(), 2);
    for one in left {
        assert_eq!(resource(&store, one.resource.id).await.subscribers, 1);
    }

    // A subscription whose verification ended after the account was removed.
    let mut late = request("0", "https://callback.test/late");
    late.account = Some(ada);
    store.subscribe(&late, at(4)).await.unwrap();
    assert!(store.drop_ownerless(at(2)).await.unwrap().is_empty(), "nobody was removed since");
    let dropped = store.drop_ownerless(at(1)).await.unwrap();
    assert_eq!(dropped.iter().map(|one| one.account).collect::<Vec<_>>(), [Some(ada)]);
    assert!(store.drop_ownerless(at(1)).await.unwrap().is_empty());
}

async fn t10_a_deactivated_account_receives_nothing_until_it_is_activated(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    for login in ["ada", "bob"] {
        store.create_token(&new_token(login, login), at(0)).await.unwrap();
    }
    let access = async |login: &str| {
        store.authenticate(login, &TokenHash::from_token(login), at(0)).await.map(Option::unwrap)
    };
    let (ada, bob) = (access("ada").await.unwrap().account, access("bob").await.unwrap().account);
    let request = |owner, callback: &str| {
        let mut request = request("0", &format!("https://callback.test/{callback}"));
        request.account = Some(owner);
        request
    };
    for (owner, callback) in [(ada, "0"), (ada, "1"), (bob, "2")] {
        store.subscribe(&request(owner, callback), at(1)).await.unwrap();
    }
    let of_ada =
        SubscriptionFilter { account: Some(ada), limit: 100, ..SubscriptionFilter::default() };
    let paused = async || {
        let listed = store.list(&of_ada).await.unwrap().0;
        listed.iter().map(|one| one.delivery.paused_at).collect::<Vec<_>>()
    };
    let own = store.list(&of_ada).await.unwrap().0[0].subscription.id;
    store.pause(own, at(2)).await.unwrap();

    assert_eq!(store.deactivate_account("ada", at(3)).await.unwrap(), Some(1));
    assert_eq!(store.deactivate_account("ada", at(4)).await.unwrap(), Some(0), "it is already");
    assert_eq!(paused().await, [Some(at(2)), Some(at(3))]);
    let refused = access("ada").await.unwrap_err();
    assert!(matches!(refused, StoreError::AccountDeactivated(login) if login == "ada"));
    assert_eq!(access("bob").await.unwrap().account, bob);
    assert!(store.is_deactivated("ada").await.unwrap());
    assert!(!store.is_deactivated("bob").await.unwrap());
    let states = store.list_accounts().await.unwrap();
    assert_eq!(states.iter().map(|a| a.is_deactivated).collect::<Vec<_>>(), [true, false]);

    // A subscription whose verification ended after the account was deactivated.
    store.subscribe(&request(ada, "late"), at(5)).await.unwrap();
    assert_eq!(store.pause_deactivated(at(3)).await.unwrap(), 0, "nobody was since");
    assert_eq!(store.pause_deactivated(at(2)).await.unwrap(), 1);
    assert_eq!(paused().await, [Some(at(2)), Some(at(3)), Some(at(3))]);

    assert_eq!(store.activate_account("ada", at(6)).await.unwrap(), Some(2));
    assert_eq!(store.activate_account("ada", at(7)).await.unwrap(), Some(0), "it is already");
    assert_eq!(paused().await, [Some(at(2)), None, None], "its owner has paused one");
    assert_eq!(access("ada").await.unwrap().account, ada);
    for nobody in ["eve", "\0"] {
        assert_eq!(store.deactivate_account(nobody, at(8)).await.unwrap(), None);
        assert_eq!(store.activate_account(nobody, at(8)).await.unwrap(), None);
    }
}

async fn t10_nobody_gets_the_login_of_a_removed_account(database: Database) {
    let store = database.open().await;
    let hash = PasswordHash::from_password(&Password::chosen("a password").unwrap(), [1; 16]);
    assert!(store.create_account("ada", &hash, at(0)).await.unwrap());
    store.create_token(&new_token("ada", "a"), at(0)).await.unwrap();
    store.remove_account("ada", at(1)).await.unwrap().unwrap();

    let token = store.create_token(&new_token("ada", "b"), at(2)).await.unwrap_err();
    let account = store.create_account("ada", &hash, at(2)).await.unwrap_err();
    for refused in [token, account] {
        assert!(matches!(refused, StoreError::AccountRemoved(login) if login == "ada"));
    }
    assert!(!store.set_password("ada", &hash).await.unwrap());
    assert_eq!(store.password("ada").await.unwrap(), None);
    for secret in ["a", "b"] {
        let access =
            store.authenticate("ada", &TokenHash::from_token(secret), at(0)).await.unwrap();
        assert_eq!(access, None);
    }
    let listed = store.list_accounts().await.unwrap();
    assert_eq!(listed.iter().map(|a| (a.is_removed, a.tokens)).collect::<Vec<_>>(), [(true, 0)]);
}

async fn a_token_opens_its_account_until_it_is_revoked(database: Database) {
    let store = database.open().await;
    let token = |login: &str, secret: &str, scopes| NewToken {
        login: login.to_owned(),
        name: format!("{login}'s"),
        scopes,
        hash: TokenHash::from_token(secret),
        expires_at: None,
    };
    let list: Scopes = [Scope::List].into_iter().collect();
    let one = store.create_token(&token("ada", "one", list), at(1)).await.unwrap();
    let two = store.create_token(&token("ada", "two", Scopes::all()), at(2)).await.unwrap();
    let other = store.create_token(&token("bob", "other", list), at(3)).await.unwrap();

    let ada =
        store.authenticate("ada", &TokenHash::from_token("one"), at(0)).await.unwrap().unwrap();
    assert_eq!((ada.login.as_str(), ada.scopes), ("ada", list));
    let same =
        store.authenticate("ada", &TokenHash::from_token("two"), at(0)).await.unwrap().unwrap();
    assert_eq!((same.account, same.scopes), (ada.account, Scopes::all()));
    for (login, secret) in [("ada", "other"), ("ada", ""), ("eve", "one"), ("", "one")] {
        let refused =
            store.authenticate(login, &TokenHash::from_token(secret), at(0)).await.unwrap();
        assert_eq!(refused, None, "{login} with {secret}");
    }

    assert!(store.revoke_token(one, at(4)).await.unwrap());
    assert!(!store.revoke_token(one, at(5)).await.unwrap(), "it has ended already");
    assert!(!store.revoke_token(-1, at(5)).await.unwrap());
    assert_eq!(
        store.authenticate("ada", &TokenHash::from_token("one"), at(0)).await.unwrap(),
        None
    );
    let tokens = store.list_tokens().await.unwrap();
    assert_eq!(tokens.iter().map(|token| token.id).collect::<Vec<_>>(), [one, two, other]);
    assert_eq!((tokens[0].created_at, tokens[0].revoked_at), (at(1), Some(at(4))));
    assert_eq!((tokens[2].login.as_str(), tokens[2].name.as_str()), ("bob", "bob's"));
    assert_eq!((tokens[1].scopes, tokens[1].revoked_at), (Scopes::all(), None));
}

async fn a02_an_account_has_a_bounded_number_of_tokens(database: Database) {
    let store = database.open().await;
    let one = store.create_token(&new_token("ada", "one"), at(0)).await.unwrap();
    let child = async |secret: String, expires_at, now| {
        let token = NewToken { expires_at, ..new_token("ada", &secret) };
        store.create_child_token(&token, TokenId(one), at(now)).await.unwrap()
    };
    for n in 0..MOST_TOKENS + 3 {
        let made = child(format!("short {n}"), Some(at(2)), if n < 500 { 1 } else { 2 }).await;
        assert!(matches!(made, ChildTokenOutcome::Created(_)), "{n}: {made:?}");
    }
    for n in 1..MOST_TOKENS {
        let made = child(format!("long {n}"), None, 3).await;
        assert!(matches!(made, ChildTokenOutcome::Created(_)), "{n}: {made:?}");
    }
    assert_eq!(child("another".to_owned(), None, 3).await, ChildTokenOutcome::TooMany);
    let all = store.tokens_of("ada").await.unwrap();
    assert_eq!(all.len(), 2 * MOST_TOKENS, "three that had ended gave way");
    assert_eq!(all[0].id, one);
    let account = store.authenticate("ada", &TokenHash::from_token("one"), at(3)).await.unwrap();
    let account = account.unwrap().account;
    let page = store.tokens_after(account, all[4].id, 2).await.unwrap();
    assert_eq!(page, all[5..7]);
    assert!(store.revoke_token(all[1_500].id, at(4)).await.unwrap());
    let made = child("another".to_owned(), None, 5).await;
    assert!(matches!(made, ChildTokenOutcome::Created(_)), "{made:?}");
}

async fn a_token_ends_with_the_one_that_created_it(database: Database) {
    let store = database.open().await;
    let one = NewToken { expires_at: Some(at(900)), ..new_token("ada", "one") };
    let one = store.create_token(&one, at(1)).await.unwrap();
    let child = async |secret: &str, parent: i64, now| {
        let token = new_token("ada", secret);
        store.create_child_token(&token, TokenId(parent), at(now)).await.unwrap()
    };
    let ChildTokenOutcome::Created(TokenId(two)) = child("two", one, 2).await else { panic!() };
    assert!(matches!(child("three", two, 3).await, ChildTokenOutcome::Created(_)));
    let tokens = store.tokens_of("ada").await.unwrap();
    assert!(tokens.iter().all(|token| token.expires_at == Some(at(900))), "{tokens:?}");
    assert!(store.revoke_token(one, at(4)).await.unwrap());
    let tokens = store.tokens_of("ada").await.unwrap();
    assert_eq!(tokens.len(), 3);
    assert!(tokens.iter().all(|token| token.revoked_at == Some(at(4))), "{tokens:?}");
    assert_eq!(child("four", two, 5).await, ChildTokenOutcome::ParentEnded);
}
