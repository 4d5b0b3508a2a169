//! `feedgate poll --explain` says of each format why a document was or was not taken as entries.

use serde_json::Value;
use tokio::process::Command;

use crate::support::publisher::Publisher;

const HTML: &str = "text/html; charset=utf-8";
const POST: &str = r#"<script type="application/ld+json">{"@type": "BlogPosting", "headline": "Ebb", "url": "/ebb"}</script>"#;
const LINK: &str = "<link rel=alternate type=application/rss+xml title=Tides href=/feed>";

/// What the program prints about this URL.
async fn explained(url: &str, further: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_feedgate"));
    command.args(["poll", "--explain"]).args(further).arg(url).env_clear();
    command.env("FEEDGATE_EGRESS_ALLOW_TOPIC_CIDRS", "127.0.0.0/8");
    let output = command.output().await.unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    text
}

#[tokio::test]
async fn a_poll_explains_what_was_taken_as_entries_and_what_the_page_advertises() {
    let publisher = Publisher::start().await;
    publisher.put("/post", HTML, format!("<!doctype html><html><head>{POST}</head><body>x"));
    publisher.put("/blog", HTML, format!("<!doctype html><html><head>{LINK}{POST}</head><body>x"));
    let post = explained(&publisher.url("/post"), &[]).await;
    for line in [
        "format      hfeed: not taken: it has no microformats",
        "format      jsonld: taken, 1 entry",
        "format      microdata: not taken: it was read as jsonld before",
        "format      jsonfeed: not taken: it was read as jsonld before",
        "advertises  no feed",
    ] {
        assert!(post.contains(line), "{line}: {post}");
    }
    let blog = explained(&publisher.url("/blog"), &["--json"]).await;
    let blog: Value = serde_json::from_str(&blog).unwrap();
    let explanation = &blog["explanation"];
    assert_eq!(explanation["advertised"][0]["href"], publisher.url("/feed"));
    let formats = explanation["formats"].as_array().unwrap();
    let named = |name: &str| formats.iter().find(|format| format["format"] == name).unwrap();
    assert_eq!(named("rss")["taken"], false);
    let reason = "its 1 entry is not taken, because the page advertises a feed that has it: /feed";
    assert_eq!(named("jsonld")["reason"], reason);
    let part = explained(&publisher.url("/blog#.x"), &["--json"]).await;
    assert!(part.contains("the fragment of the URL selects a part of the document"), "{part}");
}
