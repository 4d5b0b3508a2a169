//! Transactions that PostgreSQL ends because of others, or whose connection is lost, are repeated.
//! SQLite has one writer, so its transactions never collide.
//!
//! The collisions are made with triggers on `maintenance_tasks`, which one statement writes. A
//! sequence counts the attempts: it is the only thing that a transaction changes for good even
//! if it fails.

use std::time::Duration;

use crate::support::postgres::{Database, Kind};

use super::at;

const HOUR: Duration = Duration::from_secs(3_600);

/// A database in which each claim of a maintenance task runs `body` first.
async fn with_trigger(body: &str) -> Database {
    let database = Database::new(Kind::Postgres).await;
    database
        .run(&format!(
            "create sequence attempts;
             create function collide() returns trigger language plpgsql as $$
                 begin {body} return new; end $$;
             create trigger collide before insert on maintenance_tasks
                 for each row execute function collide();"
        ))
        .await;
    database
}

/// How many transactions have reached the trigger.
async fn attempts(database: &Database) -> u32 {
    let counted = "select case when is_called then last_value else 0 end::text from attempts";
    database.texts(counted).await[0].parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_transactions_in_a_deadlock_the_one_that_was_ended_is_repeated() {
    // Each of the first two transactions takes a lock of its own, waits until the other has done
    // so, and then wants the lock of the other.
    let database = with_trigger(
        "perform pg_advisory_xact_lock(4242, case new.name when 'left' then 1 else 2 end);
         if nextval('attempts') <= 2 then
             while (select last_value from attempts) < 2 loop perform pg_sleep(0.01); end loop;
         end if;
         perform pg_advisory_xact_lock(4242, case new.name when 'left' then 2 else 1 end);",
    )
    .await;
    let store = database.open().await;
    let (left, right) = tokio::join!(
        store.claim_maintenance_task("left", at(0), HOUR),
        store.claim_maintenance_task("right", at(0), HOUR),
    );
    assert!(left.unwrap() && right.unwrap());
    assert_eq!(attempts(&database).await, 3, "one of them was repeated, once");
    for name in ["left", "right"] {
        assert!(!store.claim_maintenance_task(name, at(1), HOUR).await.unwrap(), "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn only_conflicts_and_lost_connections_are_repeated_and_not_for_ever() {
    // The condition that the trigger raises, how often, and what comes of the claim.
    let cases = [
        ("serialization_failure", 1, true, 2),
        ("serialization_failure", 4, true, 5),
        ("serialization_failure", 5, false, 5),
        ("deadlock_detected", 2, true, 3),
        ("connection_failure", 3, true, 4),
        ("connection_failure", 12, false, 12),
        ("admin_shutdown", 1, true, 2),
        ("check_violation", 1, false, 1),
        ("lock_not_available", 1, false, 1),
        ("query_canceled", 1, false, 1),
    ];
    for (condition, times, want, want_attempts) in cases {
        let database = with_trigger(&format!(
            "if nextval('attempts') <= {times} then
                 raise exception 'collision' using errcode = '{condition}';
             end if;"
        ))
        .await;
        let store = database.open().await;
        let claimed = store.claim_maintenance_task("any", at(0), HOUR).await;
        assert_eq!(claimed.is_ok(), want, "{condition}, {times} times: {claimed:?}");
        assert_eq!(attempts(&database).await, want_attempts, "{condition}, {times} times");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_whose_connection_ends_is_repeated_on_another() {
    let database = with_trigger(
        "if nextval('attempts') = 1 then perform pg_terminate_backend(pg_backend_pid()); end if;",
    )
    .await;
    let store = database.open().await;
    assert!(store.claim_maintenance_task("any", at(0), HOUR).await.unwrap());
    assert_eq!(attempts(&database).await, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_that_loses_its_connection_while_it_commits_is_not_repeated() {
    let database = with_trigger("perform nextval('attempts');").await;
    database
        .run(
            "create function cut_off() returns trigger language plpgsql as $$
                 begin raise exception 'cut off' using errcode = 'connection_failure'; end $$;
             create constraint trigger cut_off after insert on maintenance_tasks
                 deferrable initially deferred for each row execute function cut_off();",
        )
        .await;
    let store = database.open().await;
    store.claim_maintenance_task("any", at(0), HOUR).await.unwrap_err();
    assert_eq!(attempts(&database).await, 1, "its changes may have been stored");
}
