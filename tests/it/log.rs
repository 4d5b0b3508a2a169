//! The log for programs: what is told, to whom, and as it comes.

use http::StatusCode;
use serde_json::Value;
use tokio::time::timeout;

use crate::support::PATIENCE;
use crate::support::gateway::{Gateway, LOGIN, TOKEN};
use crate::support::server::client;
use crate::support::subscriber::Behavior;
use crate::support::world::World;

/// The events that `query` asks for, once one of them is `kind` and `outcome`.
async fn events(gateway: &Gateway, query: &str, last: (&str, &str)) -> Vec<Value> {
    let mut found = Value::Null;
    let wait = async {
        loop {
            let (status, text) = gateway.get(&format!("/log.json?{query}")).await;
            assert_eq!(status, StatusCode::OK, "{text}");
            found = serde_json::from_str(&text).unwrap();
            let events = found["events"].as_array().unwrap();
            if events.iter().any(|event| is(event, last)) {
                return events.clone();
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    let events = timeout(PATIENCE, wait).await;
    events.unwrap_or_else(|_| panic!("{last:?} was never told: {found}"))
}

fn is(event: &Value, (kind, outcome): (&str, &str)) -> bool {
    event["kind"] == kind && event["outcome"] == outcome
}

fn words(events: &[Value]) -> Vec<String> {
    let word = |event: &Value, name: &str| event[name].as_str().unwrap().to_owned();
    let words = events.iter().rev().map(|event| {
        format!("{} {} {}", word(event, "kind"), word(event, "outcome"), word(event, "code"))
    });
    words.map(|words| words.trim_end().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_story_of_a_registration_is_told_in_order() {
    let world = World::with_tides(1, &[]).await;
    let (gateway, topic) = (&world.gateway, world.topic.as_str());
    gateway.subscribe_rsscloud("http-post", topic, &world.subscriber, "/s3cret/path").await;
    world.put_tides(2);
    gateway.post("/ping", &[("url", topic)]).await;
    let told = events(gateway, "", ("notify", "ok")).await;
    assert_eq!(
        words(&told),
        ["fetch ok ok_new", "verify ok", "subscribe ok", "ping ok", "fetch ok ok_new", "notify ok"]
    );
    assert!(told.iter().all(|event| event["feed"] == topic));
    let text = serde_json::to_string(&told).unwrap();
    assert!(!text.contains("s3cret"), "a path that may be a token: {text}");
    assert!(text.contains("http://127.0.0.1:"), "the host is told");

    let query = format!("callback={}", world.subscriber.url("/s3cret/path"));
    let own = events(gateway, &query, ("notify", "ok")).await;
    assert_eq!(own.len(), 3, "who knows the callback finds it: {own:?}");
    let displayed = own[0]["callback"].as_str().unwrap();
    let (_, text) = gateway.get(&format!("/log.json?kind=notify&callback={displayed}")).await;
    assert!(text.contains("\"kind\":\"notify\""), "so does who has seen it in the log: {text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_refused_is_told_with_the_reason_in_words() {
    let world = World::with_tides(1, &[]).await;
    let (gateway, topic) = (&world.gateway, world.topic.as_str());
    let subscriber = &world.subscriber;
    subscriber.set("/no", Behavior::Refusing);
    let port = subscriber.port().to_string();
    let form =
        [("port", port.as_str()), ("path", "/no"), ("protocol", "http-post"), ("url", topic)];
    gateway.post("/pleaseNotify", &form).await;
    gateway.post("/pleaseNotify", &[("protocol", "carrier-pigeon"), ("url", topic)]).await;
    gateway.post("/ping", &[]).await;
    let nowhere = "http://127.0.0.1:1/feed";
    gateway.post("/ping", &[("url", nowhere)]).await;
    gateway.post("/hub", &[("hub.mode", "subscribe"), ("hub.topic", topic)]).await;
    let call = "<methodCall><methodName>party</methodName><params/></methodCall>";
    let posting = client().post(gateway.url("/RPC2")).header("content-type", "text/xml").body(call);
    posting.send().await.unwrap();

    let told = events(gateway, "", ("request", "refused")).await;
    let details: Vec<&str> = told.iter().map(|event| event["detail"].as_str().unwrap()).collect();
    let details = details.join("\n");
    for reason in [
        "the callback responded with 404 Not Found instead of 2xx; response: not here",
        "missing from the request body: port, path",
        "missing from the request body: url",
        "error reading the resource at URL http://127.0.0.1:1/feed",
        "hub.callback is missing",
        "\"party\" is not defined",
    ] {
        assert!(details.contains(reason), "{reason} is not among\n{details}");
    }
    let (status, why) = gateway.get("/log.json?kind=party").await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert!(why.contains("subscribe, renew"), "{why}");
}

#[tokio::test(flavor = "multi_thread")]
async fn s54_an_owner_sees_the_callback_whole_and_others_do_not() {
    let world = World::with_tides(1, &[]).await;
    let gateway = &world.gateway;
    let callback = world.subscriber.url("/s3cret-token");
    world.subscriber.set("/s3cret-token", Behavior::Failing(500));
    gateway.subscribe_superfeedr(&world.topic, &callback, "json").await;
    world.put_tides(2);
    gateway.post("/ping", &[("url", &world.topic)]).await;
    let seen = events(gateway, "kind=notify", ("notify", "failed")).await;
    assert!(!seen[0]["callback"].as_str().unwrap().contains("s3cret-token"));
    assert!(seen[0]["detail"].as_str().unwrap().contains("500 Internal Server Error"));

    let own = gateway.own("/log.json?kind=notify&callback=s3cret-token").await;
    assert_eq!(own["events"][0]["callback"], callback);
    let form = [("hub.mode", "authenticate"), ("authorization", "bm9ib2R5OngK")];
    let (status, _) = gateway.get(&format!("/log.json?authorization={}", form[1].1)).await;
    assert_eq!(status, StatusCode::UNAUTHORIZED, "a wrong token is not taken for none");
}

#[tokio::test(flavor = "multi_thread")]
async fn h17_a_stream_says_which_events_it_does_not_send() {
    let world = World::with_tides(1, &[]).await;
    let gateway = &world.gateway;
    for n in 0..3 {
        gateway.post("/ping", &[("url", &format!("{}?{n}", world.topic))]).await;
    }
    events(gateway, "kind=ping&feed=feed%3F2", ("ping", "ok")).await;
    world.database.run("delete from events where id <= 2").await;

    let not_stored = "id: 2\nevent: gap\ndata: {\"from\":2,\"to\":2,\"reason\":\"not_stored\"}\n\n";
    let unknown = "\"reason\":\"unknown_position\"}\n\n";
    for (seen, gap) in [("1", not_stored), ("9000", unknown)] {
        let request = client().get(gateway.url("/log/stream?kind=ping"));
        let mut stream = request.header("last-event-id", seen).send().await.unwrap();
        gateway.post("/ping", &[("url", &format!("{}?after{seen}", world.topic))]).await;
        let mut read = String::new();
        let wait = async {
            while !read.contains(&format!("feed?after{seen}")) {
                read.push_str(&String::from_utf8_lossy(&stream.chunk().await.unwrap().unwrap()));
            }
        };
        timeout(PATIENCE, wait).await.unwrap_or_else(|_| panic!("not streamed:\n{read}"));
        assert_eq!(read.matches("event: gap").count(), 1, "{read}");
        assert!(read.contains(gap), "{read}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn h01_streams_of_strangers_leave_room_for_those_of_accounts() {
    let world = World::with_tides(1, &[("FEEDGATE_TRUSTED_PROXIES", "127.0.0.1")]).await;
    let stream = async |client_of: usize, is_account: bool| {
        let request = client().get(world.gateway.url("/log/stream"));
        let request = request.header("x-forwarded-for", format!("8.8.{client_of}.8"));
        let request = match is_account {
            true => request.basic_auth(LOGIN, Some(TOKEN)),
            false => request,
        };
        request.send().await.unwrap()
    };
    let mut open = Vec::new();
    for n in 0..200 {
        let stream = stream(n / 20, false).await;
        if stream.status() != StatusCode::OK {
            break;
        }
        open.push(stream);
    }
    assert_eq!(stream(99, false).await.status(), StatusCode::SERVICE_UNAVAILABLE);
    let own = stream(99, true).await;
    assert_eq!(own.status(), StatusCode::OK, "with {} streams of strangers", open.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_goes_on_where_it_was_left() {
    let world = World::with_tides(1, &[]).await;
    let gateway = &world.gateway;
    for n in 0..3 {
        gateway.post("/ping", &[("url", &format!("{}?{n}", world.topic))]).await;
    }
    events(gateway, "kind=ping&feed=feed%3F2", ("ping", "ok")).await;

    let request = client().get(gateway.url("/log/stream?kind=ping"));
    let mut stream = request.header("last-event-id", "1").send().await.unwrap();
    let content_type = stream.headers()["content-type"].to_str().unwrap().to_owned();
    assert!(content_type.starts_with("text/event-stream"), "{content_type}");
    let mut read = String::new();
    let wait = async {
        while !read.contains("feed?1") {
            read.push_str(&String::from_utf8_lossy(&stream.chunk().await.unwrap().unwrap()));
        }
        gateway.post("/ping", &[("url", &format!("{}?live", world.topic))]).await;
        while !read.contains("feed?live") {
            read.push_str(&String::from_utf8_lossy(&stream.chunk().await.unwrap().unwrap()));
        }
    };
    timeout(PATIENCE, wait).await.unwrap_or_else(|_| panic!("not streamed:\n{read}"));
    assert!(read.contains("id: 2\ndata: {\"id\":2,"), "{read}");
    assert!(!read.contains("feed?0"), "what was seen before is not sent again:\n{read}");

    let request = client().get(gateway.url("/log.json?after=0&limit=2"));
    let lines = request.header("accept", "application/x-ndjson").send().await.unwrap();
    let lines = lines.text().await.unwrap();
    let ids = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["id"].clone());
    assert_eq!(ids.collect::<Vec<_>>(), [1, 2]);
}
