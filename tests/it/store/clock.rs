//! The clock of the database, and the due times that move when it was set.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use feedgate_core::poll::{NewContent, Poll};
use feedgate_core::store::{ClockMark, DeliveryOutcome};

use super::hosts::refused;
use super::{at, on_both_stores, poll, resource, room, subscribe};
use crate::support::claiming_store::ClaimingStore;
use crate::support::postgres::{Database, Kind};
use crate::support::until;

on_both_stores! {
    e03_all_due_times_move_once_whoever_moves_them,
    e03_a_move_that_has_ended_leaves_due_times_alone,
    e03_many_due_times_move_in_portions,
    e03_it_is_recorded_when_a_node_worked,
    e03_what_waits_while_the_clock_is_set_back_is_due_by_the_clock_of_now,
    e03_retries_move_together_with_the_backlogs_that_hold_them,
    e03_a_claim_that_waits_while_the_clock_is_set_back_claims_nothing,
}

async fn e03_all_due_times_move_once_whoever_moves_them(database: Database) {
    let (one, other) = (database.open().await, database.open().await);
    let store = ClaimingStore::new(database.open().await);
    let id = subscribe(&store, "a", "https://callback.test/").await.id.resource;
    store.record(id, &poll(at(90_000), &["1"])).await.unwrap();
    let next_fetch = resource(&store, id).await.next_fetch;
    let minute = Duration::from_secs(60);
    assert!(one.claim_maintenance_task("task", at(90_000), minute).await.unwrap());

    let hour_back = TimeDelta::hours(-1);
    one.record_clock_set(0, hour_back).await.unwrap();
    other.record_clock_set(0, hour_back).await.unwrap();
    let reading = one.read_clock(at(0)).await.unwrap();
    assert_eq!((reading.generation, reading.moving_by), (1, Some(hour_back)));
    let moved = tokio::join!(one.move_due_times(1, hour_back), other.move_due_times(1, hour_back));
    assert!(moved.0.is_ok() && moved.1.is_ok(), "{moved:?}");

    assert_eq!(other.read_clock(at(0)).await.unwrap().moving_by, None);
    assert_eq!(resource(&store, id).await.next_fetch, next_fetch + hour_back);
    let task = async |seconds| one.claim_maintenance_task("task", at(seconds), minute).await;
    assert!(!task(86_459).await.unwrap());
    assert!(task(86_460).await.unwrap());
    let due = next_fetch + hour_back;
    let early = due - TimeDelta::seconds(1);
    assert!(store.claim_resources(early, due, &room()).await.unwrap().is_empty());
    assert_eq!(store.claim_resources(due, due + minute, &room()).await.unwrap().len(), 1);
}

async fn e03_a_move_that_has_ended_leaves_due_times_alone(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let id = subscribe(&store, "a", "https://callback.test/").await.id.resource;
    let next_fetch = resource(&store, id).await.next_fetch;
    let forward = TimeDelta::hours(6);
    store.record_clock_set(0, forward).await.unwrap();
    for _ in 0..2 {
        store.move_due_times(1, forward).await.unwrap();
        assert_eq!(resource(&store, id).await.next_fetch, next_fetch + forward);
    }
    store.record_clock_set(0, forward).await.unwrap();
    let reading = store.read_clock(at(0)).await.unwrap();
    assert_eq!((reading.generation, reading.moving_by), (1, None), "it was noticed before");
}

async fn e03_many_due_times_move_in_portions(database: Database) {
    let store = database.open().await;
    let fill = "
        insert into backlogs (resource_id, number, account_id, host, size, due_at)
        with recursive numbers (n) as (select 1 union all select n + 1 from numbers where n < 4500)
        select n / 1000 + 1, n, n, 'callback.test', 1, n from numbers";
    database.run(fill).await;
    store.record_clock_set(0, TimeDelta::microseconds(-7)).await.unwrap();
    store.move_due_times(1, TimeDelta::microseconds(-7)).await.unwrap();
    let wrong = "
        select cast(number as text) from backlogs where due_at <> number - 7";
    assert_eq!(database.texts(wrong).await, Vec::<String>::new());
}

async fn e03_it_is_recorded_when_a_node_worked(database: Database) {
    let store = database.open().await;
    let reading = store.read_clock(at(5)).await.unwrap();
    assert_eq!(reading.mark, None);
    if database.kind() == Kind::Sqlite {
        assert_eq!((reading.now, reading.is_shared), (at(5), false));
    } else {
        assert!(reading.is_shared && reading.now != at(5));
    }
    let (seen_at, boot, since_boot) = (at(7), "run".to_owned(), Duration::from_secs(3));
    let mark = ClockMark { seen_at, boot, since_boot };
    store.record_clock(0, &mark).await.unwrap();
    assert_eq!(store.read_clock(at(8)).await.unwrap().mark, Some(mark.clone()));
    store.record_clock_set(0, TimeDelta::seconds(100)).await.unwrap();
    let moved = ClockMark { seen_at: at(107), ..mark };
    assert_eq!(
        store.read_clock(at(8)).await.unwrap().mark,
        Some(moved.clone()),
        "it moves as well"
    );
    let late = ClockMark { seen_at: at(9), ..moved.clone() };
    store.record_clock(0, &late).await.unwrap();
    let reading = store.read_clock(at(10)).await.unwrap();
    assert_eq!(reading.mark, Some(moved), "that node has not noticed yet");
}

async fn e03_what_waits_while_the_clock_is_set_back_is_due_by_the_clock_of_now(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let id = subscribe(&store, "a", "https://callback.test/").await.id;
    let other = subscribe(&store, "b", "https://callback.test/").await.id.resource;
    for resource in [id.resource, other] {
        store.record(resource, &poll(at(1), &["1"])).await.unwrap();
    }
    let due = store.claim_subscriptions(at(100), at(110), &room()).await.unwrap();
    assert!(due.iter().any(|due| due.subscription.id == id), "{due:?}");

    let failed = [(id, DeliveryOutcome::Failed { retry_at: Some(at(110)) })];
    let same = Poll { found: NewContent::Nothing, ..poll(at(100), &[]) };
    let writes = database.block_writes().await;
    let (recorded, polled, ()) = tokio::join!(
        store.record_deliveries(&failed, at(100)),
        store.record(other, &same),
        async {
            store.move_times_in_memory(TimeDelta::minutes(-1));
            writes.end().await;
        }
    );
    recorded.unwrap();
    polled.unwrap();
    let back = |at: DateTime<Utc>| (at - TimeDelta::minutes(1)).timestamp_micros().to_string();
    let retry =
        database.texts("select cast(retry_at as text) from subscriptions where retry_at > 0");
    assert_eq!(retry.await, [back(at(110))]);
    let backlog =
        format!("select cast(due_at as text) from backlogs where resource_id = {}", id.resource.0);
    assert_eq!(database.texts(&backlog).await, [back(at(110))]);
    let next_fetch = resource(&store, other).await.next_fetch.timestamp_micros().to_string();
    assert_eq!(next_fetch, back(same.next_fetch));
}

async fn e03_retries_move_together_with_the_backlogs_that_hold_them(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let id = subscribe(&store, "a", "https://callback.test/").await.id;
    store.record(id.resource, &poll(at(1), &["1"])).await.unwrap();
    store.claim_subscriptions(at(2), at(10), &room()).await.unwrap();
    let failed = [(id, DeliveryOutcome::Failed { retry_at: Some(at(60)) })];
    store.record_deliveries(&failed, at(3)).await.unwrap();
    let second = TimeDelta::seconds(1);
    store.record_clock_set(0, second).await.unwrap();
    store.move_due_times(1, second).await.unwrap();
    let moved = at(61).timestamp_micros().to_string();
    let times = "select cast(retry_at as text) from subscriptions
                 union all select cast(due_at as text) from backlogs";
    assert_eq!(database.texts(times).await, [moved.clone(), moved]);
}

async fn e03_a_claim_that_waits_while_the_clock_is_set_back_claims_nothing(database: Database) {
    const WAITING: &str = "
        select pid::text from pg_stat_activity
         where wait_event_type = 'Lock' and query like '%claimed_until%'";
    let store = database.open().await;
    let id = subscribe(&store, "a", "https://callback.test/").await.id.resource;
    let writes = database.block_writes().await;
    let (now, room) = (at(90_000), room());
    let claim = store.claim_resources(now, now + Duration::from_secs(30), &room);
    let (claimed, ()) = tokio::join!(claim, async {
        if database.kind() == Kind::Postgres {
            until("the claim waits", async || !database.texts(WAITING).await.is_empty()).await;
        }
        store.move_times_in_memory(TimeDelta::hours(-6));
        writes.end().await;
    });
    assert_eq!(claimed.unwrap().len(), 0);
    let hour = Duration::from_secs(3_600);
    let claimed = store.claim_resource(id, at(70_000), at(70_000) + hour).await.unwrap();
    assert!(claimed.is_some(), "the row is as it was");
}

/// On PostgreSQL, no operation on hosts waits before it begins.
#[tokio::test]
async fn e03_a_refusal_that_waits_while_the_clock_is_set_back_pauses_its_host_no_longer() {
    let mut ends = Vec::new();
    for by in [TimeDelta::zero(), TimeDelta::minutes(-1)] {
        let database = Database::new(Kind::Sqlite).await;
        let store = database.open().await;
        let id = subscribe(&store, "a", "https://callback.test/").await.id.resource;
        let refusal = refused(&store, id, 429, at(100));
        let writes = database.block_writes().await;
        let (verdict, ()) = tokio::join!(store.record_refusal(&refusal), async {
            store.move_times_in_memory(by);
            writes.end().await;
        });
        let (until, _) = verdict.unwrap().unwrap().leave_alone;
        assert_eq!(store.paused_hosts(at(0), 5).await.unwrap()[0].until, until);
        ends.push(until);
    }
    assert_eq!(ends[0] - ends[1], TimeDelta::minutes(1));
}
