//! The port of nodes: which processes share the database, for operators to see.

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::StoreError;
use crate::node::{NodeId, NodeInfo, SeenNode};

/// Nodes.
#[async_trait]
pub trait Nodes: Send + Sync {
    /// Records that a node runs at `now`. A node that was deleted in the meantime is listed again.
    async fn record_node(&self, node: &NodeInfo, now: DateTime<Utc>) -> Result<(), StoreError>;

    /// Deletes a node, which stops.
    async fn remove_node(&self, id: &NodeId) -> Result<(), StoreError>;

    /// Returns the nodes that reported last, the latest first, at most `limit`.
    async fn nodes(&self, limit: usize) -> Result<Vec<SeenNode>, StoreError>;
}
