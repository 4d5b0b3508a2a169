//! Any bytes, as a `Link` header, a `robots.txt` or an OPML list: nothing panics, and what was
//! understood is the same after it has been written and read again.
//!
//! The first byte chooses the format.
#![no_main]

use feedgate_feed::chrono::{DateTime, Utc};
use feedgate_feed::render::opml::{self as written, OpmlOutline};
use feedgate_feed::link_header::{self, HeaderLink};
use feedgate_protocol::opml;
use feedgate_protocol::robots::Robots;
use libfuzzer_sys::fuzz_target;
use roxmltree::Document;

fuzz_target!(|data: &[u8]| {
    let Some((choice, bytes)) = data.split_first() else { return };
    match choice % 3 {
        0 => links(&String::from_utf8_lossy(bytes)),
        1 => robots(&String::from_utf8_lossy(bytes)),
        _ => feeds(bytes),
    }
});

/// A header in each line.
fn links(text: &str) {
    let links = link_header::read(text.lines());
    let headers: Vec<String> = links.iter().map(header).collect();
    assert_eq!(link_header::read(headers.iter().map(String::as_str)), links, "one header for each");
    let headers = headers.join(", ");
    assert_eq!(link_header::read([headers.as_str()].into_iter()), links, "one header for all");
}

fn header(link: &HeaderLink) -> String {
    let mut header = format!("<{}>; rel={}", link.target, quoted(&link.rels.join(" ")));
    if let Some(mime) = &link.mime {
        header += &format!("; type={}", quoted(mime));
    }
    if let Some(title) = &link.title {
        header += &format!("; title={}", quoted(title));
    }
    header
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// The path, then the file, parted by a line's end.
fn robots(text: &str) {
    let (path, file) = text.split_once('\n').unwrap_or((text, ""));
    let robots = Robots::parse(file);
    let kept = serde_json::to_string(&robots).expect("rules can be kept");
    // A character of a pattern takes three bytes at most when it is encoded, and six in JSON. There are
    // two kinds of rules.
    assert!(kept.len() < 2 * 8 * 64 * 1_024, "{} bytes are kept", kept.len());
    let again: Robots = serde_json::from_str(&kept).expect("rules can be read");
    assert_eq!(again, robots);
    assert_eq!(again.allows_feed(path), robots.allows_feed(path));
    assert_eq!(again.allows_page(path), robots.allows_page(path));
    assert!(Robots::default().allows_page(path), "nothing is disallowed without a rule");
    let all = format!("User-agent: feedgate\nDisallow: /\n\n{file}");
    assert!(!Robots::parse(&all).allows_feed("/") || file.to_ascii_lowercase().contains("allow"));
}

fn feeds(bytes: &[u8]) {
    let Ok(urls) = opml::feed_urls(bytes) else { return };
    let mut list = String::new();
    written::push_head(&mut list, "Feeds", DateTime::<Utc>::UNIX_EPOCH);
    for url in &urls {
        let outline = OpmlOutline { title: url, url, site: Some(url), is_feed: true };
        written::push_outline(&mut list, &outline);
    }
    list.push_str(written::END);
    Document::parse(&list).expect("what is written is well-formed");
    let carried = urls.iter().map(|url| carried(url).trim().to_owned());
    let carried = carried.filter(|url| !url.is_empty()).collect();
    assert_eq!(opml::feed_urls(list.as_bytes()), Ok(carried));
}

/// Text without what XML cannot carry.
fn carried(text: &str) -> String {
    feedgate_feed::text_extraction::printable(text).into_owned()
}
