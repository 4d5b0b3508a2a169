//! The network from which a subscription without an account was requested.
//!
//! Nobody owns an open subscription, but somebody requested it, and what it costs is charged to the
//! network of that client, as what the subscription of an account costs is charged to the account. So
//! that both can be told apart in one column, accounts have positive numbers and networks negative ones.

use std::net::IpAddr;

use super::account::AccountId;

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

    /// Returns the network around it that is routed by itself, which has one owner: a /24 of IPv4, a /48 of
    /// IPv6.
    pub fn routed(self) -> RegistrantNetwork {
        self.around(0xff, 0xffff)
    }

    /// Returns the network around it that is allocated to one provider, or to several small ones: a /16 of
    /// IPv4, a /32 of IPv6.
    pub fn of_provider(self) -> RegistrantNetwork {
        self.around(0xffff, 0xffff_ffff)
    }

    /// Returns the network around it in which these bits differ, of IPv4 and of IPv6.
    fn around(self, ipv4: i64, ipv6: i64) -> RegistrantNetwork {
        let (first, bits) = if self.0 < -IPV4_COUNT { (-1 - IPV4_COUNT, ipv6) } else { (-1, ipv4) };
        match self.is_known() {
            true => RegistrantNetwork(first - ((first - self.0) & !bits)),
            false => self,
        }
    }

    /// Returns the first and the last number of the networks that have one owner with this one: of IPv4 itself,
    /// of IPv6 those in its /48.
    pub fn of_one_owner(self) -> (i64, i64) {
        match self.0 < -IPV4_COUNT {
            true => (self.routed().0 - 0xffff, self.routed().0),
            false => (self.0, self.0),
        }
    }

    /// Returns whether the network is known.
    pub fn is_known(self) -> bool {
        self.0 != 0
    }
}

/// Who is charged for the requests to others that a subscription request causes: an account, or the
/// routed network of a stranger; or the gateway, for requests of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Requester(i64);

impl Requester {
    /// The gateway, on behalf of accounts whoever they are.
    pub const GATEWAY: Requester = Requester(i64::MAX);

    /// Returns the account, or the network if there is none.
    pub fn new(account: Option<AccountId>, network: RegistrantNetwork) -> Requester {
        Requester(account.map_or(network.routed().as_number(), |account| account.0))
    }

    /// Returns the network, which is unknown if this is an account.
    pub fn network(self) -> RegistrantNetwork {
        RegistrantNetwork::from_number(self.0)
    }

    /// Returns whether this is an account, or the gateway on behalf of some.
    pub fn is_account(self) -> bool {
        self.0 > 0
    }

    /// Returns the name under which its requests to a host are limited.
    pub fn name_at(self, host: &str) -> String {
        format!("{host} {}", self.0)
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

    #[test]
    fn h01_strangers_in_one_routed_network_are_one() {
        let of = |ip: &str| RegistrantNetwork::from_client(Some(ip.parse().unwrap()));
        #[rustfmt::skip]
        let cases = [
            ("a /24",          "192.0.2.0",         "192.0.2.255",            true),
            ("the next /24",   "192.0.2.255",       "192.0.3.0",              false),
            ("a /48",          "2001:db8:1::",      "2001:db8:1:ffff::1",     true),
            ("the next /48",   "2001:db8:1:ffff::", "2001:db8:2::",           false),
            ("the first ones", "0.0.0.0",           "::2",                    false),
        ];
        for (why, left, right, is_same) in cases {
            let [left, right] = [left, right].map(|ip| of(ip).routed());
            assert_eq!(left == right, is_same, "{why}");
            assert_eq!(left.routed(), left, "{why}");
            assert_eq!(Requester::new(None, left) == Requester::new(None, right), is_same, "{why}");
        }
        for (left, right, is_same) in [
            ("198.18.0.1", "198.18.255.1", true),
            ("198.18.0.1", "198.19.0.1", false),
            ("2001:db8::", "2001:db8:ffff:ffff::", true),
            ("2001:db8::", "2001:db9::", false),
        ] {
            assert_eq!(
                of(left).of_provider() == of(right).of_provider(),
                is_same,
                "{left} {right}"
            );
        }
        let (first, last) = of("2001:db8:1::").of_one_owner();
        for (client, is_within) in [
            ("2001:db8:1::", true),
            ("2001:db8:1:ffff::", true),
            ("2001:db8:2::", false),
            ("192.0.2.1", false),
        ] {
            assert_eq!((first..=last).contains(&of(client).as_number()), is_within, "{client}");
        }
        let alone = of("192.0.2.1").as_number();
        assert_eq!(of("192.0.2.1").of_one_owner(), (alone, alone));
        let account = Requester::new(Some(AccountId(7)), of("192.0.2.1"));
        assert_eq!(account, Requester::new(Some(AccountId(7)), RegistrantNetwork::UNKNOWN));
        assert!(account.is_account() && !Requester::new(None, of("192.0.2.1")).is_account());
        assert!(!Requester::new(None, RegistrantNetwork::UNKNOWN).is_account());
    }
}
