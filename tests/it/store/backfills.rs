//! Backfills: older entries are staged page by page, and enter the log oldest first.

use std::sync::Arc;

use feedgate_core::backfill::{BackfillEnd, Chain, PastPage};
use feedgate_core::record::Seq;
use feedgate_core::store::{CommitProgress, DueBackfill};
use feedgate_store::Store;

use super::{at, entry, on_both_stores, request, resource};
use crate::support::postgres::Database;

on_both_stores!(
    staged_entries_enter_the_log_oldest_first,
    a_backfill_that_is_dropped_leaves_nothing_behind,
);

/// A page with these entries, and a link to the page with this number.
fn page(number: u32, ids: &[&str]) -> PastPage {
    PastPage {
        urls: vec![format!("https://feeds.test/a?page={number}")],
        entries: ids.iter().map(|id| entry(id)).collect(),
        link: Some((Chain::Paged, format!("https://feeds.test/a?page={}", number + 1))),
        ..PastPage::default()
    }
}

/// Claims the only backfill that is due.
async fn claim(store: &Arc<Store>, seconds: i64) -> DueBackfill {
    let mut due = store.claim_backfills(at(seconds), at(seconds + 60), 9).await.unwrap();
    let again = store.claim_backfills(at(seconds), at(seconds + 60), 9).await.unwrap();
    assert_eq!((due.len(), again.len()), (1, 0), "it is claimed once");
    due.pop().unwrap()
}

async fn begin(store: &Arc<Store>) -> DueBackfill {
    store.subscribe_with_history(&request("a", "https://callback.test/"), at(0)).await.unwrap();
    claim(store, 1).await
}

async fn staged_entries_enter_the_log_oldest_first(database: Database) {
    let store = database.open().await;
    let first = begin(&store).await;
    let id = first.backfill.resource;
    let renewed = store.renew_backfill_claims(&[(id, first.claim)], at(2), at(90)).await.unwrap();
    assert_eq!(renewed, [id]);
    let newest = page(1, &["3", "4"]);
    assert!(store.stage_backfill(&first.backfill, first.claim, newest, at(3)).await.unwrap());
    let late = store.stage_backfill(&first.backfill, first.claim, page(1, &["5"]), at(3)).await;
    assert!(!late.unwrap(), "the claim has ended");

    let second = claim(&store, 4).await;
    assert_eq!((second.backfill.pages, second.backfill.entries), (1, 2));
    let older = page(2, &["1", "2", "3"]);
    assert!(store.stage_backfill(&second.backfill, second.claim, older, at(5)).await.unwrap());
    let DueBackfill { mut backfill, claim: token, .. } = claim(&store, 6).await;
    assert_eq!((backfill.pages, backfill.entries), (2, 4), "an entry is staged once");
    backfill.end(BackfillEnd::Complete);
    assert!(store.save_backfill(&backfill, token, at(7)).await.unwrap());

    let token = claim(&store, 8).await.claim;
    let progress = store.commit_staged(id, token, at(9)).await.unwrap();
    assert_eq!(progress, CommitProgress::More);
    let progress = store.commit_staged(id, token, at(10)).await.unwrap();
    assert_eq!(progress, CommitProgress::Complete);
    let records = store.read_after(id, Seq::NONE, 9).await.unwrap();
    let ids: Vec<_> = records.iter().map(|record| record.entry_id.as_str()).collect();
    assert_eq!(ids, ["1", "2", "3", "4"]);
    let ended = store.backfills(&[id]).await.unwrap().pop().unwrap();
    assert_eq!((ended.state(), ended.appended), ("done", 4));
    assert_eq!(resource(&store, id).await.next_fetch, at(10), "it is polled from now on");
}

async fn a_backfill_that_is_dropped_leaves_nothing_behind(database: Database) {
    let store = database.open().await;
    let first = begin(&store).await;
    let id = first.backfill.resource;
    assert!(
        store.stage_backfill(&first.backfill, first.claim, page(1, &["1"]), at(3)).await.unwrap()
    );
    let token = claim(&store, 4).await.claim;
    store.drop_backfill(id, token, at(5)).await.unwrap();
    assert_eq!(store.backfills(&[id]).await.unwrap(), []);
    assert_eq!(resource(&store, id).await.head, Seq::NONE);
}
