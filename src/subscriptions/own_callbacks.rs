//! Callbacks at this gateway itself (rule S11).
//!
//! A notification to an endpoint of this gateway would be taken for a request: a ping of the topic
//! that it is about makes a loop. So no callback may be at its public address, or at the address
//! that it listens on. The null device is never contacted, and may be anywhere.

use std::net::{IpAddr, SocketAddr};

use url::{Host, Url};

use super::{SubscriptionRefusal, SubscriptionService};
use feedgate_core::topic::Callback;

impl SubscriptionService {
    /// Refuses a callback that is at this gateway.
    pub(super) fn check_is_elsewhere(
        &self,
        callback: &Callback,
    ) -> Result<(), SubscriptionRefusal> {
        let url = callback.url();
        let is_public = self.public_url.as_ref().is_some_and(|own| is_below(url, own));
        let is_own = is_public || self.listen.is_some_and(|own| is_served_at(url, own));
        match is_own && !callback.is_null_device() {
            true => Err(SubscriptionRefusal::OwnCallback),
            false => Ok(()),
        }
    }
}

/// Returns whether `url` is below `own`, by HTTP or HTTPS.
fn is_below(url: &Url, own: &Url) -> bool {
    let is_usual = |url: &Url| url.port().is_none();
    let is_same_port = url.port_or_known_default() == own.port_or_known_default();
    let is_same_server =
        url.host() == own.host() && (is_same_port || is_usual(url) && is_usual(own));
    let below = url.path().strip_prefix(own.path().trim_end_matches('/'));
    is_same_server && below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Returns whether `url` is served by a listener at `own`.
fn is_served_at(url: &Url, own: SocketAddr) -> bool {
    let ip = match url.host() {
        Some(Host::Ipv4(ip)) => IpAddr::V4(ip),
        Some(Host::Ipv6(ip)) => IpAddr::V6(ip),
        Some(Host::Domain(_)) | None => return false,
    };
    let is_same_address = ip == own.ip() || own.ip().is_unspecified() && ip.is_loopback();
    is_same_address && url.port_or_known_default() == Some(own.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s11_what_is_below_the_public_address_is_this_gateway() {
        #[rustfmt::skip]
        let cases = [
            ("https://gate.test/hub",        "https://gate.test/",       true),
            ("https://GATE.test",            "https://gate.test/",       true),
            ("http://gate.test/hub",         "https://gate.test/",       true),
            ("https://gate.test:443/hub",    "https://gate.test/",       true),
            ("https://gate.test:8443/hub",   "https://gate.test/",       false),
            ("https://a.gate.test/hub",      "https://gate.test/",       false),
            ("https://gate.test/feeds/hub",  "https://gate.test/feeds/", true),
            ("https://gate.test/feeds",      "https://gate.test/feeds/", true),
            ("https://gate.test/feedsearch", "https://gate.test/feeds/", false),
            ("https://gate.test/hub",        "https://gate.test/feeds/", false),
        ];
        for (url, own, want) in cases {
            let (url, own) = (Url::parse(url).unwrap(), Url::parse(own).unwrap());
            assert_eq!(is_below(&url, &own), want, "{url} {own}");
        }
    }

    #[test]
    fn s11_what_the_listener_serves_is_this_gateway() {
        #[rustfmt::skip]
        let cases = [
            ("http://127.0.0.1:8080/hub", "127.0.0.1:8080", true),
            ("http://127.0.0.1:8081/hub", "127.0.0.1:8080", false),
            ("http://127.0.0.2:8080/hub", "0.0.0.0:8080",   true),
            ("http://[::1]:8080/hub",     "[::]:8080",      true),
            ("http://8.8.8.8:8080/hub",   "0.0.0.0:8080",   false),
            ("http://gate.test:8080/hub", "127.0.0.1:8080", false),
        ];
        for (url, own, want) in cases {
            let url = Url::parse(url).unwrap();
            assert_eq!(is_served_at(&url, own.parse().unwrap()), want, "{url} {own}");
        }
    }
}
