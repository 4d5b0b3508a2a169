//! `/feed-health`: how a feed is polled, for its publisher, who has no account; and nothing of feeds that
//! are not for everybody.

use http::StatusCode;

use crate::support::gateway::Gateway;
use crate::support::postgres::{Database, Kind};
use crate::support::server::client;
use crate::support::until;
use crate::support::world::World;

/// Behind a proxy on this machine, which says whom it speaks for.
const PROXIED: (&str, &str) = ("FEEDGATE_TRUSTED_PROXIES", "127.0.0.1");

fn health_of(url: &str) -> String {
    let mut query = url::form_urlencoded::Serializer::new(String::new());
    format!("/feed-health?{}", query.append_pair("url", url).finish())
}

#[tokio::test]
async fn a_publisher_sees_when_its_feed_is_polled_what_it_answered_and_what_would_be_faster() {
    let world = World::with_tides(3, &[]).await;
    world.gateway.open_to_anonymous(&world.topic).await;
    world.publisher.fetched("/feed", 1).await;
    world.gateway.comes_to_rest().await;
    let page = async || world.gateway.get(&health_of(&world.topic)).await.1;
    let first = page().await;
    #[rustfmt::skip]
    let parts = [
        "<h2>tides</h2>", "State<b><span class=\"badge good\">ok", "Next poll<b>", "<small>every ",
        "are sent with the next request", "Nothing announces your changes.",
        &format!("<code>curl {} --data-urlencode 'url={}'</code>", world.gateway.url("/ping"), world.topic),
        "HTTP/1.1 200", "etag: &quot;v", "<dt>Pings</dt><dd>none lately",
    ];
    for part in parts {
        assert!(first.contains(part), "{part}: {first}");
    }
    world.gateway.post("/ping", &[("url", &world.topic)]).await;
    let is_known = async |parts: &[&str]| {
        let page = page().await;
        parts.iter().all(|part| page.contains(part))
    };
    until("a ping and a 304", async || is_known(&["HTTP/1.1 304", " by rssCloud"]).await).await;
    let second = page().await;
    for part in ["work: the last poll got no document", "if-none-match: &quot;v"] {
        assert!(second.contains(part), "{part}: {second}");
    }
    assert!(!second.contains("Nothing announces"), "{second}");

    world.publisher.fail("/feed", StatusCode::INTERNAL_SERVER_ERROR);
    world.gateway.post("/ping", &[("url", &world.topic)]).await;
    until("the failure is on the page", async || page().await.contains("Polls fail: ")).await;
    let local = world.topic.replace("http://", "");
    let (status, typed) = world.gateway.get(&health_of(&local)).await;
    assert!(status == StatusCode::OK && typed.contains("tides"), "without a scheme: {typed}");
}

#[tokio::test]
async fn feeds_that_are_not_for_everybody_are_answered_as_if_nobody_polled_them() {
    let world = World::with_tides(3, &[PROXIED]).await;
    let (gateway, publisher) = (&world.gateway, &world.publisher);
    let callback = world.subscriber.url("/own");
    let ask = async |client_address: &str, url: &str| {
        let request = client().get(gateway.url(&health_of(url)));
        let response = request.header("x-forwarded-for", client_address).send().await.unwrap();
        let (status, page) = (response.status(), response.text().await.unwrap());
        let encoded: String = url::form_urlencoded::byte_serialize(url.as_bytes()).collect();
        (status, page.replace(&encoded, "URL").replace(url, "URL"))
    };
    let unknown = ask("127.0.0.1", &publisher.url("/unknown")).await;
    assert_eq!(unknown.0, StatusCode::NOT_FOUND);
    assert!(unknown.1.contains("polls no feed at this address that everybody may see"));

    gateway.subscribe_superfeedr(&world.topic, &callback, "atom").await;
    assert_eq!(ask("127.0.0.1", &world.topic).await, unknown, "of an account only");
    gateway.open_to_anonymous(&world.topic).await;
    assert_eq!(ask("127.0.0.1", &world.topic).await.0, StatusCode::OK, "of somebody without one");
    assert_eq!(ask("8.8.8.8", &world.topic).await, unknown, "inside, from outside");

    for path in ["/feed?token=s3cret", "/private-0f3a/feed"] {
        let secret = publisher.url(path);
        gateway.open_to_anonymous(&secret).await;
        assert_eq!(ask("127.0.0.1", &secret).await, unknown, "{path}");
    }
    let with_headers = publisher.url("/own-headers");
    let form = [
        ("hub.mode", "subscribe"),
        ("hub.topic", &with_headers),
        ("hub.callback", &callback),
        ("feed_authorization", "Bearer s3cret"),
    ];
    assert_eq!(gateway.superfeedr(&form).await.0, StatusCode::NO_CONTENT);
    assert_eq!(ask("127.0.0.1", &with_headers).await, unknown, "with headers of an account");
}

#[tokio::test]
async fn without_public_views_nothing_is_displayed() {
    let database = Database::new(Kind::Sqlite).await;
    let gateway = Gateway::start(&database, &[("FEEDGATE_PUBLIC_VIEWS", "off")]).await;
    let (status, page) = gateway.get(&health_of("https://a.test/feed")).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    assert!(
        page.contains("FEEDGATE_PUBLIC_VIEWS is off") && page.contains("href=\"bot\""),
        "{page}"
    );
}
