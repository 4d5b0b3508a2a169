//! What a node was doing when it was killed waits no longer than a lease for whoever does it next, and a node
//! keeps what it does for longer than a lease.

use std::time::Duration;

use feedgate::jobs::runner;
use http::header::CONTENT_TYPE;

use crate::store::on_both_stores;
use crate::support::feeds::{entry_id, rss};
use crate::support::gateway::Gateway;
use crate::support::origin::{Origin, Step};
use crate::support::ports::free_port;
use crate::support::postgres::Database;
use crate::support::publisher::Publisher;
use crate::support::server::client;
use crate::support::until;

on_both_stores!(
    a_verification_is_held_as_long_as_its_node_lives,
    a_verification_that_a_caller_waits_for_is_held_as_long_as_its_node_lives,
    a_request_to_an_upstream_is_held_as_long_as_its_node_lives,
    a_forwarded_ping_is_held_as_long_as_its_node_lives,
);

const LEASE: Duration = Duration::from_secs(4);
/// By how much the clocks of two processes differ at most.
const CLOCKS: Duration = Duration::from_secs(1);

/// A gateway whose requests last nearly as long as its leases, and whom others can reach.
async fn start(database: &Database, settings: &[(&str, &str)]) -> Gateway {
    let port = free_port();
    let public_url = format!("http://127.0.0.1:{port}/");
    let all = [
        ("FEEDGATE_PUBLIC_URL", public_url.as_str()),
        ("FEEDGATE_JOB_LEASE_S", "4"),
        ("FEEDGATE_FETCH_TIMEOUT_S", "3"),
        ("FEEDGATE_DELIVERY_TIMEOUT_S", "3"),
    ];
    Gateway::start_at(port, database, &[&all, settings].concat()).await
}

/// A server that never responds.
async fn silent() -> Origin {
    Origin::playing(|_| Step::Hang).await
}

/// Waits until the claim of the only row of a table was renewed, kills the gateway, and checks that the claim ends
/// within a lease.
async fn is_held_as_long_as_its_node_lives(mut gateway: Gateway, database: &Database, table: &str) {
    let query = format!("select claim_token || ' ' || due_at from {table} where claim_token <> 0");
    let claim = async || {
        let row = database.texts(&query).await.pop()?;
        let (token, ends) = row.split_once(' ').unwrap();
        Some((token.to_owned(), ends.parse::<i64>().unwrap()))
    };
    let mut last = None;
    let is_renewed = async || {
        let now = claim().await;
        let is_renewed = matches!(
            (&last, &now),
            (Some((before, ended)), Some((after, ends))) if before == after && ended < ends
        );
        last = now;
        is_renewed
    };
    until("a claim is renewed", is_renewed).await;
    gateway.kill();
    let (_, ends) = claim().await.unwrap();
    let latest = runner::now() + LEASE + CLOCKS;
    assert!(ends <= latest.timestamp_micros(), "{table}: {ends} is after {latest}");
}

async fn a_verification_is_held_as_long_as_its_node_lives(database: Database) {
    let (publisher, callback) = (Publisher::start().await, silent().await);
    publisher.put_rss("/feed", rss("tides", 1..2));
    let gateway = start(&database, &[]).await;
    let (topic, callback) = (publisher.url("/feed"), callback.url("/cb"));
    let form = [
        ("hub.mode", "subscribe"),
        ("hub.topic", topic.as_str()),
        ("hub.callback", callback.as_str()),
    ];
    gateway.post("/hub", &form).await;
    is_held_as_long_as_its_node_lives(gateway, &database, "intents").await;
}

async fn a_verification_that_a_caller_waits_for_is_held_as_long_as_its_node_lives(
    database: Database,
) {
    let (publisher, callback) = (Publisher::start().await, silent().await);
    publisher.put_rss("/feed", rss("tides", 1..2));
    let gateway = start(&database, &[]).await;
    let (topic, callback) = (publisher.url("/feed"), callback.url("/cb"));
    let form = [
        ("hub.mode", "subscribe"),
        ("hub.topic", topic.as_str()),
        ("hub.callback", callback.as_str()),
        ("hub.verify", "sync"),
    ];
    let mut body = url::form_urlencoded::Serializer::new(String::new());
    let request = client()
        .post(gateway.url("/hub"))
        .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
        .body(body.extend_pairs(form).finish());
    let waiting = tokio::spawn(request.send());
    is_held_as_long_as_its_node_lives(gateway, &database, "intents").await;
    assert!(waiting.await.unwrap().is_err(), "it was not answered before");
}

async fn a_request_to_an_upstream_is_held_as_long_as_its_node_lives(database: Database) {
    let (publisher, hub) = (Publisher::start().await, silent().await);
    let channel = format!(
        "<channel xmlns:atom=\"http://www.w3.org/2005/Atom\"><atom:link rel=\"hub\" href=\"{}\"/>",
        hub.url("/")
    );
    publisher.put_rss("/feed", rss("tides", 1..2).replace("<channel>", &channel));
    let gateway = start(&database, &[]).await;
    let topic = publisher.url("/feed");
    gateway.subscribe_superfeedr(&topic, "http://127.0.0.1:9/dev/null", "atom").await;
    is_held_as_long_as_its_node_lives(gateway, &database, "upstreams").await;
}

async fn a_forwarded_ping_is_held_as_long_as_its_node_lives(database: Database) {
    let (publisher, target) = (Publisher::start().await, silent().await);
    publisher.put_rss("/feed", rss("tides", 1..2));
    let (targets, feeds) = (target.url("/RPC2"), publisher.url("/"));
    let settings =
        [("FEEDGATE_PING_TARGETS", targets.as_str()), ("FEEDGATE_PING_FORWARDING", &feeds)];
    let gateway = start(&database, &settings).await;
    let topic = publisher.url("/feed");
    gateway.subscribe_superfeedr(&topic, "http://127.0.0.1:9/dev/null", "atom").await;
    gateway.archive_holds(&topic, &entry_id("tides", 1)).await;
    publisher.put_rss("/feed", rss("tides", 1..3));
    let form = [("hub.mode", "publish"), ("hub.url", topic.as_str())];
    gateway.post("/hub", &form).await;
    is_held_as_long_as_its_node_lives(gateway, &database, "forwarded_pings").await;
}
