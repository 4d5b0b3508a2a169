//! The limits of servers that all nodes of a gateway share, as the client needs them.
//!
//! A poll claims the host group of its resource before it starts. Every other group to which its
//! redirects lead, and every group of a request without a claim, is asked about here before a request is
//! sent: a server that requested a pause is not contacted, whichever address leads to it.

use std::fmt::Debug;
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use url::Url;

/// Decides about requests to host groups, for all nodes together.
#[async_trait]
pub trait HostGate: Debug + Send + Sync {
    /// Returns the group of servers that share one rate limit with the server of `url`.
    fn group(&self, url: &Url) -> String;

    /// Returns until when no requests are sent to a group, if it is paused.
    async fn paused_until(&self, group: &str) -> Option<DateTime<Utc>>;

    /// Waits until a request may be sent to a group, no longer than `max_wait`.
    async fn admit(&self, group: &str, max_wait: Duration) -> Result<(), GateRefusal>;
}

/// Why a request is not sent now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GateRefusal {
    /// The group is paused until this time.
    Paused(DateTime<Utc>),
    /// The group is busy; after this time it may not be.
    Busy(Duration),
}
