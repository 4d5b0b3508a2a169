//! The live page: events and charts while they change, to their owners only.

use chrono::TimeDelta;
use http::StatusCode;

use super::{Visitor, make_token, subscribe, world_of_two};
use crate::support::browser::Browser;
use crate::support::gateway::Gateway;
use crate::support::postgres::{Database, Kind};
use crate::support::until;
use crate::support::world::World;
use feedgate_core::account::Scopes;
use feedgate_core::host::HostRefusal;
use feedgate_core::node::{NodeId, NodeInfo};
use feedgate_core::resource::ResourceId;

/// The badges of the node that served the page, and of one that has not reported lately.
const OWN: &str = "<small>this node</small>";
const LATE: &str = "<span class=\"badge warning\">not seen recently</span>";

#[tokio::test]
async fn an_account_sees_its_own_events_and_no_charts() {
    let world = world_of_two().await;
    subscribe(&world, "bob", "/of-bob").await;
    let ada = Visitor::sign_in(&world, "ada", "ada").await;
    let root = Visitor::sign_in(&world, "root", "root").await;
    until("the subscriptions are in the log", async || {
        let all = root.page("/console/live").await;
        all.contains("/ada") && all.contains("/of-bob")
    })
    .await;
    let own = ada.page("/console/live").await;
    assert!(
        own.contains("/ada") && !own.contains("/of-bob") && !own.contains("id=\"charts\""),
        "{own}"
    );
    assert_eq!(ada.get("/console/live/charts").await.0, StatusCode::FORBIDDEN);
    let (_, stream) = own.split_once("data-stream=\"../").unwrap();
    let stream = stream.split('"').next().unwrap().replace("&amp;", "&");
    assert!(stream.starts_with("log/stream?own=1&after="), "{stream}");
    // The list has the same filter as the stream.
    let listed = ada.page("/log.json?own=1").await;
    assert!(listed.contains("/ada") && !listed.contains("of-bob"), "{listed}");
    let anonymous_clients = world.gateway.get("/log.json?own=1").await.1;
    assert!(anonymous_clients.contains("\"events\":[]"), "{anonymous_clients}");

    let charts = root.page("/console/live/charts").await;
    assert_eq!(charts.matches("<figure").count(), 3, "{charts}");
    assert!(!charts.contains("<html"), "a part of the page: {charts}");
    assert!(charts.contains("No host is in a pause."), "{charts}");
    let store = world.database.open().await;
    let refused = HostRefusal {
        group: "slow.test:443".to_owned(),
        resource: ResourceId(1),
        was_read: true,
        at: feedgate::jobs::runner::now(),
        http_code: 429,
        retry_after_s: None,
    };
    store.record_refusal(&refused).await.unwrap().expect("the host is paused");
    let charts = root.page("/console/live/charts").await;
    assert!(charts.contains("<dt>slow.test:443</dt>"), "{charts}");
    let filtered = root.page("/console/live?callback=%2Fnowhere&outcome=failed").await;
    assert!(filtered.contains("outcome=failed") && !filtered.contains("/of-bob"), "{filtered}");
}

#[tokio::test]
async fn a_single_node_is_listed_alone_and_without_cells() {
    let world = World::with_tides(1, &[]).await;
    make_token(&world, "root", Scopes::all()).await;
    let root = Visitor::sign_in(&world, "root", "root").await;
    until("the node has reported", async || {
        root.page("/console/live").await.contains("This gateway has one node.")
    })
    .await;
    let charts = root.page("/console/live/charts").await;
    assert!(charts.contains(OWN) && charts.contains(env!("CARGO_PKG_VERSION")), "{charts}");
    assert!(!charts.contains("<h2>Cells</h2>") && !charts.contains(LATE), "{charts}");
}

#[tokio::test(flavor = "multi_thread")]
async fn all_nodes_are_listed_and_the_queues_of_each_cell() {
    let database = Database::with_cells(Kind::Postgres, 2).await;
    let one = Gateway::start(&database, &[("FEEDGATE_NODE_NAME", "node-one")]).await;
    let mut other = Gateway::start(&database, &[("FEEDGATE_NODE_NAME", "node-two")]).await;
    let world = World::on(database, one).await;
    make_token(&world, "root", Scopes::all()).await;
    let root = Visitor::sign_in(&world, "root", "root").await;
    let charts = async || root.page("/console/live/charts").await;
    until("both nodes have reported", async || {
        let charts = charts().await;
        charts.contains("node-one") && charts.contains("node-two")
    })
    .await;

    // A node that was killed; the test's own time is that of the database here.
    let store = world.database.open().await;
    let now = feedgate::jobs::runner::now();
    let lost = NodeInfo {
        id: NodeId("lost".to_owned()),
        name: "node-three".to_owned(),
        version: "0.0.9".to_owned(),
        started_at: now - TimeDelta::days(2),
    };
    store.record_node(&lost, now - TimeDelta::minutes(5)).await.unwrap();
    store.close().await;
    let displayed = charts().await;
    assert!(displayed.contains(&format!("node-one {OWN}</td>")), "{displayed}");
    assert!(displayed.contains("node-two</td>"), "{displayed}");
    assert!(displayed.contains(&format!("node-three {LATE}</td>")), "{displayed}");
    assert!(
        displayed.contains("0.0.9") && displayed.contains(">2\u{a0}d ago</time>"),
        "{displayed}"
    );
    assert_eq!(displayed.matches("<td data-name=\"Cell\">").count(), 2, "{displayed}");
    assert_eq!(displayed.matches("on time</td>").count(), 6, "{displayed}");

    other.terminate();
    other.ended().await;
    let displayed = charts().await;
    assert!(!displayed.contains("node-two") && displayed.contains("node-three"), "{displayed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn events_and_charts_appear_while_the_page_is_open() {
    let world = World::with_tides(3, &[]).await;
    make_token(&world, "root", Scopes::all()).await;
    let browser = Browser::start().await;
    super::pages::sign_in(&browser, &world, "root").await;
    browser.open(&world.gateway.url("/console/live")).await;
    browser.until("document.querySelector('#live').textContent.startsWith('Live')").await;
    subscribe(&world, "root", "/root").await;
    world.put_tides(4);
    world.gateway.post("/ping", &[("url", &world.topic)]).await;
    world.subscriber.until("/root", |received| !received.is_empty()).await;
    browser.until("document.querySelector('#events').innerText.includes('delivered')").await;
    browser.until("document.querySelector('#charts').innerText.includes('1 accepted')").await;
    assert_eq!(browser.complaints().await, [""; 0], "nothing is forbidden, no script fails");
}
