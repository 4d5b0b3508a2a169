//! `kill -9` in the middle of appends leaves all of an append or nothing of it.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::Duration;

use feedgate_core::host_groups::HostGroups;
use feedgate_core::page::PageLimits;
use feedgate_core::record::Seq;
use feedgate_feed::Body;
use feedgate_store as store;
use feedgate_store::StoreSettings;

use super::{at, listed, on_both_stores, poll, resource, room, subscribe};
use crate::support::claiming_store::ClaimingStore;
use crate::support::postgres::Database;

on_both_stores!(n13_an_append_survives_whole_or_not_at_all);

/// Tells the child where to append: the number of cells, and the database.
const CHILD: &str = "FEEDGATE_TEST_APPEND_TO";
/// Entries in one append.
const ENTRIES: i64 = 5;

/// Run by itself this does nothing; as a child it appends until it is killed.
#[tokio::test(flavor = "multi_thread")]
async fn the_child_that_is_killed() {
    #[expect(clippy::disallowed_methods, reason = "it is our own parent that sets it")]
    let Ok(place) = std::env::var(CHILD) else { return };
    let (cells, url) = place.split_once(' ').unwrap();
    let store = store::open(&StoreSettings {
        url: url.to_owned(),
        connections: 2,
        groups: HostGroups::new(Duration::ZERO),
        page_limits: PageLimits::default(),
        listed: Default::default(),
        forwarding: Default::default(),
        anonymous_bytes_per_day: 256 << 20,
        account_bytes_per_day: 32 << 30,
        cells: cells.parse().unwrap(),
        secret_keys: Default::default(),
    })
    .await
    .unwrap();
    let id = store.find("https://feeds.test/a").await.unwrap().unwrap().id;
    let begun_at = resource(&store, id).await.head.0 / ENTRIES;
    for n in begun_at.. {
        let names: Vec<_> = (0..ENTRIES).map(|entry| format!("{n}.{entry}")).collect();
        let names: Vec<_> = names.iter().map(String::as_str).collect();
        let mut found = poll(at(n), &names);
        found.body = Some(Body { content_type: None, bytes: n.to_string().into_bytes() });
        let appended = store.record(id, &found).await.unwrap().unwrap();
        let mut out = std::io::stdout();
        writeln!(out, "appended {}", appended.head).unwrap();
        out.flush().unwrap();
    }
}

async fn n13_an_append_survives_whole_or_not_at_all(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let sub = subscribe(&store, "a", "https://callback.test/").await.id;
    let mut acknowledged = 0;
    for round in 1..=6 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "store::crash::the_child_that_is_killed", "--nocapture"])
            .env(CHILD, format!("{} {}", database.cells, database.url))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let printed = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        let mut heads = printed.filter_map(|line| line.split_once("appended ")?.1.parse().ok());
        acknowledged = heads.by_ref().nth(7 * round).unwrap_or(acknowledged);
        child.kill().unwrap(); // SIGKILL, while the next append is under way
        acknowledged = heads.last().unwrap_or(acknowledged);
        child.wait().unwrap();

        let after = resource(&store, sub.resource).await;
        let records = store.read_after(sub.resource, Seq::NONE, usize::MAX).await.unwrap();
        assert!(after.head.0 >= acknowledged, "{} was acknowledged", acknowledged);
        assert_eq!(after.head.0 % ENTRIES, 0, "half an append");
        assert_eq!(after.body_version, after.head.0 / ENTRIES, "body and log agree");
        assert_eq!(
            after.status.entries_count_since_last_maintenance, after.head.0 as u64,
            "status and log agree"
        );
        let seqs: Vec<_> = records.iter().map(|record| record.seq.0).collect();
        assert_eq!(seqs, (1..=after.head.0).collect::<Vec<_>>(), "gaps");
        assert!(acknowledged > 0);
    }
    let due = store.claim_subscriptions(at(1_000_000), at(1_000_001), &room()).await.unwrap();
    assert_eq!(due.len(), usize::from(listed(&store).await[0].lease_until > at(1_000_000)));
}
