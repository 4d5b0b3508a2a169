//! The address of the client that sent a request, and how certain it is.
//!
//! rssCloud sends notifications "to the IP address the request came from" (seed 000), so a client
//! that could choose this address could make feedgate call anybody. `X-Forwarded-For` is therefore
//! trusted from the operator's own proxies only, and only its right-most hop that is not such a
//! proxy (rule S28).
//!
//! Only programs on the gateway's own machine are taken for the operator's, and only if nothing
//! suggests that they pass on the request of somebody else. Private addresses are those of proxies,
//! of bridges of containers and of networks with address translation, behind which anybody may be.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::Once;

use http::{HeaderMap, HeaderName};
use ipnet::IpNet;
use tracing::warn;

/// The header by which trusted proxies name their clients.
const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// Headers that only proxies add: a request with one of them is passed on for somebody else.
const ADDED_BY_PROXIES: [&str; 13] = [
    "x-forwarded-for",
    "forwarded",
    "via",
    "x-real-ip",
    "x-forwarded",
    "x-forwarded-host",
    "x-forwarded-proto",
    "x-forwarded-port",
    "x-client-ip",
    "x-cluster-client-ip",
    "true-client-ip",
    "cf-connecting-ip",
    "fly-client-ip",
];

/// The other end of the connection that a request came through: the client, or a proxy. The
/// listener adds it to every request as an extension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerAddr(pub SocketAddr);

/// What is known of the client of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ClientAddress {
    /// The address of the client, or of the last proxy before it that is known; `None` where the
    /// listener does not know it.
    pub(crate) ip: Option<IpAddr>,
    /// Whether `ip` is that of a proxy which does not say for whom it speaks, or is not trusted to.
    pub(crate) is_hidden: bool,
}

impl ClientAddress {
    /// Returns whether the client is a program on the gateway's own machine, and so the operator's.
    pub(crate) fn is_local(self) -> bool {
        !self.is_hidden && self.ip.is_some_and(|ip| ip.is_loopback())
    }

    /// Returns the address whose budget of requests the client takes from; `None` for programs on
    /// the gateway's own machine, which are not limited. Clients whose address is not certain share
    /// the budget of the peer: what an untrusted header says may change with each request.
    pub(crate) fn limited_as(self) -> Option<IpAddr> {
        match self.is_local() {
            true => None,
            false => Some(self.ip.unwrap_or(IpAddr::V6(Ipv6Addr::UNSPECIFIED))),
        }
    }
}

/// Returns what is known of the client behind `peer`.
pub(crate) fn find(peer: Option<IpAddr>, headers: &HeaderMap, trusted: &[IpNet]) -> ClientAddress {
    let Some(peer) = peer.map(|peer| peer.to_canonical()) else {
        return ClientAddress { ip: None, is_hidden: true };
    };
    let is_trusted = |ip: &IpAddr| trusted.iter().any(|network| network.contains(ip));
    let is_passed_on = ADDED_BY_PROXIES.iter().any(|name| headers.contains_key(*name));
    if !is_trusted(&peer) || !headers.contains_key(FORWARDED_FOR) {
        return ClientAddress { ip: Some(peer), is_hidden: is_passed_on };
    }
    // A line that is no text is kept as a hop that does not parse.
    let lines = headers.get_all(FORWARDED_FOR).iter().map(|line| line.to_str().unwrap_or_default());
    let hops: Vec<&str> = lines.flat_map(|line| line.split(',')).collect();
    let mut client = peer;
    for hop in hops.into_iter().rev() {
        // A hop that does not parse was not written by a trusted proxy, so the hops before it
        // may be anything.
        let Some(ip) = parse(hop.trim()) else {
            return ClientAddress { ip: Some(client), is_hidden: true };
        };
        client = ip;
        if !is_trusted(&client) {
            break;
        }
    }
    ClientAddress { ip: Some(client), is_hidden: false }
}

/// Logs a proxy that the settings do not name, once.
pub(crate) fn notice_proxy(peer: Option<IpAddr>, client: ClientAddress) {
    static NOTICED: Once = Once::new();
    let Some(peer) = peer.filter(|_| client.is_hidden) else { return };
    NOTICED.call_once(|| {
        warn!(
            proxy = %peer,
            "requests come through a proxy that FEEDGATE_TRUSTED_PROXIES does not name, or that \
             names no client in X-Forwarded-For: all of its clients share one budget of requests, \
             and rssCloud subscribers behind it cannot register without a domain"
        );
    });
}

/// Returns an address, perhaps with a port, perhaps in brackets.
fn parse(hop: &str) -> Option<IpAddr> {
    let bare = hop.strip_prefix('[').and_then(|rest| rest.split(']').next());
    let bare = bare.unwrap_or(hop);
    let without_port = || bare.rsplit_once(':').and_then(|(ip, _)| ip.parse().ok());
    bare.parse::<IpAddr>().ok().or_else(without_port).map(|ip| ip.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(peer: &str, lines: &[(&str, &[u8])], trusted: &str) -> ClientAddress {
        let mut headers = HeaderMap::new();
        for (name, line) in lines {
            let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
            headers.append(name, http::HeaderValue::from_bytes(line).unwrap());
        }
        let trusted: Vec<IpNet> = trusted.split(',').filter_map(|net| net.parse().ok()).collect();
        find(Some(peer.parse().unwrap()), &headers, &trusted)
    }

    #[test]
    fn h10_only_programs_on_this_machine_are_not_limited() {
        const XFF: &str = "x-forwarded-for";
        const PROXIES: &str = "10.0.0.0/8,127.0.0.0/8";
        type Lines = &'static [(&'static str, &'static [u8])];
        type Case = (&'static str, &'static str, &'static str, Lines, Option<&'static str>);
        #[rustfmt::skip]
        let cases: &[Case] = &[
            ("a client of the internet",           "8.8.4.4",          "",      &[],                            Some("8.8.4.4")),
            ("a program on this machine",          "127.0.0.1",        "",      &[],                            None),
            ("over IPv6",                          "::1",              "",      &[],                            None),
            ("IPv4 in IPv6",                       "::ffff:127.0.0.1", "",      &[],                            None),
            ("beside a declared proxy",            "127.0.0.1",        PROXIES, &[],                            None),
            ("a private peer",                     "10.0.0.5",         "",      &[],                            Some("10.0.0.5")),
            ("a private peer in IPv6",             "::ffff:10.0.0.5",  "",      &[],                            Some("10.0.0.5")),
            ("a unique local peer",                "fd00::5",          "",      &[],                            Some("fd00::5")),
            ("a private peer invents a client",    "10.0.0.5",         "",      &[(XFF, b"8.8.8.8")],           Some("10.0.0.5")),
            ("so does one on this machine",        "127.0.0.1",        "",      &[(XFF, b"8.8.8.8")],           Some("127.0.0.1")),
            ("a proxy by another header",          "127.0.0.1",        "",      &[("forwarded", b"for=_x")],    Some("127.0.0.1")),
            ("a declared proxy names its client",  "10.0.0.1",         PROXIES, &[(XFF, b"8.8.8.8")],           Some("8.8.8.8")),
            ("it names a private client",          "10.0.0.1",         PROXIES, &[(XFF, b"192.168.0.9")],       Some("192.168.0.9")),
            ("it names itself",                    "10.0.0.1",         PROXIES, &[(XFF, b"10.0.0.1")],          Some("10.0.0.1")),
            ("it names nobody",                    "10.0.0.1",         PROXIES, &[],                            Some("10.0.0.1")),
            ("it names nobody, on this machine",   "127.0.0.1",        PROXIES, &[(XFF, b"")],                  Some("127.0.0.1")),
            ("it names nobody readable",           "127.0.0.1",        PROXIES, &[(XFF, b"unknown")],           Some("127.0.0.1")),
            ("it names nobody in ASCII",           "127.0.0.1",        PROXIES, &[(XFF, b"8.8.8.8, \xff")],     Some("127.0.0.1")),
            ("a line that is no text comes last",  "127.0.0.1",        PROXIES, &[(XFF, b"8.8.8.8"), (XFF, b"\xff")], Some("127.0.0.1")),
            ("it names its client elsewhere only", "127.0.0.1",        PROXIES, &[("x-real-ip", b"8.8.8.8")],   Some("127.0.0.1")),
        ];
        for (why, peer, trusted, lines, want) in cases {
            let got = found(peer, lines, trusted).limited_as();
            assert_eq!(got, want.map(|text| text.parse().unwrap()), "{why}");
        }
        let unknown = find(None, &HeaderMap::new(), &[]);
        assert!(unknown.limited_as().is_some() && unknown.is_hidden, "no address at all");
    }

    #[test]
    fn only_trusted_proxies_name_their_client() {
        #[rustfmt::skip]
        let cases = [
            ("a client sends the header itself",  "203.0.113.9",  vec!["10.0.0.7"],                "203.0.113.9"),
            ("our proxy names its client",        "10.0.0.1",     vec!["203.0.113.9"],             "203.0.113.9"),
            ("what the client made up comes first", "10.0.0.1",   vec!["127.0.0.1, 203.0.113.9"],  "203.0.113.9"),
            ("two proxies of ours",               "10.0.0.1",     vec!["203.0.113.9, 10.0.0.2"],   "203.0.113.9"),
            ("the header in two lines",           "10.0.0.1",     vec!["1.1.1.1", "203.0.113.9"],  "203.0.113.9"),
            ("with a port",                       "10.0.0.1",     vec!["203.0.113.9:4711"],        "203.0.113.9"),
            ("IPv6 in brackets",                  "10.0.0.1",     vec!["[2001:db8::1]:4711"],      "2001:db8::1"),
            ("IPv4 in IPv6",                      "::ffff:10.0.0.1", vec!["::ffff:203.0.113.9"],   "203.0.113.9"),
            ("rubbish hides what is before it",   "10.0.0.1",     vec!["203.0.113.9, unknown"],    "10.0.0.1"),
            ("no header",                         "10.0.0.1",     vec![],                          "10.0.0.1"),
        ];
        for (why, peer, lines, want) in cases {
            let lines: Vec<_> =
                lines.iter().map(|line| ("x-forwarded-for", line.as_bytes())).collect();
            let got = found(peer, &lines, "10.0.0.0/8");
            assert_eq!(got.ip, Some(want.parse::<IpAddr>().unwrap()), "{why}");
        }
    }

    #[test]
    fn a_client_behind_an_unknown_proxy_is_hidden() {
        #[rustfmt::skip]
        let cases = [
            ("a direct connection",            "127.0.0.1", None,                    false),
            ("a proxy that is not listed",     "127.0.0.1", Some("x-forwarded-for"), true),
            ("with the header of RFC 7239",    "127.0.0.1", Some("forwarded"),       true),
            ("one that names nobody",          "127.0.0.1", Some("via"),             true),
            ("our own proxy",                  "10.0.0.1",  Some("x-forwarded-for"), false),
        ];
        for (why, peer, header, want) in cases {
            let lines: Vec<_> =
                header.into_iter().map(|name| (name, b"127.0.0.1".as_slice())).collect();
            assert_eq!(found(peer, &lines, "10.0.0.0/8").is_hidden, want, "{why}");
        }
    }
}
