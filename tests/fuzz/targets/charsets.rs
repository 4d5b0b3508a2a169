//! Any bytes in any declared encoding, as the title of a feed: nothing panics, and the title is
//! text that XML can carry and that is the same when it is read again.
//!
//! The first line is the label in the XML declaration, the second that in `Content-Type`; the rest
//! is the title.
#![no_main]

use feedgate_feed::{Context, Normalized, normalize};
use libfuzzer_sys::fuzz_target;
use roxmltree::Document;
use url::Url;

fuzz_target!(|data: &[u8]| {
    let mut lines = data.splitn(3, |byte| *byte == b'\n');
    let (Some(declared), Some(header), Some(bytes)) = (lines.next(), lines.next(), lines.next())
    else {
        return;
    };
    let rss: Vec<u8> = [
        b"<?xml version='1.0' encoding='".as_slice(),
        declared,
        b"'?><rss version='2.0'><channel><title><![CDATA[",
        bytes,
        b"]]></title><item><guid>urn:a</guid></item></channel></rss>",
    ]
    .concat();
    let content_type = format!("text/xml; charset={}", String::from_utf8_lossy(header));
    let Some(first) = read(&rss, &content_type) else { return };
    let atom = first.to_atom();
    Document::parse(&atom).expect("what is written is well-formed");
    let again = read(atom.as_bytes(), "application/atom+xml").expect("our own output is a feed");
    assert_eq!(title(&first), title(&again));
});

/// The title, which Atom requires: it is written empty if there is none.
fn title(normalized: &Normalized) -> &str {
    normalized.feed().title.as_ref().map_or("", |title| &title.value)
}

fn read(document: &[u8], content_type: &str) -> Option<Normalized> {
    let url = Url::parse("http://a.test/").expect("it is a URL");
    let mut context = Context::new(url);
    context.headers.push(("content-type".to_owned(), content_type.to_owned()));
    normalize(document, &context).ok()
}
