//! Credentials of topics: those in URLs, which are removed from the URL and sent as a header, and the headers
//! that an account chose.

use std::sync::Arc;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue};
use url::Url;

use super::{FetchError, HttpClient, insert_callback_headers};
use feedgate_core::callback_headers::CallbackHeaders;
use feedgate_core::topic;

impl HttpClient {
    /// Returns the client for the resource at `url`, which has headers of its own. They are sent only to URLs of
    /// the same origin that have its user name: neither a redirect nor a document leads them to another origin.
    pub fn with_feed_headers(&self, url: Url, chosen: CallbackHeaders) -> HttpClient {
        HttpClient { feed_headers: Some(Arc::new((url, chosen))), ..self.clone() }
    }
}

/// Returns the user name and password in a URL as an `Authorization` header.
fn basic(url: &Url) -> Option<HeaderValue> {
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

/// Returns the headers with the credentials for a URL: those of its user name and password, or, if it is one of
/// a resource with headers of its own, those that were chosen. Without these, it is not requested.
pub(super) fn headers(
    url: &Url,
    chosen: Option<&(Url, CallbackHeaders)>,
) -> Result<HeaderMap, FetchError> {
    let mut headers = HeaderMap::new();
    if topic::has_own_headers(url) {
        let is_of_url = |(of, _): &&(Url, CallbackHeaders)| {
            of.origin() == url.origin() && of.username() == url.username()
        };
        let (_, chosen) = chosen.filter(is_of_url).ok_or(FetchError::HeadersMissing)?;
        insert_callback_headers(&mut headers, chosen);
    } else if let Some(basic) = basic(url) {
        headers.insert(AUTHORIZATION, basic);
    }
    Ok(headers)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a36_chosen_headers_are_sent_to_the_origin_of_their_feed_only() {
        let url = |text| Url::parse(text).unwrap();
        let chosen = CallbackHeaders::from_pairs([("x-key", "k3y")], "").unwrap();
        let of_feed = (url("https://feedgate-headers-1@a.test/feed"), chosen);
        let is_sent = |text| headers(&url(text), Some(&of_feed)).map(|it| it.contains_key("x-key"));
        assert!(matches!(is_sent("https://feedgate-headers-1@a.test/moved"), Ok(true)));
        for elsewhere in [
            "https://feedgate-headers-1@b.test/feed",
            "https://feedgate-headers-x@b.test/feed",
            "https://feedgate-headers-2@a.test/feed",
            "http://feedgate-headers-1@a.test/feed",
            "https://feedgate-headers-1@a.test:8443/feed",
        ] {
            assert!(matches!(is_sent(elsewhere), Err(FetchError::HeadersMissing)), "{elsewhere}");
        }
        assert!(matches!(is_sent("https://a.test/feed"), Ok(false)));
    }
}
