//! The payloads of `docs/api/payloads.md` are what is sent for the feed of that page.

use http::StatusCode;
use http::header::CONTENT_TYPE;
use serde_json::{Value, json};

use crate::support::gateway::TOKEN;
use crate::support::pages::{blocks, read};
use crate::support::server::{ReceivedRequest, client};
use crate::support::world::World;

/// The secret of the subscriptions.
const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
/// The protocols of rssCloud on the page.
const CLOUD_PROTOCOLS: [&str; 3] = ["http-post", "xml-rpc", "soap"];

#[tokio::test]
async fn the_payloads_of_the_page_are_what_is_sent() {
    let page = read("docs/api/payloads.md");
    let blocks = blocks(&page);
    let feed = &blocks[0].1;
    let world = World::with_tides(0, &[]).await.about("/feed.xml");
    world.publisher.put_rss("/feed.xml", without_item(feed));
    world.subscribe_in_all_formats().await;
    world.publisher.put_rss("/feed.xml", feed.clone());
    let (status, text) = world.gateway.post("/ping", &[("url", &world.topic)]).await;
    assert!(status == StatusCode::OK && text.contains("success=\"true\""), "{text}");

    let json = world.newest_request("/json", 1).await;
    let [form, xml_rpc, soap] = [
        world.newest_request("/http-post", 2).await,
        world.newest_request("/xml-rpc", 2).await,
        world.newest_request("/soap", 2).await,
    ];
    let sent = [
        request_head(&json),
        json.text(),
        world.newest_request("/atom", 1).await.text(),
        format!("{}\n{}", request_head(&form), form.text()),
        xml_rpc.text(),
        soap.text(),
        world.document(".json").await,
        world.document(".rss").await,
    ];
    assert_eq!(world.newest_request("/raw", 1).await.text(), *feed, "raw is the source");
    assert_eq!(blocks.len(), 1 + sent.len());
    for ((fence, example), sent) in blocks[1..].iter().zip(sent) {
        let sent = world.with_public_names(&sent);
        assert_eq!(comparable(fence, &sent), comparable(fence, example), "it is sent as:\n{sent}");
    }
}

impl World {
    /// Subscribes in each format of the page, to a path of the subscriber with the name of the format.
    async fn subscribe_in_all_formats(&self) {
        for format in ["json", "atom", "raw"] {
            let callback = self.subscriber.url(&format!("/{format}"));
            let fields = json!({ "url": self.topic, "callback": callback, "format": format, "secret": SECRET });
            let request = client().post(self.gateway.url("/v1/subscriptions")).bearer_auth(TOKEN);
            let request = request.header(CONTENT_TYPE, "application/json").body(fields.to_string());
            assert_eq!(request.send().await.unwrap().status(), StatusCode::CREATED);
        }
        for protocol in CLOUD_PROTOCOLS {
            let path = format!("/{protocol}");
            self.gateway.subscribe_rsscloud(protocol, &self.topic, &self.subscriber, &path).await;
        }
    }

    /// Waits until so many notifications were sent to a path, and returns the newest.
    async fn newest_request(&self, path: &str, count: usize) -> ReceivedRequest {
        self.subscriber.until(path, |told| told.len() == count).await;
        self.subscriber.notified(path).pop().unwrap()
    }

    /// Returns the feed of the gateway in another format.
    async fn document(&self, extension: &str) -> String {
        let feeds = self.gateway.own("/v1/feeds").await;
        let id = feeds["data"][0]["id"].as_str().unwrap();
        let address = self.gateway.url(&format!("/feeds/{id}{extension}"));
        client().get(address).bearer_auth(TOKEN).send().await.unwrap().text().await.unwrap()
    }

    /// Returns a text with the host names of the page instead of addresses of this machine.
    fn with_public_names(&self, text: &str) -> String {
        let hosts = [
            (self.publisher.url(""), "https://tides.example.org"),
            (self.subscriber.url(""), "https://subscriber.example.com"),
            (self.gateway.url(""), "https://gateway.example.org"),
        ];
        let mut text = text.to_owned();
        for (here, public) in hosts {
            let encode = |url: &str| {
                url::form_urlencoded::byte_serialize(url.as_bytes()).collect::<String>()
            };
            text = text.replace(&here, public).replace(&encode(&here), &encode(public));
            let bare = |url: &str| format!("host: {}\n", url.split_once("//").unwrap().1);
            text = text.replace(&bare(&here), &bare(public));
        }
        text
    }
}

/// Returns a feed as it was before its only item.
fn without_item(feed: &str) -> String {
    let (before, rest) = feed.split_once("<item>").unwrap();
    let (_, after) = rest.split_once("</item>").unwrap();
    format!("{before}{after}")
}

/// Returns the first lines of a request, as they are sent.
fn request_head(request: &ReceivedRequest) -> String {
    let headers = request
        .headers
        .iter()
        .map(|(name, value)| format!("{name}: {}\n", value.to_str().unwrap()));
    format!("{} {} HTTP/1.1\n{}", request.method, request.path, headers.collect::<String>())
}

/// Returns the text of a block without what differs each time it is sent.
fn comparable(fence: &str, text: &str) -> String {
    match fence {
        "json" => masked(&serde_json::from_str::<Value>(text).unwrap().to_string()),
        "http" => {
            let mut lines: Vec<String> = text.lines().map(masked_header).collect();
            lines.sort(); // headers have no order
            lines.join("\n")
        }
        _ => masked(text.trim_end()),
    }
}

fn masked_header(line: &str) -> String {
    match line.split_once(": v1,") {
        Some((name, _)) => format!("{name}: v1,0"),
        None => masked(line),
    }
}

/// Returns a text with `0` instead of each number, hash and UUID.
fn masked(text: &str) -> String {
    let mut parts = text.split("urn:uuid:");
    let first = parts.next().unwrap_or_default().to_owned();
    let without_uuids = parts.fold(first, |text, rest| text + "urn:uuid:0" + &rest[36..]);
    let is_hash = |word: &str| word.len() >= 8 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_number = |word: &str| word.starts_with(|c: char| c.is_ascii_digit()); // also `28T06`
    let words = without_uuids.split_inclusive(|c: char| !c.is_ascii_alphanumeric());
    let masked = words.map(|word| {
        let text = word.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
        let is_masked = is_hash(text) || is_number(text);
        if is_masked { format!("0{}", &word[text.len()..]) } else { word.to_owned() }
    });
    masked.collect()
}
