//! Accounts and tokens.

use feedgate_core::account::{NewToken, Scope, Scopes, TokenHash};

use super::{at, on_both_stores};
use crate::support::postgres::Database;

on_both_stores!(a_token_opens_its_account_until_it_is_revoked);

async fn a_token_opens_its_account_until_it_is_revoked(database: Database) {
    let store = database.open().await;
    let token = |login: &str, secret: &str, scopes| NewToken {
        login: login.to_owned(),
        name: format!("{login}'s"),
        scopes,
        hash: TokenHash::from_token(secret),
    };
    let list: Scopes = [Scope::List].into_iter().collect();
    let one = store.create_token(&token("ada", "one", list), at(1)).await.unwrap();
    let two = store.create_token(&token("ada", "two", Scopes::all()), at(2)).await.unwrap();
    let other = store.create_token(&token("bob", "other", list), at(3)).await.unwrap();

    let ada = store.authenticate("ada", &TokenHash::from_token("one")).await.unwrap().unwrap();
    assert_eq!((ada.login.as_str(), ada.scopes), ("ada", list));
    let same = store.authenticate("ada", &TokenHash::from_token("two")).await.unwrap().unwrap();
    assert_eq!((same.account, same.scopes), (ada.account, Scopes::all()));
    for (login, secret) in [("ada", "other"), ("ada", ""), ("eve", "one"), ("", "one")] {
        let refused = store.authenticate(login, &TokenHash::from_token(secret)).await.unwrap();
        assert_eq!(refused, None, "{login} with {secret}");
    }

    assert!(store.revoke_token(one, at(4)).await.unwrap());
    assert!(!store.revoke_token(one, at(5)).await.unwrap(), "it has ended already");
    assert!(!store.revoke_token(-1, at(5)).await.unwrap());
    assert_eq!(store.authenticate("ada", &TokenHash::from_token("one")).await.unwrap(), None);
    let tokens = store.list_tokens().await.unwrap();
    assert_eq!(tokens.iter().map(|token| token.id).collect::<Vec<_>>(), [one, two, other]);
    assert_eq!((tokens[0].created_at, tokens[0].revoked_at), (at(1), Some(at(4))));
    assert_eq!((tokens[2].login.as_str(), tokens[2].name.as_str()), ("bob", "bob's"));
    assert_eq!((tokens[1].scopes, tokens[1].revoked_at), (Scopes::all(), None));
}
