//! What redirects make of the servers to which they lead, and of those from which they come.

use feedgate_core::host::{HostRefusal, RequestAdmission};
use feedgate_core::registrant::RegistrantNetwork;
use feedgate_core::resource::ResourceId;
use feedgate_core::topic::Topic;

use super::hosts::{claimed, ends, nodes, refused, watch};
use super::{at, in_one_cell, on_both_stores, room};
use crate::support::claiming_store::ClaimingStore;
use crate::support::postgres::Database;

on_both_stores!(
    h03_addresses_that_never_answered_well_pause_no_server,
    h03_a_good_answer_behind_a_redirect_is_credited_to_who_gave_it,
);

in_one_cell!(
    h03_redirects_keep_the_pace_of_a_group_and_leave_it_every_second_time,
    h03_a_group_does_not_wait_for_a_poll_that_was_redirected_elsewhere,
);

async fn h03_addresses_that_never_answered_well_pause_no_server(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let refusals = |code: u16, was_read: bool, seconds: i64| {
        let store = &store;
        async move {
            let mut last = None;
            for n in 0..9 {
                let id = ResourceId(100 + n);
                let refusal = refused(store, id, code, at(seconds));
                last = store.record_refusal(&HostRefusal { was_read, ..refusal }).await.unwrap();
            }
            last.map(|backoff| backoff.is_block)
        }
    };
    let id = watch(&store, "https://a.tumblr.com/rss").await;
    assert!(store.claim_resource(id, at(1), at(31)).await.unwrap().is_some());
    ends(&store, id, 2).await;
    let url = Topic::parse("https://b.tumblr.com/limited").unwrap();
    let registrant = RegistrantNetwork::from_client("192.0.2.1".parse().ok());
    let named = store.ensure_for(&url, registrant, at(3)).await.unwrap();
    let limited = HostRefusal { was_read: false, ..refused(&store, named.id, 429, at(9)) };
    assert_eq!(
        store.record_refusal(&limited).await.unwrap(),
        None,
        "429 for what a stranger named"
    );
    for code in [401, 403] {
        assert_eq!(
            refusals(code, false, 10).await,
            None,
            "{code}: anybody can name such addresses"
        );
    }
    assert!(refusals(403, true, 20).await.is_some(), "all that was read is refused now");
    let long_after = HostRefusal { at: at(200_000), ..limited };
    assert!(
        store.record_refusal(&long_after).await.unwrap().is_some(),
        "no other was answered well"
    );
}

async fn h03_redirects_keep_the_pace_of_a_group_and_leave_it_every_second_time(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let group = "reddit.com"; // its interval is a minute
    let admitted = |seconds: i64| {
        let store = &store;
        async move { store.admit_request(group, at(seconds)).await.unwrap() }
    };
    assert_eq!(admitted(0).await, RequestAdmission::Admitted);
    assert_eq!(admitted(1).await, RequestAdmission::NotBefore(at(120)));
    assert_eq!(admitted(119).await, RequestAdmission::NotBefore(at(120)));
    // The times between are those of its own resources.
    let id = watch(&store, "https://www.reddit.com/r/tides/.rss").await;
    let due = |seconds: i64| {
        let store = &store;
        async move { store.claim_resources(at(seconds), at(seconds + 30), &room()).await.unwrap() }
    };
    assert_eq!(due(30).await.len(), 0, "a redirect counts towards the interval");
    assert_eq!(due(61).await.len(), 1);
    ends(&store, id, 62).await;
    assert_eq!(admitted(120).await, RequestAdmission::NotBefore(at(121)), "a minute after that");
    assert_eq!(admitted(121).await, RequestAdmission::Admitted);

    let refusal = HostRefusal { group: group.to_owned(), ..refused(&store, id, 429, at(300)) };
    store.record_refusal(&refusal).await.unwrap().unwrap();
    assert_eq!(admitted(301).await, RequestAdmission::Paused(at(900)));
    assert_eq!(admitted(900).await, RequestAdmission::Admitted);
}

async fn h03_a_good_answer_behind_a_redirect_is_credited_to_who_gave_it(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let id = watch(&store, "https://a.tumblr.com/rss").await;
    let pause = |seconds: i64| {
        let store = &store;
        async move {
            let refusal = refused(store, id, 429, at(seconds));
            let backoff = store.record_refusal(&refusal).await.unwrap().unwrap();
            (backoff.leave_alone.0 - at(seconds)).num_minutes()
        }
    };
    assert_eq!(pause(0).await, 10);
    assert_eq!(pause(1_000).await, 20);
    store.record_good_answer("other.test:443", at(5_000)).await.unwrap();
    assert_eq!(pause(5_001).await, 40, "that was another server");
    store.record_good_answer("tumblr.com", at(9_000)).await.unwrap();
    assert_eq!(pause(9_001).await, 10);
}

async fn h03_a_group_does_not_wait_for_a_poll_that_was_redirected_elsewhere(database: Database) {
    let [store, other] = nodes(&database).await;
    let mut all = Vec::new();
    for name in ["a", "b", "c"] {
        all.push(watch(&store, &format!("https://{name}.tumblr.com/rss")).await);
    }
    let redirected = claimed(&store, 0).await;
    assert_eq!(redirected.len(), 1);
    assert_eq!(claimed(&other, 5_000).await, [], "it may ask the server itself");
    store.leave_group("tumblr.com").await.unwrap();
    assert_eq!(claimed(&other, 9_000).await.len(), 1);
    other.leave_group("tumblr.com").await.unwrap();
    let claim = [(redirected[0], store.claim_of(redirected[0]))];
    store.renew_resource_claims(&claim, at(20), at(80)).await.unwrap();
    assert_eq!(claimed(&store, 21_000).await.len(), 1, "it is not claimed again by a renewal");
}
