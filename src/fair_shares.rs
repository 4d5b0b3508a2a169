//! Shares of a capacity: nobody has more than is left to the others, so that a few holders that take as much
//! as they can leave something to the next.
//!
//! Who is alone has half, the second half of the rest, and so on: five leave a thirty-second part to a sixth.

use std::collections::HashMap;
use std::hash::Hash;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// The shares. Clones share them.
#[derive(Debug)]
pub(crate) struct FairShares<K: Eq + Hash> {
    held: Arc<Mutex<HashMap<K, u64>>>,
    capacity: u64,
    left: Arc<Notify>,
}

/// A share, until dropped.
#[derive(Debug)]
pub(crate) struct FairShare<K: Eq + Hash> {
    shares: FairShares<K>,
    holder: K,
    weight: u64,
}

impl<K: Eq + Hash> Clone for FairShares<K> {
    fn clone(&self) -> FairShares<K> {
        let (held, left) = (Arc::clone(&self.held), Arc::clone(&self.left));
        FairShares { held, capacity: self.capacity, left }
    }
}

impl<K: Eq + Hash + Clone> FairShares<K> {
    /// Creates the shares of a capacity.
    pub(crate) fn new(capacity: u64) -> FairShares<K> {
        FairShares { held: Arc::default(), capacity, left: Arc::default() }
    }

    /// Waits until `holder` may have a further share of this weight. One that has none may, whatever is
    /// left.
    pub(crate) async fn enter(&self, holder: K, weight: u64) -> FairShare<K> {
        let mut share = FairShare { shares: self.clone(), holder, weight: 0 };
        share.grow(weight).await;
        share
    }

    /// Exchanges a share of `holder` that weighs `old` for one that weighs `new`, if it may have that one
    /// beside its others.
    fn try_exchange(&self, holder: &K, old: u64, new: u64) -> bool {
        let mut held = self.held();
        let all: u64 = held.values().sum();
        let free = self.capacity.saturating_sub(all.saturating_sub(old));
        let others = held.get(holder).copied().unwrap_or_default().saturating_sub(old);
        let is_admitted = others == 0 || others + new <= free.saturating_sub(new);
        if is_admitted {
            held.insert(holder.clone(), others + new);
        }
        is_admitted
    }
}

impl<K: Eq + Hash> FairShares<K> {
    fn held(&self) -> MutexGuard<'_, HashMap<K, u64>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Eq + Hash + Clone> FairShare<K> {
    /// Waits until this share may weigh so much. What it weighs already does not keep it waiting.
    pub(crate) async fn grow(&mut self, weight: u64) {
        let FairShares { left, .. } = self.shares.clone();
        loop {
            // Listening starts before the check, so that nothing that is returned in between is missed.
            let mut left = pin!(left.notified());
            left.as_mut().enable();
            if self.shares.try_exchange(&self.holder, self.weight, weight) {
                self.weight = weight;
                return;
            }
            left.await;
        }
    }
}

impl<K: Eq + Hash> Drop for FairShare<K> {
    fn drop(&mut self) {
        let mut held = self.shares.held();
        if let Some(own) = held.get_mut(&self.holder) {
            *own = own.saturating_sub(self.weight);
            if *own == 0 {
                held.remove(&self.holder);
            }
        }
        drop(held);
        self.shares.left.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn h20_a_few_holders_leave_shares_to_the_others() {
        let shares = FairShares::new(100);
        let wait = Duration::from_secs(1);
        let mut held = Vec::new();
        for holder in 0..5 {
            while let Ok(share) = timeout(wait, shares.enter(holder, 1)).await {
                held.push(share);
            }
        }
        assert!((90..100).contains(&held.len()), "{}", held.len());
        let sixth = timeout(wait, shares.enter(5, 1)).await;
        assert!(sixth.is_ok());
        drop(held);
        let alone = timeout(wait, shares.enter(1, 50)).await;
        assert!(alone.is_ok(), "who is alone has half");
        drop((sixth, alone));
        let mut growing = shares.enter(1, 40).await;
        let grown = timeout(wait, growing.grow(100)).await;
        assert!(grown.is_ok(), "what it has is no reason to wait");
        let mut other = shares.enter(2, 1).await;
        let second = timeout(wait, shares.enter(2, 1)).await;
        assert!(second.is_err(), "nothing is left");
        drop(growing);
        let second = shares.enter(2, 39).await;
        assert!(
            timeout(wait, other.grow(21)).await.is_err(),
            "half is for all of a holder together"
        );
        assert!(timeout(wait, other.grow(11)).await.is_ok());
        drop((other, second));
        assert!(shares.held().is_empty(), "nothing is kept of who left");
    }
}
