//! The pages of a list that each cell has, put together.

use feedgate_core::store::ListPosition;

/// How many portions are read at most until one has a row that a query selects.
pub(crate) const PORTIONS: usize = 20;

/// Returns what is greater than each text that begins with `prefix`.
pub(crate) fn end_of_prefix(prefix: &str) -> String {
    format!("{prefix}{}", char::MAX)
}

/// A row of a list, with its place.
pub(crate) type PlacedRow<T> = (ListPosition, T);

/// The rows of one cell behind a place, in their order.
pub(crate) struct CellPage<T> {
    /// The rows, not more than were wanted.
    pub(crate) rows: Vec<PlacedRow<T>>,
    /// Behind this place the cell may have more rows; `None`: it has none.
    pub(crate) next: Option<ListPosition>,
}

/// Returns the first `limit` rows of all cells, and where the next page begins.
pub(crate) fn merge_pages<T>(
    pages: Vec<CellPage<T>>,
    limit: usize,
) -> (Vec<T>, Option<ListPosition>) {
    // Behind this place, a cell may have rows that it has not returned.
    let mut next = pages.iter().filter_map(|page| page.next.clone()).min();
    let mut rows: Vec<PlacedRow<T>> = pages.into_iter().flat_map(|page| page.rows).collect();
    rows.sort_by(|one, other| one.0.cmp(&other.0));
    rows.retain(|(place, _)| next.as_ref().is_none_or(|next| place <= next));
    if rows.len() > limit {
        rows.truncate(limit);
        next = rows.last().map(|(place, _)| place.clone());
    }
    (rows.into_iter().map(|(_, row)| row).collect(), next)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(id: i64) -> ListPosition {
        ListPosition { id, number: 0, ..ListPosition::default() }
    }

    fn page(ids: &[i64], next: Option<i64>) -> CellPage<i64> {
        CellPage { rows: ids.iter().map(|id| (place(*id), *id)).collect(), next: next.map(place) }
    }

    #[test]
    fn no_row_that_a_cell_has_not_returned_is_left_out() {
        #[rustfmt::skip]
        let cases = [
            (vec![page(&[1, 4], None), page(&[2], None)],       vec![1, 2, 4], None),
            (vec![page(&[1, 4], Some(4)), page(&[2], None)],    vec![1, 2, 4], Some(4)),
            (vec![page(&[1, 9], None), page(&[2, 3], Some(5))], vec![1, 2, 3], Some(5)),
            (vec![page(&[1, 3], None), page(&[2, 4], None)],    vec![1, 2, 3], Some(3)),
            (vec![page(&[], Some(7)), page(&[], Some(6))],      vec![],        Some(6)),
        ];
        for (pages, rows, next) in cases {
            assert_eq!(merge_pages(pages, 3), (rows, next.map(place)));
        }
    }
}
