//! The addresses that a request may be sent to.
//!
//! An address is checked in its canonical form, so `::ffff:127.0.0.1` is `127.0.0.1`.
//! All other IPv6 addresses that wrap an IPv4 address (NAT64, 6to4, Teredo, `::a.b.c.d`) are
//! refused, because a relay would unwrap them where no check can see it. The tables are those
//! of the IANA special-purpose registries (S1, S7);
//! [`IpAddr::is_global`] would do some of it but is not stable.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use url::{Host, Url};

const fn v4(a: u8, b: u8, c: u8, d: u8, prefix: u8) -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), prefix)
}

const fn v6(a: u16, b: u16, prefix: u8) -> Ipv6Net {
    Ipv6Net::new_assert(Ipv6Addr::new(a, b, 0, 0, 0, 0, 0, 0), prefix)
}

/// IPv4 networks that are not on the public internet.
const INNER_V4: [Ipv4Net; 15] = [
    v4(0, 0, 0, 0, 8),       // "this network"; Linux takes 0.0.0.0 for loopback
    v4(10, 0, 0, 0, 8),      // private
    v4(100, 64, 0, 0, 10),   // shared by carriers
    v4(127, 0, 0, 0, 8),     // loopback
    v4(169, 254, 0, 0, 16),  // link-local, most metadata services
    v4(172, 16, 0, 0, 12),   // private
    v4(192, 0, 0, 0, 24),    // protocol assignments
    v4(192, 0, 2, 0, 24),    // documentation
    v4(192, 88, 99, 0, 24),  // 6to4 relays
    v4(192, 168, 0, 0, 16),  // private
    v4(198, 18, 0, 0, 15),   // benchmarks
    v4(198, 51, 100, 0, 24), // documentation
    v4(203, 0, 113, 0, 24),  // documentation
    v4(224, 0, 0, 0, 4),     // multicast
    v4(240, 0, 0, 0, 4),     // reserved, and broadcast
];

/// The only IPv6 network that is allocated for public use, apart from [`INNER_V6`].
const PUBLIC_V6: Ipv6Net = v6(0x2000, 0, 3);

/// The parts of [`PUBLIC_V6`] that are not public.
const INNER_V6: [Ipv6Net; 4] = [
    v6(0x2001, 0, 23),     // protocol assignments: Teredo, ORCHID
    v6(0x2001, 0xdb8, 32), // documentation
    v6(0x2002, 0, 16),     // 6to4
    v6(0x3fff, 0, 20),     // documentation
];

/// The metadata services of cloud providers, which disclose secrets to any internal client. Some
/// have public addresses. An allowed network does not include them; only an entry for exactly one
/// of these addresses does (rule S7).
const METADATA: [IpAddr; 7] = [
    IpAddr::V4(Ipv4Addr::new(169, 254, 169, 254)), // most clouds
    IpAddr::V4(Ipv4Addr::new(169, 254, 170, 2)),   // credentials of Amazon's containers
    IpAddr::V4(Ipv4Addr::new(100, 100, 100, 200)), // Alibaba
    IpAddr::V4(Ipv4Addr::new(168, 63, 129, 16)),   // Azure's wire server
    IpAddr::V4(Ipv4Addr::new(192, 0, 0, 192)),     // Oracle
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254)), // Amazon
    IpAddr::V6(Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254)), // Google
];

/// Returns whether a request may be sent to `ip`: the address is public, or the operator allowed
/// it.
pub fn is_allowed(ip: IpAddr, allowed: &[IpNet]) -> bool {
    is_listed(ip, allowed) || (is_public(ip) && !is_metadata(ip))
}

/// Returns whether the operator allowed `ip`.
pub fn is_listed(ip: IpAddr, allowed: &[IpNet]) -> bool {
    let ip = ip.to_canonical();
    if is_metadata(ip) {
        return allowed.contains(&IpNet::from(ip));
    }
    allowed.iter().any(|net| net.contains(&ip))
}

/// Returns whether `ip` is the metadata service of a cloud provider (rule S7).
pub fn is_metadata(ip: IpAddr) -> bool {
    METADATA.contains(&ip.to_canonical())
}

/// Returns whether `ip` is an address of the public internet.
pub fn is_public(ip: IpAddr) -> bool {
    match ip.to_canonical() {
        IpAddr::V4(ip) => !INNER_V4.iter().any(|net| net.contains(&ip)),
        IpAddr::V6(ip) => PUBLIC_V6.contains(&ip) && !INNER_V6.iter().any(|net| net.contains(&ip)),
    }
}

/// Returns whether a name is valid only inside a network (rule S2). Such a name may resolve only to
/// networks that the operator allowed.
pub fn is_inner_name(name: &str) -> bool {
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    let last = name.rsplit('.').next().unwrap_or_default();
    !name.contains('.') || matches!(last, "localhost" | "local" | "internal" | "onion")
}

/// Returns whether `url` points into a private network, judging by the URL alone: no name is looked
/// up.
pub fn is_inner(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(ip)) => !is_public(ip.into()),
        Some(Host::Ipv6(ip)) => !is_public(ip.into()),
        Some(Host::Domain(name)) => is_inner_name(name),
        None => true,
    }
}

/// Returns the network that an address counts for: one customer has at least a /64 of IPv6.
pub fn network(ip: IpAddr) -> u64 {
    match ip.to_canonical() {
        IpAddr::V4(ip) => u64::from(ip.to_bits()),
        IpAddr::V6(ip) => (ip.to_bits() >> 64) as u64,
    }
}

/// Returns an address as a network of its own, and the network around it, IPv4 /24 or IPv6 /48: the
/// smallest that is routed by itself. Both count for what one victim may receive.
pub fn address_and_network(ip: IpAddr) -> [IpNet; 2] {
    let ip = ip.to_canonical();
    let prefix = if ip.is_ipv4() { 24 } else { 48 };
    let around = IpNet::new_assert(ip, prefix).trunc();
    [IpNet::from(ip), around]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t03_an_address_counts_for_its_network() {
        let cases = [
            ("8.8.4.4", ["8.8.4.4/32", "8.8.4.0/24"]),
            ("::ffff:8.8.4.4", ["8.8.4.4/32", "8.8.4.0/24"]),
            ("2620:fe:1:2::3", ["2620:fe:1:2::3/128", "2620:fe:1::/48"]),
        ];
        for (ip, want) in cases {
            let found = address_and_network(ip.parse().unwrap());
            assert_eq!(found.map(|net| net.to_string()), want, "{ip}");
        }
    }

    #[test]
    fn a_url_tells_by_its_host_that_it_leads_inside() {
        #[rustfmt::skip]
        let cases = [
            ("https://example.org/",        false), ("https://8.8.8.8/",         false),
            ("http://10.1.2.3/feed",        true),  ("http://[::1]/",            true),
            ("http://[::ffff:10.0.0.1]/",   true),  ("http://2130706433/",       true),
            ("http://intranet/",            true),  ("http://printer.local./",   true),
        ];
        for (url, want) in cases {
            assert_eq!(is_inner(&Url::parse(url).unwrap()), want, "{url}");
        }
    }

    /// Each network with the addresses just outside and just inside of both ends.
    #[rustfmt::skip]
    const CASES: &[(&str, bool)] = &[
        // 0/8
        ("0.0.0.0", false), ("0.255.255.255", false), ("1.0.0.0", true),
        // 10/8
        ("9.255.255.255", true), ("10.0.0.0", false), ("10.255.255.255", false), ("11.0.0.0", true),
        // 100.64/10
        ("100.63.255.255", true), ("100.64.0.0", false), ("100.127.255.255", false), ("100.128.0.0", true),
        // 127/8
        ("126.255.255.255", true), ("127.0.0.0", false), ("127.0.0.1", false), ("127.255.255.255", false), ("128.0.0.0", true),
        // 169.254/16
        ("169.253.255.255", true), ("169.254.0.0", false), ("169.254.255.255", false), ("169.255.0.0", true),
        // 172.16/12
        ("172.15.255.255", true), ("172.16.0.0", false), ("172.31.255.255", false), ("172.32.0.0", true),
        // 192.0.0/24, 192.0.2/24
        ("191.255.255.255", true), ("192.0.0.0", false), ("192.0.0.255", false), ("192.0.1.0", true),
        ("192.0.1.255", true), ("192.0.2.0", false), ("192.0.2.255", false), ("192.0.3.0", true),
        // 192.88.99/24
        ("192.88.98.255", true), ("192.88.99.0", false), ("192.88.99.255", false), ("192.88.100.0", true),
        // 192.168/16
        ("192.167.255.255", true), ("192.168.0.0", false), ("192.168.255.255", false), ("192.169.0.0", true),
        // 198.18/15
        ("198.17.255.255", true), ("198.18.0.0", false), ("198.19.255.255", false), ("198.20.0.0", true),
        // 198.51.100/24
        ("198.51.99.255", true), ("198.51.100.0", false), ("198.51.100.255", false), ("198.51.101.0", true),
        // 203.0.113/24
        ("203.0.112.255", true), ("203.0.113.0", false), ("203.0.113.255", false), ("203.0.114.0", true),
        // 224/4 and 240/4 to the end
        ("223.255.255.255", true), ("224.0.0.0", false), ("239.255.255.255", false), ("240.0.0.0", false), ("255.255.255.255", false),
        // IPv4 in IPv6: mapped is judged as IPv4, compatible and translated are refused
        ("::ffff:8.8.8.8", true), ("::ffff:127.0.0.1", false), ("::ffff:10.1.2.3", false), ("::ffff:169.254.169.254", false),
        ("::8.8.8.8", false), ("::127.0.0.1", false), ("::ffff:0:8.8.8.8", false),
        ("64:ff9b::8.8.8.8", false), ("64:ff9b::7f00:1", false), ("64:ff9b:1::1", false), ("64:ff9a:ffff::1", false),
        // unspecified, loopback, discard-only, segment routing
        ("::", false), ("::1", false), ("::2", false), ("100::1", false), ("5f00::1", false),
        // 2000::/3
        ("1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", false), ("2000::", true), ("2a00:1450:4001:81b::200e", true), ("3fff:1000::", true), ("3ffe:ffff::1", true), ("4000::", false),
        // 2001::/23: Teredo, ORCHID
        ("2000:ffff::1", true), ("2001::", false), ("2001::7f00:1", false), ("2001:20::1", false), ("2001:1ff:ffff::", false), ("2001:200::", true),
        // 2001:db8::/32
        ("2001:db7:ffff::", true), ("2001:db8::", false), ("2001:db8:ffff:ffff::1", false), ("2001:db9::", true),
        // 2002::/16: 6to4, here round 127.0.0.1
        ("2001:ffff::", true), ("2002:7f00:1::", false), ("2002:ffff::", false), ("2003::", true),
        // 3fff::/20
        ("3fff::", false), ("3fff:fff:ffff::", false),
        // unique local, link-local, site-local, multicast
        ("fc00::1", false), ("fe80::1", false), ("fec0::1", false), ("ff02::1", false),
    ];

    #[test]
    fn only_public_addresses_are_reached() {
        for (text, want) in CASES {
            let ip: IpAddr = text.parse().unwrap();
            assert_eq!(is_allowed(ip, &[]), *want, "{text}");
        }
    }

    #[test]
    fn metadata_services_must_be_named_singly() {
        let everything: Vec<IpNet> = vec!["0.0.0.0/0".parse().unwrap(), "::/0".parse().unwrap()];
        for ip in METADATA {
            assert!(!is_allowed(ip, &[]), "{ip}");
            assert!(!is_allowed(ip, &everything), "{ip} opened by a network");
            assert!(is_allowed(ip, &[IpNet::from(ip)]), "{ip} not opened by name");
        }
        let mapped: IpAddr = "::ffff:168.63.129.16".parse().unwrap();
        assert!(!is_allowed(mapped, &everything));
    }

    #[test]
    fn what_the_operator_lists_is_reached_in_any_spelling() {
        let lan: Vec<IpNet> = vec!["10.1.0.0/16".parse().unwrap(), "fd12::/16".parse().unwrap()];
        for (text, want) in [
            ("10.0.255.255", false),
            ("10.1.0.0", true),
            ("10.1.255.255", true),
            ("10.2.0.0", false),
            ("::ffff:10.1.2.3", true),
            ("fd12::1", true),
            ("fd13::1", false),
            ("8.8.8.8", true),
        ] {
            assert_eq!(is_allowed(text.parse().unwrap(), &lan), want, "{text}");
        }
    }
}
