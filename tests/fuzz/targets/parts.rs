//! Any page, XML or JSON, and any selector or JSONPath: nothing panics, a fragment stays the same
//! when it is read again, and what it selects has a bounded length and can be read itself.
//!
//! The first byte chooses the content type, the first line is the fragment, and the rest is the
//! document.
#![no_main]

use feedgate_feed::Context;
use feedgate_feed::documents::{self, Fragment};
use libfuzzer_sys::fuzz_target;
use url::Url;

const CONTENT_TYPES: [&str; 4] = ["", "text/html", "application/json", "text/xml"];

/// The maximum length of a part (`feedgate_feed::documents`).
const LONGEST_BYTES: usize = 10 * 1024 * 1024;

fuzz_target!(|data: &[u8]| {
    let Some((choice, data)) = data.split_first() else { return };
    let end = data.iter().position(|byte| *byte == b'\n').unwrap_or(data.len());
    let (fragment, document) = data.split_at(end);
    let document = document.get(1..).unwrap_or_default();
    let mut context = Context::new(Url::parse("http://a.test/").expect("it is a URL"));
    let content_type = CONTENT_TYPES[usize::from(*choice) % CONTENT_TYPES.len()];
    if !content_type.is_empty() {
        context.headers.push(("content-type".to_owned(), content_type.to_owned()));
    }

    let whole = documents::read(document, &context, None).expect("no fragment fails");
    assert!(whole.part.is_none(), "nothing was selected");
    assert_eq!(whole.digest.len(), 64, "a SHA-256 in hex");

    let Ok(fragment) = Fragment::parse(&String::from_utf8_lossy(fragment)) else { return };
    let written: String = url::form_urlencoded::byte_serialize(fragment.as_str().as_bytes())
        .map(|piece| if piece == "+" { "%20" } else { piece })
        .collect();
    let again = Fragment::parse(&written).expect("a fragment can be written");
    assert_eq!(again.as_str(), fragment.as_str());

    let Ok(content) = documents::read(document, &context, Some(&fragment)) else { return };
    let part = content.part.expect("a fragment selects a part");
    assert!(part.bytes.len() <= LONGEST_BYTES, "{} bytes", part.bytes.len());
    assert!(str::from_utf8(&part.bytes).is_ok(), "a part is UTF-8");
    let _ = documents::read(&part.bytes, &context, None);
});
