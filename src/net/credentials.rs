//! Credentials in URLs: removed from the URL and sent as a header.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use http::HeaderValue;
use url::Url;

/// Returns the user name and password in a URL as an `Authorization` header.
pub(super) fn basic(url: &Url) -> Option<HeaderValue> {
    if url.username().is_empty() && url.password().is_none() {
        return None;
    }
    let mut pair = percent_decoded(url.username());
    pair.push(b':');
    pair.extend(percent_decoded(url.password().unwrap_or_default()));
    let text = format!("Basic {}", BASE64_STANDARD.encode(pair));
    let mut header = HeaderValue::from_str(&text).ok()?;
    header.set_sensitive(true);
    Some(header)
}

/// Removes the user name and password from a URL.
pub(super) fn strip(url: &mut Url) {
    // These calls fail only for URLs without a host, which have no credentials either.
    url.set_username("").ok();
    url.set_password(None).ok();
}

fn percent_decoded(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        let digits = tail.get(..2).and_then(|two| hex::decode(two).ok());
        match digits.filter(|_| first == b'%') {
            Some(byte) => {
                bytes.extend(byte);
                rest = &tail[2..];
            }
            None => {
                bytes.push(first);
                rest = tail;
            }
        }
    }
    bytes
}
