//! Accounts with passwords, and what they store.

use feedgate_core::account::{NewToken, Scopes, TokenHash};
use feedgate_core::password::{Password, PasswordHash};
use feedgate_core::stored_file::{
    FileContent, FileLocation, FileToSave, PathSegment, Quota, SaveOutcome, WriteCondition,
};
use feedgate_store::Store;

use super::{at, on_both_stores};
use crate::support::postgres::Database;

on_both_stores!(
    a_password_is_kept_until_the_account_is_closed,
    nobody_has_a_login_with_a_zero_in_it,
    a_file_is_kept_within_the_quota_and_as_demanded,
    saves_side_by_side_are_one_after_the_other,
);

const QUOTA: Quota = Quota { file_bytes: 10, files: 2, bytes: 12 };

fn content(body: &str) -> FileContent {
    FileContent { media_type: "application/rss+xml".to_owned(), body: body.into() }
}

fn segment(text: &str) -> PathSegment {
    PathSegment::login(text).unwrap()
}

/// Keeps `body` under `name` for ada, on any condition.
async fn keep(store: &Store, name: &str, body: &str, second: i64) -> SaveOutcome {
    let location = FileLocation { login: &segment("ada"), name: &segment(name) };
    let (content, condition) = (&content(body), &WriteCondition::None);
    let file = FileToSave { location, content, condition, quota: QUOTA };
    store.save_file(file, at(second)).await.unwrap()
}

async fn nobody_has_a_login_with_a_zero_in_it(database: Database) {
    let store = database.open().await;
    let hash = PasswordHash::from_password(&Password::chosen("a password").unwrap(), [1; 16]);
    assert!(store.create_account("ada", &hash, at(1)).await.unwrap());
    let login = "ada\0";
    assert_eq!(store.password(login).await.unwrap(), None);
    assert_eq!(store.authenticate(login, &TokenHash::from_token("t"), at(0)).await.unwrap(), None);
}

async fn a_password_is_kept_until_the_account_is_closed(database: Database) {
    let store = database.open().await;
    let hash = |text: &str| PasswordHash::from_password(&Password::chosen(text).unwrap(), [1; 16]);
    let (first, second) = (hash("first password"), hash("second password"));
    assert!(store.create_account("ada", &first, at(1)).await.unwrap());
    assert!(!store.create_account("ada", &second, at(2)).await.unwrap(), "there is one");
    assert_eq!(store.password("ada").await.unwrap().unwrap().1, first);
    assert!(store.set_password("ada", &second).await.unwrap());
    assert_eq!(store.password("ada").await.unwrap().unwrap().1, second);
    assert!(!store.set_password("eve", &second).await.unwrap());

    let (login, name) = ("bob".to_owned(), String::new());
    let token = NewToken {
        login,
        name,
        scopes: Scopes::all(),
        hash: TokenHash::from_token("t"),
        expires_at: None,
    };
    store.create_token(&token, at(3)).await.unwrap();
    assert_eq!(store.password("bob").await.unwrap(), None, "it has a token only");
    assert_eq!(keep(&store, "a.xml", "12345", 4).await, SaveOutcome::Made);
    let accounts = store.list_accounts().await.unwrap();
    let seen: Vec<_> = accounts
        .iter()
        .map(|a| (a.login.as_str(), a.has_password, a.tokens, a.files, a.bytes))
        .collect();
    assert_eq!(seen, [("ada", true, 0, 1, 5), ("bob", false, 1, 0, 0)]);

    for login in ["ada", "bob"] {
        assert!(store.remove_account(login, at(5)).await.unwrap().is_some());
        assert_eq!(store.password(login).await.unwrap(), None);
    }
    assert_eq!(store.remove_account("eve", at(5)).await.unwrap(), None);
    assert_eq!(store.authenticate("bob", &TokenHash::from_token("t"), at(0)).await.unwrap(), None);
    assert_eq!(store.file(&segment("ada"), &segment("a.xml")).await.unwrap(), None);
}

async fn a_file_is_kept_within_the_quota_and_as_demanded(database: Database) {
    let store = database.open().await;
    let hash = PasswordHash::from_password(&Password::chosen("a password").unwrap(), [1; 16]);
    assert_eq!(keep(&store, "a.xml", "1", 1).await, SaveOutcome::NoAccount);
    store.create_account("ada", &hash, at(1)).await.unwrap();
    let file = async |name: &str| store.file(&segment("ada"), &segment(name)).await.unwrap();

    assert_eq!(keep(&store, "a.xml", "12345", 2).await, SaveOutcome::Made);
    let made = file("a.xml").await.unwrap();
    assert_eq!((made.content.body.as_slice(), made.changed_at), (&b"12345"[..], at(2)));
    assert_eq!(made.tag, content("12345").tag());
    assert_eq!(keep(&store, "a.xml", "12345", 3).await, SaveOutcome::Same);
    assert_eq!(file("a.xml").await.unwrap().changed_at, at(2), "nothing changed");
    assert_eq!(keep(&store, "a.xml", "123456", 4).await, SaveOutcome::Replaced);
    assert_eq!(file("a.xml").await.unwrap().changed_at, at(4));

    assert_eq!(keep(&store, "b.xml", "1234567", 5).await, SaveOutcome::Full, "too many bytes");
    assert_eq!(keep(&store, "b.xml", "123456", 5).await, SaveOutcome::Made);
    assert_eq!(keep(&store, "c.xml", "", 5).await, SaveOutcome::Full, "too many files");
    assert_eq!(keep(&store, "b.xml", "654321", 6).await, SaveOutcome::Replaced, "it has its place");

    let location = FileLocation { login: &segment("ada"), name: &segment("a.xml") };
    let tagged = |tag: &str| WriteCondition::Tagged(vec![tag.to_owned()]);
    let tag = content("123456").tag();
    for unmet in [WriteCondition::Absent, tagged("other")] {
        let content = &content("1");
        let file = FileToSave { location, content, condition: &unmet, quota: QUOTA };
        let kept = store.save_file(file, at(7)).await.unwrap();
        assert_eq!(kept, SaveOutcome::Unmet, "{unmet:?}");
        assert_eq!(store.remove_file(location, &unmet).await.unwrap(), Some(false));
    }
    assert_eq!(store.remove_file(location, &tagged(&tag)).await.unwrap(), Some(true));
    assert_eq!(store.remove_file(location, &WriteCondition::None).await.unwrap(), None);
    assert_eq!(file("a.xml").await, None);
}

async fn saves_side_by_side_are_one_after_the_other(database: Database) {
    let store = database.open().await;
    let hash = PasswordHash::from_password(&Password::chosen("a password").unwrap(), [1; 16]);
    store.create_account("ada", &hash, at(1)).await.unwrap();
    let names: Vec<String> = (0..8).map(|n| format!("{n}.xml")).collect();
    let kept = names.iter().map(|name| keep(&store, name, "1", 2));
    let kept = futures_util::future::join_all(kept).await;
    let made = kept.iter().filter(|kept| **kept == SaveOutcome::Made).count();
    assert_eq!(made, QUOTA.files, "none slips past the quota: {kept:?}");
}
