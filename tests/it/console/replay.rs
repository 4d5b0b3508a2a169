//! The replay of entries since a time.

use chrono::TimeDelta;
use http::StatusCode;

use super::{Visitor, link, world_of_two};

#[tokio::test]
async fn entries_since_a_time_are_sent_again() {
    let world = world_of_two().await;
    let ada = Visitor::sign_in(&world, "ada", "ada").await;
    let path = link(&ada.page("/console/subscriptions").await, "console/subscriptions");
    let replay = async |since: &str| {
        ada.act(&path, &[("action", "replay"), ("since", since)]).await.status()
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
