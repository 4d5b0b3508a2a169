//! What a request to subscribe or to unsubscribe leads to.

use http::header::{CONTENT_TYPE, HeaderValue, LOCATION};
use http::{Method, StatusCode};
use serde_json::Value;

use super::{Got, World, ids};
use crate::support::feeds::{entry_ids, rss};
use crate::support::server::{Answer, ReceivedRequest, Server, say};
use crate::support::subscriber::Behavior;
use crate::support::until;

const NULL_DEVICE: &str = "https://push.superfeedr.com/dev/null";

impl World {
    /// Requests this mode for the feed and the callback at `path`.
    async fn request(&self, mode: &str, path: &str, further: &[(&str, &str)]) -> Got {
        let callback = self.subscriber.url(path);
        let form = [("hub.mode", mode), ("hub.topic", &self.topic), ("hub.callback", &callback)];
        self.ask(Method::POST, &[&form, further].concat(), &[]).await
    }

    /// The subscriptions of the account as they are listed.
    pub(super) async fn all_listed(&self) -> Vec<Value> {
        let query = [("hub.mode", "list"), ("by_page", "500")];
        let mut listed = self.ask(Method::GET, &query, &[]).await.json();
        listed.as_array_mut().unwrap().iter_mut().map(|one| one["subscription"].take()).collect()
    }

    /// Whether the account has a subscription with the callback at `path`.
    async fn has(&self, path: &str) -> bool {
        let callback = self.subscriber.url(path);
        self.all_listed().await.iter().any(|one| one["endpoint"] == callback)
    }
}

/// Row S-1.
#[tokio::test]
async fn a_callback_is_not_verified_unless_the_request_says_so() {
    let world = World::subscribed("atom").await;
    let got = world.request("subscribe", "/new", &[]).await;
    assert_eq!((got.status, got.text.as_str()), (StatusCode::NO_CONTENT, ""));
    world.publish(4).await;
    world.subscriber.until("/new", |received| received.len() == 1).await;
    let methods: Vec<_> =
        world.subscriber.requests_to("/new").into_iter().map(|one| one.method).collect();
    assert_eq!(methods, [Method::POST], "the notification and nothing else");
}

/// Rows S-2, S-15 and S-16.
#[tokio::test]
async fn a_callback_is_verified_before_the_response() {
    let world = World::subscribed("atom").await;
    let sync = [("hub.verify", "sync"), ("hub.verify_token", "to ken")];
    let got = world.request("subscribe", "/new?hub.mode=own", &sync).await;
    assert_eq!((got.status, got.text.as_str()), (StatusCode::NO_CONTENT, ""));
    let requests = world.subscriber.requests_to("/new");
    assert_eq!(requests.iter().map(|one| &one.method).collect::<Vec<_>>(), [Method::GET]);
    let names: Vec<&str> = requests[0].query.iter().map(|(name, _)| name.as_str()).collect();
    #[rustfmt::skip]
    let want = ["hub.mode", "hub.mode", "hub.topic", "hub.callback", "hub.challenge",
        "hub.lease_seconds", "hub.verify_token"];
    assert_eq!(names, want, "the query of the callback comes first");
    let values: Vec<&str> = requests[0].query.iter().map(|(_, value)| value.as_str()).collect();
    assert_eq!(values[..3], ["own", "subscribe", world.topic.as_str()]);
    assert_eq!(values[3], world.subscriber.url("/new?hub.mode=own"));
    assert!(values[4].len() >= 24 && values[4].bytes().all(|byte| byte.is_ascii_hexdigit()));
    assert_eq!(values[5..], ["315359999", "to ken"]);

    world.publish(4).await;
    world.subscriber.until("/new", |received| received.len() == 1).await;
    let received = world.subscriber.notified("/new").remove(0);
    assert_eq!(received.query, [("hub.mode".to_owned(), "own".to_owned())]);
    world.request("subscribe", "/plain", &[("hub.verify", "sync")]).await;
    assert_eq!(world.subscriber.requests_to("/plain")[0].query("hub.verify_token"), None);
}

/// Row S-3.
#[tokio::test]
async fn a_subscription_whose_callback_refuses_is_not_stored() {
    let world = World::subscribed("atom").await;
    world.subscriber.set("/new", Behavior::Refusing);
    let got = world.request("subscribe", "/new", &[("hub.verify", "sync")]).await;
    assert_eq!(got.status, StatusCode::UNPROCESSABLE_ENTITY);
    let reason = "Your callback URL didn't echo the challenge. Please make sure it does.";
    assert!(got.text.starts_with(reason), "{}", got.text);
    assert!(!world.has("/new").await);
}

/// Row S-4.
#[tokio::test]
async fn a_subscription_that_is_verified_later_is_stored_when_its_callback_agrees() {
    let world = World::subscribed("atom").await;
    world.subscriber.set("/hanging", Behavior::Hanging);
    world.subscriber.set("/refusing", Behavior::Refusing);
    for path in ["/hanging", "/refusing", "/willing"] {
        let got = world.request("subscribe", path, &[("hub.verify", "async")]).await;
        assert_eq!((got.status, got.text.as_str()), (StatusCode::ACCEPTED, ""), "{path}");
    }
    until("the willing callback is subscribed", async || world.has("/willing").await).await;
    world.subscriber.verified("/refusing", 1).await;
    world.subscriber.verified("/hanging", 1).await;
    assert!(!world.has("/refusing").await && !world.has("/hanging").await);
}

/// Rows U-1 and U-6.
#[tokio::test]
async fn an_unsubscription_ends_the_subscription_at_once_or_after_the_callback_agrees() {
    let world = World::subscribed("atom").await;
    world.request("subscribe", "/other", &[]).await;
    let got = world.request("unsubscribe", "/other", &[]).await;
    assert_eq!((got.status, got.text.as_str()), (StatusCode::NO_CONTENT, ""));
    assert!(!world.has("/other").await);
    let got = world.request("unsubscribe", "/cb", &[("hub.verify", "async")]).await;
    assert_eq!((got.status, got.text.as_str()), (StatusCode::ACCEPTED, ""));
    until("the subscription has ended", async || !world.has("/cb").await).await;
    let request = world.subscriber.requests_to("/cb").remove(0);
    assert_eq!(request.query("hub.mode"), Some("unsubscribe"));
    assert_eq!(request.query("hub.lease_seconds"), None);
}

/// Row S-7.
#[tokio::test]
async fn the_parameter_for_the_format_counts_more_than_the_header() {
    let world = World::subscribed("atom").await;
    #[rustfmt::skip]
    let cases = [
        (Some("json"), None,                         "json"),
        (Some("JSON"), None,                         "json"),
        (Some("atom"), None,                         "atom"),
        (Some("ATOM"), Some("application/json"),     "atom"),
        (Some("json"), Some("application/atom+xml"), "json"),
        (None,         Some("application/json"),     "json"),
        (None,         Some("*/*"),                  "atom"),
        (None,         None,                         "atom"),
    ];
    for (n, (format, accept, want)) in cases.into_iter().enumerate() {
        let callback = world.subscriber.url(&format!("/{n}"));
        let mut form = vec![("hub.mode", "subscribe"), ("hub.topic", &world.topic)];
        form.push(("hub.callback", &callback));
        form.extend(format.map(|format| ("format", format)));
        let headers: Vec<_> = accept.map(|accept| ("accept", accept)).into_iter().collect();
        let got = world.ask(Method::POST, &form, &headers).await;
        assert_eq!(got.status, StatusCode::NO_CONTENT, "{}", got.text);
        let listed = world.all_listed().await;
        assert_eq!(listed.last().unwrap()["format"], want, "{format:?}, {accept:?}");
    }
}

/// Rows S-8 and S-9.
#[tokio::test]
async fn the_entries_in_the_response_have_exactly_the_type_that_clients_compare() {
    let world = World::subscribed("atom").await;
    let got = world.request("subscribe", "/atom", &[("retrieve", "true")]).await;
    assert_eq!((got.status, got.header(CONTENT_TYPE)), (StatusCode::OK, "application/atom+xml"));
    assert_eq!(entry_ids(&got.text), ids(&[3, 2, 1]));
    let json = [("retrieve", "true"), ("format", "json")];
    let got = world.request("subscribe", "/json", &json).await;
    let content_type = "application/json; charset=utf-8";
    assert_eq!((got.status, got.header(CONTENT_TYPE)), (StatusCode::OK, content_type));
    assert_eq!(got.json()["status"]["feed"], world.topic);
    assert_eq!(got.json()["items"].as_array().unwrap().len(), 3);
}

/// Rows S-10 and S-11.
#[tokio::test]
async fn topic_and_callback_identify_a_subscription() {
    let world = World::subscribed("atom").await;
    let again = [("format", "json"), ("hub.secret", "sesame")];
    assert_eq!(world.request("subscribe", "/cb", &again).await.status, StatusCode::NO_CONTENT);
    let listed = world.all_listed().await;
    assert_eq!(listed.len(), 1, "{listed:?}");
    assert_eq!(listed[0]["format"], "json");
    assert!(listed[0]["secret"].is_string(), "{listed:?}");
    world.request("subscribe", "/other", &[]).await;
    assert_eq!(world.all_listed().await.len(), 2);
}

/// Row S-12.
#[tokio::test]
async fn the_null_device_is_listed_and_its_feed_is_retrieved() {
    let world = World::with_tides(3, &[]).await;
    let own = world.gateway.url("/dev/null");
    for callback in [NULL_DEVICE, &own] {
        world.gateway.subscribe_superfeedr(&world.topic, callback, "json").await;
    }
    let query = [("hub.mode", "list"), ("detailed", "true")];
    let listed = world.ask(Method::GET, &query, &[]).await.json();
    assert_eq!(listed["meta"]["total"], 2);
    let endpoints = listed["subscriptions"].as_array().unwrap().iter();
    let endpoints: Vec<_> = endpoints.map(|one| &one["subscription"]["endpoint"]).collect();
    assert_eq!(endpoints, [NULL_DEVICE, &own]);
    let query = [("hub.topic", world.topic.as_str()), ("hub.mode", "retrieve"), ("wait", "poll")];
    assert_eq!(entry_ids(&world.ask(Method::GET, &query, &[]).await.text), ids(&[3, 2, 1]));
}

/// Row S-17.
#[tokio::test]
async fn credentials_in_a_topic_are_sent_to_its_server() {
    let world = World::with_tides(3, &[]).await;
    let private = world.topic.replace("http://", "http://me:secret@");
    let callback = world.subscriber.url("/cb");
    world.gateway.subscribe_superfeedr(&private, &callback, "atom").await;
    world.publisher.fetched("/feed", 1).await;
    let fetch = world.publisher.fetches("/feed").remove(0);
    assert_eq!(fetch.request.header("authorization"), Some("Basic bWU6c2VjcmV0"));
    assert_eq!(world.all_listed().await[0]["feed"]["url"], private);
}

/// Row S-19.
#[tokio::test]
async fn a_topic_behind_five_redirects_is_known_by_its_own_url() {
    let world = World::with_tides(0, &[]).await;
    let moving =
        Server::start(|request: ReceivedRequest| async move { redirect_to_feed(&request) }).await;
    let topic = moving.url("/5");
    let form = [
        ("hub.mode", "subscribe"),
        ("hub.topic", topic.as_str()),
        ("hub.callback", NULL_DEVICE),
        ("retrieve", "true"),
    ];
    let got = world.ask(Method::POST, &form, &[]).await;
    assert_eq!((got.status, entry_ids(&got.text)), (StatusCode::OK, ids(&[2, 1])));
    assert_eq!(world.all_listed().await[0]["feed"]["url"], topic);
    let query = [("hub.mode", "retrieve"), ("hub.topic", topic.as_str()), ("format", "json")];
    let got = world.ask(Method::GET, &query, &[]).await.json();
    assert_eq!(got["status"]["feed"], topic);
}

/// Answers `/5` with a redirect to `/4` and so on; at `/0` is a feed.
fn redirect_to_feed(request: &ReceivedRequest) -> Answer {
    match request.path[1..].parse::<u32>() {
        Ok(0) => {
            let mut feed = say(StatusCode::OK, rss("tides", 1..3));
            let content_type = HeaderValue::from_static("application/rss+xml");
            feed.headers_mut().insert(CONTENT_TYPE, content_type);
            feed
        }
        Ok(hops) => {
            let mut redirect = say(StatusCode::FOUND, "");
            let target = HeaderValue::try_from(format!("/{}", hops - 1)).unwrap();
            redirect.headers_mut().insert(LOCATION, target);
            redirect
        }
        Err(_) => say(StatusCode::NOT_FOUND, ""),
    }
}
