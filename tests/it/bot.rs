//! What the owner of a polled server finds at the address in our user agent: rule P35.

use http::StatusCode;

use crate::support::gateway::Gateway;
use crate::support::postgres::{Database, Kind};
use crate::support::publisher::Publisher;

#[tokio::test(flavor = "multi_thread")]
async fn p35_the_page_says_how_to_slow_and_stop_us_and_whom_to_write_to() {
    let database = Database::new(Kind::Sqlite).await;
    let settings = [
        ("FEEDGATE_CONTACT", "ops@gateway.test"),
        ("FEEDGATE_BOT_ADDRESSES", "192.0.2.0/28,2001:db8::1"),
        ("FEEDGATE_MIN_PERIOD_S", "540"),
        ("FEEDGATE_HOST_MIN_INTERVAL_MS", "2500"),
    ];
    let gateway = Gateway::start(&database, &settings).await;
    let (status, page) = gateway.get("/bot").await;
    assert_eq!(status, StatusCode::OK);
    for want in [
        "User-agent: feedgate",
        "Retry-After",
        "Cache-Control",
        "410 Gone",
        "once a month only",
        "between once in 9\u{a0}min and",
        "at least 2500\u{a0}ms apart",
        "not feeds",
        "RFC 9309",
        "href=\"mailto:ops@gateway.test\"",
        "/bot-ips.txt",
    ] {
        assert!(page.contains(want), "{want} is not in:\n{page}");
    }
    assert!(!page.contains("{contact}") && !page.contains("{addresses}"), "{page}");
    let (status, addresses) = gateway.get("/bot-ips.txt").await;
    assert_eq!(status, StatusCode::OK);
    let lines: Vec<_> = addresses.lines().filter(|line| !line.starts_with('#')).collect();
    assert_eq!(lines, ["192.0.2.0/28", "2001:db8::1/128"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn p35_the_user_agent_points_to_the_page() {
    let database = Database::new(Kind::Sqlite).await;
    let gateway = Gateway::start(&database, &[]).await;
    let publisher = Publisher::start().await;
    gateway.subscribe_superfeedr(&publisher.url("/feed"), "https://b.test/dev/null", "atom").await;
    publisher.fetched("/feed", 1).await;
    let fetches = publisher.fetches("/feed");
    let agent = fetches[0].request.header("user-agent").unwrap();
    assert!(agent.contains(&format!("(+{};", gateway.url("/bot"))), "{agent}");
}
