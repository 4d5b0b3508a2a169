//! What holds after any sequence of appends.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use feedgate_core::record::Seq;
use feedgate_store::Store;
use proptest::collection::vec;
use proptest::test_runner::{Config, TestRunner};
use tokio::runtime::Handle;

use super::{at, on_both_stores, poll, topic};
use crate::support::postgres::Database;

on_both_stores!(numbers_have_no_gaps_and_keys_are_unique);

async fn numbers_have_no_gaps_and_keys_are_unique(database: Database) {
    let stores = [database.open().await, database.open().await];
    let runtime = Handle::current();
    let testing = tokio::task::spawn_blocking(move || {
        let mut runner =
            TestRunner::new(Config { cases: 40, failure_persistence: None, ..Config::default() });
        let cases = AtomicU32::new(0);
        // Appends of up to eight of twenty entries, by either of two nodes, up to three
        // at the same time.
        let appends = vec(vec((0..2_usize, vec(0..20_u8, 0..8)), 1..4), 0..8);
        let run = runner.run(&appends, |appends| {
            let name = format!("case-{}", cases.fetch_add(1, Ordering::Relaxed));
            case(&runtime, &stores, &name, appends);
            Ok(())
        });
        run.unwrap();
    });
    testing.await.unwrap();
}

fn case(
    runtime: &Handle,
    stores: &[Arc<Store>; 2],
    name: &str,
    appends: Vec<Vec<(usize, Vec<u8>)>>,
) {
    runtime.block_on(async {
        let id = stores[0].ensure(&topic(name), at(0)).await.unwrap().id;
        let mut seen = HashSet::new();
        for together in appends {
            let before = seen.len();
            let running = together.iter().map(|(node, entries)| {
                seen.extend(entries.iter().copied());
                let names: Vec<_> = entries.iter().map(u8::to_string).collect();
                let names: Vec<_> = names.iter().map(String::as_str).collect();
                let found = poll(at(1), &names);
                async move { stores[*node].record(id, &found).await.unwrap().unwrap() }
            });
            let appended = futures_util::future::join_all(running).await;
            let new: usize = appended.iter().map(|appended| appended.new).sum();
            assert_eq!(new, seen.len() - before, "each entry is new once");
        }
        let records = stores[1].read_after(id, Seq::NONE, 1_000).await.unwrap();
        let seqs: Vec<_> = records.iter().map(|record| record.seq.0).collect();
        assert_eq!(seqs, (1..=seen.len() as i64).collect::<Vec<_>>());
        let kept: HashSet<_> = records.iter().map(|r| r.entry_id.parse::<u8>().unwrap()).collect();
        assert_eq!(kept, seen);
    });
}
