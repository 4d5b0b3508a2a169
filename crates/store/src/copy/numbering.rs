//! The numbers of rows in the target of a copy.
//!
//! A row that stays in its cell keeps its number. Any other gets a number that follows from its old
//! one, so that a copy that is repeated after an interruption numbers it alike. New numbers are
//! greater than all old ones within a cell: an old number, which may be part of a published URL,
//! never becomes that of another row.

use serde::{Deserialize, Serialize};

use crate::cells::numbers::{LOCAL_BITS, cell_of_number, number_at};

/// How rows are numbered in a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Numbering {
    /// The number of cells of the target.
    cells: usize,
    /// One more than the greatest cell in a number of the source.
    source_cells: i64,
    /// The greatest number within a cell of the source.
    greatest_local: i64,
    /// The greatest number of the source.
    greatest: i64,
    /// What is added to each number within its cell: a target that has rows already, as that of an
    /// import, has used the numbers up to here.
    #[serde(default)]
    base: i64,
}

impl Numbering {
    /// Returns the numbering for a target with this number of cells; `greatest` are the greatest
    /// numbers that each table of the source ever had. `None` if the new numbers would be too
    /// large.
    pub(crate) fn new(cells: usize, greatest: &[i64]) -> Option<Numbering> {
        let source_cells = greatest.iter().map(|number| cell_of_number(*number)).max();
        let numbering = Numbering {
            cells,
            source_cells: source_cells.unwrap_or_default() as i64 + 1,
            greatest_local: greatest.iter().map(|number| local(*number)).max().unwrap_or_default(),
            greatest: greatest.iter().copied().max().unwrap_or_default(),
            base: 0,
        };
        let last = numbering.greatest_local.checked_mul(numbering.source_cells + 1)?;
        (last.checked_add(numbering.source_cells)? < 1 << LOCAL_BITS).then_some(numbering)
    }

    /// Returns a numbering for a target whose numbers are up to `used`. `None` as for [`Self::new`].
    pub(crate) fn after(self, used: &[i64]) -> Option<Numbering> {
        let base = used.iter().map(|number| local(*number)).max().unwrap_or_default();
        let last = local(self.last_number(0)).checked_add(base)?;
        (last < 1 << LOCAL_BITS).then_some(Numbering { base, ..self })
    }

    /// Returns the number of the row with the number `old` in `cell` of the target.
    pub(crate) fn renumber(&self, old: i64, cell: usize) -> i64 {
        if self.cells == 1 || cell_of_number(old) == cell {
            return old + self.base;
        }
        let place = local(old) * self.source_cells + cell_of_number(old) as i64;
        number_at(cell) + self.greatest_local + place + self.base
    }

    /// Returns a number in `cell` of the target that no row has, nor any number after it.
    pub(crate) fn last_number(&self, cell: usize) -> i64 {
        if self.cells == 1 {
            return self.greatest + self.base;
        }
        number_at(cell)
            + self.greatest_local * (self.source_cells + 1)
            + self.source_cells
            + self.base
    }
}

/// Returns a number without its cell.
fn local(number: i64) -> i64 {
    number & ((1 << LOCAL_BITS) - 1)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn no_number_is_given_twice_nor_to_another_row() {
        for (source_cells, cells) in [(1, 4), (4, 4), (4, 64), (64, 4), (4, 1)] {
            let of_cell = |cell| (1..=20).map(move |local| number_at(cell) + local);
            let old: Vec<i64> = (0..source_cells).flat_map(of_cell).collect();
            let numbering = Numbering::new(cells, &old).unwrap();
            let mut rows: BTreeMap<i64, i64> = BTreeMap::new();
            for (n, old) in old.iter().enumerate() {
                let cell = n * 7 % cells;
                let new = numbering.renumber(*old, cell);
                assert_eq!(rows.insert(new, *old), None, "{new} is given twice");
                assert!(cells == 1 || cell_of_number(new) == cell, "{old} is in cell {cell}");
                assert!(new <= numbering.last_number(cell));
            }
            for number in old {
                let row = rows.get(&number).copied().unwrap_or(number);
                assert_eq!(row, number, "an old number is another row's");
                let cell = if cells == 1 { 0 } else { cell_of_number(number) };
                assert!(cell >= cells || number <= numbering.last_number(cell));
            }
        }
    }

    #[test]
    fn numbers_that_no_longer_fit_into_a_cell_are_refused() {
        assert!(Numbering::new(64, &[1 << 38]).is_some());
        assert!(Numbering::new(64, &[1 << 39]).is_none());
        assert!(Numbering::new(64, &[number_at(63) + (1 << 34)]).is_none());
    }
}
