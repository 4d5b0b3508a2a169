//! Conditional requests: whether the client already has the current version of a document.

use chrono::{DateTime, Utc};
use http::{HeaderMap, header};

/// Returns whether `If-None-Match` names this entity tag. Tags are compared weakly (RFC 9110
/// `#field.if-none-match`).
pub(crate) fn etag_matches(headers: &HeaderMap, etag: &str) -> bool {
    fn opaque(tag: &str) -> &str {
        tag.trim().trim_start_matches("W/")
    }
    let lists = headers.get_all(header::IF_NONE_MATCH).iter();
    let mut tags = lists.filter_map(|list| list.to_str().ok()).flat_map(|list| list.split(','));
    tags.any(|tag| tag.trim() == "*" || opaque(tag) == opaque(etag))
}

/// Returns whether the client has the version with this entity tag, which was last modified at
/// `modified`, if that is known. Dates count only if the client sends no entity tag (RFC 9110
/// `#field.if-modified-since`).
pub(crate) fn is_unchanged(
    headers: &HeaderMap,
    etag: &str,
    modified: impl Into<Option<DateTime<Utc>>>,
) -> bool {
    if headers.contains_key(header::IF_NONE_MATCH) {
        return etag_matches(headers, etag);
    }
    let since = headers.get(header::IF_MODIFIED_SINCE).and_then(|value| value.to_str().ok());
    let since = since.and_then(|since| httpdate::parse_http_date(since).ok());
    let since = since.map(|since| DateTime::<Utc>::from(since).timestamp());
    modified.into().zip(since).is_some_and(|(at, since)| at.timestamp() <= since)
}

/// Returns whether `Accept-Encoding` names gzip, and does not refuse it.
pub(crate) fn takes_gzip(accepted: &str) -> bool {
    accepted.split(',').any(|coding| {
        let (name, parameters) = coding.split_once(';').unwrap_or((coding, ""));
        let weight = parameters.trim().strip_prefix("q=").map(|q| q.trim().parse::<f32>());
        let is_gzip =
            ["gzip", "x-gzip"].iter().any(|name_of| name.trim().eq_ignore_ascii_case(name_of));
        is_gzip && !matches!(weight, Some(Ok(0.0)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gzip_is_sent_only_if_the_client_names_it() {
        #[rustfmt::skip]
        let cases = [
            ("gzip", true), ("deflate, gzip;q=0.5, br", true), ("x-gzip", true), ("GZIP", true),
            ("", false), ("br", false), ("gzip;q=0", false), ("gzip; q=0.0", false),
        ];
        for (accepted, want) in cases {
            assert_eq!(takes_gzip(accepted), want, "{accepted}");
        }
    }
}
