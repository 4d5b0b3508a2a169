//! The part of a status that polls do not change, but maintenance and appends do.

use chrono::{DateTime, Utc};
use feedgate_core::daily_counts::DailyCounts;
use feedgate_core::status::Status;
use serde::Deserialize;

/// The fields of a status that are changed by maintenance and appends, and not by polls.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(super) struct Measured {
    last_maintenance_at: DateTime<Utc>,
    entries_count_since_last_maintenance: u64,
    velocity: u64,
    daily: DailyCounts,
}

impl Measured {
    /// Extracts the fields.
    pub(super) fn from_status(status: &Status) -> Measured {
        Measured {
            last_maintenance_at: status.last_maintenance_at,
            entries_count_since_last_maintenance: status.entries_count_since_last_maintenance,
            velocity: status.velocity,
            daily: status.daily.clone(),
        }
    }

    /// Returns a status with these fields.
    pub(super) fn set(self, status: Status) -> Status {
        let Measured { last_maintenance_at, velocity, daily, .. } = self;
        let entries_count_since_last_maintenance = self.entries_count_since_last_maintenance;
        Status {
            last_maintenance_at,
            entries_count_since_last_maintenance,
            velocity,
            daily,
            ..status
        }
    }
}
