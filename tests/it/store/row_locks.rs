//! Rows that another transaction locks, such as that of an operator. SQLite has no row locks.

use std::sync::Arc;
use std::time::Duration;

use feedgate_core::claim::ClaimToken;
use feedgate_core::poll::{NewContent, Poll};
use feedgate_core::store::DueResource;
use feedgate_store::Store;

use super::pings::ping;
use super::{at, poll, resource, room, subscribe};
use crate::support::postgres::{Database, Kind, connect};
use crate::support::until;

/// A poll of a claimed resource that found nothing.
fn nothing(claim: ClaimToken) -> Poll {
    Poll { claim, found: NewContent::Nothing, ..poll(at(2), &[]) }
}

/// Two claimed resources, and a connection that locks the row of the first.
async fn first_is_locked(
    database: &Database,
    store: &Arc<Store>,
) -> (Vec<DueResource>, tokio_postgres::Client) {
    for name in ["locked", "free"] {
        subscribe(store, name, "https://callback.test/").await;
    }
    let due = store.claim_resources(at(1), at(60), &room()).await.unwrap();
    assert_eq!(due.len(), 2);
    let operator = connect(&database.url).await;
    let lock = format!("select from resources where id = {} for update", due[0].resource.id.0);
    operator.batch_execute(&format!("begin; {lock}")).await.unwrap();
    (due, operator)
}

#[tokio::test(flavor = "multi_thread")]
async fn t11_a_locked_row_delays_no_poll_but_its_own() {
    let database = Database::with_cells(Kind::Postgres, 1).await;
    let store = database.open().await;
    let (due, operator) = first_is_locked(&database, &store).await;
    let record = |due: &DueResource| {
        let (store, id, poll) = (Arc::clone(&store), due.resource.id, nothing(due.claim));
        tokio::spawn(async move { store.record(id, &poll).await.unwrap().is_some() })
    };
    let (locked, free) = (record(&due[0]), record(&due[1]));
    assert!(free.await.unwrap());
    assert!(!locked.is_finished());
    operator.batch_execute("commit").await.unwrap();
    assert!(locked.await.unwrap());
    for due in due {
        assert_eq!(resource(&store, due.resource.id).await.next_fetch, at(602));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_locked_row_delays_no_ping_but_its_own() {
    let database = Database::with_cells(Kind::Postgres, 1).await;
    let store = database.open().await;
    let (_, operator) = first_is_locked(&database, &store).await;
    let receive = |name: &str| {
        let (store, ping) = (Arc::clone(&store), ping(3, &format!("https://feeds.test/{name}")));
        tokio::spawn(async move { store.receive(&ping, Duration::ZERO).await.unwrap() })
    };
    let locked: Vec<_> = (0..20).map(|_| receive("locked")).collect();
    let free: Vec<_> = (0..20).map(|_| receive("free")).collect();
    for free in free {
        assert_eq!(free.await.unwrap(), 1);
    }
    assert!(locked.iter().all(|locked| !locked.is_finished()));
    operator.batch_execute("commit").await.unwrap();
    for locked in locked {
        assert_eq!(locked.await.unwrap(), 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn t11_a_locked_row_does_not_keep_the_store_from_closing() {
    let database = Database::with_cells(Kind::Postgres, 1).await;
    let store = database.open().await;
    let (due, operator) = first_is_locked(&database, &store).await;
    let id = due[0].resource.id;
    let recording = tokio::spawn({
        let (store, poll) = (Arc::clone(&store), nothing(due[0].claim));
        async move { store.record(id, &poll).await }
    });
    let watcher = connect(&database.url).await;
    until("the poll waits for the row", async || {
        let waiting = "select 1 from pg_stat_activity
                        where datname = current_database() and wait_event_type = 'Lock'";
        !watcher.query(waiting, &[]).await.unwrap().is_empty()
    })
    .await;
    let closed = tokio::time::timeout(Duration::from_secs(30), store.close()).await;
    assert!(closed.is_ok(), "closing waits for a lock");
    operator.batch_execute("commit").await.unwrap();
    assert!(recording.await.unwrap().unwrap().is_some(), "what had begun was recorded");
}
