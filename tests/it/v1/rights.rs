//! What belongs to others is not found, and a token does only what its scopes permit.

use http::{Method, StatusCode};
use serde_json::json;

use super::path_of;
use crate::support::until;
use crate::support::world::World;

/// Rule S37.
#[tokio::test]
async fn a02_s37_what_belongs_to_another_account_is_not_found() {
    let world = World::with_tides(3, &[]).await;
    let made = world.create_subscription("/cb").await;
    let subscription = path_of("subscriptions", &made);
    world.rest_post(&format!("{subscription}/replay"), json!({})).await;
    let id = made["id"].as_str().unwrap();
    let list = format!("/v1/attempts?subscription={id}");
    let mut attempts = json!(null);
    until("an attempt is recorded", async || {
        attempts = world.rest_get(&list).await.json;
        attempts["data"].as_array().is_some_and(|data| !data.is_empty())
    })
    .await;
    let attempt = &attempts["data"][0];
    let delivery = format!("/v1/deliveries/{}", attempt["delivery"].as_str().unwrap());
    let feed = made["feed"]["id"].as_str().unwrap();
    let track = json!({ "query": "tide", "callback": world.subscriber.url("/cb") });
    let track = world.rest_post("/v1/tracks", track).await.json["feed"]["id"].take();
    let track = format!("/v1/tracks/{}", track.as_str().unwrap());
    let token = path_of("tokens", &world.rest_get("/v1/tokens/self").await.json);
    let outsider =
        world.create_token("outsider", "subscribe unsubscribe list retrieve tokens").await;
    #[rustfmt::skip]
    let calls = [
        (Method::GET,    subscription.clone()),
        (Method::PATCH,  subscription.clone()),
        (Method::DELETE, subscription.clone()),
        (Method::POST,   format!("{subscription}/retry")),
        (Method::POST,   format!("{subscription}/replay")),
        (Method::POST,   format!("{subscription}/test")),
        (Method::GET,    list.clone()),
        (Method::GET,    path_of("attempts", attempt)),
        (Method::GET,    format!("/v1/deliveries?subscription={id}")),
        (Method::GET,    delivery),
        (Method::GET,    format!("/v1/feeds/{feed}")),
        (Method::GET,    format!("/v1/feeds/{feed}/entries")),
        (Method::GET,    format!("/v1/entries/{feed}-1")),
        (Method::GET,    track.clone()),
        (Method::DELETE, track),
        (Method::GET,    token.clone()),
        (Method::DELETE, token),
        (Method::GET,    format!("/v1/streams?subscription={id}")),
        (Method::GET,    format!("/v1/streams?feed={feed}")),
    ];
    for (method, path) in calls {
        let reply = world.rest_as(&outsider, method.clone(), &path, None).await;
        assert_eq!(reply.status, StatusCode::NOT_FOUND, "{method} {path}: {}", reply.json);
        if method == Method::GET && !path.contains("stream") {
            let own = world.rest_get(&path).await;
            assert_eq!(own.status, StatusCode::OK, "{path}: {}", own.json);
        }
    }
    for list in ["/v1/subscriptions", "/v1/feeds", "/v1/tracks"] {
        let reply = world.rest_as(&outsider, Method::GET, list, None).await;
        assert_eq!(reply.json, json!({ "data": [] }), "{list}");
    }
}

#[tokio::test]
async fn a02_a_token_does_only_what_its_scopes_permit() {
    let world = World::with_tides(1, &[]).await;
    let made = world.create_subscription("/cb").await;
    let path = path_of("subscriptions", &made);
    let feed = made["feed"]["id"].as_str().unwrap();
    let subscription = made["id"].as_str().unwrap();
    #[rustfmt::skip]
    let calls = [
        (Method::GET,    "/v1/subscriptions".to_owned(),      "list"),
        (Method::POST,   "/v1/subscriptions".to_owned(),      "subscribe"),
        (Method::GET,    path.clone(),                        "list"),
        (Method::PATCH,  path.clone(),                        "subscribe"),
        (Method::DELETE, path.clone(),                        "unsubscribe"),
        (Method::POST,   format!("{path}/retry"),             "subscribe"),
        (Method::POST,   format!("{path}/replay"),            "retrieve"),
        (Method::POST,   format!("{path}/test"),              "subscribe"),
        (Method::GET,    "/v1/feeds".to_owned(),              "list"),
        (Method::GET,    format!("/v1/feeds/{feed}"),         "list"),
        (Method::GET,    format!("/v1/feeds/{feed}/entries"), "retrieve"),
        (Method::GET,    "/v1/entries?query=a".to_owned(),    "retrieve"),
        (Method::GET,    format!("/v1/entries/{feed}-1"),     "retrieve"),
        (Method::GET,    format!("/v1/attempts?subscription={subscription}"),   "list"),
        (Method::GET,    format!("/v1/deliveries?subscription={subscription}"), "list"),
        (Method::GET,    "/v1/attempts/1-1-1?payload=true".to_owned(), "retrieve"),
        (Method::GET,    "/v1/tracks".to_owned(),             "list"),
        (Method::POST,   "/v1/tracks".to_owned(),             "subscribe"),
        (Method::GET,    "/v1/streams".to_owned(),            "retrieve"),
        (Method::POST,   "/v1/tokens".to_owned(),             "tokens"),
    ];
    let all = ["subscribe", "unsubscribe", "list", "retrieve", "tokens"];
    for lacking in all {
        let others: Vec<&str> = all.into_iter().filter(|held| *held != lacking).collect();
        let token = world.create_token("partial", &others.join(" ")).await;
        for (method, call, _) in calls.iter().filter(|(_, _, scope)| *scope == lacking) {
            let reply = world.rest_as(&token, method.clone(), call, None).await;
            let problem = reply.problem();
            assert_eq!(problem, (403, "missing_scope", ""), "{method} {call}: {}", reply.json);
        }
    }
}
