//! A disk that is full at any byte delays entries and loses none.
//!
//! The system refuses to write beyond a size of a file, which the test moves while the gateway runs:
//! parts of a write succeed, as on a full disk.

use std::collections::BTreeSet;

use http::StatusCode;

use crate::support::feeds::{entry_id, entry_ids, rss};
use crate::support::gateway::Gateway;
use crate::support::postgres::{Database, Kind};
use crate::support::publisher::Publisher;
use crate::support::random::Random;
use crate::support::subscriber::{Behavior, Subscriber};
use crate::support::until;

/// How often the disk becomes full.
const TIMES: usize = 25;
/// The most that can still be written then: a few pages of a transaction.
const MOST_BYTES: u64 = 40_000;

/// The result of a delivery that cannot be stored keeps its subscription in nobody's hands: it is delivered to
/// again once there is space, and not when its claim, of an hour here, has been renewed twice.
#[tokio::test(flavor = "multi_thread")]
async fn what_could_not_be_recorded_is_delivered_again_soon() {
    let database = Database::new(Kind::Sqlite).await;
    let (publisher, subscriber) = (Publisher::start().await, Subscriber::start().await);
    publisher.put_rss("/feed", rss("tides", 1..2));
    let topic = publisher.url("/feed");
    let settings = [
        ("FEEDGATE_LOG", "off"),
        ("FEEDGATE_JOB_LEASE_S", "3600"),
        ("FEEDGATE_DELIVERY_TIMEOUT_S", "2"),
    ];
    let gateway = Gateway::start(&database, &settings).await;
    gateway.subscribe_superfeedr(&topic, &subscriber.url("/cb"), "atom").await;
    gateway.archive_holds(&topic, &entry_id("tides", 1)).await;
    let form = [("hub.mode", "publish"), ("hub.url", topic.as_str())];

    // The disk becomes full while the callback is waited for, and its time limit passes.
    subscriber.set("/cb", Behavior::Hanging);
    publisher.put_rss("/feed", rss("tides", 1..3));
    gateway.post("/hub", &form).await;
    subscriber.until("/cb", |told| !told.is_empty()).await;
    gateway.limit_files(Some(0));
    let failed = r#"feedgate_deliveries_total{protocol="websub",result="timed_out"} 1"#;
    gateway.measures(failed).await;
    // Results are stored with what else was to be stored within some milliseconds.
    let mut refused = 0;
    until("pings are refused", async || {
        refused += usize::from(gateway.post("/hub", &form).await.0.is_server_error());
        refused == 50
    })
    .await;
    subscriber.set("/cb", Behavior::Accepting);
    gateway.limit_files(None);
    subscriber.until("/cb", |told| told.len() > 1).await;
    gateway.comes_to_rest().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn entries_are_delivered_once_there_is_space_again() {
    let mut random = Random::thrown();
    let database = Database::new(Kind::Sqlite).await;
    let (publisher, subscriber) = (Publisher::start().await, Subscriber::start().await);
    publisher.put_rss("/feed", rss("tides", 1..2));
    let topic = publisher.url("/feed");
    // Polls that could not be stored are repeated once their claims have ended.
    let settings = [
        ("FEEDGATE_LOG", "off"),
        ("FEEDGATE_JOB_LEASE_S", "2"),
        ("FEEDGATE_FETCH_TIMEOUT_S", "1"),
        ("FEEDGATE_DELIVERY_TIMEOUT_S", "1"),
    ];
    let mut gateway = Gateway::start(&database, &settings).await;
    gateway.subscribe_superfeedr(&topic, &subscriber.url("/cb"), "atom").await;
    gateway.archive_holds(&topic, &entry_id("tides", 1)).await;
    let form = [("hub.mode", "publish"), ("hub.url", topic.as_str())];

    let log = format!("{}-wal", database.url.strip_prefix("sqlite:").unwrap());
    let mut refused = 0;
    for newest in 2..TIMES + 2 {
        let size = std::fs::metadata(&log).map_or(0, |log| log.len());
        gateway.limit_files(Some(size + random.below(MOST_BYTES)));
        publisher.put_rss("/feed", rss("tides", 1..newest + 1));
        let id = entry_id("tides", newest);
        until("the disk is full, or the entry was in time", async || {
            let (status, _) = gateway.post("/hub", &form).await;
            let is_full = status.is_server_error();
            refused += usize::from(is_full);
            is_full || subscriber.notified("/cb").iter().any(|one| one.text().contains(&id))
        })
        .await;
        gateway.limit_files(None);
        until("a ping is accepted again", async || {
            gateway.post("/hub", &form).await.0 == StatusCode::NO_CONTENT
        })
        .await;
    }
    assert!(refused > 0, "the disk was never full");

    let last = entry_id("tides", TIMES + 1);
    subscriber.until("/cb", |told| told.iter().any(|one| one.text().contains(&last))).await;
    gateway.comes_to_rest().await;
    let told = subscriber.notified("/cb");
    let received: BTreeSet<String> = told.iter().flat_map(|one| entry_ids(&one.text())).collect();
    let wanted = (2..TIMES + 2).map(|number| entry_id("tides", number)).collect();
    assert_eq!(received, wanted);

    gateway.kill();
    gateway.restart().await;
    let integrity = database.texts("select integrity_check from pragma_integrity_check").await;
    assert_eq!(integrity, ["ok"]);
    gateway.archive_holds(&topic, &last).await;
}
