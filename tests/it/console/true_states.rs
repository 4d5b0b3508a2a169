//! What pages say is true, and what they offer is possible (C7).

use feedgate_core::account::{Scope, Scopes};
use http::StatusCode;
use http::header::LOCATION;

use super::{Visitor, link, tokens, world_of_two};
use crate::support::ports::free_port;
use crate::support::subscriber::Behavior;
use crate::support::until;

#[tokio::test]
async fn c07_a_test_that_failed_is_an_alert() {
    let world = world_of_two().await;
    let ada = Visitor::sign_in(&world, "ada", "ada").await;
    let path = link(&ada.page("/console/subscriptions").await, "console/subscriptions");
    #[rustfmt::skip]
    let cases = [
        (Behavior::Failing(500), "role=\"alert\">The callback did not accept the test in "),
        (Behavior::Accepting,    "role=\"status\"><span class=\"badge good\">The callback accepted the test in "),
    ];
    for (behavior, want) in cases {
        world.subscriber.set("/ada", behavior);
        let page = ada.act(&path, &[("action", "test")]).await.text().await.unwrap();
        assert!(page.contains(want), "{want}: {page}");
    }
}

#[tokio::test]
async fn c07_a_subscription_to_a_feed_that_was_never_read_is_not_up_to_date() {
    let world = world_of_two().await;
    let missing = world.publisher.url("/missing");
    let ada = Visitor::sign_in(&world, "ada", "ada").await;
    let form = [("url", missing.as_str()), ("callback", "")];
    assert_eq!(ada.act("/console/feeds/add", &form).await.status(), StatusCode::SEE_OTHER);
    let list = format!("/console/subscriptions?q={}", world.gateway.url("/dev/null"));
    until("the fetch has failed", async || ada.page(&list).await.contains(">feed failing<")).await;
    assert!(!ada.page(&list).await.contains("up to date"));
    assert!(ada.page("/console/subscriptions").await.contains("up to date"), "that of the tides");
}

#[tokio::test]
async fn c07_pages_offer_what_the_token_may_do() {
    let world = world_of_two().await;
    let everything = Visitor::sign_in(&world, "ada", "ada").await;
    let feed = link(&everything.page("/console/feeds").await, "console/feeds");
    let subscriptions = everything.page("/console/subscriptions").await;
    let subscription = link(&subscriptions, "console/subscriptions");
    tokens::create(&world, "reader", [Scope::List].into_iter().collect(), None).await;
    let reader = Visitor::sign_in(&world, "ada", "reader").await;
    #[rustfmt::skip]
    let pages = [
        ("/console/feeds",         "feeds/add"),
        ("/console/subscriptions", "name=\"action\""),
        ("/console/opml",          "name=\"opml\""),
        (feed.as_str(),            "value=\"poll\""),
        (subscription.as_str(),    "name=\"action\""),
    ];
    for (path, control) in pages {
        assert!(everything.page(path).await.contains(control), "{path}");
        let page = reader.page(path).await;
        assert!(!page.contains(control), "{path}: {page}");
    }
    // Nothing is owed, so that nothing can be retried, and what is not paused cannot be resumed.
    let page = everything.page(&subscription).await;
    assert!(page.contains("value=\"pause\"") && page.contains("value=\"rotate-secret\""), "{page}");
    assert!(!page.contains("value=\"retry\"") && !page.contains("value=\"resume\""), "{page}");

    for path in ["/console/sign-in", "/console/sign-in?next=feeds"] {
        let request = everything.client.get(world.gateway.url(path));
        let response = request.header("cookie", &everything.cookie).send().await.unwrap();
        assert_eq!(response.headers()[LOCATION], "../console", "who is signed in need not sign in");
    }

    let publish: Scopes = [Scope::Publish].into_iter().collect();
    tokens::create(&world, "publisher", publish, None).await;
    let publisher = Visitor::sign_in(&world, "ada", "publisher").await;
    let response = publisher.act("/console/accounts/ada", &[]).await;
    assert_eq!(response.status(), StatusCode::BAD_REQUEST, "the own account is a page");
    let request = publisher.client.get(world.gateway.url("/console"));
    let response = request.header("cookie", &publisher.cookie).send().await.unwrap();
    assert_eq!(response.headers()[LOCATION], "console/accounts/ada");
    let page = publisher.page("/console/accounts/ada").await;
    assert!(!page.contains("console/feeds\"") && page.contains("viewLog\""), "{page}");
}

#[tokio::test]
async fn c07_where_no_server_answers_there_is_only_the_form_for_the_address() {
    let world = world_of_two().await;
    let ada = Visitor::sign_in(&world, "ada", "ada").await;
    let dead = format!("http://127.0.0.1:{}/feed", free_port());
    let page = ada.page(&format!("/console/feeds/add?url={dead}")).await;
    assert!(page.contains("127.0.0.1 could not be reached"), "{page}");
    assert!(page.contains(&format!("value=\"{dead}\"")) && !page.contains("callback"), "{page}");
}

#[tokio::test]
async fn c07_times_are_told_in_utc_or_by_their_distance_with_the_exact_time_as_title() {
    let world = world_of_two().await;
    let ada = Visitor::sign_in(&world, "ada", "ada").await;
    let feed = link(&ada.page("/console/feeds").await, "console/feeds");
    until("an event is logged", async || ada.page("/viewLog").await.contains("<time ")).await;
    for path in ["/console/accounts/ada", "/console/subscriptions", "/viewLog", &feed] {
        let page = ada.page(path).await;
        let times: Vec<&str> = page.split("<time ").skip(1).collect();
        assert!(!times.is_empty(), "{path}");
        for time in times {
            let (attributes, rest) = time.split_once('>').unwrap();
            let text = rest.split('<').next().unwrap();
            let is_told = text.ends_with(" UTC")
                || text.ends_with(" ago")
                || text.starts_with("in ")
                || text == "now";
            assert!(is_told && attributes.contains("Z\" title=\""), "{path}: {attributes} {text}");
        }
    }
    for script in ["/console/page.js", "/log/live.js"] {
        assert!(!ada.page(script).await.contains("toLocale"), "{script}");
    }
}
