//! Nodes and signing keys: they are listed in the shared schema.

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use crate::cells::Cells;
use feedgate_core::node::{NodeId, NodeInfo, SeenNode};
use feedgate_core::ports::{Nodes, SigningKeys, StoreError};
use feedgate_core::signing_key::StoredSigningKey;

#[async_trait]
impl Nodes for Cells {
    async fn record_node(&self, node: &NodeInfo, now: DateTime<Utc>) -> Result<(), StoreError> {
        self.shared.record_node(node, now).await
    }

    async fn remove_node(&self, id: &NodeId) -> Result<(), StoreError> {
        self.shared.remove_node(id).await
    }

    async fn nodes(&self, limit: usize) -> Result<Vec<SeenNode>, StoreError> {
        self.shared.nodes(limit).await
    }
}

#[async_trait]
impl SigningKeys for Cells {
    async fn signing_keys(&self) -> Result<Vec<StoredSigningKey>, StoreError> {
        self.shared.signing_keys().await
    }

    async fn add_signing_key(&self, key: &StoredSigningKey) -> Result<(), StoreError> {
        self.shared.add_signing_key(key).await
    }

    async fn drop_signing_keys(&self, before: i64) -> Result<(), StoreError> {
        self.shared.drop_signing_keys(before).await
    }
}
