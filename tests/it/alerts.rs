//! Alerts of the whole program: what an alert address is sent, how often, and whom one that fails harms.

use std::collections::BTreeSet;
use std::fs;
use std::time::Duration;

use feedgate::jobs::runner;
use feedgate_core::alert::{AlertAddress, AlertKind};
use feedgate_core::claim::QueuePosition;
use feedgate_core::delivery_health::AttemptResponse;
use feedgate_core::poll::{NewContent, Poll};
use feedgate_core::signing::Secret;
use feedgate_core::status::Status;
use feedgate_core::store::{ClaimLimits, DeliveryOutcome, DeliveryResult};
use feedgate_core::subscription::{Format, Lease, SubscriptionRequest};
use feedgate_core::topic::{Callback, Topic};
use feedgate_protocol::Protocol;
use feedgate_store::Store;
use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::architecture::root;
use crate::schemas::assert_alerts;
use crate::store::alerts::account;
use crate::store::{on_both_stores, poll};
use crate::support::gateway::{Gateway, LOGIN, TOKEN};
use crate::support::postgres::Database;
use crate::support::server::{ReceivedRequest, client};
use crate::support::subscriber::{Behavior, is_signed};
use crate::support::until;
use crate::support::world::World;

on_both_stores!(
    a_failing_callback_is_reported_once_and_so_is_its_recovery,
    a_crowd_is_one_request_whatever_other_addresses_do,
);

const SECRET: &str = "opensesame";

impl World {
    async fn call_rest(&self, method: Method, path: &str, body: Value) -> (StatusCode, Value) {
        let request = client().request(method, self.gateway.url(path)).bearer_auth(TOKEN);
        let request = match body {
            Value::Null => request,
            body => request.header("content-type", "application/json").body(body.to_string()),
        };
        let answer = request.send().await.unwrap();
        (answer.status(), serde_json::from_str(&answer.text().await.unwrap()).unwrap_or_default())
    }

    /// Sets the alert address of the account of the tests, so that it is looked for alerts at once.
    async fn set_alert_address(&self) {
        let body = json!({ "url": self.subscriber.url("/alerts"), "secret": SECRET });
        let (status, answer) = self.call_rest(Method::PUT, "/v1/alerts", body).await;
        assert_eq!(status, StatusCode::OK, "{answer}");
    }

    /// The alerts that were sent to the account of the tests.
    async fn alerts(&self, requests: usize) -> Vec<Value> {
        self.subscriber.until("/alerts", |sent| sent.len() >= requests).await;
        self.subscriber.notified("/alerts").iter().map(alerts_in).collect()
    }
}

/// What a request to an alert address says.
fn alerts_in(request: &ReceivedRequest) -> Value {
    assert_alerts(&request.text());
    assert!(is_signed(request, SECRET));
    assert_eq!(request.header("content-type"), Some("application/json"));
    let has = |name| request.header(name).is_some_and(|value| !value.is_empty());
    assert!(has("webhook-id") && has("webhook-timestamp") && has("webhook-signature"));
    serde_json::from_slice(&request.body).unwrap()
}

async fn a_failing_callback_is_reported_once_and_so_is_its_recovery(database: Database) {
    let gateway = Gateway::start(&database, &[]).await;
    let mut world = World::on(database, gateway).await;
    world.put_tides(2);
    let callback = world.subscriber.url("/cb");
    let body = json!({ "url": world.topic, "callback": callback });
    let (_, made) = world.call_rest(Method::POST, "/v1/subscriptions", body).await;
    let path = format!("/v1/subscriptions/{}", made["id"].as_str().unwrap());
    world.subscriber.set("/cb", Behavior::Failing(503));
    world.put_tides(3);
    world.gateway.post("/", &[("hub.mode", "publish"), ("hub.url", &world.topic)]).await;
    for failures in 1..=5 {
        until("it fails", async || {
            let (_, now) = world.call_rest(Method::GET, &path, json!(null)).await;
            now["delivery"]["failures"] == failures
        })
        .await;
        if failures < 5 {
            world.call_rest(Method::POST, &format!("{path}/retry"), json!({})).await;
        }
    }
    world.set_alert_address().await;
    let alerts = world.alerts(1).await.remove(0);
    assert_eq!((&alerts["type"], &alerts["account"]), (&json!("alerts"), &json!(LOGIN)));
    assert_eq!((&alerts["counts"], &alerts["omitted"]), (&json!({ "failing": 1 }), &json!(0)));
    let alert = &alerts["alerts"][0];
    assert_eq!((&alert["subscription"], &alert["callback"]), (&made["id"], &json!(callback)));
    assert_eq!((&alert["url"], &alert["failures"]), (&json!(world.topic), &json!(5)));
    assert_eq!(alert["lastAttempt"]["status"], 503);
    assert_eq!(keys(alert), keys(&documented_alert("failing")), "docs/alerts.md shows them all");
    until("the answer is stored", async || {
        world.call_rest(Method::GET, "/v1/alerts", json!(null)).await.1["lastAttempt"]["code"]
            == "ok"
    })
    .await;
    world.gateway.measures("feedgate_alerts_total{result=\"ok\"} 1").await;

    world.gateway.kill();
    world.gateway.restart().await;
    world.set_alert_address().await;
    world.subscriber.set("/cb", Behavior::Accepting);
    world.call_rest(Method::POST, &format!("{path}/retry"), json!({})).await;
    let all = world.alerts(2).await;
    assert_eq!(all.len(), 2);
    assert_eq!(all[1]["counts"], json!({ "recovered": 1 }), "and what was told is told once");
}

fn keys(value: &Value) -> BTreeSet<&String> {
    value.as_object().unwrap().keys().collect()
}

/// The alert of this kind in the example of `docs/alerts.md`.
fn documented_alert(kind: &str) -> Value {
    let page = fs::read_to_string(root().join("docs/alerts.md")).unwrap();
    let (_, example) = page.split_once("```json\n").unwrap();
    let example = example.split_once("```").unwrap().0;
    assert_alerts(example);
    let example: Value = serde_json::from_str(example).unwrap();
    let alerts = example["alerts"].as_array().unwrap();
    alerts.iter().find(|alert| alert["kind"] == kind).unwrap().clone()
}

/// Callbacks of the account of the tests that fail.
const CROWD: usize = 120;

async fn a_crowd_is_one_request_whatever_other_addresses_do(database: Database) {
    let settings =
        [("FEEDGATE_SUBSCRIPTIONS_PER_ACCOUNT", "130"), ("FEEDGATE_DELIVERY_TIMEOUT_S", "2")];
    let gateway = Gateway::start(&database, &settings).await;
    let mut world = World::on(database, gateway).await;
    world.gateway.kill();
    let store = world.database.open().await;
    for path in ["/alerts", "/hanging", "/failing"] {
        let login = if path == "/alerts" { LOGIN } else { path.trim_start_matches('/') };
        let token = if path == "/alerts" { TOKEN } else { login };
        prepare(&store, &world, (login, token), path).await;
    }
    store.close().await;
    world.subscriber.set("/hanging", Behavior::Hanging);
    world.subscriber.set("/failing", Behavior::Failing(500));
    world.gateway.restart().await;

    let alerts = world.alerts(1).await.remove(0);
    let counts = json!({
        "failing": CROWD - 1, "suspended": 1, "feed_gone": 1, "feed_moved": 1, "quota_near": 1,
    });
    assert_eq!(alerts["counts"], counts);
    let listed = alerts["alerts"].as_array().unwrap();
    assert_eq!((listed.len(), &alerts["omitted"]), (50, &json!(CROWD + 3 - 50)));
    assert_eq!(
        listed[0],
        json!({ "kind": "quota_near", "quota": "subscriptions", "used": CROWD, "limit": 130 })
    );
    for (kind, place) in [("feed_gone", 1), ("feed_moved", 2)] {
        assert_eq!(
            (&listed[place]["kind"], &listed[place]["url"]),
            (&json!(kind), &json!(feed(LOGIN, place - 1)))
        );
    }
    assert_eq!(listed[2]["movedTo"], "https://new.test/feed");
    assert_eq!(keys(&listed[2]), keys(&documented_alert("feed_moved")));
    let ids = async |path: &str| {
        world.subscriber.until(path, |sent| sent.len() >= 2).await;
        let sent = world.subscriber.notified(path);
        let ids: BTreeSet<_> =
            sent.iter().map(|it| it.header("webhook-id").unwrap().to_owned()).collect();
        ids.len()
    };
    assert_eq!(ids("/failing").await, 1, "the same alerts are repeated under the same id");
    world.gateway.measures("feedgate_alerts_total{result=\"http_5xx\"} 2").await;
    world.subscriber.set("/hanging", Behavior::Accepting);
    world.subscriber.until("/hanging", |sent| sent.len() >= 2).await;
    assert_eq!(world.subscriber.notified("/alerts").len(), 1, "all was told");
    assert_eq!(world.subscriber.notified("/cb").len(), 0, "no delivery was due");
}

fn feed(login: &str, number: usize) -> String {
    format!("https://feeds.test/{login}/{number}")
}

/// Makes an account with an alert address whose callbacks all fail, one of them for a month, and one of whose
/// feeds is gone, another one moved.
async fn prepare(store: &Store, world: &World, (login, token): (&str, &str), path: &str) {
    let now = runner::now();
    let earlier = now - Duration::from_secs(600);
    let account = account(store, login, token).await;
    let address = AlertAddress {
        account,
        callback: Callback::parse(world.subscriber.url(path)).unwrap(),
        secret: Secret::new(SECRET.to_owned()).ok(),
        kinds: AlertKind::ALL.to_vec(),
    };
    store.set_alert_address(&address, earlier - Duration::from_secs(60)).await.unwrap();
    let mut resources = Vec::new();
    for number in 0..CROWD {
        let callback = Callback::parse(world.subscriber.url(&format!("/cb?{number}"))).unwrap();
        let topic = Topic::parse(feed(login, number % 3)).unwrap();
        let request = SubscriptionRequest {
            account: Some(account),
            format: Format::Json,
            lease: Lease::ACCOUNT,
            ..SubscriptionRequest::new(topic, callback, Protocol::WebSub)
        };
        resources.push(store.subscribe(&request, earlier).await.unwrap().id.resource);
    }
    let next_fetch = now + Duration::from_secs(3_600);
    let of_poll = |ids: &[&str]| Poll { next_fetch, ..poll(earlier, ids) };
    for resource in &resources[..3] {
        store.record(*resource, &of_poll(&["1"])).await.unwrap();
    }
    let status = Status { error: "gone".to_owned(), ..Status::default() };
    let gone = Poll { found: NewContent::Nothing, status, answered_well: false, ..of_poll(&[]) };
    store.record(resources[0], &gone).await.unwrap();
    let fetch_url = Some("https://new.test/feed".to_owned());
    store.record(resources[1], &Poll { fetch_url, ..of_poll(&[]) }).await.unwrap();
    let limits = ClaimLimits { limit: 1_000, per_host: 1_000, busy: Vec::new() };
    for failure in 0..5 {
        let (at, last) = (now + Duration::from_secs(failure), failure == 4);
        let claimed = store.claim_subscriptions(
            at,
            at + Duration::from_millis(900),
            &limits,
            QueuePosition::START,
        );
        let due = claimed.await.unwrap().due;
        let results = due.iter().enumerate().map(|(place, due)| {
            let retry_at = Some(if last { next_fetch } else { at + Duration::from_millis(1) });
            let outcome = match last && place == 0 {
                true => DeliveryOutcome::Suspended,
                false => DeliveryOutcome::Failed { retry_at },
            };
            let response = AttemptResponse { status: Some(500), excerpt: String::new() };
            DeliveryResult::new(due, outcome, Some(response))
        });
        assert_eq!(due.len(), CROWD);
        store.record_deliveries(&results.collect::<Vec<_>>(), at).await.unwrap();
    }
}
