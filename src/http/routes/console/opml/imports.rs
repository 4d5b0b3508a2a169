//! The imports of this node: those in progress, and the reports of the last ones.
//!
//! They are in memory only. Each subscription is stored at once, so what a restart ends is the
//! import, not what it has done; the same list can be imported again. Reports are bounded in number:
//! one for each account, and the oldest are dropped first.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use feedgate_core::account::AccountId;
use feedgate_core::signing::Secret;
use feedgate_feed::parse::ListedFeed;

/// The most imports that are in progress or reported on, of all accounts. A report takes some
/// megabytes at most.
const MAX_RECORDS: usize = 16;

/// The imports that this node carries out or has carried out lately.
#[derive(Debug, Default)]
pub struct Imports(Mutex<VecDeque<Arc<ImportRecord>>>);

/// Why an import cannot be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ImportRefusal {
    /// The import of the account with this id has not ended.
    InProgress(String),
    /// As many imports as are kept are in progress, or the system has no random numbers.
    Busy,
}

/// An import in progress, or the report on it.
#[derive(Debug)]
pub(super) struct ImportRecord {
    /// What its address ends with. It cannot be guessed.
    pub(super) id: String,
    account: AccountId,
    /// The number of feeds of the list.
    pub(super) total: usize,
    state: Mutex<ImportState>,
}

/// What an import has done.
#[derive(Debug, Default)]
pub(super) struct ImportState {
    /// The feeds that are done, in the order of the list.
    pub(super) done: Vec<ImportedFeed>,
    /// How the import ended; `None` while it is in progress.
    pub(super) end: Option<ImportEnd>,
    /// The secret that was made for its subscriptions, until it was displayed.
    pub(super) new_secret: Option<Secret>,
}

/// How an import ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ImportEnd {
    /// All feeds of the list are done.
    Complete,
    /// The session ended with which the import was begun, such as by a revoked token.
    SessionEnded,
    /// The database failed.
    StoreFailed,
    /// This node was stopped.
    Stopped,
}

/// What came of a feed of the list.
#[derive(Debug)]
pub(super) enum ImportResult {
    /// The account is subscribed now.
    Subscribed,
    /// The account was subscribed before.
    Existing,
    /// The list has the feed more than once.
    Repeated,
    /// The account is not subscribed, for the reason in this sentence.
    Failed(String),
}

/// A feed of the list, with what came of it.
#[derive(Debug)]
pub(super) struct ImportedFeed {
    pub(super) feed: ListedFeed,
    pub(super) result: ImportResult,
}

impl Imports {
    /// Begins an import of an account, whose last report is dropped.
    pub(super) fn begin(
        &self,
        account: AccountId,
        total: usize,
        new_secret: Option<Secret>,
    ) -> Result<Arc<ImportRecord>, ImportRefusal> {
        let mut kept = lock(&self.0);
        if let Some(own) = kept.iter().find(|import| import.account == account) {
            if !own.has_ended() {
                return Err(ImportRefusal::InProgress(own.id.clone()));
            }
            kept.retain(|import| import.account != account);
        }
        if kept.len() >= MAX_RECORDS {
            let oldest = kept.iter().position(|import| import.has_ended());
            kept.remove(oldest.ok_or(ImportRefusal::Busy)?);
        }
        let mut random = [0; 16];
        getrandom::fill(&mut random).map_err(|_| ImportRefusal::Busy)?;
        let id = URL_SAFE_NO_PAD.encode(random);
        let state = Mutex::new(ImportState { new_secret, ..ImportState::default() });
        let import = Arc::new(ImportRecord { id, account, total, state });
        kept.push_back(Arc::clone(&import));
        Ok(import)
    }

    /// Returns an import of an account.
    pub(super) fn find(&self, account: AccountId, id: &str) -> Option<Arc<ImportRecord>> {
        self.of_account(account).filter(|import| import.id == id)
    }

    /// Returns the import of an account, if it has one.
    pub(super) fn of_account(&self, account: AccountId) -> Option<Arc<ImportRecord>> {
        lock(&self.0).iter().find(|import| import.account == account).cloned()
    }
}

impl ImportRecord {
    /// Returns what was done, which does not change while the guard is held.
    pub(super) fn state(&self) -> MutexGuard<'_, ImportState> {
        lock(&self.state)
    }

    fn has_ended(&self) -> bool {
        self.state().end.is_some()
    }
}

fn lock<T>(held: &Mutex<T>) -> MutexGuard<'_, T> {
    held.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(import: &ImportRecord) {
        import.state().end = Some(ImportEnd::Complete);
    }

    #[test]
    fn an_account_has_one_import_and_sees_no_other() {
        let imports = Imports::default();
        let (ada, bob) = (AccountId(1), AccountId(2));
        let first = imports.begin(ada, 3, None).unwrap();
        let in_progress = ImportRefusal::InProgress(first.id.clone());
        assert_eq!(imports.begin(ada, 3, None).unwrap_err(), in_progress);
        assert!(imports.find(ada, &first.id).is_some());
        assert!(imports.find(bob, &first.id).is_none());
        assert!(imports.of_account(bob).is_none());
        end(&first);
        let second = imports.begin(ada, 4, None).unwrap();
        assert!(imports.find(ada, &first.id).is_none());
        assert_eq!(imports.of_account(ada).unwrap().id, second.id);
    }

    #[test]
    fn the_oldest_report_makes_room_and_no_import_in_progress_does() {
        let imports = Imports::default();
        let begin = |account| imports.begin(AccountId(account), 1, None);
        let kept: Vec<_> = (0..16).map(|account| begin(account).unwrap()).collect();
        assert_eq!(begin(16).unwrap_err(), ImportRefusal::Busy);
        end(&kept[5]);
        end(&kept[3]);
        assert!(begin(16).is_ok());
        assert!(imports.of_account(AccountId(3)).is_none());
        assert!(imports.of_account(AccountId(5)).is_some());
    }
}
