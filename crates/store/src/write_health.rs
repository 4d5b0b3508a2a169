//! Whether the database accepts writes: what the last one that it refused was refused for.
//!
//! A test write may succeed while others fail, because it needs less space. So a refused write counts
//! for a while, whatever the test finds.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::engine::error::unwritable_reason;
use feedgate_core::store::StoreError;

/// How long a refused write counts. A gateway writes more often.
const REFUSAL_COUNTS_FOR: Duration = Duration::from_secs(10);

/// The last write that the database refused.
#[derive(Debug, Default)]
pub(crate) struct WriteHealth(Mutex<Option<(Instant, String)>>);

impl WriteHealth {
    /// Takes note of a failed write, if it failed because the database accepts none.
    pub(crate) fn note_failure(&self, err: &StoreError, now: Instant) {
        if let Some(reason) = unwritable_reason(err) {
            *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((now, reason));
        }
    }

    /// Fails if a write was refused lately.
    pub(crate) fn check(&self, now: Instant) -> Result<(), StoreError> {
        let refused = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &*refused {
            Some((at, reason)) if now.duration_since(*at) < REFUSAL_COUNTS_FOR => {
                Err(StoreError::Unwritable { reason: reason.clone() })
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn h18_a_refused_write_counts_for_a_while() {
        let (health, now) = (WriteHealth::default(), Instant::now());
        health.note_failure(&StoreError::Closed, now);
        health.note_failure(&StoreError::Database("UNIQUE constraint failed".into()), now);
        assert!(health.check(now).is_ok(), "other failures say nothing about the disk");
        health.note_failure(&StoreError::Database("database or disk is full".into()), now);
        let refused = health.check(now + REFUSAL_COUNTS_FOR - Duration::from_millis(1));
        let refused = refused.unwrap_err();
        assert!(refused.to_string().ends_with("writes: database or disk is full"), "{refused}");
        assert_eq!(refused.code(), "database_unwritable");
        assert!(health.check(now + REFUSAL_COUNTS_FOR).is_ok());
    }
}
