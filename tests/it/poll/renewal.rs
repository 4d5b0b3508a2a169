//! The claim of a poll lasts as long as the poll.

use std::sync::Arc;
use std::time::Duration;

use chrono::DateTime;
use feedgate::event_log::EventLog;
use feedgate::jobs::poll::{PollSettings, Poller};
use feedgate::jobs::runner;
use feedgate::metrics::Metrics;
use feedgate_core::topic::Topic;
use http::StatusCode;
use tokio::sync::Semaphore;

use super::client;
use crate::store::on_both_stores;
use crate::support::feeds::rss;
use crate::support::postgres::Database;
use crate::support::server::{Server, say};
use crate::support::until;

on_both_stores!(the_claim_of_a_poll_that_outlasts_it_is_renewed);

async fn the_claim_of_a_poll_that_outlasts_it_is_renewed(database: Database) {
    let leave = Arc::new(Semaphore::new(0));
    let waits = Arc::clone(&leave);
    let slow = Server::start(move |request| {
        let waits = Arc::clone(&waits);
        async move {
            if request.path == "/robots.txt" {
                return say(StatusCode::NOT_FOUND, "");
            }
            waits.acquire().await.unwrap().forget();
            say(StatusCode::OK, rss("tides", 1..=1))
        }
    })
    .await;
    let store = database.open().await;
    let claim = Duration::from_millis(300);
    let settings = PollSettings { claim, min_period_s: 60, porn_rank: false, upstream_url: None };
    let (metrics, event_log) = (Metrics::new(), EventLog::off());
    let poller =
        Poller::new(Arc::clone(&store), client("127.0.0.0/8"), metrics, event_log, settings);
    let topic = Topic::parse(slow.url("/feed")).unwrap();
    let resource = store.ensure(&topic, runner::now()).await.unwrap();

    let claimed_until = async || {
        let sql = "select cast(coalesce(claimed_until, 0) as text) from resources";
        let micros: i64 = database.texts(sql).await[0].parse().unwrap();
        DateTime::from_timestamp_micros(micros).unwrap()
    };
    let poll = poller.poll_now(&resource);
    let renewed = async {
        let claimed = async || claimed_until().await > DateTime::UNIX_EPOCH;
        until("the resource is claimed", claimed).await;
        let first = claimed_until().await;
        until("the claim is renewed", async || claimed_until().await > first).await;
        let other = store.claim_resource(resource.id, first, first + claim).await.unwrap();
        assert_eq!(other, None, "the poll is not over");
        leave.add_permits(1);
    };
    let (polled, ()) = tokio::join!(poll, renewed);
    assert_eq!(polled.unwrap().resource.head.0, 1, "its result counts");
}
