//! The nodes that share the database.

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use crate::Db;
use crate::engine::sql::params;
use feedgate_core::node::{NodeId, NodeInfo, SeenNode};
use feedgate_core::ports::{Nodes, StoreError};

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

    async fn remove_node(&self, id: &NodeId) -> Result<(), StoreError> {
        const REMOVE: &str = "delete from nodes where id = $1";
        let params = [id.0.clone().into()];
        let removed =
            self.write(move |tx| Box::pin(async move { tx.execute(REMOVE, &params).await }));
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
