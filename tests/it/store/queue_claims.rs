//! The claims of the other queues: what is due is claimed once, and a result whose claim was lost
//! changes nothing.

use std::collections::HashSet;
use std::sync::Arc;

use feedgate_core::backfill::{BackfillEnd, BackfillShare, PastPage};
use feedgate_core::intent::{DueIntent, Intent, IntentMode};
use feedgate_core::ping_forwarding::{DuePing, PingForwarding, PingTarget};
use feedgate_core::signing::Secret;
use feedgate_core::store::{ClaimLimits, CommitProgress, DueBackfill, DueUpstream, StagedPage};
use feedgate_core::upstream::{AdvertisedUpstream, Proposal, UpstreamFinding, UpstreamState};
use feedgate_protocol::Protocol;
use feedgate_store::Store;
use url::Url;

use super::{at, entry, few, listed, on_both_stores, poll, request, subscribe};
use crate::support::postgres::{Database, Kind};

on_both_stores!(
    a_verification_whose_claim_was_lost_changes_nothing,
    a_renewed_verification_is_kept,
    an_intent_that_is_verified_at_once_is_claimed,
    claimers_at_the_same_time_share_the_intents,
    d3_a_host_with_more_due_than_a_search_reads_hides_no_other,
    a_request_to_an_upstream_whose_claim_was_lost_changes_nothing,
    a_renewed_request_to_an_upstream_is_kept,
    a_ping_whose_claim_was_lost_changes_nothing,
    a_renewed_ping_is_kept,
    a_step_of_a_backfill_whose_claim_was_lost_changes_nothing,
    a_renewed_step_of_a_backfill_is_kept,
);

fn intent(callback: &str) -> Intent {
    let (mode, request) = (IntentMode::Subscribe, request("a", callback));
    Intent::new(mode, request)
}

async fn a_verification_whose_claim_was_lost_changes_nothing(database: Database) {
    let (store, other) = (database.open().await, database.open().await);
    store.enqueue_intent(&intent("https://callback.test/"), at(1)).await.unwrap();
    let lost = store.claim_intents(at(2), at(10), &few(5)).await.unwrap().remove(0);
    assert_eq!(other.claim_intents(at(9), at(20), &few(5)).await.unwrap(), []);
    let valid = other.claim_intents(at(10), at(20), &few(5)).await.unwrap().remove(0);
    assert_ne!(lost.claim, valid.claim);

    store.retry_intent(&lost, at(11)).await.unwrap();
    assert_eq!(store.complete_intent(&lost, at(11)).await.unwrap(), None);
    store.end_intent(&lost).await.unwrap();
    assert_eq!(listed(&store).await, []);
    assert_eq!(store.claim_intents(at(19), at(30), &few(5)).await.unwrap(), [], "it is claimed");
    assert!(other.complete_intent(&valid, at(19)).await.unwrap().is_some());
    assert_eq!(listed(&store).await.len(), 1);
}

async fn a_renewed_verification_is_kept(database: Database) {
    let (store, other) = (database.open().await, database.open().await);
    store.enqueue_intent(&intent("https://callback.test/"), at(1)).await.unwrap();
    let due = store.claim_intents(at(2), at(10), &few(5)).await.unwrap().remove(0);
    let renewed = async |due: &DueIntent, seconds: i64| {
        store.renew_intent_claims(&[(due.id, due.claim)], at(seconds)).await.unwrap()
    };
    assert_eq!(renewed(&due, 19).await, [due.id]);
    assert_eq!(other.claim_intents(at(18), at(30), &few(5)).await.unwrap(), []);
    let taken = other.claim_intents(at(19), at(30), &few(5)).await.unwrap().remove(0);
    assert_eq!(renewed(&due, 40).await, [] as [i64; 0], "it is lost");
    other.retry_intent(&taken, at(31)).await.unwrap();
    assert_eq!(renewed(&taken, 40).await, [] as [i64; 0], "a claim ends with its result");
    assert_eq!(store.claim_intents(at(31), at(40), &few(5)).await.unwrap().len(), 1);
}

async fn an_intent_that_is_verified_at_once_is_claimed(database: Database) {
    let (store, other) = (database.open().await, database.open().await);
    let intent = intent("https://callback.test/");
    let due = store.enqueue_claimed_intent(&intent, at(1), at(10)).await.unwrap();
    assert_eq!(other.claim_intents(at(9), at(20), &few(5)).await.unwrap(), []);
    let taken = other.claim_intents(at(10), at(20), &few(5)).await.unwrap().remove(0);
    assert_eq!((taken.id, &taken.intent), (due.id, &intent));
    assert_eq!(store.complete_intent(&due, at(11)).await.unwrap(), None, "it took too long");

    let again = store.enqueue_claimed_intent(&intent, at(12), at(20)).await.unwrap();
    assert_eq!(other.complete_intent(&taken, at(13)).await.unwrap(), None, "a newer one is there");
    assert!(store.complete_intent(&again, at(14)).await.unwrap().is_some());
}

async fn claimers_at_the_same_time_share_the_intents(database: Database) {
    const INTENTS: i64 = 120;
    let nodes = [database.open().await, database.open().await, database.open().await];
    for n in 0..INTENTS {
        let callback = format!("https://{}.test/{n}", n % 10);
        nodes[0].enqueue_intent(&intent(&callback), at(0)).await.unwrap();
    }
    let claiming = nodes.into_iter().map(|store| {
        tokio::spawn(async move {
            let mut claimed = Vec::new();
            let limits = ClaimLimits { limit: 7, per_host: 3, busy: Vec::new() };
            loop {
                let due = store.claim_intents(at(1), at(60), &limits).await.unwrap();
                if due.is_empty() {
                    return claimed;
                }
                claimed.extend(due.into_iter().map(|due| due.id));
            }
        })
    });
    let mut all = Vec::new();
    for done in futures_util::future::join_all(claiming).await {
        all.extend(done.unwrap());
    }
    let different: HashSet<_> = all.iter().collect();
    assert_eq!(different.len(), all.len(), "none is claimed twice");
    let left = database.open().await.claim_intents(at(1), at(60), &few(500)).await.unwrap();
    assert_eq!(all.len() + left.len(), INTENTS as usize, "and none is forgotten");
}

/// Each search reads a bounded number of rows, and the next one continues where it ended.
async fn d3_a_host_with_more_due_than_a_search_reads_hides_no_other(database: Database) {
    const MANY: usize = 20_000;
    let store = database.open().await;
    store.enqueue_intent(&intent("https://crowded.test/"), at(0)).await.unwrap();
    let bytes = match database.kind() {
        Kind::Sqlite => "blob",
        Kind::Postgres => "bytea",
    };
    let mut count = 1;
    while count < MANY {
        let copy = format!(
            "insert into intents (hash, mode, account_id, topic, callback, host, protocol,
                                  procedure, format, lease_s, due_at)
             select cast('{count}/' || id as {bytes}), mode, account_id, topic,
                    callback || '/{count}', host, protocol, procedure, format, lease_s, due_at
               from intents
              limit {}",
            MANY - count
        );
        database.run(&copy).await;
        count = MANY.min(count * 2);
    }
    store.enqueue_intent(&intent("https://late.test/"), at(1)).await.unwrap();

    let busy = vec![intent("https://crowded.test/").request.limited_name()];
    let limits = ClaimLimits { limit: 8, per_host: 2, busy };
    let found = store.claim_intents(at(2), at(60), &limits).await.unwrap();
    let callbacks: Vec<_> = found.iter().map(|due| due.intent.request.callback.as_str()).collect();
    assert_eq!(callbacks, ["https://late.test/"]);
}

/// A resource whose document advertises a hub.
async fn advertising(store: &Arc<Store>) {
    let id = subscribe(store, "a", "https://callback.test/").await.id.resource;
    let mut found = poll(at(1), &["1"]);
    found.upstream = UpstreamFinding::Upstream(Proposal {
        offer: AdvertisedUpstream {
            protocol: Protocol::WebSub,
            endpoint: "https://hub.test/".to_owned(),
            topic: "https://feeds.test/a".to_owned(),
        },
        token: "token".to_owned(),
        secret: Secret::new("opensesame".to_owned()).unwrap(),
    });
    store.record(id, &found).await.unwrap();
}

async fn a_request_to_an_upstream_whose_claim_was_lost_changes_nothing(database: Database) {
    let (store, other) = (database.open().await, database.open().await);
    advertising(&store).await;
    let mut lost = store.claim_upstreams(at(2), at(10), &few(5)).await.unwrap().remove(0);
    assert_eq!(other.claim_upstreams(at(9), at(20), &few(5)).await.unwrap(), []);
    let valid = other.claim_upstreams(at(10), at(20), &few(5)).await.unwrap().remove(0);
    assert_ne!(lost.claim, valid.claim);

    lost.upstream.confirm(at(1_000));
    let saved = store.save_upstream(&lost.upstream, Some(lost.claim), at(500)).await.unwrap();
    assert!(!saved);
    store.end_upstream(&lost.upstream, Some(lost.claim)).await.unwrap();
    let kept = store.upstream("token").await.unwrap().unwrap();
    assert_eq!((kept.state, kept.lease_until), (UpstreamState::Requested, None));
    assert_eq!(store.claim_upstreams(at(19), at(30), &few(5)).await.unwrap(), [], "it is claimed");

    assert!(other.save_upstream(&valid.upstream, Some(valid.claim), at(500)).await.unwrap());
    let due = store.claim_upstreams(at(500), at(510), &few(5)).await.unwrap();
    assert_eq!(due.len(), 1);
}

async fn a_renewed_request_to_an_upstream_is_kept(database: Database) {
    let (store, other) = (database.open().await, database.open().await);
    advertising(&store).await;
    let due = store.claim_upstreams(at(2), at(10), &few(5)).await.unwrap().remove(0);
    let id = due.upstream.resource;
    let renewed = async |due: &DueUpstream, seconds: i64| {
        store.renew_upstream_claims(&[(id, due.claim)], at(seconds)).await.unwrap()
    };
    assert_eq!(renewed(&due, 19).await, [id]);
    assert_eq!(other.claim_upstreams(at(18), at(30), &few(5)).await.unwrap(), []);
    let taken = other.claim_upstreams(at(19), at(30), &few(5)).await.unwrap().remove(0);
    assert_eq!(renewed(&due, 40).await, [], "it is lost");
    // A hub may verify before it has responded to the request.
    assert!(other.save_upstream(&taken.upstream, None, at(31)).await.unwrap());
    assert_eq!(renewed(&taken, 40).await, [], "a claim ends with its result");
    assert_eq!(store.claim_upstreams(at(31), at(40), &few(5)).await.unwrap().len(), 1);
}

const TARGET: &str = "xml-rpc=https://one.test/RPC2";

fn forwarding() -> PingForwarding {
    let targets = vec![PingTarget::parse(TARGET).unwrap()];
    PingForwarding { targets, prefixes: vec![Url::parse("https://feeds.test/a").unwrap()] }
}

async fn a_ping_whose_claim_was_lost_changes_nothing(database: Database) {
    let open = || database.open_telling(forwarding());
    let (store, other) = (open().await, open().await);
    let id = subscribe(&store, "a", "https://callback.test/").await.id.resource;
    store.record(id, &poll(at(1), &["1"])).await.unwrap();
    let claimed = async |store: &Arc<Store>, seconds: i64| {
        store.claim_forwarded_pings(TARGET, at(seconds), at(seconds + 8), 9).await.unwrap()
    };
    let lost = claimed(&store, 2).await.remove(0);
    assert_eq!(claimed(&other, 9).await, []);
    let valid = claimed(&other, 10).await.remove(0);
    assert_ne!(lost.claim, valid.claim);

    store.finish_forwarded_ping(&lost, Some(at(11)), at(11)).await.unwrap();
    store.finish_forwarded_ping(&lost, None, at(11)).await.unwrap();
    assert_eq!(claimed(&store, 17).await, [], "it is claimed");
    other.finish_forwarded_ping(&valid, Some(at(60)), at(17)).await.unwrap();
    let again = claimed(&store, 60).await.remove(0);
    assert_eq!(again.attempts, 1, "only the result of the claim that was not lost counts");
    store.finish_forwarded_ping(&again, None, at(61)).await.unwrap();
    assert_eq!(claimed(&store, 999).await, []);
}

async fn a_renewed_ping_is_kept(database: Database) {
    let open = || database.open_telling(forwarding());
    let (store, other) = (open().await, open().await);
    let id = subscribe(&store, "a", "https://callback.test/").await.id.resource;
    store.record(id, &poll(at(1), &["1"])).await.unwrap();
    let claimed = async |store: &Arc<Store>, seconds: i64| {
        store.claim_forwarded_pings(TARGET, at(seconds), at(seconds + 8), 9).await.unwrap()
    };
    let renewed = async |due: &DuePing, seconds: i64| {
        store.renew_forwarded_ping_claims(&[(due.id, due.claim)], at(seconds)).await.unwrap()
    };
    let due = claimed(&store, 2).await.remove(0);
    assert_eq!(renewed(&due, 19).await, [due.id]);
    assert_eq!(claimed(&other, 18).await, []);
    let taken = claimed(&other, 19).await.remove(0);
    assert_eq!(renewed(&due, 40).await, [] as [i64; 0], "it is lost");
    other.finish_forwarded_ping(&taken, Some(at(31)), at(20)).await.unwrap();
    assert_eq!(renewed(&taken, 40).await, [] as [i64; 0], "a claim ends with its result");
    assert_eq!(claimed(&store, 31).await.len(), 1);
}

/// Claims the one backfill at `seconds`, for eight seconds.
async fn step(store: &Arc<Store>, seconds: i64) -> Option<DueBackfill> {
    let share = BackfillShare::Anonymous;
    store.claim_backfills(share, at(seconds), at(seconds + 8), 9).await.unwrap().pop()
}

fn page(id: &str) -> PastPage {
    PastPage {
        urls: vec![format!("https://a.test/{id}")],
        entries: vec![entry(id)],
        ..PastPage::default()
    }
}

async fn a_step_of_a_backfill_whose_claim_was_lost_changes_nothing(database: Database) {
    let (store, other) = (database.open().await, database.open().await);
    let request = request("a", "https://callback.test/");
    let id = store.subscribe_with_history(&request, at(1)).await.unwrap().id.resource;
    let lost = step(&store, 2).await.unwrap();
    assert_eq!(step(&other, 9).await, None);
    let valid = step(&other, 10).await.unwrap();
    assert_ne!(lost.claim, valid.claim);

    let mut over = lost.backfill.clone();
    over.end(BackfillEnd::Limited);
    assert!(!store.save_backfill(&over, lost.claim, at(11)).await.unwrap());
    let staged = store.stage_backfill(&lost.backfill, lost.claim, page("1"), at(11)).await;
    assert_eq!(staged.unwrap(), StagedPage::ClaimLost);
    let progress = store.commit_staged(id, lost.claim, at(11)).await.unwrap();
    assert_eq!(progress, CommitProgress::ClaimLost);
    store.drop_backfill(id, lost.claim, at(11)).await.unwrap();
    assert_eq!(store.backfills(&[id]).await.unwrap(), std::slice::from_ref(&valid.backfill));
    assert_eq!(step(&store, 17).await, None, "it is claimed");

    let staged = other.stage_backfill(&valid.backfill, valid.claim, page("1"), at(17)).await;
    assert_eq!(staged.unwrap(), StagedPage::Staged);
    let read = step(&store, 18).await.unwrap();
    assert_eq!((read.backfill.pages, read.backfill.entries), (1, 1));
    let commit = async || store.commit_staged(id, read.claim, at(19)).await.unwrap();
    assert_eq!([commit().await, commit().await], [CommitProgress::More, CommitProgress::Complete]);
    assert_eq!(commit().await, CommitProgress::ClaimLost, "a claim ends with the backfill");
}

async fn a_renewed_step_of_a_backfill_is_kept(database: Database) {
    let (store, other) = (database.open().await, database.open().await);
    let request = request("a", "https://callback.test/");
    let id = store.subscribe_with_history(&request, at(1)).await.unwrap().id.resource;
    let claims = [(id, step(&store, 2).await.unwrap().claim)];
    assert_eq!(store.renew_backfill_claims(&claims, at(19)).await.unwrap(), [id]);
    assert_eq!(step(&other, 18).await, None);
    assert!(step(&other, 19).await.is_some());
    assert_eq!(store.renew_backfill_claims(&claims, at(30)).await.unwrap(), []);
}
