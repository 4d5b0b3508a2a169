//! The memory for the bodies of requests, of which strangers leave a part to accounts and to each other.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use super::{DocumentBudget, GatewayBusy, Reservation, Share, units};
use crate::fair_shares::{FairShare, FairShares};

/// The length up to which bodies are read without reserving memory: most requests are shorter.
pub(crate) const UNRESERVED_BODY_BYTES: usize = 16 * 1024;

/// For whom a body is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyOwner {
    /// An account, or a program on the gateway's own machine.
    Known,
    /// Anybody in this network.
    Anonymous(u64),
}

/// What strangers have of [`Share::Requests`]: three quarters, of which no network has more than is left
/// to the others. Clones share it.
#[derive(Clone, Debug)]
pub(super) struct AnonymousBodies {
    units: Arc<Semaphore>,
    capacity: u32,
    networks: FairShares<u64>,
}

impl AnonymousBodies {
    /// Creates the part of a share of so many units.
    pub(super) fn new(capacity: u32) -> AnonymousBodies {
        let capacity = (capacity - capacity.div_ceil(4)).max(1);
        AnonymousBodies {
            units: Arc::new(Semaphore::new(capacity as usize)),
            capacity,
            networks: FairShares::new(capacity.into()),
        }
    }

    /// Waits until `held` is a part for `bytes`.
    async fn grow(
        &self,
        held: &mut Option<AnonymousPart>,
        network: u64,
        bytes: u64,
    ) -> Result<(), AcquireError> {
        let wanted = units(bytes).min(self.capacity);
        let Some(AnonymousPart { units, share }) = held else {
            let share = self.networks.enter(network, wanted.into()).await;
            let units = Arc::clone(&self.units).acquire_many_owned(wanted).await?;
            *held = Some(AnonymousPart { units, share });
            return Ok(());
        };
        share.grow(wanted.into()).await;
        let lacking = wanted.saturating_sub(u32::try_from(units.num_permits()).unwrap_or(u32::MAX));
        units.merge(Arc::clone(&self.units).acquire_many_owned(lacking).await?);
        Ok(())
    }
}

/// A part of what strangers have, until dropped.
#[derive(Debug)]
struct AnonymousPart {
    units: OwnedSemaphorePermit,
    share: FairShare<u64>,
}

/// The memory of the body of a request, until dropped.
#[derive(Debug)]
pub(crate) struct RequestBodyMemory {
    owner: BodyOwner,
    reserved: Option<Reservation>,
    part: Option<AnonymousPart>,
}

impl RequestBodyMemory {
    /// Creates the memory of a body that has none yet.
    pub(crate) fn none(owner: BodyOwner) -> RequestBodyMemory {
        RequestBodyMemory { owner, reserved: None, part: None }
    }
}

impl DocumentBudget {
    /// Reserves what the body of a request lacks of `bytes`, and waits for it no longer than `patience`. A
    /// body never waits for what it has itself.
    pub(crate) async fn grow_body(
        &self,
        held: &mut RequestBodyMemory,
        bytes: u64,
        patience: Duration,
    ) -> Result<(), GatewayBusy> {
        if let BodyOwner::Anonymous(network) = held.owner {
            let grown = self.anonymous_bodies.grow(&mut held.part, network, bytes);
            let grown = timeout(patience, grown).await;
            grown.ok().and_then(Result::ok).ok_or_else(GatewayBusy::for_now)?;
        }
        match &mut held.reserved {
            Some(reserved) => self.extend(Share::Requests, reserved, bytes, patience).await?,
            none => *none = Some(self.reserve(Share::Requests, bytes, patience).await?),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn h20_bodies_of_strangers_leave_memory_to_accounts_and_to_each_other() {
        let budget = DocumentBudget::new(256 << 20, 1);
        let reserve = async |owner| {
            let mut memory = RequestBodyMemory::none(owner);
            let grown = budget.grow_body(&mut memory, 1 << 20, Duration::from_secs(5)).await;
            grown.map(|()| memory)
        };
        let mut held = Vec::new();
        for network in 0..5 {
            while let Ok(memory) = reserve(BodyOwner::Anonymous(network)).await {
                held.push(memory);
            }
        }
        assert!(held.len() > 16, "{}", held.len());
        let sixth = reserve(BodyOwner::Anonymous(5)).await;
        assert!(sixth.is_ok(), "five networks leave memory to a sixth");
        for _ in 0..7 {
            held.push(reserve(BodyOwner::Known).await.unwrap());
        }
        drop((held, sixth));
        assert_eq!(budget.usage().bytes, 0);
    }
}
