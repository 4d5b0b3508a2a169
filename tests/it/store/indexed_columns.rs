//! The columns of `subscriptions` that are indexed: none that each delivery changes. PostgreSQL writes a changed row
//! to its page alone if no column of an index, or of the condition of one, has changed, and otherwise to all indices.

use crate::support::postgres::{Database, Kind};

/// The columns that a successful delivery changes.
const OF_DELIVERIES: [&str; 6] = [
    "cursor",
    "attempted_at",
    "attempt_status",
    "attempt_excerpt",
    "acknowledged",
    "acknowledged_status",
];

#[tokio::test]
async fn a_delivery_changes_no_indexed_column_of_a_subscription() {
    // Columns in the condition of an index are known by what the index depends on.
    const INDEXED: &str = "
        select a.attname::text
          from pg_index i
          join pg_attribute a on a.attrelid = i.indrelid and a.attnum > 0
         where i.indrelid = 'subscriptions'::regclass
           and (a.attnum = any (i.indkey)
                or exists (select from pg_depend d
                            where d.classid = 'pg_class'::regclass and d.objid = i.indexrelid
                              and d.refobjid = i.indrelid and d.refobjsubid = a.attnum))";
    let database = Database::with_cells(Kind::Postgres, 1).await;
    database.open().await.close().await;
    let indexed = database.texts(INDEXED).await;
    for known in ["callback", "failures", "is_suspended"] {
        assert!(indexed.iter().any(|column| column == known), "{known}: {indexed:?}");
    }
    let changed: Vec<&String> =
        indexed.iter().filter(|column| OF_DELIVERIES.contains(&column.as_str())).collect();
    assert!(changed.is_empty(), "{changed:?}");
}
