//! How many of a resource, such as connections or streams, one holder may have at the same time.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::net::network;

/// The slots that holders have, such as clients or accounts.
#[derive(Debug)]
pub(crate) struct Slots<K: Eq + Hash> {
    held: Mutex<Held<K>>,
    max: usize,
    max_each: usize,
}

#[derive(Debug)]
struct Held<K> {
    by: HashMap<K, usize>,
    total: usize,
}

/// A slot, returned when it is dropped.
#[derive(Debug)]
pub(crate) struct HeldSlot<K: Eq + Hash> {
    slots: Arc<Slots<K>>,
    holder: K,
}

/// Why there is no slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoSlot {
    /// All slots are held.
    AllHeld,
    /// The holder has as many as it may have.
    TooManyHeld,
}

/// The network of a client; clients without an address are one client.
pub(crate) type ClientNetwork = Option<u64>;

/// Returns the network by which the slots of a client are counted (rule S26).
pub(crate) fn client_network(client: Option<IpAddr>) -> ClientNetwork {
    client.map(network)
}

impl<K: Clone + Eq + Hash> Slots<K> {
    /// Returns slots for `max` holders in all, and for `max_each` of each holder.
    pub(crate) fn new(max: usize, max_each: usize) -> Slots<K> {
        Slots { held: Mutex::new(Held { by: HashMap::new(), total: 0 }), max, max_each }
    }

    /// Acquires a slot for a holder. Nothing is stored for a holder that gets none.
    pub(crate) fn acquire(self: &Arc<Self>, holder: K) -> Result<HeldSlot<K>, NoSlot> {
        self.acquire_at_most(holder, self.max_each)
    }

    /// Acquires a slot for a holder that may have `max_each` now.
    pub(crate) fn acquire_at_most(
        self: &Arc<Self>,
        holder: K,
        max_each: usize,
    ) -> Result<HeldSlot<K>, NoSlot> {
        let mut held = self.held();
        let own = held.by.get(&holder).copied().unwrap_or(0);
        if held.total >= self.max {
            return Err(NoSlot::AllHeld);
        }
        if own >= max_each {
            return Err(NoSlot::TooManyHeld);
        }
        held.by.insert(holder.clone(), own + 1);
        held.total += 1;
        Ok(HeldSlot { slots: Arc::clone(self), holder })
    }
}

impl<K: Eq + Hash> Slots<K> {
    fn held(&self) -> MutexGuard<'_, Held<K>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns how many holders have slots.
    #[cfg(test)]
    pub(crate) fn holders(&self) -> usize {
        self.held().by.len()
    }
}

impl<K: Eq + Hash> Drop for HeldSlot<K> {
    fn drop(&mut self) {
        let mut held = self.slots.held();
        if let Some(own) = held.by.get_mut(&self.holder) {
            *own -= 1;
            if *own == 0 {
                held.by.remove(&self.holder);
            }
            held.total -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX: usize = 200;
    const MAX_EACH: usize = 20;

    #[test]
    fn nothing_is_stored_for_refused_holders() {
        let slots = Arc::new(Slots::new(MAX, MAX_EACH));
        let all: Vec<_> = (0..MAX).map(|n| slots.acquire(n / MAX_EACH).unwrap()).collect();
        for n in 0..1_000 {
            assert_eq!(slots.acquire(n).unwrap_err(), NoSlot::AllHeld);
        }
        assert_eq!(slots.holders(), MAX / MAX_EACH);
        drop(all);
        assert_eq!(slots.holders(), 0);
        let _own: Vec<_> = (0..MAX_EACH).map(|_| slots.acquire(1).unwrap()).collect();
        assert_eq!(slots.acquire(1).unwrap_err(), NoSlot::TooManyHeld);
        assert!(slots.acquire(2).is_ok());
    }

    #[test]
    fn s26_all_addresses_of_a_64_are_one() {
        let slots = Arc::new(Slots::new(MAX, MAX_EACH));
        let client = |net: u16, n: usize| {
            let address = IpAddr::from([0x2001, 0xdb8, 0, net, 0, 0, 0, n as u16]);
            client_network(Some(address))
        };
        let _own: Vec<_> = (0..MAX_EACH).map(|n| slots.acquire(client(1, n)).unwrap()).collect();
        assert!(slots.acquire(client(1, MAX_EACH)).is_err());
        assert!(slots.acquire(client(2, 0)).is_ok());
    }
}
