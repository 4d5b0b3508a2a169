//! The replay of entries: the newest ones, those from a number on, and those since a time.

use chrono::TimeDelta;
use http::StatusCode;

use super::{Visitor, link, world_of_two};

#[tokio::test]
async fn entries_since_a_time_are_sent_again() {
    let world = world_of_two().await;
    let ada = Visitor::sign_in(&world, "ada", "ada").await;
    let path = link(&ada.page("/console/subscriptions").await, "console/subscriptions");
    let replay = async |since: &str| {
        let form = [("action", "replay"), ("which", "since"), ("count", "1"), ("since", since)];
        ada.act(&path, &form).await.status()
    };
    let now = feedgate::jobs::runner::now();
    let time = |at: chrono::DateTime<chrono::Utc>| at.format("%Y-%m-%dT%H:%M").to_string();
    assert_eq!(replay("yesterday").await, StatusCode::BAD_REQUEST);
    let later = time(now + TimeDelta::hours(1));
    assert_eq!(replay(&later).await, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(replay(&time(now - TimeDelta::hours(1))).await, StatusCode::SEE_OTHER);
    world.subscriber.until("/ada", |received| !received.is_empty()).await;
    let received = &world.subscriber.notified("/ada")[0];
    let text = String::from_utf8_lossy(&received.body).into_owned();
    assert_eq!(text.matches("<entry").count(), 3, "{text}");
}

#[tokio::test]
async fn entries_from_a_number_on_are_sent_again_and_the_form_counts_one_of_its_fields() {
    let world = world_of_two().await;
    let ada = Visitor::sign_in(&world, "ada", "ada").await;
    let path = link(&ada.page("/console/subscriptions").await, "console/subscriptions");
    let page = ada.page(&path).await;
    for word in ["count", "from", "since"] {
        assert!(
            page.contains(&format!("type=\"radio\" name=\"which\" value=\"{word}\"")),
            "{page}"
        );
    }
    #[rustfmt::skip]
    let cases = [
        ("from",  "",  "1", StatusCode::BAD_REQUEST, "the number of the first entry"),
        ("from",  "x", "1", StatusCode::BAD_REQUEST, "the number of the first entry"),
        ("count", "1", "0", StatusCode::BAD_REQUEST, "how many of the newest entries"),
        ("from",  "2", "1", StatusCode::SEE_OTHER,   ""),
    ];
    for (which, from, count, status, reason) in cases {
        let form = [
            ("action", "replay"),
            ("which", which),
            ("from", from),
            ("count", count),
            ("since", ""),
        ];
        let response = ada.act(&path, &form).await;
        assert_eq!(response.status(), status, "{which} {from:?} {count:?}");
        let page = response.text().await.unwrap();
        assert!(page.contains(reason), "{page}");
    }
    world.subscriber.until("/ada", |received| !received.is_empty()).await;
    let text = String::from_utf8_lossy(&world.subscriber.notified("/ada")[0].body).into_owned();
    assert_eq!(text.matches("<entry").count(), 2, "numbers 2 and 3: {text}");
}
