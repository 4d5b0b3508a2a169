//! Backfills: older entries are staged page by page, and enter the log oldest first.

use std::sync::Arc;

use feedgate_core::account::AccountId;
use feedgate_core::backfill::{Backfill, BackfillEnd, BackfillShare, Chain, PastPage};
use feedgate_core::change_detection::Candidate;
use feedgate_core::record::Seq;
use feedgate_core::registrant::RegistrantNetwork;
use feedgate_core::store::{CommitProgress, DueBackfill, StagedPage};
use feedgate_core::subscription::SubscriptionRequest;
use feedgate_store::Store;

use super::{at, entry, on_both_stores, request, resource};
use crate::support::postgres::Database;

on_both_stores!(
    staged_entries_enter_the_log_oldest_first,
    a_backfill_that_is_dropped_leaves_nothing_behind,
    h01_a_backfill_that_waits_goes_on_when_an_account_requests_it,
    h01_an_account_takes_no_step_from_a_node_of_the_release_before,
    h01_a_page_that_uses_up_the_budget_is_read_to_its_end_and_counted_once,
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
    let claim = || {
        let share = BackfillShare::Anonymous;
        store.claim_backfills(share, at(seconds), at(seconds + 60), 9)
    };
    let mut due = claim().await.unwrap();
    let again = claim().await.unwrap();
    assert_eq!((due.len(), again.len()), (1, 0), "it is claimed once");
    due.pop().unwrap()
}

async fn stage(store: &Store, due: &DueBackfill, page: PastPage, s: i64) {
    let staged = store.stage_backfill(&due.backfill, due.claim, page, at(s)).await;
    assert_eq!(staged.unwrap(), StagedPage::Staged);
}

async fn begin(store: &Arc<Store>) -> DueBackfill {
    store.subscribe_with_history(&request("a", "https://callback.test/"), at(0)).await.unwrap();
    claim(store, 1).await
}

async fn staged_entries_enter_the_log_oldest_first(database: Database) {
    let store = database.open().await;
    let first = begin(&store).await;
    let id = first.backfill.resource;
    let renewed = store.renew_backfill_claims(&[(id, first.claim)], at(90)).await.unwrap();
    assert_eq!(renewed, [id]);
    let newest = page(1, &["3", "4"]);
    stage(&store, &first, newest, 3).await;
    let late = store.stage_backfill(&first.backfill, first.claim, page(1, &["5"]), at(3)).await;
    assert_eq!(late.unwrap(), StagedPage::ClaimLost, "the claim has ended");

    let second = claim(&store, 4).await;
    assert_eq!((second.backfill.pages, second.backfill.entries), (1, 2));
    let older = page(2, &["1", "2", "3"]);
    stage(&store, &second, older, 5).await;
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
    stage(&store, &first, page(1, &["1"]), 3).await;
    let token = claim(&store, 4).await.claim;
    store.drop_backfill(id, token, at(5)).await.unwrap();
    assert_eq!(store.backfills(&[id]).await.unwrap(), []);
    assert_eq!(resource(&store, id).await.head, Seq::NONE);
}

async fn h01_a_backfill_that_waits_goes_on_when_an_account_requests_it(database: Database) {
    let store = database.open().await;
    let first = begin(&store).await;
    let id = first.backfill.resource;
    let tomorrow = at(24 * 3_600);
    assert!(store.postpone_backfill(id, first.claim, (tomorrow, at(2))).await.unwrap());
    assert!(!store.postpone_backfill(id, first.claim, (tomorrow, at(2))).await.unwrap());
    assert_eq!(resource(&store, id).await.next_fetch, tomorrow, "it is polled before its history");
    let due = async |share, s| store.claim_backfills(share, at(s), at(s + 60), 9).await.unwrap();
    assert_eq!(due(BackfillShare::Anonymous, 10).await, []);

    let mut own = request("a", "https://own.test/");
    own.account = Some(AccountId(7));
    store.subscribe_with_history(&own, at(20)).await.unwrap();
    assert_eq!(due(BackfillShare::Anonymous, 20).await, []);
    let due = due(BackfillShare::Accounts, 20).await;
    assert_eq!(due.len(), 1);
    assert!(!due[0].backfill.holds);
}

async fn h01_an_account_takes_no_step_from_a_node_of_the_release_before(database: Database) {
    let store = database.open().await;
    let first = begin(&store).await;
    let day_s = 24 * 3_600;
    let postponed =
        store.postpone_backfill(first.backfill.resource, first.claim, (at(day_s), at(2)));
    assert!(postponed.await.unwrap());
    claim(&store, day_s).await;
    // A node of the release before leaves this as it was when it claims a step.
    database.run("update backfills set is_postponed = 1").await;

    let mut own = request("a", "https://own.test/");
    own.account = Some(AccountId(7));
    store.subscribe_with_history(&own, at(day_s + 10)).await.unwrap();
    let due = async |s| {
        let share = BackfillShare::Accounts;
        store.claim_backfills(share, at(s), at(s + 60), 9).await.unwrap().len()
    };
    assert_eq!(due(day_s + 20).await, 0, "it is claimed");
    assert_eq!(due(day_s + 61).await, 1);
}

/// Lets a network have used up its budget of the day.
async fn use_up(database: &Database, network: RegistrantNetwork, s: i64) {
    let (owner, day) = (network.as_number(), at(s).timestamp().div_euclid(24 * 3_600));
    let sql = format!(
        "insert into account_appends (account_id, stripe, day, bytes, used_up_day)
         values ({owner}, 99, {day}, {}, {day})
             on conflict (account_id, stripe) do update
            set day = excluded.day, used_up_day = excluded.used_up_day",
        1_i64 << 50
    );
    database.run(&sql).await;
}

async fn h01_a_page_that_uses_up_the_budget_is_read_to_its_end_and_counted_once(
    database: Database,
) {
    let store = database.open().await;
    let network = RegistrantNetwork::from_client(Some([192, 0, 2, 1].into()));
    let anonymous =
        SubscriptionRequest { registrant: network, ..request("a", "https://callback.test/") };
    let id = store.subscribe_with_history(&anonymous, at(0)).await.unwrap().id.resource;
    let read = async |day: i64, page: PastPage| {
        let s = day * 24 * 3_600 + 5_000; // after the time over which the day begins for resources
        use_up(&database, network, s).await;
        let due = claim(&store, s).await;
        let staged = store.stage_backfill(&due.backfill, due.claim, page, at(s)).await.unwrap();
        if let StagedPage::Postponed(until) = staged {
            store.postpone_backfill(id, due.claim, (until, at(s))).await.unwrap();
        }
        staged
    };
    let backfill = async || store.backfills(&[id]).await.unwrap().pop().unwrap();
    let counts = |held: Backfill| (held.pages, held.entries, held.barren);

    let ids: Vec<String> = (0..250).map(|n| n.to_string()).collect();
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    let long = page(1, &ids);
    assert!(matches!(read(1, long.clone()).await, StagedPage::Postponed(_)), "its second part");
    assert_eq!(read(2, long).await, StagedPage::Staged, "nothing of it is left to wait");
    assert_eq!(counts(backfill().await), (1, 250, 0));
    for (day, id) in [(3, "a"), (4, "b"), (5, "c"), (6, "d")] {
        assert_eq!(read(day, page(day as u32, &[id])).await, StagedPage::Staged);
    }
    let before = backfill().await;
    assert_eq!(counts(before.clone()), (5, 254, 0), "{before:?}");

    // As if the node was killed before the backfill advanced.
    database.run("update backfills set pages = 4, entries = 253").await;
    assert_eq!(read(7, page(6, &["d"])).await, StagedPage::Staged);
    assert_eq!(counts(backfill().await), (5, 254, 0), "a page that is read twice counts once");

    // Always the same entries, which the server dates anew.
    for n in 0..3 {
        assert_eq!(backfill().await.ending, None);
        let mut same = page(7 + n, &["d"]);
        same.entries = vec![Candidate { updated: Some(at(n.into())), ..entry("d") }];
        assert_eq!(read(8 + i64::from(n), same).await, StagedPage::Staged);
    }
    let end = backfill().await;
    assert_eq!((end.ending.clone(), counts(end)), (Some(BackfillEnd::Complete), (8, 254, 3)));
}
