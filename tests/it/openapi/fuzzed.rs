//! schemathesis calls the program in all ways that the document describes, and in ways that it does
//! not, and compares the answers: no failure of the server, no status, media type or body that is
//! not in the document. `tests/it/clients/schemathesis.toml` says how.

use std::process::Stdio;
use std::time::Duration;

use http::StatusCode;
use serde_json::{Value, json};
use tokio::process::Command;
use tokio::time::timeout;

use super::{document, python_program, root};
use crate::support::feeds::rss;
use crate::support::gateway::Gateway;
use crate::support::postgres::{Database, Kind};
use crate::support::publisher::Publisher;
use crate::support::server::client;
use crate::support::subscriber::Subscriber;
use crate::support::until;

/// How long a run may take before it is given up. It takes less than a minute on a machine that
/// does nothing else.
const LONGEST_RUN: Duration = Duration::from_secs(400);

/// The credentials of the account that every gateway of the tests has.
const ACCOUNT: [&str; 2] = ["tester", "s3cret"];

/// A gateway with everything that the examples of the document name.
struct Described {
    gateway: Gateway,
    publisher: Publisher,
    subscriber: Subscriber,
    /// The number of the archive of the feed.
    id: u64,
    /// The ids that calls of the REST API name, by their parameters.
    ids: Vec<(&'static str, String)>,
    /// The id of a subscription that may be ended.
    ended: String,
    _database: Database,
}

impl Described {
    async fn start() -> Described {
        let publisher = Publisher::start().await;
        let subscriber = Subscriber::start().await;
        publisher.put_rss("/feed.xml", rss("tides", 1..6));
        let database = Database::new(Kind::Sqlite).await;
        let feed = publisher.url("/feed.xml");
        let collections = format!("[{{\"name\": \"sea\", \"topics\": [\"{feed}\"]}}]");
        let settings = [
            ("FEEDGATE_COLLECT_ALL", "on"),
            ("FEEDGATE_COLLECTIONS", collections.as_str()),
            ("FEEDGATE_ANONYMOUS_REQUESTS_PER_MIN", "1000000"),
            ("FEEDGATE_STORAGE_FILES", "100000"),
        ];
        let gateway = Gateway::start(&database, &settings).await;
        let form = [
            ("hub.mode", "subscribe"),
            ("hub.topic", feed.as_str()),
            ("hub.callback", &subscriber.url("/callback")),
            ("retrieve", "true"),
        ];
        let (status, text) = gateway.superfeedr(&form).await;
        assert_eq!(status, StatusCode::OK, "{text}");
        gateway.open_to_anonymous(&feed).await;
        let (ids, ended) = ids_of_rest_api(&gateway, &feed, &subscriber).await;
        let archive = client().get(gateway.archive_of(&feed)).send().await.unwrap();
        let segment = archive.url().path_segments().unwrap().nth(1).unwrap().to_owned();
        Described {
            gateway,
            publisher,
            subscriber,
            id: segment.parse().unwrap(),
            ids,
            ended,
            _database: database,
        }
    }

    /// The document, with the addresses and numbers of this machine in its examples.
    fn document(&self) -> Value {
        let addresses = [
            ("https://blog.rust-lang.org/feed.xml", self.publisher.url("/feed.xml")),
            ("https://example.com/callback", self.subscriber.url("/callback")),
            ("https://tides.example.org/", self.publisher.url("/")),
        ];
        let text = document().to_string();
        let text = addresses.iter().fold(text, |text, (written, here)| text.replace(written, here));
        let mut document: Value = serde_json::from_str(&text).unwrap();
        let parameters = &mut document["components"]["parameters"];
        parameters["id"]["schema"]["example"] = self.id.into();
        parameters["login"]["schema"]["example"] = ACCOUNT[0].into();
        for (name, id) in &self.ids {
            parameters[name]["schema"]["example"] = id.as_str().into();
        }
        // What the other calls read is not ended first.
        let mut ended = document["components"]["parameters"]["subscriptionId"].clone();
        ended["schema"]["example"] = self.ended.as_str().into();
        document["paths"]["/v1/subscriptions/{id}"]["delete"]["parameters"] = json!([ended]);
        add_what_generators_cannot_read(&mut document);
        document
    }

    /// Runs schemathesis with a file of `tests/it/clients` that configures it. It must find nothing, and
    /// the gateway must be ready afterwards. Returns the number of operations that it tested.
    async fn run_schemathesis(&self, config: &str, options: &[&str]) -> usize {
        let folder = tempfile::tempdir().unwrap();
        let document = folder.path().join("openapi.json");
        std::fs::write(&document, self.document().to_string()).unwrap();
        let clients = root().join("tests/it/clients");
        let run = Command::new(python_program("schemathesis"))
            .arg("--config-file")
            .arg(clients.join(config))
            .arg("run")
            .arg(&document)
            .args(["--url", &self.gateway.url("")])
            .args(options)
            .current_dir(folder.path())
            .env("PYTHONPATH", &clients)
            .env("SCHEMATHESIS_HOOKS", "schemathesis_hooks")
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .output();
        let ended = timeout(LONGEST_RUN, run).await.expect("schemathesis ends").unwrap();
        let report = String::from_utf8_lossy(&ended.stdout);
        let failures = String::from_utf8_lossy(&ended.stderr);
        assert!(ended.status.success(), "{report}\n{failures}");
        let (_, tested) = report.split_once("Tested: ").expect("a summary");
        let (status, text) = self.gateway.get("/readyz").await;
        assert_eq!(status, StatusCode::OK, "{text}");
        tested.split_whitespace().next().unwrap().parse().unwrap()
    }
}

/// Makes one of each resource of the REST API. Returns the parameters that name them with their ids, and the
/// id of another subscription.
async fn ids_of_rest_api(
    gateway: &Gateway,
    feed: &str,
    subscriber: &Subscriber,
) -> (Vec<(&'static str, String)>, String) {
    let post = async |path: &str, fields: Value| -> Value {
        let request = client().post(gateway.url(path)).bearer_auth(ACCOUNT[1]);
        let request = request.header("content-type", "application/json").body(fields.to_string());
        serde_json::from_str(&request.send().await.unwrap().text().await.unwrap()).unwrap()
    };
    let text = |value: &Value| value.as_str().unwrap_or_else(|| panic!("{value}")).to_owned();
    let callback = subscriber.url("/replayed");
    let created = post("/v1/subscriptions", json!({ "url": feed, "callback": callback })).await;
    let callback = subscriber.url("/ended");
    let ended = post("/v1/subscriptions", json!({ "url": feed, "callback": callback })).await;
    let track = post("/v1/tracks", json!({ "query": "laurel hardy" })).await;
    let (id, feed_id) = (text(&created["id"]), text(&created["feed"]["id"]));
    post(&format!("/v1/subscriptions/{id}/replay"), json!({})).await;
    let first = async |path: String| {
        let mut first = Value::Null;
        until("the list has an item", async || {
            let list = gateway.own(&path).await;
            first = list["data"][0]["id"].clone();
            !first.is_null()
        })
        .await;
        text(&first)
    };
    let entry = first(format!("/v1/feeds/{feed_id}/entries")).await;
    let delivery = first(format!("/v1/deliveries?subscription={id}")).await;
    let attempt = first(format!("/v1/attempts?subscription={id}")).await;
    let ids = vec![
        ("subscriptionId", id.clone()),
        ("ofSubscription", id),
        ("feedId", feed_id),
        ("entryId", entry),
        ("deliveryId", delivery),
        ("attemptId", attempt),
        ("tokenId", "self".to_owned()),
        ("trackId", text(&track["id"])),
    ];
    (ids, text(&ended["id"]))
}

/// The answers that have no other members than those in the document. Clients must not rely on that,
/// so the document does not say so.
const CLOSED_ANSWERS: [&str; 6] =
    ["DetailedList", "Rights", "TestReport", "ListedAttempts", "ListedAttempt", "HeaderLine"];

/// Schemas of answers of the REST API to which the test permits no further members.
#[rustfmt::skip]
const CLOSED_REST_ANSWERS: [&str; 31] = [
    "RestProblem", "AccountSubscription", "PreviousSecret", "DeliveryProgress", "LastAttempt",
    "FetchFindings", "FeedLink", "SubscriptionList", "PendingSubscription", "CallbackTest", "Feed",
    "PollStatus", "FeedList", "Entry", "EntryList", "DeliveryAttempt", "AttemptRequest",
    "AttemptResponse", "AttemptPayload", "DeliveryAttemptList", "Delivery", "DeliveryList", "Token",
    "TokenList", "Track", "TrackList", "ReadingList", "ReadingListFeed", "ReadingListFeeds",
    "AlertAddress", "AlertAttempt",
];

/// Adds to the document what the program accepts, and what is only a sentence in the document because
/// generators make no usable client from it: bodies in several formats, batches, and parameters in the
/// query beside a body.
fn add_what_generators_cannot_read(document: &mut Value) {
    let parameters = document["paths"]["/"]["get"]["parameters"].clone();
    document["paths"]["/"]["post"]["parameters"] = parameters;
    let text = json!({ "schema": { "type": "string" } });
    for body in
        ["SuperfeedrCall", "CloudRegistration", "CloudPing", "CloudCancellation", "WeblogPing"]
    {
        let content = &mut document["components"]["requestBodies"][body]["content"];
        let described = content.as_object().unwrap().values().next().unwrap().clone();
        let schema = json!({ "schema": described["schema"] });
        content["application/x-www-form-urlencoded"] = described;
        content["multipart/form-data"] = schema.clone();
        content["application/json"] = schema;
        if body.starts_with("Cloud") {
            content["text/plain"] = text.clone();
        }
    }
    let content = &mut document["components"]["requestBodies"]["HubCall"]["content"];
    let schema = content["application/x-www-form-urlencoded"]["schema"].clone();
    content["multipart/form-data"] = json!({ "schema": schema });
    let content = &mut document["components"]["requestBodies"]["SuperfeedrCall"]["content"];
    let form = content["application/json"]["schema"].clone();
    let batch = json!({ "type": "array", "minItems": 1, "maxItems": 500, "items": form });
    content["application/json"]["schema"] = json!({ "anyOf": [form, batch] });
    content["text/x-opml"] = text;
    for answer in CLOSED_ANSWERS.iter().chain(&CLOSED_REST_ANSWERS).copied() {
        close_objects(&mut document["components"]["schemas"][answer]);
    }
}

/// Permits no members of objects besides those that the schema names.
fn close_objects(schema: &mut Value) {
    if let Some(members) = schema.as_object_mut() {
        if members.get("additionalProperties") == Some(&json!(true)) {
            members.insert("additionalProperties".to_owned(), json!(false));
        }
        members.values_mut().for_each(close_objects);
    }
}

#[tokio::test]
async fn schemathesis_finds_nothing_that_is_not_in_the_document() {
    let described = Described::start().await;
    let credentials = ["--auth", &ACCOUNT.join(":"), "--exclude-path-regex", "^/v1/"];
    let tested = described.run_schemathesis("schemathesis.toml", &credentials).await;
    assert!(tested > 50, "{tested} operations were tested");
}

/// A token alone, as its clients have it.
#[tokio::test]
async fn a02_schemathesis_finds_nothing_in_the_rest_api_with_a_token() {
    let described = Described::start().await;
    let bearer = format!("Authorization: Bearer {}", ACCOUNT[1]);
    let credentials = ["--header", &bearer, "--include-path-regex", "^/v1/"];
    let tested = described.run_schemathesis("schemathesis_v1.toml", &credentials).await;
    assert!(tested > 20, "{tested} operations were tested");
}

#[tokio::test]
async fn a02_schemathesis_finds_nothing_in_the_rest_api_without_an_account() {
    let described = Described::start().await;
    let none = ["--include-path-regex", "^/v1/", "--phases", "examples,coverage"];
    let tested = described.run_schemathesis("schemathesis_v1.toml", &none).await;
    assert!(tested > 20, "{tested} operations were tested");
}
