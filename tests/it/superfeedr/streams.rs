//! Streams: server-sent events, and documents one after the other.

use feedgate_core::account::Scopes;
use http::StatusCode;
use reqwest::Response;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::{BASIC, World, ids};
use crate::console::make_token;
use crate::support::PATIENCE;
use crate::support::feeds::{entry_id, entry_ids, rss};
use crate::support::server::client;

/// An open stream.
pub(super) struct Opened {
    response: Response,
    received: String,
}

impl Opened {
    /// Returns the stream up to and including the next `end`.
    pub(super) async fn until(&mut self, end: &str) -> String {
        loop {
            if let Some(at) = self.received.find(end) {
                let rest = self.received.split_off(at + end.len());
                return std::mem::replace(&mut self.received, rest);
            }
            let piece = timeout(PATIENCE, self.response.chunk()).await.expect("a piece").unwrap();
            let piece = piece.expect("the stream is open");
            self.received.push_str(std::str::from_utf8(&piece).unwrap());
        }
    }

    /// Returns the id and the document of the next event.
    pub(super) async fn event(&mut self) -> (String, String) {
        self.event_of("notification").await
    }

    /// Returns the id and the data of the next event, which has this type.
    pub(super) async fn event_of(&mut self, kind: &str) -> (String, String) {
        let text = self.until("\n\n").await;
        let field = |name: &str| {
            let lines = text.lines().filter_map(|line| line.strip_prefix(name));
            lines.collect::<Vec<_>>().join("\n")
        };
        assert_eq!(field("event: "), kind, "{text}");
        (field("id: "), field("data: "))
    }

    /// Returns the id of the next event, and the ids of its entries in JSON.
    pub(super) async fn json_event(&mut self) -> (String, Vec<String>) {
        let (id, data) = self.event().await;
        (id, item_ids(&data))
    }

    async fn end(mut self) -> String {
        while let Some(piece) = timeout(PATIENCE, self.response.chunk()).await.unwrap().unwrap() {
            self.received.push_str(std::str::from_utf8(&piece).unwrap());
        }
        self.received
    }
}

fn item_ids(json: &str) -> Vec<String> {
    let json: Value = serde_json::from_str(json).unwrap();
    assert_eq!(json["status"]["code"], 200);
    let items = json["items"].as_array().unwrap();
    items.iter().map(|item| item["id"].as_str().unwrap().to_owned()).collect()
}

impl World {
    /// Opens a stream of the topic.
    pub(super) async fn open(&self, further: &[(&str, &str)], headers: &[(&str, &str)]) -> Opened {
        self.open_query(&[&[("hub.topic", self.topic.as_str())], further].concat(), headers).await
    }

    pub(super) async fn open_query(
        &self,
        query: &[(&str, &str)],
        headers: &[(&str, &str)],
    ) -> Opened {
        let mut url = url::Url::parse(&self.gateway.url("/?hub.mode=retrieve")).unwrap();
        url.query_pairs_mut().extend_pairs(query);
        let mut request = client().get(url).header("authorization", BASIC);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response = timeout(PATIENCE, request.send()).await.expect("a response").unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        Opened { response, received: String::new() }
    }

    /// Makes the feed hold the items 1 to `items`, and pings.
    pub(super) async fn publish(&self, items: usize) {
        self.put_tides(items);
        self.gateway.post("/ping", &[("url", &self.topic)]).await;
    }
}

pub(super) const EVENTS: (&str, &str) = ("accept", "text/event-stream");

/// Rows.
#[tokio::test]
async fn r12_events_begin_with_the_newest_entries_and_continue_with_notifications() {
    let world = World::subscribed("json").await;
    let mut stream = world.open(&[("count", "2")], &[EVENTS]).await;
    let headers = stream.response.headers();
    assert_eq!(headers["content-type"], "text/event-stream; charset=utf-8");
    assert_eq!(headers["access-control-allow-origin"], "*");
    assert_eq!(headers["transfer-encoding"], "chunked");
    assert_eq!(stream.json_event().await.1, ids(&[3, 2]));
    world.publish(4).await;
    let (id, entries) = stream.json_event().await;
    assert_eq!(entries, ids(&[4]));
    drop(stream);

    world.publish(5).await;
    world.publish(6).await;
    world.subscriber.until("/cb", |notified| notified.len() >= 2).await;
    let mut resumed = world.open(&[], &[EVENTS, ("last-event-id", &id)]).await;
    let mut entries = Vec::new();
    while !entries.contains(&entry_id("tides", 6)) {
        entries.extend(resumed.json_event().await.1.into_iter().rev());
    }
    assert_eq!(entries, ids(&[5, 6]), "what came meanwhile, and nothing else");
    let mut by_parameter = world.open(&[("lastEventId", &id)], &[EVENTS]).await;
    assert_eq!(by_parameter.json_event().await.1.last(), entries.first());
}

#[tokio::test]
async fn a_stream_that_begins_without_entries_tells_its_position() {
    let world = World::subscribed("json").await;
    let mut stream = world.open(&[("count", "0")], &[EVENTS]).await;
    let (id, data) = stream.event_of("position").await;
    assert_eq!(data, "{}");
    world.publish(4).await;
    assert_eq!(stream.json_event().await.1, ids(&[4]));
    drop(stream);
    let mut resumed = world.open(&[("count", "0")], &[EVENTS, ("last-event-id", &id)]).await;
    assert_eq!(resumed.json_event().await.1, ids(&[4]), "what came behind the position");
    let mut documents = world.open(&[("count", "0"), ("wait", "stream")], &[]).await;
    world.publish(5).await;
    assert_eq!(entry_ids(&documents.until("</feed>\n").await), ids(&[5]));
}

/// Row R-12.
#[tokio::test]
async fn r12_a_stream_continues_after_a_restart() {
    let mut world = World::subscribed("json").await;
    let mut stream = world.open(&[], &[EVENTS]).await;
    let (id, _) = stream.json_event().await;
    world.gateway.kill();
    world.gateway.restart().await;
    let mut resumed = world.open(&[], &[EVENTS, ("last-event-id", &id)]).await;
    world.publish(4).await;
    assert_eq!(resumed.json_event().await.1, ids(&[4]));
}

/// Row R-12.
#[tokio::test]
async fn r12_an_event_holds_each_line_of_an_atom_document() {
    let world = World::subscribed("atom").await;
    let mut stream = world.open(&[("format", "atom")], &[EVENTS]).await;
    assert_eq!(entry_ids(&stream.event().await.1), ids(&[3, 2, 1]));
    let multiline = rss("tides", 1..5).replace("The text of 4", "The text\nof 4");
    world.publisher.put_rss("/feed", multiline);
    world.gateway.post("/ping", &[("url", &world.topic)]).await;
    let document = stream.event().await.1;
    assert_eq!(entry_ids(&document), ids(&[4]));
    assert!(document.contains("The text\nof 4"), "{document}");
}

/// Row R-10.
#[tokio::test]
async fn r10_documents_follow_each_other_on_an_open_connection() {
    let world = World::subscribed("json").await;
    let mut stream = world.open(&[("wait", "stream"), ("format", "json")], &[]).await;
    assert_eq!(stream.response.headers()["content-type"], "application/json; charset=utf-8");
    assert_eq!(item_ids(&stream.until("\n").await), ids(&[3, 2, 1]));
    world.publish(4).await;
    assert_eq!(item_ids(&stream.until("\n").await), ids(&[4]));

    let newest = entry_id("tides", 3);
    let mut stream = world.open(&[("wait", "stream"), ("after", &newest)], &[]).await;
    assert_eq!(stream.response.headers()["content-type"], "application/atom+xml");
    assert_eq!(entry_ids(&stream.until("</feed>\n").await), ids(&[4]));
}

/// Row R-13.
#[tokio::test]
async fn r13_a_stream_combines_the_feeds_of_a_callback() {
    let world = World::subscribed("json").await;
    let callback = world.subscriber.url("/cb");
    world.publisher.put_rss("/more", rss("more", 1..2));
    let more = world.publisher.url("/more");
    world.gateway.subscribe_superfeedr(&more, &callback, "json").await;
    let query = [("hub.callback", callback.as_str())];
    let mut stream = world.open_query(&query, &[EVENTS]).await;
    let (_, mut entries) = stream.json_event().await;
    entries.sort();
    let mut want = [ids(&[1, 2, 3]), vec![entry_id("more", 1)]].concat();
    want.sort();
    assert_eq!(entries, want);
    world.publisher.put_rss("/more", rss("more", 1..3));
    world.gateway.post("/ping", &[("url", &more)]).await;
    let (id, entries) = stream.json_event().await;
    assert_eq!(entries, [entry_id("more", 2)]);
    world.publish(4).await;
    let mut resumed = world.open_query(&query, &[EVENTS, ("last-event-id", &id)]).await;
    assert_eq!(resumed.json_event().await.1, ids(&[4]), "the position counts for both feeds");
}

#[tokio::test]
async fn f1_a_stream_that_cannot_be_opened_is_refused() {
    let world = World::subscribed("json").await;
    let topic = ("hub.topic", world.topic.as_str());
    #[rustfmt::skip]
    let cases = [
        (vec![topic, ("wait", "foo")],                          StatusCode::UNPROCESSABLE_ENTITY),
        (vec![topic, ("wait", "stream"), ("format", "raw")],    StatusCode::UNPROCESSABLE_ENTITY),
        (vec![topic, ("wait", "stream"), ("after", "zzz")],     StatusCode::UNPROCESSABLE_ENTITY),
        (vec![("hub.topic", "https://other.test/"), ("wait", "stream")], StatusCode::NOT_FOUND),
    ];
    for (query, want) in cases {
        let query = [vec![("hub.mode", "retrieve")], query].concat();
        let got = world.ask(http::Method::GET, &query, &[]).await;
        assert_eq!(got.status, want, "{query:?}: {}", got.text);
    }
    let world = World::with_tides(1, &[("FEEDGATE_MAX_STREAMS", "0")]).await;
    world.gateway.subscribe_superfeedr(&world.topic, &world.subscriber.url("/cb"), "json").await;
    let query = [("hub.mode", "retrieve"), ("hub.topic", &world.topic), ("wait", "stream")];
    let got = world.ask(http::Method::GET, &query, &[]).await;
    assert_eq!(got.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(got.header(http::header::RETRY_AFTER), "60");
}

#[tokio::test]
async fn an_account_has_as_many_streams_as_it_may_and_others_have_theirs() {
    let limit = [("FEEDGATE_MAX_STREAMS_PER_ACCOUNT", "2")];
    let world = World::with_tides(1, &limit).await;
    world.gateway.subscribe_superfeedr(&world.topic, &world.subscriber.url("/cb"), "json").await;
    let _one = world.open(&[], &[EVENTS]).await;
    let _two = world.open(&[], &[EVENTS]).await;
    let query = [("hub.mode", "retrieve"), ("hub.topic", &world.topic), ("wait", "stream")];
    let refused = world.ask(http::Method::GET, &query, &[]).await;
    assert_eq!(refused.status, StatusCode::TOO_MANY_REQUESTS, "{}", refused.text);
    assert_eq!(refused.header(http::header::RETRY_AFTER), "60");

    make_token(&world, "ada", Scopes::all()).await;
    let url = world.gateway.url("/?hub.mode=retrieve&wait=stream");
    let of_other = client().get(url).basic_auth("ada", Some("ada")).send().await.unwrap();
    assert_eq!(of_other.status(), StatusCode::OK);
}

#[tokio::test]
async fn h07_a_stream_that_is_never_idle_ends_with_its_token() {
    let world = World::subscribed("json").await;
    let mut stream = world.open(&[], &[EVENTS]).await;
    stream.json_event().await;
    world.database.run("update tokens set revoked_at = 1").await;
    let publish = async {
        for n in 4.. {
            world.publish(n).await;
        }
    };
    tokio::select! {
        _ = stream.end() => {}
        () = publish => unreachable!("there is always another entry"),
    }
}

/// A connection is only taken from hyper for its first request. A client that has sent another before
/// gets the same stream.
#[tokio::test]
async fn a_stream_may_follow_another_request_over_its_connection() {
    let world = World::subscribed("json").await;
    let address = url::Url::parse(&world.gateway.url("/")).unwrap();
    let mut query = url::form_urlencoded::Serializer::new(String::new());
    query.append_pair("hub.mode", "retrieve").append_pair("hub.topic", &world.topic);
    let request = format!(
        "GET /?{} HTTP/1.1\r\nhost: x\r\nauthorization: {BASIC}\r\naccept: text/event-stream\r\n\r\n",
        query.finish()
    );
    for before in ["", "GET /nothing HTTP/1.1\r\nhost: x\r\n\r\n"] {
        let stream = TcpStream::connect(&*address.socket_addrs(|| None).unwrap()).await;
        let mut stream = BufReader::new(stream.unwrap());
        stream.write_all(format!("{before}{request}").as_bytes()).await.unwrap();
        let mut lines = Vec::new();
        while lines.last().is_none_or(|line: &String| !line.starts_with("data: ")) {
            let mut line = String::new();
            timeout(PATIENCE, stream.read_line(&mut line)).await.expect("a line").unwrap();
            lines.push(line);
        }
        let count = |wanted: &str| lines.iter().filter(|line| line.starts_with(wanted)).count();
        assert_eq!(count("HTTP/1.1 404"), usize::from(!before.is_empty()), "{lines:?}");
        assert_eq!(count("HTTP/1.1 200"), 1, "{lines:?}");
        assert_eq!(count("transfer-encoding: chunked"), 1, "{lines:?}");
        assert_eq!(count("connection: close"), usize::from(before.is_empty()), "{lines:?}");
    }
}

#[tokio::test]
async fn at_shutdown_a_stream_ends_with_a_hint_when_to_reconnect() {
    let world = World::subscribed("json").await;
    let mut stream = world.open(&[], &[EVENTS]).await;
    stream.json_event().await;
    world.gateway.terminate();
    assert_eq!(stream.end().await, "retry: 1000\n");
}
