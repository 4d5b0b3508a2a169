//! What an import did.

/// The most refused lines that are listed; all are counted.
const MOST_LISTED: usize = 1_000;

/// How many lines of a kind there were.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KindReport {
    /// Rows that are in the database now.
    pub added: u64,
    /// Rows that the database had.
    pub present: u64,
    /// Lines that were refused.
    pub refused: u64,
}

/// The result of an import.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImportReport {
    /// The kinds in the order of the file.
    pub kinds: Vec<(String, KindReport)>,
    /// The first refused lines: their numbers, and why.
    pub refused: Vec<(u64, String)>,
    /// Subscriptions that are paused until they have a secret again.
    pub paused: u64,
}

impl ImportReport {
    /// Returns the counts of a kind.
    pub(super) fn kind(&mut self, kind: &str) -> &mut KindReport {
        let place = self.kinds.iter().position(|(name, _)| name == kind);
        let place = place.unwrap_or_else(|| {
            self.kinds.push((kind.to_owned(), KindReport::default()));
            self.kinds.len() - 1
        });
        &mut self.kinds[place].1
    }

    /// Reports a line that cannot be used.
    pub(super) fn refuse(&mut self, kind: &str, line: u64, reason: String) {
        self.kind(kind).refused += 1;
        if self.refused.len() < MOST_LISTED {
            self.refused.push((line, reason));
        }
    }
}
