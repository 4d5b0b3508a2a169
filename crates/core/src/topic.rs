//! Topics and callbacks: addresses given by clients.
//!
//! Both are stored byte for byte, because the protocols echo and compare them as text.

use std::fmt;
use std::sync::Arc;

use url::{Position, Url};

use super::redaction;

mod own_headers;

pub use own_headers::{displayed, has_own_headers};

/// The address of a resource, as the subscriber wrote it.
///
/// Checked to be an absolute `http` or `https` URL, but kept byte for byte: the
/// hub echoes it when verifying intent (WebSub `#hub-verifies-intent`, "the topic
/// URL given in the corresponding subscription request") and subscribers compare.
///
/// A resource has further addresses at this gateway, those of its archive. A topic that was
/// subscribed to under such an alias keeps it, for the subscriber.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Topic {
    text: Arc<str>,
    /// The text for public display.
    redacted: Arc<str>,
    alias: Option<String>,
}

impl Topic {
    /// The maximum length of a topic in bytes (Superfeedr's API: "2048 chars").
    pub const LONGEST_BYTES: usize = 2_048;

    /// Parses a topic, which must be a URL that can be polled. That of a resource with headers of its own is
    /// refused: only [`with_own_headers`](Self::with_own_headers) makes one, and only the store returns it.
    pub fn parse(text: impl Into<String>) -> Result<Topic, BadAddress> {
        Self::new(text.into(), false)
    }

    /// Returns the topic of a resource that is stored.
    pub fn from_stored(text: impl Into<String>) -> Result<Topic, BadAddress> {
        Self::new(text.into(), true)
    }

    fn new(text: String, may_be_private: bool) -> Result<Topic, BadAddress> {
        let url = check(&text, Self::LONGEST_BYTES, Url::parse)?;
        if has_own_headers(&url) && !may_be_private {
            return Err(BadAddress::OwnHeaders);
        }
        let redacted = redaction::feed_url(&url, &text);
        Ok(Topic { text: text.into(), redacted: redacted.into(), alias: None })
    }

    /// Returns the topic as subscribed to under another address.
    pub fn with_alias(self, alias: Option<String>) -> Topic {
        Topic { alias, ..self }
    }

    /// The original text, which identifies the resource.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The text for public display, without what may be secret.
    pub fn redacted(&self) -> &str {
        &self.redacted
    }

    /// The address under which the topic was subscribed to, if it is not that of the resource.
    pub fn alias(&self) -> Option<&str> {
        self.alias.as_deref()
    }

    /// The address under which the topic was subscribed to, which is the one that the subscriber
    /// knows.
    pub fn subscribed_as(&self) -> &str {
        self.alias().unwrap_or(&self.text)
    }

    /// The text after the first `#`, which selects a part of the resource (row S-18); `None` for
    /// the whole resource.
    pub fn fragment(&self) -> Option<&str> {
        self.text.split_once('#').map(|(_, fragment)| fragment).filter(|text| !text.is_empty())
    }

    /// Whether the topic may be displayed publicly: one with a password, or with a query that looks
    /// like a token, is secret (S48).
    pub fn is_public(&self) -> bool {
        redaction::is_public(&self.fetch_url())
    }

    /// The initial fetch URL: the topic without its fragment, which selects a part of the resource
    /// and is never sent (RFC 9110 `#target.resource`).
    pub fn fetch_url(&self) -> Url {
        let mut url = Url::parse(&self.text).expect("checked when the topic was made");
        url.set_fragment(None);
        url
    }
}

impl fmt::Display for Topic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// The URL to which notifications are sent.
///
/// Stored as written: notifications are sent to exactly this URL, including its query (WebSub
/// `#subscription-parameter-details`).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Callback {
    text: String,
    url: Url,
}

impl Callback {
    /// The maximum length of a callback in bytes. Superfeedr's API says 250; WebSub readers with
    /// long tokens in their paths need more.
    pub const LONGEST_BYTES: usize = 2_048;

    /// Parses a callback, which must be an absolute URL without credentials, so that
    /// `http://victim:80@evil.example/` is refused (S9).
    pub fn parse(text: impl Into<String>) -> Result<Callback, BadAddress> {
        Self::parse_beside(text, None)
    }

    /// Parses a callback as [`parse`](Self::parse) does, in a quarter of the time if it is at the server
    /// of `other`, as thousands of subscribers on one platform are.
    pub fn parse_beside(
        text: impl Into<String>,
        other: Option<&Callback>,
    ) -> Result<Callback, BadAddress> {
        let text = text.into();
        let url = check(&text, Self::LONGEST_BYTES, |text| {
            let beside = other.and_then(|other| Some((&other.url, other.path_at_server(text)?)));
            beside.map_or_else(|| Url::parse(text), |(url, path)| url.join(path))
        })?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err(BadAddress::Credentials);
        }
        Ok(Callback { text, url })
    }

    /// Returns the path of a URL and what follows, if it is certainly at the server of this callback.
    fn path_at_server<'t>(&self, text: &'t str) -> Option<&'t str> {
        let path = text.strip_prefix(&self.url[..Position::BeforePath])?;
        // With this beginning, `//`, a backslash or ignored characters cannot name another server.
        matches!(path.as_bytes(), [b'/', next, ..] if next.is_ascii_alphanumeric()).then_some(path)
    }

    /// The original text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The parsed URL.
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// Whether notifications are discarded: a subscription to `…/dev/null` is listed and can be
    /// retrieved, but nothing is sent (Superfeedr's API; row S-12).
    pub fn is_null_device(&self) -> bool {
        self.url.path().trim_end_matches('/') == "/dev/null"
    }

    /// Host and port, by which concurrent deliveries are limited (D3).
    pub fn host(&self) -> String {
        host(&self.url)
    }

    /// The host, by which concurrent verifications are limited (S26).
    pub fn host_name(&self) -> String {
        self.url.host_str().unwrap_or_default().to_owned()
    }
}

impl fmt::Display for Callback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// The server of `url`: host and port, as in `example.org:443`. Deliveries and fetches are limited,
/// and pauses apply, per server.
pub fn host(url: &Url) -> String {
    let port = url.port_or_known_default().unwrap_or_default();
    format!("{}:{port}", url.host_str().unwrap_or_default())
}

/// Parses an address with `parse`, and returns an error if it is not valid.
fn check(
    text: &str,
    longest_bytes: usize,
    parse: impl FnOnce(&str) -> Result<Url, url::ParseError>,
) -> Result<Url, BadAddress> {
    // The URL parser would drop U+0000 at either end and encode it elsewhere, but the text is
    // stored and compared as it was sent, and PostgreSQL stores no U+0000.
    if text.contains('\0') {
        return Err(BadAddress::ContainsNul);
    }
    if text.len() > longest_bytes {
        return Err(BadAddress::TooLong { longest_bytes });
    }
    let without_scheme = || with_scheme(text).map(BadAddress::NoScheme);
    let url = parse(text).map_err(|err| without_scheme().unwrap_or(BadAddress::NotAUrl(err)))?;
    if !matches!(url.scheme(), "http" | "https") {
        let other = || BadAddress::Scheme(url.scheme().to_owned());
        return Err(without_scheme().unwrap_or_else(other));
    }
    Ok(url)
}

/// Returns the address that was probably meant by `example.com/feed` or `localhost:8080/feed`; `None` if
/// the text begins with no host.
fn with_scheme(text: &str) -> Option<String> {
    /// What ends like this and has no path is the name of a file.
    const FILES: [&str; 9] = ["atom", "htm", "html", "json", "opml", "php", "rdf", "rss", "xml"];
    let bare = text.trim();
    let bare = bare.strip_prefix("//").unwrap_or(bare);
    let (server, is_whole) = match bare.find(['/', '?', '#']) {
        Some(end) => (&bare[..end], false),
        None => (bare, true),
    };
    let (host, port) = server.split_once(':').unwrap_or((server, "80"));
    let domain = host.rsplit_once('.').map(|(_, last)| last);
    let is_domain = domain.is_some_and(|last| {
        let is_name = last.len() > 1 && last.bytes().all(|byte| byte.is_ascii_alphabetic());
        is_name && !(is_whole && FILES.contains(&last))
    });
    let is_local = host == "localhost";
    if !(is_domain || is_local) || port.parse::<u16>().is_err() {
        return None;
    }
    let url = format!("{}://{bare}", if is_local { "http" } else { "https" });
    Url::parse(&url).is_ok().then_some(url)
}

/// Why a text is not a valid [`Topic`] or [`Callback`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadAddress {
    /// The text is not an absolute URL.
    #[error("not a URL: {0}")]
    NotAUrl(url::ParseError),
    /// The text begins with a host; holds the URL that was probably meant.
    #[error("did you mean {0}? It has no http:// or https://")]
    NoScheme(String),
    /// The scheme of the URL is not supported.
    #[error("{0}: URLs are not supported, only http: and https:")]
    Scheme(String),
    /// The URL is too long.
    #[error("longer than {longest_bytes} bytes")]
    TooLong {
        /// The maximum length in bytes.
        longest_bytes: usize,
    },
    /// U+0000 somewhere in the text.
    #[error("the character U+0000 is not allowed")]
    ContainsNul,
    /// The user name stands for the headers with which a resource is fetched.
    #[error("the user name is reserved: the feed is named by its URL without it")]
    OwnHeaders,
    /// The callback contains a user name or password.
    #[error("a callback may not carry a user name or password")]
    Credentials,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_topic_is_kept_byte_for_byte() {
        for text in ["http://Example.COM", "https://a.test/%7Efeed?b=1&a=2", "http://a.test/x#frag"]
        {
            assert_eq!(Topic::parse(text).unwrap().as_str(), text);
        }
    }

    #[test]
    fn a_topic_is_displayed_without_its_secrets() {
        for text in
            ["https://a.test/feed?page=2", "https://a.test/feed?token=x", "https://u:p@a.test/"]
        {
            assert_eq!(Topic::parse(text).unwrap().redacted(), redaction::feed(text));
        }
        assert!(
            !Topic::parse("https://a.test/feed?token=secret")
                .unwrap()
                .redacted()
                .contains("secret")
        );
    }

    #[test]
    fn a_fragment_is_not_fetched() {
        let topic = Topic::parse("https://a.test/page#.h-entry").unwrap();
        assert_eq!(topic.fetch_url().as_str(), "https://a.test/page");
        assert_eq!(topic.fragment(), Some(".h-entry"));
        for whole in ["https://a.test/page", "https://a.test/page#"] {
            assert_eq!(Topic::parse(whole).unwrap().fragment(), None, "{whole}");
        }
        assert_eq!(Topic::parse("https://a.test/page##x").unwrap().fragment(), Some("#x"));
    }

    #[test]
    fn what_is_no_web_address_is_refused() {
        let cases = [
            ("feed.xml", BadAddress::NotAUrl(url::ParseError::RelativeUrlWithoutBase)),
            ("ftp://a.test/feed", BadAddress::Scheme("ftp".to_owned())),
            ("\0https://a.test/", BadAddress::ContainsNul),
            ("https://a.test/a\0b", BadAddress::ContainsNul),
            ("https://a.test/\0", BadAddress::ContainsNul),
        ];
        for (text, want) in cases {
            assert_eq!(Topic::parse(text).unwrap_err(), want, "{text:?}");
            assert_eq!(Callback::parse(text).unwrap_err(), want, "{text:?}");
        }
        let evil = Callback::parse("http://victim:80@evil.example/");
        assert_eq!(evil.unwrap_err(), BadAddress::Credentials);
    }

    #[test]
    fn a08_an_address_without_a_scheme_is_answered_with_the_one_that_was_meant() {
        #[rustfmt::skip]
        let cases = [
            ("example.com/feed",        Some("https://example.com/feed")),
            ("example.com",             Some("https://example.com")),
            ("www.example.co.uk?a=b",   Some("https://www.example.co.uk?a=b")),
            ("//example.com/feed",      Some("https://example.com/feed")),
            ("example.com:8443/feed",   Some("https://example.com:8443/feed")),
            ("localhost:8080/feed",     Some("http://localhost:8080/feed")),
            ("feed.xml",                None),
            ("feeds/feed.xml",          None),
            ("mailto:ada@example.com",  None),
            ("ftp://example.com/feed",  None),
            ("tides",                   None),
            ("",                        None),
        ];
        for (text, want) in cases {
            let meant = match Topic::parse(text) {
                Err(BadAddress::NoScheme(meant)) => Some(meant),
                _ => None,
            };
            assert_eq!(meant.as_deref(), want, "{text}");
        }
    }

    #[test]
    fn a_callback_beside_another_is_parsed_like_any() {
        let other = Callback::parse("http://a.test:81/hooks/1?user=1#top").unwrap();
        let paths = [
            "",
            "/",
            "/x",
            "/x/../y?a= b#c",
            "/x//evil.test",
            "/1?",
            "/é",
            "//evil.test/",
            "/\\evil.test/",
            "/\t/evil.test/",
            "/ /evil.test",
            "/x ",
            "/x\n",
            "/x\0",
            "/x\\y",
            "/%2f/z",
            ".evil.test/x",
            "0/x",
            "?x",
            "#x",
            "@evil.test/x",
            "\t/x",
        ];
        let servers =
            ["http://a.test:81", "HTTP://a.test:81", "http://u@a.test:81", "https://a.test:81"];
        for server in servers {
            for path in paths {
                let text = format!("{server}{path}");
                let beside = Callback::parse_beside(text.clone(), Some(&other));
                assert_eq!(beside, Callback::parse(text.clone()), "{text:?}");
            }
        }
        let long = format!("http://a.test:81/{}", "x".repeat(Callback::LONGEST_BYTES));
        assert_eq!(Callback::parse_beside(long.clone(), Some(&other)), Callback::parse(long));
    }

    #[test]
    fn the_null_device_is_known() {
        let cases = [
            ("https://push.superfeedr.com/dev/null", true),
            ("http://a.test/dev/null/?x=1", true),
            ("http://a.test/x/dev/null", false),
        ];
        for (text, want) in cases {
            assert_eq!(Callback::parse(text).unwrap().is_null_device(), want, "{text}");
        }
    }

    #[test]
    fn hosts_carry_their_port() {
        let cases = [("https://a.test/x", "a.test:443"), ("http://A.test:81/", "a.test:81")];
        for (text, want) in cases {
            assert_eq!(Callback::parse(text).unwrap().host(), want);
        }
    }
}
