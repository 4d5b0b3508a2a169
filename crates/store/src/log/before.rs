//! A resource as it is when its row is locked, before anything is appended.

use crate::engine::sql::params;
use crate::engine::tx::Tx;
use crate::log::baseline::PolledResource;
use crate::log::fan_out::{LogState, Versions};
use crate::resources::details;
use crate::resources::poll_result::{self, ResourceBefore};
use feedgate_core::claim::ClaimToken;
use feedgate_core::poll::Polling;
use feedgate_core::resource::{ResourceId, ResourceKind};
use feedgate_core::status::Status;
use feedgate_core::store::StoreError;

/// The state of a resource when its row was locked.
pub(crate) struct Before {
    pub(super) id: ResourceId,
    pub(super) log: LogState,
    pub(super) kind: ResourceKind,
    pub(super) status: Status,
    pub(super) polling: Polling,
    pub(super) held: ResourceBefore,
    pub(super) subscribers: u32,
}

impl Before {
    /// Returns the id of the resource.
    pub(crate) fn id(&self) -> ResourceId {
        self.id
    }

    /// Returns what decides whether a baseline contains a change.
    pub(super) fn polled(&self) -> PolledResource {
        PolledResource {
            id: self.id,
            log: self.log,
            subscribers: self.subscribers,
            pinged: self.held.pinged,
            baseline_at: self.polling.baseline_at,
        }
    }

    /// Returns how many subscribers the resource has.
    pub(crate) fn subscribers(&self) -> u32 {
        self.subscribers
    }

    /// Returns the numbers of the newest record and body.
    pub(crate) fn log_state(&self) -> LogState {
        self.log
    }
}

/// Locks the row of a resource.
pub(crate) async fn lock(tx: &Tx<'_>, id: ResourceId) -> Result<Before, StoreError> {
    const LOCK: &str = "
        select head, body_version, kind, claim_token, host, pinged, ping_interval, min_period_s,
               base_period_ms, appends_paid_at, subscribers
          from resources
         where id = $1
           {for update}";
    const DETAILS: &str = "
        select d.status, d.polling, r.poll_times
          from resources r join resource_details d on d.resource_id = r.id
         where r.id = $1";
    let row = tx.first(LOCK, params![id.0]).await?;
    let mut row = row.ok_or_else(|| details::missing(id))?;
    let log = LogState { head: row.int()?, body_version: row.int()? };
    let (kind, claim) = (row.word(ResourceKind::from_word)?, ClaimToken(row.int()?));
    let (host, pinged, spacing_us) = (row.text()?, row.int()?, row.int()?);
    let demand = poll_result::demand(&mut row)?;
    let (appends_paid_at, subscribers) = (row.time()?, row.small()?);
    let details = tx.first(DETAILS, params![id.0]).await?;
    let (status, polling) = details::read(&mut details.ok_or_else(|| details::missing(id))?)?;
    let versions = Versions::from_status(&status);
    #[rustfmt::skip]
    let held = ResourceBefore {
        claim, host, pinged, spacing_us, versions, demand, appends_paid_at,
    };
    Ok(Before { id, log, kind, status, polling, held, subscribers })
}
