//! The faults found while a document is parsed.

use crate::repair::{Repair, RepairCode};

/// The faults found: how often each occurred, and where first.
#[derive(Debug, Default)]
pub(super) struct Faults {
    found: Vec<(RepairCode, usize, Option<usize>)>,
    /// The offset of the current token, if offsets are known.
    pub(super) at: Option<usize>,
}

impl Faults {
    /// Counts a fault, at the current token.
    pub(super) fn count(&mut self, code: RepairCode) {
        match self.found.iter_mut().find(|(held, ..)| *held == code) {
            Some((_, count, _)) => *count += 1,
            None => self.found.push((code, 1, self.at)),
        }
    }

    /// Returns whether a fault of this kind was counted.
    pub(super) fn has_counted(&self, code: RepairCode) -> bool {
        self.found.iter().any(|(held, ..)| *held == code)
    }

    /// Appends one repair for each kind of fault.
    pub(super) fn report(&self, repairs: &mut Vec<Repair>) {
        for (code, count, first) in &self.found {
            let repair = Repair::new(*code, format!("{count} times"));
            repairs.push(Repair { byte: *first, ..repair });
        }
    }
}
