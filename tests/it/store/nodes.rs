//! The list of the nodes that share the database.

use chrono::{DateTime, Utc};
use feedgate_core::node::{NodeId, NodeInfo, SeenNode};
use feedgate_core::store::PruneBefore;
use feedgate_store::Store;

use super::{at, on_both_stores};
use crate::support::postgres::Database;

on_both_stores!(
    nodes_are_listed_while_they_report,
    nodes_that_no_longer_report_are_deleted,
    the_nodes_that_reported_last_are_listed_first,
);

fn node(id: &str, started_at: DateTime<Utc>) -> NodeInfo {
    NodeInfo {
        id: NodeId(id.to_owned()),
        name: format!("{id}.test"),
        version: "1.2.3".to_owned(),
        started_at,
    }
}

/// The ids of the nodes that are listed.
async fn ids(store: &Store) -> Vec<String> {
    let nodes = store.nodes(10).await.unwrap();
    nodes.into_iter().map(|seen| seen.node.id.0).collect()
}

async fn nodes_are_listed_while_they_report(database: Database) {
    let (one, other) = (database.open().await, database.open().await);
    assert_eq!(one.nodes(10).await.unwrap(), []);
    let (first, second) = (node("first", at(0)), node("second", at(5)));
    one.record_node(&first, at(1)).await.unwrap();
    other.record_node(&second, at(6)).await.unwrap();
    one.record_node(&first, at(31)).await.unwrap();
    let want = [
        SeenNode { node: first.clone(), seen_at: at(31) },
        SeenNode { node: second.clone(), seen_at: at(6) },
    ];
    for store in [&one, &other] {
        assert_eq!(store.nodes(10).await.unwrap(), want);
    }

    one.remove_node(&first.id).await.unwrap();
    assert_eq!(ids(&other).await, ["second"]);
    one.remove_node(&first.id).await.unwrap();
}

async fn nodes_that_no_longer_report_are_deleted(database: Database) {
    let store = database.open().await;
    let (old, new) = (node("old", at(0)), node("new", at(0)));
    store.record_node(&old, at(10)).await.unwrap();
    store.record_node(&new, at(10)).await.unwrap();
    store.record_node(&new, at(20)).await.unwrap();
    let before = PruneBefore { nodes: Some(at(15)), ..PruneBefore::default() };
    assert_eq!(store.prune(&before).await.unwrap(), 1);
    assert_eq!(ids(&store).await, ["new"]);

    // A node that was only interrupted, such as a machine that was asleep, is listed again.
    store.record_node(&old, at(30)).await.unwrap();
    let listed = store.nodes(1).await.unwrap();
    assert_eq!(listed, [SeenNode { node: old, seen_at: at(30) }]);
}

async fn the_nodes_that_reported_last_are_listed_first(database: Database) {
    let store = database.open().await;
    for n in 0..5 {
        store.record_node(&node(&n.to_string(), at(n)), at(n)).await.unwrap();
    }
    let nodes = store.nodes(2).await.unwrap();
    let ids: Vec<_> = nodes.iter().map(|seen| seen.node.id.0.as_str()).collect();
    assert_eq!(ids, ["4", "3"]);
}
