//! Lists and retrievals: bounds, searches by number, scripts, and feeds that nobody has fetched.

use http::header::{CONTENT_TYPE, ETAG};
use http::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::World;
use crate::support::feeds::{entry_id, entry_ids, rss};
use crate::support::server::client;

/// Row L-3.
#[tokio::test]
async fn numbers_of_pages_are_clamped_to_their_range() {
    let world = World::subscribed("atom").await;
    #[rustfmt::skip]
    let cases = [
        ("",                    1, 20),
        ("page=0&by_page=0",    1, 1),
        ("page=-1&by_page=-7",  1, 1),
        ("page=2&by_page=500",  2, 500),
        ("page=1&by_page=501",  1, 500),
    ];
    for (query, page, by_page) in cases {
        let query = format!("hub.mode=list&detailed=true&{query}");
        let query = url::form_urlencoded::parse(query.as_bytes()).into_owned();
        let query: Vec<(String, String)> = query.collect();
        let query: Vec<_> = query.iter().map(|(name, it)| (name.as_str(), it.as_str())).collect();
        let meta = world.ask(Method::GET, &query, &[]).await.json()["meta"].take();
        let want = json!({ "total": 1, "page": page, "by_page": by_page, "byPage": by_page });
        assert_eq!(meta, want, "{query:?}");
    }
}

/// Rows L-6 and L-7.
#[tokio::test]
async fn a_list_is_searched_by_the_properties_of_feeds() {
    let world = World::subscribed("atom").await;
    let topic = world.topic.clone();
    #[rustfmt::skip]
    let cases = [
        ("search[feed][url]",        topic.as_str(), 1),
        ("search[feed.url]",         topic.as_str(), 1),
        ("search[feed][url]",        "feed",         0),
        ("search[feed][inurl]",      "/feed",        1),
        ("search[feed.inurl]",       "/other",       0),
        ("search[feed.hostname]",    "127.0.0.1",    1),
        ("search[endpoint.url]",     "http://a.test/", 0),
        ("search[endpoint][hostname]", "127.0.0.1",  1),
        ("search[format]",           "ATOM",         1),
        ("search[feed][velocity]",   ">=0",          1),
        ("search[feed][velocity]",   "<=1000000",    1),
        ("search[feed.velocity]",    "<0",           0),
        ("search[feed][bozo]",       "<=1",          1),
        ("search[feed][popularity]", ">=0",          1),
        ("search[feed][popularity]", ">1000",        0),
        ("search[feed][porn]",       ">1",           0),
    ];
    for (name, value, want) in cases {
        let got = world.ask(Method::GET, &[("hub.mode", "list"), (name, value)], &[]).await;
        assert_eq!(got.json().as_array().unwrap().len(), want, "{name}={value}");
    }
}

/// Row L-9.
#[tokio::test]
async fn a_list_is_searched_for_callbacks_with_a_wildcard() {
    let world = World::subscribed("atom").await;
    let null = "https://push.superfeedr.com/dev/null";
    world.gateway.subscribe_superfeedr(&world.topic, null, "atom").await;
    for (callback, want) in [("%dev/null", 1), (null, 1), ("%dev%", 1), ("%", 2), ("dev/null", 0)] {
        let query = [("hub.mode", "list"), ("hub.callback", callback)];
        let got = world.ask(Method::GET, &query, &[]).await;
        assert_eq!(got.json().as_array().unwrap().len(), want, "{callback}");
    }
}

/// Rows L-10 and R-8.
#[tokio::test]
async fn scripts_get_lists_and_errors_as_calls() {
    let world = World::subscribed("atom").await;
    let query = [("hub.mode", "list"), ("callback", "show")];
    let got = world.ask(Method::GET, &query, &[]).await;
    assert_eq!(got.status, StatusCode::OK);
    assert_eq!(got.header(CONTENT_TYPE), "application/javascript; charset=utf-8");
    let list = got.text.strip_prefix("show(").and_then(|rest| rest.strip_suffix(')')).unwrap();
    let list: Value = serde_json::from_str(list).unwrap();
    assert_eq!(list[0]["subscription"]["feed"]["url"], world.topic);

    let unknown = [("hub.mode", "retrieve"), ("hub.topic", "http://a.test/"), ("callback", "show")];
    let got = world.ask(Method::GET, &unknown, &[]).await;
    assert_eq!(got.status, StatusCode::OK);
    let error = got.text.strip_prefix("show(").and_then(|rest| rest.strip_suffix(')')).unwrap();
    let error: Value = serde_json::from_str(error).unwrap();
    let message = "You are not subscribed to this topic.";
    assert_eq!(error, json!({ "error": { "code": 404, "message": message } }));
}

/// Row R-5.
#[tokio::test]
async fn a_retrieval_from_two_hundred_feeds_is_refused() {
    let world = World::with_tides(1, &[]).await;
    let null = "https://push.superfeedr.com/dev/null";
    let topics = (0..200).map(|n| json!({ "hub.topic": world.publisher.url(&format!("/{n}")) }));
    let topics: Vec<Value> = topics.collect();
    let query = [("hub.mode", "subscribe"), ("hub.callback", null)];
    let body = json!(topics[..199]).to_string();
    let (_, report) = world.post_batch(&query, "application/json", body).await;
    assert_eq!(report["meta"]["succeeded"], 199, "{report}");
    let retrieve = [("hub.mode", "retrieve"), ("hub.callback", null)];
    assert_eq!(world.ask(Method::GET, &retrieve, &[]).await.status, StatusCode::OK);
    let body = json!(topics[199..]).to_string();
    world.post_batch(&query, "application/json", body).await;
    let got = world.ask(Method::GET, &retrieve, &[]).await;
    assert_eq!(got.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(got.text.contains("fewer than 200"), "{}", got.text);
}

/// Rows.
#[tokio::test]
async fn several_feeds_are_waited_for_together_and_compared_by_their_tag() {
    let world = World::subscribed("json").await;
    let (callback, other) = (world.subscriber.url("/cb"), world.publisher.url("/other"));
    world.publisher.put_rss("/other", rss("other", 1..2));
    world.gateway.subscribe_superfeedr(&other, &callback, "json").await;
    let query = [("hub.mode", "retrieve"), ("hub.callback", callback.as_str())];
    let first = world.ask(Method::GET, &query, &[]).await;
    let tag = first.header(ETAG).to_owned();
    let conditional = [("if-none-match", tag.as_str())];
    let unchanged = world.ask(Method::GET, &query, &conditional).await;
    assert_eq!((unchanged.status, &*unchanged.text), (StatusCode::NOT_MODIFIED, ""));

    let newest = entry_ids(&first.text).remove(0);
    let after = [&query[..], &[("after", newest.as_str()), ("wait", "poll")]].concat();
    let published = async {
        world.publisher.put_rss("/other", rss("other", 1..3));
        let ping = [("hub.mode", "publish"), ("hub.url", other.as_str())];
        assert_eq!(world.gateway.post("/", &ping).await.0, StatusCode::NO_CONTENT);
    };
    let (waited, ()) = tokio::join!(world.ask(Method::GET, &after, &[]), published);
    assert_eq!(entry_ids(&waited.text), [entry_id("other", 2)]);
    let changed = world.ask(Method::GET, &query, &conditional).await;
    assert_eq!(changed.status, StatusCode::OK);
}

/// Rows L-6 and L-9.
#[tokio::test]
async fn a_subscription_is_found_by_the_url_that_is_listed() {
    let world = World::subscribed("json").await;
    let callback = world.subscriber.url("/cb");
    world.gateway.open_to_anonymous(&world.topic).await;
    let archive = client().get(world.gateway.archive_of(&world.topic)).send().await.unwrap();
    let topics = [world.gateway.url("/track?query=tide"), archive.url().to_string()];
    for topic in &topics {
        world.gateway.subscribe_superfeedr(topic, &callback, "json").await;
    }
    for listed in world.all_listed().await {
        let url = listed["feed"]["url"].as_str().unwrap().to_owned();
        let query = [("hub.mode", "list"), ("search[feed][url]", url.as_str())];
        let found = world.ask(Method::GET, &query, &[]).await.json();
        let found: Vec<&Value> = found.as_array().unwrap().iter().collect();
        let urls: Vec<&Value> =
            found.iter().map(|one| &one["subscription"]["feed"]["url"]).collect();
        assert!(urls.contains(&&listed["feed"]["url"]), "{url}: {urls:?}");
    }
}

/// Row R-9.
#[tokio::test]
async fn a_feed_that_was_not_fetched_yet_has_no_items_and_no_code() {
    let world = World::with_tides(0, &[]).await;
    // A server that accepts connections and never answers.
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let topic = format!("http://{}/feed", silent.local_addr().unwrap());
    world.gateway.subscribe_superfeedr(&topic, &world.subscriber.url("/cb"), "json").await;
    let query = [("hub.mode", "retrieve"), ("hub.topic", &topic), ("format", "json")];
    let got = world.ask(Method::GET, &query, &[]).await;
    assert_eq!(got.status, StatusCode::OK);
    let document = got.json();
    assert_eq!(document["items"], json!([]));
    let code = &document["status"]["code"];
    assert!(code.is_null() || *code == 0, "{document}");
}

/// Row P-1.
#[tokio::test]
async fn a_replay_may_be_answered_before_the_notification() {
    let world = World::subscribed("json").await;
    let callback = world.subscriber.url("/cb");
    let replay = [
        ("hub.mode", "replay"),
        ("hub.topic", world.topic.as_str()),
        ("hub.callback", &callback),
        ("async", "true"),
    ];
    assert_eq!(world.ask(Method::GET, &replay, &[]).await.status, StatusCode::NO_CONTENT);
    world.subscriber.until("/cb", |received| received.len() == 1).await;
    let no_callback = world.ask(Method::GET, &replay[..2], &[]).await;
    assert_eq!(no_callback.status, StatusCode::UNPROCESSABLE_ENTITY);
    let unknown = [&replay[..1], &[("hub.topic", "http://a.test/"), replay[2]]].concat();
    assert_eq!(world.ask(Method::GET, &unknown, &[]).await.status, StatusCode::NOT_FOUND);
}

/// The parameters of a publish request, and the feeds that change before it.
type PublishRequest<'a> = (&'a [(&'a str, &'a str)], &'a [&'a str]);

/// Rows P-2 and P-3.
#[tokio::test]
async fn every_topic_of_a_publish_request_is_fetched() {
    let world = World::subscribed("atom").await;
    let callback = world.subscriber.url("/cb");
    let topics: Vec<String> = ["/a,b", "/c", "/d"].map(|path| world.publisher.url(path)).into();
    for (name, topic) in ["a", "c", "d"].into_iter().zip(&topics) {
        world.publisher.put_rss(&topic[topic.rfind('/').unwrap()..], rss(name, 1..2));
        world.gateway.subscribe_superfeedr(topic, &callback, "atom").await;
        let query = [("hub.mode", "retrieve"), ("hub.topic", topic), ("wait", "poll")];
        assert_eq!(world.ask(Method::GET, &query, &[]).await.status, StatusCode::OK);
    }
    let list = topics[..2].join(",");
    #[rustfmt::skip]
    let requests: [PublishRequest<'_>; 5] = [
        (&[("hub.url", &topics[0]), ("hub.url", &topics[1])],     &["a", "c"]),
        (&[("hub.url[]", &topics[1]), ("hub.url[]", &topics[2])], &["c", "d"]),
        (&[("hub.url", &list)],                                   &["a", "c"]),
        (&[("hub.topic", &topics[2])],                            &["d"]),
        (&[("hub.url", "http://nobody.test/")],                   &[]),
    ];
    let mut items = [("a", 1), ("c", 1), ("d", 1)].map(|(name, n)| (name.to_owned(), n));
    let mut received = 0;
    for (named, changed) in requests {
        for ((name, n), topic) in items.iter_mut().zip(&topics) {
            if changed.contains(&name.as_str()) {
                *n += 1;
                let path = &topic[topic.rfind('/').unwrap()..];
                world.publisher.put_rss(path, rss(name, 1..*n + 1));
            }
        }
        let form = [&[("hub.mode", "publish")], named].concat();
        assert_eq!(world.gateway.post("/", &form).await.0, StatusCode::NO_CONTENT, "{named:?}");
        received += changed.len();
        world.subscriber.until("/cb", |notifications| notifications.len() >= received).await;
    }
}
