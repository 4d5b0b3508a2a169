//! Any text, as the date of an item: nothing panics, and what is taken for a date is
//! one that can be written, read back and kept.
#![no_main]

use feedgate_feed::Context;
use feedgate_feed::Normalized;
use feedgate_feed::normalize;
use libfuzzer_sys::fuzz_target;
use url::Url;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = str::from_utf8(data) else { return };
    let escaped = text.replace('&', "&amp;").replace('<', "&lt;");
    for name in ["pubDate", "dc:date", "expirationDate"] {
        let rss = format!(
            "<rss version='2.0'><channel><item><guid>urn:a</guid><title>a</title>\
             <{name}>{escaped}</{name}></item></channel></rss>"
        );
        let first = read(&rss);
        let again = read(&first.to_atom());
        let (first, again) = (&first.feed().entries[0], &again.feed().entries[0]);
        assert_eq!(first.published, again.published, "published, from {name} {text:?}");
        assert_eq!(first.updated, again.updated, "updated, from {name} {text:?}");
    }
});

fn read(document: &str) -> Normalized {
    let url = Url::parse("http://a.test/").expect("it is a URL");
    normalize(document.as_bytes(), &Context::new(url)).expect("it is a feed")
}
