//! Very many feeds, and very many who subscribe to them.

use std::collections::BTreeSet;

use feedgate::jobs::runner;
use http::StatusCode;
use http::header::LINK;

use super::{json_at, outlines, watch};
use crate::store::on_both_stores;
use crate::support::gateway::Gateway;
use crate::support::postgres::{Database, Kind};
use crate::support::server::client;

on_both_stores!(every_open_subscription_is_on_one_page_and_no_page_is_long);

async fn every_open_subscription_is_on_one_page_and_no_page_is_long(database: Database) {
    const OPEN: usize = 2_300;
    for n in 0..3 {
        watch(&database, &format!("https://feeds.test/{n}"), "").await;
    }
    let (now, ends) = (runner::now(), runner::now() + chrono::TimeDelta::days(1));
    let (now, ends) = (now.timestamp_micros(), ends.timestamp_micros());
    // Every fourth is an account's.
    database
        .run(&format!(
            "with recursive n (n) as (select 0 union all select n + 1 from n where n + 1 < {OPEN} / 3 * 4)
             insert into subscriptions (resource_id, account_id, callback, host, protocol,
                                        procedure, format, cursor, lease_until, created_at)
             select r.id, case when n % 4 = 0 then 7 else 0 end, 'https://cb.test/' || n,
                    'cb.test:443', 'http-post', '', 'raw', 0, {ends}, {now}
               from n join resources r on r.topic = 'https://feeds.test/' || (n % 3)"
        ))
        .await;
    let gateway = Gateway::start(&database, &[]).await;
    for first in ["/subscriptions.json", "/subscriptions.json?limit=700"] {
        let (mut url, mut seen, mut pages) = (gateway.url(first), BTreeSet::new(), 0);
        loop {
            let answer = client().get(&url).send().await.unwrap();
            let link = answer.headers().get(LINK).map(|link| link.to_str().unwrap().to_owned());
            let page: serde_json::Value =
                serde_json::from_str(&answer.text().await.unwrap()).unwrap();
            let mut listed = 0;
            for feed in page["feeds"].as_object().unwrap().values() {
                for one in feed["subscriptions"].as_array().unwrap() {
                    assert_eq!(one["protocol"], "https-post");
                    assert!(seen.insert(one["url"].as_str().unwrap().to_owned()), "{one} twice");
                    listed += 1;
                }
            }
            assert!(listed <= 500, "{listed} at once");
            pages += 1;
            let Some(next) = page["next"].as_str() else { break };
            assert_eq!(link.as_deref(), Some(format!("<{next}>; rel=\"next\"").as_str()));
            url = next.to_owned();
        }
        assert_eq!(seen.len(), OPEN / 3 * 4 * 3 / 4, "{first}");
        assert!(pages >= 4, "{pages}");
    }
    let stats = json_at(&gateway, "/stats.json").await;
    assert_eq!(stats["protocolBreakdown"]["https-post"], OPEN / 3 * 4);
    assert_eq!(stats["uniqueAggregators"], 1);
}

#[tokio::test]
async fn a_list_of_very_many_feeds_is_whole_and_the_top_is_not() {
    const FEEDS: usize = 12_345;
    let database = Database::new(Kind::Sqlite).await;
    database
        .run(&format!(
            "with recursive n (n) as (select 1 union all select n + 1 from n where n < {FEEDS})
             insert into resources (topic, fetch_url, host, kind, subscribers, next_fetch, due_at,
                                    measured_at, source_network)
             select 'https://feeds.test/' || n, '', '', case when n = 1 then 'other' else 'feed' end,
                    n, 9000000000000000, 9000000000000000, 9000000000000000, 1
               from n;
             insert into resource_details (resource_id, status, polling)
             select id, '{{}}', '{{}}' from resources"
        ))
        .await;
    let gateway = Gateway::start(&database, &[("FEEDGATE_LIST_ACCOUNT_FEEDS", "on")]).await;
    let listed = outlines(&gateway, "?urls=source").await;
    let page = &listed[0];
    assert_eq!((page.r#type.as_deref(), &page.xml_url), (Some("link"), &None), "it is no feed");
    let urls = listed.iter().filter_map(|line| line.xml_url.as_deref().or(line.url.as_deref()));
    assert!(urls.eq((1..=FEEDS).map(|n| format!("https://feeds.test/{n}")).collect::<Vec<_>>()));
    let stats = json_at(&gateway, "/stats.json").await;
    assert_eq!(stats["feedsWithSubscribers"], FEEDS);
    let top = stats["topFeeds"].as_array().unwrap();
    let counts: Vec<u64> =
        top.iter().map(|feed| feed["subscriberCount"].as_u64().unwrap()).collect();
    assert_eq!(counts, (0..10).map(|n| (FEEDS - n) as u64).collect::<Vec<_>>());
    assert_eq!(stats["moreFeeds"].as_array().unwrap().len(), 90);
}

#[tokio::test]
async fn what_cannot_be_asked_for_is_refused_with_the_reason() {
    let database = Database::new(Kind::Sqlite).await;
    let gateway = Gateway::start(&database, &[]).await;
    let cases = [
        ("after=nowhere", "after must be two numbers"),
        ("after=1", "after must be two numbers"),
        ("limit=all", "limit must be a number"),
    ];
    for (query, want) in cases {
        let (status, why) = gateway.get(&format!("/subscriptions.json?{query}")).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{query}");
        assert!(why.starts_with(want), "{query}: {why}");
    }
    let (status, _) = gateway.get("/subscriptions.json?after=999999-1&limit=0").await;
    assert_eq!(status, StatusCode::OK, "behind the end there is nothing");
}
