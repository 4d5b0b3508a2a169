//! Redacts addresses for public display.
//!
//! Paths and queries of callbacks contain tokens, so only the host is shown, with a short hash that
//! distinguishes callbacks on the same host (S54). Topics are public unless they contain
//! credentials (S48), or something that looks like credentials.

use std::borrow::Cow;

use sha2::{Digest, Sha256};
use url::Url;

/// The number of hex digits of the hash: enough to distinguish the callbacks of one host, and too
/// few to prove a guess.
const HASH_DIGITS: usize = 6;
/// The replacement of a redacted part.
const CUT: &str = "…";
/// The maximum length of a displayed feed address, which is that of a topic.
const LONGEST_FEED_CHARS: usize = 2_048;
/// Shorter parts of an address are not redacted from texts, because they occur anywhere.
const SHORTEST_PIECE: usize = 6;
/// Parts of the names of secret parameters, …
const KEY_PARTS: [&str; 7] =
    ["token", "secret", "pass", "apikey", "signature", "credential", "session"];
/// … their ends, because `keyword` is not secret, …
const KEY_ENDS: [&str; 2] = ["key", "sessid"];
/// … and complete names, because neither are `author` and `design`.
const KEYS: [&str; 10] =
    ["auth", "authorization", "bearer", "hmac", "jwt", "otp", "pw", "pwd", "sid", "sig"];
/// The beginning of the segment of a path that calendars have for those who may read everything.
const PRIVATE_SEGMENT: &str = "private-";

/// Whether an address may be listed publicly. This judges by words, so it is a second wall only:
/// which topics are listed is decided by who subscribes to them ([`visibility`](crate::visibility)).
pub fn is_public(url: &Url) -> bool {
    let is_key = |name: &str| {
        let name = name.to_ascii_lowercase();
        KEYS.contains(&name.as_str())
            || KEY_PARTS.iter().any(|part| name.contains(part))
            || KEY_ENDS.iter().any(|end| name.ends_with(end))
    };
    url.username().is_empty()
        && url.password().is_none()
        && !url.query_pairs().any(|(name, value)| is_key(&name) && !value.is_empty())
        && !url.path_segments().is_some_and(|mut segments| segments.any(is_secret_segment))
}

/// Whether a segment of a path names a secret: `private-0f3a…`, or a parameter such as
/// `;jsessionid=…`. An article about private matters has no digit in its name.
fn is_secret_segment(segment: &str) -> bool {
    let after = segment.strip_prefix(PRIVATE_SEGMENT);
    after.is_some_and(|rest| rest.contains(|c: char| c.is_ascii_digit()))
        || segment.to_ascii_lowercase().contains(";jsessionid=")
}

/// Returns the address of a feed for public display.
pub fn feed(text: &str) -> String {
    match Url::parse(text) {
        Ok(url) => feed_url(&url, text),
        Err(_) => line(text, LONGEST_FEED_CHARS),
    }
}

/// Returns the address of a feed for public display. `url` is what `text` parses to.
pub fn feed_url(url: &Url, text: &str) -> String {
    if is_public(url) { line(text, LONGEST_FEED_CHARS) } else { redacted(url, text) }
}

/// Returns a callback for public display: `https://host/…a1b2c3`.
pub fn callback(text: &str) -> String {
    match Url::parse(text) {
        Ok(url) if url.path() == "/" && url.query().is_none() && is_public(&url) => url.into(),
        Ok(url) => redacted(&url, text),
        Err(_) if text.is_empty() => String::new(),
        Err(_) => format!("{CUT}{}", hash(text)),
    }
}

fn redacted(url: &Url, text: &str) -> String {
    let host = url.host_str().unwrap_or_default();
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    format!("{}://{host}{port}/{CUT}{}", url.scheme(), hash(text))
}

fn hash(text: &str) -> String {
    hex::encode(Sha256::digest(text))[..HASH_DIGITS].to_owned()
}

/// Removes from `text` what would reveal the path or the query of the callback at `address`,
/// because servers often quote the request in their response.
pub fn without(text: &str, address: &str) -> String {
    let Ok(url) = Url::parse(address) else { return text.to_owned() };
    let path_and_query = &url[url::Position::BeforePath..url::Position::AfterQuery];
    let mut pieces: Vec<Cow<'_, str>> = vec![path_and_query.into(), url.path().into()];
    pieces.extend(url.query().map(Cow::from));
    pieces.extend(url.path_segments().into_iter().flatten().map(Cow::from));
    pieces.extend(url.query_pairs().map(|(_, value)| value));
    let mut text = text.to_owned();
    for piece in pieces {
        let plain = percent_encoding::percent_decode_str(&piece).decode_utf8_lossy();
        for piece in [piece.as_ref(), plain.as_ref()] {
            if piece.len() >= SHORTEST_PIECE {
                text = text.replace(piece, CUT);
            }
        }
    }
    text
}

/// Returns one line of at most `most` characters, without control characters (S42).
pub fn line(text: &str, most: usize) -> String {
    let mut line = String::new();
    for word in text.split(|c: char| c.is_whitespace() || c.is_control()) {
        if word.is_empty() {
            continue;
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
        if line.len() > 4 * most {
            break;
        }
    }
    match line.char_indices().nth(most) {
        Some((end, _)) => format!("{}{CUT}", &line[..end]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s54_of_a_callback_the_host_is_shown_and_a_hash() {
        let one = callback("https://reader.test:8443/hook/s3cret?k=1");
        assert!(one.starts_with("https://reader.test:8443/…") && one.ends_with(&hash_of(&one)));
        assert_ne!(one, callback("https://reader.test:8443/hook/other?k=1"), "told apart");
        assert_eq!(callback("https://reader.test/"), "https://reader.test/", "nothing to hide");
        assert!(!callback("not an address /s3cret").contains("s3cret"));
        assert_eq!(callback(""), "");
    }

    fn hash_of(redacted: &str) -> String {
        redacted.chars().rev().take(HASH_DIGITS).collect::<Vec<_>>().into_iter().rev().collect()
    }

    #[test]
    fn s48_a_feed_is_shown_unless_it_opens_something() {
        #[rustfmt::skip]
        let cases = [
            ("https://a.test/feed?page=2",        true),
            ("https://a.test/feed?keyword=tides", true),
            ("https://a.test/feed?author=3",      true),
            ("https://a.test/feed?auth=3",        false),
            ("https://me:pw@a.test/feed",         false),
            ("https://a.test/feed?access_token=1", false),
            ("https://a.test/feed?key=1",         false),
            ("https://a.test/feed?design=3",      true),
            ("https://a.test/feed?pass=",         true),
            ("https://a.test/private-equity/rss", true),
            ("https://a.test/feed?pass=1",        false),
            ("https://a.test/feed?pwd=1",         false),
            ("https://a.test/feed?sig=1",         false),
            ("https://a.test/feed?rss_key=1",     false),
            ("https://a.test/feed?jwt=1",         false),
            ("https://a.test/feed?session=1",     false),
            ("https://a.test/feed?PHPSESSID=1",   false),
            ("https://a.test/feed;jsessionid=1",  false),
            ("https://a.test/ical/private-0f3a9/basic.ics", false),
        ];
        for (text, is_whole) in cases {
            assert_eq!(feed(text) == text, is_whole, "{text}");
            assert_eq!(is_public(&Url::parse(text).unwrap()), is_whole, "{text}");
        }
        assert!(!feed("https://me:pw@a.test/feed").contains("pw@"));
    }

    #[test]
    fn a_text_is_one_line_and_no_longer_than_it_may_be() {
        assert_eq!(line(" a\r\n\tb\u{7}c ", 9), "a b c");
        assert_eq!(line("ärger", 2), "är…");
    }
}
