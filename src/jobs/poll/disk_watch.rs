//! Keeps space free on the disk of the database: while there is little, resources that only
//! subscribers without an account watch are not polled. Nothing is lost: they are polled once there is
//! more.

use std::sync::atomic::{AtomicBool, Ordering};

use tracing::{info, warn};

use crate::disk_space::DiskSpace;
use feedgate_core::resource::ResourceId;
use feedgate_core::store::StoreError;

use super::Poller;
use super::put_off::{Busy, PollStop, PutOff};

/// The disk, and whether it had too little space at the last check.
#[derive(Debug, Default)]
pub(super) struct DiskWatch {
    space: DiskSpace,
    was_short: AtomicBool,
}

impl DiskWatch {
    pub(super) fn new(space: DiskSpace) -> DiskWatch {
        DiskWatch { space, was_short: AtomicBool::new(false) }
    }

    /// Returns whether there is too little space. Changes are logged.
    fn is_short(&self) -> bool {
        let shortage = self.space.shortage();
        let was_short = self.was_short.swap(shortage.is_some(), Ordering::Relaxed);
        match shortage {
            Some(shortage) if !was_short => warn!(
                free_bytes = shortage.free_bytes,
                kept_free_bytes = shortage.floor_bytes,
                "little disk space is left: resources without a subscription of an account are not \
                 polled until there is more"
            ),
            None if was_short => info!("there is enough disk space again"),
            Some(_) | None => {}
        }
        shortage.is_some()
    }
}

impl Poller {
    /// Sets the disk of the database.
    pub fn with_disk_space(self, space: DiskSpace) -> Poller {
        Poller { disk: DiskWatch::new(space).into(), ..self }
    }

    /// Puts a poll off that has to wait for disk space.
    pub(super) async fn check_disk_space(&self, id: ResourceId) -> Result<(), PollStop> {
        match self.waits_for_disk_space(id).await? {
            true => Err(PollStop::PutOff(PutOff { busy: Busy::Disk, has_begun: false })),
            false => Ok(()),
        }
    }

    /// Returns whether nothing of a resource is stored now.
    pub(in crate::jobs) async fn waits_for_disk_space(
        &self,
        id: ResourceId,
    ) -> Result<bool, StoreError> {
        Ok(self.disk.is_short() && !self.store.has_trusted_watcher(id).await?)
    }
}
