//! The network from which a subscription without an account was requested.
//!
//! Nobody owns an open subscription, but somebody requested it, and what it costs is charged to the
//! network of that client, as what the subscription of an account costs is charged to the account. So
//! that both can be told apart in one column, accounts have positive numbers and networks negative ones.

use std::net::IpAddr;

/// A network, as far as one customer of a provider has it: an address of IPv4, a /64 of IPv6.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RegistrantNetwork(i64);

/// The number of addresses of IPv4.
const IPV4_COUNT: i64 = 1 << 32;
/// The bits of the first half of an IPv6 address that are kept: all but two, which are equal in all
/// public addresses.
const IPV6_KEPT: u128 = (1 << 62) - 1;

impl RegistrantNetwork {
    /// Of a subscription of an account, and of one whose registrant is not known.
    pub const UNKNOWN: RegistrantNetwork = RegistrantNetwork(0);

    /// Returns the network of a client.
    pub fn from_client(client: Option<IpAddr>) -> RegistrantNetwork {
        match client.map(|ip| ip.to_canonical()) {
            None => RegistrantNetwork::UNKNOWN,
            Some(IpAddr::V4(ip)) => RegistrantNetwork(-1 - i64::from(ip.to_bits())),
            Some(IpAddr::V6(ip)) => {
                let network = i64::try_from((ip.to_bits() >> 64) & IPV6_KEPT).unwrap_or_default();
                RegistrantNetwork(-1 - IPV4_COUNT - network)
            }
        }
    }

    /// Returns the network with this number.
    pub fn from_number(number: i64) -> RegistrantNetwork {
        RegistrantNetwork(number.min(0))
    }

    /// Returns its number, which is negative; 0 if the network is unknown.
    pub fn as_number(self) -> i64 {
        self.0
    }

    /// Returns whether the network is known.
    pub fn is_known(self) -> bool {
        self.0 != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn h01_a_client_counts_for_its_network() {
        let of = |ip: &str| RegistrantNetwork::from_client(Some(ip.parse().unwrap()));
        #[rustfmt::skip]
        let cases = [
            ("the same address",       "192.0.2.1",       "192.0.2.1",          true),
            ("another address",        "192.0.2.1",       "192.0.2.2",          false),
            ("mapped to IPv6",         "192.0.2.1",       "::ffff:192.0.2.1",   true),
            ("the same /64",           "2001:db8:0:1::1", "2001:db8:0:1:ff::2", true),
            ("another /64",            "2001:db8:0:1::1", "2001:db8:0:2::1",    false),
            ("the least of IPv6",      "0.0.0.0",         "::2",                false),
            ("the greatest of IPv4",   "255.255.255.255", "::2",                false),
        ];
        for (why, left, right, is_same) in cases {
            assert_eq!(of(left) == of(right), is_same, "{why}");
            for network in [of(left), of(right)] {
                assert!(network.is_known() && network.as_number() < 0, "{why}");
                assert_eq!(RegistrantNetwork::from_number(network.as_number()), network, "{why}");
            }
        }
        assert!(!RegistrantNetwork::from_client(None).is_known());
        assert_eq!(RegistrantNetwork::from_number(7), RegistrantNetwork::UNKNOWN, "an account");
    }
}
