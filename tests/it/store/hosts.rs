//! Whose server is asked when: one at a time on all nodes, spaced, and left alone when it
//! asks for it.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use feedgate_core::host::{Host, HostRefusal, PausedHost};
use feedgate_core::host_groups::HostGroups;
use feedgate_core::poll::Trigger;
use feedgate_core::resource::ResourceId;
use feedgate_core::store::{ClaimLimits, PruneBefore, ReleasedResource};
use feedgate_core::topic::Topic;
use feedgate_protocol::robots::Robots;
use feedgate_store::Store;

use super::{at, in_one_cell, on_both_stores, poll, request, resource, room};
use crate::support::claiming_store::ClaimingStore;
use crate::support::postgres::Database;

on_both_stores! {
    p27_a_503_concerns_its_url_until_there_are_three,
    p27_a_403_counts_only_while_nobody_is_answered_well,
    p40_the_rules_of_a_server_are_kept,
    hosts_in_a_pause_are_listed_until_it_ends,
    what_was_learned_of_a_server_is_dropped_once_it_is_old,
    a_new_table_of_groups_sorts_the_resources_again,
}

in_one_cell! {
    p28_a_learned_pause_is_kept_for_all_nodes,
    p27_a_group_that_says_slow_down_is_left_alone_and_resumes_one_by_one,
    p41_a_server_has_one_visitor_on_all_nodes_together,
    p41_visits_are_spaced_and_platforms_further_apart,
    p41_a_poll_that_is_put_off_gives_its_server_back,
    p41_a_platform_far_behind_is_put_in_line,
    p41_a_platform_that_is_always_behind_hides_no_other,
}

/// Two nodes with a second between two visits of a server.
pub(super) async fn nodes(database: &Database) -> [ClaimingStore; 2] {
    let groups = HostGroups::new(Duration::from_secs(1));
    let one = ClaimingStore::new(database.open_with(groups.clone()).await);
    let other = one.beside(database.open_with(groups).await);
    [one, other]
}

/// A watched resource at `url`.
pub(super) async fn watch(store: &Arc<Store>, url: &str) -> ResourceId {
    let mut request = request("", "https://callback.test/");
    request.topic = Topic::parse(url).unwrap();
    store.subscribe(&request, at(0)).await.unwrap().id.resource
}

/// Takes what is due at `millis` as a poller does: one for each server.
pub(super) async fn claimed(store: &ClaimingStore, millis: i64) -> Vec<ResourceId> {
    let now = at(0) + Duration::from_millis(millis as u64);
    let room = ClaimLimits { per_host: 1, ..room() };
    let due = store.claim_resources(now, now + Duration::from_secs(60), &room).await.unwrap();
    let mut ids: Vec<_> = due.iter().map(|due| due.resource.id).collect();
    ids.sort_unstable();
    ids
}

pub(super) async fn ends(store: &ClaimingStore, id: ResourceId, seconds: i64) {
    store.record(id, &poll(at(seconds), &[])).await.unwrap();
}

pub(super) fn refused(
    store: &Arc<Store>,
    id: ResourceId,
    code: u16,
    when: DateTime<Utc>,
) -> HostRefusal {
    let group = store.group("https://a.tumblr.com/rss");
    HostRefusal {
        group,
        resource: id,
        was_read: true,
        at: when,
        http_code: code,
        retry_after_s: None,
    }
}

async fn hosts_in_a_pause_are_listed_until_it_ends(database: Database) {
    let [store, other] = nodes(&database).await;
    let id = watch(&store, "https://a.tumblr.com/rss").await;
    assert_eq!(other.paused_hosts(at(0), 5).await.unwrap(), []);
    let verdict = store.record_refusal(&refused(&store, id, 429, at(0))).await.unwrap().unwrap();
    let until = verdict.leave_alone.0;
    let paused = PausedHost { group: "tumblr.com".to_owned(), until, pauses: 1 };
    assert_eq!(other.paused_hosts(at(1), 5).await.unwrap(), [paused]);
    assert_eq!(other.paused_hosts(at(1), 0).await.unwrap(), []);
    assert_eq!(other.paused_hosts(until, 5).await.unwrap(), []);
}

async fn p41_a_server_has_one_visitor_on_all_nodes_together(database: Database) {
    let [one, other] = nodes(&database).await;
    let first = watch(&one, "https://a.test/1").await;
    let second = watch(&one, "https://a.test/2").await;
    let elsewhere = watch(&one, "https://b.test/1").await;
    assert_eq!(claimed(&one, 0).await, [first, elsewhere]);
    assert_eq!(claimed(&other, 30_000).await, [], "the first visit has not ended");
    ends(&one, first, 31).await;
    assert_eq!(claimed(&other, 31_000).await, [second]);
    // Its node dies with the poll in hand.
    assert_eq!(claimed(&one, 90_999).await, [elsewhere]);
    assert_eq!(claimed(&one, 91_000).await, [second], "a claim ends");
}

async fn p41_visits_are_spaced_and_platforms_further_apart(database: Database) {
    let [store, other] = nodes(&database).await;
    let cases = [
        ("https://a.test/1", "https://a.test/2", 1_000),
        ("https://www.reddit.com/r/a/.rss", "https://old.reddit.com/r/b/.rss", 60_000),
    ];
    for (first, second, pause) in cases {
        let (first, second) = (watch(&store, first).await, watch(&store, second).await);
        assert_eq!(claimed(&store, 0).await, [first]);
        ends(&store, first, 0).await;
        assert_eq!(claimed(&other, pause - 1).await, []);
        assert_eq!(claimed(&other, pause).await, [second]);
        ends(&store, second, pause / 1_000).await;
    }
}

async fn p41_a_platform_that_is_always_behind_hides_no_other(database: Database) {
    let [store, _] = nodes(&database).await;
    let mut of_reddit = Vec::new();
    for n in 0..300 {
        of_reddit.push(watch(&store, &format!("https://www.reddit.com/r/{n}/.rss")).await);
    }
    database.run("update resources set due_at = 1").await;
    let late = watch(&store, "https://a.test/").await;
    let some = ClaimLimits { limit: 4, per_host: 1, busy: Vec::new() };
    let due = store.claim_resources(at(1), at(60), &some).await.unwrap();
    let due: Vec<_> = due.iter().map(|due| due.resource.id).collect();
    assert_eq!(due, [of_reddit[0], late]);
}

/// Each claim reads a bounded part of what is overdue, and delays it until its platform is free.
async fn p41_a_platform_far_behind_is_put_in_line(database: Database) {
    let [store, other] = nodes(&database).await;
    let first = watch(&store, "https://www.reddit.com/r/0/.rss").await;
    crowd(&database, 10_000, &store.group("https://www.reddit.com/")).await;
    database.run("update resources set due_at = 1").await;
    let late = watch(&store, "https://a.test/").await;

    let some = ClaimLimits { limit: 64, per_host: 1, busy: Vec::new() };
    let due = store.claim_resources(at(1), at(61), &some).await.unwrap();
    assert_eq!(due.iter().map(|due| due.resource.id).collect::<Vec<_>>(), [first]);
    let due = other.claim_resources(at(1), at(61), &some).await.unwrap();
    let ids: Vec<_> = due.iter().map(|due| due.resource.id).collect();
    assert_eq!(ids, [late], "not one of the platform stands before it any more");
    ends(&store, late, 1).await;

    ends(&store, first, 1).await;
    let waits = resource(&store, first).await;
    assert!(waits.next_fetch > at(601), "it goes to the end of the line");
    let why = "reddit.com gets one poll per 60 s for all of its resources, and many are due";
    assert_eq!(waits.status.period_reason, why);
    assert_eq!(claimed(&store, 60_999).await, []);
    let next = claimed(&store, 61_000).await;
    assert_eq!(next.len(), 1);
    ends(&store, next[0], 61).await;
    assert_eq!(
        claimed(&other, 121_000).await.len(),
        1,
        "the platform is polled as often as before"
    );
    // Ten polls of the platform have become due, and what is in line for the following days.
    assert_eq!(store.release_backlog(at(600)).await.unwrap(), 0, "few are overdue at any time");
}

/// Makes `many` watched resources of one host group at a stroke.
async fn crowd(database: &Database, many: usize, group: &str) {
    let make = format!(
        "with recursive n (n) as (select 1 union all select n + 1 from n where n < {many})
         insert into resources (topic, fetch_url, host, kind, next_fetch, due_at, measured_at,
                                subscribers)
         select 'https://crowd.test/' || n, 'https://crowd.test/' || n, '{group}', 'feed', 1, 1, 1, 1
           from n"
    );
    database.run(&make).await;
    database
        .run(
            "insert into resource_details (resource_id, status, polling)
             select id, '{}', '{}' from resources where topic like 'https://crowd.test/%'",
        )
        .await;
}

async fn p41_a_poll_that_is_put_off_gives_its_server_back(database: Database) {
    let [store, other] = nodes(&database).await;
    let first = watch(&store, "https://a.test/1").await;
    let second = watch(&store, "https://a.test/2").await;
    let before = resource(&store, first).await;
    database.run(&format!("update resources set pinged = 1 where id = {}", first.0)).await;
    assert_eq!(claimed(&store, 0).await, [first]);
    let put_off = Some((at(30), "its server is busy".to_owned()));
    let released = ReleasedResource {
        id: first,
        claim: store.claim_of(first),
        at: at(1),
        put_off,
        left_alone_until: None,
    };
    store.release_resource(&released).await.unwrap();

    let waits = resource(&store, first).await;
    assert_eq!((waits.next_fetch, waits.status.next_fetch), (at(30), Some(at(30))));
    assert_eq!(waits.status.period_reason, "its server is busy");
    assert_eq!((waits.polling, waits.status.last_fetch), (before.polling, None));
    assert_eq!(claimed(&other, 1_000).await, [second], "its server is free");
    ends(&other, second, 1).await;
    assert_eq!(claimed(&other, 29_999).await, []);
    let room = ClaimLimits { per_host: 1, ..room() };
    let due = other.claim_resources(at(30), at(90), &room).await.unwrap();
    assert_eq!((due.len(), due[0].trigger), (1, Trigger::Ping), "the ping is not forgotten");

    let released = ReleasedResource {
        id: first,
        claim: store.claim_of(first),
        at: at(31),
        put_off: None,
        left_alone_until: None,
    };
    store.release_resource(&released).await.unwrap();
    assert_eq!(claimed(&store, 31_000).await, [first], "it is due as it was");
}

async fn p27_a_group_that_says_slow_down_is_left_alone_and_resumes_one_by_one(database: Database) {
    let [store, other] = nodes(&database).await;
    let mut all = Vec::new();
    for name in ["a", "b", "c"] {
        all.push(watch(&store, &format!("https://{name}.tumblr.com/rss")).await);
    }
    let elsewhere = watch(&store, "https://b.test/").await;
    assert_eq!(claimed(&store, 0).await, [all[0], elsewhere]);
    let mut quiet = poll(at(0), &[]);
    quiet.next_fetch = at(9_999);
    store.record(elsewhere, &quiet).await.unwrap();
    let verdict =
        store.record_refusal(&refused(&store, all[0], 429, at(0))).await.unwrap().unwrap();
    assert_eq!(verdict.leave_alone.0, at(600), "rule P26");
    let mut put_off = poll(at(0), &[]);
    (put_off.next_fetch, put_off.answered_well) = (at(600), false);
    store.record(all[0], &put_off).await.unwrap();
    let slow_downs = store.host("tumblr.com").await.unwrap().slow_downs;
    assert_eq!(slow_downs, 1, "a status as before is no answer (rule P32)");

    let waits = resource(&other, all[1]).await;
    assert_eq!(waits.status.next_fetch, Some(at(602)), "the pause has doubled (rule P28)");
    assert_eq!(waits.next_fetch, at(602));
    assert!(waits.status.period_reason.contains("tumblr.com requested a pause"));
    assert_eq!(resource(&other, all[2]).await.next_fetch, at(604));
    let new = watch(&store, "https://d.tumblr.com/rss").await;
    assert_eq!(claimed(&other, 599_999).await, [], "nor is anything new");
    assert_eq!(claimed(&other, 600_000).await, [new]);
    ends(&other, new, 600).await;
    assert_eq!(claimed(&other, 602_000).await, [all[0]]);
    ends(&other, all[0], 602).await;
    assert_eq!(claimed(&other, 604_000).await, [all[1]]);
    ends(&other, all[1], 604).await;
    assert_eq!(resource(&other, all[1]).await.status.period_reason, "", "it waits no more");
    assert_eq!(store.host("tumblr.com").await.unwrap().slow_downs, 0, "it answers well again");
}

async fn p27_a_503_concerns_its_url_until_there_are_three(database: Database) {
    let [store, _] = nodes(&database).await;
    let mut all = Vec::new();
    for name in ["a", "b", "c"] {
        all.push(watch(&store, &format!("https://{name}.tumblr.com/rss")).await);
    }
    let mut widened = Vec::new();
    for (id, seconds) in [(0, 0), (0, 10), (1, 20), (2, 700), (0, 710), (1, 720)] {
        let refused = refused(&store, all[id], 503, at(seconds));
        widened.push(store.record_refusal(&refused).await.unwrap().is_some());
    }
    assert_eq!(widened, [false, false, false, false, false, true]);
}

async fn p27_a_403_counts_only_while_nobody_is_answered_well(database: Database) {
    let [store, _] = nodes(&database).await;
    let mut all = Vec::new();
    for n in 0..6 {
        all.push(watch(&store, &format!("https://{n}.tumblr.com/rss")).await);
    }
    let refuse = async |n: usize, seconds| {
        let refused = refused(&store, all[n], 403, at(seconds));
        store.record_refusal(&refused).await.unwrap().map(|verdict| verdict.is_block)
    };
    assert_eq!((refuse(0, 0).await, refuse(1, 1).await), (None, None));
    ends(&store, all[5], 2).await;
    assert_eq!(refuse(2, 3).await, None, "another was answered in between");
    assert_eq!((refuse(0, 4).await, refuse(1, 5).await), (None, Some(false)));
    assert_eq!(refuse(3, 1_300).await, None, "those were long ago");
    assert_eq!(refuse(4, 2_600).await, Some(true), "five in a day are one block");
}

async fn p28_a_learned_pause_is_kept_for_all_nodes(database: Database) {
    let [store, other] = nodes(&database).await;
    let first = watch(&store, "https://a.tumblr.com/rss").await;
    let second = watch(&store, "https://b.tumblr.com/rss").await;
    for seconds in [-5, -3, -1] {
        let slow_down = refused(&store, first, 429, at(seconds));
        store.record_refusal(&HostRefusal { retry_after_s: Some(1), ..slow_down }).await.unwrap();
    }
    assert_eq!(store.host("tumblr.com").await.unwrap().spacing, Duration::from_secs(8));
    assert_eq!(claimed(&other, 1_000).await, [first]);
    ends(&other, first, 1).await;
    assert_eq!(claimed(&other, 8_999).await, []);
    assert_eq!(claimed(&other, 9_000).await, [second]);
}

fn hosts_before(seconds: i64) -> PruneBefore {
    PruneBefore { host_records: Some(at(seconds)), ..PruneBefore::default() }
}

async fn what_was_learned_of_a_server_is_dropped_once_it_is_old(database: Database) {
    let [store, other] = nodes(&database).await;
    let id = watch(&store, "https://a.tumblr.com/rss").await;
    let mut slow_down = refused(&store, id, 429, at(0));
    slow_down.retry_after_s = Some(60);
    store.record_refusal(&slow_down).await.unwrap();
    let learned = store.host("tumblr.com").await.unwrap();
    store.prune(&hosts_before(60)).await.unwrap();
    assert_eq!(other.host("tumblr.com").await.unwrap(), learned, "its rest is not over");
    store.prune(&hosts_before(61)).await.unwrap();
    assert_eq!(other.host("tumblr.com").await.unwrap(), Host::default());
}

async fn a_new_table_of_groups_sorts_the_resources_again(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    for name in ["a", "b"] {
        watch(&store, &format!("https://{name}.pages.test/feed")).await;
    }
    assert_eq!(claimed(&store, 0).await.len(), 2);
    store.close().await;
    let more = HostGroups::parse("pages.test").unwrap();
    let store = database.open_with(HostGroups::with(Duration::ZERO, more)).await;
    let store = ClaimingStore::new(store);
    assert_eq!(claimed(&store, 61_000).await.len(), 1, "they are one group now");
}

async fn p40_the_rules_of_a_server_are_kept(database: Database) {
    let store = database.open().await;
    let origin = "https://feeds.test";
    assert_eq!(store.robots(origin).await.unwrap(), None);
    for (second, path) in [(1, "/a"), (2, "/b")] {
        let rules = Robots::parse(&format!("user-agent: feedgate\ndisallow: {path}"));
        store.save_robots(origin, &rules, at(second)).await.unwrap();
        assert_eq!(store.robots(origin).await.unwrap(), Some((rules, at(second))));
    }
}
