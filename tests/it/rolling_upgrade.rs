//! Two versions of the program on one PostgreSQL, as while the nodes of a gateway are upgraded one after
//! the other: both take requests, poll and deliver; nothing is lost, and the old one does not start again
//! once the new one has migrated the database.
//!
//! `FEEDGATE_TEST_OLD_PROGRAM` is the old version, which `tests/upgrade/run` builds. Without it, the
//! program takes over from itself.

use std::env;
use std::path::PathBuf;

use futures_util::future::join_all;
use http::StatusCode;

use crate::support::feeds::{entry_id, entry_ids, rss};
use crate::support::gateway::Gateway;
use crate::support::ports::free_port;
use crate::support::postgres::{Database, Kind};
use crate::support::publisher::Publisher;
use crate::support::subscriber::Subscriber;

/// Feeds that are subscribed to before the upgrade, and while it lasts.
const FEEDS: usize = 20;
/// The exit code of a program that cannot start.
const REFUSED: i32 = 1;

struct Traffic {
    publisher: Publisher,
    subscriber: Subscriber,
}

impl Traffic {
    fn name(feed: usize) -> String {
        format!("feed{feed}")
    }

    fn path(feed: usize) -> String {
        format!("/{}.xml", Traffic::name(feed))
    }

    /// Subscribes to a feed that has one entry, by two protocols.
    async fn subscribe(&self, node: &Gateway, feed: usize) {
        let path = Traffic::path(feed);
        self.publisher.put_rss(&path, rss(&Traffic::name(feed), 0..1));
        let topic = self.publisher.url(&path);
        node.subscribe_websub(&topic, &self.subscriber.url(&path), &[]).await;
        let cloud_path = format!("/cloud{path}");
        node.subscribe_rsscloud("http-post", &topic, &self.subscriber, &cloud_path).await;
        node.archive_holds(&topic, &entry_id(&Traffic::name(feed), 0)).await;
    }

    /// Publishes entries up to `entry` in a feed, and pings a node.
    async fn publish(&self, node: &Gateway, feed: usize, entry: usize) {
        let path = Traffic::path(feed);
        self.publisher.put_rss(&path, rss(&Traffic::name(feed), 0..entry + 1));
        let topic = self.publisher.url(&path);
        let (status, text) = node.post("/ping", &[("url", &topic)]).await;
        assert_eq!(status, StatusCode::OK, "{text}");
    }

    /// Waits until every subscriber to a feed was told of `entry`.
    async fn told(&self, feed: usize, entry: usize) {
        let (path, id) = (Traffic::path(feed), entry_id(&Traffic::name(feed), entry));
        let has_entry = |text: String| entry_ids(&text).contains(&id);
        self.subscriber
            .until(&path, |told| told.iter().any(|request| has_entry(request.text())))
            .await;
        // The first request was a test of the handler; a notification by rssCloud has no entries.
        self.subscriber.until(&format!("/cloud{path}"), |told| told.len() > entry).await;
    }

    async fn publish_and_await(&self, nodes: &[&Gateway], feeds: usize, entry: usize) {
        let publish = |feed: usize| self.publish(nodes[feed % nodes.len()], feed, entry);
        join_all((0..feeds).map(publish)).await;
        join_all((0..feeds).map(|feed| self.told(feed, entry))).await;
    }
}

async fn schema_version(database: &Database) -> String {
    database.texts("select cast(max(version) as text) from migrations").await.swap_remove(0)
}

#[tokio::test(flavor = "multi_thread")]
async fn two_versions_share_a_database_until_the_old_one_is_stopped() {
    let database = Database::bare_with_cells(Kind::Postgres, 1).await;
    let this = || PathBuf::from(env!("CARGO_BIN_EXE_feedgate"));
    let old_program = env::var_os("FEEDGATE_TEST_OLD_PROGRAM").map_or_else(this, PathBuf::from);
    let traffic =
        Traffic { publisher: Publisher::start().await, subscriber: Subscriber::start().await };

    let mut old = Gateway::start_program(&old_program, free_port(), &database, &[]).await;
    join_all((0..FEEDS).map(|feed| traffic.subscribe(&old, feed))).await;
    traffic.publish_and_await(&[&old], FEEDS, 1).await;
    let old_version = schema_version(&database).await;

    // The old node goes on while the new one migrates.
    let only_old = [&old];
    let traffic_meanwhile = traffic.publish_and_await(&only_old, FEEDS, 2);
    let (new, ()) = tokio::join!(Gateway::start(&database, &[]), traffic_meanwhile);
    let new_version = schema_version(&database).await;
    traffic.publish_and_await(&[&old, &new], FEEDS, 3).await;
    let subscribe = |feed: usize| traffic.subscribe([&old, &new][feed % 2], feed);
    join_all((FEEDS..2 * FEEDS).map(subscribe)).await;
    join_all((FEEDS..2 * FEEDS).map(|feed| traffic.publish(&old, feed, 1))).await;
    join_all((FEEDS..2 * FEEDS).map(|feed| traffic.told(feed, 1))).await;

    old.terminate();
    old.ended().await;
    let next = |feed: usize| if feed < FEEDS { 4 } else { 2 };
    join_all((0..2 * FEEDS).map(|feed| traffic.publish(&new, feed, next(feed)))).await;
    join_all((0..2 * FEEDS).map(|feed| traffic.told(feed, next(feed)))).await;
    new.comes_to_rest().await;
    if old_version != new_version {
        assert_eq!(old.refuses_to_start().await, Some(REFUSED), "a newer schema");
    }
}
