//! Polls that find nothing, which are recorded together.

use std::sync::Arc;
use std::time::Duration;

use feedgate_core::poll::{NewContent, Poll, Polling, Trigger};
use feedgate_core::resource::ResourceId;
use feedgate_core::status::Status;
use feedgate_core::store::{ClaimLimits, StoreError};
use feedgate_store::Store;
use futures_util::future::join_all;

use super::pings::ping;
use super::{at, in_one_cell, on_both_stores, poll, resource, room, subscribe};
use crate::support::claiming_store::ClaimingStore;
use crate::support::postgres::Database;

on_both_stores! {
    polls_that_end_together_are_all_recorded,
    of_two_polls_of_a_resource_the_later_holds,
    what_was_measured_meanwhile_is_kept,
    a_poll_may_leave_the_details_as_they_are,
    details_are_written_if_they_are_others_by_now,
    a_ping_that_came_meanwhile_is_answered_soon,
    what_was_begun_is_recorded_before_the_store_closes,
    polls_that_end_together_wait_in_no_ring_with_what_hurries_them,
}

in_one_cell! {
    a_poll_that_cannot_be_recorded_takes_no_other_with_it,
}

/// Polls in one go.
const MANY: usize = 20;

/// A poll that ended `seconds` after the beginning and found nothing.
fn nothing(seconds: i64) -> Poll {
    Poll { found: NewContent::Nothing, ..poll(at(seconds), &[]) }
}

/// Resources that are claimed, four of each server.
async fn crowd(store: &ClaimingStore) -> Vec<ResourceId> {
    for n in 0..MANY {
        subscribe(store, &n.to_string(), "https://callback.test/").await;
    }
    let due = store.claim_resources(at(1), at(60), &room()).await.unwrap();
    assert_eq!(due.len(), MANY);
    due.into_iter().map(|due| due.resource.id).collect()
}

/// When each is fetched next, if it was recorded.
async fn recorded(store: &Arc<Store>, ids: &[ResourceId]) -> usize {
    let mut recorded = 0;
    for id in ids {
        recorded += usize::from(resource(store, *id).await.next_fetch == at(2 + 600));
    }
    recorded
}

async fn polls_that_end_together_are_all_recorded(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let ids = crowd(&store).await;
    let nothing = nothing(2);
    let results = join_all(ids.iter().map(|id| store.record(*id, &nothing))).await;
    for result in results {
        assert_eq!((result.as_ref().unwrap().head.0, result.unwrap().new), (0, 0));
    }
    assert_eq!(recorded(&store, &ids).await, MANY);
    let alone = ClaimLimits { limit: MANY, per_host: 1, busy: Vec::new() };
    let due = store.claim_resources(at(1_000), at(1_060), &alone).await.unwrap();
    assert_eq!(due.len(), 1, "claims have ended, and the server is free for one at a time");
    assert_eq!(store.claim_resources(at(1_001), at(1_060), &alone).await.unwrap(), []);
    store.record(due[0].resource.id, &nothing).await.unwrap();
    assert_eq!(store.claim_resources(at(1_002), at(1_060), &alone).await.unwrap().len(), 1);
}

async fn a_poll_that_cannot_be_recorded_takes_no_other_with_it(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let ids = crowd(&store).await;
    // The period of a poll that both databases refuse, because another resource has it already.
    let refuse = "create unique index refused on resources (period_s) where period_s = 4242";
    database.run(refuse).await;
    let status = Status { period_s: 4242, ..Status::default() };
    let unlike = Poll { status, ..nothing(2) };
    store.record(ids[0], &unlike).await.unwrap();
    let (missing, nothing) = (ResourceId(1_000_000), nothing(2));
    let polls = ids.iter().enumerate().map(|(n, id)| match n {
        7 => store.record(*id, &unlike),
        0 => store.record(*id, &unlike),
        9 => store.record(missing, &nothing),
        _ => store.record(*id, &nothing),
    });
    let results = join_all(polls).await;
    assert!(matches!(results[9], Err(StoreError::Corrupt(_))), "{:?}", results[9]);
    assert!(matches!(results[7], Err(StoreError::Database(_))), "{:?}", results[7]);
    assert_eq!(results.iter().filter(|result| result.is_err()).count(), 2, "{results:?}");
    // The poll of resource 9 was sent under another id.
    assert_eq!(recorded(&store, &ids).await, MANY - 2);
}

async fn of_two_polls_of_a_resource_the_later_holds(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    // Nobody has claimed them: a claim has one result.
    let mut ids = Vec::new();
    for n in 0..MANY {
        ids.push(subscribe(&store, &n.to_string(), "https://callback.test/").await.id.resource);
    }
    let (first, second) = (nothing(3), nothing(2));
    let both = ids.iter().flat_map(|id| [store.record(*id, &first), store.record(*id, &second)]);
    // They are recorded in the order in which they are brought.
    for result in join_all(both).await {
        result.unwrap();
    }
    assert_eq!(recorded(&store, &ids).await, MANY);
}

async fn what_was_measured_meanwhile_is_kept(database: Database) {
    const DAY: i64 = 86_400;
    let store = ClaimingStore::new(database.open().await);
    let id = subscribe(&store, "a", "https://callback.test/").await.id.resource;
    store.record(id, &poll(at(10), &["1", "2"])).await.unwrap();
    store.measure(at(1), at(DAY)).await.unwrap();
    // The poll began before: it knows nothing of it.
    let status = Status { entries_count_since_last_maintenance: 2, ..nothing(0).status };
    let late = Poll { status, ..nothing(DAY + 5) };
    store.record(id, &late).await.unwrap();
    let after = resource(&store, id).await.status;
    assert_eq!((after.velocity, after.entries_count_since_last_maintenance), (2, 0));
    assert_eq!((after.last_maintenance_at, after.http_code), (at(DAY), 200));
}

async fn a_poll_may_leave_the_details_as_they_are(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let id = subscribe(&store, "a", "https://callback.test/").await.id.resource;
    let status =
        Status { title: "Tides".to_owned(), last_fetch: Some(at(10)), ..Status::default() };
    let polling = Polling { window: 7, since_whole: 1, ..Polling::default() };
    let whole = Poll { status: status.clone(), polling: polling.clone(), ..nothing(10) };
    store.record(id, &whole).await.unwrap();
    store.measure(at(11), at(12)).await.unwrap();
    let (last_fetch, next_fetch) = (Some(at(20)), Some(at(620)));
    let period_reason = "the resource publishes little".to_owned();
    let pace = Status { last_fetch, next_fetch, period_s: 600, period_reason, ..status };
    let pace = Poll {
        status: pace.clone(),
        polling: Polling { since_whole: 2, rate_at: Some(at(20)), ..polling.clone() },
        leaves_details: true,
        ..nothing(20)
    };
    store.record(id, &pace).await.unwrap();
    let after = resource(&store, id).await;
    assert_eq!(after.status, Status { last_maintenance_at: at(12), ..pace.status });
    assert_eq!(after.polling, Polling { planned_at: next_fetch, ..pace.polling });
}

async fn details_are_written_if_they_are_others_by_now(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let id = subscribe(&store, "a", "https://callback.test/").await.id.resource;
    let created = resource(&store, id).await.status;
    let failed = Status { error: "http_status".to_owned(), version: 1, ..Status::default() };
    store.record(id, &Poll { status: failed, ..nothing(10) }).await.unwrap();
    // It began before the one that failed, and ends now.
    let late = Poll { leaves_details: true, ..nothing(11) };
    store.record(id, &late).await.unwrap();
    let last_maintenance_at = created.last_maintenance_at;
    assert_eq!(resource(&store, id).await.status, Status { last_maintenance_at, ..late.status });
}

async fn a_ping_that_came_meanwhile_is_answered_soon(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let id = crowd(&store).await[0];
    let topic = resource(&store, id).await.topic;
    let spacing = Duration::from_secs(60);
    assert_eq!(store.receive(&ping(2, topic.as_str()), spacing).await.unwrap(), 1);
    store.record(id, &nothing(3)).await.unwrap();
    let due = store.claim_resources(at(64), at(124), &room()).await.unwrap();
    let answering = due.iter().find(|due| due.resource.id == id);
    assert_eq!(answering.map(|due| due.trigger), Some(Trigger::Ping));
}

async fn what_was_begun_is_recorded_before_the_store_closes(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let ids = crowd(&store).await;
    let nothing = nothing(2);
    let records = join_all(ids.iter().map(|id| store.record(*id, &nothing)));
    let (results, ()) = tokio::join!(records, store.close());
    let fine = results.iter().filter(|result| result.is_ok()).count();
    assert_eq!(fine, MANY, "{results:?}");
    assert!(matches!(store.record(ids[0], &nothing).await, Err(StoreError::Closed)));
    assert_eq!(recorded(&database.open().await, &ids).await, MANY);
}

async fn polls_that_end_together_wait_in_no_ring_with_what_hurries_them(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let ids = crowd(&store).await;
    let backwards: Vec<_> = ids.iter().rev().copied().collect();
    let nothing = nothing(2);
    for _ in 0..5 {
        let records = join_all(ids.iter().map(|id| store.record(*id, &nothing)));
        let orders = [&ids, &backwards, &ids, &backwards];
        let hurries = join_all(orders.map(|ids| store.poll_soon(ids, at(1))));
        let (recorded, hurried) = tokio::join!(records, hurries);
        assert!(recorded.iter().all(Result::is_ok), "{recorded:?}");
        assert!(hurried.iter().all(Result::is_ok), "{hurried:?}");
    }
}
