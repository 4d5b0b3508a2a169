//! How much is copied to collections at the same time.

use std::sync::Arc;
use std::time::Duration;

use feedgate::document_budget::{DocumentBudget, SMALLEST_BUDGET_BYTES, Share};
use feedgate::jobs::collect::{CollectionSettings, Collector};
use feedgate::jobs::runner::{self, Job};
use feedgate_core::change_detection::Candidate;
use feedgate_core::collection::CollectionKind;
use feedgate_core::record::Seq;
use feedgate_store::COLLECT_BYTES;
use url::Url;

use super::collections::{found, log, named, publish, publish_found};
use super::{at, on_both_stores};
use crate::support::claiming_store::ClaimingStore;
use crate::support::postgres::Database;
use crate::support::until;

on_both_stores!(
    h13_what_is_claimed_for_collections_is_bounded_in_bytes,
    h13_what_is_collected_waits_for_the_memory_of_documents,
);

fn long(id: &str, bytes: usize) -> Candidate {
    Candidate::of_id(id, format!("<entry><id>{id}</id>{}</entry>", "x".repeat(bytes)))
}

async fn h13_what_is_claimed_for_collections_is_bounded_in_bytes(database: Database) {
    const MIB: usize = 1 << 20;
    let store = ClaimingStore::new(database.open().await);
    let feed = named(&store, &["a", "b", "c"]).await;
    for name in ["a", "b"] {
        let entries = (0..3).map(|n| long(&format!("{name}{n}"), MIB)).collect();
        publish_found(&store, name, found(1, entries)).await;
    }
    publish_found(&store, "c", found(2, vec![long("c0", 5 * MIB), long("c1", 5 * MIB)])).await;
    let mut claims = 0;
    loop {
        let until = at(3) + Duration::from_secs(60);
        let claimed = store.claim_collecting(at(3), until, 20).await.unwrap();
        if claimed.is_empty() {
            break;
        }
        claims += 1;
        let records = claimed.iter().flat_map(|owing| &owing.records);
        let sizes: Vec<u64> = records.map(|(record, _)| record.atom.len() as u64).collect();
        let most = COLLECT_BYTES.max(sizes.iter().copied().max().unwrap_or_default());
        // Each cell hands out one record at least.
        let longest = 5 * MIB as u64 * (database.cells as u64 - 1);
        assert!(sizes.iter().sum::<u64>() <= most + longest + 1_024, "{sizes:?}");
        store.collect(claimed, at(3)).await.unwrap();
    }
    assert!(claims >= 3, "{claims}");
    let mut all = log(&store, feed).await;
    all.sort_unstable();
    assert_eq!(all, ["a0", "a1", "a2", "b0", "b1", "b2", "c0", "c1"]);
}

async fn h13_what_is_collected_waits_for_the_memory_of_documents(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let plain = Arc::clone(&store);
    let settings = CollectionSettings {
        public_url: Url::parse("https://gate.test/").unwrap(),
        claim: Duration::from_millis(200),
        all: true,
        named: Vec::new(),
    };
    let documents = DocumentBudget::new(SMALLEST_BUDGET_BYTES, 1);
    let collector =
        Collector::prepare(Arc::clone(&plain), documents.clone(), &settings, runner::now());
    let collector = collector.await.unwrap();
    super::subscribe(&store, "a", "https://reader.test/").await;
    publish(&store, "a", 1, &["a1"]).await;
    let collected = async || {
        let all = plain.collection(&CollectionKind::All).await.unwrap().unwrap();
        plain.read_after(all.id, Seq::NONE, 10).await.unwrap().len()
    };
    let held = documents.reserve(Share::SmallDocuments, u64::MAX, Duration::ZERO).await.unwrap();
    let batch = collector.claim(1).await.unwrap().pop().unwrap();
    collector.perform(batch).await.unwrap();
    assert_eq!(collected().await, 0, "there is no memory for it");
    drop(held);
    until("the claim has expired, and another attempt succeeds", async || {
        for batch in collector.claim(1).await.unwrap() {
            collector.perform(batch).await.unwrap();
        }
        collected().await == 1
    })
    .await;
    assert_eq!(documents.usage().bytes, 0);
}
