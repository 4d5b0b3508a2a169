//! The host that a request names, by which requests of a browser that was misled by DNS are recognized.
//!
//! A page of another site can make its own name resolve to an address of this gateway (DNS
//! rebinding). To the browser, requests to that name are then requests to the page's own site: they
//! have no `Origin`, they come from the network of the browser, and the page may read the responses.
//! But they name the host of the page, which is not one of this gateway.

use std::net::IpAddr;

use http::uri::Authority;
use http::{HeaderMap, HeaderValue, header};
use url::Url;

/// The host that a request names in `Host`, or in `:authority` of HTTP/2.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RequestHost {
    /// The request names none, as in HTTP/1.0. No browser sends such a request.
    Missing,
    /// A name or an address, without the port.
    Named(String),
    /// The request names two different hosts, or something that is not a host.
    Invalid,
}

impl RequestHost {
    /// Returns whether the request names a host by which this gateway is reached: an IP address,
    /// a name without a dot, such as `localhost` or that of a container, or the host of the public
    /// URL. An address and a name without a dot cannot be the name of another site.
    pub(crate) fn is_own(&self, public_url: &Url) -> bool {
        let host = match self {
            RequestHost::Missing => return true,
            RequestHost::Invalid => return false,
            RequestHost::Named(host) => host.strip_suffix('.').unwrap_or(host),
        };
        let bare = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
        bare.parse::<IpAddr>().is_ok()
            || (!host.is_empty() && !host.contains('.'))
            || public_url.host_str().is_some_and(|public| host.eq_ignore_ascii_case(public))
    }
}

/// Returns whether the `Origin` of a request names another origin than that of this gateway, which is
/// `authority` or, behind a proxy, that of the public URL. A page over plain HTTP is not of the origin
/// of a public URL with HTTPS. `null` stands for an origin that the browser does not tell: it is that of
/// a form of this gateway only if `Sec-Fetch-Site` says so, as behind a proxy that adds
/// `Referrer-Policy: no-referrer` to its pages.
pub(crate) fn is_foreign(
    headers: &HeaderMap,
    authority: Option<&Authority>,
    public_url: &Url,
) -> bool {
    let mut origins = headers.get_all(header::ORIGIN).iter();
    let Some(origin) = origins.next() else { return false };
    let is_hidden_but_own =
        origin == "null" && headers.get("sec-fetch-site").is_some_and(|site| site == "same-origin");
    if is_hidden_but_own && origins.next().is_none() {
        return false;
    }
    origins.next().is_some() || names_other_origin(origin, authority, public_url)
}

/// Returns whether the `Referer` of a request names a page of another origin than that of this gateway, as
/// [`is_foreign`] tells. Many requests have none.
pub(crate) fn is_referer_foreign(
    headers: &HeaderMap,
    authority: Option<&Authority>,
    public_url: &Url,
) -> bool {
    let referer = headers.get(header::REFERER);
    referer.is_some_and(|referer| names_other_origin(referer, authority, public_url))
}

fn names_other_origin(text: &HeaderValue, authority: Option<&Authority>, public_url: &Url) -> bool {
    let origin = text.to_str().ok().and_then(|text| Url::parse(text).ok());
    let Some(origin) = origin.filter(Url::has_host) else { return true };
    if origin.origin() == public_url.origin() {
        return false;
    }
    let addressed = authority
        .and_then(|authority| Url::parse(&format!("{}://{authority}", origin.scheme())).ok());
    let is_addressed = addressed.is_some_and(|addressed| addressed.origin() == origin.origin());
    let is_downgraded = origin.scheme() != public_url.scheme()
        && public_url.scheme() == "https"
        && origin.host() == public_url.host()
        && origin.port().is_none();
    !is_addressed || is_downgraded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn h08_an_origin_is_that_of_the_gateway_or_foreign() {
        #[rustfmt::skip]
        let cases = [
            ("http://127.0.0.1:4711",      "127.0.0.1:4711",  "http://127.0.0.1:4711/",  false),
            ("http://127.0.0.1:4712",      "127.0.0.1:4711",  "http://127.0.0.1:4711/",  true),
            ("http://127.0.0.1",           "127.0.0.1:4711",  "http://127.0.0.1:4711/",  true),
            ("http://localhost:4711",      "localhost:4711",  "http://127.0.0.1:4711/",  false),
            ("http://LocalHost:4711",      "localhost:4711",  "http://127.0.0.1:4711/",  false),
            ("https://gateway.test",       "10.0.0.7:8080",   "https://gateway.test/",   false),
            ("https://gateway.test",       "gateway.test",    "https://gateway.test/gw", false),
            ("https://gateway.test:443",   "gateway.test",    "https://gateway.test/",   false),
            ("https://gateway.test:8443",  "gateway.test",    "https://gateway.test/",   true),
            ("http://gateway.test",        "gateway.test",    "https://gateway.test/",   true),
            ("https://gateway.test",       "gateway.test",    "http://gateway.test/",    false),
            ("https://blog.gateway.test",  "gateway.test",    "https://gateway.test/",   true),
            ("https://evil.test",          "gateway.test",    "https://gateway.test/",   true),
            ("null",                       "gateway.test",    "https://gateway.test/",   true),
            ("file://",                    "gateway.test",    "https://gateway.test/",   true),
            ("http://[::1]:4711",          "[::1]:4711",      "http://127.0.0.1:4711/",  false),
        ];
        for (origin, authority, public_url, want) in cases {
            let mut headers = HeaderMap::new();
            headers.insert(header::ORIGIN, origin.parse().unwrap());
            let (authority, public_url) =
                (authority.parse::<Authority>().unwrap(), Url::parse(public_url).unwrap());
            let found = is_foreign(&headers, Some(&authority), &public_url);
            assert_eq!(found, want, "{origin} at {authority}, {public_url}");
            let referer = HeaderValue::from_str(&format!("{origin}/page")).unwrap();
            let referer = HeaderMap::from_iter([(header::REFERER, referer)]);
            let found = is_referer_foreign(&referer, Some(&authority), &public_url);
            assert_eq!(found, want, "from {origin} at {authority}, {public_url}");
            let none = HeaderMap::new();
            assert!(!is_foreign(&none, Some(&authority), &public_url));
            assert!(!is_referer_foreign(&none, Some(&authority), &public_url));
        }
    }

    #[test]
    fn h08_a_hidden_origin_is_foreign_unless_the_browser_says_that_it_is_ours() {
        let public_url = Url::parse("https://gateway.test/").unwrap();
        #[rustfmt::skip]
        let cases: [(&[&str], Option<&str>, bool); 7] = [
            (&["null"],              Some("same-origin"), false),
            (&["null"],              Some("same-site"),   true),
            (&["null"],              Some("cross-site"),  true),
            (&["null"],              Some("none"),        true),
            (&["null"],              None,                true),
            (&["null", "null"],      Some("same-origin"), true),
            (&["https://evil.test"], Some("same-origin"), true),
        ];
        for (origins, site, want) in cases {
            let mut headers = HeaderMap::new();
            for origin in origins {
                headers.append(header::ORIGIN, origin.parse().unwrap());
            }
            if let Some(site) = site {
                headers.insert("sec-fetch-site", site.parse().unwrap());
            }
            assert_eq!(is_foreign(&headers, None, &public_url), want, "{origins:?}, {site:?}");
        }
    }

    #[test]
    fn t11_a_request_by_an_unknown_name_is_not_for_this_gateway() {
        #[rustfmt::skip]
        let cases = [
            ("127.0.0.1",            true),
            ("10.0.0.7",             true),
            ("[::1]",                true),
            ("localhost",            true),
            ("LocalHost.",           true),
            ("feedgate",             true),
            ("gateway.test",         true),
            ("Gateway.TEST",         true),
            ("evil.test",            false),
            ("127.0.0.1.evil.test",  false),
            ("localhost.evil.test",  false),
            ("gateway.test.evil.test", false),
            ("",                     false),
        ];
        let public_url = Url::parse("https://gateway.test/").unwrap();
        for (host, want) in cases {
            assert_eq!(RequestHost::Named(host.to_owned()).is_own(&public_url), want, "{host}");
        }
        assert!(RequestHost::Missing.is_own(&public_url));
        assert!(!RequestHost::Invalid.is_own(&public_url));
    }
}
