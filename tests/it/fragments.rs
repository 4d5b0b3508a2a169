//! What is no feed, and parts of it, as subscribers of each protocol get it; and what
//! somebody is told who subscribed to a page and may have wanted its feed.

use http::header::{CONTENT_TYPE, HeaderMap, LINK};
use http::{Method, StatusCode};

use crate::support::feeds::rss;
use crate::support::gateway::Gateway;
use crate::support::origin::{Origin, answer, head};
use crate::support::postgres::{Database, Kind};
use crate::support::publisher::Publisher;
use crate::support::server::client;
use crate::support::subscriber::Subscriber;

/// `tester:s3cret`
const BASIC: &str = "Basic dGVzdGVyOnMzY3JldA==";
const HTML: &str = "text/html; charset=utf-8";

struct World {
    publisher: Publisher,
    subscriber: Subscriber,
    gateway: Gateway,
    _database: Database,
}

impl World {
    async fn new() -> World {
        let database = Database::new(Kind::Sqlite).await;
        let gateway = Gateway::start(&database, &[]).await;
        let (publisher, subscriber) = (Publisher::start().await, Subscriber::start().await);
        World { publisher, subscriber, gateway, _database: database }
    }

    /// Asks something of Superfeedr's API.
    async fn ask(&self, query: &[(&str, &str)]) -> (StatusCode, HeaderMap, String) {
        let mut url = url::Url::parse(&self.gateway.url("/")).unwrap();
        url.query_pairs_mut().extend_pairs(query);
        let request = client().request(Method::POST, url).header("authorization", BASIC);
        let answer = request.send().await.unwrap();
        let (status, headers) = (answer.status(), answer.headers().clone());
        (status, headers, answer.text().await.unwrap())
    }

    async fn subscribe(&self, topic: &str, path: &str, further: &[(&str, &str)]) -> HeaderMap {
        let callback = self.subscriber.url(path);
        let query = [("hub.mode", "subscribe"), ("hub.topic", topic), ("hub.callback", &callback)];
        let (status, headers, text) = self.ask(&[&query, further].concat()).await;
        assert_eq!(status, StatusCode::NO_CONTENT, "{text}");
        headers
    }

    async fn publish(&self, url: &str) {
        self.gateway.post("/", &[("hub.mode", "publish"), ("hub.url", url)]).await;
    }
}

fn page(entries: &str) -> String {
    format!("<!doctype html><title>Tides</title><nav>Home</nav>{entries}<footer>2026</footer>")
}

/// Row S-18.
#[tokio::test]
async fn s18_a_part_is_sent_in_each_protocol_as_it_can_be() {
    let world = World::new().await;
    world.publisher.put("/", HTML, page("<p class=note>One"));
    let whole = world.publisher.url("/");
    let topic = format!("{whole}#.note");
    world.subscribe(&topic, "/raw", &[]).await;
    world.subscribe(&topic, "/atom", &[("format", "atom")]).await;
    world.subscribe(&topic, "/json", &[("format", "json")]).await;
    world.gateway.subscribe_rsscloud("http-post", &topic, &world.subscriber, "/cloud").await;
    let before = world.subscriber.notified("/cloud").len(); // the test call

    world.publisher.put("/", HTML, page("<p class=note>One</p><p class='note x'>Two &amp; 3"));
    world.publish(&whole).await;
    for path in ["/raw", "/atom", "/json"] {
        world.subscriber.until(path, |told| !told.is_empty()).await;
    }
    world.subscriber.until("/cloud", |told| told.len() > before).await;
    let raw = world.subscriber.notified("/raw").remove(0);
    let part = "<p class=\"note\">One</p><p class=\"note x\">Two &amp; 3</p>";
    assert_eq!(raw.text(), part);
    assert_eq!(raw.header("content-type"), Some(HTML));
    let link = raw.header("link").unwrap();
    assert!(link.contains(&format!("<{topic}>; rel=\"self\"")), "{link}");
    assert_eq!(raw.header("x-pubsubhubbub-topic"), Some(topic.as_str()));

    let atom = world.subscriber.notified("/atom").remove(0);
    assert_eq!(atom.header("content-type"), Some("application/atom+xml"));
    assert!(atom.text().contains("Two &amp;amp; 3"), "{}", atom.text());
    let json = world.subscriber.notified("/json").remove(0);
    let json: serde_json::Value = serde_json::from_str(&json.text()).unwrap();
    assert_eq!(json["items"][0]["content"], part, "{json}");
    let cloud = world.subscriber.notified("/cloud").pop().unwrap();
    let form: Vec<_> = url::form_urlencoded::parse(cloud.text().as_bytes()).into_owned().collect();
    assert_eq!(form, [("url".to_owned(), topic.clone())], "rssCloud tells the URL and no more");

    let (_, headers, text) = world.ask(&[("hub.mode", "retrieve"), ("hub.topic", &topic)]).await;
    assert_eq!((text.as_str(), headers[CONTENT_TYPE].to_str().unwrap()), (part, HTML));
    let (_, archive) = world.gateway.fetch(&world.gateway.archive_of(&topic)).await;
    assert!(archive.contains("Two &amp;amp; 3"), "{archive}");
    world.gateway.comes_to_rest().await;
}

/// Row S-18.
#[tokio::test]
async fn s18_a_fragment_that_names_no_part_is_refused_in_the_words_of_each_door() {
    let world = World::new().await;
    let callback = world.subscriber.url("/cb");
    #[rustfmt::skip]
    let cases = [
        ("#!/route",         "it is neither a CSS selector, for pages and XML, nor a JSONPath, for JSON"),
        ("#p:hover",         "it is neither a CSS selector"),
        ("#%24.store%5B",    "it is not a JSONPath (RFC 9535)"),
    ];
    for (fragment, why) in cases {
        let topic = world.publisher.url(&format!("/{fragment}"));
        let form =
            [("hub.mode", "subscribe"), ("hub.topic", topic.as_str()), ("hub.callback", &callback)];
        let (status, _, text) = world.ask(&form).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{text}");
        assert!(text.contains(why), "{fragment}: {text}");
        let (status, text) = world.gateway.post("/hub", &form).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{text}");
        assert!(text.contains("must not have a fragment"), "{text}");
        let port = world.subscriber.port().to_string();
        let form =
            [("port", port.as_str()), ("path", "/cb"), ("protocol", "http-post"), ("url1", &topic)];
        let (_, text) = world.gateway.post("/rsscloud/pleaseNotify", &form).await;
        assert!(text.contains("success=\"false\"") && text.contains(why), "{fragment}: {text}");
    }
    assert!(world.publisher.fetches("/").is_empty(), "nobody was bothered");
}

#[tokio::test]
async fn what_fits_is_told_when_there_is_something_to_send() {
    let world = World::new().await;
    world.publisher.put("/", HTML, page("<p>Soon"));
    let topic = world.publisher.url("/");
    world.subscribe(&topic, "/any", &[]).await;
    world.subscribe(&topic, "/raw", &[("format", "raw")]).await;
    world.publisher.put("/", HTML, page("<p>Now"));
    world.publish(&topic).await;
    world.subscriber.until("/any", |told| told.len() == 1).await;
    assert_eq!(world.subscriber.notified("/any")[0].text(), page("<p>Now"));
    world.gateway.comes_to_rest().await; // whoever is behind would be sent the first entries

    world.publisher.put("/", "application/rss+xml", rss("tides", 1..=1));
    world.publish(&topic).await;
    world.subscriber.until("/raw", |told| told.len() == 2).await; // only /raw: the first entries are not sent
    world.publisher.put("/", "application/rss+xml", rss("tides", 1..=2));
    world.publish(&topic).await;
    world.subscriber.until("/raw", |told| told.len() == 3).await;
    world.subscriber.until("/any", |told| told.len() == 2).await;
    let atom = world.subscriber.notified("/any").remove(1);
    assert_eq!(atom.header("content-type"), Some("application/atom+xml"));
    assert_eq!(world.subscriber.notified("/raw")[2].text(), rss("tides", 1..=2));
}

#[tokio::test]
async fn p52_who_subscribes_to_a_page_is_told_of_its_feeds() {
    let world = World::new().await;
    let html = "<html><head><link rel=alternate type=application/atom+xml title='Tides &amp; \
                Winds' href=/feed></head><body><p>Hello";
    world.publisher.put("/", HTML, html);
    let (topic, feed) = (world.publisher.url("/"), world.publisher.url("/feed"));
    let headers = world.subscribe(&topic, "/cb", &[]).await;
    let want = format!(
        "<{feed}>; rel=\"alternate\"; type=\"application/atom+xml\"; title=\"Tides & Winds\""
    );
    assert_eq!(headers[LINK].to_str().unwrap(), want);
    let note = headers["x-feedgate-note"].to_str().unwrap();
    assert!(note.ends_with(&format!("the page links to a feed: {feed}")), "{note}");

    let query = [("hub.mode", "retrieve"), ("hub.topic", &topic)];
    let (_, headers, text) = world.ask(&query).await;
    assert_eq!((headers[LINK].to_str().unwrap(), text.as_str()), (want.as_str(), html));
    let (_, _, json) = world.ask(&[&query[..], &[("format", "json")]].concat()).await;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert!(json["status"]["http"].as_str().unwrap().contains(&feed), "{json}");
    assert!(world.publisher.fetches("/feed").is_empty(), "and nothing is swapped or tried");
}

#[tokio::test]
async fn p52_the_usual_places_are_tried_on_request_and_redirects_do_not_count() {
    let world = World::new().await;
    let origin = Origin::start().await;
    let redirect = |to: &str| {
        crate::support::origin::Step::Send(head(
            "302 Found",
            &[&format!("Location: {to}"), "Content-Length: 0"],
        ))
    };
    let as_html = ["Content-Type: text/html"];
    origin.script("/blog/", [answer("200 OK", &as_html, "<html><body><p>Hello")]);
    origin.script("/blog/feed/", [redirect("/blog/atom.xml")]);
    let article =
        r#"<script type="application/ld+json">{"@type": "Article", "headline": "Not found"}"#;
    let not_found = format!("<html>{article}</script><body><p>Not found");
    origin.script("/blog/feed.xml", [answer("200 OK", &as_html, not_found)]);
    origin.script(
        "/blog/atom.xml",
        [answer("200 OK", &["Content-Type: text/xml"], rss("tides", 1..2))],
    );
    let topic = origin.url("/blog/");
    let headers = world.subscribe(&topic, "/cb", &[]).await;
    assert!(!headers.contains_key(LINK));
    let request = || {
        let targets = origin.requests().into_iter().map(|request| request.target().to_owned());
        targets.filter(|target| target != "/robots.txt").collect::<Vec<_>>()
    };
    assert_eq!(request(), ["/blog/"], "nobody asked for more");

    let headers = world.subscribe(&topic, "/cb", &[("discover", "true")]).await;
    let link = headers[LINK].to_str().unwrap();
    assert!(
        link.starts_with(&format!("<{}>; rel=\"alternate\"", origin.url("/blog/atom.xml"))),
        "{link}"
    );
    let want = ["/blog/", "/blog/feed/", "/blog/atom.xml", "/blog/feed.xml", "/blog/atom.xml"];
    assert_eq!(request(), want, "up to the first feed");
}
