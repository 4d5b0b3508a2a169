//! How many connections one client may have open at the same time.

use std::net::IpAddr;
use std::sync::Arc;

use ipnet::IpNet;

use crate::http::kit::slots::{ClientNetwork, HeldSlot, Slots, client_network};

/// How many connections a client may have for each one that is left. N clients that open as many as they
/// can leave one of 4 N + 1 to others.
const SHARE_OF_FREE: usize = 4;

/// The open connections.
#[derive(Debug)]
pub(super) struct ClientConnections {
    max_each: usize,
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
        ClientConnections { max_each: max, slots: Arc::new(Slots::new(usize::MAX, max)), unlimited }
    }

    /// Counts a connection; `None` if the client has as many as it may have while `free` are left for all
    /// clients. Who has none gets one.
    pub(super) fn admit(&self, peer: IpAddr, free: usize) -> Option<CountedConnection> {
        let peer = peer.to_canonical();
        if self.unlimited.iter().any(|proxies| proxies.contains(&peer)) {
            return Some(CountedConnection { _slot: None });
        }
        let most = free.saturating_mul(SHARE_OF_FREE).clamp(1, self.max_each.max(1));
        let slot = self.slots.acquire_at_most(client_network(Some(peer)), most).ok()?;
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
        let admit = |peer: &str| connections.admit(peer.parse().unwrap(), 100);
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

    #[test]
    fn h20_a_few_clients_leave_connections_to_the_others() {
        let (all, clients) = (4_096, 5);
        let connections = ClientConnections::new(1_024, Vec::new());
        let mut open = Vec::new();
        for n in 0..all * 2 {
            let peer = IpAddr::from([203, 0, 113, n as u8 % clients]);
            open.extend(connections.admit(peer, all - open.len() - 1));
        }
        assert!(all - open.len() > 100, "{} are open", open.len());
        let sixth = IpAddr::from([198, 51, 100, 7]);
        let own: Vec<_> =
            (0..50).filter_map(|n| connections.admit(sixth, all - open.len() - n - 1)).collect();
        assert_eq!(own.len(), 50);
        let one = ClientConnections::new(1_024, Vec::new());
        let own: Vec<_> =
            (0..2_000).filter_map(|n| one.admit(sixth, all - n.min(1_024) - 1)).collect();
        assert_eq!(own.len(), 1_024, "who is alone has the whole share");
    }
}
