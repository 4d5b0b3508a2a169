//! The turn of the host group of a poll.
//!
//! A poll has claimed the group of its resource, so that no other poll of the group runs meanwhile. When a
//! redirect leads to another group, the turn is given back at once: however long the other server takes,
//! the resources of the one that redirected do not wait for it.

use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};

use tracing::warn;

use crate::jobs::runner::HostPermit;
use feedgate_store::Store;

/// The turn of one poll, given back early or when it is dropped.
pub(super) struct GroupTurn {
    store: Arc<Store>,
    /// The permit of this node; `None` once it was given back, or if there is none.
    permit: Mutex<Option<HostPermit>>,
    group: String,
}

impl GroupTurn {
    /// Creates the turn of a poll that has claimed `group`.
    pub(super) fn new(store: Arc<Store>, permit: Option<HostPermit>, group: String) -> GroupTurn {
        GroupTurn { store, permit: Mutex::new(permit), group }
    }

    /// Gives the turn back, to the other nodes too.
    pub(super) fn give_back(&self) {
        let permit = self.permit.lock().unwrap_or_else(PoisonError::into_inner).take();
        let (store, group) = (Arc::clone(&self.store), self.group.clone());
        // The fetch does not wait for that. If it fails, the group is released when the poll ends.
        tokio::spawn(async move {
            if let Err(err) = store.leave_group(&group).await {
                let error = &err as &dyn Error;
                warn!(
                    group,
                    error, "a host waits for the end of a poll that a redirect led elsewhere"
                );
            }
            drop(permit);
        });
    }
}

impl std::fmt::Debug for GroupTurn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GroupTurn").field("group", &self.group).finish_non_exhaustive()
    }
}
