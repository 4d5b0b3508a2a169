//! The nodes that share the database.

pub(crate) mod callback_slots;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use crate::Db;
use crate::engine::sql::params;
use feedgate_core::callback_slots::{SlotSet, SlotTerms};
use feedgate_core::node::{NodeId, NodeInfo, SeenNode};
use feedgate_core::ports::{Nodes, StoreError};
use feedgate_core::served_hosts::ServedHosts;

#[async_trait]
impl Nodes for Db {
    async fn record_node(&self, node: &NodeInfo, now: DateTime<Utc>) -> Result<(), StoreError> {
        const RECORD: &str = "
            insert into nodes (id, name, version, started_at, seen_at) values ($1, $2, $3, $4, $5)
                on conflict (id) do update set seen_at = excluded.seen_at";
        let node = node.clone();
        let recorded = self.write(move |tx| {
            Box::pin(async move {
                let params = params![node.id.0, node.name, node.version, node.started_at, now];
                tx.execute(RECORD, params).await
            })
        });
        recorded.await.map(drop)
    }

    async fn share_callback_hosts(
        &self,
        node: &NodeInfo,
        now: DateTime<Utc>,
        terms: SlotTerms,
    ) -> Result<Duration, StoreError> {
        callback_slots::share(self, &[self], (node, now), terms).await
    }

    fn served_hosts(&self) -> Arc<ServedHosts> {
        Arc::clone(&self.served_hosts)
    }

    async fn remove_node(&self, id: &NodeId) -> Result<(), StoreError> {
        const REMOVE: &str = "delete from nodes where id = $1";
        self.served_hosts.give_up(SlotSet::ALL);
        let id = id.clone();
        let removed = self.write(move |tx| {
            Box::pin(async move {
                callback_slots::give_up_all(tx, &id).await?;
                tx.execute(REMOVE, params![id.0]).await
            })
        });
        removed.await.map(drop)
    }

    async fn nodes(&self, limit: usize) -> Result<Vec<SeenNode>, StoreError> {
        const SEEN: &str = "
            select id, name, version, started_at, seen_at from nodes
             order by seen_at desc limit $1";
        let read = self.read(move |tx| {
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
