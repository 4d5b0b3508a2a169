//! Rows that nothing else ends are deleted at the end of their retention.

use feedgate_core::account::{NewToken, Scopes, TokenHash};
use feedgate_core::store::PruneBefore;

use super::{at, in_one_cell, on_both_stores, request, subscribe};
use crate::support::postgres::Database;

on_both_stores! {
    tokens_that_have_ended_are_deleted_and_valid_ones_stay,
    backfills_are_deleted_once_they_have_ended,
}

in_one_cell! {
    moves_are_deleted_however_many_they_are,
    what_is_kept_forever_stays,
    what_was_counted_for_networks_is_deleted_and_for_accounts_kept,
}

/// So many moves of the resource, one in each second from `at(0)` on.
async fn fill_moves(database: &Database, resource: i64, moves: usize) {
    let first = at(0).timestamp_micros();
    let fill = format!(
        "with recursive n (n) as (select 0 union all select n + 1 from n where n + 1 < {moves})
         insert into moves (resource_id, at, from_url, to_url)
         select {resource}, {first} + cast(n as bigint) * 1000000, 'https://old.test/', 'https://new.test/' from n"
    );
    database.run(&fill).await;
}

async fn moves_are_deleted_however_many_they_are(database: Database) {
    let store = database.open().await;
    let id = subscribe(&store, "a", "https://callback.test/").await.id.resource;
    fill_moves(&database, id.0, 2_500).await;
    let before = PruneBefore { moves: Some(at(2_200)), ..PruneBefore::default() };
    assert_eq!(store.prune(&before).await.unwrap(), 2_200, "in three transactions");
    let left = store.moves(id).await.unwrap();
    assert_eq!((left.len(), left.last().unwrap().at), (300, at(2_200)));
    assert_eq!(store.prune(&before).await.unwrap(), 0);
}

async fn tokens_that_have_ended_are_deleted_and_valid_ones_stay(database: Database) {
    let store = database.open().await;
    let mut ids = Vec::new();
    for (name, end) in [
        ("long ago", None),
        ("expired", Some(at(19))),
        ("lately", None),
        ("expires", Some(at(20))),
        ("valid", None),
    ] {
        let hash = TokenHash::from_token(name);
        let (login, name, scopes) = ("ada".to_owned(), name.to_owned(), Scopes::all());
        let token = NewToken { login, name, scopes, hash, expires_at: end };
        ids.push(store.create_token(&token, at(0)).await.unwrap());
    }
    store.revoke_token(ids[0], at(10)).await.unwrap();
    store.revoke_token(ids[2], at(20)).await.unwrap();
    let before = PruneBefore { ended_tokens: Some(at(20)), ..PruneBefore::default() };
    assert_eq!(store.prune(&before).await.unwrap(), 2);
    let left = store.list_tokens().await.unwrap();
    assert_eq!(left.iter().map(|token| token.id).collect::<Vec<_>>(), ids[2..]);
    let valid = store.authenticate("ada", &TokenHash::from_token("valid"), at(0)).await.unwrap();
    assert!(valid.is_some());
}

async fn backfills_are_deleted_once_they_have_ended(database: Database) {
    let store = database.open().await;
    let mut ids = Vec::new();
    for (name, ended) in [("a", Some(10)), ("b", Some(20)), ("c", None)] {
        let request = request(name, "https://callback.test/");
        let id = store.subscribe_with_history(&request, at(0)).await.unwrap().id.resource;
        if let Some(ended) = ended {
            let ended = at(ended).timestamp_micros();
            let end = format!(
                "update backfills set ended_at = {ended}, due_at = null where resource_id = {}",
                id.0
            );
            database.run(&end).await;
        }
        ids.push(id);
    }
    let mut kept = ids[1..].to_vec();
    kept.sort_by_key(|id| id.0); // numbers of several cells are not in the order of creation
    let before = PruneBefore { backfills: Some(at(20)), ..PruneBefore::default() };
    assert_eq!(store.prune(&before).await.unwrap(), 1);
    let left = store.backfills(&ids).await.unwrap();
    let mut left: Vec<_> = left.into_iter().map(|backfill| backfill.resource).collect();
    left.sort_by_key(|id| id.0);
    assert_eq!(left, kept);
}

async fn what_is_kept_forever_stays(database: Database) {
    let store = database.open().await;
    let id = subscribe(&store, "a", "https://callback.test/").await.id.resource;
    fill_moves(&database, id.0, 3).await;
    assert_eq!(store.prune(&PruneBefore::default()).await.unwrap(), 0);
    assert_eq!(store.moves(id).await.unwrap().len(), 3);
}

async fn what_was_counted_for_networks_is_deleted_and_for_accounts_kept(database: Database) {
    let store = database.open().await;
    let today = at(0).timestamp() / 86_400;
    for (account, day) in [(-5, today - 3), (-6, today), (7, today - 3)] {
        let count = format!(
            "insert into account_appends (account_id, stripe, day, bytes) values ({account}, 0, {day}, 1)"
        );
        database.run(&count).await;
    }
    let before = PruneBefore { network_budgets: Some(at(0)), ..PruneBefore::default() };
    assert_eq!(store.prune(&before).await.unwrap(), 1);
    assert_eq!(store.prune(&before).await.unwrap(), 0);
}
