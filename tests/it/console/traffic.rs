//! The charts of what happened in the last day and week.

use std::time::Duration;

use chrono::TimeDelta;
use feedgate::jobs::runner;
use feedgate_core::account::{AccountId, Scopes};
use feedgate_core::resource_id::ResourceId;
use feedgate_core::traffic::{
    CountedDelivery, DeliveryClass, PollClass, QueueAges, TrafficBatch, TrafficSubject, TrafficUnit,
};
use http::StatusCode;

use super::{Visitor, link, make_token, subscribe, world_of_two};
use crate::support::browser::Browser;
use crate::support::until;
use crate::support::world::World;

/// The most bytes of a page.
const MOST_BYTES: usize = 100_000;

/// What a node counts in a busy minute.
fn busy_minute(feed: ResourceId, host: &str, account: AccountId) -> TrafficBatch {
    let mut batch = TrafficBatch::default();
    for n in 0..200 {
        let class = if n % 50 == 0 { DeliveryClass::Refused } else { DeliveryClass::Accepted };
        let delay = Some(Duration::from_millis(100 + n));
        let account = Some(account);
        batch.add_delivery(&CountedDelivery { feed, host, account, class, delay });
    }
    batch.add_poll(feed, PollClass::New, 200);
    batch.add_poll(feed, PollClass::Failed, 0);
    batch.total.note_ages(QueueAges { polls_s: 3, deliveries_s: 75 });
    batch
}

#[tokio::test]
async fn c02_charts_of_a_day_and_a_week_are_on_the_pages() {
    let world = world_of_two().await;
    let root = Visitor::sign_in(&world, "root", "root").await;
    let feed = link(&root.page("/console/feeds").await, "console/feeds");
    let number = ResourceId(feed.rsplit('/').next().unwrap().parse().unwrap());
    let host =
        world.subscriber.url("/").trim_start_matches("http://").trim_end_matches('/').to_owned();
    let store = world.database.open().await;
    let ada = store.account("ada").await.unwrap().unwrap().id;
    for hours in 0..7 * 24 - 4 {
        let at = runner::now() - TimeDelta::hours(hours);
        let batch = busy_minute(number, &host, ada);
        store.add_gateway_traffic(&batch.total, at).await.unwrap();
        store.add_subject_traffic(batch, at).await.unwrap();
    }
    store.close().await;

    let day = root.page("/console").await;
    let week = root.page("/console?range=7d").await;
    for (page, name, deliveries, entries) in
        [(&day, "24 hours", "4\u{a0}7", "4\u{a0}80"), (&week, "7 days", "32\u{a0}1", "32\u{a0}80")]
    {
        assert!(page.contains(&format!("aria-current=\"true\">{name}</a>")), "{page}");
        assert_eq!(page.matches("<svg class=\"time\"").count(), 5, "{page}");
        assert!(page.contains(&format!("<p class=\"soft\">{deliveries}")), "{page}");
        assert!(page.contains(entries), "{page}");
        assert!(page.contains("A delivery was due for 1\u{a0}min 15\u{a0}s at most"), "{page}");
        assert!(page.len() < MOST_BYTES, "{} bytes", page.len());
    }
    let (_, delays) = day.split_once("Half within ").unwrap();
    let median: u64 = delays.split('\u{a0}').next().unwrap().parse().unwrap();
    assert!((195..206).contains(&median), "{median} ms");

    let of_root = root.page(&format!("{feed}?range=7d")).await;
    assert_eq!(of_root.matches("<svg class=\"time\"").count(), 4, "{of_root}");
    assert!(of_root.contains("32\u{a0}80"), "{of_root}");
    let visitor = Visitor::sign_in(&world, "ada", "ada").await;
    let of_ada = visitor.page(&feed).await;
    assert_eq!(of_ada.matches("<svg class=\"time\"").count(), 2, "those of others are not shown");
    for path in ["/console", "/console/accounts/ada"] {
        let own = visitor.page(path).await;
        assert_eq!(own.matches("<svg class=\"time\"").count(), 2, "{own}");
        assert!(own.contains("4\u{a0}704 accepted, 96 refused, 0 unanswered."), "{own}");
    }
    let of_host = format!("/console/hosts/{}", host.replace(':', "%3A"));
    assert!(root.page(&of_host).await.contains("4\u{a0}704 accepted, 96 refused"));
    assert_eq!(visitor.get(&of_host).await.0, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn c02_a_node_that_is_stopped_stores_what_it_has_counted() {
    let mut world = World::with_tides(3, &[]).await;
    make_token(&world, "root", Scopes::all()).await;
    subscribe(&world, "root", "/root").await;
    world.put_tides(4);
    world.gateway.post("/ping", &[("url", &world.topic)]).await;
    world.subscriber.until("/root", |received| !received.is_empty()).await;
    let root = Visitor::sign_in(&world, "root", "root").await;
    until("the delivery is counted", async || {
        root.page("/console/live/charts").await.contains("1 accepted")
    })
    .await;
    let subscriptions = root.page("/console/subscriptions").await;
    let subscription = link(&subscriptions, "console/subscriptions");
    until("the attempt is recorded", async || {
        root.page(&subscription).await.contains("The newest of 1\u{a0}attempt is")
    })
    .await;

    world.gateway.terminate();
    world.gateway.ended().await;
    let store = world.database.open().await;
    let (now, hours) = (runner::now(), TrafficSubject::Gateway(TrafficUnit::Hour));
    let stored = store.traffic(&hours, now - TimeDelta::hours(2)..now).await.unwrap();
    let accepted = stored.iter().map(|hour| hour.counts.deliveries(DeliveryClass::Accepted));
    assert_eq!(accepted.sum::<u64>(), 1);
    assert_eq!(stored.iter().map(|hour| hour.counts.entries()).sum::<u64>(), 4);
    store.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn c02_values_of_charts_are_read_with_the_arrow_keys() {
    let world = world_of_two().await;
    // What has no values is not drawn.
    let root = Visitor::sign_in(&world, "root", "root").await;
    until("the fetch is counted", async || {
        root.page("/console").await.contains("svg class=\"time")
    })
    .await;
    let browser = Browser::start().await;
    super::pages::sign_in(&browser, &world, "root").await;
    browser.open(&world.gateway.url("/console")).await;
    let press = "
        const chart = document.querySelector('svg.time');
        for (const key of ['ArrowLeft', 'ArrowLeft', 'ArrowRight'])
          chart.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true }));";
    browser.run(press).await;
    browser
        .until("document.querySelector('figure output').textContent.includes('with new entries')")
        .await;
    let newest =
        "document.querySelector('svg.time .at rect:last-of-type').classList.contains('on')";
    browser.until(newest).await;
    assert_eq!(browser.complaints().await, [""; 0], "nothing is forbidden, no script fails");
}
