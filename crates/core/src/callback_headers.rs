//! The headers that an owner has sent with each request to a callback, or to the server of a feed: credentials.
//!
//! Their values are secrets: they are sealed in the store, sent to that server alone, and shown as
//! fingerprints. Headers that the gateway sets, that belong to a connection, or that say where a request
//! comes from are not the owner's to choose.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

/// Headers that an owner cannot choose.
#[rustfmt::skip]
const REFUSED: [&str; 49] = [
    // Of the connection (RFC 9110 `#field.connection`).
    "connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade", "expect",
    "http2-settings",
    // Of the request and its body.
    "host", "accept-encoding", "range", "if-match", "if-none-match", "if-modified-since",
    "if-unmodified-since", "if-range", "date", "digest", "repr-digest", "want-digest",
    // Of the gateway.
    "user-agent", "from", "link", "x-hub-signature", "x-hub-signature-256", "signature", "signature-input",
    "signature-agent",
    // Where a request comes from, and what is at that address only.
    "forwarded", "via", "x-real-ip", "true-client-ip", "x-original-url", "x-rewrite-url",
    "x-http-method-override", "x-http-method", "x-method-override", "metadata", "metadata-flavor",
    "x-aliyun-ecs-metadata-token", "x-client-ip", "x-cluster-client-ip", "fastly-client-ip", "cf-connecting-ip",
    "cf-connecting-ipv6", "x-forwarded", "x-original-host", "x-host",
];
/// The beginnings of others.
const REFUSED_BEGINNINGS: [&str; 10] = [
    "content-",
    "proxy-",
    "sec-",
    "webhook-",
    "x-forwarded-",
    "x-pubsubhubbub-",
    "x-superfeedr-",
    "x-feedgate-",
    "x-aws-ec2-",
    "x-envoy-",
];
/// Headers for a callback or a feed, each with a value that is a secret. `Debug` prints only their names.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct CallbackHeaders(Vec<(String, String)>);

impl CallbackHeaders {
    /// The name of the header that is made of an authorization.
    pub const AUTHORIZATION: &'static str = "authorization";
    /// The most headers.
    pub const MAX_HEADERS: usize = 8;
    /// The most bytes of all names and values together: room for a signed token, which servers accept
    /// in a header.
    pub const MAX_BYTES: usize = 4_096;

    /// Reads headers, each `NAME: VALUE` on a line of its own, and an authorization: `Bearer TOKEN`,
    /// `Basic LOGIN:PASSWORD`, which is encoded, or any other value of the header `Authorization`.
    pub fn parse(lines: &str, authorization: &str) -> Result<CallbackHeaders, BadCallbackHeaders> {
        let lines = lines.lines().map(str::trim).filter(|line| !line.is_empty());
        let pairs = lines.map(|line| line.split_once(':').ok_or(BadCallbackHeaders::NoColon));
        CallbackHeaders::from_pairs(pairs.collect::<Result<Vec<_>, _>>()?, authorization)
    }

    /// Checks names with values, and reads an authorization as [`parse`](Self::parse) does.
    pub fn from_pairs<'p>(
        pairs: impl IntoIterator<Item = (&'p str, &'p str)>,
        authorization: &str,
    ) -> Result<CallbackHeaders, BadCallbackHeaders> {
        let mut headers: Vec<(String, String)> = Vec::new();
        for (name, value) in pairs {
            headers.push((checked_name(name)?, value.trim().to_owned()));
        }
        if !authorization.trim().is_empty() {
            headers
                .push((Self::AUTHORIZATION.to_owned(), authorization_value(authorization.trim())?));
        }
        for (n, (name, value)) in headers.iter().enumerate() {
            let is_printable = value.bytes().all(|byte| matches!(byte, b'\t' | b' '..=b'~'));
            if value.is_empty() || !is_printable {
                return Err(BadCallbackHeaders::Value(name.clone()));
            }
            if headers[..n].iter().any(|(other, _)| other == name) {
                return Err(BadCallbackHeaders::Twice(name.clone()));
            }
        }
        let bytes: usize = headers.iter().map(|(name, value)| name.len() + value.len()).sum();
        match headers.len() > Self::MAX_HEADERS || bytes > Self::MAX_BYTES {
            true => Err(BadCallbackHeaders::TooMuch),
            false => Ok(CallbackHeaders(headers)),
        }
    }

    /// Reads the text that [`expose`](Self::expose) has written; `None` if it is not one.
    pub fn from_stored(text: &str) -> Option<CallbackHeaders> {
        let pair = |line: &str| {
            let (name, value) = line.split_once(": ")?;
            Some((name.to_owned(), value.to_owned()))
        };
        text.lines().map(pair).collect::<Option<_>>().map(CallbackHeaders)
    }

    /// Returns the headers with their values, as they are stored.
    pub fn expose(&self) -> String {
        let lines = self.0.iter().map(|(name, value)| format!("{name}: {value}\n"));
        lines.collect()
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the names, in lower case, with the values.
    pub fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Returns the names with texts by which an owner who knows the values recognizes them: the first 32
    /// bits of their SHA-256.
    pub fn fingerprints(&self) -> impl Iterator<Item = (&str, String)> {
        self.pairs().map(|(name, value)| {
            (name, format!("sha256:{}", hex::encode(&Sha256::digest(value)[..4])))
        })
    }
}

impl fmt::Debug for CallbackHeaders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.iter().map(|(name, _)| name)).finish()
    }
}

/// Why texts cannot be [`CallbackHeaders`]. No reason quotes a value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadCallbackHeaders {
    /// A line has no colon.
    #[error("each line must be a header, written NAME: VALUE")]
    NoColon,
    /// The name is none.
    #[error("the name of a header has letters, digits and hyphens only")]
    Name,
    /// The header is set by the gateway, or belongs to the connection.
    #[error("{0} cannot be chosen")]
    Refused(String),
    /// The value is empty, or has a character that is not printable ASCII.
    #[error("the value of {0} must be printable ASCII, and not empty")]
    Value(String),
    /// Two lines have the same name.
    #[error("{0} is given twice")]
    Twice(String),
    /// There are too many, or they are too long.
    #[error(
        "at most {} headers with {} bytes together are allowed",
        CallbackHeaders::MAX_HEADERS,
        CallbackHeaders::MAX_BYTES
    )]
    TooMuch,
    /// The authorization is not a scheme with credentials.
    #[error("the authorization must be Bearer TOKEN, Basic LOGIN:PASSWORD or SCHEME CREDENTIALS")]
    Authorization,
}

/// Returns the name of a header in lower case.
fn checked_name(name: &str) -> Result<String, BadCallbackHeaders> {
    let name = name.trim().to_ascii_lowercase();
    // Fewer characters than RFC 9110 allows (`#field.names`): some servers read others like these.
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    if name.is_empty() || !name.bytes().all(is_name) {
        return Err(BadCallbackHeaders::Name);
    }
    let is_refused = REFUSED.contains(&name.as_str())
        || REFUSED_BEGINNINGS.iter().any(|beginning| name.starts_with(beginning));
    match is_refused {
        true => Err(BadCallbackHeaders::Refused(name)),
        false => Ok(name),
    }
}

/// Returns the value of the header `Authorization`.
fn authorization_value(text: &str) -> Result<String, BadCallbackHeaders> {
    let (scheme, credentials) = text.split_once(' ').ok_or(BadCallbackHeaders::Authorization)?;
    let credentials = credentials.trim();
    let is_scheme = !scheme.is_empty()
        && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    if !is_scheme || credentials.is_empty() {
        return Err(BadCallbackHeaders::Authorization);
    }
    // Base64 has no colon, so what has one is not encoded yet (RFC 7617 `#section-2`).
    match scheme.eq_ignore_ascii_case("basic") && credentials.contains(':') {
        true => Ok(format!("Basic {}", STANDARD.encode(credentials))),
        false => Ok(format!("{scheme} {credentials}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_read_line_by_line_and_never_printed() {
        let headers =
            CallbackHeaders::parse("X-Api-Key: k3y\n\n x-tenant :7: a \r\n", "Basic ann:pass");
        let headers = headers.unwrap();
        let want =
            [("x-api-key", "k3y"), ("x-tenant", "7: a"), ("authorization", "Basic YW5uOnBhc3M=")];
        assert_eq!(headers.pairs().collect::<Vec<_>>(), want);
        assert_eq!(CallbackHeaders::from_stored(&headers.expose()), Some(headers.clone()));
        assert_eq!(format!("{headers:?}"), "{\"x-api-key\", \"x-tenant\", \"authorization\"}");
        let fingerprints: Vec<_> = headers.fingerprints().collect();
        assert_eq!(fingerprints[0], ("x-api-key", "sha256:a49b1287".to_owned()));
        assert!(CallbackHeaders::parse(" \n", " ").unwrap().is_empty());
        assert_eq!(CallbackHeaders::from_stored(""), Some(CallbackHeaders::default()));
        assert_eq!(CallbackHeaders::from_stored("x"), None);
    }

    #[test]
    fn what_cannot_be_sent_or_is_not_the_owners_to_choose_is_refused() {
        let refused = |name: &str| Err(BadCallbackHeaders::Refused(name.to_owned()));
        let many: String = (0..9).map(|n| format!("x-{n}: 1\n")).collect();
        let long = format!("x-long: {}", "y".repeat(4_096));
        #[rustfmt::skip]
        let cases = [
            ("x-api-key",                 "",           Err(BadCallbackHeaders::NoColon)),
            (": a",                       "",           Err(BadCallbackHeaders::Name)),
            ("x_api_key: a",              "",           Err(BadCallbackHeaders::Name)),
            ("x key: a",                  "",           Err(BadCallbackHeaders::Name)),
            ("Host: a.test",              "",           refused("host")),
            ("Content-Type: a/b",         "",           refused("content-type")),
            ("Transfer-Encoding: a",      "",           refused("transfer-encoding")),
            ("X-Hub-Signature: sha1=0",   "",           refused("x-hub-signature")),
            ("webhook-id: 1",             "",           refused("webhook-id")),
            ("X-Forwarded-For: ::1",      "",           refused("x-forwarded-for")),
            ("Metadata-Flavor: Google",   "",           refused("metadata-flavor")),
            ("x-a:",                      "",           Err(BadCallbackHeaders::Value("x-a".to_owned()))),
            ("x-a: \u{e9}",               "",           Err(BadCallbackHeaders::Value("x-a".to_owned()))),
            ("x-a: a\0",                  "",           Err(BadCallbackHeaders::Value("x-a".to_owned()))),
            ("x-a: 1\nX-A: 2",            "",           Err(BadCallbackHeaders::Twice("x-a".to_owned()))),
            ("Authorization: Bearer a",   "Bearer b",   Err(BadCallbackHeaders::Twice("authorization".to_owned()))),
            ("",                          "token",      Err(BadCallbackHeaders::Authorization)),
            ("",                          "a:b c",      Err(BadCallbackHeaders::Authorization)),
            (many.as_str(),               "",           Err(BadCallbackHeaders::TooMuch)),
            (long.as_str(),               "",           Err(BadCallbackHeaders::TooMuch)),
        ];
        for (lines, authorization, want) in cases {
            assert_eq!(
                CallbackHeaders::parse(lines, authorization),
                want,
                "{lines} {authorization}"
            );
        }
        for (given, want) in [
            ("Bearer a.b", "Bearer a.b"),
            ("basic YTpi", "basic YTpi"),
            ("Token  t=1", "Token t=1"),
        ] {
            let headers = CallbackHeaders::parse("", given).unwrap();
            assert_eq!(headers.pairs().collect::<Vec<_>>(), [("authorization", want)]);
        }
    }
}
