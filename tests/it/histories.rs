//! Whoever reads an archive as the seed says gets all of it, whatever happens meanwhile.
//!
//! A history is a random script: what is published, updated, taken back and dropped while
//! an archive is read, where its documents end, when the gateway is started anew, and when
//! the reader dies. It is played on a real gateway, read through its doors by the code of
//! `feedgate consume`, and what that hands over is compared with what was published: every
//! entry at least once and in order, and twice only where the reader died before it could
//! remember it. Nothing is left out but what was dropped, and then that is told.

mod ledger;
mod publishing;
mod reader;
mod script;
mod stage;

use std::sync::Mutex;

use proptest::test_runner::{Config, TestCaseError, TestRunner};
use tokio::runtime::Handle;

use crate::store::on_both_stores;
use crate::support::cases::cases;
use crate::support::postgres::Database;

use script::histories;
use stage::Stage;

on_both_stores!(every_entry_is_handed_over_at_least_once_and_in_order);

/// Histories that a full run plays on each kind of store.
const HISTORIES: usize = 1_000;

async fn every_entry_is_handed_over_at_least_once_and_in_order(database: Database) {
    let stage = Stage::set(database).await;
    let runtime = Handle::current();
    let playing = tokio::task::spawn_blocking(move || {
        // One that fails is cut down to what matters of it, and printed whole: that is all
        // that is needed to play it again.
        let cases = u32::try_from(cases(HISTORIES)).unwrap();
        let config = Config { cases, failure_persistence: None, ..Config::default() };
        let stage = Mutex::new(stage);
        let played = TestRunner::new(config).run(&histories(), |history| {
            let mut stage = stage.lock().unwrap();
            let played = runtime.block_on(stage.play(&history));
            played.map_err(TestCaseError::fail)
        });
        runtime.block_on(stage.into_inner().unwrap().end());
        played.unwrap();
    });
    playing.await.unwrap();
}
