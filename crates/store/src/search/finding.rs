//! Finds the newest entries that have the keys of a search.
//!
//! FTS5 returns the rows of its index in their order, from any place on. GIN returns them in no
//! order: all rows would have to be read and sorted. So on PostgreSQL, few rows are read like that;
//! of many, a bounded number of the newest entries is read, and their keys are compared.

use std::collections::HashMap;
use std::sync::Arc;

use crate::engine::row::Row;
use crate::engine::sql::{Value, params};
use crate::engine::tx::Tx;
use crate::log::row::{most, record, record_columns};
use crate::search::filling::resources;
use feedgate_core::record::Record;
use feedgate_core::resource::{Resource, ResourceId};
use feedgate_core::search::{IndexSearch, PossibleMatch, PossibleMatches, SearchPosition};
use feedgate_core::store::StoreError;

/// Up to this many rows of the index for each entry wanted, PostgreSQL reads and sorts them all.
const SORTED_ROWS: usize = 20;
/// Otherwise it compares the keys of this many entries for each entry wanted, …
const COMPARED_ROWS: usize = 50;
/// … and so often. Of a million entries, more than 2,000 have the keys if 100 entries are wanted, so
/// some 40 of the 20,000 newest have them.
const COMPARISONS: usize = 4;

/// The places of entries, newest first.
struct FoundPlaces {
    places: Vec<i64>,
    /// There may be more entries before this place; `None`: there are none.
    read_down_to: Option<i64>,
}

/// The places between which entries are looked for, both included.
#[derive(Clone, Copy)]
struct PlaceRange {
    oldest: i64,
    newest: i64,
}

/// Returns the newest entries that have the keys of `search`.
pub(super) async fn find(tx: &Tx<'_>, search: &IndexSearch) -> Result<PossibleMatches, StoreError> {
    let range = PlaceRange {
        oldest: search.after.map_or(0, |after| after.place),
        newest: search.before.map_or(i64::MAX, |before| before.place),
    };
    // Of the entries at both ends of the range, one each may be outside of it.
    let limit = search.limit + 1;
    let found = match tx.is_shared() {
        true => find_on_postgres(tx, search, range, limit).await?,
        false => find_on_sqlite(tx, search, range, limit).await?,
    };
    let mut entries = read_entries(tx, found.places).await?;
    entries.retain(|entry| {
        search.before.is_none_or(|before| entry.position < before)
            && search.after.is_none_or(|after| entry.position > after)
    });
    let mut continues_before = found
        .read_down_to
        .map(|place| SearchPosition { place, resource: ResourceId(0) })
        .filter(|reached| search.after.is_none_or(|after| *reached > after));
    if entries.len() > search.limit {
        entries.truncate(search.limit);
        continues_before = entries.last().map(|entry| entry.position);
    }
    Ok(PossibleMatches { entries, continues_before })
}

async fn find_on_sqlite(
    tx: &Tx<'_>,
    search: &IndexSearch,
    range: PlaceRange,
    limit: usize,
) -> Result<FoundPlaces, StoreError> {
    const NEWEST: &str = "
        select rowid from search_index
         where {sqlite search_index match $1}{postgres keys @@ cast(cast($1 as text) as tsquery)}
           and rowid <= $2 and rowid >= $3
         order by rowid desc
         limit $4";
    let keys = search.keys.to_text(" AND ", " OR ");
    let rows = tx.query(NEWEST, params![keys, range.newest, range.oldest, most(limit)]).await?;
    Ok(FoundPlaces::new(places(rows)?, limit))
}

async fn find_on_postgres(
    tx: &Tx<'_>,
    search: &IndexSearch,
    mut range: PlaceRange,
    limit: usize,
) -> Result<FoundPlaces, StoreError> {
    const INDEXED: &str = "
        select rowid from search_index where keys @@ cast(cast($1 as text) as tsquery) limit $2";
    const COMPARED: &str = "
        select rowid, case when keys @@ cast(cast($1 as text) as tsquery) then 1 else 0 end
          from (select rowid, keys from search_index
                 where rowid <= $2 and rowid >= $3
                 order by rowid desc
                 limit $4) newest
         order by rowid desc";
    let keys = search.keys.to_text(" & ", " | ");
    let few = SORTED_ROWS * limit;
    let indexed = places(tx.query(INDEXED, params![keys.as_str(), most(few + 1)]).await?)?;
    if indexed.len() <= few {
        let mut found = indexed;
        found.retain(|place| (range.oldest..=range.newest).contains(place));
        found.sort_unstable_by(|one, other| other.cmp(one));
        found.truncate(limit);
        return Ok(FoundPlaces::new(found, limit));
    }
    let (mut found, compared) = (Vec::new(), COMPARED_ROWS * limit);
    for _ in 0..COMPARISONS {
        let params = params![keys.as_str(), range.newest, range.oldest, most(compared)];
        let rows = tx.query(COMPARED, params).await?;
        let is_end = rows.len() < compared;
        for mut row in rows {
            let place = row.int()?;
            range.newest = place - 1;
            if row.int()? != 0 {
                found.push(place);
            }
            if found.len() == limit {
                return Ok(FoundPlaces::new(found, limit));
            }
        }
        if is_end {
            return Ok(FoundPlaces::new(found, limit));
        }
    }
    Ok(FoundPlaces { places: found, read_down_to: Some(range.newest + 1) })
}

impl FoundPlaces {
    /// Returns places among which none is missing, unless there are `limit` of them.
    fn new(places: Vec<i64>, limit: usize) -> FoundPlaces {
        let read_down_to = places.last().copied().filter(|_| places.len() == limit);
        FoundPlaces { places, read_down_to }
    }
}

fn places(rows: Vec<Row>) -> Result<Vec<i64>, StoreError> {
    rows.into_iter().map(|mut row| row.int()).collect()
}

/// Returns the entries at these places, newest first, without those that were replaced or deleted
/// since they were indexed.
async fn read_entries(tx: &Tx<'_>, places: Vec<i64>) -> Result<Vec<PossibleMatch>, StoreError> {
    const ENTRIES: &str = concat!(
        "select e.position, e.resource_id, ",
        record_columns!(),
        " from search_entries e
          join records r on r.resource_id = e.resource_id and r.seq = e.seq
         where e.position in ({ids $1})
           and not exists (select 1 from records n
                            where n.resource_id = r.resource_id and n.predecessor = r.seq)
         order by e.position desc"
    );
    if places.is_empty() {
        return Ok(Vec::new());
    }
    let mut records: Vec<(SearchPosition, Record)> = Vec::new();
    for mut row in tx.query(ENTRIES, &[Value::Ints(places)]).await? {
        let position = SearchPosition { place: row.int()?, resource: ResourceId(row.int()?) };
        records.push((position, record(row)?));
    }
    let mut ids: Vec<i64> = records.iter().map(|(position, _)| position.resource.0).collect();
    ids.sort_unstable();
    ids.dedup();
    let resources = resources(tx, ids).await?.into_iter();
    let resources: HashMap<i64, Arc<Resource>> =
        resources.map(|(id, resource)| (id, Arc::new(resource))).collect();
    let entries = records.into_iter().filter_map(|(position, record)| {
        let resource = Arc::clone(resources.get(&position.resource.0)?);
        Some(PossibleMatch { position, resource, record })
    });
    Ok(entries.collect())
}
