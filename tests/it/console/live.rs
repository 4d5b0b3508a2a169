//! The live page: events and charts while they change, to their owners only.

use http::StatusCode;

use super::{Visitor, make_token, subscribe, world_of_two};
use crate::support::browser::Browser;
use crate::support::until;
use crate::support::world::World;
use feedgate_core::account::Scopes;
use feedgate_core::host::HostRefusal;
use feedgate_core::resource::ResourceId;

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
    assert!(own.contains("/ada") && !own.contains("/of-bob") && !own.contains("<svg"), "{own}");
    assert_eq!(ada.get("/console/live/charts").await.0, StatusCode::FORBIDDEN);
    let (_, stream) = own.split_once("data-stream=\"../").unwrap();
    let stream = stream.split('"').next().unwrap().replace("&amp;", "&");
    assert!(stream.starts_with("log/stream?own=1&after="), "{stream}");
    // The list has the same filter as the stream.
    let listed = ada.page("/log.json?own=1").await;
    assert!(listed.contains("/ada") && !listed.contains("of-bob"), "{listed}");
    let strangers = world.gateway.get("/log.json?own=1").await.1;
    assert!(strangers.contains("\"events\":[]"), "{strangers}");

    let charts = root.page("/console/live/charts").await;
    assert_eq!(charts.matches("<svg").count(), 3, "{charts}");
    assert!(!charts.contains("<html"), "a part of the page: {charts}");
    assert!(charts.contains("No host is in a pause."), "{charts}");
    let store = world.database.open().await;
    let refused = HostRefusal {
        group: "slow.test:443".to_owned(),
        resource: ResourceId(1),
        at: feedgate::jobs::runner::now(),
        http_code: 429,
        retry_after_s: None,
    };
    store.refuse(&refused).await.unwrap().expect("the host is paused");
    let charts = root.page("/console/live/charts").await;
    assert!(charts.contains("<dt>slow.test:443</dt>"), "{charts}");
    let filtered = root.page("/console/live?callback=%2Fnowhere&outcome=failed").await;
    assert!(filtered.contains("outcome=failed") && !filtered.contains("/of-bob"), "{filtered}");
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
    browser.until("document.querySelector('#events').innerText.includes('notify ok')").await;
    browser.until("document.querySelector('#charts').innerText.includes('1 accepted')").await;
    assert_eq!(browser.complaints().await, [""; 0], "nothing is forbidden, no script fails");
}
