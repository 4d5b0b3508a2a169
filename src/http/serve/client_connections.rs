//! How many connections one client may have open at the same time.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use ipnet::IpNet;

use crate::net::network;

/// The open connections, counted by the network of the client.
#[derive(Debug)]
pub(super) struct ClientConnections {
    open: Mutex<HashMap<u64, usize>>,
    max: usize,
    /// Proxies, whose connections are those of all their clients.
    unlimited: Vec<IpNet>,
}

/// A connection, counted until it is dropped.
#[derive(Debug)]
pub(super) struct CountedConnection {
    connections: Arc<ClientConnections>,
    client: Option<u64>,
}

impl ClientConnections {
    pub(super) fn new(max: usize, unlimited: Vec<IpNet>) -> ClientConnections {
        ClientConnections { open: Mutex::default(), max, unlimited }
    }

    /// Counts a connection; `None` if the client has as many as it may have.
    pub(super) fn admit(self: &Arc<Self>, peer: IpAddr) -> Option<CountedConnection> {
        let peer = peer.to_canonical();
        let connections = Arc::clone(self);
        if self.unlimited.iter().any(|proxies| proxies.contains(&peer)) {
            return Some(CountedConnection { connections, client: None });
        }
        let client = network(peer);
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let own = open.get(&client).copied().unwrap_or(0);
        if own >= self.max {
            return None;
        }
        open.insert(client, own + 1);
        Some(CountedConnection { connections, client: Some(client) })
    }
}

impl Drop for CountedConnection {
    fn drop(&mut self) {
        let Some(client) = self.client else { return };
        let mut open = self.connections.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(own) = open.get_mut(&client) {
            *own -= 1;
            if *own == 0 {
                open.remove(&client);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t04_a_client_has_a_bounded_number_of_connections_and_a_proxy_has_not() {
        let proxies = vec!["10.0.0.0/8".parse().unwrap()];
        let connections = Arc::new(ClientConnections::new(2, proxies));
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
        assert_eq!(connections.open.lock().unwrap().len(), 1, "nothing is kept of who left");
    }
}
