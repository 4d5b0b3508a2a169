//! Claiming work from several cells.

use std::collections::HashMap;
use std::error::Error;

use tracing::warn;

use feedgate_core::store::{ClaimLimits, StoreError};

/// What is claimed from the cells, one after another. A cell that fails is passed over, so that one
/// server out of several stops only its own cells, and what other cells have claimed is kept.
#[derive(Debug)]
pub(crate) struct CellClaims<T> {
    claimed: Vec<T>,
    limit: usize,
    /// The first failure of a cell.
    failed: Option<StoreError>,
}

impl<T> CellClaims<T> {
    /// Begins to claim up to `limit` of something.
    pub(crate) fn new(limit: usize) -> CellClaims<T> {
        CellClaims { claimed: Vec::new(), limit, failed: None }
    }

    /// Returns how many may still be claimed.
    pub(crate) fn left(&self) -> usize {
        self.limit.saturating_sub(self.claimed.len())
    }

    /// Returns what has been claimed so far.
    pub(crate) fn claimed(&self) -> &[T] {
        &self.claimed
    }

    /// Adds the claims of one cell.
    pub(crate) fn add(&mut self, claimed: Result<Vec<T>, StoreError>) {
        match claimed {
            Ok(claimed) => self.claimed.extend(claimed),
            Err(err) => {
                self.failed.get_or_insert(err);
            }
        }
    }

    /// Returns all claims, or the first failure if there are none.
    pub(crate) fn finish(mut self) -> Result<Vec<T>, StoreError> {
        match self.failed.take() {
            Some(err) if self.claimed.is_empty() => Err(err),
            failed => Ok(CellClaims { failed, ..self }.into_claimed()),
        }
    }

    /// Returns all claims. A failure is logged.
    pub(crate) fn into_claimed(self) -> Vec<T> {
        if let Some(err) = &self.failed {
            warn!(error = err as &dyn Error, "nothing was claimed from a cell; the others go on");
        }
        self.claimed
    }
}

/// Adds to the busy hosts those that have reached their limit with the jobs claimed so far, so
/// that the limit holds for all cells together.
pub(crate) fn fill(limits: &mut ClaimLimits, hosts: impl Iterator<Item = String>) {
    let mut counts = HashMap::new();
    for host in hosts {
        *counts.entry(host).or_insert(0_usize) += 1;
    }
    let full = counts.into_iter().filter(|(_, count)| *count >= limits.per_host);
    let full: Vec<String> = full.map(|(host, _)| host).collect();
    let new = full.into_iter().filter(|host| !limits.busy.contains(host)).collect::<Vec<_>>();
    limits.busy.extend(new);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_claimed_is_kept_when_a_cell_fails() {
        let mut claims = CellClaims::new(5);
        claims.add(Ok(vec![1, 2]));
        claims.add(Err(StoreError::Closed));
        assert_eq!(claims.left(), 3);
        claims.add(Ok(vec![3]));
        assert_eq!(claims.finish().unwrap(), [1, 2, 3]);
    }

    #[test]
    fn a_failure_is_returned_if_nothing_is_claimed() {
        let mut claims = CellClaims::<i64>::new(5);
        claims.add(Ok(Vec::new()));
        claims.add(Err(StoreError::Closed));
        claims.add(Err(StoreError::Corrupt(String::new())));
        assert!(matches!(claims.finish(), Err(StoreError::Closed)));
    }
}
