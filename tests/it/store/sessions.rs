//! Sessions of the console.

use chrono::TimeDelta;
use feedgate_core::account::{NewToken, Scope, Scopes, SessionHash, TokenHash};
use feedgate_core::store::PruneBefore;

use super::{at, on_both_stores};
use crate::support::postgres::Database;

on_both_stores!(
    s39_a_session_ends_with_its_token_and_when_it_is_not_used,
    sessions_that_were_not_used_are_deleted,
);

const IDLE: TimeDelta = TimeDelta::days(30);

fn new_token(secret: &str) -> NewToken {
    NewToken {
        login: "ada".to_owned(),
        name: String::new(),
        scopes: [Scope::List].into_iter().collect(),
        hash: TokenHash::from_token(secret),
        expires_at: None,
    }
}

async fn s39_a_session_ends_with_its_token_and_when_it_is_not_used(database: Database) {
    let store = database.open().await;
    let [first, second, third] = ["1", "2", "3"].map(SessionHash::from_cookie);
    let token = TokenHash::from_token("a");
    assert!(!store.begin_session(&first, &token, at(0)).await.unwrap(), "there is no such token");
    let number = store.create_token(&new_token("a"), at(0)).await.unwrap();
    for session in [&first, &second, &third] {
        assert!(store.begin_session(session, &token, at(0)).await.unwrap());
    }
    let access = store.session(&first, IDLE, at(1)).await.unwrap().unwrap();
    let scopes: Scopes = [Scope::List].into_iter().collect();
    assert_eq!((access.login.as_str(), access.scopes), ("ada", scopes));
    assert_eq!(store.session(&SessionHash::from_cookie("4"), IDLE, at(1)).await.unwrap(), None);

    store.end_session(&first).await.unwrap();
    assert_eq!(store.session(&first, IDLE, at(2)).await.unwrap(), None);

    // Each use prolongs a session.
    let day = 86_400;
    for days in [20, 40, 60] {
        assert!(store.session(&second, IDLE, at(days * day)).await.unwrap().is_some(), "{days}");
    }
    assert_eq!(store.session(&third, IDLE, at(30 * day)).await.unwrap(), None, "it was not used");
    store.deactivate_account("ada", at(61 * day)).await.unwrap();
    assert_eq!(store.session(&second, IDLE, at(61 * day)).await.unwrap(), None);
    store.activate_account("ada", at(61 * day)).await.unwrap();
    assert!(store.session(&second, IDLE, at(61 * day)).await.unwrap().is_some());
    assert!(store.revoke_token(number, at(62 * day)).await.unwrap());
    assert_eq!(store.session(&second, IDLE, at(62 * day)).await.unwrap(), None);
    assert!(!store.begin_session(&first, &token, at(62 * day)).await.unwrap());
}

async fn sessions_that_were_not_used_are_deleted(database: Database) {
    let store = database.open().await;
    let [old, new] = ["1", "2"].map(SessionHash::from_cookie);
    let number = store.create_token(&new_token("a"), at(0)).await.unwrap();
    let token = TokenHash::from_token("a");
    store.begin_session(&old, &token, at(10)).await.unwrap();
    store.begin_session(&new, &token, at(20)).await.unwrap();
    let before = PruneBefore { sessions: Some(at(15)), ..PruneBefore::default() };
    assert_eq!(store.prune(&before).await.unwrap(), 1);
    assert_eq!(store.session(&old, IDLE, at(21)).await.unwrap(), None);
    assert!(store.session(&new, IDLE, at(21)).await.unwrap().is_some());

    // A token that is deleted takes its sessions with it.
    store.revoke_token(number, at(30)).await.unwrap();
    let before = PruneBefore { ended_tokens: Some(at(40)), ..PruneBefore::default() };
    assert_eq!(store.prune(&before).await.unwrap(), 1);
    assert_eq!(store.session(&new, IDLE, at(41)).await.unwrap(), None);
}
