//! Superfeedr's API: what an account's subscriptions can be asked.

mod attempts;
mod batch;
mod callback_headers;
mod control;
mod credentials;
mod digests;
mod feed_headers;
mod filter;
mod formats;
mod listing;
mod notifications;
mod pages;
mod paging;
mod retrieval;
mod sanitize;
mod search;
mod stream_gaps;
mod streams;
mod subscriptions;
mod track;
mod updates;

use http::header::{CONTENT_TYPE, ETAG, HeaderMap, IF_NONE_MATCH};
use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::schemas::assert_notification;
use crate::support::feeds::{entry_id, entry_ids, link, rss};
use crate::support::server::client;
use crate::support::world::World;

/// `tester:s3cret`
const BASIC: &str = "Basic dGVzdGVyOnMzY3JldA==";

/// An answer, read to its end.
struct Got {
    status: StatusCode,
    headers: HeaderMap,
    text: String,
}

impl Got {
    fn header(&self, name: http::HeaderName) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    fn json(&self) -> Value {
        if self.text.starts_with("{\"status\":") {
            assert_notification(&self.text);
        }
        serde_json::from_str(&self.text).unwrap()
    }
}

impl World {
    /// With a feed of three entries, and a subscription to it in this format.
    async fn subscribed(format: &str) -> World {
        let world = World::with_tides(3, &[]).await;
        let callback = world.subscriber.url("/cb");
        world.gateway.subscribe_superfeedr(&world.topic, &callback, format).await;
        world
    }

    async fn ask(&self, method: Method, query: &[(&str, &str)], headers: &[(&str, &str)]) -> Got {
        let mut url = url::Url::parse(&self.gateway.url("/")).unwrap();
        url.query_pairs_mut().extend_pairs(query);
        let mut request = client().request(method, url).header("authorization", BASIC);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let answer = request.send().await.unwrap();
        let (status, headers) = (answer.status(), answer.headers().clone());
        Got { status, headers, text: answer.text().await.unwrap() }
    }

    async fn retrieve(&self, further: &[(&str, &str)]) -> Got {
        let query = [("hub.mode", "retrieve"), ("hub.topic", &self.topic)];
        self.ask(Method::GET, &[&query, further].concat(), &[]).await
    }
}

fn ids(numbers: &[usize]) -> Vec<String> {
    numbers.iter().map(|n| entry_id("tides", *n)).collect()
}

/// Further parameters, and the numbers of the entries that must come.
type Retrieval<'a> = (&'a [(&'a str, &'a str)], &'a [usize]);

/// Rows.
#[tokio::test]
async fn entries_are_retrieved_newest_first() {
    let world = World::subscribed("atom").await;
    let (first, second, third) = (entry_id("tides", 1), entry_id("tides", 2), entry_id("tides", 3));
    #[rustfmt::skip]
    let cases: [Retrieval<'_>; 7] = [
        (&[],                                      &[3, 2, 1]),
        (&[("count", "2")],                        &[3, 2]),
        (&[("count", "0")],                        &[3]),
        (&[("before", &third)],                    &[2, 1]),
        (&[("before", &third), ("count", "1")],    &[2]),
        (&[("after", &first)],                     &[3, 2]),
        (&[("after", &second), ("before", &third)], &[]),
    ];
    for (further, want) in cases {
        let got = world.retrieve(further).await;
        assert_eq!(got.status, StatusCode::OK, "{}", got.text);
        assert_eq!(got.header(CONTENT_TYPE), "application/atom+xml");
        assert_eq!(entry_ids(&got.text), ids(want), "{further:?}");

        let got = world.retrieve(&[further, &[("format", "JSON")]].concat()).await;
        assert_eq!(got.header(CONTENT_TYPE), "application/json; charset=utf-8");
        let items = got.json()["items"].as_array().unwrap().clone();
        let got: Vec<_> =
            items.iter().map(|item| item["id"].as_str().unwrap().to_owned()).collect();
        assert_eq!(got, ids(want), "{further:?} in JSON");
    }
    let got = world.retrieve(&[("before", "tag:nowhere")]).await;
    assert_eq!(got.status, StatusCode::UNPROCESSABLE_ENTITY);
    let recent = link(&world.retrieve(&[]).await.text, "current").unwrap();
    assert!(recent.ends_with("/recent"), "{recent}");
}

/// Row R-1.
#[tokio::test]
async fn what_was_retrieved_need_not_be_sent_again() {
    let world = World::subscribed("json").await;
    let got = world.retrieve(&[]).await;
    assert_eq!(got.header(http::header::X_CONTENT_TYPE_OPTIONS), "nosniff");
    assert_eq!(got.header(http::header::CONTENT_SECURITY_POLICY), "default-src 'none'; sandbox");
    let etag = got.header(ETAG).to_owned();
    let query = [("hub.mode", "retrieve"), ("hub.topic", &world.topic)];
    let same = world.ask(Method::GET, &query, &[(IF_NONE_MATCH.as_str(), &etag)]).await;
    assert_eq!((same.status, same.text.as_str()), (StatusCode::NOT_MODIFIED, ""));
    let head = world.ask(Method::HEAD, &query, &[]).await;
    assert_eq!((head.status, head.text.as_str()), (StatusCode::OK, ""));
    assert_eq!(head.header(ETAG), etag);
    assert_eq!(head.header(http::header::CONTENT_LENGTH), got.text.len().to_string());
    let as_json = world.ask(Method::GET, &query, &[("accept", "application/json")]).await;
    assert_ne!(as_json.header(ETAG), etag);
    assert_eq!(as_json.json()["status"]["code"], 200);
}

/// Row R-11.
#[tokio::test]
async fn who_waits_is_answered_as_soon_as_there_is_something_new() {
    let world = World::subscribed("atom").await;
    let poll = ("wait", "poll");
    let got = world.retrieve(&[poll]).await;
    assert_eq!(entry_ids(&got.text), ids(&[3, 2, 1]), "what is there is not waited for");

    let newest = entry_id("tides", 3);
    let further = [poll, ("after", newest.as_str()), ("format", "json")];
    let publish = async {
        world.publisher.put_rss("/feed", rss("tides", 1..5));
        world.gateway.post("/", &[("hub.mode", "publish"), ("hub.url", &world.topic)]).await
    };
    // Side by side: whichever request comes first, the answer is the same.
    let (got, _) = tokio::join!(world.retrieve(&further), publish);
    assert_eq!(got.json()["items"][0]["id"], entry_id("tides", 4));
    assert_eq!(got.json()["items"].as_array().unwrap().len(), 1);
}

/// Row A-13.
#[tokio::test]
async fn a_page_of_another_site_may_send_whatever_header_it_likes() {
    let world = World::subscribed("atom").await;
    let request = [
        ("origin", "https://page.test"),
        ("access-control-request-method", "GET"),
        ("access-control-request-headers", "authorization,last-event-id,x-trace"),
    ];
    let got = world.ask(Method::OPTIONS, &[], &request).await;
    assert_eq!(got.status, StatusCode::NO_CONTENT);
    let allowed = got.header(http::header::ACCESS_CONTROL_ALLOW_HEADERS);
    assert_eq!(allowed, "authorization,last-event-id,x-trace");
    assert_eq!(got.header(http::header::ACCESS_CONTROL_ALLOW_ORIGIN), "*");
}

#[tokio::test]
async fn a_subscription_can_be_answered_with_what_there_is() {
    let world = World::subscribed("atom").await;
    let form = [
        ("hub.mode", "subscribe"),
        ("hub.topic", world.topic.as_str()),
        ("hub.callback", &world.subscriber.url("/other")),
        ("retrieve", "true"),
        ("format", "json"),
    ];
    let (status, text) = world.gateway.superfeedr(&form).await;
    assert_eq!(status, StatusCode::OK);
    let value: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value["items"][0]["id"], entry_id("tides", 3));
    assert_eq!(value["status"]["feed"], world.topic);
}

/// Row R-7.
#[tokio::test]
async fn a_script_gets_a_call() {
    let world = World::subscribed("atom").await;
    let got = world.retrieve(&[("format", "json"), ("callback", "show"), ("_", "1")]).await;
    assert_eq!(got.header(CONTENT_TYPE), "application/javascript; charset=utf-8");
    let inner = got.text.strip_prefix("show(").and_then(|rest| rest.strip_suffix(')'));
    let value: Value = serde_json::from_str(inner.unwrap()).unwrap();
    assert_eq!(value["items"].as_array().unwrap().len(), 3);
}

/// Rows L-1, L-4, L-5, L-6 and L-8.
#[tokio::test]
async fn subscriptions_are_listed_to_their_owner() {
    let world = World::subscribed("json").await;
    let callback = world.subscriber.url("/second");
    let form = [
        ("hub.mode", "subscribe"),
        ("hub.topic", world.topic.as_str()),
        ("hub.callback", &callback),
        ("hub.secret", "sesame"),
    ];
    assert_eq!(world.gateway.superfeedr(&form).await.0, StatusCode::NO_CONTENT);

    let list = [("hub.mode", "list")];
    let got = world.ask(Method::GET, &list, &[]).await;
    assert_eq!(got.header(CONTENT_TYPE), "application/json; charset=utf-8");
    let subscription = |format: &str, endpoint: &str, secret: Value| {
        let feed = json!({ "title": "tides", "url": world.topic });
        json!({ "subscription": {
            "format": format, "endpoint": endpoint, "secret": secret, "feed": feed } })
    };
    let first = subscription("json", &world.subscriber.url("/cb"), Value::Null);
    let second = subscription("atom", &callback, json!("sha256:d0c04f4b"));
    let documented = got.json().as_array().unwrap().clone().into_iter().map(|mut listed| {
        let fields = listed["subscription"].as_object_mut().unwrap();
        fields.retain(|name, _| ["format", "endpoint", "secret", "feed"].contains(&name.as_str()));
        listed
    });
    assert_eq!(documented.collect::<Value>(), json!([first, second]));

    #[rustfmt::skip]
    let cases: [(&str, &str, usize); 8] = [
        ("search[endpoint][url]",  &callback,         1),
        ("search[endpoint.inurl]", "SECOND",          1),
        ("hub.callback",           "%/second",        1),
        ("search[format]",         "json",            1),
        ("search[feed][hostname]", "127.0.0.1",       2),
        ("search",                 "tides",           2),
        ("search[feed][velocity]", ">100",            0),
        ("by_page",                "1",               1),
    ];
    for (name, value, want) in cases {
        let got = world.ask(Method::GET, &[("hub.mode", "list"), (name, value)], &[]).await;
        assert_eq!(got.json().as_array().unwrap().len(), want, "{name}={value}");
    }

    let query = [("hub.mode", "list"), ("detailed", "true"), ("page", "2"), ("by_page", "1")];
    let detailed = world.ask(Method::GET, &query, &[]).await.json();
    assert_eq!(detailed["meta"], json!({ "total": 2, "page": 2, "by_page": 1, "byPage": 1 }));
    let feed = &detailed["subscriptions"][0]["subscription"]["feed"];
    assert_eq!(feed["status"]["code"], 200);
    assert_eq!(feed["url"], world.topic);
}

/// Rows U-1, U-2, U-3 and R-2.
#[tokio::test]
async fn an_unsubscription_may_leave_out_the_only_callback() {
    let world = World::subscribed("atom").await;
    let second = world.subscriber.url("/second");
    world.gateway.subscribe_superfeedr(&world.topic, &second, "atom").await;
    let bare = [("hub.mode", "unsubscribe"), ("hub.topic", world.topic.as_str())];
    let (status, text) = world.gateway.superfeedr(&bare).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(text, "You have 2 subscriptions to this topic. Please specify the hub.callback.\n");

    let named = [&bare[..], &[("hub.callback", second.as_str())]].concat();
    assert_eq!(world.gateway.superfeedr(&named).await.0, StatusCode::NO_CONTENT);
    assert_eq!(world.gateway.superfeedr(&bare).await.0, StatusCode::NO_CONTENT);
    assert_eq!(world.retrieve(&[]).await.status, StatusCode::NOT_FOUND);
}

/// Row P-1.
#[tokio::test]
async fn entries_are_replayed() {
    let world = World::subscribed("json").await;
    let form = [
        ("hub.mode", "replay"),
        ("hub.topic", world.topic.as_str()),
        ("hub.callback", &world.subscriber.url("/cb")),
        ("count", "2"),
    ];
    assert_eq!(world.gateway.superfeedr(&form).await.0, StatusCode::NO_CONTENT);
    world.subscriber.until("/cb", |told| !told.is_empty()).await;
    let told = world.subscriber.notified("/cb").remove(0);
    let value: Value = serde_json::from_str(&told.text()).unwrap();
    let got: Vec<_> =
        value["items"].as_array().unwrap().iter().map(|item| item["id"].as_str()).collect();
    assert_eq!(got, [Some(entry_id("tides", 3).as_str()), Some(entry_id("tides", 2).as_str())]);
}

/// Row S-7.
#[tokio::test]
async fn what_is_no_feed_is_retrieved_as_it_is() {
    let world = World::subscribed("atom").await;
    world.publisher.put("/page", "text/html; charset=utf-8", "<p>High water at noon</p>");
    let page = world.publisher.url("/page");
    world.gateway.subscribe_superfeedr(&page, &world.subscriber.url("/page"), "").await;
    let query = [("hub.mode", "retrieve"), ("hub.topic", &page)];
    let got = world.ask(Method::GET, &query, &[]).await;
    assert_eq!(got.text, "<p>High water at noon</p>");
    assert_eq!(got.header(CONTENT_TYPE), "text/html; charset=utf-8");
    assert_eq!(got.header(http::header::CONTENT_SECURITY_POLICY), "default-src 'none'; sandbox");
    world.publisher.put("/page", "text/html; charset=utf-8", "<p>Low water at six</p>");
    world.gateway.post("/", &[("hub.mode", "publish"), ("hub.url", &page)]).await;
    world.subscriber.until("/page", |told| !told.is_empty()).await;
    let told = world.subscriber.notified("/page").remove(0);
    assert_eq!(told.text(), "<p>Low water at six</p>");
    assert_eq!(told.header("content-type"), Some("text/html; charset=utf-8"));

    let as_atom = world.ask(Method::GET, &[&query[..], &[("format", "atom")]].concat(), &[]).await;
    assert!(as_atom.text.contains("Low water at six"), "{}", as_atom.text);
}

/// Rows.
#[tokio::test]
async fn several_feeds_are_retrieved_by_their_callback() {
    let world = World::subscribed("atom").await;
    world.publisher.put_rss("/winds", rss("winds", 1..3));
    let winds = world.publisher.url("/winds");
    world.gateway.subscribe_superfeedr(&winds, &world.subscriber.url("/cb"), "atom").await;
    world.gateway.subscribe_superfeedr(&winds, &world.subscriber.url("/other"), "atom").await;
    let (both, one) = (world.subscriber.url("/cb"), world.subscriber.url("/other"));
    #[rustfmt::skip]
    let cases: [(&str, &str, usize); 5] = [
        ("hub.callback",                     &both,       5),
        ("hub.callback",                     &one,        2),
        ("hub.callback[feed][url]",          &winds,      2),
        ("hub.callback[endpoint][hostname]", "127.0.0.1", 5),
        ("hub.callback[endpoint.inurl]",     "other",     2),
    ];
    for (name, value, want) in cases {
        let query = [("hub.mode", "retrieve"), (name, value), ("count", "50")];
        let got = world.ask(Method::GET, &query, &[]).await;
        assert_eq!(entry_ids(&got.text).len(), want, "{name}={value}: {}", got.text);
    }
    let query = [("hub.mode", "retrieve"), ("hub.callback", &both), ("format", "json")];
    let got = world.ask(Method::GET, &query, &[]).await.json();
    assert_eq!(got["title"], "The newest entries of 2 feeds");
    for item in got["items"].as_array().unwrap() {
        let title = item["source"]["title"].as_str().unwrap();
        assert!(item["id"].as_str().unwrap().contains(title), "{item}");
        let topic = world.publisher.url(if title == "winds" { "/winds" } else { "/feed" });
        assert_eq!(item["source"]["standardLinks"]["self"][0]["href"], topic, "{item}");
    }
    // A topic wins, whatever the callback.
    let got = world.retrieve(&[("hub.callback", "http://nobody.test/")]).await;
    assert_eq!(entry_ids(&got.text), ids(&[3, 2, 1]));
    let query = [("hub.mode", "retrieve"), ("hub.callback", "http://nobody.test/")];
    assert_eq!(world.ask(Method::GET, &query, &[]).await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn p33_who_subscribes_says_which_changes_of_the_status_to_tell() {
    let world = World::subscribed("atom").await;
    for (word, status) in [
        ("transitions", StatusCode::NO_CONTENT),
        ("Always", StatusCode::NO_CONTENT),
        ("never", StatusCode::NO_CONTENT),
        ("", StatusCode::NO_CONTENT),
        ("sometimes", StatusCode::UNPROCESSABLE_ENTITY),
    ] {
        let callback = world.subscriber.url("/cb");
        let query = [
            ("hub.mode", "subscribe"),
            ("hub.topic", world.topic.as_str()),
            ("hub.callback", callback.as_str()),
            ("status", word),
        ];
        let got = world.ask(Method::POST, &query, &[]).await;
        assert_eq!(got.status, status, "{word}: {}", got.text);
        let wants_words = status == StatusCode::UNPROCESSABLE_ENTITY;
        assert_eq!(got.text.contains("transitions, always or never"), wants_words, "{}", got.text);
    }
}
