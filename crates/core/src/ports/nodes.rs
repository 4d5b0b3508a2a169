//! The port of nodes: which processes share the database, and how they share the hosts of callbacks.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::StoreError;
use crate::callback_slots::SlotTerms;
use crate::node::{NodeId, NodeInfo, SeenNode};
use crate::served_hosts::ServedHosts;

/// Nodes.
#[async_trait]
pub trait Nodes: Send + Sync {
    /// Records that a node runs at `now`. A node that was deleted in the meantime is listed again.
    async fn record_node(&self, node: &NodeInfo, now: DateTime<Utc>) -> Result<(), StoreError>;

    /// Records that a node runs at `now`, and lets it serve its share of the hosts of callbacks: renews the slots
    /// that it has, gives up what is more than its share, and takes what no other node serves. Returns the
    /// time after which it is called again. Nothing is shared on SQLite: each process serves all hosts.
    async fn share_callback_hosts(
        &self,
        node: &NodeInfo,
        now: DateTime<Utc>,
        terms: SlotTerms,
    ) -> Result<Duration, StoreError>;

    /// Returns the hosts of callbacks that this node serves.
    fn served_hosts(&self) -> Arc<ServedHosts>;

    /// Deletes a node, which stops. It serves no more hosts of callbacks.
    async fn remove_node(&self, id: &NodeId) -> Result<(), StoreError>;

    /// Returns the nodes that reported last, the latest first, at most `limit`.
    async fn nodes(&self, limit: usize) -> Result<Vec<SeenNode>, StoreError>;
}
