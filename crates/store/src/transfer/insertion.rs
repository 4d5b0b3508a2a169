//! Inserts the rows of one table that are not there yet, with what depends on them.

use std::collections::HashSet;
use std::sync::Arc;

use chrono::{DateTime, Utc};

use crate::Db;
use crate::copy::tables::CopiedTable;
use crate::copy::target::TargetColumn;
use crate::delivery::backlogs;
use crate::delivery::subscriber_counts::{CountedSubscription, count_begun, counted_columns};
use crate::engine::row::Row;
use crate::engine::sql::{Value, params};
use crate::engine::tx::Tx;
use crate::resources::row;
use crate::search::filling;
use feedgate_core::resource::ResourceId;
use feedgate_core::store::StoreError;

/// Inserts rows of one table.
pub(super) struct Insertion<'a> {
    pub(super) table: &'static CopiedTable,
    pub(super) columns: &'a [TargetColumn],
    /// The numbers of resources that the database has by itself.
    pub(super) foreign: Arc<HashSet<i64>>,
    pub(super) now: DateTime<Utc>,
}

impl Insertion<'_> {
    /// Returns how many of the rows were not there yet.
    pub(super) async fn insert_into(
        &self,
        db: &Db,
        rows: Vec<Arc<[Value]>>,
    ) -> Result<u64, StoreError> {
        let (table, columns) = (self.table, self.columns);
        let names: Vec<String> = columns.iter().map(|column| column.name.clone()).collect();
        let list = names.join(", ");
        let returned = match table.name {
            "subscriptions" => concat!(counted_columns!(), ", id"),
            "resources" => "id, head",
            _ => table.key[0],
        };
        let sql = format!(
            "insert into {} ({list}) {{values {list}}} on conflict do nothing returning {returned}",
            table.name
        );
        let lists = columns.iter().enumerate().map(|(n, column)| column.kind.list(&rows, n));
        let lists = Arc::new(lists.collect::<Result<Vec<_>, _>>()?);
        let (foreign, now) = (Arc::clone(&self.foreign), self.now);
        let inserted = db.write(move |tx| {
            Box::pin(async move {
                let named = names.iter().map(String::as_str);
                let columns: Vec<_> = named.zip(lists.iter().cloned()).collect();
                let rows = tx.query_rows(&sql, &[], &columns).await?;
                let count = rows.len() as u64;
                match table.name {
                    "subscriptions" => begin_subscriptions(tx, rows, &foreign, now).await?,
                    "resources" => {
                        for mut row in rows {
                            let (id, head) = (row.int()?, row.int()?);
                            if head > 0 {
                                filling::queue(tx, ResourceId(id), (0, head), now).await?;
                            }
                        }
                    }
                    _ => {}
                }
                Ok(count)
            })
        });
        inserted.await
    }
}

/// Counts new subscriptions, those of owners and those of resources that were there before, and makes
/// them due if they are owed something. The count of a new resource is part of its row.
async fn begin_subscriptions(
    tx: &Tx<'_>,
    rows: Vec<Row>,
    foreign: &HashSet<i64>,
    now: DateTime<Utc>,
) -> Result<(), StoreError> {
    const COUNT: &str = "
        update resources
           set subscribers = subscribers + 1, unwatched_since = null, was_watched = 1
         where id = $1";
    let mut begun = Vec::with_capacity(rows.len());
    let (mut resources, mut ids) = (Vec::new(), Vec::new());
    for mut row in rows {
        let counted = CountedSubscription::read(&mut row)?;
        if foreign.contains(&counted.resource()) {
            tx.execute(COUNT, params![counted.resource()]).await?;
        }
        resources.push(counted.resource());
        ids.push(row.int()?);
        begun.push(counted);
    }
    let on = resources.clone();
    let keys = [("resource_id", Value::Ints(resources)), ("id", Value::Ints(ids))];
    // A gateway that runs may append meanwhile: either its head is read here, or it finds the
    // subscriptions.
    row::lock(tx, on).await?;
    backlogs::mark_ready(tx, &keys, now).await?;
    count_begun(tx, begun.into_iter()).await
}
