//! The nodes that share the database.

pub(crate) mod callback_slots;

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::Store;
use crate::engine::sql::params;
use feedgate_core::callback_slots::{SlotSet, SlotTerms};
use feedgate_core::node::{NodeId, NodeInfo, SeenNode};
use feedgate_core::served_hosts::ServedHosts;
use feedgate_core::store::StoreError;

/// Nodes.
impl Store {
    /// Records that a node runs at `now`. A node that was deleted in the meantime is listed again.
    pub async fn record_node(&self, node: &NodeInfo, now: DateTime<Utc>) -> Result<(), StoreError> {
        const RECORD: &str = "
            insert into nodes (id, name, version, started_at, seen_at) values ($1, $2, $3, $4, $5)
                on conflict (id) do update set seen_at = excluded.seen_at";
        let node = node.clone();
        let recorded = self.shared.write(move |tx| {
            Box::pin(async move {
                let params = params![node.id.0, node.name, node.version, node.started_at, now];
                tx.execute(RECORD, params).await
            })
        });
        recorded.await.map(drop)
    }

    /// Records that a node runs at `now`, and lets it serve its share of the hosts of callbacks: renews the slots
    /// that it has, gives up what is more than its share, and takes what no other node serves. Returns the
    /// time after which it is called again. Nothing is shared on SQLite: each process serves all hosts.
    pub async fn share_callback_hosts(
        &self,
        node: &NodeInfo,
        now: DateTime<Utc>,
        terms: SlotTerms,
    ) -> Result<Duration, StoreError> {
        callback_slots::share(self, (node, now), terms).await
    }

    /// Returns the hosts of callbacks that this node serves.
    pub fn served_hosts(&self) -> Arc<ServedHosts> {
        Arc::clone(&self.shared.served_hosts)
    }

    /// Deletes a node, which stops. It serves no more hosts of callbacks.
    pub async fn remove_node(&self, id: &NodeId) -> Result<(), StoreError> {
        const REMOVE: &str = "delete from nodes where id = $1";
        self.shared.served_hosts.give_up(SlotSet::ALL);
        let id = id.clone();
        let removed = self.shared.write(move |tx| {
            Box::pin(async move {
                callback_slots::give_up_all(tx, &id).await?;
                tx.execute(REMOVE, params![id.0]).await
            })
        });
        removed.await.map(drop)
    }

    /// Returns the nodes that reported last, the latest first, at most `limit`.
    pub async fn nodes(&self, limit: usize) -> Result<Vec<SeenNode>, StoreError> {
        const SEEN: &str = "
            select id, name, version, started_at, seen_at from nodes
             order by seen_at desc limit $1";
        let read = self.shared.read(move |tx| {
            Box::pin(async move {
                let mut nodes = Vec::new();
                for mut row in tx.query(SEEN, params![limit as i64]).await? {
                    let (id, name, version) = (NodeId(row.text()?), row.text()?, row.text()?);
                    let node = NodeInfo { id, name, version, started_at: row.time()? };
                    nodes.push(SeenNode { node, seen_at: row.time()? });
                }
                Ok(nodes)
            })
        });
        read.await
    }
}
