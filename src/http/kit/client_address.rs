//! The address of the client that sent a request.
//!
//! rssCloud sends notifications "to the IP address the request came from" (seed 000), so a client
//! that could choose this address could make feedgate call anybody. `X-Forwarded-For` is therefore
//! trusted from the operator's own proxies only, and only its right-most hop that is not such a
//! proxy (rule S28).

use std::net::{IpAddr, SocketAddr};
use std::sync::Once;

use http::HeaderMap;
use ipnet::IpNet;
use tracing::warn;

use crate::net::is_public;

/// The other end of the connection that a request came through: the client, or a proxy. The
/// listener adds it to every request as an extension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerAddr(pub SocketAddr);

/// Returns the address of the client behind `peer`.
pub(crate) fn find(peer: IpAddr, headers: &HeaderMap, trusted: &[IpNet]) -> IpAddr {
    let is_trusted = |ip: &IpAddr| trusted.iter().any(|network| network.contains(ip));
    let mut client = peer.to_canonical();
    if !is_trusted(&client) {
        return client;
    }
    let lines = headers.get_all("x-forwarded-for").iter().filter_map(|line| line.to_str().ok());
    let hops: Vec<&str> = lines.flat_map(|line| line.split(',')).collect();
    for hop in hops.into_iter().rev() {
        // A hop that does not parse was not written by a trusted proxy, so the hops before it
        // may be anything.
        let Some(ip) = parse(hop.trim()) else { break };
        client = ip;
        if !is_trusted(&client) {
            break;
        }
    }
    client
}

/// Returns whether `peer` is a proxy that is not trusted to name its client.
pub(crate) fn is_hidden(peer: IpAddr, headers: &HeaderMap, trusted: &[IpNet]) -> bool {
    let peer = peer.to_canonical();
    let is_passed_on = ["x-forwarded-for", "forwarded", "via", "x-real-ip"];
    is_passed_on.iter().any(|name| headers.contains_key(*name))
        && !trusted.iter().any(|network| network.contains(&peer))
}

/// Returns the address whose budget of requests a client takes from; `None` for clients at addresses
/// that are not public, which belong to the operator.
///
/// A proxy of the operator that the settings do not name would exempt everybody behind it, so its
/// clients count by the last hop of `X-Forwarded-For`, which is what the proxy added. Clients of a
/// proxy that adds none share one budget. The proxy is logged once.
pub(crate) fn limited_as(
    peer: IpAddr,
    client: IpAddr,
    headers: &HeaderMap,
    is_hidden: bool,
) -> Option<IpAddr> {
    static NOTICED: Once = Once::new();
    if is_public(client) {
        return Some(client);
    }
    if !is_hidden {
        return None;
    }
    NOTICED.call_once(|| {
        warn!(
            proxy = %peer,
            "requests come through a proxy that FEEDGATE_TRUSTED_PROXIES does not name: the \
             addresses of its clients are not trusted, and rssCloud subscribers behind it cannot \
             register without a domain"
        );
    });
    let mut lines = headers.get_all("x-forwarded-for").iter().filter_map(|line| line.to_str().ok());
    let hop = lines.next_back().and_then(|line| line.split(',').next_back());
    let hop = hop.and_then(|hop| parse(hop.trim())).filter(|hop| is_public(*hop));
    Some(hop.unwrap_or(peer))
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

    #[test]
    fn t09_clients_behind_a_proxy_that_is_not_named_are_limited() {
        #[rustfmt::skip]
        let cases = [
            ("a client",                          "8.8.4.4",     None,                        Some("8.8.4.4")),
            ("a program of the operator",         "127.0.0.1",   None,                        None),
            ("the proxy added its client",        "127.0.0.1",   Some("10.1.1.1, 8.8.8.8"),   Some("8.8.8.8")),
            ("the proxy added another proxy",     "127.0.0.1",   Some("8.8.8.8, 10.0.0.2"),   Some("127.0.0.1")),
            ("the proxy added nothing",           "127.0.0.1",   Some("unknown"),             Some("127.0.0.1")),
        ];
        for (why, peer, forwarded, want) in cases {
            let mut headers = HeaderMap::new();
            if let Some(line) = forwarded {
                headers.append("x-forwarded-for", line.parse().unwrap());
            }
            let (peer, hidden) = (peer.parse().unwrap(), forwarded.is_some());
            let got = limited_as(peer, peer, &headers, hidden);
            assert_eq!(got, want.map(|text| text.parse().unwrap()), "{why}");
        }
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
        let trusted = ["10.0.0.0/8".parse().unwrap()];
        for (why, peer, lines, want) in cases {
            let mut headers = HeaderMap::new();
            for line in lines {
                headers.append("x-forwarded-for", line.parse().unwrap());
            }
            let got = find(peer.parse().unwrap(), &headers, &trusted);
            assert_eq!(got, want.parse::<IpAddr>().unwrap(), "{why}");
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
        let trusted = ["10.0.0.0/8".parse().unwrap()];
        for (why, peer, header, want) in cases {
            let mut headers = HeaderMap::new();
            if let Some(name) = header {
                headers.insert(name, "127.0.0.1".parse().unwrap());
            }
            assert_eq!(is_hidden(peer.parse().unwrap(), &headers, &trusted), want, "{why}");
        }
    }
}
