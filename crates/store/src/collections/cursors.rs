//! Cursors of collections in the logs of resources, and how much of the logs is read together.

use std::collections::HashMap;

use crate::engine::row::Row;
use crate::engine::sql::Value;
use crate::engine::tx::Tx;
use feedgate_core::collection::PendingCollection;
use feedgate_core::store::StoreError;

/// A cursor of a collection in the log of a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Cursor {
    pub(super) resource: i64,
    pub(super) collection: i64,
    pub(super) stands: i64,
    pub(super) upto: i64,
}

impl Cursor {
    pub(super) fn from_pending(owing: &PendingCollection) -> Cursor {
        Cursor {
            resource: owing.member.id.0,
            collection: owing.collection.0,
            stands: owing.after.0,
            upto: owing.upto.0,
        }
    }

    /// Reads `resource_id, collection_id, cursor, upto`.
    pub(super) fn read(row: &mut Row) -> Result<Cursor, StoreError> {
        Ok(Cursor {
            resource: row.int()?,
            collection: row.int()?,
            stands: row.int()?,
            upto: row.int()?,
        })
    }

    pub(super) fn key(&self) -> [i64; 2] {
        [self.resource, self.collection]
    }
}

pub(super) fn columns(cursors: &[Cursor]) -> [(&'static str, Value); 4] {
    let ints = |value: fn(&Cursor) -> i64| Value::Ints(cursors.iter().map(value).collect());
    [
        ("resource_id", ints(|cursor| cursor.resource)),
        ("collection_id", ints(|cursor| cursor.collection)),
        ("cursor", ints(|cursor| cursor.stands)),
        ("upto", ints(|cursor| cursor.upto)),
    ]
}

/// Shortens ranges of records, in their order, so that they have at most `most` bytes together, and leaves
/// out those for which no room is left. The first record is read whatever its length.
pub(super) async fn bound_bytes(
    tx: &Tx<'_>,
    cursors: Vec<Cursor>,
    most: u64,
) -> Result<Vec<Cursor>, StoreError> {
    const SIZES: &str = "
        select given.resource_id, given.collection_id, r.seq, octet_length(r.atom)
          from {rows}
          join records r on r.resource_id = given.resource_id
                        and r.seq > given.cursor and r.seq <= given.upto
         where r.audience >= 1
         order by r.seq";
    let mut sizes: HashMap<_, Vec<(i64, u64)>> = HashMap::new();
    for mut row in tx.query_rows(SIZES, &[], &columns(&cursors)).await? {
        let key = (row.int()?, row.int()?);
        sizes.entry(key).or_default().push((row.int()?, row.count()?));
    }
    let (mut bounded, mut bytes) = (Vec::with_capacity(cursors.len()), 0);
    for mut cursor in cursors {
        let records = sizes.remove(&(cursor.resource, cursor.collection)).unwrap_or_default();
        let mut last = None;
        for (seq, size) in records {
            if bytes > 0 && bytes + size > most {
                if let Some(last) = last {
                    cursor.upto = last;
                    bounded.push(cursor);
                }
                return Ok(bounded);
            }
            (bytes, last) = (bytes + size, Some(seq));
        }
        bounded.push(cursor);
    }
    Ok(bounded)
}
