//! What the owner of a subscription learns of the attempts to deliver to it.

use std::time::Duration;

use feedgate::jobs::runner;
use feedgate_core::account::{NewToken, Scopes, TokenHash};
use http::{Method, StatusCode};
use serde_json::Value;
use tokio::time::{sleep, timeout};

use super::World;
use crate::support::PATIENCE;
use crate::support::feeds::entry_id;
use crate::support::gateway::LOGIN;
use crate::support::subscriber::Behavior;

/// `tester:list` in base64.
const LISTING: &str = "dGVzdGVyOmxpc3Q=";

impl World {
    async fn attempts(&self, further: &[(&str, &str)]) -> (StatusCode, Value) {
        let query = [("hub.mode", "attempts"), ("hub.topic", self.topic.as_str())];
        let accept = [("accept", "application/json")];
        let got = self.ask(Method::GET, &[&query, further].concat(), &accept).await;
        (got.status, serde_json::from_str(&got.text).unwrap_or_default())
    }

    /// The attempts, once there are `many`.
    async fn until_attempts(&self, many: usize) -> Vec<Value> {
        let wait = async {
            loop {
                let (_, mut page) = self.attempts(&[]).await;
                if let Value::Array(attempts) = page["attempts"].take()
                    && attempts.len() == many
                {
                    return attempts;
                }
                sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(PATIENCE, wait).await.expect("attempts are recorded")
    }

    /// Creates the token `list` of the account, which permits nothing but to list.
    async fn create_listing_token(&self, login: &str) {
        let hash = TokenHash::from_token("list");
        let scopes = Scopes::from_words("list").unwrap();
        let token = NewToken {
            login: login.to_owned(),
            name: String::new(),
            scopes,
            hash,
            expires_at: None,
        };
        let store = self.database.open().await;
        store.create_token(&token, runner::now()).await.unwrap();
        store.close().await;
    }
}

/// A world with a failed attempt and a successful one.
async fn attempted() -> (World, Vec<Value>) {
    let world = World::subscribed("json").await;
    world.subscriber.set("/cb", Behavior::Failing(503));
    world.publish(4).await;
    world.until_delivery_is("failing").await;
    world.subscriber.set("/cb", Behavior::Accepting);
    let retry = [("hub.mode", "retry"), ("hub.topic", world.topic.as_str())];
    assert_eq!(world.ask(Method::POST, &retry, &[]).await.status, StatusCode::NO_CONTENT);
    let attempts = world.until_attempts(2).await;
    (world, attempts)
}

#[tokio::test]
async fn attempts_are_listed_newest_first() {
    let (world, attempts) = attempted().await;
    let [retry, first] = attempts.as_slice() else { unreachable!() };
    assert_eq!((&first["verdict"], &first["code"]), (&"failed".into(), &"http_5xx".into()));
    assert!(first["nextAttempt"].is_i64() && first["tookMs"].is_u64(), "{first}");
    assert_eq!(first["response"]["status"], 503);
    assert_eq!((&retry["verdict"], &retry["code"]), (&"delivered".into(), &"ok".into()));
    assert!(retry["nextAttempt"].is_null() && retry["error"].is_null(), "{retry}");
    let (request, response) = (&retry["request"], &retry["response"]);
    assert_eq!((&request["content"], &request["entries"]), (&"entries".into(), &1.into()));
    assert_eq!((&request["first"], &request["last"]), (&4.into(), &4.into()));
    assert!(request["headers"].as_array().unwrap().iter().any(|it| it["name"] == "webhook-id"));
    assert_eq!((&response["status"], &response["body"]), (&200.into(), &"ok".into()));

    let (_, page) = world.attempts(&[("count", "1")]).await;
    assert_eq!(page["attempts"], Value::from(vec![retry.clone()]));
    assert_eq!(page["next"], retry["id"]);
    let before = page["next"].to_string();
    let (_, page) = world.attempts(&[("before", &before)]).await;
    assert_eq!(page["attempts"], Value::from(vec![first.clone()]));
    assert!(page["next"].is_null());
}

#[tokio::test]
async fn the_payload_of_an_attempt_is_composed_again() {
    let (world, attempts) = attempted().await;
    let id = attempts[1]["id"].to_string();
    let (status, attempt) = world.attempts(&[("id", &id), ("payload", "true")]).await;
    assert_eq!(status, StatusCode::OK, "{attempt}");
    assert_eq!(attempt["payload"]["contentType"], "application/json");
    let body: Value = serde_json::from_str(attempt["payload"]["body"].as_str().unwrap()).unwrap();
    let items = body["items"].as_array().unwrap();
    assert_eq!((items.len(), &items[0]["id"]), (1, &entry_id("tides", 4).into()), "{body}");
    let (_, bare) = world.attempts(&[("id", &id)]).await;
    assert_eq!(bare, attempts[1]);
    // What is sent now has another form.
    let callback = world.subscriber.url("/cb");
    world.gateway.subscribe_superfeedr(&world.topic, &callback, "atom").await;
    let (_, attempt) = world.attempts(&[("id", &id), ("payload", "true")]).await;
    assert!(attempt["payload"].is_null(), "{attempt}");
}

#[tokio::test]
async fn h07_a_payload_is_read_with_the_scope_that_reading_entries_needs() {
    let (world, attempts) = attempted().await;
    world.create_listing_token(LOGIN).await;
    let id = attempts[1]["id"].to_string();
    let (status, attempt) = world.attempts_as(LISTING, &[("id", &id)]).await;
    assert_eq!(status, StatusCode::OK, "{attempt}");
    let (status, problem) = world.attempts_as(LISTING, &[("id", &id), ("payload", "1")]).await;
    assert_eq!(status, StatusCode::FORBIDDEN, "{problem}");
    let (status, _) = world.attempts_as(LISTING, &[("id", &id), ("payload", "0")]).await;
    assert_eq!(status, StatusCode::OK);
}

#[tokio::test]
async fn s13_of_a_private_callback_the_owner_sees_the_status_only() {
    let (world, attempts) = attempted().await;
    assert!(attempts.iter().all(|attempt| attempt["response"]["hidden"] == false), "an admin");
    world.create_listing_token(LOGIN).await;
    let (status, page) = world.attempts_as(LISTING, &[]).await;
    assert_eq!(status, StatusCode::OK, "{page}");
    for attempt in page["attempts"].as_array().unwrap() {
        let response = &attempt["response"];
        assert!(response["hidden"] == true && response["status"].is_u64(), "{response}");
        assert_eq!((&response["body"], &response["headers"]), (&"".into(), &Value::Array(vec![])));
    }
}

/// Rule S37.
#[tokio::test]
async fn s37_attempts_of_other_accounts_are_not_found() {
    let (world, attempts) = attempted().await;
    world.create_listing_token("stranger").await;
    let anonymous = "c3RyYW5nZXI6bGlzdA=="; // stranger:list
    let (status, page) = world.attempts_as(anonymous, &[]).await;
    assert_eq!((status, page), (StatusCode::NOT_FOUND, Value::Null));

    let other = world.subscriber.url("/other");
    world.gateway.subscribe_superfeedr(&world.topic, &other, "json").await;
    let id = attempts[0]["id"].to_string();
    #[rustfmt::skip]
    type Case<'c> = (&'c [(&'c str, &'c str)], u16, &'c str);
    let cases: [Case<'_>; 7] = [
        (&[("hub.callback", &other), ("id", &id)], 404, "no_attempt"),
        (&[("hub.callback", &other), ("id", "999999")], 404, "no_attempt"),
        (&[("hub.callback", "https://nobody.test/")], 404, "no_subscription"),
        (&[], 422, "several_subscriptions"),
        (&[("id", "first")], 422, "bad_request"),
        (&[("payload", "true")], 422, "bad_request"),
        (&[("after", "1")], 422, "unknown_parameter"),
    ];
    for (further, status, code) in cases {
        let (got, problem) = world.attempts(further).await;
        assert_eq!((got.as_u16(), &problem["code"]), (status, &code.into()), "{further:?}");
    }
}

impl World {
    /// The attempts that the account with these credentials sees.
    async fn attempts_as(
        &self,
        credentials: &str,
        further: &[(&str, &str)],
    ) -> (StatusCode, Value) {
        let callback = self.subscriber.url("/cb");
        let form = [
            ("hub.mode", "attempts"),
            ("hub.topic", self.topic.as_str()),
            ("hub.callback", &callback),
            ("authorization", credentials),
        ];
        let (status, text) = self.gateway.post("/", &[&form, further].concat()).await;
        (status, serde_json::from_str(&text).unwrap_or_default())
    }
}
