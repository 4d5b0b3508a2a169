//! Attempts to deliver, and the deliveries that they belong to.

use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::path_of;
use crate::support::feeds::rss;
use crate::support::subscriber::Behavior;
use crate::support::until;
use crate::support::world::World;

/// A world with a subscription whose delivery has failed once and then succeeded; its id.
async fn attempted() -> (World, String) {
    let world = World::with_tides(3, &[]).await;
    let made = world.create_subscription("/cb").await;
    let (id, path) = (made["id"].as_str().unwrap().to_owned(), path_of("subscriptions", &made));
    world.subscriber.set("/cb", Behavior::Failing(503));
    world.publisher.put_rss("/feed", rss("tides", 1..5));
    world.gateway.post("/", &[("hub.mode", "publish"), ("hub.url", &world.topic)]).await;
    until("it fails", async || world.rest_get(&path).await.json["state"] == "failing").await;
    world.subscriber.set("/cb", Behavior::Accepting);
    world.rest(Method::POST, &format!("{path}/retry"), None).await;
    let list = format!("/v1/attempts?subscription={id}");
    until("both attempts are recorded", async || {
        world.rest_get(&list).await.json["data"].as_array().is_some_and(|data| data.len() == 2)
    })
    .await;
    (world, id)
}

#[tokio::test]
async fn a02_attempts_are_listed_newest_first_and_their_payload_is_composed_again() {
    let (world, id) = attempted().await;
    let list = format!("/v1/attempts?subscription={id}");
    let whole = world.rest_get(&list).await.json["data"].take();
    let [retry, first] = whole.as_array().unwrap().as_slice() else { panic!("{whole}") };
    assert_eq!((&first["verdict"], &first["code"]), (&"failed".into(), &"http_5xx".into()));
    assert_eq!(first["response"]["status"], 503);
    assert!(first["nextAttemptAt"].is_string(), "{first}");
    assert_eq!(
        (&retry["verdict"], &retry["subscription"]),
        (&"delivered".into(), &id.as_str().into())
    );
    assert_eq!(retry["delivery"], first["delivery"]);
    let page = world.rest_get(&format!("{list}&limit=1")).await.json;
    let next = page["nextCursor"].as_str().unwrap();
    let rest = world.rest_get(&format!("{list}&limit=1&cursor={next}")).await.json;
    assert_eq!((&page["data"][0], &rest["data"][0]), (retry, first));

    let one = world.rest_get(&path_of("attempts", retry)).await;
    assert_eq!(one.json, *retry);
    let with_payload =
        world.rest_get(&format!("{}?payload=true", path_of("attempts", retry))).await;
    let payload = &with_payload.json["payload"];
    assert_eq!(payload["contentType"], "application/json", "{payload}");
    let body: Value = serde_json::from_str(payload["body"].as_str().unwrap()).unwrap();
    assert_eq!(body["items"][0]["title"], "Item 4");
    let wrong = world.rest_get(&format!("{}?payload=maybe", path_of("attempts", retry))).await;
    assert_eq!(wrong.problem(), (422, "invalid_parameter", "payload"));
    for path in [format!("/v1/attempts/{id}-999999"), "/v1/attempts/first".to_owned()] {
        assert_eq!(world.rest_get(&path).await.problem(), (404, "no_attempt", ""), "{path}");
    }
}

#[tokio::test]
async fn a02_a_delivery_has_all_attempts_to_send_the_same() {
    let (world, id) = attempted().await;
    world.rest_post(&format!("/v1/subscriptions/{id}/replay"), json!({ "count": 2 })).await;
    let list = format!("/v1/deliveries?subscription={id}");
    until("the replay is recorded", async || {
        world.rest_get(&list).await.json["data"].as_array().is_some_and(|data| data.len() == 2)
    })
    .await;
    let whole = world.rest_get(&list).await.json;
    assert!(whole.get("nextCursor").is_none(), "{whole}");
    let [replay, first] = whole["data"].as_array().unwrap().as_slice() else { panic!("{whole}") };
    assert_eq!(
        (&first["state"], &first["first"], &first["last"]),
        (&"delivered".into(), &4.into(), &4.into())
    );
    assert_eq!(first["attempts"].as_array().unwrap().len(), 2, "{first}");
    assert_eq!((&replay["first"], &replay["entries"]), (&3.into(), &2.into()), "{replay}");
    let one = world.rest_get(&path_of("deliveries", first)).await;
    assert_eq!((one.status, &one.json), (StatusCode::OK, first));
    let page = world.rest_get(&format!("{list}&limit=1")).await.json;
    let next = page["nextCursor"].as_str().unwrap();
    let rest = world.rest_get(&format!("{list}&limit=1&cursor={next}")).await.json;
    assert_eq!((&page["data"][0], &rest["data"][0]), (replay, first));
    assert!(rest.get("nextCursor").is_none(), "{rest}");
    for path in [format!("/v1/deliveries/{id}-9-9"), "/v1/deliveries/first".to_owned()] {
        assert_eq!(world.rest_get(&path).await.problem(), (404, "not_found", ""), "{path}");
    }
}
