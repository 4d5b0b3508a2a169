//! Reading everything that is watched, and all who watch it.

use feedgate_core::account::AccountId;
use feedgate_core::collection::{Collection, CollectionKind};
use feedgate_core::ping::{Ping, PingSource};
use feedgate_core::resource::ResourceId;
use feedgate_core::store::SubscriberGroup;
use feedgate_core::subscription::{Lease, SubscriptionId};
use feedgate_core::topic::Callback;
use feedgate_protocol::Protocol;
use feedgate_store::Store;
use std::sync::Arc;
use std::time::Duration;

use super::{at, in_one_cell, on_both_stores, poll, request, resource, subscribe, topic};
use crate::support::postgres::Database;

on_both_stores! {
    a_watched_resource_says_when_it_last_changed,
    watched_resources_are_read_in_pages_with_all_their_properties,
    pings_are_counted_and_changes_that_nobody_pinged_are_not,
}

in_one_cell! {
    every_subscription_is_counted_once_however_many_there_are,
    of_a_page_of_subscriptions_only_the_open_ones_that_last_are_given,
    all_that_is_watched_is_read_once_however_much_it_is,
}

/// Before everything.
const START: SubscriptionId = SubscriptionId { resource: ResourceId(0), number: 0 };

async fn all_that_is_watched_is_read_once_however_much_it_is(database: Database) {
    const MANY: usize = 2_500;
    let store = database.open().await;
    database
        .run(&format!(
            "with recursive n (n) as (select 1 union all select n + 1 from n where n < {MANY})
             insert into resources (topic, fetch_url, host, kind, subscribers, next_fetch, due_at,
                                    measured_at)
             select 'https://feeds.test/' || n, '', '', 'feed', case when n % 5 = 0 then 0 else n end,
                    0, 0, 0
               from n;
             insert into resource_details (resource_id, status, polling)
             select id, '{{\"title\": \"' || cast(subscribers as text) || '\"}}', '{{}}' from resources"
        ))
        .await;
    let (mut read, mut after) = (Vec::new(), ResourceId(0));
    loop {
        let some = store.watched(after).await.unwrap();
        let Some(last) = some.last() else { break };
        assert!(some.len() <= 1_000, "a little at a time");
        after = last.id;
        read.extend(some);
    }
    assert_eq!(read.len(), MANY * 4 / 5, "what nobody watches is left out");
    assert!(read.is_sorted_by(|a, b| a.id < b.id));
    let same = |watched: &feedgate_core::store::WatchedResource| {
        watched.topic.as_str().ends_with(&format!("/{}", watched.title))
            && watched.title == watched.subscribers.to_string()
    };
    assert!(read.iter().all(same));
}

async fn watched_resources_are_read_in_pages_with_all_their_properties(database: Database) {
    let store = database.open().await;
    for name in ["a", "b", "c"] {
        subscribe(&store, name, "https://cb.test/").await;
    }
    store.record(topic_id(&store, "b").await, &poll(at(60), &["one", "two"])).await.unwrap();
    let (mut read, mut next) = (Vec::new(), Some(ResourceId(0)));
    while let Some(after) = next {
        let page = store.resources_page(after, 2).await.unwrap();
        assert!(page.resources.len() <= 2);
        next = page.next;
        read.extend(page.resources);
    }
    read.sort_by(|a, b| a.topic.as_str().cmp(b.topic.as_str()));
    let heads: Vec<i64> = read.iter().map(|one| one.head.0).collect();
    assert_eq!(heads, [0, 2, 0]);
    for one in read {
        assert_eq!(Some(&one), store.get(one.id).await.unwrap().as_ref());
    }
}

async fn topic_id(store: &Arc<Store>, name: &str) -> ResourceId {
    store.find(topic(name).as_str()).await.unwrap().unwrap().id
}

async fn a_watched_resource_says_when_it_last_changed(database: Database) {
    let store = database.open().await;
    let id = subscribe(&store, "a", "https://cb.test/").await.id.resource;
    let [quiet] = &*store.watched(ResourceId(0)).await.unwrap() else { panic!("there is one") };
    assert_eq!((quiet.id, quiet.changed_at, quiet.fetched_at), (id, None, None));
    let mut found = poll(at(60), &["one", "two"]);
    found.status.title = "Tides".to_owned();
    found.site_url = Some("https://tides.test/".to_owned());
    store.record(id, &found).await.unwrap();
    store.record(id, &poll(at(120), &["two"])).await.unwrap();
    let [watched] = &*store.watched(ResourceId(0)).await.unwrap() else { panic!("there is one") };
    assert_eq!((watched.changed_at, watched.fetched_at), (Some(at(60)), Some(at(120))));
    assert_eq!(watched.site_url.as_deref(), Some("https://tides.test/"));
    assert_eq!(watched.subscribers, 1);
}

async fn of_a_page_of_subscriptions_only_the_open_ones_that_last_are_given(database: Database) {
    let store = database.open().await;
    let all = Collection { scope: CollectionKind::All, topic: topic("all"), title: String::new() };
    store.open_collection(&all, at(0)).await.unwrap();
    for (name, account, lasts_s) in [
        ("a", None, 3_600),
        ("a", Some(AccountId(7)), 3_600),
        ("b", None, 10),
        ("b", None, 3_600),
        ("all", None, 3_600),
        ("c", None, 3_600),
    ] {
        let mut request = request(name, &format!("https://cb.test/{name}/{lasts_s}"));
        (request.account, request.lease) = (account, Lease::from(Duration::from_secs(lasts_s)));
        store.subscribe(&request, at(0)).await.unwrap();
    }
    let (mut seen, mut pages, mut after) = (Vec::new(), 0, START);
    loop {
        let page = store.open_page(after, 2, at(20)).await.unwrap();
        assert!(page.open.len() <= 2);
        for open in &page.open {
            let whose = page.resources.iter().find(|held| held.id == open.id.resource).unwrap();
            seen.push((whose.topic.as_str().to_owned(), open.callback.clone()));
        }
        pages += 1;
        match page.next {
            Some(next) => after = next,
            None => break,
        }
    }
    seen.sort();
    let want = ["a", "b", "c"]
        .map(|name| (topic(name).as_str().to_owned(), format!("https://cb.test/{name}/3600")));
    assert_eq!(seen, want, "none of an account's, none that has ended, none of a collection");
    assert_eq!(pages, 4, "each page is read from two, and the last is empty");
}

async fn every_subscription_is_counted_once_however_many_there_are(database: Database) {
    const MANY: u64 = 10_500;
    let store = database.open().await;
    let id = subscribe(&store, "a", "https://first.test/").await.id.resource;
    let ends = at(3_600).timestamp_micros();
    database
        .run(&format!(
            "with recursive n (n) as (select 2 union all select n + 1 from n where n < {MANY})
             insert into subscriptions (resource_id, account_id, callback, host, protocol,
                                        procedure, format, failures, cursor, lease_until,
                                        created_at)
             select {id}, n % 2, 'http://cb.test/' || n, 'cb.test:80', 'http-post', '', 'raw',
                    case when n % 100 = 0 then 1 else 0 end, 0, {ends}, 0
               from n"
        ))
        .await;
    let mut soap = request("b", "HTTPS://second.test/");
    soap.protocol = Protocol::Soap { procedure: "changed".to_owned() };
    soap.callback = Callback::parse("HTTPS://second.test/").unwrap();
    store.subscribe(&soap, at(0)).await.unwrap();
    store.subscribe(&request("c", "https://late.test/"), at(-7_200)).await.unwrap();

    let (mut groups, mut after): (Vec<SubscriberGroup>, _) = (Vec::new(), START);
    let mut steps = 0;
    loop {
        let counted = store.count_some(after, at(60)).await.unwrap();
        groups.extend(counted.groups);
        steps += 1;
        match counted.next {
            Some(next) => after = next,
            None => break,
        }
    }
    assert_eq!(steps, 3, "up to the resource that has many, and twice for it");
    let sum = |of: &dyn Fn(&SubscriberGroup) -> bool| {
        groups.iter().filter(|group| of(group)).map(|group| group.many).sum::<u64>()
    };
    assert_eq!(sum(&|_| true), MANY + 1, "what has ended is not counted");
    assert_eq!(sum(&|group| group.protocol == "http-post"), MANY - 1);
    assert_eq!(sum(&|group| !group.is_open), MANY / 2 - 1);
    assert_eq!(sum(&|group| group.is_https), 2, "in any case");
    assert_eq!(sum(&|group| group.protocol == "soap" && group.is_https), 1);
    assert_eq!(groups.iter().map(|group| group.failing).sum::<u64>(), MANY / 100);
    let hosts: std::collections::BTreeSet<&str> =
        groups.iter().map(|group| group.host.as_str()).collect();
    assert_eq!(hosts.len(), 3);
}

async fn pings_are_counted_and_changes_that_nobody_pinged_are_not(database: Database) {
    let store = database.open().await;
    let id = subscribe(&store, "a", "https://cb.test/").await.id.resource;
    // What the first poll finds is no change.
    store.record(id, &poll(at(0), &["one"])).await.unwrap();
    store.record(id, &poll(at(600), &["two"])).await.unwrap();
    assert_eq!(resource(&store, id).await.head.0, 2);
    for (seconds, name) in [(100, "early"), (1_000, "late"), (1_001, "later")] {
        let ping = Ping {
            at: at(seconds),
            source: PingSource::Weblogs,
            name: name.to_owned(),
            url: format!("https://{name}.test/"),
            feed_url: None,
        };
        store.receive(&ping, Duration::ZERO).await.unwrap();
    }
    assert_eq!(store.pings_since(at(0)).await.unwrap(), 3);
    assert_eq!(store.pings_since(at(1_000)).await.unwrap(), 2);
    assert_eq!(store.pings_since(at(1_002)).await.unwrap(), 0);
}
