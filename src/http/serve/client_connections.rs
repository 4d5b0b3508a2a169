//! How many connections one client may have open at the same time.

use std::net::IpAddr;
use std::sync::Arc;

use ipnet::IpNet;

use crate::http::kit::slots::{ClientNetwork, HeldSlot, Slots, client_network};

/// The open connections.
#[derive(Debug)]
pub(super) struct ClientConnections {
    slots: Arc<Slots<ClientNetwork>>,
    /// Proxies, whose connections are those of all their clients.
    unlimited: Vec<IpNet>,
}

/// A connection, counted until it is dropped; those of proxies are not counted.
#[derive(Debug)]
pub(super) struct CountedConnection {
    _slot: Option<HeldSlot<ClientNetwork>>,
}

impl ClientConnections {
    pub(super) fn new(max: usize, unlimited: Vec<IpNet>) -> ClientConnections {
        ClientConnections { slots: Arc::new(Slots::new(usize::MAX, max)), unlimited }
    }

    /// Counts a connection; `None` if the client has as many as it may have.
    pub(super) fn admit(&self, peer: IpAddr) -> Option<CountedConnection> {
        let peer = peer.to_canonical();
        if self.unlimited.iter().any(|proxies| proxies.contains(&peer)) {
            return Some(CountedConnection { _slot: None });
        }
        let slot = self.slots.acquire(client_network(Some(peer))).ok()?;
        Some(CountedConnection { _slot: Some(slot) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t04_a_client_has_a_bounded_number_of_connections_and_a_proxy_has_not() {
        let proxies = vec!["10.0.0.0/8".parse().unwrap()];
        let connections = ClientConnections::new(2, proxies);
        let admit = |peer: &str| connections.admit(peer.parse().unwrap());
        let open = [admit("8.8.8.8"), admit("::ffff:8.8.8.8")];
        assert!(open.iter().all(Option::is_some) && admit("8.8.8.8").is_none());
        assert!(admit("8.8.4.4").is_some());
        let _subnet = [admit("2001:db8::1"), admit("2001:db8::2")];
        assert!(admit("2001:db8::3").is_none(), "a /64 is one client");
        let of_proxy: Vec<_> = (0..9).map(|_| admit("10.0.0.1")).collect();
        assert!(of_proxy.iter().all(Option::is_some));
        drop(open);
        assert!(admit("8.8.8.8").is_some());
        assert_eq!(connections.slots.holders(), 1, "nothing is kept of who left");
    }
}
