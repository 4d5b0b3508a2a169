//! How many of a resource, such as connections or streams, one client may hold at the same time.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use crate::net::network;

/// The slots that clients hold, counted by the network of the client.
#[derive(Debug)]
pub(crate) struct ClientSlots {
    held: Mutex<HashMap<Option<u64>, usize>>,
    max: usize,
    max_per_client: usize,
}

/// A slot, returned when it is dropped.
#[derive(Debug)]
pub(crate) struct ClientSlot {
    slots: Arc<ClientSlots>,
    client: Option<u64>,
}

impl ClientSlots {
    /// Returns slots for `max` holders in all, and for `max_per_client` of each client.
    pub(crate) fn new(max: usize, max_per_client: usize) -> ClientSlots {
        ClientSlots { held: Mutex::default(), max, max_per_client }
    }

    /// Acquires a slot for a client; `None` if the client or all clients hold as many as they may.
    /// Clients without an address are one client.
    pub(crate) fn acquire(self: &Arc<Self>, client: Option<IpAddr>) -> Option<ClientSlot> {
        let client = client.map(network);
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let own = held.get(&client).copied().unwrap_or(0);
        if own >= self.max_per_client || held.values().sum::<usize>() >= self.max {
            return None; // nothing is stored for a refused client
        }
        held.insert(client, own + 1);
        Some(ClientSlot { slots: Arc::clone(self), client })
    }

    /// Returns how many clients hold slots.
    #[cfg(test)]
    pub(crate) fn clients(&self) -> usize {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}

impl Drop for ClientSlot {
    fn drop(&mut self) {
        let mut held = self.slots.held.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(own) = held.get_mut(&self.client) {
            *own -= 1;
            if *own == 0 {
                held.remove(&self.client);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX: usize = 200;
    const MAX_PER_CLIENT: usize = 20;

    #[test]
    fn nothing_is_stored_for_refused_clients() {
        let slots = Arc::new(ClientSlots::new(MAX, MAX_PER_CLIENT));
        let ip = |n: usize| Some(IpAddr::from([10, 0, (n / 256) as u8, (n % 256) as u8]));
        let all: Vec<ClientSlot> =
            (0..MAX).map(|n| slots.acquire(ip(n / MAX_PER_CLIENT)).unwrap()).collect();
        for n in 0..1_000 {
            assert!(slots.acquire(ip(n)).is_none());
        }
        assert_eq!(slots.clients(), MAX / MAX_PER_CLIENT);
        drop(all);
        assert_eq!(slots.clients(), 0);
        let _own: Vec<ClientSlot> =
            (0..MAX_PER_CLIENT).map(|_| slots.acquire(ip(1)).unwrap()).collect();
        assert!(slots.acquire(ip(1)).is_none());
        assert!(slots.acquire(ip(2)).is_some());
    }

    #[test]
    fn s26_all_addresses_of_a_64_are_one() {
        let slots = Arc::new(ClientSlots::new(MAX, MAX_PER_CLIENT));
        let ip =
            |net: u16, n: usize| Some(IpAddr::from([0x2001, 0xdb8, 0, net, 0, 0, 0, n as u16]));
        let _own: Vec<ClientSlot> =
            (0..MAX_PER_CLIENT).map(|n| slots.acquire(ip(1, n)).unwrap()).collect();
        assert!(slots.acquire(ip(1, MAX_PER_CLIENT)).is_none());
        assert!(slots.acquire(ip(2, 0)).is_some());
    }
}
