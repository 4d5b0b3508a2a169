//! The alert address of an account, as its owner sets, tests and deletes it.

use http::{Method, StatusCode};
use serde_json::json;

use crate::schemas::assert_alerts;
use crate::support::subscriber::{Behavior, is_signed};
use crate::support::world::World;

const PATH: &str = "/v1/alerts";

#[tokio::test]
async fn an_alert_address_is_set_tested_and_deleted_by_its_owner_alone() {
    let world = World::with_tides(1, &[]).await;
    let url = world.subscriber.url("/alerts");
    assert_eq!(world.rest_get(PATH).await.problem(), (404, "not_found", ""));
    let set = json!({ "url": url, "secret": "opensesame", "kinds": ["suspended", "failing"] });
    let made = world.rest(Method::PUT, PATH, Some(set)).await;
    assert_eq!(made.status, StatusCode::OK, "{}", made.json);
    assert_eq!((&made.json["url"], &made.json["failures"]), (&json!(url), &json!(0)));
    assert_eq!(made.json["kinds"], json!(["failing", "suspended"]));
    let fingerprint = made.json["secretFingerprint"].clone();
    assert!(fingerprint.as_str().unwrap().starts_with("sha256:"), "{}", made.json);

    let tested = world.rest_post("/v1/alerts/test", json!({})).await;
    assert_eq!((&tested.json["delivered"], &tested.json["status"]), (&json!(true), &json!(200)));
    let request = world.subscriber.notified("/alerts").remove(0);
    assert_alerts(&request.text());
    assert!(request.text().contains("\"type\":\"test\"") && is_signed(&request, "opensesame"));
    assert_eq!(request.header("webhook-id"), tested.json["webhookId"].as_str());
    world.subscriber.set("/alerts", Behavior::Failing(500));
    let tested = world.rest_post("/v1/alerts/test", json!({})).await;
    assert_eq!(
        (&tested.json["delivered"], &tested.json["code"]),
        (&json!(false), &json!("http_5xx"))
    );
    assert_eq!(world.rest_get(PATH).await.json["failures"], 0, "a test changes nothing");

    let own = world.gateway.url("/hub");
    #[rustfmt::skip]
    let wrong = [
        (json!({}),                                       "missing_field", "url"),
        (json!({ "url": "alerts" }),                      "bad_callback", "url"),
        (json!({ "url": "https://a.test/dev/null" }),     "null_device", "url"),
        (json!({ "url": "http://10.0.0.1/" }),            "forbidden_address", "url"),
        (json!({ "url": own }),                           "own_callback", "url"),
        (json!({ "url": url, "secret": "whsec_?" }),      "invalid_field", "secret"),
        (json!({ "url": url, "kinds": ["late"] }),        "invalid_field", "kinds"),
        (json!({ "url": url, "kinds": [] }),              "invalid_field", "kinds"),
        (json!({ "url": url, "callback": url }),          "unknown_field", "callback"),
    ];
    for (body, code, field) in wrong {
        let reply = world.rest(Method::PUT, PATH, Some(body.clone())).await;
        assert_eq!(reply.problem(), (422, code, field), "{body}: {}", reply.json);
    }
    let all = world.rest(Method::PUT, PATH, Some(json!({ "url": url }))).await.json;
    assert_eq!(
        (all["kinds"].as_array().unwrap().len(), &all["secretFingerprint"]),
        (6, &fingerprint)
    );
    let body = json!({ "url": url, "secret": null });
    let unsigned = world.rest(Method::PUT, PATH, Some(body)).await.json;
    assert!(unsigned.get("secretFingerprint").is_none(), "{unsigned}");

    let outsider = world.create_token("outsider", "subscribe unsubscribe list").await;
    let reader = world.create_token("tester", "list").await;
    let calls = [(Method::GET, PATH), (Method::DELETE, PATH), (Method::POST, "/v1/alerts/test")];
    for (method, path) in calls {
        let reply = world.rest_as(&outsider, method.clone(), path, None).await;
        assert_eq!(reply.status, StatusCode::NOT_FOUND, "{method} {path}");
        let reply = world.rest_as(&reader, method.clone(), path, None).await;
        assert_eq!(reply.status == StatusCode::OK, method == Method::GET, "{method} {path}");
    }
    assert_eq!(world.rest(Method::DELETE, PATH, None).await.status, StatusCode::NO_CONTENT);
    assert_eq!(world.rest_get(PATH).await.status, StatusCode::NOT_FOUND);
}
