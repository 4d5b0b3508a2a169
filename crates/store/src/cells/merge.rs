//! Merging the pages of several cells into one ordered list, in bounded memory.

use std::collections::VecDeque;
use std::sync::Arc;

use futures_util::future::BoxFuture;

use crate::Db;
use feedgate_core::store::StoreError;

/// The number of items that are read of a cell at once.
const PAGE: usize = 256;

/// The items of one cell that were read and not taken yet.
struct Source<T> {
    /// The number of items taken or waiting.
    read: usize,
    waiting: VecDeque<T>,
    is_end: bool,
}

/// Returns the `limit` items after the first `offset` of the ordered items of all cells. `page`
/// reads up to so many items of a cell after so many others, in ascending order of `key`. At most
/// [`PAGE`] items of each cell are held at a time, besides the result.
pub(crate) async fn merge<'a, T, K: Ord>(
    cells: &'a [Arc<Db>],
    (offset, limit): (usize, usize),
    page: impl Fn(&'a Db, usize, usize) -> BoxFuture<'a, Result<Vec<T>, StoreError>>,
    key: impl Fn(&T) -> K,
) -> Result<Vec<T>, StoreError> {
    let new = || Source { read: 0, waiting: VecDeque::new(), is_end: false };
    let mut sources: Vec<Source<T>> = cells.iter().map(|_| new()).collect();
    let (mut skipped, mut merged) = (0, Vec::new());
    while merged.len() < limit {
        for (cell, source) in cells.iter().zip(&mut sources) {
            if source.waiting.is_empty() && !source.is_end {
                let items = page(cell, source.read, PAGE).await?;
                source.is_end = items.len() < PAGE;
                source.read += items.len();
                source.waiting.extend(items);
            }
        }
        let next = sources.iter_mut().filter(|source| !source.waiting.is_empty());
        let Some(next) = next.min_by_key(|source| source.waiting.front().map(&key)) else { break };
        let item = next.waiting.pop_front();
        if skipped < offset {
            skipped += 1;
        } else {
            merged.extend(item);
        }
    }
    Ok(merged)
}
