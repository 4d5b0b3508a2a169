//! Plans of PostgreSQL, on filled tables. They are those for any parameters (`force_generic_plan`),
//! but with a limit of ten rows: without a number, the planner assumes a tenth of the table. Bitmaps
//! are disabled: they read the same rows of an index, but hide that a limit ends the scan.

use serde_json::Value;
use tokio_postgres::{Client, SimpleQueryMessage};

use super::access::{Access, Index, Indices};
use super::statements::Statement;
use crate::support::postgres::{Database, connect};

/// Explains statements on one database.
pub(super) struct Explainer {
    client: Client,
    indices: Indices,
}

impl Explainer {
    pub(super) async fn new(database: &Database) -> Explainer {
        const INDICES: &str = "
            select i.indexrelid::regclass::text, i.indisunique,
                   array(select pg_get_indexdef(i.indexrelid, k, true)
                           from generate_series(1, i.indnkeyatts) k)
              from pg_index i join pg_class c on c.oid = i.indexrelid
             where c.relnamespace = current_schema()::regnamespace";
        let client = connect(&database.url).await;
        let rows = client.query(INDICES, &[]).await.unwrap().into_iter();
        let indices =
            rows.map(|row| (row.get(0), Index { is_unique: row.get(1), columns: row.get(2) }));
        let indices = indices.collect();
        const SESSION: &str =
            "set plan_cache_mode = force_generic_plan; set enable_bitmapscan = off";
        client.batch_execute(SESSION).await.unwrap();
        Explainer { client, indices }
    }

    /// The scans of a statement.
    pub(super) async fn explain(&self, statement: &Statement) -> Vec<Access> {
        let plan = self.plan(&statement.postgres).await;
        let mut found = Vec::new();
        self.read(&plan, false, &mut found);
        found
    }

    async fn plan(&self, text: &str) -> Value {
        let count = (1..32).rev().find(|n| text.contains(&format!("${n}"))).unwrap_or(0);
        let mut limited = text.to_owned();
        let mut types = vec!["unknown"; count];
        // `$1` is the beginning of `$10`.
        for n in (1..=count).rev() {
            for bound in ["limit", "offset"] {
                let (before, after) = (format!("{bound} ${n}"), format!("{bound} 10"));
                if limited.contains(&before) {
                    limited = limited.replace(&before, &after);
                    types[n - 1] = "bigint";
                }
            }
        }
        let list = |words: &[&str]| match words {
            [] => String::new(),
            words => format!("({})", words.join(", ")),
        };
        let (types, nulls) = (list(&types), list(&vec!["null"; count]));
        let explain = format!(
            "prepare explained{types} as {limited};
             explain (format json) execute explained{nulls};
             deallocate explained"
        );
        let rows = self.client.simple_query(&explain).await;
        let rows = rows.unwrap_or_else(|err| panic!("{limited}: {err:?}"));
        let lines = rows.iter().filter_map(|message| match message {
            SimpleQueryMessage::Row(row) => row.get(0),
            _ => None,
        });
        let plan: Value = serde_json::from_str(&lines.collect::<String>()).unwrap();
        plan[0]["Plan"].clone()
    }

    /// Collects the scans under a node. `is_limited` is whether the rows of the node are those of a
    /// limit above it, with nothing in between that reads all of them first.
    fn read(&self, node: &Value, is_limited: bool, found: &mut Vec<Access>) {
        let text = |name: &str| node[name].as_str().unwrap_or_default();
        let kind = text("Node Type");
        found.extend(self.access(node, is_limited));
        let passes_on = match kind {
            "Limit" => true,
            "Nested Loop" | "Merge Join" | "Hash Join" | "LockRows" | "Result" | "Append"
            | "Merge Append" | "Subquery Scan" | "Unique" | "Incremental Sort" | "Memoize"
            | "ProjectSet" => is_limited,
            _ => false,
        };
        for child in node["Plans"].as_array().into_iter().flatten() {
            let is_apart =
                matches!(child["Parent Relationship"].as_str(), Some("InitPlan" | "SubPlan"));
            self.read(child, passes_on && !is_apart, found);
        }
    }

    fn access(&self, node: &Value, is_limited: bool) -> Option<Access> {
        let text = |name: &str| node[name].as_str().unwrap_or_default().to_owned();
        let kind = text("Node Type");
        let index = self.indices.get(&text("Index Name")).cloned();
        let (condition, is_filtered) = (text("Index Cond"), node.get("Filter").is_some());
        if !matches!(
            kind.as_str(),
            "Seq Scan" | "Index Scan" | "Index Only Scan" | "Bitmap Heap Scan"
        ) {
            return None;
        }
        Some(Access { table: text("Relation Name"), index, condition, is_filtered, is_limited })
    }
}
