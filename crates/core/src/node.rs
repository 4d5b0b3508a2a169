//! The nodes of a gateway: the processes that share its database.

use chrono::{DateTime, Utc};

/// The id of a node: random, and another one after each start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeId(pub String);

/// One node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeInfo {
    /// Its id.
    pub id: NodeId,
    /// The name of its host, or the name that the operator chose.
    pub name: String,
    /// The version of the program.
    pub version: String,
    /// When it started.
    pub started_at: DateTime<Utc>,
}

/// A node, and when it was last seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenNode {
    /// The node.
    pub node: NodeInfo,
    /// When it last reported that it runs.
    pub seen_at: DateTime<Utc>,
}
