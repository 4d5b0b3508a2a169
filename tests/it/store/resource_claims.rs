//! The claims of resources: one poll at a time, and a poll that has lost its claim changes nothing.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use feedgate_core::poll::{NewContent, Poll};
use feedgate_core::record::Seq;
use feedgate_core::resource::ResourceId;
use feedgate_core::store::{ClaimLimits, DueResource, ReleasedResource};
use feedgate_core::topic::Topic;
use feedgate_store::Store;

use super::{at, in_one_cell, on_both_stores, poll, request, resource, room, subscribe};
use crate::support::postgres::Database;

on_both_stores! {
    a_result_whose_claim_was_lost_changes_nothing,
    a_claim_that_was_lost_is_not_released,
    claimers_at_the_same_time_share_resources_and_host_groups,
    a_claim_whose_result_is_recorded_cannot_be_renewed,
}

in_one_cell! {
    a_renewed_claim_is_kept_with_its_host_group,
}

/// A resource that was claimed, and then by another node after the claim had expired.
async fn claimed_twice(store: &Store, other: &Store, id: ResourceId) -> [DueResource; 2] {
    let lost = store.claim_resource(id, at(1), at(10)).await.unwrap().unwrap();
    assert_eq!(other.claim_resource(id, at(9), at(20)).await.unwrap(), None);
    let valid = other.claim_resource(id, at(10), at(20)).await.unwrap().unwrap();
    assert_ne!(lost.claim, valid.claim);
    [lost, valid]
}

async fn a_result_whose_claim_was_lost_changes_nothing(database: Database) {
    let (store, other) = (database.open().await, database.open().await);
    let id = subscribe(&store, "a", "https://callback.test/").await.id.resource;
    let [lost, valid] = claimed_twice(&store, &other, id).await;
    let before = resource(&store, id).await;

    let found = Poll { claim: lost.claim, ..poll(at(11), &["1", "2"]) };
    let nothing = Poll { found: NewContent::Nothing, ..found.clone() };
    for late in [&found, &nothing, &Poll { leaves_details: true, ..nothing.clone() }] {
        assert_eq!(store.record(id, late).await.unwrap(), None);
    }
    assert_eq!(resource(&store, id).await, before);
    assert_eq!(store.read_after(id, Seq::NONE, 9).await.unwrap(), []);
    assert_eq!(store.claim_resource(id, at(19), at(30)).await.unwrap(), None, "the claim stays");

    let found = Poll { claim: valid.claim, ..poll(at(12), &["1", "2"]) };
    assert_eq!(other.record(id, &found).await.unwrap().unwrap().new, 2, "nothing is missing");
    assert_eq!(other.record(id, &found).await.unwrap(), None, "a claim has one result");
    let due = store.claim_resources(at(612), at(620), &room()).await.unwrap();
    assert_eq!(due.len(), 1, "the schedule is that of the poll that counted");
}

async fn a_claim_that_was_lost_is_not_released(database: Database) {
    let (store, other) = (database.open().await, database.open().await);
    let id = subscribe(&store, "a", "https://callback.test/").await.id.resource;
    let [lost, valid] = claimed_twice(&store, &other, id).await;
    let before = resource(&store, id).await;
    let put_off = Some((at(11), "its server is busy".to_owned()));
    let mut released =
        ReleasedResource { id, claim: lost.claim, at: at(11), put_off, left_alone_until: None };
    store.release_resource(&released).await.unwrap();
    assert_eq!(resource(&store, id).await, before);
    assert_eq!(store.claim_resource(id, at(12), at(30)).await.unwrap(), None, "the claim stays");

    released.claim = valid.claim;
    store.release_resource(&released).await.unwrap();
    assert!(store.claim_resource(id, at(12), at(30)).await.unwrap().is_some());
}

async fn a_renewed_claim_is_kept_with_its_host_group(database: Database) {
    let (store, other) = (database.open().await, database.open().await);
    let mut ids = Vec::new();
    for name in ["a", "b"] {
        ids.push(subscribe(&store, name, "https://callback.test/").await.id.resource);
    }
    let alone = ClaimLimits { per_host: 1, ..room() };
    let due = store.claim_resources(at(1), at(11), &alone).await.unwrap();
    let claims = [(ids[0], due[0].claim)];
    assert_eq!((due.len(), due[0].resource.id), (1, ids[0]));

    assert_eq!(store.renew_resource_claims(&claims, at(9), at(19)).await.unwrap(), [ids[0]]);
    let none = other.claim_resources(at(18), at(30), &alone).await.unwrap();
    assert_eq!(none, [], "the resource is claimed, and the other one waits for its server");
    assert_eq!(other.claim_resource(ids[0], at(18), at(30)).await.unwrap(), None);

    let taken = other.claim_resource(ids[0], at(19), at(30)).await.unwrap().unwrap();
    assert_eq!(store.renew_resource_claims(&claims, at(19), at(29)).await.unwrap(), []);
    let claims = [(ids[0], taken.claim)];
    assert_eq!(other.renew_resource_claims(&claims, at(20), at(40)).await.unwrap(), [ids[0]]);
    let found = Poll { claim: taken.claim, ..poll(at(35), &[]) };
    assert!(other.record(ids[0], &found).await.unwrap().is_some());
    let next = store.claim_resources(at(36), at(46), &alone).await.unwrap();
    assert_eq!(next.len(), 1, "the server is free as soon as its poll is recorded");
}

async fn claimers_at_the_same_time_share_resources_and_host_groups(database: Database) {
    const HOSTS: usize = 20;
    const EACH: usize = 6;
    let nodes = [database.open().await, database.open().await, database.open().await];
    for n in 0..HOSTS * EACH {
        let mut request = request("", "https://callback.test/");
        request.topic = Topic::parse(format!("https://{}.test/{n}", n % HOSTS)).unwrap();
        nodes[0].subscribe(&request, at(0)).await.unwrap();
    }
    let limits = ClaimLimits { limit: 7, per_host: 1, busy: Vec::new() };
    for round in 0..EACH as i64 {
        // All that is due waits for the first round; after that, some of each group at a time.
        let now = at(60 + 60 * round);
        let claiming = nodes.iter().cloned().map(|store| {
            let limits = limits.clone();
            tokio::spawn(async move {
                let mut claimed = Vec::new();
                loop {
                    let until = now + Duration::from_secs(60);
                    let due = store.claim_resources(now, until, &limits).await.unwrap();
                    if due.is_empty() {
                        return claimed;
                    }
                    claimed.extend(due);
                }
            })
        });
        let mut claimed = Vec::new();
        for done in futures_util::future::join_all(claiming).await {
            claimed.extend(done.unwrap());
        }
        let ids: HashSet<_> = claimed.iter().map(|due| due.resource.id).collect();
        assert_eq!(ids.len(), claimed.len(), "no resource is claimed twice");
        let mut of_host: BTreeMap<String, usize> = BTreeMap::new();
        for due in &claimed {
            *of_host.entry(nodes[0].group(&due.resource.fetch_url)).or_default() += 1;
        }
        assert_eq!(of_host.len(), HOSTS, "no group waits for a resource that nobody polls");
        assert!(of_host.values().all(|polls| *polls == 1), "{of_host:?}");
        for due in claimed {
            let mut found = Poll { claim: due.claim, ..poll(now, &[]) };
            found.next_fetch = at(99_999);
            assert!(nodes[0].record(due.resource.id, &found).await.unwrap().is_some());
        }
    }
}

async fn a_claim_whose_result_is_recorded_cannot_be_renewed(database: Database) {
    let store = database.open().await;
    let id = subscribe(&store, "a", "https://callback.test/").await.id.resource;
    let due = store.claim_resource(id, at(1), at(10)).await.unwrap().unwrap();
    let nothing = Poll { claim: due.claim, found: NewContent::Nothing, ..poll(at(2), &[]) };
    assert!(store.record(id, &nothing).await.unwrap().is_some());
    let claims = [(id, due.claim)];
    assert_eq!(store.renew_resource_claims(&claims, at(3), at(13)).await.unwrap(), []);
    assert!(store.claim_resource(id, at(3), at(13)).await.unwrap().is_some());
}
