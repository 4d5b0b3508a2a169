//! The host that a request names, by which requests of a browser that was misled by DNS are recognized.
//!
//! A page of another site can make its own name resolve to an address of this gateway (DNS
//! rebinding). To the browser, requests to that name are then requests to the page's own site: they
//! have no `Origin`, they come from the network of the browser, and the page may read the responses.
//! But they name the host of the page, which is not one of this gateway.

use std::net::IpAddr;

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

#[cfg(test)]
mod tests {
    use super::*;

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
