//! The state of publishers' hosts: in the shared schema, because the resources of a host lie in
//! many cells.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use futures_util::future::try_join_all;

use crate::cells::Cells;
use crate::hosts::backoff::Pause;
use feedgate_core::host::{Host, HostBackoff, HostRefusal, PausedHost, RequestAdmission};
use feedgate_core::ports::{Hosts, StoreError};
use feedgate_core::resource::ResourceId;
use feedgate_protocol::robots::Robots;

#[async_trait]
impl Hosts for Cells {
    fn group(&self, url: &str) -> String {
        self.shared.group(url)
    }

    async fn host(&self, group: &str) -> Result<Host, StoreError> {
        self.shared.host(group).await
    }

    async fn paused_hosts(
        &self,
        now: DateTime<Utc>,
        limit: usize,
    ) -> Result<Vec<PausedHost>, StoreError> {
        self.shared.paused_hosts(now, limit).await
    }

    async fn refuse(&self, refused: &HostRefusal) -> Result<Option<HostBackoff>, StoreError> {
        let Some(backoff) = self.shared.refuse(refused).await? else { return Ok(None) };
        let delayed = self.cells.iter().enumerate().map(|(first, cell)| {
            let pause = Pause::new(refused, &backoff, (first, self.cells.len()));
            cell.pause_group(pause)
        });
        try_join_all(delayed).await?;
        Ok(Some(backoff))
    }

    async fn admit_request(
        &self,
        group: &str,
        now: DateTime<Utc>,
    ) -> Result<RequestAdmission, StoreError> {
        self.shared.admit_request(group, now).await
    }

    async fn leave_group(&self, group: &str) -> Result<(), StoreError> {
        self.shared.leave_group(group).await
    }

    async fn credit(&self, group: &str, at: DateTime<Utc>) -> Result<(), StoreError> {
        self.shared.credit(group, at).await
    }

    async fn robots(&self, origin: &str) -> Result<Option<(Robots, DateTime<Utc>)>, StoreError> {
        self.shared.robots(origin).await
    }

    async fn save_robots(
        &self,
        origin: &str,
        robots: &Robots,
        now: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        self.shared.save_robots(origin, robots, now).await
    }

    async fn put_off(
        &self,
        id: ResourceId,
        until: DateTime<Utc>,
        why: &str,
    ) -> Result<(), StoreError> {
        self.of_number(id.0).put_off(id, until, why).await
    }
}
