//! Hubs and clouds that tell of changes: what is kept of them, and what they prove.

use std::sync::Arc;
use std::time::Duration;

use feedgate_core::change_detection::{Candidate, FeedDocument};
use feedgate_core::poll::{Poll, Trigger};
use feedgate_core::resource::ResourceId;
use feedgate_core::signing::Secret;
use feedgate_core::store::ClaimLimits;
use feedgate_core::upstream::{
    AdvertisedUpstream, Proposal, Upstream, UpstreamFinding, UpstreamState,
};
use feedgate_protocol::Protocol;
use feedgate_store::Store;

use super::{at, entry, few, in_one_cell, on_both_stores, poll, resource, subscribe};
use crate::support::postgres::Database;

on_both_stores! {
    p53_an_offer_is_kept_until_another_is_made,
    p53_a_hub_that_verifies_before_it_answers_is_not_overruled,
    p53_polls_are_rare_while_what_is_new_comes_by_push,
    p53_an_upstream_that_misses_most_is_doubted,
    n11_what_is_pushed_and_polled_is_appended_once,
}

in_one_cell! {
    d3_a_hub_of_many_resources_hides_no_other,
}

fn proposal(hub: &str, token: &str) -> UpstreamFinding {
    UpstreamFinding::Upstream(Proposal {
        offer: AdvertisedUpstream {
            protocol: Protocol::WebSub,
            endpoint: format!("https://{hub}.test/"),
            topic: "https://feeds.test/a".to_owned(),
        },
        token: token.to_owned(),
        secret: Secret::new("opensesame".to_owned()).unwrap(),
    })
}

/// A poll at `secs` that finds this offer.
fn offering(secs: i64, upstream: UpstreamFinding) -> Poll {
    Poll { upstream, ..poll(at(secs), &[]) }
}

/// A document that a hub sent, with these entries.
fn pushed(candidates: Vec<Candidate>) -> FeedDocument {
    FeedDocument { at: at(10), candidates, ..FeedDocument::default() }
}

/// The upstreams that are claimed at `seconds`.
async fn claimed(store: &Arc<Store>, seconds: i64, until: i64) -> Vec<Upstream> {
    let due = store.claim_upstreams(at(seconds), at(until), &few(5)).await.unwrap();
    due.into_iter().map(|due| due.upstream).collect()
}

async fn p53_an_offer_is_kept_until_another_is_made(database: Database) {
    let store = database.open().await;
    let id = subscribe(&store, "a", "https://one.test/").await.id.resource;
    store.record(id, &offering(1, proposal("hub", "t1"))).await.unwrap();
    let due = claimed(&store, 2, 9).await;
    assert_eq!((due.len(), due[0].token.as_str(), due[0].subscribers), (1, "t1", 1));
    assert_eq!(due[0].state, UpstreamState::Requested, "a hub may verify before it answers");
    assert_eq!(store.claim_upstreams(at(2), at(9), &few(5)).await.unwrap(), [], "it is claimed");
    assert_eq!(claimed(&store, 9, 19).await, due, "its taker died");

    store.record(id, &offering(3, proposal("hub", "t2"))).await.unwrap();
    assert!(store.upstream("t2").await.unwrap().is_none(), "the same offer changes nothing");
    store.record(id, &offering(4, UpstreamFinding::Unknown)).await.unwrap();
    assert_eq!(store.upstream("t1").await.unwrap().as_ref(), due.first());

    store.record(id, &offering(5, proposal("other", "t3"))).await.unwrap();
    assert!(store.upstream("t1").await.unwrap().is_none());
    let hour = 3_600;
    assert_eq!(store.claim_upstreams(at(hour), at(0), &few(5)).await.unwrap(), [], "not at once");
    let due = claimed(&store, hour + 5, hour + 9).await;
    assert_eq!(due[0].offer.endpoint, "https://other.test/");
    store.record(id, &offering(6, UpstreamFinding::Nothing)).await.unwrap();
    assert!(store.upstream("t3").await.unwrap().is_none());
    store.end_upstream(&due[0], None).await.unwrap();
}

async fn p53_a_hub_that_verifies_before_it_answers_is_not_overruled(database: Database) {
    let store = database.open().await;
    let id = subscribe(&store, "a", "https://one.test/").await.id.resource;
    store.record(id, &offering(1, proposal("hub", "t"))).await.unwrap();
    let due = store.claim_upstreams(at(2), at(9), &few(5)).await.unwrap().remove(0);
    let (mut request, claim) = (due.upstream, due.claim);

    // The door hears first …
    let mut verified = store.upstream("t").await.unwrap().unwrap();
    verified.confirm(at(1_000));
    assert!(store.save_upstream(&verified, None, at(500)).await.unwrap());
    // … then the request ends, with what it knew.
    request.accepted();
    assert!(!store.save_upstream(&request, Some(claim), at(600)).await.unwrap());
    let kept = store.upstream("t").await.unwrap().unwrap();
    assert_eq!(
        (kept.state, kept.lease_until, kept.failures),
        (UpstreamState::Active, Some(at(1_000)), 0)
    );
    assert_eq!(store.claim_upstreams(at(499), at(509), &few(5)).await.unwrap(), []);
    assert_eq!(store.claim_upstreams(at(500), at(509), &few(5)).await.unwrap().len(), 1, "renewal");
}

/// An active upstream of a resource with a subscriber.
async fn active(store: &Arc<Store>) -> ResourceId {
    let id = subscribe(store, "a", "https://one.test/").await.id.resource;
    store.record(id, &offering(1, proposal("hub", "t"))).await.unwrap();
    let mut upstream = store.upstream("t").await.unwrap().unwrap();
    upstream.confirm(at(1_000_000));
    store.save_upstream(&upstream, None, at(500_000)).await.unwrap();
    id
}

/// How many entries the upstream of a resource announced first, and how many it missed.
async fn proof(store: &Arc<Store>, id: ResourceId) -> (u32, u32) {
    let summary = store.upstream_summary(id).await.unwrap().unwrap();
    assert_eq!(summary.endpoint, "https://hub.test/");
    (summary.proof.pushed, summary.proof.missed)
}

async fn p53_polls_are_rare_while_what_is_new_comes_by_push(database: Database) {
    let store = database.open().await;
    let id = active(&store).await;
    assert_eq!(resource(&store, id).await.pushed_until, None, "nothing is proved yet");
    store.push(id, pushed(vec![entry("1")]), at(10)).await.unwrap();
    assert_eq!(proof(&store, id).await, (1, 0));
    assert_eq!(resource(&store, id).await.pushed_until, Some(at(1_000_000)));
    store.record(id, &poll(at(20), &["1"])).await.unwrap();
    assert!(resource(&store, id).await.pushed_until.is_some(), "a poll that finds nothing");
    store.record(id, &poll(at(30), &["2"])).await.unwrap();
    assert_eq!(resource(&store, id).await.pushed_until, None, "a poll found it first");
    assert_eq!(proof(&store, id).await, (1, 1));

    // A cloud only says that something is new: what the poll then finds is its merit.
    let upstream = store.upstream("t").await.unwrap().unwrap();
    let second = Duration::from_secs(1);
    assert!(store.record_upstream_push(&upstream, 0, second, at(40)).await.unwrap());
    assert!(!store.record_upstream_push(&upstream, 0, second, at(40)).await.unwrap(), "too soon");
    let told = Poll { trigger: Trigger::Ping, ..poll(at(41), &["3"]) };
    store.record(id, &told).await.unwrap();
    assert!(resource(&store, id).await.pushed_until.is_some());
    // What somebody else's ping brings says nothing.
    let other = Poll { trigger: Trigger::Ping, ..poll(at(4_000), &["4"]) };
    store.record(id, &other).await.unwrap();
    assert!(resource(&store, id).await.pushed_until.is_some());
}

async fn p53_an_upstream_that_misses_most_is_doubted(database: Database) {
    let store = database.open().await;
    let id = active(&store).await;
    store.push(id, pushed(vec![entry("first")]), at(10)).await.unwrap();
    for n in 0..19 {
        store.record(id, &poll(at(20 + n), &[&format!("missed {n}")])).await.unwrap();
    }
    let doubted = store.upstream("t").await.unwrap().unwrap();
    assert_eq!(doubted.state, UpstreamState::Doubted);
    assert_eq!(resource(&store, id).await.pushed_until, None);
    let week = i64::try_from(Duration::from_secs(7 * 86_400).as_secs()).unwrap();
    assert_eq!(store.claim_upstreams(at(37 + week), at(0), &few(5)).await.unwrap(), []);
    let again = store.claim_upstreams(at(38 + week), at(40 + week), &few(5)).await.unwrap();
    assert_eq!(again.len(), 1, "it gets another chance");
}

async fn n11_what_is_pushed_and_polled_is_appended_once(database: Database) {
    let store = database.open().await;
    let id = active(&store).await;
    let sent = || store.push(id, pushed(vec![entry("1"), entry("2")]), at(10));
    let polled = poll(at(10), &["1", "2", "3"]);
    let (one, other, third) = tokio::join!(sent(), store.record(id, &polled), sent());
    let new = one.unwrap().new + other.unwrap().unwrap().new + third.unwrap().new;
    assert_eq!(new, 3);
    let log = store.read_after(id, feedgate_core::record::Seq(0), 10).await.unwrap();
    let mut ids: Vec<_> = log.iter().map(|record| record.entry_id.as_str()).collect();
    ids.sort_unstable();
    assert_eq!(ids, ["1", "2", "3"]);
}

async fn d3_a_hub_of_many_resources_hides_no_other(database: Database) {
    let store = database.open().await;
    for n in 0..100 {
        let id = subscribe(&store, &format!("dead{n}"), "https://one.test/").await.id.resource;
        let offer = proposal("dead", &format!("t{n}"));
        store.record(id, &offering(n, offer)).await.unwrap();
    }
    let id = subscribe(&store, "live", "https://one.test/").await.id.resource;
    store.record(id, &offering(200, proposal("live", "live"))).await.unwrap();
    let claimed = async |seconds, room: ClaimLimits| {
        let due = store.claim_upstreams(at(seconds), at(900), &room).await.unwrap();
        due.into_iter().map(|due| due.upstream.token).collect::<Vec<_>>()
    };
    let room = ClaimLimits { limit: 8, per_host: 1, busy: Vec::new() };
    assert_eq!(claimed(300, room.clone()).await, ["t0", "live"]);
    let busy = ClaimLimits { busy: vec!["dead.test:443".to_owned()], ..room };
    assert_eq!(claimed(301, busy).await, [""; 0]);
}
