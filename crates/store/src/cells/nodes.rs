//! Nodes and signing keys: they are listed in the shared schema.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use crate::cells::Cells;
use crate::nodes::callback_slots;
use feedgate_core::callback_slots::SlotTerms;
use feedgate_core::node::{NodeId, NodeInfo, SeenNode};
use feedgate_core::ports::{Nodes, SigningKeys, StoreError};
use feedgate_core::served_hosts::ServedHosts;
use feedgate_core::signing_key::StoredSigningKey;

#[async_trait]
impl Nodes for Cells {
    async fn record_node(&self, node: &NodeInfo, now: DateTime<Utc>) -> Result<(), StoreError> {
        self.shared.record_node(node, now).await
    }

    async fn share_callback_hosts(
        &self,
        node: &NodeInfo,
        now: DateTime<Utc>,
        terms: SlotTerms,
    ) -> Result<Duration, StoreError> {
        callback_slots::share(&self.shared, &self.cells, (node, now), terms).await
    }

    fn served_hosts(&self) -> Arc<ServedHosts> {
        self.shared.served_hosts()
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
