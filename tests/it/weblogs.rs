//! Weblogs pings, and the documents that tell of them.

use http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use http::{Method, StatusCode};

use crate::support::feeds::{between, rss};
use crate::support::gateway::Gateway;
use crate::support::postgres::{Database, Kind};
use crate::support::publisher::Publisher;
use crate::support::server::client;
use crate::support::subscriber::Subscriber;

fn call(method: &str, params: &[&str]) -> String {
    let params: String = params
        .iter()
        .map(|param| format!("<param><value><string>{param}</string></value></param>"))
        .collect();
    format!(
        "<?xml version=\"1.0\"?><methodCall><methodName>weblogUpdates.{method}</methodName>\
         <params>{params}</params></methodCall>"
    )
}

async fn ping(gateway: &Gateway, method: &str, params: &[&str]) {
    let body = call(method, params);
    let answer = client().post(gateway.url("/RPC2")).header(CONTENT_TYPE, "text/xml").body(body);
    let answer = answer.send().await.unwrap();
    let text = answer.text().await.unwrap();
    assert!(text.contains("<name>flerror</name><value><boolean>0</boolean>"), "{text}");
}

#[tokio::test]
async fn pings_stand_in_changes_xml_newest_first() {
    let database = Database::new(Kind::Sqlite).await;
    let gateway = Gateway::start(&database, &[]).await;
    ping(&gateway, "ping", &["Old &amp; slow", "http://old.test/"]).await;
    let feed = "http://new.test/rss?a=1&amp;b=2";
    ping(&gateway, "extendedPing", &["New", "http://new.test/", feed]).await;

    for (path, longest) in [
        ("/changes.xml", 1),
        ("/shortChanges.xml", 1),
        ("/changes.xml?last=60", 1),
        ("/changes.xml?when=seconds", 60),
    ] {
        let answer = client().get(gateway.url(path)).send().await.unwrap();
        assert_eq!(answer.headers()[CONTENT_TYPE], "text/xml; charset=utf-8");
        assert_eq!(answer.headers()[CONTENT_SECURITY_POLICY], "default-src 'none'; sandbox");
        let text = answer.text().await.unwrap();
        assert_eq!(between(&text, "<weblogUpdates ", " updated"), Some("version=\"2\""));
        assert_eq!(between(&text, "count=\"", "\""), Some("2"));
        let lines: Vec<&str> = text.lines().filter(|line| line.contains("<weblog ")).collect();
        let [new, old] = lines.as_slice() else { panic!("{path}: {text}") };
        assert_eq!(between(new, "name=\"", "\""), Some("New"));
        assert_eq!(between(new, "rssUrl=\"", "\""), Some(feed));
        assert_eq!(between(old, "name=\"", "\""), Some("Old &amp; slow"));
        assert_eq!(between(old, "url=\"", "\""), Some("http://old.test/"));
        assert!(between(old, "when=\"", "\"").unwrap().parse::<u32>().unwrap() <= longest);
    }
    let head = client().request(Method::HEAD, gateway.url("/changes.xml")).send().await.unwrap();
    assert_eq!(head.status(), StatusCode::OK);
}

#[tokio::test]
async fn a_plain_request_pings_and_is_answered_with_a_page() {
    let database = Database::new(Kind::Sqlite).await;
    let gateway = Gateway::start(&database, &[]).await;
    let blog = "name=The+RSS+Blog&url=http%3A%2F%2Fblog.test%2Frss";
    #[rustfmt::skip]
    let cases = [
        (blog,              StatusCode::OK,          "Thanks for the ping."),
        ("name=A&url=here", StatusCode::BAD_REQUEST, "not &quot;here&quot;."),
        ("name=A",          StatusCode::BAD_REQUEST, "must be an http or https URL"),
    ];
    for (query, status, sentence) in cases {
        let url = gateway.url(&format!("/pingSiteForm?{query}"));
        let answer = client().get(url).send().await.unwrap();
        assert_eq!(answer.status(), status, "{query}");
        assert_eq!(answer.headers()[CONTENT_TYPE], "text/html; charset=utf-8");
        let page = answer.text().await.unwrap();
        assert!(page.contains(sentence), "{query}: {page}");
    }
    let form =
        [("name", "Posted"), ("url", "http://posted.test/"), ("rssUrl", "http://posted.test/rss")];
    assert_eq!(gateway.post("/pingSiteForm", &form).await.0, StatusCode::OK);
    let (_, changes) = gateway.get("/changes.xml").await;
    assert!(changes.contains("name=\"The RSS Blog\" url=\"http://blog.test/rss\""), "{changes}");
    assert!(changes.contains("rssUrl=\"http://posted.test/rss\""), "{changes}");
}

#[tokio::test]
async fn what_is_no_address_is_not_kept() {
    let database = Database::new(Kind::Sqlite).await;
    let gateway = Gateway::start(&database, &[]).await;
    let long = format!("http://long.test/{}", "x".repeat(2_048));
    for url in ["tides", &long] {
        let publish = [("hub.mode", "publish"), ("hub.url", url)];
        assert_eq!(gateway.post("/hub", &publish).await.0, StatusCode::NO_CONTENT);
    }
    let (_, changes) = gateway.get("/changes.xml").await;
    assert!(changes.contains("count=\"0\"") && !changes.contains("<weblog "), "{changes}");
}

#[tokio::test]
async fn a_ping_has_the_feed_of_the_weblog_read() {
    let publisher = Publisher::start().await;
    let subscriber = Subscriber::start().await;
    let database = Database::new(Kind::Sqlite).await;
    let gateway = Gateway::start(&database, &[]).await;
    publisher.put_rss("/feed", rss("tides", 1..3));
    let topic = publisher.url("/feed");
    gateway.subscribe_superfeedr(&topic, &subscriber.url("/cb"), "atom").await;

    // By the home page that the feed names, by the feed as third parameter, as fourth.
    let home = "https://tides.test/";
    let pings: [(&str, &[&str]); 3] = [
        ("ping", &["Tides", home]),
        ("extendedPing", &["Tides", "http://elsewhere.test/", &topic]),
        ("extendedPing", &["Tides", "http://elsewhere.test/", "http://elsewhere.test/", &topic]),
    ];
    for (n, (method, params)) in (3..).zip(pings) {
        publisher.put_rss("/feed", rss("tides", 1..n + 1));
        ping(&gateway, method, params).await;
        subscriber.until("/cb", |told| told.len() == n - 2).await;
    }
}
