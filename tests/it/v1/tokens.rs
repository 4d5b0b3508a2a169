//! Tokens: creating, reading and revoking them.

use http::{Method, StatusCode};
use serde_json::json;

use super::path_of;
use crate::support::world::World;

#[tokio::test]
async fn a02_a_token_is_created_used_and_revoked() {
    let world = World::with_tides(1, &[]).await;
    let body = json!({ "name": "reader", "scopes": ["list"], "expiresAt": "2090-01-31T00:00:00Z" });
    let made = world.rest_post("/v1/tokens", body).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.json);
    let mut displayed = made.json;
    let token = displayed["token"].take();
    let token = token.as_str().unwrap();
    displayed.as_object_mut().unwrap().remove("token");
    let path = path_of("tokens", &displayed);
    assert!(made.headers["location"].to_str().unwrap().ends_with(&path));
    assert_eq!((&displayed["scopes"], &displayed["name"]), (&json!(["list"]), &"reader".into()));
    assert_eq!((&displayed["valid"], &displayed["current"]), (&true.into(), &false.into()));
    assert_eq!(world.rest_get(&path).await.json, displayed);

    let as_reader =
        async |method: Method, path: &str| world.rest_as(token, method, path, None).await;
    assert_eq!(as_reader(Method::GET, "/v1/subscriptions").await.status, StatusCode::OK);
    let own = as_reader(Method::GET, "/v1/tokens").await.json;
    assert_eq!(own["data"].as_array().unwrap().len(), 1, "it sees itself only: {own}");
    let current = as_reader(Method::GET, "/v1/tokens/self").await.json;
    assert_eq!((&current["id"], &current["current"]), (&displayed["id"], &true.into()));
    let parent = path_of("tokens", &world.rest_get("/v1/tokens/self").await.json);
    assert_eq!(as_reader(Method::DELETE, &parent).await.problem(), (404, "not_found", ""));

    assert_eq!(world.rest(Method::DELETE, &path, None).await.status, StatusCode::NO_CONTENT);
    assert_eq!(
        as_reader(Method::GET, "/v1/subscriptions").await.problem(),
        (401, "unauthorized", "")
    );
    let revoked = world.rest_get(&path).await.json;
    assert!(revoked["valid"] == false && revoked["revokedAt"].is_string(), "{revoked}");
}

#[tokio::test]
async fn a02_a_token_creates_none_with_more_rights_and_revokes_none() {
    let world = World::with_tides(1, &[]).await;
    let manager = world.create_token("tester", "list tokens").await;
    let create = async |body| world.rest_as(&manager, Method::POST, "/v1/tokens", Some(body)).await;
    #[rustfmt::skip]
    let cases = [
        (json!({ "scopes": ["list", "admin"] }), 403, "missing_scope", "scopes"),
        (json!({ "scopes": ["fly"] }),           422, "invalid_field", "scopes"),
        (json!({ "scopes": "list" }),            422, "invalid_field", "scopes"),
        (json!({ "name": "a\nb", "scopes": ["list"] }), 422, "invalid_field", "name"),
        (json!({ "scopes": ["list"], "expiresAt": "2001-01-01T00:00:00Z" }), 422, "invalid_field", "expiresAt"),
        (json!({ "scopes": ["list"], "expiresAt": "tomorrow" }), 422, "invalid_field", "expiresAt"),
        (json!({ "days": 3 }),                   422, "unknown_field", "days"),
    ];
    for (body, status, code, field) in cases {
        assert_eq!(create(body.clone()).await.problem(), (status, code, field), "{body}");
    }
    let stronger = path_of("tokens", &world.rest_get("/v1/tokens/self").await.json);
    let refused = world.rest_as(&manager, Method::DELETE, &stronger, None).await;
    assert_eq!(refused.problem(), (403, "missing_scope", ""));
    for path in ["/v1/tokens/0", "/v1/tokens/+1", "/v1/tokens/x", "/v1/tokens/9999999"] {
        assert_eq!(world.rest_get(path).await.problem(), (404, "not_found", ""), "{path}");
    }
    let own = world.rest_as(&manager, Method::DELETE, "/v1/tokens/self", None).await;
    assert_eq!(own.status, StatusCode::NO_CONTENT);
}
