//! The numbers of imported rows: after all that the database has used, and the same whenever the file is
//! imported again.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::Db;
use crate::copy::copy_state::{SAVE_PROPERTY, read_property};
use crate::copy::numbering::Numbering;
use crate::copy::source::greatest_number;
use crate::copy::tables::{NUMBERED_IN_CELLS, NUMBERED_IN_SHARED};
use crate::engine::sql::{self, params};
use crate::transfer::error::TransferError;
use crate::transfer::header::ExportHeader;
use feedgate_core::store::StoreError;

/// How the rows of a file are numbered.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct ImportNumbers {
    pub(super) numbering: Numbering,
    /// What is added to the numbers of accounts and tokens.
    pub(super) shared_base: i64,
}

/// Returns the numbering of a file: that of its first import, or one after all numbers in use, which
/// are reserved.
pub(super) async fn begin_numbers(
    shared: &Db,
    cells: &[Arc<Db>],
    header: &ExportHeader,
) -> Result<ImportNumbers, TransferError> {
    let property = format!("import {}", header.id);
    if let Some(stored) = read_property(shared, &property).await? {
        return Ok(sql::parse_json(&stored)?);
    }
    let (mut used, mut shared_base) = (Vec::new(), 0);
    for cell in cells {
        for table in NUMBERED_IN_CELLS {
            used.push(greatest_number(cell, table).await?);
        }
    }
    for table in NUMBERED_IN_SHARED {
        shared_base = greatest_number(shared, table).await?.max(shared_base);
    }
    let numbering = Numbering::new(cells.len(), &header.greatest);
    let numbering = numbering.and_then(|numbering| numbering.after(&used));
    let numbering = numbering.ok_or(TransferError::NumbersExhausted)?;
    let numbers = ImportNumbers { numbering, shared_base };
    for (place, cell) in cells.iter().enumerate() {
        for table in NUMBERED_IN_CELLS {
            reserve(cell, table, numbers.numbering.last_number(place)).await?;
        }
    }
    for table in NUMBERED_IN_SHARED {
        reserve(shared, table, shared_base + header.greatest_shared).await?;
    }
    let save = params![property, sql::json(&numbers)].to_vec();
    shared.write(move |tx| Box::pin(async move { tx.execute(SAVE_PROPERTY, &save).await })).await?;
    Ok(numbers)
}

/// Makes a table number new rows after `last`.
async fn reserve(db: &Db, table: &'static str, last: i64) -> Result<(), StoreError> {
    const RESERVE: &str = "
        {postgres select setval(pg_get_serial_sequence($1, 'id'), greatest(cast($2 as bigint),
            coalesce(pg_sequence_last_value(pg_get_serial_sequence($1, 'id')::regclass), 0)))}
        {sqlite update sqlite_sequence set seq = max(seq, $2) where name = $1}";
    const BEGIN: &str = "
        {postgres select $1::text}
        {sqlite insert into sqlite_sequence (name, seq)
            select $1, 0 where not exists (select 1 from sqlite_sequence where name = $1)}";
    if last == 0 {
        return Ok(());
    }
    db.write(move |tx| {
        Box::pin(async move {
            tx.query(BEGIN, params![table]).await?;
            tx.query(RESERVE, params![table, last]).await.map(drop)
        })
    })
    .await
}
