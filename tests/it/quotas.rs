//! How much one account, or one host, may have and request.

use feedgate::jobs::runner;
use feedgate_core::intent::{Intent, IntentMode};
use feedgate_core::subscription::SubscriptionRequest;
use feedgate_core::topic::{Callback, Topic};
use feedgate_protocol::Protocol;
use http::StatusCode;
use http::header::{ACCEPT, CONTENT_TYPE, RETRY_AFTER};

use crate::support::gateway::Gateway;
use crate::support::server::client;
use crate::support::world::World;

const ONE_PER_HOST: (&str, &str) = ("FEEDGATE_SUBSCRIPTIONS_PER_HOST", "1");

async fn subscribe(world: &World, path: &str) -> (StatusCode, String) {
    let callback = world.subscriber.url(path);
    let form = [
        ("hub.mode", "subscribe"),
        ("hub.topic", world.topic.as_str()),
        ("hub.callback", callback.as_str()),
        ("hub.verify", "sync"),
    ];
    world.gateway.post("/hub", &form).await
}

#[tokio::test]
async fn s30_a_host_has_so_many_open_subscriptions_and_no_more() {
    let world = World::with_tides(1, &[ONE_PER_HOST]).await;
    assert_eq!(subscribe(&world, "/one").await.0, StatusCode::NO_CONTENT);
    let (status, text) = subscribe(&world, "/two").await;
    assert_eq!(status, StatusCode::FORBIDDEN, "{text}");
    assert!(text.contains("there are 1 open subscriptions for 127.0.0.1"), "{text}");
    assert!(world.subscriber.requests_to("/two").is_empty(), "a refused callback is not contacted");
    assert_eq!(subscribe(&world, "/one").await.0, StatusCode::NO_CONTENT, "it can be renewed");

    let port = world.subscriber.port().to_string();
    let form = [
        ("notifyProcedure", ""),
        ("port", port.as_str()),
        ("path", "/three"),
        ("protocol", "http-post"),
        ("url1", world.topic.as_str()),
    ];
    let (status, text) = world.gateway.post("/rsscloud/pleaseNotify", &form).await;
    assert_eq!(status, StatusCode::OK);
    assert!(text.contains("success=\"false\"") && text.contains("open subscriptions"), "{text}");
    assert!(world.subscriber.requests_to("/three").is_empty());

    // Subscriptions of accounts have a quota of their own.
    let callback = world.subscriber.url("/four");
    world.gateway.subscribe_superfeedr(&world.topic, &callback, "atom").await;
}

/// A request that was accepted before the quota was reached.
#[tokio::test]
async fn s30_a_subscription_that_waited_for_verification_is_denied() {
    let mut world = World::with_tides(1, &[ONE_PER_HOST]).await;
    world.gateway.kill();
    let store = world.database.open().await;
    let request = |path: &str| {
        SubscriptionRequest::new(
            Topic::parse(world.topic.clone()).unwrap(),
            Callback::parse(world.subscriber.url(path)).unwrap(),
            Protocol::WebSub,
        )
    };
    let now = runner::now();
    store.subscribe(&request("/one"), now).await.unwrap();
    let intent = Intent::new(IntentMode::Subscribe, request("/two"));
    store.enqueue_intent(&intent, now).await.unwrap();
    store.close().await;
    world.gateway.restart().await;
    world.subscriber.verified("/two", 1).await;
    let request = world.subscriber.requests_to("/two").remove(0);
    assert_eq!(request.query("hub.mode"), Some("denied"));
    assert!(request.query("hub.reason").unwrap().contains("open subscriptions"));
}

#[tokio::test]
async fn s44_an_account_has_so_many_subscriptions_and_no_more() {
    let world = World::with_tides(1, &[("FEEDGATE_SUBSCRIPTIONS_PER_ACCOUNT", "1")]).await;
    let (one, two) = (world.subscriber.url("/one"), world.subscriber.url("/two"));
    world.gateway.subscribe_superfeedr(&world.topic, &one, "atom").await;
    let request = |callback: &str| {
        let mut url = url::Url::parse(&world.gateway.url("/?hub.mode=subscribe")).unwrap();
        url.query_pairs_mut()
            .append_pair("hub.topic", &world.topic)
            .append_pair("hub.callback", callback);
        let request = client().post(url).basic_auth("tester", Some("s3cret"));
        request.header(ACCEPT, "application/json").send()
    };
    let response = request(&two).await.unwrap();
    assert_eq!(response.status(), StatusCode::FORBIDDEN);
    let text = response.text().await.unwrap();
    assert!(text.contains("\"code\":\"account_quota\""), "{text}");
    assert!(request(&one).await.unwrap().status().is_success(), "it can be renewed");
    // Those without an account are not counted.
    assert_eq!(subscribe(&world, "/three").await.0, StatusCode::NO_CONTENT);
}

#[tokio::test]
async fn s44_an_account_sends_so_many_requests_a_minute_and_no_more() {
    let world = World::with_tides(1, &[("FEEDGATE_ACCOUNT_REQUESTS_PER_MIN", "3")]).await;
    let list = |gateway: &Gateway| {
        let request = client().get(gateway.url("/?hub.mode=list"));
        request.basic_auth("tester", Some("s3cret")).send()
    };
    let topics: Vec<_> = (0..2).map(|n| format!("{}?{n}", world.topic)).collect();
    let items: Vec<_> =
        topics.iter().map(|topic| serde_json::json!({ "hub.topic": topic })).collect();
    let batch = client()
        .post(world.gateway.url("/?hub.mode=subscribe&hub.callback=http://a.test/dev/null"));
    let batch = batch
        .basic_auth("tester", Some("s3cret"))
        .header(CONTENT_TYPE, "application/json")
        .body(serde_json::to_string(&items).unwrap());
    assert!(batch.send().await.unwrap().status().is_success(), "a batch of two");
    let told = |response: &reqwest::Response| {
        let header = |name| response.headers()[name].to_str().unwrap().to_owned();
        assert_eq!(header("ratelimit-policy"), "\"account\";q=3;w=60", "row A12");
        assert!(header("ratelimit").starts_with("\"account\";r=0;t="), "row A12");
    };
    let response = list(&world.gateway).await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    told(&response);
    let response = list(&world.gateway).await.unwrap();
    assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS);
    told(&response);
    assert!(response.headers()[RETRY_AFTER].to_str().unwrap().parse::<u64>().unwrap() >= 1);
    assert!(response.text().await.unwrap().starts_with("This account has sent too many requests"));
}
