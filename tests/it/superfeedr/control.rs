//! Pausing, resuming, retrying and testing the deliveries of a subscription.

use http::{Method, StatusCode};
use serde_json::Value;

use super::World;
use crate::support::subscriber::{Behavior, is_signed};

impl World {
    /// Requests this mode for the subscription with the callback `/cb`.
    async fn control(&self, mode: &str) -> (StatusCode, Value) {
        let callback = self.subscriber.url("/cb");
        self.control_of(mode, &[("hub.callback", &callback)]).await
    }

    async fn control_of(&self, mode: &str, further: &[(&str, &str)]) -> (StatusCode, Value) {
        let query = [("hub.mode", mode), ("hub.topic", self.topic.as_str())];
        let accept = [("accept", "application/json")];
        let got = self.ask(Method::POST, &[&query, further].concat(), &accept).await;
        (got.status, serde_json::from_str(&got.text).unwrap_or_default())
    }
}

const DONE: (StatusCode, Value) = (StatusCode::NO_CONTENT, Value::Null);

#[tokio::test]
async fn a_paused_subscription_is_sent_nothing_until_it_is_resumed() {
    let world = World::subscribed("json").await;
    assert_eq!(world.control("pause").await, DONE);
    world.publish(4).await;
    world.publish(5).await;
    world.gateway.comes_to_rest().await;
    assert_eq!(world.subscriber.notified("/cb").len(), 0);
    let delivery = world.until_delivery_is("paused").await["delivery"].take();
    assert_eq!((&delivery["cursor"], &delivery["lag"]), (&3.into(), &2.into()), "{delivery}");
    assert!(delivery["pausedSince"].is_i64() && delivery["nextAttempt"].is_null(), "{delivery}");
    for mode in ["retry", "replay"] {
        let (status, problem) = world.control(mode).await;
        assert_eq!((status.as_u16(), &problem["code"]), (422, &"paused".into()), "{mode}");
    }

    assert_eq!(world.control_of("resume", &[]).await, DONE, "the only callback may be left out");
    world.subscriber.until("/cb", |told| told.len() == 1).await;
    let told: Value = serde_json::from_str(&world.subscriber.notified("/cb")[0].text()).unwrap();
    assert_eq!(told["items"].as_array().unwrap().len(), 2, "what was held back");
    assert!(world.until_delivery_is("ok").await["delivery"]["pausedSince"].is_null());
    assert_eq!(world.control("resume").await, DONE, "once more changes nothing");
}

#[tokio::test]
async fn a_failed_delivery_can_be_retried_at_once() {
    let world = World::subscribed("json").await;
    world.subscriber.set("/cb", Behavior::Failing(503)); // waits for a minute at least
    world.publish(4).await;
    world.until_delivery_is("failing").await;
    world.subscriber.set("/cb", Behavior::Accepting);
    assert_eq!(world.control("retry").await, DONE);
    world.until_delivery_is("ok").await;
    let (status, problem) = world.control("retry").await;
    assert_eq!((status.as_u16(), &problem["code"]), (422, &"nothing_to_retry".into()));
}

#[tokio::test]
async fn a_test_tells_what_the_callback_responds() {
    let world = World::subscribed("json").await;
    let callback = world.subscriber.url("/cb");
    let subscribe =
        [("hub.mode", "subscribe"), ("hub.topic", world.topic.as_str()), ("format", "json")];
    let signed = [("hub.callback", callback.as_str()), ("hub.secret", "sesame")];
    world.gateway.superfeedr(&[&subscribe[..], &signed].concat()).await;
    let (status, report) = world.control("test").await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!((&report["delivered"], &report["status"]), (&true.into(), &200.into()), "{report}");
    let test = world.subscriber.notified("/cb").remove(0);
    assert_eq!(test.header("x-feedgate-test"), Some("1"));
    assert_eq!(test.header("webhook-id"), report["webhookId"].as_str());
    assert!(is_signed(&test, "sesame") && test.header("webhook-signature").is_some());
    assert_eq!(test.header("x-feedgate-seq"), None, "it is no part of the log");
    let body: Value = serde_json::from_str(&test.text()).unwrap();
    assert!(body["status"]["feed"] == world.topic && body.get("items").is_none(), "{body}");

    for (code, behavior) in [(500, Behavior::Failing(500)), (410, Behavior::Failing(410))] {
        world.subscriber.set("/cb", behavior);
        let (status, report) = world.control("test").await;
        assert_eq!(status, StatusCode::OK);
        assert_eq!((&report["delivered"], &report["status"]), (&false.into(), &code.into()));
    }
    let listed = world.until_delivery_is("ok").await;
    assert!(listed["delivery"]["lastAttempt"].is_null(), "a test is no delivery: {listed}");

    world.gateway.subscribe_superfeedr(&world.topic, &world.subscriber.url("/raw"), "raw").await;
    let (_, report) =
        world.control_of("test", &[("hub.callback", &world.subscriber.url("/raw"))]).await;
    assert_eq!(report["delivered"], true);
    assert!(world.subscriber.notified("/raw")[0].text().contains("<rss"), "the topic unchanged");
}

#[tokio::test]
async fn a_subscription_that_does_not_exist_cannot_be_controlled() {
    let world = World::subscribed("json").await;
    let null = world.gateway.url("/dev/null");
    world.gateway.subscribe_superfeedr(&world.topic, &null, "json").await;
    #[rustfmt::skip]
    let cases = [
        ("pause",  Some("https://nobody.test/"), 404, "no_subscription"),
        ("resume", Some("https://nobody.test/"), 404, "no_subscription"),
        ("retry",  Some("https://nobody.test/"), 404, "no_subscription"),
        ("test",   Some("https://nobody.test/"), 404, "no_subscription"),
        ("pause",  None,                         422, "several_subscriptions"),
        ("test",   Some(null.as_str()),          422, "null_device"),
        ("retry",  Some("nonsense"),             422, "bad_callback"),
    ];
    for (mode, callback, status, code) in cases {
        let further: Vec<_> =
            callback.map(|callback| ("hub.callback", callback)).into_iter().collect();
        let (got, problem) = world.control_of(mode, &further).await;
        assert_eq!((got.as_u16(), &problem["code"]), (status, &code.into()), "{mode}: {problem}");
    }
    let unknown = world.control_of("pause", &[("until", "tomorrow")]).await;
    assert_eq!(unknown.1["code"], "unknown_parameter");
}
