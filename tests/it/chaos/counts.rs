//! How often each thing happened.

use std::collections::BTreeMap;
use std::fmt;

#[derive(Debug, Default)]
pub(super) struct Counts(BTreeMap<String, usize>);

impl Counts {
    pub(super) fn count(&mut self, what: impl Into<String>) {
        self.count_by(what, 1);
    }

    pub(super) fn count_by(&mut self, what: impl Into<String>, times: usize) {
        *self.0.entry(what.into()).or_default() += times;
    }

    pub(super) fn add(&mut self, others: &Counts) {
        others.0.iter().for_each(|(what, times)| self.count_by(what, *times));
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|(what, count)| writeln!(f, "  {count:5} {what}"))
    }
}
