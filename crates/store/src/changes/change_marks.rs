//! Marks of how far changes.xml was listed, for a store of several cells: a mark is one number, and stands
//! for the newest line of each cell.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::cells::numbers::number_at;

/// The number of marks that are remembered: more than documents are rendered at the same time.
const MARKS: usize = 1_024;

/// The newest line of each cell, by the mark that stands for all of them.
#[derive(Debug, Default)]
pub(crate) struct ChangeMarks(Mutex<BTreeMap<i64, Arc<[i64]>>>);

impl ChangeMarks {
    /// Returns the mark of these newest lines: their sum without the numbers of their cells, which
    /// grows with each line.
    pub(crate) fn add(&self, newest: &[i64]) -> i64 {
        let local = newest.iter().enumerate().map(|(cell, newest)| newest - number_at(cell));
        let mark = local.map(|newest| newest.max(0)).sum();
        let mut marks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        marks.insert(mark, newest.into());
        if marks.len() > MARKS {
            marks.pop_first();
        }
        mark
    }

    /// Returns the newest line of each cell when this mark was made, if that is known.
    pub(crate) fn get(&self, mark: i64) -> Option<Arc<[i64]>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&mark).cloned()
    }
}
