//! Nobody can make feedgate take more memory than the operator allows, whatever they send (S16,
//! S18), and feeds are polled and delivered meanwhile.

use std::io::Write;
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use http::StatusCode;
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::store::on_both_stores;
use crate::support::PATIENCE;
use crate::support::feeds::{entry_id, rss};
use crate::support::gateway::Gateway;
use crate::support::origin::{Origin, Step};
use crate::support::postgres::{Database, Kind};
use crate::support::publisher::Publisher;
use crate::support::server::client;
use crate::support::subscriber::Subscriber;

const MIB: u64 = 1024 * 1024;
/// A quarter of a machine with 1 GiB.
const BUDGET: (&str, &str) = ("FEEDGATE_DOCUMENT_MEMORY_BYTES", "268435456");
/// The most that may ever be in memory.
const MOST: u64 = 512 * MIB;
/// The most once it is over: it does not stay where it was.
const MOST_AFTERWARDS: u64 = 256 * MIB;
/// Just below the limit of a document.
const DOCUMENT_BYTES: usize = 9_600_000;
/// Addresses that serve one document each, and documents at one address.
const ADDRESSES: usize = 24;
const OF_ONE_ADDRESS: usize = 12;

on_both_stores!(h13_what_documents_become_is_within_the_budget);

/// A text that compresses to half of its length. With it, the documents are long enough for the
/// limit on the ratio of compression.
fn noise() -> String {
    let mut state = 1_u32;
    let next = |_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        char::from_digit(state >> 28, 16).unwrap()
    };
    (0..240_000).map(next).collect()
}

/// Documents that take many times their length to parse, and are 70 times shorter when compressed.
fn documents() -> [(&'static str, String); 4] {
    let noise = noise();
    let filled = |head: &str, unit: &str, tail: &str| {
        format!("{head}{}{tail}", unit.repeat(DOCUMENT_BYTES / unit.len()))
    };
    [
        ("/numbers", filled(&format!("[\"{noise}\","), "1,", "1]")),
        ("/objects", filled(&format!("{{\"x\":\"{noise}\",\"items\":["), "{\"\":0},", "{}]}")),
        ("/elements", filled(&format!("<rss><channel><item>{noise}"), "<a/>", "</item>")),
        ("/page", filled(&format!("<html><body>{noise}"), "<p a b c d>", "</body></html>")),
    ]
}

fn compressed(text: &str) -> Vec<u8> {
    let mut out = GzEncoder::new(Vec::new(), Compression::best());
    out.write_all(text.as_bytes()).unwrap();
    let body = out.finish().unwrap();
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), &body].concat()
}

#[tokio::test]
async fn s16_s18_whatever_is_sent_memory_is_bounded_and_feeds_are_polled_meanwhile() {
    let database = Database::new(Kind::Sqlite).await;
    let gateway = Gateway::start(&database, &[BUDGET]).await;
    let (publisher, subscriber) = (Publisher::start().await, Subscriber::start().await);
    publisher.put_rss("/feed.xml", rss("feed", 0..1));
    gateway.subscribe_websub(&publisher.url("/feed.xml"), &subscriber.url("/healthy"), &[]).await;

    let hostile = Origin::start_at("0.0.0.0").await;
    let documents = documents().map(|(path, text)| (path, compressed(&text)));
    let paths = documents.each_ref().map(|(path, _)| *path);
    for (path, answer) in documents {
        for n in 0..OF_ONE_ADDRESS {
            let step = Step::SendAndClose(answer.clone());
            hostile.script(&format!("{path}?{n}"), [step]);
        }
    }
    let topics: Vec<String> = (0..ADDRESSES)
        .map(|n| hostile.url_as(&format!("127.0.1.{n}"), &format!("{}?0", paths[n % paths.len()])))
        .chain((0..OF_ONE_ADDRESS).map(|n| hostile.url_as("127.0.2.1", &format!("/numbers?{n}"))))
        .collect();
    let mut calls = JoinSet::new();
    for topic in topics {
        calls.spawn(please_notify(gateway.url("/rsscloud/pleaseNotify"), topic));
    }

    for entry in 1..=3 {
        publisher.put_rss("/feed.xml", rss("feed", 0..entry + 1));
        let form = [("hub.mode", "publish"), ("hub.url", &publisher.url("/feed.xml"))];
        assert_eq!(gateway.post("/hub", &form).await.0, StatusCode::NO_CONTENT);
        let id = entry_id("feed", entry);
        subscriber
            .until("/healthy", |request| request.iter().any(|one| one.text().contains(&id)))
            .await;
    }
    while let Some(call) = calls.join_next().await {
        call.unwrap();
    }
    let most = gateway.memory_bytes("VmHWM");
    assert!(most < MOST, "{} MB", most / MIB);
    gateway.measures("feedgate_document_memory_bytes 0").await;
    let given_back = async {
        while gateway.memory_bytes("VmRSS") > MOST_AFTERWARDS {
            sleep(Duration::from_millis(50)).await;
        }
    };
    let given_back = timeout(PATIENCE, given_back).await.is_ok();
    assert!(given_back, "{} MB", gateway.memory_bytes("VmRSS") / MIB);
}

/// Documents of one shape each whose parsed and rendered forms are the largest for their length: a list of
/// JSON that just grew, elements with texts, and tags that are escaped.
async fn h13_what_documents_become_is_within_the_budget(database: Database) {
    let gateway = Gateway::start(&database, &[BUDGET]).await;
    let hostile = Origin::start_at("0.0.0.0").await;
    let filled = |head: &str, unit: &str, tail: &str| {
        format!("{head}{}{tail}", unit.repeat(DOCUMENT_BYTES / unit.len()))
    };
    let documents = [
        ("/values", filled("[", "12345678,", "1]")),
        ("/parts", filled("<rss><channel><item>", "<x:y>z</x:y>", "</item></channel></rss>")),
        (
            "/tags",
            filled(
                "<rss><channel><item><description><![CDATA[",
                "<p>",
                "]]></description></item></channel></rss>",
            ),
        ),
    ];
    let paths = documents.each_ref().map(|(path, _)| *path);
    for (at, (path, text)) in documents.into_iter().enumerate() {
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", text.len());
        let answer = [head.as_bytes(), text.as_bytes()].concat();
        for n in (at..ADDRESSES).step_by(paths.len()) {
            hostile.script(&format!("{path}?{n}"), [Step::SendAndClose(answer.clone())]);
        }
    }
    let mut calls = JoinSet::new();
    for n in 0..ADDRESSES {
        let path = format!("{}?{n}", paths[n % paths.len()]);
        let topic = hostile.url_as(&format!("127.0.1.{n}"), &path);
        calls.spawn(please_notify(gateway.url("/rsscloud/pleaseNotify"), topic));
    }
    while let Some(call) = calls.join_next().await {
        call.unwrap();
    }
    let most = gateway.memory_bytes("VmHWM");
    assert!(most < MOST, "{} MB", most / MIB);
    gateway.measures("feedgate_document_memory_bytes 0").await;
}

/// Registers a handler that does not agree. The topic is refused, or feedgate is busy and names a
/// time.
async fn please_notify(url: String, topic: String) {
    let topic: String = url::form_urlencoded::byte_serialize(topic.as_bytes()).collect();
    let form = format!("notifyProcedure=&port=1&path=/&protocol=http-post&url1={topic}");
    let request =
        client().post(url).header(CONTENT_TYPE, "application/x-www-form-urlencoded").body(form);
    let answer = request.send().await.unwrap();
    let (status, retry_after) = (answer.status(), answer.headers().get(RETRY_AFTER).cloned());
    let text = answer.text().await.unwrap();
    match status {
        StatusCode::SERVICE_UNAVAILABLE => assert!(retry_after.is_some(), "{text}"),
        status => {
            assert_eq!(status, StatusCode::OK, "{text}");
            assert!(text.contains("success=\"false\""), "{text}");
        }
    }
}
