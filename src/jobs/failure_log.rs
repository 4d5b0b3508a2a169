//! Logs a failure of repeated work when it begins and when it ends, not every time.

use std::error::Error;

use tracing::{error, info};

/// Whether repeated work fails.
#[derive(Clone, Debug)]
pub(crate) struct FailureLog {
    what: String,
    is_failing: bool,
}

impl FailureLog {
    /// Creates the log of the work that `what` names, as in "claiming poll jobs failed".
    pub(crate) fn new(what: impl Into<String>) -> FailureLog {
        FailureLog { what: what.into(), is_failing: false }
    }

    /// Notes how the work has ended this time, and returns its result if it did not fail.
    pub(crate) fn note<T, E: Error + 'static>(&mut self, ended: Result<T, E>) -> Option<T> {
        match &ended {
            Ok(_) if self.is_failing => info!("{} works again", self.what),
            Err(err) if !self.is_failing => {
                error!(error = err as &dyn Error, "{} failed", self.what);
            }
            Ok(_) | Err(_) => {}
        }
        self.is_failing = ended.is_err();
        ended.ok()
    }
}
