//! Any bytes, as HTML or XHTML in an entry, sanitized: nothing panics, a browser finds in the result
//! no element that could act and no handler, and sanitizing it again changes nothing.
//!
//! The first byte chooses between HTML and XHTML.
#![no_main]

use feedgate_feed::model::{Entry, Text, TextKind};
use feedgate_feed::{Feed, passes};
use libfuzzer_sys::fuzz_target;
use scraper::Html;

/// Elements that could act, or whose content browsers read in other ways.
#[rustfmt::skip]
const ACTIVE: &[&str] = &[
    "applet", "base", "embed", "frame", "frameset", "iframe", "link", "math", "meta", "noembed",
    "noframes", "noscript", "object", "plaintext", "script", "style", "svg", "template", "xmp",
];

fuzz_target!(|data: &[u8]| {
    let Some((choice, bytes)) = data.split_first() else { return };
    let kind = if choice % 2 == 0 { TextKind::Html } else { TextKind::Xhtml };
    let once = sanitized(String::from_utf8_lossy(bytes).into_owned(), kind);
    assert_eq!(sanitized(once.clone(), kind), once);
    let page = Html::parse_fragment(&once);
    for element in page.tree.values().filter_map(|node| node.as_element()) {
        let name = element.name();
        assert!(!ACTIVE.contains(&name), "{name} in {once:?}");
        for (attribute, value) in element.attrs() {
            assert!(
                !attribute.starts_with("on") && attribute != "srcdoc",
                "{attribute} in {once:?}"
            );
            let plain: String = value.chars().filter(|c| *c > ' ').collect();
            let runs = plain.to_ascii_lowercase().starts_with("javascript:");
            let is_address = matches!(attribute, "href" | "src" | "data" | "background" | "poster");
            assert!(!(runs && is_address), "{attribute}={value:?} in {once:?}");
        }
    }
});

fn sanitized(value: String, kind: TextKind) -> String {
    let summary = Some(Text { value, kind, ..Text::default() });
    let mut feed = Feed { entries: vec![Entry { summary, ..Entry::default() }], ..Feed::default() };
    passes::sanitize(&mut feed);
    feed.entries.pop().and_then(|entry| entry.summary).expect("the text is there").value
}
