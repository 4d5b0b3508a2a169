//! Where resources are fetched: moves, their log, and taking them back.

use super::{at, on_both_stores, poll, resource, room, subscribe};
use crate::support::postgres::Database;

on_both_stores!(p20_a_move_is_logged_and_can_be_taken_back);

async fn p20_a_move_is_logged_and_can_be_taken_back(database: Database) {
    const NEW: &str = "https://new.test/feed";
    let store = database.open().await;
    let id = subscribe(&store, "a", "https://callback.test/").await.id.resource;
    for (seconds, url) in [(1, Some(NEW)), (2, Some(NEW)), (3, None)] {
        let mut found = poll(at(seconds), &[]);
        found.fetch_url = url.map(str::to_owned);
        store.record(id, &found).await.unwrap();
    }
    let moved = resource(&store, id).await;
    assert_eq!((moved.topic.as_str(), moved.fetch_url.as_str()), ("https://feeds.test/a", NEW));
    let log = store.moves(id).await.unwrap();
    assert_eq!((log.len(), log[0].at, log[0].undone_at), (1, at(1), None));
    assert_eq!((log[0].from.as_str(), log[0].to.as_str()), ("https://feeds.test/a", NEW));

    assert!(!store.undo_move(id, log[0].number + 1, at(9)).await.unwrap(), "there is none");
    assert!(store.undo_move(id, log[0].number, at(9)).await.unwrap());
    assert!(!store.undo_move(id, log[0].number, at(10)).await.unwrap(), "once");
    let back = resource(&store, id).await;
    assert_eq!(back.fetch_url, "https://feeds.test/a");
    assert!(back.polling.moved.is_some_and(|moved| moved.undone == [NEW]));
    assert_eq!(store.moves(id).await.unwrap()[0].undone_at, Some(at(9)));
    let due = store.claim_resources(at(9), at(10), &room()).await.unwrap();
    assert_eq!(due[0].resource.id, id, "it is asked where it was, at once");
}
