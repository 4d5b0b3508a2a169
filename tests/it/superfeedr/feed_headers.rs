//! Headers and cookies for a feed: it is one of the account that sends them, and of nobody else.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use http::{Method, StatusCode};

use super::World;
use crate::store::on_both_stores;
use crate::support::feeds::{entry_id, entry_ids, rss};
use crate::support::gateway::Gateway;
use crate::support::origin::{Origin, Request, Step};
use crate::support::postgres::Database;

on_both_stores!(
    a36_a_feed_with_headers_is_fetched_for_its_account_alone,
    a36_headers_for_a_feed_go_to_its_origin_only,
    a36_headers_that_cannot_be_sent_for_a_feed_are_refused,
);

const COOKIE: &str = "Cookie: session=k3y-0123456789";

fn reply(status: &str, headers: &str, body: &str) -> Step {
    let length = body.len();
    Step::Send(
        format!("HTTP/1.1 {status}\r\n{headers}content-length: {length}\r\n\r\n{body}").into(),
    )
}

/// A server that has a feed with so many items for members, and one item for others.
async fn members_only(items: Arc<AtomicUsize>) -> Origin {
    let play = move |request: &Request| {
        let items = match request.header("cookie") {
            Some("session=k3y-0123456789" | "session=second") => items.load(Ordering::SeqCst),
            _ => 1,
        };
        match request.target() {
            "/feed" => reply(
                "200 OK",
                "content-type: application/rss+xml\r\n",
                &rss("tides", 1..items + 1),
            ),
            _ => reply("404 Not Found", "", ""),
        }
    };
    Origin::playing(play).await
}

async fn world(database: Database) -> World {
    let gateway = Gateway::start(&database, &[]).await;
    World::on(database, gateway).await
}

impl World {
    async fn subscribe_with_headers(
        &self,
        topic: &str,
        path: &str,
        further: &[(&str, &str)],
    ) -> (StatusCode, String) {
        let callback = self.subscriber.url(path);
        let own = [("hub.mode", "subscribe"), ("hub.topic", topic), ("hub.callback", &*callback)];
        self.gateway.superfeedr(&[&own, further].concat()).await
    }

    async fn retrieved(&self, topic: &str) -> Vec<String> {
        let query = [("hub.mode", "retrieve"), ("hub.topic", topic)];
        entry_ids(&self.ask(Method::GET, &query, &[]).await.text)
    }
}

async fn a36_a_feed_with_headers_is_fetched_for_its_account_alone(database: Database) {
    let world = world(database).await;
    let items = Arc::new(AtomicUsize::new(2));
    let origin = members_only(Arc::clone(&items)).await;
    let topic = origin.url("/feed");
    let anonymous = world.subscriber.url("/anonymous");
    let form = [
        ("hub.mode", "subscribe"),
        ("hub.topic", topic.as_str()),
        ("hub.callback", anonymous.as_str()),
        ("hub.verify", "sync"),
    ];
    let (status, why) = world.gateway.post("/hub", &form).await;
    assert_eq!(status, StatusCode::NO_CONTENT, "{why}");
    let given = [("feed_headers", COOKIE), ("format", "json"), ("retrieve", "true")];
    let (status, why) = world.subscribe_with_headers(&topic, "/cb", &given).await;
    assert_eq!(status, StatusCode::OK, "{why}");
    assert_eq!(world.retrieved(&topic).await, super::ids(&[2, 1]));
    let public = world.gateway.get(&format!("/feeds?topic={topic}")).await.1;
    assert_eq!(entry_ids(&public), super::ids(&[1]), "others get what everybody gets");

    items.store(3, Ordering::SeqCst);
    world.gateway.post("/", &[("hub.mode", "publish"), ("hub.url", &topic)]).await;
    world.subscriber.until("/cb", |notified| !notified.is_empty()).await;
    let notification = world.subscriber.notified("/cb").remove(0);
    assert_eq!(notification.header("x-pubsubhubbub-topic"), Some(topic.as_str()));
    let list =
        world.ask(Method::GET, &[("hub.mode", "list"), ("detailed", "true")], &[]).await.text;
    assert!(list.contains(&topic) && !list.contains("\"followed\""), "{list}");
    let mut texts = vec![notification.text(), list];
    for path in ["/log.json", "/feeds.opml", "/changes.xml", "/subscriptions.json"] {
        texts.push(world.gateway.get(path).await.1);
    }
    for text in texts {
        assert!(!text.contains("k3y-0123456789") && !text.contains("feedgate-headers-"), "{text}");
    }
    assert!(world.subscriber.notified("/anonymous").is_empty());

    // A renewal keeps the headers; others take their place, and the log goes on.
    let (status, why) = world.subscribe_with_headers(&topic, "/cb", &[]).await;
    assert_eq!(status, StatusCode::NO_CONTENT, "{why}");
    let second = [("feed_headers", "Cookie: session=second")];
    let (status, why) = world.subscribe_with_headers(&topic, "/second", &second).await;
    assert_eq!(status, StatusCode::NO_CONTENT, "{why}");
    items.store(4, Ordering::SeqCst);
    world.gateway.post("/", &[("hub.mode", "publish"), ("hub.url", &topic)]).await;
    world.subscriber.until("/second", |notified| !notified.is_empty()).await;
    assert_eq!(world.retrieved(&topic).await, super::ids(&[4, 3, 2, 1]));

    // Without headers, the feed is that of everybody again.
    for path in ["/cb", "/second"] {
        let (status, why) =
            world.subscribe_with_headers(&topic, path, &[("feed_headers", "")]).await;
        assert_eq!(status, StatusCode::NO_CONTENT, "{why}");
    }
    assert_eq!(world.retrieved(&topic).await, [entry_id("tides", 1)]);
    world.gateway.measures("feedgate_subscriptions 3").await;
}

async fn a36_headers_for_a_feed_go_to_its_origin_only(database: Database) {
    let world = world(database).await;
    let other = Origin::start().await;
    let found = reply("200 OK", "content-type: application/rss+xml\r\n", &rss("tides", 1..2));
    other.script("/feed", [found.clone()]);
    let origin = Origin::start().await;
    let to = |url: String| reply("301 Moved Permanently", &format!("location: {url}\r\n"), "");
    origin.script("/near", [to(origin.url("/feed"))]);
    origin.script("/far", [to(other.url("/feed"))]);
    origin.script("/feed", [found.clone()]);
    other.script("/bounce", [to(origin.url("/plain"))]);
    origin.script("/back", [to(other.url("/bounce"))]);
    origin.script("/plain", [found]);
    for path in ["/near", "/far", "/back"] {
        let given = [("feed_authorization", "Bearer k3y"), ("retrieve", "true")];
        let (status, why) = world.subscribe_with_headers(&origin.url(path), "/cb", &given).await;
        assert_eq!(status, StatusCode::OK, "{path}: {why}");
    }
    let authorized = |origin: &Origin, path: &str| {
        let requests = origin.requests();
        let requests = requests.iter().filter(|request| request.target() == path);
        requests.map(|request| request.header("authorization").is_some()).collect::<Vec<_>>()
    };
    for path in ["/near", "/far", "/back", "/feed"] {
        let sent = authorized(&origin, path);
        assert!(!sent.is_empty() && sent.iter().all(|is_sent| *is_sent), "{path}: {sent:?}");
    }
    for (origin, path) in
        [(&origin, "/robots.txt"), (&other, "/feed"), (&other, "/bounce"), (&origin, "/plain")]
    {
        let sent = authorized(origin, path);
        assert!(!sent.is_empty() && sent.iter().all(|is_sent| !*is_sent), "{path}: {sent:?}");
    }
}

async fn a36_headers_that_cannot_be_sent_for_a_feed_are_refused(database: Database) {
    let world = world(database).await;
    let origin = Origin::start().await;
    let topic = origin.url("/feed");
    let with_login = topic.replace("://", "://ann:pw@");
    let own = topic.replace("://", "://feedgate-headers-1@");
    #[rustfmt::skip]
    let cases = [
        (topic.as_str(), ("feed_headers", "If-None-Match: 1"), "(if-none-match cannot be chosen.)"),
        (topic.as_str(), ("feed_headers", "Host: a.test"),     "(host cannot be chosen.)"),
        (topic.as_str(), ("feed_authorization", "s3cret"),     "the authorization must be"),
        (with_login.as_str(), ("feed_headers", COOKIE),             "a URL that has credentials"),
        (own.as_str(), ("feed_headers", ""),                 "the user name is reserved"),
    ];
    for (topic, parameter, want) in cases {
        let (status, why) = world.subscribe_with_headers(topic, "/cb", &[parameter]).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{why}");
        assert!(why.contains(want) && !why.contains("s3cret"), "{why}");
    }
    let callback = world.subscriber.url("/cb");
    let form =
        [("hub.mode", "subscribe"), ("hub.topic", topic.as_str()), ("hub.callback", &*callback)];
    let with_headers = [&form[..], &[("feed_headers", COOKIE)]].concat();
    assert_eq!(world.gateway.post("/hub", &with_headers).await.0, StatusCode::BAD_REQUEST);
    assert!(origin.requests().is_empty(), "nothing is requested");
}
