//! Creating subscriptions: what the reply says, and what is rejected.

use http::StatusCode;
use serde_json::{Value, json};

use super::path_of;
use crate::support::subscriber::Behavior;
use crate::support::world::World;

#[tokio::test]
async fn a02_a_creation_says_what_the_first_fetch_found() {
    let world = World::with_tides(3, &[]).await;
    world.publisher.put(
        "/page",
        "text/html",
        "<title>T</title><link rel=alternate type=application/rss+xml href=/feed title=Tides>",
    );
    let create = async |path: &str| {
        let callback = world.subscriber.url("/cb");
        let body = json!({ "url": world.publisher.url(path), "callback": callback });
        let made = world.rest_post("/v1/subscriptions", body).await;
        assert_eq!(made.status, StatusCode::CREATED, "{}", made.json);
        let location = format!("/v1/subscriptions/{}", made.json["id"].as_str().unwrap());
        assert!(made.header("location").ends_with(&location), "{:?}", made.headers);
        made.json
    };
    let feed = create("/feed").await;
    assert_eq!(
        feed["found"],
        json!({ "fetched": true, "kind": "feed", "entries": 3, "feeds": [] })
    );
    assert_eq!(
        (&feed["feed"]["title"], &feed["feed"]["status"]["state"]),
        (&"tides".into(), &"ok".into())
    );
    assert_eq!((&feed["state"], &feed["format"]), (&"ok".into(), &"json".into()));
    let page = create("/page").await;
    let link = json!([{
        "url": world.publisher.url("/feed"), "type": "application/rss+xml", "title": "Tides",
    }]);
    assert_eq!((&page["found"]["kind"], &page["found"]["feeds"]), (&"document".into(), &link));
    let missing = create("/missing").await;
    let failure = missing["found"]["failure"].as_str().unwrap();
    assert!(failure.contains("404"), "{missing}");
    assert_eq!(missing["feed"]["status"]["state"], "failing");
    assert_eq!(missing["feed"]["status"]["error"], "http_status");
}

#[tokio::test]
async fn a02_the_feed_of_a_page_is_subscribed_to_if_it_is_to_be_followed() {
    let world = World::with_tides(3, &[]).await;
    let page = "<link rel=alternate type=application/rss+xml href=/feed>";
    world.publisher.put("/page", "text/html", page);
    let (url, callback) = (world.publisher.url("/page"), world.subscriber.url("/cb"));
    let body = json!({ "url": url, "callback": callback, "follow": true });
    let made = world.rest_post("/v1/subscriptions", body).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.json);
    assert_eq!(
        (&made.json["url"], &made.json["feed"]["url"]),
        (&url.into(), &world.topic.clone().into())
    );
}

#[tokio::test]
async fn a02_a_subscription_that_is_created_again_keeps_its_id_and_its_secret() {
    let world = World::with_tides(1, &[]).await;
    let callback = world.subscriber.url("/cb");
    let create = async |further: Value| {
        let mut body = json!({ "url": world.topic, "callback": callback });
        body.as_object_mut().unwrap().extend(further.as_object().unwrap().clone());
        let made = world.rest_post("/v1/subscriptions", body).await;
        (made.status, made.json)
    };
    let (status, first) = create(json!({ "secret": "opensesame", "format": "atom" })).await;
    assert_eq!(status, StatusCode::CREATED);
    let fingerprint = first["secretFingerprint"].as_str().unwrap();
    let (status, again) = create(json!({})).await;
    assert_eq!(
        (status, &again["id"], &again["format"]),
        (StatusCode::OK, &first["id"], &"json".into())
    );
    assert_eq!(again["secretFingerprint"], fingerprint);
    let (_, bare) = create(json!({ "secret": null })).await;
    assert!(bare.get("secretFingerprint").is_none(), "{bare}");
}

#[tokio::test]
async fn a02_a_callback_may_be_verified_before_or_after_the_reply() {
    let world = World::with_tides(1, &[]).await;
    let create = async |path: &str, verify: &str| {
        let callback = world.subscriber.url(path);
        let body = json!({ "url": world.topic, "callback": callback, "verify": verify });
        world.rest_post("/v1/subscriptions", body).await
    };
    let sync = create("/sync", "sync").await;
    assert_eq!(sync.status, StatusCode::CREATED, "{}", sync.json);
    world.subscriber.verified("/sync", 1).await;
    let later = create("/async", "async").await;
    assert_eq!((later.status, &later.json["state"]), (StatusCode::ACCEPTED, &"verifying".into()));
    world.subscriber.verified("/async", 1).await;
    world.gateway.comes_to_rest().await;
    let listed = world.rest_get("/v1/subscriptions").await;
    assert_eq!(listed.json["data"].as_array().unwrap().len(), 2, "{}", listed.json);
    world.subscriber.set("/refuses", Behavior::Refusing);
    let refused = create("/refuses", "sync").await;
    assert_eq!(refused.problem(), (422, "callback_status", "callback"));
}

#[tokio::test]
async fn a02_without_a_callback_a_subscription_is_only_read() {
    let world = World::with_tides(2, &[]).await;
    let made = world.rest_post("/v1/subscriptions", json!({ "url": world.topic })).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.json);
    assert!(made.json["callback"].as_str().unwrap().ends_with("/dev/null"), "{}", made.json);
    let path = format!("{}/test", path_of("subscriptions", &made.json));
    assert_eq!(world.rest_post(&path, json!({})).await.problem(), (409, "null_device", ""));
}

#[tokio::test]
async fn a02_each_mistake_is_named_by_its_field() {
    let world = World::with_tides(1, &[]).await;
    let valid = json!({ "url": world.topic, "callback": world.subscriber.url("/cb") });
    let own = world.gateway.url("/hub");
    #[rustfmt::skip]
    let cases = [
        (json!({ "url": null }),                   422, "missing_field", "url"),
        (json!({ "url": "example.com/feed" }),     422, "bad_topic",     "url"),
        (json!({ "url": 7 }),                      422, "invalid_field", "url"),
        (json!({ "url": "http://10.0.0.7/" }),     422, "forbidden_address", "url"),
        (json!({ "url": format!("{}#[", world.topic) }), 422, "bad_fragment", "url"),
        (json!({ "callback": "nonsense" }),        422, "bad_callback",  "callback"),
        (json!({ "callback": ["a"] }),             422, "invalid_field", "callback"),
        (json!({ "callback": own }),               422, "own_callback",  "callback"),
        (json!({ "callback": "http://10.0.0.7/" }), 422, "forbidden_address", "callback"),
        (json!({ "format": "rss" }),               422, "invalid_field", "format"),
        (json!({ "updates": true }),               422, "invalid_field", "updates"),
        (json!({ "statuses": "sometimes" }),       422, "invalid_field", "statuses"),
        (json!({ "sanitize": "yes" }),             422, "invalid_field", "sanitize"),
        (json!({ "format": "raw", "digest": true }), 422, "invalid_field", "digest"),
        (json!({ "filter": "-a" }),                422, "bad_query",     "filter"),
        (json!({ "secret": "whsec_!" }),           422, "invalid_field", "secret"),
        (json!({ "signature": "md5" }),            422, "invalid_field", "signature"),
        (json!({ "secretOverlapSeconds": 604_801 }), 422, "invalid_field", "secretOverlapSeconds"),
        (json!({ "verify": "later" }),             422, "invalid_field", "verify"),
        (json!({ "follow": 1 }),                   422, "invalid_field", "follow"),
        (json!({ "calback": "x" }),                422, "unknown_field", "calback"),
    ];
    for (change, status, code, field) in cases {
        let mut body = valid.clone();
        body.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        let reply = world.rest_post("/v1/subscriptions", body).await;
        assert_eq!(reply.problem(), (status, code, field), "{change}: {}", reply.json);
    }
    let guess = json!({ "url": "example.com/feed" });
    let detail = world.rest_post("/v1/subscriptions", guess).await.json["detail"].take();
    assert_eq!(detail, "url must be a whole URL. Did you mean https://example.com/feed?");
    let listed = world.rest_get("/v1/subscriptions").await;
    assert_eq!(listed.json, json!({ "data": [] }), "nothing was made");
}

#[tokio::test]
async fn a02_a_body_that_is_no_object_is_not_read() {
    use crate::support::server::client;
    let world = World::with_tides(1, &[]).await;
    #[rustfmt::skip]
    let cases = [
        ("application/json",                  "{",  400),
        ("application/json",                  "[]", 400),
        ("application/x-www-form-urlencoded", "url=a", 415),
    ];
    for (media_type, body, status) in cases {
        let request = client().post(world.gateway.url("/v1/subscriptions"));
        let request = request.bearer_auth(crate::support::gateway::TOKEN);
        let reply = world.read_reply(request.header("content-type", media_type).body(body)).await;
        assert_eq!(reply.problem(), (status, "unreadable_body", ""), "{body}");
    }
}
