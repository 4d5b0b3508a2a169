//! Requests that a gateway would send to itself, and gateways that notify each other.

use std::sync::atomic::{AtomicUsize, Ordering};

use http::StatusCode;

use crate::support::gateway::Gateway;
use crate::support::postgres::{Database, Kind};
use crate::support::server::{ReceivedRequest, Server, say};
use crate::support::subscriber::Subscriber;
use crate::support::until;
use crate::support::world::World;

#[tokio::test]
async fn s11_a_callback_at_the_gateway_itself_is_refused() {
    let world = World::with_tides(1, &[]).await;
    let port = world.gateway.url("").rsplit(':').next().unwrap().to_owned();
    for path in ["/", "/hub", "/ping", "/rsscloud/pleaseNotify", "/storage/ada/feed.xml"] {
        let callback = world.gateway.url(path);
        let form = [
            ("hub.mode", "subscribe"),
            ("hub.topic", world.topic.as_str()),
            ("hub.callback", callback.as_str()),
        ];
        let (status, text) = world.gateway.post("/hub", &form).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{text}");
        assert!(text.contains("an address of this gateway"), "{text}");
        let (status, text) = world.gateway.superfeedr(&form).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{text}");
        assert!(text.contains("an address of this gateway"), "{text}");

        let form = [
            ("notifyProcedure", ""),
            ("port", port.as_str()),
            ("path", path),
            ("protocol", "http-post"),
            ("url1", world.topic.as_str()),
        ];
        let (_, text) = world.gateway.post("/rsscloud/pleaseNotify", &form).await;
        assert!(text.contains("success=\"false\"") && text.contains("this gateway"), "{text}");
    }
    // What is never contacted can be anywhere.
    let null_device = world.gateway.url("/dev/null");
    world.gateway.subscribe_superfeedr(&world.topic, &null_device, "atom").await;
}

/// A feed with another new entry each time it is fetched. It names one of two hubs: to each gateway
/// the other one.
async fn restless_publisher(hubs: [String; 2]) -> Server {
    let fetched = AtomicUsize::new(2);
    Server::start(move |request: ReceivedRequest| {
        let agent = request.header("user-agent").unwrap_or_default();
        let is_first = agent.contains(&hubs[0].replace("/hub", "/bot"));
        let hub = if is_first { &hubs[1] } else { &hubs[0] };
        let newest = fetched.fetch_add(1, Ordering::Relaxed);
        let items: String = (0..newest.min(500))
            .map(|n| {
                format!("<item><title>{n}</title><guid>tag:a.test:{}</guid></item>", newest - n)
            })
            .collect();
        let feed = format!(
            "<rss version=\"2.0\" xmlns:atom=\"http://www.w3.org/2005/Atom\"><channel>\
             <title>Restless</title><link>https://a.test/</link><description>d</description>\
             <atom:link rel=\"hub\" href=\"{hub}\"/>{items}</channel></rss>"
        );
        async move { say(StatusCode::OK, feed) }
    })
    .await
}

/// Gateways that subscribe to each other for a feed that changes with each fetch.
#[tokio::test]
async fn s11_gateways_that_subscribe_to_each_other_do_not_notify_each_other_forever() {
    let (one_database, other_database) =
        (Database::new(Kind::Sqlite).await, Database::new(Kind::Sqlite).await);
    let one = Gateway::start_reachable(&one_database).await;
    let other = Gateway::start_reachable(&other_database).await;
    let publisher = restless_publisher([one.url("/hub"), other.url("/hub")]).await;
    let (topic, subscriber) = (publisher.url("/feed"), Subscriber::start().await);
    one.subscribe_superfeedr(&topic, &subscriber.url("/cb"), "atom").await;
    one.measures("feedgate_subscriptions 2").await; // the subscriber, and the other gateway

    let ping = [("hub.mode", "publish"), ("hub.url", topic.as_str())];
    assert_eq!(one.post("/hub", &ping).await.0, StatusCode::NO_CONTENT);
    until("a notification is refused", async || {
        let mut logs = String::new();
        for gateway in [&one, &other] {
            logs.push_str(&gateway.get("/log.json?kind=ping").await.1);
        }
        logs.contains("too_many_hops")
    })
    .await;
    one.comes_to_rest().await;
    other.comes_to_rest().await;
    let hops = |request: &ReceivedRequest| {
        request.header("x-feedgate-hops").unwrap().parse::<u32>().unwrap()
    };
    let told = subscriber.notified("/cb");
    assert!(told.iter().any(|request| hops(request) > 1), "the other gateway has sent news");
    assert!(
        told.iter().all(|request| (1..=4).contains(&hops(request))),
        "at most three are accepted"
    );
}
